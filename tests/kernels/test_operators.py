"""Every operator beside Python's, on numbers of every kind."""

import math
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, example, given, settings, strategies as st

from tests.kernels.making import binary, kernel, same, unary

EDGES = [0, 1, -1, 2, -2, 7, -7, 63, 64, 1 << 31, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, (1 << 62) + 1]
EDGES += [(1 << 63) - 1, -(1 << 63), -(1 << 63) + 1, -(1 << 53) - 1]
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, 3.0, -7.25, 1e300, -1e300, 5e-324, 2.0**53, 2.0**63, -(2.0**63)]
FLOATS += [math.inf, -math.inf, math.nan, 9.3e18]
integers = st.sampled_from(EDGES) | st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-100, 100)
unsigned = st.sampled_from([0, 1, 2, 63, 64, 1 << 53, (1 << 53) + 1, (1 << 63), (1 << 64) - 1]) | st.integers(
    0, (1 << 64) - 1
)
floats = st.sampled_from(FLOATS) | st.floats()
made = cache(binary)
made_unary = cache(unary)


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^"])
@given(a=integers, b=integers)
def test_integers(op: str, a: int, b: int) -> None:
    same(made(f"a {op} b", "int", "int", "int"), a, b)


@given(a=integers, b=integers)
def test_true_division(a: int, b: int) -> None:
    same(made("a / b", "int", "int", "float"), a, b)


@given(a=unsigned, b=unsigned)
def test_true_division_unsigned(a: int, b: int) -> None:
    same(made("a / b", "gb.u64", "gb.u64", "float"), a, b)


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^"])
@given(a=unsigned, b=unsigned)
def test_unsigned(op: str, a: int, b: int) -> None:
    same(made(f"a {op} b", "gb.u64", "gb.u64", "gb.u64"), a, b, unsigned=True)


@pytest.mark.parametrize("op", ["<<", ">>"])
@given(a=integers, b=st.integers(-3, 200))
def test_shifts(op: str, a: int, b: int) -> None:
    same(made(f"a {op} b", "int", "int", "int"), a, b)


@pytest.mark.parametrize("op", ["<<", ">>"])
@given(a=unsigned, b=st.integers(0, 200))
def test_shifts_unsigned(op: str, a: int, b: int) -> None:
    same(made(f"a {op} b", "gb.u64", "gb.u64", "gb.u64"), a, b, unsigned=True)


@pytest.mark.parametrize("count", [-1, 0, 1, 63, 64, 100])
@pytest.mark.parametrize("op", ["<<", ">>"])
@pytest.mark.parametrize("value", [5, -5, -(1 << 63)])
def test_constant_shifts(op: str, count: int, value: int) -> None:
    same(unary(f"a {op} {count}", "int", "int"), value)


@pytest.mark.parametrize("op", ["//", "%"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 1 << 40, -1, -2, -3, 0])
def test_constant_divisors(op: str, divisor: int) -> None:
    f = unary(f"a {op} {divisor}", "int", "int")
    for value in EDGES:
        same(f, value)


@given(a=integers, b=st.integers(0, 70))
def test_integer_powers(a: int, b: int) -> None:
    same(made("a ** b", "int", "int", "int"), a, b)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 5, 9])
def test_constant_powers(exponent: int) -> None:
    f, g = unary(f"a ** {exponent}", "int", "int"), unary(f"a ** {exponent}", "float", "float")
    for a in EDGES:
        same(f, a)
    for x in FLOATS:
        same(g, x)


def test_negative_constant_powers_are_floats() -> None:
    f = unary("a ** -2", "int", "float")
    for a in EDGES:
        same(f, a)


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%"])
@given(a=floats, b=floats)
def test_floats(op: str, a: float, b: float) -> None:
    same(made(f"a {op} b", "float", "float", "float"), a, b)


@given(a=floats, b=floats)
@example(a=0.0, b=-math.inf)
@example(a=-0.0, b=-math.inf)
@example(a=0.0, b=-1e308)
def test_float_powers(a: float, b: float) -> None:
    if a < 0 and math.isfinite(a) and math.isfinite(b) and b != int(b):
        with pytest.raises(ValueError, match="complex"):
            made("a ** b", "float", "float", "float")(a, b)
    else:
        same(made("a ** b", "float", "float", "float"), a, b)


@given(x=st.floats(-1e6, 1e6))
@settings(max_examples=1000)
def test_squares_are_pythons(x: float) -> None:
    same(made_unary("a ** 2", "float", "float"), x)


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "//", "%"])
@given(a=integers, b=floats)
def test_mixed(op: str, a: int, b: float) -> None:
    same(made(f"a {op} b", "int", "float", "float"), a, b)
    same(made(f"b {op} a", "int", "float", "float"), a, b)


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "**"])
@given(a=st.booleans(), b=st.integers(-5, 40))
def test_bools_are_numbers(op: str, a: bool, b: int) -> None:
    assume(op != "**" or b >= 0)
    same(made(f"a {op} b", "bool", "int", "int"), a, b)


@pytest.mark.parametrize("op", ["&", "|", "^"])
@given(a=st.booleans(), b=st.booleans())
def test_bools(op: str, a: bool, b: bool) -> None:
    same(made(f"a {op} b", "bool", "bool", "bool"), a, b)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
