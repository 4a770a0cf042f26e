"""Every operator of every number type, against Python's integers and numpy's floats."""

import math
from typing import Any

import numpy
import pytest
from hypothesis import assume, given, settings, strategies as st

from greenbeat.native import (
    absolute,
    add_overflows,
    build,
    byteswap,
    copy_sign,
    count_leading_zeros,
    count_trailing_zeros,
    divide_truncating,
    f32,
    f64,
    float_maximum,
    float_minimum,
    fused_multiply_add,
    i8,
    i16,
    i32,
    i64,
    multiply_overflows,
    native,
    population_count,
    remainder_truncating,
    rotate_left,
    rotate_right,
    round_ceiling,
    round_floor,
    round_nearest,
    round_truncate,
    square_root,
    subtract_overflows,
    u8,
    u16,
    u32,
    u64,
)

INTEGERS: list[Any] = [i8, i16, i32, i64, u8, u16, u32, u64]
FLOATS: list[Any] = [f32, f64]


def integer_functions(kind: Any) -> dict[str, Any]:
    @native
    def add(a: kind, b: kind) -> kind:
        return a + b

    @native
    def subtract(a: kind, b: kind) -> kind:
        return a - b

    @native
    def multiply(a: kind, b: kind) -> kind:
        return a * b

    @native
    def floor_divide(a: kind, b: kind) -> kind:
        return a // b

    @native
    def floor_remainder(a: kind, b: kind) -> kind:
        return a % b

    @native
    def truncating_divide(a: kind, b: kind) -> kind:
        return divide_truncating(a, b)

    @native
    def truncating_remainder(a: kind, b: kind) -> kind:
        return remainder_truncating(a, b)

    @native
    def bit_and(a: kind, b: kind) -> kind:
        return a & b

    @native
    def bit_or(a: kind, b: kind) -> kind:
        return a | b

    @native
    def bit_xor(a: kind, b: kind) -> kind:
        return a ^ b

    @native
    def shift_left(a: kind, b: kind) -> kind:
        return a << b

    @native
    def shift_right(a: kind, b: kind) -> kind:
        return a >> b

    @native
    def left_rotation(a: kind, b: kind) -> kind:
        return rotate_left(a, b)

    @native
    def right_rotation(a: kind, b: kind) -> kind:
        return rotate_right(a, b)

    @native
    def less(a: kind, b: kind) -> bool:
        return a < b

    @native
    def less_or_equal(a: kind, b: kind) -> bool:
        return a <= b

    @native
    def greater(a: kind, b: kind) -> bool:
        return a > b

    @native
    def greater_or_equal(a: kind, b: kind) -> bool:
        return a >= b

    @native
    def equal(a: kind, b: kind) -> bool:
        return a == b

    @native
    def unequal(a: kind, b: kind) -> bool:
        return a != b

    @native
    def add_overflow(a: kind, b: kind) -> bool:
        return add_overflows(a, b)

    @native
    def subtract_overflow(a: kind, b: kind) -> bool:
        return subtract_overflows(a, b)

    @native
    def multiply_overflow(a: kind, b: kind) -> bool:
        return multiply_overflows(a, b)

    @native
    def negative(a: kind, b: kind) -> kind:
        return -a

    @native
    def inverted(a: kind, b: kind) -> kind:
        return ~a

    @native
    def leading(a: kind, b: kind) -> kind:
        return count_leading_zeros(a)

    @native
    def trailing(a: kind, b: kind) -> kind:
        return count_trailing_zeros(a)

    @native
    def ones(a: kind, b: kind) -> kind:
        return population_count(a)

    @native
    def swapped(a: kind, b: kind) -> kind:
        return byteswap(a)

    return {name: f for name, f in locals().items() if name != "kind"}


