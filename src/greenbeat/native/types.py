"""The types of native code: how wide a value is, how it is laid out, how LLVM spells it.

Every type is a value of one of the small classes below. Signedness lives in the type (`i32` and `u32` are both LLVM's
`i32`), so an operator never has to be told which comparison or division is meant. Structs are laid out as C lays them
out and can be seen from Python as `ctypes` structures.

To a type checker the integer types are `int`, the float types `float` and pointers a generic class: it checks the shape
of engine code, the native compiler checks the widths.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from greenbeat.native.records import field, record

T = TypeVar("T")


class Type:
    """What all types share. `ir` is the LLVM spelling of a value, `memory_ir` that of its place in memory."""

    name: str
    ir: str
    size: int
    align: int

    @property
    def memory_ir(self) -> str:
        return self.ir

    @property
    def ctype(self) -> Any:
        """The ctypes type with this layout."""
        raise TypeError(f"{self.name} has no ctypes counterpart")

    def __repr__(self) -> str:
        return self.name

    def __call__(self, value: Any) -> Any:
        """Convert a Python value as native code would (called from Python, for example by constant expressions)."""
        raise TypeError(f"{self.name} converts nothing outside native code")


@record(frozen=True, repr=False)
class IntegerType(Type):
    """A two's complement integer of `bits` bits; arithmetic wraps."""

    name: str
    bits: int
    signed: bool

    @cached_property
    def ir(self) -> str:  # type: ignore[override]
        return f"i{self.bits}"

    @cached_property
    def size(self) -> int:  # type: ignore[override]
        return self.bits // 8

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.bits // 8

    @property
    def ctype(self) -> Any:
        return getattr(ctypes, f"c_{'' if self.signed else 'u'}int{self.bits}")

    def fits(self, value: int) -> bool:
        """Whether a literal can be of this type: in its own range or, as a bit pattern, in the other sign's."""
        return -(1 << (self.bits - 1)) <= value < (1 << self.bits)

    def wrap(self, value: int) -> int:
        """The value of this type with the same low bits as `value`."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.signed and value >> (self.bits - 1) else value

    def __call__(self, value: Any) -> int:
        if isinstance(value, float):
            return 0 if value != value else int(max(self.least, min(self.greatest, value)))
        return self.wrap(int(value))

    @property
    def least(self) -> int:
        """The smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        """The largest value."""
        return (1 << (self.bits - self.signed)) - 1


@record(frozen=True, repr=False)
class FloatType(Type):
    """An IEEE 754 binary float."""

    name: str
    ir: str
    size: int

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.size

    @property
    def ctype(self) -> Any:
        return ctypes.c_float if self.size == 4 else ctypes.c_double

    def __call__(self, value: Any) -> float:
        return float(self.ctype(value).value)


@record(frozen=True, repr=False)
class BoolType(Type):
    """A truth value: one bit in a register, one byte in memory."""

    name: str = "bool"
    ir: str = "i1"
    size: int = 1
    align: int = 1

    @property
    def memory_ir(self) -> str:
        return "i8"

    @property
    def ctype(self) -> Any:
        return ctypes.c_bool

    def __call__(self, value: Any) -> bool:
        return bool(value)


@record(frozen=True, repr=False)
class VectorType(Type):
    """128 bits in a vector register."""

    name: str = "v128"
    ir: str = "<2 x i64>"
    size: int = 16
    align: int = 16

    @property
    def ctype(self) -> Any:
        return ctypes.c_uint64 * 2


@record(frozen=True, repr=False)
class VoidType(Type):
    """The absence of a value: a function's result, or a pointer's unknown target."""

    name: str = "void"
    ir: str = "void"
    size: int = 1
    align: int = 1