@given(data=st.data())
def test_comparisons(op: str, data: Any) -> None:
    kinds = {"int": integers, "float": floats, "gb.u64": unsigned, "bool": st.booleans()}
    left, right = data.draw(st.sampled_from(list(kinds))), data.draw(st.sampled_from(list(kinds)))
    a, b = data.draw(kinds[left]), data.draw(kinds[right])
    if isinstance(a, int) and isinstance(b, float) and math.isfinite(b) and data.draw(st.booleans()):
        b = float(a)
    if isinstance(b, int) and isinstance(a, float) and math.isfinite(a) and data.draw(st.booleans()):
        a = float(b)
    same(made(f"a {op} b", left, right, "bool"), a, b)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("constant", ["0", "1.0", "0.5", "9007199254740993", "2.0**63", "1e30", "float('nan')", "-3.0"])
def test_comparisons_with_constants(op: str, constant: str) -> None:
    f, g = unary(f"a {op} {constant}", "int", "bool"), unary(f"{constant} {op} a", "float", "bool")
    for a in EDGES:
        same(f, a)
    for x in FLOATS:
        same(g, x)


@given(a=integers, b=integers, x=floats)
def test_chained_comparisons(a: int, b: int, x: float) -> None:
    f = kernel_of("def f(a: int, b: int, x: float) -> bool:\n    return 0 <= a < b != x < 100")
    same(f, a, b, x)


@cache
def kernel_of(text: str) -> Any:
    return kernel(f"@gb.kernel\n{text}\n")


@pytest.mark.parametrize("op", ["-", "+", "~", "abs "])
@given(a=integers)
def test_one_integer(op: str, a: int) -> None:
    same(made_unary(f"{op}(a)", "int", "int"), a)


@pytest.mark.parametrize("op", ["-", "+", "abs "])
@given(a=floats)
def test_one_float(op: str, a: float) -> None:
    same(made_unary(f"{op}(a)", "float", "float"), a)


@pytest.mark.parametrize("op", ["-", "+", "~", "abs "])
def test_one_bool(op: str) -> None:
    for a in (False, True):
        same(made_unary(f"{op}(a)", "bool", "int"), a)


@pytest.mark.parametrize("name", ["int", "round", "math.floor", "math.ceil", "math.trunc"])
@given(x=floats)
def test_floats_to_integers(name: str, x: float) -> None:
    f = made_unary(f"{name}(a)", "float", "int")
    if math.isfinite(x) and not -(2.0**63) <= x < 2.0**63:
        with pytest.raises(OverflowError, match="too large"):
            f(x)
    else:
        same(f, x)


@given(a=integers, b=floats, c=st.booleans())
def test_conversions(a: int, b: float, c: bool) -> None:
    f = kernel_of(
        "def f(a: int, b: float, c: bool) -> tuple[float, bool, bool, bool, int, float]:\n"
        "    return float(a), bool(a), bool(b), not a, int(c), float(c)"
    )
    same(f, a, b, c)


@given(a=integers, b=integers, x=floats, c=st.booleans())
def test_and_or_not(a: int, b: int, x: float, c: bool) -> None:
    f = kernel_of(
        "def f(a: int, b: int, x: float, c: bool) -> tuple[int, int, bool, bool, float]:\n"
        "    return a and b, a or b, c and a < b, not (c or x), float(a and x or b)"
    )
    same(f, a, b, x, c)


@given(a=integers, b=integers, x=floats)
def test_least_and_greatest(a: int, b: int, x: float) -> None:
    f = kernel_of(
        "def f(a: int, b: int, x: float) -> tuple[int, int, float, float]:\n"
        "    return min(a, b), max(a, b, 3), float(min(a, x)), float(max((x, 0.5, b)))"
    )
    same(f, a, b, x)


@given(a=integers, b=integers)
def test_divmod(a: int, b: int) -> None:
    same(made("divmod(a, b)", "int", "int", "tuple[int, int]"), a, b)


@given(a=floats, b=floats)
def test_divmod_of_floats(a: float, b: float) -> None:
    same(made("divmod(a, b)", "float", "float", "tuple[float, float]"), a, b)


@given(a=st.integers(-300, 300) | integers)
def test_narrow_conversions_wrap(a: int) -> None:
    for kind in ("i8", "i16", "i32", "i64", "u8", "u16", "u32"):
        same(made_unary(f"gb.{kind}(a)", "int", "int"), a)
    same(made_unary("gb.u64(a)", "int", "gb.u64"), a, unsigned=True)


@given(a=integers)
@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "u8", "u16", "u32"])
def test_narrow_results_are_checked(kind: str, a: int) -> None:
    bits, signed = int(kind[1:]), kind[0] == "i"
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    f = made_unary("a", "int", f"gb.{kind}")
    g = made_unary("a", f"gb.{kind}", "int")
    if low <= a < high:
        assert f(a) == g(a) == a
    else:
        with pytest.raises(OverflowError, match=f"does not fit {kind}"):
            f(a)
        with pytest.raises(OverflowError, match=f"does not fit {kind}"):
            g(a)


@given(x=floats)
def test_f32_rounds_at_the_border(x: float) -> None:
    import numpy

    with numpy.errstate(all="ignore"):
        rounded = float(numpy.float32(x))
    for f in (made_unary("a", "gb.f32", "float"), made_unary("a", "float", "gb.f32")):
        assert repr(f(x)) == repr(rounded)


@given(a=integers)
def test_membership(a: int) -> None:
    same(made_unary("a in (1, 2.0, 7) or a not in (3, -1)", "int", "bool"), a)