def float_functions(kind: Any) -> dict[str, Any]:
    @native
    def add(a: kind, b: kind) -> kind:
        return a + b

    @native
    def subtract(a: kind, b: kind) -> kind:
        return a - b

    @native
    def multiply(a: kind, b: kind) -> kind:
        return a * b

    @native
    def divide(a: kind, b: kind) -> kind:
        return a / b

    @native
    def negative(a: kind, b: kind) -> kind:
        return -a

    @native
    def magnitude(a: kind, b: kind) -> kind:
        return absolute(a)

    @native
    def root(a: kind, b: kind) -> kind:
        return square_root(a)

    @native
    def floor(a: kind, b: kind) -> kind:
        return round_floor(a)

    @native
    def ceiling(a: kind, b: kind) -> kind:
        return round_ceiling(a)

    @native
    def truncated(a: kind, b: kind) -> kind:
        return round_truncate(a)

    @native
    def nearest(a: kind, b: kind) -> kind:
        return round_nearest(a)

    @native
    def with_sign(a: kind, b: kind) -> kind:
        return copy_sign(a, b)

    @native
    def least(a: kind, b: kind) -> kind:
        return float_minimum(a, b)

    @native
    def greatest(a: kind, b: kind) -> kind:
        return float_maximum(a, b)

    @native
    def fused(a: kind, b: kind) -> kind:
        return fused_multiply_add(a, b, a)

    @native
    def less(a: kind, b: kind) -> bool:
        return a < b

    @native
    def less_or_equal(a: kind, b: kind) -> bool:
        return a <= b

    @native
    def greater(a: kind, b: kind) -> bool:
        return a > b

    @native
    def greater_or_equal(a: kind, b: kind) -> bool:
        return a >= b

    @native
    def equal(a: kind, b: kind) -> bool:
        return a == b

    @native
    def unequal(a: kind, b: kind) -> bool:
        return a != b

    return {name: f for name, f in locals().items() if name != "kind"}


FUNCTIONS = {k.name: integer_functions(k) for k in INTEGERS} | {k.name: float_functions(k) for k in FLOATS}
LIBRARY = build([f for table in FUNCTIONS.values() for f in table.values()])
CALLS = {kind: {name: LIBRARY.function(f) for name, f in table.items()} for kind, table in FUNCTIONS.items()}


def rotated(kind: Any, a: int, count: int) -> int:
    a, count = a % (1 << kind.bits), count % kind.bits
    return int(kind.wrap(a << count | a >> (kind.bits - count)))


