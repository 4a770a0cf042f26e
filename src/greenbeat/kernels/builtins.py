"""Python's builtins and the `math` module in kernels.

The functions of `math` are those of the C library that Python's own module calls, with Python's errors.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from greenbeat.kernels import support
from greenbeat.kernels.intrinsics import Compiler, intrinsic, register
from greenbeat.kernels.values import ArrayValue
from greenbeat.native import types as t
from greenbeat.native.values import Value

if TYPE_CHECKING:
    from greenbeat.kernels.emitter import KernelEmitter

DOMAIN, RANGE = "math domain error", "math range error"
# Functions of the C library, with whether their infinite results are overflows; else they are domain errors.
UNARY: dict[Callable[..., Any], bool] = {
    math.acos: False, math.acosh: False, math.asin: False, math.asinh: False, math.atan: False, math.atanh: False,
    math.cos: False, math.cosh: True, math.erf: False, math.erfc: False, math.exp: True, math.expm1: True,
    math.log: False, math.log10: False, math.log1p: False, math.log2: False, math.sin: False, math.sinh: True,
    math.sqrt: False, math.tan: False, math.tanh: False,
}  # fmt: skip
for _name, _overflows in (("exp2", True), ("cbrt", False)):
    if hasattr(math, _name):
        UNARY[getattr(math, _name)] = _overflows
# Those that give every finite float a finite result need no checks but of infinities.
DECLARED: dict[str, Any] = {"fmod": support.fmod, "pow": support.pow}
NEVER_FAILS = {math.asinh, math.atan, math.erf, math.erfc, math.tanh}


def library(emitter: KernelEmitter, name: str, *arguments: Value) -> Value:
    """Call a function of the C library on floats."""
    if name in DECLARED:
        return emitter.call_support(DECLARED[name], t.F64, *arguments)
    operands = ", ".join(f"double {argument.ir}" for argument in arguments)
    emitter.unit.declare(f"declare double @{name}({', '.join(['double'] * len(arguments))}) nobuiltin memory(none)")
    return emitter.temporary(f"call double @{name}({operands})", t.F64)


def llvm_function(emitter: KernelEmitter, name: str, *arguments: Value) -> Value:
    """Call an operation of the machine on floats."""
    operands = ", ".join(f"double {argument.ir}" for argument in arguments)
    emitter.unit.declare(f"declare double @llvm.{name}.f64({', '.join(['double'] * len(arguments))})")
    return emitter.temporary(f"call double @llvm.{name}.f64({operands})", t.F64)


def real(emitter: KernelEmitter, value: Any, node: ast.AST) -> Value:
    """An argument as a float."""
    return emitter.promoted(value, t.F64, node)


def _unary(python: Any, overflows: bool) -> None:
    def compile(emitter: KernelEmitter, node: ast.Call, value: Any) -> Value:
        argument = real(emitter, value, node)
        if python is math.sqrt:
            negative = emitter.temporary(f"fcmp olt double {argument.ir}, 0.0", t.BOOL)
            emitter.fail_if(negative, "ValueError", DOMAIN, node)
            return llvm_function(emitter, "sqrt", argument)
        if python in (math.log, math.log2, math.log10):
            low = emitter.temporary(f"fcmp ole double {argument.ir}, 0.0", t.BOOL)
            emitter.fail_if(low, "ValueError", DOMAIN, node)
            return library(emitter, python.__name__, argument)
        result = library(emitter, python.__name__, argument)
        if python in NEVER_FAILS:
            return result
        after = emitter.label("after")
        emitter.ask_further(emitter.float_class(result, 0x207), after)
        # What is not a number comes from something that is one, or what is infinite from something finite.
        undefined = emitter.is_nan(result)
        defined = emitter.float_class(argument, 0x3FC)
        wrong = emitter.temporary(f"and i1 {undefined.ir}, {defined.ir}", t.BOOL)
        emitter.fail_if(wrong, "ValueError", DOMAIN, node)
        emitter.ask_further(emitter.float_class(argument, 0x1F8), after)
        emitter.fail("OverflowError" if overflows else "ValueError", RANGE if overflows else DOMAIN, node)
        emitter.start(after)
        return result

    register(python, compile, f"math.{python.__name__}(x)", 1, 1)


for _function, _overflows in UNARY.items():
    if _function is not math.log:
        _unary(_function, _overflows)


@intrinsic(math.log, "math.log(x, base)")
def logarithm(emitter: KernelEmitter, node: ast.Call, value: Any, base: Any = None) -> Any:
    """`math.log`, with Python's quotient for another base."""

    def natural(number: Any) -> Value:
        argument = real(emitter, number, node)
        low = emitter.temporary(f"fcmp ole double {argument.ir}, 0.0", t.BOOL)
        emitter.fail_if(low, "ValueError", DOMAIN, node)
        return library(emitter, "log", argument)

    if base is None:
        return natural(value)
    numerator = natural(value)
    return emitter.binary(ast.Div(), numerator, natural(base), node)


