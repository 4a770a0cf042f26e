"""The words of native code: decorators that make functions native, and the operations Python has no operator for.

A function decorated here is not compiled at once: it is a node that a build reaches from its roots. Calling an
operation of this file from ordinary Python is an error, except where its docstring says otherwise; the compiler
recognises them by identity (see `intrinsics.py`).

    native   an ordinary function            inline   expanded into every caller, with parameters of any kind
    export   callable from Python by name    extern   a C function found in the process by its name
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from greenbeat.native.types import FunctionType, Type, as_type

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

CO_VARARGS = 4  # inspect.CO_VARARGS, without the time it takes to import inspect
_names: Counter[str] = Counter()
shared_functions: "list[NativeFunction]" = []
statics: "list[Static]" = []


class NativeFunction:
    """A Python function to be compiled to machine code.

    Attributes:
        python: the function as written.
        convention: LLVM's word for its calling convention, empty for C's.
        inline: expanded into its callers instead of called.
        exported: can be called from Python by `symbol`.
        shared: one copy in the whole engine, in the unit of its module, referred to by name from the other units.
        trap: in functions that can trap, the inline function that `trap(kind)` expands to, called with `kind` and then
            the outermost function's own parameters of the same names.
    """

    def __init__(
        self,
        python: Callable[..., Any],
        *,
        convention: str = "",
        inline: bool = False,
        exported: bool = False,
        cold: bool = False,
        noinline: bool = False,
        shared: bool = False,
        attributes: str = "",
        trap: "NativeFunction | None" = None,
    ) -> None:
        self.python, self.convention, self.inline, self.exported = python, convention, inline, exported
        self.cold, self.noinline, self.attributes, self.trap = cold, noinline, attributes, trap
        self.shared, self.module = shared, python.__module__ or ""
        self.code = python.__code__
        base = python.__qualname__.replace(".<locals>", "")
        base = f"{self.module.removeprefix('greenbeat.')}.{base}"
        _names[base] += 1
        self.symbol = python.__name__ if exported else f"{base}.{_names[base]}" if _names[base] > 1 else base
        self._signature: tuple[list[tuple[str, Type | None]], Type | None] | None = None
        self.__doc__ = python.__doc__
        if exported or shared:
            shared_functions.append(self)

    @property
    def environment(self) -> dict[str, Any]:
        """The names the function closes over, by value."""
        cells = self.python.__closure__ or ()
        found = {}
        for name, cell in zip(self.code.co_freevars, cells, strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:
                continue
        return found

    @property
    def signature(self) -> tuple[list[tuple[str, Type | None]], Type | None]:
        """Parameters with their types, and the result's; `None` where nothing is annotated."""
        if self._signature is None:
            annotations = self.python.__annotations__
            scope = {**self.python.__globals__, **self.environment}

            def resolve(annotation: Any) -> Type:
                value = eval(annotation, scope) if isinstance(annotation, str) else annotation
                return as_type(getattr(value, "native_type", value))

            names = self.code.co_varnames[: self.code.co_argcount]
            params = [(n, resolve(annotations[n]) if n in annotations else None) for n in names]
            returns = resolve(annotations["return"]) if "return" in annotations else None
            self._signature = params, returns
        return self._signature

    @property
    def type(self) -> FunctionType:
        """The type of a pointer to this function."""
        params, returns = self.signature
        missing = [n for n, t in params if t is None]
        if missing or returns is None:
            raise TypeError(f"{self.symbol} has no annotation for {', '.join(missing) or 'its result'}")
        return FunctionType(tuple(t for _, t in params if t is not None), returns, self.convention)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.symbol} is native code: build it, or call it from native code")

    def __repr__(self) -> str:
        return f"<native {self.symbol}>"


class ExternFunction:
    """A C function that the process already has: the C library's or CPython's."""

    def __init__(self, python: Callable[..., Any], *, variadic: bool = False, attributes: str = "") -> None:
        self.symbol = python.__name__
        self.variadic, self.attributes = variadic, attributes
        annotations = {
            n: eval(a, python.__globals__) if isinstance(a, str) else a for n, a in python.__annotations__.items()
        }
        if "return" not in annotations:
            raise TypeError(f"{self.symbol} needs the type of its result, as in `-> i32` or `-> None`")
        self.returns = as_type(annotations.pop("return"))
        self.params = [as_type(t) for t in annotations.values()]

    @property
    def type(self) -> FunctionType:
        """The type of a pointer to this function."""
        return FunctionType(tuple(self.params), self.returns)

    def __repr__(self) -> str:
        return f"<extern {self.symbol}>"


class Static:
    """A variable of native code that lives as long as the engine; in native code its name is a pointer to it."""

    def __init__(
        self, kind: Any, initial: Sequence[Any] | int | None = None, *, name: str = "", constant: bool = False
    ) -> None:
        self.type, self.initial, self.constant = as_type(kind), initial, constant
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__") == __name__ and frame.f_back is not None:
            frame = frame.f_back
        self.module = str(frame.f_globals.get("__name__", ""))
        base = f"{self.module.removeprefix('greenbeat.')}.{name or 'static'}"
        _names[base] += 1
        self.symbol = f"{base}.{_names[base]}" if not name or _names[base] > 1 else base
        statics.append(self)