def truncating(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def expected_integer(kind: Any, name: str, a: int, b: int) -> int | bool | None:
    """What Python's integers say; None where native code leaves the result undefined."""
    divides = name.startswith(("floor", "truncating"))
    if divides and (b == 0 or (kind.signed and a == kind.least and b == -1)):
        return None
    unsigned = a % (1 << kind.bits)
    width = kind.bits
    results: dict[str, Any] = {
        "add": lambda: kind.wrap(a + b),
        "subtract": lambda: kind.wrap(a - b),
        "multiply": lambda: kind.wrap(a * b),
        "floor_divide": lambda: a // b,
        "floor_remainder": lambda: a % b,
        "truncating_divide": lambda: truncating(a, b),
        "truncating_remainder": lambda: a - truncating(a, b) * b,
        "bit_and": lambda: a & b,
        "bit_or": lambda: a | b,
        "bit_xor": lambda: a ^ b,
        "shift_left": lambda: kind.wrap(a << (b % width)),
        "shift_right": lambda: a >> (b % width),
        "left_rotation": lambda: rotated(kind, a, b),
        "right_rotation": lambda: rotated(kind, a, -b),
        "less": lambda: a < b,
        "less_or_equal": lambda: a <= b,
        "greater": lambda: a > b,
        "greater_or_equal": lambda: a >= b,
        "equal": lambda: a == b,
        "unequal": lambda: a != b,
        "add_overflow": lambda: kind.wrap(a + b) != a + b,
        "subtract_overflow": lambda: kind.wrap(a - b) != a - b,
        "multiply_overflow": lambda: kind.wrap(a * b) != a * b,
        "negative": lambda: kind.wrap(-a),
        "inverted": lambda: kind.wrap(~a),
        "leading": lambda: width - unsigned.bit_length(),
        "trailing": lambda: (unsigned & -unsigned).bit_length() - 1 if a else width,
        "ones": lambda: unsigned.bit_count(),
        "swapped": lambda: kind.wrap(int.from_bytes(unsigned.to_bytes(width // 8, "little"), "big")),
    }
    return results[name]()


def interesting(kind: Any) -> st.SearchStrategy[int]:
    corners = [kind.least, kind.least + 1, -1, 0, 1, 2, 7, kind.bits - 1, kind.bits, kind.greatest - 1, kind.greatest]
    return st.one_of(st.sampled_from([kind.wrap(c) for c in corners]), st.integers(kind.least, kind.greatest))


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_integer_operators(kind: Any, data: st.DataObject) -> None:
    a, b = data.draw(interesting(kind)), data.draw(interesting(kind))
    for name, function in CALLS[kind.name].items():
        expected = expected_integer(kind, name, a, b)
        if expected is not None:
            assert function(a, b) == expected, f"{name}({a}, {b})"


def test_small_integers_exhaustively() -> None:
    for kind in (i8, u8):
        for name in ("floor_divide", "floor_remainder", "truncating_remainder", "shift_right", "multiply_overflow"):
            function = CALLS[str(kind)][name]
            for a in range(kind.least, kind.greatest + 1, 3):  # type: ignore[attr-defined]
                for b in range(kind.least, kind.greatest + 1):  # type: ignore[attr-defined]
                    expected = expected_integer(kind, name, a, b)
                    if expected is not None:
                        assert function(a, b) == expected, f"{name}({a}, {b})"


def minimum(a: Any, b: Any) -> Any:
    if math.isnan(a) or math.isnan(b):
        return a + b
    return (a if math.copysign(1, a) < 0 else b) if a == b else min(a, b)


FLOAT_RESULTS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": numpy.divide,
    "negative": lambda a, b: -a,
    "magnitude": lambda a, b: abs(a),
    "root": lambda a, b: numpy.sqrt(a),
    "floor": lambda a, b: numpy.floor(a),
    "ceiling": lambda a, b: numpy.ceil(a),
    "truncated": lambda a, b: numpy.trunc(a),
    "nearest": lambda a, b: numpy.rint(a),
    "with_sign": numpy.copysign,
    "least": minimum,
    "greatest": lambda a, b: -minimum(-a, -b),
    "less": lambda a, b: a < b,
    "less_or_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_or_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
    "unequal": lambda a, b: a != b,
}


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_float_operators(kind: Any, data: st.DataObject) -> None:
    width = kind.size * 8
    a, b = (data.draw(st.floats(width=width)) for _ in range(2))
    cast: Any = numpy.float32 if width == 32 else numpy.float64
    with numpy.errstate(all="ignore"):
        for name, expect in FLOAT_RESULTS.items():
            found, expected = CALLS[kind.name][name](a, b), expect(cast(a), cast(b))
            if isinstance(found, bool):
                assert found == bool(expected), f"{name}({a!r}, {b!r})"
            elif math.isnan(expected):
                assert math.isnan(found), f"{name}({a!r}, {b!r})"
            else:
                assert (found, math.copysign(1, found)) == (float(expected), math.copysign(1, expected)), (name, a, b)


@given(a=st.floats(-1e6, 1e6, width=32), b=st.floats(-1e6, 1e6, width=32))
def test_fused_multiply_add_rounds_once(a: float, b: float) -> None:
    from fractions import Fraction

    exact = Fraction(a) * Fraction(b) + Fraction(a)
    assume(abs(exact) > 1e-30)
    assert CALLS["f64"]["fused"](a, b) == float(exact)
