"""The types of kernels: what their parameters, results and variables can hold, and how those cross from Python.

    stored as                 computed as    words
    i8 ... i64, u8 ... u32    i64            1
    u64                       u64            1
    f32, f64                  f64            1
    bool                      bool           1
    tuple[A, B]               its items      theirs
    Array[T], Array[T, 2]     itself         2: address, length; 5: address, rows, columns and their strides
    Channel[T]                its address    1

A narrow type says what fits; numbers are computed with 64 bits. A parameter or result is described to native code by
its *layout*, bytes that begin with a code of the list below.
"""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from greenbeat.native.types import BOOL, F32, F64, I64, U64, VOID, BoolType, FloatType, IntegerType, Type

# Codes of layouts. Those of integers up to `CODE_U64` are followed by nothing, `CODE_TUPLE` by the number of its items
# and their layouts, `CODE_ARRAY` by the number of its dimensions, the code of its elements, and whether it is written,
# `CODE_CHANNEL` by the layout of its values.
CODE_BOOL, CODE_I8, CODE_I16, CODE_I32, CODE_I64, CODE_U8, CODE_U16, CODE_U32, CODE_U64 = range(1, 10)
CODE_F32, CODE_F64, CODE_TUPLE, CODE_ARRAY, CODE_NONE, CODE_CHANNEL = range(10, 16)
CODE_END = 0

MOST_WORDS = 128
MOST_ARRAYS = 16
_ARRAY_WORDS = {1: 2, 2: 5}


@dataclass(frozen=True, repr=False)
class TupleType(Type):
    """Several values at once."""

    items: tuple[Type, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"tuple[{', '.join(item.name for item in self.items)}]"


@dataclass(frozen=True, repr=False)
class ArrayType(Type):
    """The elements of a buffer, in place."""

    element: Type
    dimensions: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Array[{self.element.name}{', 2' * (self.dimensions == 2)}]"


@dataclass(frozen=True, repr=False)
class HandleType(Type):
    """Something that a kernel holds by a word: a task or a channel. What it gives or passes is an `element`."""

    element: Type
    ir: str = "i64"
    size: int = 8
    align: int = 8


@dataclass(frozen=True, repr=False)
class TaskType(HandleType):
    """A task that a kernel has spawned; `element` is its result."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Task[{'None' if self.element == VOID else self.element.name}]"


@dataclass(frozen=True, repr=False)
class ChannelType(HandleType):
    """A channel of values of a type."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Channel[{'None' if self.element == VOID else self.element.name}]"


class ArrayForm:
    """`Array[T]` and `Array[T, 2]`: parameters that take any buffer of such elements, numpy's arrays for example."""

    def __getitem__(self, key: Any) -> ArrayType:
        element, dimensions = key if isinstance(key, tuple) and len(key) == 2 else (key, 1)
        literal = getattr(dimensions, "__args__", (dimensions,))
        kind = kernel_type(element)
        if not isinstance(kind, IntegerType | FloatType | BoolType):
            raise TypeError(f"the elements of an Array are numbers or bools, not {kind.name}")
        if literal not in ((1,), (2,)):
            raise TypeError(f"an Array has 1 or 2 dimensions, not {dimensions!r}")
        return ArrayType(kind, literal[0])

    def __repr__(self) -> str:
        return "greenbeat.Array"


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Element = TypeVar("Element")
    Dimensions = TypeVar("Dimensions", default=Any)

    class Array(Generic[Element, Dimensions]):
        """A parameter that takes any buffer. A type checker wants `Literal[2]` for two dimensions."""

        shape: tuple[int, ...]
        ndim: int
        size: int

        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

else:
    Array = ArrayForm()


_NO_CHANNEL = object()


def kernel_type(annotation: Any) -> Type:
    """The type that an annotation means.

    Raises:
        TypeError: it means none.
    """
    annotation = getattr(annotation, "kernel_type", annotation)
    if annotation is int:
        return I64
    if annotation is float:
        return F64
    if annotation is bool:
        return BOOL
    if annotation is None or annotation is type(None):
        return VOID
    if isinstance(annotation, IntegerType | FloatType | BoolType | TupleType | ArrayType | HandleType):
        return annotation
    if (values := getattr(annotation, "channel_values", _NO_CHANNEL)) is not _NO_CHANNEL:
        return ChannelType(kernel_type(values))
    if isinstance(annotation, types.GenericAlias) and annotation.__origin__ is tuple:
        if ... in annotation.__args__:
            raise TypeError("a tuple's length is part of its type, as in tuple[int, float]")
        items = tuple(kernel_type(a) for a in annotation.__args__ if a != ())
        for item in items:
            if isinstance(item, ArrayType | HandleType) or item == VOID:
                raise TypeError(f"a tuple holds numbers, bools and tuples, not {item.name}")
        return TupleType(items)
    if annotation is Array:
        raise TypeError("an Array says what is in it, as in Array[f64]")
    from greenbeat.api.channels import Channel  # here, since it knows this file

    if annotation is Channel:
        raise TypeError("a Channel says what it passes: write gb.Channel[gb.i64], for example")
    wish = ""
    origin = getattr(annotation, "__origin__", annotation)
    if getattr(origin, "__name__", "") in _LIKE_ARRAYS:
        wish = "write gb.Array[gb.f64], for example, which takes any buffer of such elements; "
    raise TypeError(
        f"{_name_of(annotation)} is no type of kernels: {wish}int, float, bool, gb.i8 to gb.u64, gb.f32, gb.f64, "
        "tuple[...], gb.Array[...], gb.Channel[...], and None for a result are"
    )


# What users may mean an `Array` by: lists, which no kernel takes, and buffers.
_LIKE_ARRAYS = ("list", "List", "Sequence", "ndarray", "array", "bytes", "bytearray", "memoryview")


def _name_of(annotation: Any) -> str:
    """A type that is none of kernels, as its user wrote it."""
    whole = isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias)
    return annotation.__name__ if whole else repr(annotation)