class PointerType(Type):
    """A pointer to `of`, which a string may name: resolved at first use, so that structs can refer to each other."""

    ir = "ptr"
    size = 8
    align = 8

    def __init__(self, of: Any, resolve: Callable[[str], Any] | None = None) -> None:
        self._of = of
        self._resolve = resolve

    @cached_property
    def of(self) -> Type:
        target = self._of
        if isinstance(target, str):
            if self._resolve is None:
                raise TypeError(f"ptr[{target!r}] can be written only inside a struct")
            target = self._resolve(target)
        return as_type(target)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"ptr[{self._of if isinstance(self._of, str) else self.of.name}]"

    @property
    def ctype(self) -> Any:
        return ctypes.c_void_p

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerType) and (self is other or self.of == other.of)

    def __hash__(self) -> int:
        return hash("ptr")


@record(frozen=True, repr=False)
class ArrayType(Type):
    """`count` elements in a row; only as a struct's field or a static's type."""

    of: Type
    count: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"array[{self.of.name}, {self.count}]"

    @property
    def ir(self) -> str:  # type: ignore[override]
        return f"[{self.count} x {self.of.memory_ir}]"

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.count * self.of.size

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.of.align

    @property
    def ctype(self) -> Any:
        return self.of.ctype * self.count


@record(frozen=True, repr=False)
class FunctionType(Type):
    """A pointer to a function with this signature and calling convention."""

    params: tuple[Type, ...]
    returns: Type
    convention: str = ""
    ir: str = "ptr"
    size: int = 8
    align: int = 8

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"function[[{', '.join(p.name for p in self.params)}], {self.returns.name}]"

    @property
    def ctype(self) -> Any:
        return ctypes.c_void_p


@record(eq=False, repr=False)
class StructType(Type):
    """Named fields at the offsets C gives them. `fields` maps a name to (byte offset, type)."""

    python_class: type
    fields: dict[str, tuple[int, Type]] = field(default_factory=dict)
    size: int = 0
    align: int = 1

    def __post_init__(self) -> None:
        self.python_class.__native_struct__ = self  # type: ignore[attr-defined]
        offset = 0
        for name, annotation in self.python_class.__annotations__.items():
            kind = as_type(annotation, self._resolve)
            offset = (offset + kind.align - 1) & -kind.align
            self.fields[name] = (offset, kind)
            offset += kind.size
            self.align = max(self.align, kind.align)
        self.size = (offset + self.align - 1) & -self.align

    def _resolve(self, name: str) -> Any:
        import sys

        return self.python_class if name == self.name else getattr(sys.modules[self.python_class.__module__], name)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.python_class.__name__

    @property
    def ir(self) -> str:  # type: ignore[override]
        return f"[{self.size} x i8]"

    @cached_property
    def ctype(self) -> Any:
        return type(self.name, (ctypes.Structure,), {"_fields_": [(n, t.ctype) for n, (_, t) in self.fields.items()]})


def as_type(value: Any, resolve: Callable[[str], Any] | None = None) -> Type:
    """The type that an annotation means: a `Type`, a struct class, `bool`, `None`, or (with `resolve`) a string."""
    if isinstance(value, Type):
        return _with_names(value, resolve) if resolve is not None else value
    if isinstance(value, str) and resolve is not None:
        return as_type(eval(value, {"ptr": ptr, "array": array}, _Names(resolve)), resolve)
    if value is bool:
        return BOOL
    if value is None:
        return VOID
    struct_type = getattr(value, "__native_struct__", None)
    if isinstance(struct_type, StructType):
        return struct_type
    raise TypeError(f"{value!r} is no native type")


def _with_names(kind: Type, resolve: Callable[[str], Any]) -> Type:
    """`kind` with the pointers in it that name their target by a string able to find it."""
    if isinstance(kind, PointerType):
        if isinstance(kind._of, str):
            return kind if kind._resolve is not None else PointerType(kind._of, resolve)
        return PointerType(_with_names(kind._of, resolve))
    if isinstance(kind, ArrayType):
        return ArrayType(_with_names(kind.of, resolve), kind.count)
    if isinstance(kind, FunctionType):
        params = tuple(_with_names(p, resolve) for p in kind.params)
        return FunctionType(params, _with_names(kind.returns, resolve), kind.convention)
    return kind