def _checked_pair(name: str) -> Compiler:
    """A function of two floats, whose result is checked as that of one float is."""

    def compile(emitter: KernelEmitter, node: ast.Call, first: Any, second: Any) -> Value:
        a, b = real(emitter, first, node), real(emitter, second, node)
        result = library(emitter, name, a, b)
        after = emitter.label("after")
        emitter.ask_further(emitter.float_class(result, 0x207), after)
        undefined = emitter.is_nan(result)
        numbers = [emitter.float_class(x, 0x3FC) for x in (a, b)]
        both = emitter.temporary(f"and i1 {numbers[0].ir}, {numbers[1].ir}", t.BOOL)
        wrong = emitter.temporary(f"and i1 {undefined.ir}, {both.ir}", t.BOOL)
        emitter.fail_if(wrong, "ValueError", DOMAIN, node)
        for x in (a, b):
            emitter.ask_further(emitter.float_class(x, 0x1F8), after)
        if name == "pow":
            zero = emitter.temporary(f"fcmp oeq double {a.ir}, 0.0", t.BOOL)
            emitter.fail_if(zero, "ValueError", DOMAIN, node)
        emitter.fail("OverflowError", RANGE, node)
        emitter.start(after)
        return result

    return compile


for _python in (math.pow, math.fmod, math.hypot):
    register(_python, _checked_pair(_python.__name__), f"math.{_python.__name__}(x, y)", 2, 2)


@intrinsic(math.atan2, "math.atan2(y, x)")
def atan2(emitter: KernelEmitter, node: ast.Call, y: Any, x: Any) -> Value:
    """`math.atan2`: the C library's is Python's."""
    return library(emitter, "atan2", real(emitter, y, node), real(emitter, x, node))


@intrinsic(math.copysign, "math.copysign(x, y)")
def copysign(emitter: KernelEmitter, node: ast.Call, x: Any, y: Any) -> Value:
    """`math.copysign`."""
    return llvm_function(emitter, "copysign", real(emitter, x, node), real(emitter, y, node))


@intrinsic(math.fabs, "math.fabs(x)")
def fabs(emitter: KernelEmitter, node: ast.Call, x: Any) -> Value:
    """`math.fabs`."""
    return llvm_function(emitter, "fabs", real(emitter, x, node))


@intrinsic(math.degrees, "math.degrees(x)")
def degrees(emitter: KernelEmitter, node: ast.Call, x: Any) -> Any:
    """`math.degrees`."""
    return emitter.binary(ast.Mult(), real(emitter, x, node), 180.0 / math.pi, node)


@intrinsic(math.radians, "math.radians(x)")
def radians(emitter: KernelEmitter, node: ast.Call, x: Any) -> Any:
    """`math.radians`."""
    return emitter.binary(ast.Mult(), real(emitter, x, node), math.pi / 180.0, node)


@intrinsic(math.isnan, "math.isnan(x)")
def isnan(emitter: KernelEmitter, node: ast.Call, x: Any) -> Any:
    """`math.isnan`."""
    return emitter.is_nan(real(emitter, x, node))


@intrinsic(math.isinf, "math.isinf(x)")
def isinf(emitter: KernelEmitter, node: ast.Call, x: Any) -> Any:
    """`math.isinf`."""
    return emitter.is_infinite(real(emitter, x, node))


@intrinsic(math.isfinite, "math.isfinite(x)")
def isfinite(emitter: KernelEmitter, node: ast.Call, x: Any) -> Any:
    """`math.isfinite`."""
    return emitter.float_class(real(emitter, x, node), 0x1F8)


def _rounding(python: Any, name: str) -> None:
    def compile(emitter: KernelEmitter, node: ast.Call, value: Any) -> Any:
        number = emitter.number(value, node)
        if number.type != t.F64:
            return emitter.to_integer(value, node)
        return emitter.float_to_integer(llvm_function(emitter, name, number), node)

    register(python, compile, f"{python.__name__}(x)", 1, 1)


_ROUNDING: dict[Any, str] = {math.floor: "floor", math.ceil: "ceil", math.trunc: "trunc", round: "roundeven"}
for _rounds, _name in _ROUNDING.items():
    _rounding(_rounds, _name)