def computed(kind: Type) -> Type:
    """What a number of a narrow type is computed as."""
    if isinstance(kind, IntegerType) and kind != U64:
        return I64
    return F64 if kind == F32 else kind


def fits(kind: Type, wanted: Type) -> bool:
    """Whether a value of a type may be given where another type is wanted; `KernelValues.fitted` does that."""
    if kind is wanted:  # nearly always, and comparing what types hold takes a while
        return True
    if isinstance(kind, TupleType) and isinstance(wanted, TupleType):
        return len(kind.items) == len(wanted.items) and all(map(fits, kind.items, wanted.items))
    numbers = IntegerType | FloatType | BoolType
    if not isinstance(kind, numbers) or not isinstance(wanted, numbers):
        return kind == wanted
    given, wide = computed(kind), computed(wanted)
    return given == wide or wide == F64 or (given == BOOL and wide != BOOL)


def word_count(kind: Type) -> int:
    """How many 64-bit words carry a value."""
    if isinstance(kind, TupleType):
        return sum(map(word_count, kind.items))
    if isinstance(kind, ArrayType):
        return _ARRAY_WORDS[kind.dimensions]
    return 0 if kind == VOID else 1


def array_count(kinds: list[Type]) -> int:
    """How many arrays there are."""
    return sum(isinstance(kind, ArrayType) for kind in kinds)


def scalars(kind: Type) -> list[Type]:
    """The numbers that a value of this type is made of."""
    if isinstance(kind, TupleType):
        return [scalar for item in kind.items for scalar in scalars(item)]
    return [] if kind == VOID else [kind]


_CODES = {"bool": CODE_BOOL, "i8": CODE_I8, "i16": CODE_I16, "i32": CODE_I32, "i64": CODE_I64, "u8": CODE_U8}
_CODES |= {"u16": CODE_U16, "u32": CODE_U32, "u64": CODE_U64, "f32": CODE_F32, "f64": CODE_F64, "void": CODE_NONE}


def layout(kind: Type, written: bool = False) -> bytes:
    """A type as native code is told it."""
    if isinstance(kind, TupleType):
        return bytes([CODE_TUPLE, len(kind.items)]) + b"".join(map(layout, kind.items))
    if isinstance(kind, ArrayType):
        return bytes([CODE_ARRAY, kind.dimensions, _CODES[kind.element.name], written])
    if isinstance(kind, ChannelType):
        return bytes([CODE_CHANNEL]) + layout(kind.element)
    return bytes([_CODES[kind.name]])