class _Names(dict[str, Any]):
    def __init__(self, resolve: Callable[[str], Any]) -> None:
        self.resolve = resolve

    def __missing__(self, name: str) -> Any:
        return self.resolve(name)


I8, I16, I32, I64 = (IntegerType(f"i{n}", n, True) for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (IntegerType(f"u{n}", n, False) for n in (8, 16, 32, 64))
F32, F64 = FloatType("f32", "float", 4), FloatType("f64", "double", 8)
V128, BOOL, VOID = VectorType(), BoolType(), VoidType()


class _PointerForm:
    def __getitem__(self, of: Any) -> PointerType:
        return PointerType(of if isinstance(of, str) else as_type(of))


class _ArrayForm:
    def __getitem__(self, key: tuple[Any, int]) -> ArrayType:
        return ArrayType(as_type(key[0]), key[1])


class _FunctionForm:
    def __getitem__(self, key: tuple[Sequence[Any], Any]) -> FunctionType:
        return FunctionType(tuple(as_type(p) for p in key[0]), as_type(key[1]))


if TYPE_CHECKING:
    i8: TypeAlias = int
    i16: TypeAlias = int
    i32: TypeAlias = int
    i64: TypeAlias = int
    u8: TypeAlias = int
    u16: TypeAlias = int
    u32: TypeAlias = int
    u64: TypeAlias = int
    f32: TypeAlias = float
    f64: TypeAlias = float
    v128: TypeAlias = Any
    bool_: TypeAlias = bool
    void: TypeAlias = Any
    # Neither a number nor a list of types can be a type's argument in a type checker's eyes: these two are anything.
    array: Any
    function: Any

    class ptr(Generic[T]):
        """A pointer, as a type checker sees it."""

        def __getitem__(self, index: int) -> T: ...
        def __setitem__(self, index: int, value: T) -> None: ...
        def __add__(self, count: int) -> "ptr[T]": ...
        def __iadd__(self, count: int) -> "ptr[T]": ...
        def __sub__(self, other: Any) -> Any: ...
        def __lt__(self, other: "ptr[T]") -> bool: ...
        def __gt__(self, other: "ptr[T]") -> bool: ...
        def __le__(self, other: "ptr[T]") -> bool: ...
        def __ge__(self, other: "ptr[T]") -> bool: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

else:
    i8, i16, i32, i64, u8, u16, u32, u64 = I8, I16, I32, I64, U8, U16, U32, U64
    f32, f64, v128, void, bool_ = F32, F64, V128, VOID, BOOL
    ptr, array, function = _PointerForm(), _ArrayForm(), _FunctionForm()


def struct(cls: type[T]) -> type[T]:
    """Class decorator: the annotated names become the fields of a struct laid out as C does.

    The class itself stays an ordinary Python class; `sizeof`, `ptr[...]` and `ctypes_of` know its layout.
    """
    StructType(cls)
    return cls


def ctypes_of(cls: Any) -> Any:
    """The ctypes type with the layout of a native type or struct class."""
    return as_type(cls).ctype


def sizeof(kind: Any) -> int:
    """Size in bytes of a native type or struct class."""
    return as_type(kind).size


def offsetof(kind: Any, field_name: str) -> int:
    """Byte offset of a struct's field."""
    struct_type = as_type(kind)
    assert isinstance(struct_type, StructType)
    return struct_type.fields[field_name][0]


def float_literal(value: float, kind: FloatType) -> str:
    """LLVM's spelling of a float constant: the bits of the double with that value."""
    import struct as packing

    if kind.size == 4:
        value = packing.unpack("<f", packing.pack("<f", value))[0]
    return f"0x{packing.unpack('<Q', packing.pack('<d', value))[0]:016X}"
