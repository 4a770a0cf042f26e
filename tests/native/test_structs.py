"""Structs are laid out as C does, seen from native code and from ctypes."""

import ctypes
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from greenbeat.native import (
    addressof,
    array,
    bool_,
    build,
    ctypes_of,
    export,
    f32,
    f64,
    function,
    i8,
    i16,
    i32,
    i64,
    native,
    offsetof,
    ptr,
    sizeof,
    sizeof_value,
    struct,
    u8,
    u16,
    u32,
    u64,
)

SCALARS: list[Any] = [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, bool_, ptr[u8]]


@struct
class Point:
    x: i16
    y: f64


@struct
class Shape:
    tag: u8
    center: Point
    corners: array[Point, 3]
    name: array[u8, 5]
    next: ptr["Shape"]
    area: function[[ptr["Shape"]], f64]
    visible: bool


@native
def write_all(s: ptr[Shape], i: u32) -> None:
    s.tag = 7
    s.center.x = -3
    s.center.y = 2.5
    s.corners[i].x = 11
    s.corners[i].y += 0.25
    s.name[4] = 0xEE
    s.next = s
    s.visible = not s.visible


@native
def through_the_list(s: ptr[Shape]) -> f64:
    return s.next.next.corners[1].y + f64(s.next.center.x)


@native
def inner_addresses(s: ptr[Shape]) -> u64:
    corner = addressof(s.corners[2])
    center = s.center
    corner.x = i16(corner - s.corners)
    return u64(addressof(center.y) - addressof(s.center.y)) + u64(sizeof_value(s))


@native
def call_field(s: ptr[Shape]) -> f64:
    return s.area(s)


LIBRARY = build([write_all, through_the_list, inner_addresses, call_field])


def made(field_types: list[Any]) -> Any:
    return struct(type("Made", (), {"__annotations__": {f"f{i}": k for i, k in enumerate(field_types)}}))


@settings(max_examples=200)
@given(
    st.lists(st.one_of(st.sampled_from(SCALARS), st.tuples(st.sampled_from(SCALARS), st.integers(1, 5))), max_size=8)
)
def test_layout_is_that_of_ctypes(fields: list[Any]) -> None:
    kinds = [array[f[0], f[1]] if isinstance(f, tuple) else f for f in fields]
    inner = made(kinds)
    outer = made([u8, inner, array[inner, 2], u8])
    for cls in (inner, outer):
        layout = ctypes_of(cls)
        assert sizeof(cls) == ctypes.sizeof(layout)
        for name in cls.__annotations__:
            assert offsetof(cls, name) == getattr(layout, name).offset


def test_native_code_and_ctypes_see_the_same_fields() -> None:
    layout = ctypes_of(Shape)
    shape = layout()
    shape.corners[1].y = 1.0
    LIBRARY.function(write_all)(ctypes.addressof(shape), 1)
    assert (shape.tag, shape.center.x, shape.center.y, shape.visible) == (7, -3, 2.5, True)
    assert (shape.corners[1].x, shape.corners[1].y, shape.name[4]) == (11, 1.25, 0xEE)
    assert shape.next == ctypes.addressof(shape)
    assert LIBRARY.function(through_the_list)(ctypes.addressof(shape)) == 1.25 - 3


def test_addresses_inside_structs() -> None:
    shape = ctypes_of(Shape)()
    assert LIBRARY.function(inner_addresses)(ctypes.addressof(shape)) == sizeof(Shape)
    assert shape.corners[2].x == 2


def test_function_pointer_in_a_field() -> None:
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)
    seen: list[int] = []

    def area(address: int) -> float:
        seen.append(address)
        return 42.0

    callback = prototype(area)
    shape = ctypes_of(Shape)()
    shape.area = ctypes.cast(callback, ctypes.c_void_p).value
    assert LIBRARY.function(call_field)(ctypes.addressof(shape)) == 42.0
    assert seen == [ctypes.addressof(shape)]


def test_a_field_must_have_a_native_type() -> None:
    with pytest.raises(TypeError, match="no native type"):
        made([dict])


def test_struct_classes_stay_python_classes() -> None:
    assert Shape.__name__ == "Shape"
    assert isinstance(Shape(), Shape)


def test_an_exported_function_is_named_as_written() -> None:
    @export
    def exported_for_the_test(n: i32) -> i32:
        return n + 1

    library = build([exported_for_the_test])
    assert "exported_for_the_test" in library.addresses
    assert library.function(exported_for_the_test)(1) == 2
