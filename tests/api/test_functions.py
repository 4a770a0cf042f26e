"""Calls from Python: conversions of arguments and results, errors, what a Function is."""

import gc
import inspect
import math
import struct
import sys
import weakref
from typing import Any

import pytest

import greenbeat as gb

IDENTITIES = """(module
  (func (export "i32") (param i32) (result i32) local.get 0)
  (func (export "i64") (param i64) (result i64) local.get 0)
  (func (export "f32") (param f32) (result f32) local.get 0)
  (func (export "f64") (param f64) (result f64) local.get 0)
  (func (export "extern") (param externref) (result externref) local.get 0)
  (func $func (export "func") (param funcref) (result funcref) local.get 0)
  (func (export "none"))
  (func (export "swap") (param $left i32) (param $right f64) (result f64 i32) local.get 1 local.get 0)
  (func (export "sum") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (i32.add (local.get 0) (local.get 17))))"""


@pytest.fixture(scope="module")
def exports() -> Any:
    return gb.Module.from_wat(IDENTITIES).instantiate().exports


class Index:
    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize(
    ("given", "back"),
    [(0, 0), (-1, -1), (2**31 - 1, 2**31 - 1), (-(2**31), -(2**31)), (2**31, -(2**31)), (2**32 - 1, -1), (True, 1)],
)
def test_i32_takes_both_ranges(exports: Any, given: int, back: int) -> None:
    assert exports.i32(given) == back
    assert exports.i32(Index(int(given))) == back


@pytest.mark.parametrize(
    ("given", "back"), [(-1, -1), (2**63 - 1, 2**63 - 1), (-(2**63), -(2**63)), (2**63, -(2**63)), (2**64 - 1, -1)]
)
def test_i64_takes_both_ranges(exports: Any, given: int, back: int) -> None:
    assert exports.i64(given) == back
    assert exports.i64(Index(given)) == back


@pytest.mark.parametrize(
    ("name", "value"),
    [("i32", 2**32), ("i32", -(2**31) - 1), ("i32", 2**70), ("i64", 2**64), ("i64", -(2**63) - 1), ("f64", 10**400)],
)
def test_out_of_range(exports: Any, name: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"argument 1 of {name}\({name}\) -> {name}: .* out of range for {name}"):
        exports[name](value)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("i32", 1.0, "an int"),
        ("i32", "1", "an int"),
        ("i32", None, "an int"),
        ("i64", 1.5, "an int"),
        ("f64", "x", "a float"),
        ("f32", None, "a float"),
        ("func", print, "a greenbeat.Function or None"),
        ("func", 1, "a greenbeat.Function or None"),
    ],
)
def test_wrong_type(exports: Any, name: str, value: object, wanted: str) -> None:
    with pytest.raises(TypeError, match=rf"argument 1 of {name}.* must be {wanted} .*, not {type(value).__name__} "):
        exports[name](value)


def test_conversion_errors_pass_through(exports: Any) -> None:
    class Broken:
        def __index__(self) -> int:
            raise ZeroDivisionError("mine")

        def __float__(self) -> float:
            raise LookupError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        exports.i32(Broken())
    with pytest.raises(LookupError, match="mine"):
        exports.f64(Broken())


def test_floats(exports: Any) -> None:
    for value in (0.0, -0.0, 1.5, -1.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308):
        assert struct.pack("d", exports.f64(value)) == struct.pack("d", value)
    assert math.isnan(exports.f64(math.nan))
    assert exports.f64(3) == 3.0
    assert exports.f32(0.1) == struct.unpack("f", struct.pack("f", 0.1))[0]
    assert exports.f32(1e300) == math.inf
    assert math.isnan(exports.f32(math.nan))


def test_references(exports: Any) -> None:
    item = object()
    assert exports.extern(item) is item
    assert exports.extern(None) is None
    assert exports.func(exports.i32) is exports.i32
    assert exports.func(None) is None


def test_results(exports: Any) -> None:
    assert exports.none() is None
    assert exports.swap(1, 2.5) == (2.5, 1)
    assert exports.sum(*range(18)) == 17


def test_number_of_arguments(exports: Any) -> None:
    with pytest.raises(TypeError, match=r"swap\(i32, f64\) -> \(f64, i32\) takes 2 arguments, not 3"):
        exports.swap(1, 2, 3)
    with pytest.raises(TypeError, match="takes 1 argument, not 0"):
        exports.i32()
    with pytest.raises(TypeError, match="takes positional arguments only"):
        exports.i32(value=1)
    assert exports.i32(*[7]) == 7


def test_nested_call_while_converting(exports: Any) -> None:
    class Calls:
        def __index__(self) -> int:
            assert exports.swap(5, 6.0) == (6.0, 5)
            return int(exports.i32(9))

    assert exports.swap(Calls(), 2.0) == (2.0, 9)
    assert exports.sum(*[Calls()] * 18) == 18


def test_what_a_function_is(exports: Any) -> None:
    swap = exports.swap
    assert isinstance(swap, gb.Function)
    assert swap.name == swap.__name__ == "swap"
    assert str(swap.type) == "(func (param i32 f64) (result f64 i32))"
    assert repr(swap) == "<greenbeat.Function swap(i32, f64) -> (f64, i32)>"
    assert swap.__doc__ == "swap(i32, f64) -> (f64, i32)"
    assert str(inspect.signature(swap)) == "(left: int, right: float, /) -> tuple[float, int]"
    assert str(inspect.signature(exports.none)) == "() -> None"
    assert callable(swap) and hash(swap) == hash(swap) and swap == exports["swap"]
    with pytest.raises(TypeError):
        gb.Function()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        object.__new__(gb.Function)(1)


def test_weak_reference() -> None:
    instance = gb.Module.from_wat('(module (func (export "f")))').instantiate()
    function = instance.exports.f
    seen = weakref.ref(function)
    assert seen() is function
    del function, instance
    gc.collect()
    assert seen() is None


def test_function_made_by_the_host() -> None:
    def scale(x: int, y: float) -> float:
        return x * y

    function = gb.Function(scale)
    assert str(function.type) == "(func (param i32 f64) (result f64))"
    assert function(3, 0.5) == 1.5
    with pytest.raises(TypeError):
        function("3", 0.5)
    exact: Any = gb.Function(lambda a, b: (b, a), [gb.i64, gb.f32], [gb.f32, "i64"])
    assert exact(2**40, 0.5) == (0.5, 2**40)
    assert gb.Func is gb.Function


@pytest.mark.parametrize("bad", [lambda x: x, 3, print])
def test_function_without_types(bad: Any) -> None:
    with pytest.raises(TypeError):
        gb.Function(bad)


def test_many_instances_of_arguments_are_not_leaked(exports: Any) -> None:
    value = 123456789
    item = object()
    before = sys.getrefcount(value)
    for _ in range(1000):
        exports.i32(value)
        exports.none()
        with pytest.raises(TypeError):
            exports.swap(value, item)
    gc.collect()
    assert abs(sys.getrefcount(value) - before) < 10
    assert sys.getrefcount(item) == 2