def whole_number(emitter: KernelEmitter, value: Any, node: ast.AST) -> Value:
    """An argument that must be an integer."""
    number = emitter.number(value, node)
    if number.type == t.F64:
        emitter.error("an integer is needed here, not f64", node)
    return emitter.promoted(value, t.I64, node) if number.type == t.BOOL else number


@intrinsic(math.gcd, "math.gcd(a, b)")
def gcd(emitter: KernelEmitter, node: ast.Call, a: Any, b: Any) -> Value:
    """`math.gcd` of two."""
    kind = emitter.common([a, b], node)
    left, right = (absolute(emitter, node, emitter.promoted(x, t.I64, node) if kind != t.U64 else x) for x in (a, b))
    found = emitter.call_support(support.greatest_divisor, t.U64, *(emitter.number(x, node) for x in (left, right)))
    return Value(found.ir, t.U64 if kind == t.U64 else t.I64)


@intrinsic(math.isqrt, "math.isqrt(n)")
def isqrt(emitter: KernelEmitter, node: ast.Call, n: Any) -> Value:
    """`math.isqrt`."""
    number = whole_number(emitter, n, node)
    if number.type == t.I64:
        negative = emitter.temporary(f"icmp slt i64 {number.ir}, 0", t.BOOL)
        emitter.fail_if(negative, "ValueError", "isqrt() argument must be nonnegative", node)
    return Value(emitter.call_support(support.integer_root, t.U64, number).ir, number.type)


# ---------------------------------------------------------------- builtins


@intrinsic(abs, "abs(x)")
def absolute(emitter: KernelEmitter, node: ast.Call, x: Any) -> Any:
    """`abs`."""
    if isinstance(x, bool | int | float):
        return abs(x)
    number = emitter.number(x, node)
    if number.type == t.F64:
        return llvm_function(emitter, "fabs", number)
    if number.type == t.U64:
        return number
    number = emitter.promoted(number, t.I64, node)
    emitter.unit.declare("declare i64 @llvm.abs.i64(i64, i1)")
    return emitter.temporary(f"call i64 @llvm.abs.i64(i64 {number.ir}, i1 false)", t.I64)


def _best(python: Any) -> None:
    def compile(emitter: KernelEmitter, node: ast.Call, *values: Any) -> Any:
        items = list(values[0]) if len(values) == 1 and isinstance(values[0], tuple) else list(values)
        if len(items) == 0 or (len(values) == 1 and not isinstance(values[0], tuple)):
            emitter.error(f"{python.__name__} takes several numbers, or a tuple of them", node)
        for item in items:
            emitter.number(item, node)
        return emitter.chosen(items, python.__name__, node)

    register(python, compile, f"{python.__name__}(a, b, ...)", 1, 100)


_best(min)
_best(max)


@intrinsic(len, "len(a)")
def length(emitter: KernelEmitter, node: ast.Call, a: Any) -> Any:
    """`len` of an array or a tuple."""
    return emitter.length(a, node)


@intrinsic(divmod, "divmod(a, b)")
def both_divisions(emitter: KernelEmitter, node: ast.Call, a: Any, b: Any) -> tuple[Any, Any]:
    """`divmod`."""
    return emitter.binary(ast.FloorDiv(), a, b, node), emitter.binary(ast.Mod(), a, b, node)


@intrinsic(pow, "pow(a, b)")
def power(emitter: KernelEmitter, node: ast.Call, a: Any, b: Any) -> Any:
    """`pow` with two arguments: `**`."""
    return emitter.binary(ast.Pow(), a, b, node)


@intrinsic(sum, "sum(a)")
def total(emitter: KernelEmitter, node: ast.Call, a: Any) -> Any:
    """`sum` of a tuple."""
    if not isinstance(a, tuple):
        wish = ": add up an array in a loop" if isinstance(a, ArrayValue) else ""
        emitter.error(f"sum takes a tuple, not {emitter.describe(a)}{wish}", node)
    result: Any = 0
    for item in a:
        result = emitter.binary(ast.Add(), result, item, node)
    return result


@intrinsic(int, "int(x)")
def to_int(emitter: KernelEmitter, node: ast.Call, x: Any = 0) -> Any:
    """`int`."""
    return emitter.to_integer(x, node)


@intrinsic(float, "float(x)")
def to_float(emitter: KernelEmitter, node: ast.Call, x: Any = 0.0) -> Any:
    """`float`, of a number; `float("inf")` and its like of a text that is known."""
    if isinstance(x, str):
        try:
            return float(x)
        except ValueError as problem:
            emitter.error(str(problem), node)
    return emitter.promoted(x, t.F64, node)


@intrinsic(bool, "bool(x)")
def to_bool(emitter: KernelEmitter, node: ast.Call, x: Any = False) -> Any:
    """`bool`."""
    return emitter.truth(x, node)
