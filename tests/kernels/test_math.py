"""The functions of `math` beside Python's own, errors and all."""

import math
from functools import cache

import pytest
from hypothesis import given, strategies as st

from tests.kernels.making import binary, kernel, same, unary

UNARY = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "degrees", "erf", "erfc", "exp", "expm1"]
UNARY += ["fabs", "log", "log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh"]
UNARY += [name for name in ("exp2", "cbrt") if hasattr(math, name)]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.5, 1e-300, 1e300, -1e300, 709.0, 710.0, 1000.0, -1000.0, 1e22]
FLOATS += [math.inf, -math.inf, math.nan]
floats = st.sampled_from(FLOATS) | st.floats()
made = cache(unary)
made_of_two = cache(binary)


@pytest.mark.parametrize("name", UNARY)
@given(x=floats)
def test_of_one(name: str, x: float) -> None:
    same(made(f"math.{name}(a)", "float", "float"), x)


@pytest.mark.parametrize("name", ["atan2", "copysign", "fmod", "pow", "log"])
@given(x=floats, y=floats)
def test_of_two(name: str, x: float, y: float) -> None:
    same(made_of_two(f"math.{name}(a, b)", "float", "float", "float"), x, y)


@given(x=floats, y=floats)
def test_hypot_to_the_last_bit_or_so(x: float, y: float) -> None:
    expected = math.hypot(x, y)
    if math.isinf(expected) and math.isfinite(x) and math.isfinite(y):
        return
    found = made_of_two("math.hypot(a, b)", "float", "float", "float")(x, y)
    assert found == pytest.approx(expected, rel=1e-15, abs=1e-323) or repr(found) == repr(expected)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_classes(name: str) -> None:
    for x in FLOATS:
        same(made(f"math.{name}(a)", "float", "bool"), x)


@given(a=st.integers(-(1 << 62), 1 << 62), b=st.integers(-1000, 1000))
def test_of_integers(a: int, b: int) -> None:
    same(made_of_two("math.gcd(a, b)", "int", "int", "int"), a, b)
    same(made("math.isqrt(a)", "int", "int"), a)
    same(made("math.sqrt(a)", "int", "float"), a)
    same(made("math.floor(a)", "int", "int"), a)


def test_names_that_are_imported() -> None:
    f = kernel(
        "from math import sqrt, pi as circle\n"
        "@gb.kernel\ndef f(x: float) -> float:\n    return sqrt(x) * circle * math.tau\n"
    )
    same(f, 2.0)


def test_messages_are_pythons() -> None:
    with pytest.raises(ValueError, match="math domain error"):
        made("math.sqrt(a)", "float", "float")(-1.0)
    with pytest.raises(OverflowError, match="math range error"):
        made("math.exp(a)", "float", "float")(1000.0)
    with pytest.raises(OverflowError) as raised:
        made("a ** 2", "float", "float")(1e200)
    assert raised.value.args == (34, "Numerical result out of range")
