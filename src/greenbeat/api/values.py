"""Value types as users write them, and as they are told in messages.

A type can be written as `gb.i32`, `gb.i64`, `gb.f32`, `gb.f64`, as a name of the text format ("externref"), or as a
Python type: `int` is i32, `float` is f64, `object` is externref and `gb.Function` is funcref.
"""

import typing
from collections.abc import Callable, Iterable
from typing import Any

from greenbeat.api.bridge import native, native_types
from greenbeat.api.checks import described, shown
from greenbeat.wasm import valuetypes
from greenbeat.wasm.description import FunctionType, ValueType

_function_class = native_types()[0]

BY_NAME = {
    "i32": valuetypes.I32,
    "i64": valuetypes.I64,
    "f32": valuetypes.F32,
    "f64": valuetypes.F64,
    "v128": valuetypes.V128,
    "funcref": valuetypes.FUNCREF,
    "externref": valuetypes.EXTERNREF,
}
_BY_CLASS = {
    bool: valuetypes.I32,
    int: valuetypes.I32,
    float: valuetypes.F64,
    object: valuetypes.EXTERNREF,
    typing.Any: valuetypes.EXTERNREF,
    _function_class: valuetypes.FUNCREF,
}
_BITS = {valuetypes.I32: 32, valuetypes.I64: 64}


def value_type(written: Any) -> ValueType:
    """The value type that a user wrote.

    Raises:
        TypeError: it stands for none.
    """
    if isinstance(written, ValueType):
        return written
    name = written if isinstance(written, str) else getattr(written, "name", None)
    if isinstance(name, str) and name in BY_NAME:
        return ValueType(BY_NAME[name])
    try:
        if written in _BY_CLASS:
            return ValueType(_BY_CLASS[written])
    except TypeError:
        pass
    raise TypeError(
        f"{shown(written)} is no value type: write gb.i32, gb.i64, gb.f32, gb.f64, 'externref' or 'funcref'"
    )


def is_reference(kind: int) -> bool:
    """Whether values of a type are references."""
    return kind >= valuetypes.REFERENCE


def passes_references(kind: FunctionType) -> bool:
    """Whether references can flow through a function of this type."""
    return any(map(is_reference, (*kind.params, *kind.results)))


def is_subtype(found: int, wanted: int) -> bool:
    """Subtyping, as `valuetypes.matches`."""
    if found == wanted:
        return True
    if not is_reference(found) or not is_reference(wanted):
        return False
    if found & valuetypes.NULLABLE and not wanted & valuetypes.NULLABLE:
        return False
    heap = valuetypes.ABSTRACT | valuetypes.HEAP_MASK
    if found & heap == wanted & heap:
        return True
    return not found & valuetypes.ABSTRACT and wanted & heap == valuetypes.ABSTRACT | valuetypes.FUNC


def python_type(kind: int) -> Any:
    """What a value of the type is in Python."""
    if kind in _BITS:
        return int
    if not is_reference(kind):
        return bytes if kind == valuetypes.V128 else float
    return (
        object if kind & valuetypes.HEAP_MASK == valuetypes.EXTERN and kind & valuetypes.ABSTRACT else _function_class
    )


def mismatch(what: str, kind: int, value: object, cause: BaseException | None = None) -> BaseException:
    """The error for a value that does not fit a type; `what` says where it was given.

    An exception that the value's own conversion raised is returned as it is.
    """
    name = valuetypes.name_of(kind)
    if kind in _BITS:
        if isinstance(cause, OverflowError) or (cause is None and hasattr(type(value), "__index__")):
            bits = _BITS[kind]
            low, high = -(1 << (bits - 1)), (1 << bits) - 1
            return ValueError(f"{what}: {shown(value)} is out of range for {name} ({low} to {high})")
        if cause is not None and hasattr(type(value), "__index__"):
            return cause
        wanted = "an int"
    elif not is_reference(kind):
        if cause is not None and hasattr(type(value), "__float__") and not isinstance(cause, OverflowError):
            return cause
        if isinstance(cause, OverflowError):
            return ValueError(f"{what}: {shown(value)} is out of range for {name}")
        wanted = "a float"
        if kind == valuetypes.V128:
            return TypeError(f"{what}: v128 values cannot be passed between Python and a guest")
    elif cause is not None:
        return cause
    else:
        nullable = " or None" if kind & valuetypes.NULLABLE else ""
        concrete = python_type(kind) is _function_class
        wanted = f"a greenbeat.Function of this type{nullable}" if concrete else "an object other than None"
        if name == "funcref":
            wanted = f"a greenbeat.Function{nullable}"
    return TypeError(f"{what} must be {wanted} ({name}), not {described(value)}")


def write(kind: int, value: object, address: int, group: Any, what: str) -> None:
    """Put a value into a slot that belongs to a group.

    Raises:
        TypeError, ValueError: it does not fit; the message begins with `what`.
    """
    try:
        fits = native.write_value(kind, value, address, group)
    except (TypeError, OverflowError) as cause:
        raise mismatch(what, kind, value, cause) from None
    if not fits:
        raise mismatch(what, kind, value)


def inferred_type(callable: Callable[..., Any]) -> FunctionType:
    """The function type that a callable's annotations say.

    Raises:
        TypeError: a parameter or the result has no annotation, or one that is no value type.
    """
    import inspect  # here, since it is large and most hosts give types

    name = getattr(callable, "__name__", repr(callable))
    try:
        signature = inspect.signature(callable, eval_str=True)
    except ValueError:
        raise TypeError(f"{name} has no signature to infer a type from: give params and results") from None
    params = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(
                f"{name}: parameter {parameter.name!r} cannot be passed by a guest: give params and results"
            )
        if parameter.annotation is parameter.empty:
            raise TypeError(f"{name}: parameter {parameter.name!r} has no annotation: give params and results")
        params.append(value_type(parameter.annotation))
    if signature.return_annotation is signature.empty:
        raise TypeError(f"{name}: the result has no annotation: give params and results")
    return FunctionType(tuple(params), _result_types(signature.return_annotation))


def _result_types(annotation: Any) -> tuple[ValueType, ...]:
    if annotation is None or annotation is type(None):
        return ()
    if typing.get_origin(annotation) is tuple:
        return types_of(typing.get_args(annotation))
    return (value_type(annotation),)


def types_of(written: Iterable[Any]) -> tuple[ValueType, ...]:
    """Several value types.

    Raises:
        TypeError: it is no sequence of types.
    """
    if isinstance(written, str) or not isinstance(written, Iterable):
        raise TypeError(f"params and results are sequences of value types, such as ['i32'], not {described(written)}")
    return tuple(map(value_type, written))


def short(kind: FunctionType) -> str:
    """A function type as `(i32, i32) -> i32`."""
    results = ", ".join(map(str, kind.results))
    if len(kind.results) != 1:
        results = f"({results})"
    return f"({', '.join(map(str, kind.params))}) -> {results}"