if TYPE_CHECKING:
    # To a type checker, native functions return what they say and take anything: the native compiler knows better what
    # converts to what (texts to pointers, functions to addresses, compile-time values to anything).
    Result = TypeVar("Result")

    @overload
    def native(python: Callable[..., Result]) -> Callable[..., Result]: ...
    @overload
    def native(
        *,
        convention: str = "",
        cold: bool = False,
        noinline: bool = False,
        shared: bool = False,
        attributes: str = "",
        trap: Any = None,
    ) -> Callable[[Callable[..., Result]], Callable[..., Result]]: ...
    def native(python: Any = None, **options: Any) -> Any: ...
    def inline(python: Callable[..., Result]) -> Callable[..., Result]: ...
    def export(python: Callable[..., Result]) -> Callable[..., Result]: ...
    @overload
    def extern(python: Callable[..., Result]) -> Callable[..., Result]: ...
    @overload
    def extern(
        *, variadic: bool = False, attributes: str = ""
    ) -> Callable[[Callable[..., Result]], Callable[..., Result]]: ...
    def extern(python: Any = None, **options: Any) -> Any: ...

else:

    def native(python=None, **options):
        """Make a function native. Options: `convention` and `attributes` (LLVM's words), `cold`, `shared` ..."""
        return NativeFunction(python, **options) if python else lambda f: NativeFunction(f, **options)

    def inline(python):
        """Make a function that is expanded at each call; parameters without a type take whatever is passed."""
        return NativeFunction(python, inline=True)

    def export(python):
        """Make a native function that Python can call by its name."""
        return NativeFunction(python, exported=True)

    def extern(python=None, **options):
        """Declare a C function by a stub with annotations."""
        return ExternFunction(python, **options) if python else lambda f: ExternFunction(f, **options)


def static(kind: Any, initial: Any = None, *, name: str = "") -> Any:
    """A zeroed (or initialised) variable of the engine; a pointer to it in native code."""
    return Static(kind, initial, name=name)


def table(kind: Any, values: Iterable[Any], *, name: str = "table") -> Any:
    """A constant array of integers, floats or native functions; in native code a pointer to its first element."""
    from greenbeat.native.types import ArrayType

    items = list(values)
    return Static(ArrayType(as_type(kind), len(items)), items, name=name, constant=True)


class Operation:
    """An operation of native code that Python has no operator for; `fewest` and `most` count its arguments."""

    def __init__(self, python: Callable[..., Any]) -> None:
        self.name = python.__name__
        self.__doc__ = python.__doc__
        code = python.__code__
        names = code.co_varnames[: code.co_argcount]
        self.usage = f"{self.name}({', '.join(names)})"
        self.fewest = len(names) - len(python.__defaults__ or ())
        self.most = len(names) if not code.co_flags & CO_VARARGS else sys.maxsize

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.name}(...) means something in native code only")

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


def _operation(python: F) -> F:
    return Operation(python)  # type: ignore[return-value]


@_operation
def cast(kind: type[T] | Any, value: Any) -> Any:
    """Reinterpret a pointer as another pointer or integer, or an integer as a pointer."""


@_operation
def bitcast(kind: Any, value: Any) -> Any:
    """The same bits as another type of the same size."""


@_operation
def truncate_unchecked(kind: Any, value: float) -> Any:
    """Float to integer toward zero; the caller has checked that the result fits."""


@_operation
def load(kind: Any, pointer: Any, offset: int = 0) -> Any:
    """Load from any address, aligned or not: `pointer` plus `offset` bytes."""


@_operation
def store(pointer: Any, value: Any, offset: int = 0) -> None:
    """Store to any address, aligned or not: `pointer` plus `offset` bytes."""


@_operation
def volatile_load(pointer: Any) -> Any:
    """A load the optimiser neither moves nor merges."""


@_operation
def volatile_store(pointer: Any, value: Any) -> None:
    """A store the optimiser neither moves nor merges."""


@_operation
def atomic_load(pointer: Any, ordering: str) -> Any:
    """Atomic load; `ordering` is "relaxed", "acquire" or "seq_cst"."""


@_operation
def atomic_store(pointer: Any, value: Any, ordering: str) -> None:
    """Atomic store; `ordering` is "relaxed", "release" or "seq_cst"."""


@_operation
def atomic_update(operator: str, pointer: Any, value: Any, ordering: str) -> Any:
    """Atomic read-modify-write ("add", "sub", "and", "or", "xor", "xchg", "max", "min"); returns the old value."""


@_operation
def compare_exchange(pointer: Any, expected: Any, desired: Any, ordering: str) -> Any:
    """Store `desired` if the place holds `expected`; returns what it held."""


