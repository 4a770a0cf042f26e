"""Conversions between every two number types, literals, and casts that keep the bits."""

import math
import struct
from typing import Any

import numpy
import pytest
from hypothesis import given, settings, strategies as st

from greenbeat.native import (
    bitcast,
    build,
    cast,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    native,
    ptr,
    truncate_unchecked,
    u8,
    u16,
    u32,
    u64,
)

INTEGERS: list[Any] = [i8, i16, i32, i64, u8, u16, u32, u64]
FLOATS: list[Any] = [f32, f64]


def conversion(source: Any, target: Any) -> Any:
    @native
    def convert(value: source) -> target:
        return target(value)

    return convert


def truncation(source: Any, target: Any) -> Any:
    @native
    def truncate(value: source) -> target:
        return truncate_unchecked(target, value)

    return truncate


def same_bits(source: Any, target: Any) -> Any:
    @native
    def reinterpret(value: source) -> target:
        return bitcast(target, value)

    return reinterpret


@native
def number_of(flag: bool) -> i32:
    return i32(flag)


@native
def address_of_pointer(p: ptr[u32]) -> u64:
    return cast(u64, p)


@native
def third_element(address: u64) -> u32:
    return cast(ptr[u32], address)[2]


@native
def literals() -> i64:
    a: u8 = 255
    b: i8 = -128
    c = u16(-1)
    d: u32 = 0xFFFFFFFF
    e = i32(3.99) + i32(-3.99) + i32(float("nan")) + i32(1e300)
    return i64(a) + i64(b) + i64(c) + i64(d) + i64(e)


@native
def halves() -> f64:
    x = 1 / 4
    y: f32 = 1
    return x + f64(y) / 2


BETWEEN = {(s.name, d.name): conversion(s, d) for s in INTEGERS + FLOATS for d in INTEGERS + FLOATS}
UNCHECKED = {(s.name, d.name): truncation(s, d) for s in FLOATS for d in INTEGERS}
BITS = {(s.name, d.name): same_bits(s, d) for s, d in [(f32, u32), (i32, f32), (f64, i64), (u64, f64), (u8, i8)]}  # type: ignore[attr-defined]
SINGLE = [number_of, address_of_pointer, third_element, literals, halves]
LIBRARY = build([*BETWEEN.values(), *UNCHECKED.values(), *BITS.values(), *SINGLE])


def call(table: dict[tuple[str, str], Any], source: Any, target: Any) -> Any:
    return LIBRARY.function(table[str(source), str(target)])


@pytest.mark.parametrize("source", INTEGERS, ids=str)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_integers_to_integers_and_floats(source: Any, data: st.DataObject) -> None:
    value = data.draw(st.integers(source.least, source.greatest))
    for target in INTEGERS:
        assert call(BETWEEN, source, target)(value) == target.wrap(value)
    assert call(BETWEEN, source, f64)(value) == float(value)
    exact: Any = numpy.int64(value) if source.signed else numpy.uint64(value)
    assert call(BETWEEN, source, f32)(value) == float(exact.astype(numpy.float32))


@pytest.mark.parametrize("source", FLOATS, ids=str)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_floats_to_integers_saturate(source: Any, data: st.DataObject) -> None:
    value = data.draw(st.floats(width=source.size * 8))
    for target in INTEGERS:
        expected = 0 if math.isnan(value) else max(target.least, min(target.greatest, value))
        assert call(BETWEEN, source, target)(value) == int(expected)
        if not math.isnan(value) and target.least <= value <= target.greatest and int(expected) == math.trunc(value):
            assert call(UNCHECKED, source, target)(value) == math.trunc(value)


@given(st.floats())
def test_floats_to_floats(value: float) -> None:
    with numpy.errstate(all="ignore"):
        expected = float(numpy.float32(value))
    found = call(BETWEEN, f64, f32)(value)
    assert found == expected or (math.isnan(found) and math.isnan(expected))
    assert call(BETWEEN, f32, f64)(expected) == expected or math.isnan(expected)


@given(st.floats(allow_nan=False), st.integers(0, 2**64 - 1))
def test_bitcast_keeps_the_bits(value: float, bits: int) -> None:
    assert call(BITS, f64, i64)(value) == struct.unpack("<q", struct.pack("<d", value))[0]
    as_float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    found = call(BITS, u64, f64)(bits)
    assert found == as_float or math.isnan(as_float)


def test_bitcast_between_signs() -> None:
    assert call(BITS, u8, i8)(255) == -1


def test_pointers_and_integers() -> None:
    import ctypes

    numbers = (ctypes.c_uint32 * 3)(1, 2, 3)
    assert LIBRARY.function(address_of_pointer)(ctypes.addressof(numbers)) == ctypes.addressof(numbers)
    assert LIBRARY.function(third_element)(ctypes.addressof(numbers)) == 3


def test_bool_to_number() -> None:
    assert [LIBRARY.function(number_of)(flag) for flag in (False, True)] == [0, 1]


def test_literals_take_the_type_of_their_context() -> None:
    assert LIBRARY.function(literals)() == 255 - 128 + 0xFFFF + 0xFFFFFFFF + (2**31 - 1)
    assert LIBRARY.function(halves)() == 0.75
