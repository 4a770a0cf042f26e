"""Number literals against Python's own idea of them, and the corners of the grammar."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from greenbeat.wasm.text.numbers import F32, F64, FloatFormat, parse_float, parse_signless, parse_unsigned


def bits_of(value: float, form: FloatFormat) -> int:
    if form is F64:
        return int.from_bytes(struct.pack(">d", value))
    return int.from_bytes(struct.pack(">f", value))


def float_of(bits: int, form: FloatFormat) -> float:
    return float(struct.unpack(">d" if form is F64 else ">f", bits.to_bytes(form.size))[0])


@given(st.floats(allow_nan=False))
def test_f64_decimal_round_trip(value: float) -> None:
    assert parse_float(repr(value), F64) == bits_of(value, F64)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_f64_hexadecimal_round_trip(value: float) -> None:
    assert parse_float(value.hex(), F64) == bits_of(value, F64)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_f32_round_trip(value: float) -> None:
    # The shortest decimal form of the double is exact enough, and its hexadecimal form is exact.
    assert parse_float(repr(value), F32) == bits_of(value, F32)
    assert parse_float(value.hex(), F32) == bits_of(value, F32)


@given(st.integers(0, 10**30), st.integers(-60, 40))
def test_f64_decimal_agrees_with_python(digits: int, exponent: int) -> None:
    text = f"{digits}e{exponent}"
    assert parse_float(text, F64) == bits_of(float(text), F64)


@given(st.integers(0, 0x7F7F_FFFE), st.integers(1, 999))
def test_f32_rounds_to_the_nearest_once(bits: int, thousandths: int) -> None:
    low, high = Fraction(float_of(bits, F32)), Fraction(float_of(bits + 1, F32))
    between = low + (high - low) * thousandths / 1000
    # A value of the form n / (1000 * 2**k) has a finite decimal expansion, which we write out in full.
    scale = 10**200
    assert (between * scale).denominator == 1
    digits = str((between * scale).numerator).rjust(201, "0")
    text = f"{digits[:-200]}.{digits[-200:]}"
    expected = bits if thousandths < 500 or (thousandths == 500 and bits % 2 == 0) else bits + 1
    assert parse_float(text, F32) == expected


@pytest.mark.parametrize("form", [F32, F64])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("-0", -0.0),
        ("+1.", 1.0),
        ("1_0.2_5e1_0", 10.25e10),
        ("1E-1", 0.1),
        ("0x1p-1", 0.5),
        ("0xA.8", 10.5),
        ("0x1_0.P+1", 32.0),
        ("-inf", -math.inf),
        ("1e-999999999999999999999", 0.0),
        ("0e999999999999999999999", 0.0),
        ("0x0p999999999999999999999", 0.0),
        ("0x1p-999999999999999999999", 0.0),
    ],
)
def test_float_literals(text: str, value: float, form: FloatFormat) -> None:
    assert parse_float(text, form) == bits_of(value, form)


def test_long_literals() -> None:
    assert parse_float("1." + "0" * 10_000 + "1", F64) == bits_of(1.0, F64)
    assert parse_float("1" + "0" * 10_000 + "e-10000", F64) == bits_of(1.0, F64)
    halfway = "1.00000000000000011102230246251565404236316680908203125"
    assert parse_float(halfway, F64) == bits_of(1.0, F64)
    assert parse_float(halfway + "0" * 5_000 + "1", F64) == bits_of(1.0, F64) + 1
    assert parse_signless("0" * 10_000 + "7", 32) == 7


def test_double_rounding_is_avoided() -> None:
    # Rounded to a double first, this would lie halfway between two floats and round down.
    assert parse_float("1.00000005960464477540", F32) == bits_of(1.0, F32) + 1


@pytest.mark.parametrize("text", ["1e39", "0x1p128", "3.4028236e38", "340282356779733661637539395458142568448"])
def test_f32_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="f32 constant out of range"):
        parse_float(text, F32)


@pytest.mark.parametrize("text", ["1e309", "0x1p1024", "0x1.fffffffffffff8p1023", "1e999999999999999999999"])
def test_f64_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="f64 constant out of range"):
        parse_float(text, F64)


def test_nan_payloads() -> None:
    assert parse_float("nan", F32) == 0x7FC0_0000
    assert parse_float("-nan", F64) == 0xFFF8_0000_0000_0000
    assert parse_float("nan:0x1", F32) == 0x7F80_0001
    assert parse_float("-nan:0xf_ffff_ffff_ffff", F64) == 0xFFFF_FFFF_FFFF_FFFF
    for text in ("nan:0x0", "nan:0x80_0000"):
        with pytest.raises(ValueError, match="out of range"):
            parse_float(text, F32)
    with pytest.raises(ValueError, match="f32 literal"):
        parse_float("nan:1", F32)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        ".5",
        "1__0",
        "_1",
        "1_",
        "1e",
        "1e+",
        "0x",
        "0x.8",
        "0x1p",
        "0x1.8p1_",
        "infinity",
        "nan:canonical",
        "1f",
    ],
)
def test_malformed_floats(text: str) -> None:
    with pytest.raises(ValueError, match="expected an f64 literal"):
        parse_float(text, F64)


@given(st.integers(-(2**63), 2**64 - 1))
def test_integers(value: int) -> None:
    wrapped = value % 2**64
    assert parse_signless(str(value), 64) == wrapped
    assert parse_signless(hex(value), 64) == wrapped
    assert parse_signless(f"{value:_}", 64) == wrapped


@pytest.mark.parametrize("text", ["4294967296", "-2147483649", "0x1_0000_0000", "9" * 10_000])
def test_integers_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="i32 constant out of range"):
        parse_signless(text, 32)


@pytest.mark.parametrize("text", ["0x", "1.0", "1__0", "_1", "0b1", "0X1", "\u0661", "- 1", "1 "])
def test_malformed_integers(text: str) -> None:
    with pytest.raises(ValueError, match="expected an i32 literal"):
        parse_signless(text, 32)


def test_unsigned_integers() -> None:
    assert parse_unsigned("0xffff_ffff", 32) == 0xFFFF_FFFF
    with pytest.raises(ValueError, match="u32 constant out of range"):
        parse_unsigned("4294967296", 32)
    with pytest.raises(ValueError, match="expected an unsigned integer"):
        parse_unsigned("+1", 32)