@_operation
def fence(ordering: str) -> None:
    """A memory fence."""


@_operation
def copy(destination: Any, source: Any, size: int) -> None:
    """Copy `size` bytes between places that do not overlap."""


@_operation
def move(destination: Any, source: Any, size: int) -> None:
    """Copy `size` bytes between places that may overlap."""


@_operation
def fill(destination: Any, byte: int, size: int) -> None:
    """Set `size` bytes."""


@_operation
def addressof(place: Any) -> Any:
    """Pointer to a field, an element, or what a function name names."""


@_operation
def stack(kind: Any, count: int = 1) -> Any:
    """Uninitialised room for `count` values in this function's own frame; `count` is a compile-time constant."""


@_operation
def count_leading_zeros(value: int) -> int:
    """Leading zero bits; the width for zero."""


@_operation
def count_trailing_zeros(value: int) -> int:
    """Trailing zero bits; the width for zero."""


@_operation
def population_count(value: int) -> int:
    """One bits."""


@_operation
def rotate_left(value: int, count: int) -> int:
    """Rotate by `count` modulo the width."""


@_operation
def rotate_right(value: int, count: int) -> int:
    """Rotate by `count` modulo the width."""


@_operation
def byteswap(value: int) -> int:
    """Reverse the order of bytes."""


@_operation
def divide_truncating(left: int, right: int) -> int:
    """Quotient rounded toward zero; `right` is not zero and the quotient fits. (`//` rounds down, as Python's.)"""


@_operation
def remainder_truncating(left: int, right: int) -> int:
    """Remainder with the sign of `left`; `right` is not zero. (`%` has the sign of `right`, as Python's.)"""


@_operation
def add_overflows(left: int, right: int) -> bool:
    """Whether the sum does not fit the type."""


@_operation
def subtract_overflows(left: int, right: int) -> bool:
    """Whether the difference does not fit the type."""


@_operation
def multiply_overflows(left: int, right: int) -> bool:
    """Whether the product does not fit the type."""


@_operation
def square_root(value: float) -> float:
    """IEEE square root."""


@_operation
def round_floor(value: float) -> float:
    """Round toward minus infinity."""


@_operation
def round_ceiling(value: float) -> float:
    """Round toward plus infinity."""


@_operation
def round_truncate(value: float) -> float:
    """Round toward zero."""


@_operation
def round_nearest(value: float) -> float:
    """Round to nearest, ties to even."""


@_operation
def absolute(value: float) -> float:
    """Clear the sign bit."""


@_operation
def copy_sign(value: float, sign: float) -> float:
    """`value` with the sign of `sign`."""


@_operation
def float_minimum(left: float, right: float) -> float:
    """IEEE 754-2019 minimum: NaN if either is, -0 below +0."""


@_operation
def float_maximum(left: float, right: float) -> float:
    """IEEE 754-2019 maximum: NaN if either is, +0 above -0."""


@_operation
def fused_multiply_add(left: float, right: float, addend: float) -> float:
    """Left * right + addend, rounded once."""


@_operation
def extract_lane(vector: Any, kind: Any, lane: int) -> Any:
    """One lane of a v128, seen as lanes of `kind`."""


@_operation
def insert_lane(vector: Any, value: Any, lane: int) -> Any:
    """The v128 with one lane replaced; lanes have the type of `value`."""


@_operation
def vector_of(value: Any) -> Any:
    """A v128 whose first lane is `value`; the others are unspecified."""


@_operation
def likely(condition: bool) -> bool:
    """The condition, expected true: the other way is laid out of the path."""


@_operation
def unlikely(condition: bool) -> bool:
    """The condition, expected false."""


@_operation
def tail(call: T) -> T:
    """Leave this function by a guaranteed tail call; both have the same convention."""


@_operation
def trap(kind: int) -> None:
    """Stop the guest: expands to what the function around it gave as its `trap`. Ends the path."""


@_operation
def unreachable() -> None:
    """This point is never reached; undefined behaviour if it is."""


@_operation
def select(condition: bool, left: T, right: T) -> T:
    """`left` if `condition` else `right`, both computed: a conditional move, no branch."""


@_operation
def unroll(items: Iterable[T]) -> Iterable[T]:
    """`for x in unroll(items)`: the body once per compile-time item."""


@_operation
def parameters_of_caller() -> Any:
    """In an inline function: the outermost function's parameters, in order, to be passed on with `*`."""


@_operation
def sizeof_value(place: Any) -> int:
    """Size in bytes of what a pointer points to."""


@_operation
def inline_assembly(text: str, constraints: str, result: Any, *operands: Any) -> Any:
    """Machine instructions with LLVM's constraints; for what no other operation can say.

    `result` is a type, None, or a tuple of types: then the first is the result, the others only end up changed.
    """


@_operation
def frame_address() -> Any:
    """Pointer to this function's native frame."""


@_operation
def return_address_place() -> Any:
    """Pointer to where this function's return address is: what the native stack pointer was on entry."""
