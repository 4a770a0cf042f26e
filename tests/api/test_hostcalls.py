"""Calls from guests to Python: values, exceptions, nesting."""

import gc
import re
import sys
from typing import Any

import pytest

import greenbeat as gb
from tests.api.conftest import Make

CALLER = """(module
  (import "env" "f" (func $f (param i32) (result i32)))
  (func $inner (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))
  (func (export "call") (param i32) (result i32) (call $inner (local.get 0)))
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "deep") (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (call $recurse (i32.sub (local.get 0) (i32.const 1))))
      (else (call $f (i32.const 0)))))
  (func $recurse (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (i32.const 1) (call $recurse (i32.sub (local.get 0) (i32.const 1)))))
      (else (call $f (i32.const 0))))))"""


def test_values(make: Make) -> None:
    text = """(module
      (import "env" "f" (func $f (param i32 i64 f32 f64 externref funcref) (result externref f64 i64 i32)))
      (func (export "go") (param i32 i64 f32 f64 externref funcref) (result externref f64 i64 i32)
        (call $f (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5))))"""
    seen: list[Any] = []

    def f(*values: Any) -> Any:
        seen.append(values)
        return values[4], values[3], values[1], values[0]

    exports = make(text, {"env": {"f": f}}).exports
    item = object()
    assert exports.go(-1, 2**63, 0.5, -0.0, item, exports.go) == (item, -0.0, -(2**63), -1)
    assert seen == [(-1, -(2**63), 0.5, -0.0, item, exports.go)]


def test_many_parameters(make: Make) -> None:
    many = "i32 " * 40
    text = f"""(module (import "env" "f" (func $f (param {many}) (result {many})))
      (func (export "go") (param {many}) (result {many}) {"".join(f"(local.get {i})" for i in range(40))} (call $f)))"""
    exports = make(text, {"env": {"f": lambda *values: list(reversed(values))}}).exports
    assert exports.go(*range(40)) == tuple(reversed(range(40)))


@pytest.mark.parametrize("error", [KeyError("mine"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_exceptions_pass_through_unchanged(make: Make, error: BaseException) -> None:
    def f(x: int) -> int:
        raise error

    exports = make(CALLER, {"env": {"f": f}}).exports
    with pytest.raises(type(error)) as caught:
        exports.call(1)
    assert caught.value is error
    (note,) = error.__notes__
    assert re.fullmatch(r"WebAssembly frames:\n  inner at 0x\w+\n  call at 0x\w+", note)
    assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
    assert exports.add(2, 3) == 5


def test_results_are_checked(make: Make) -> None:
    results: list[Any] = []
    exports = make(CALLER, {"env": {"f": lambda x: results[-1]}}).exports
    for result, error, words in (
        ("a", TypeError, "the result of host function <lambda>.* must be an int"),
        (2**32, ValueError, "out of range for i32"),
        (None, TypeError, "must be an int"),
    ):
        results.append(result)
        with pytest.raises(error, match=words):
            exports.call(1)
    results.append(True)
    assert exports.call(1) == 2


def test_number_of_results(make: Make) -> None:
    results: list[Any] = []
    text = """(module (import "env" "f" (func $f (result i32 i32)))
      (func (export "go") (result i32) (i32.sub (call $f))))"""
    exports = make(text, {"env": {"f": lambda: results[-1]}}).exports
    for result in (None, 3, (1,), (1, 2, 3)):
        results.append(result)
        with pytest.raises(TypeError, match="must return a tuple of 2"):
            exports.go()
    for good in ((5, 2), [5, 2], iter((5, 2))):
        results.append(good)
        assert exports.go() == 3


def test_a_result_nobody_wants_is_ignored(make: Make) -> None:
    exports = make(
        '(module (import "e" "f" (func $f)) (func (export "go") (call $f)))', {"e": {"f": lambda: 3}}
    ).exports
    assert exports.go() is None


def test_host_calls_the_guest_again(make: Make) -> None:
    def f(x: int) -> int:
        return x if x == 0 else exports.call(x - 1) + exports.add(1, 1)

    exports = make(CALLER, {"env": {"f": f}}).exports
    assert exports.call(20) == 61


def test_depth_limit_and_recovery(make: Make) -> None:
    depths: list[tuple[int, str]] = []

    def f(x: int) -> int:
        try:
            return int(exports.call(x + 1))
        except gb.Exhausted as error:
            depths.append((x, error.resource))
            return 0

    exports = make(CALLER, {"env": {"f": f}}, depth=8).exports
    for _ in range(400):
        assert exports.call(0) == 8
    assert depths == [(7, "stack")] * 400


def test_recursion_without_python_frames_is_bounded(make: Make) -> None:
    from functools import partial

    holder: list[Any] = []

    class Forward:
        def __call__(self, x: int) -> Any:
            return holder[0](x)

    exports = make(CALLER, {"env": {"f": partial(Forward())}}, depth=10_000).exports
    holder.append(exports.call)
    with pytest.raises((RecursionError, gb.Exhausted)):
        exports.call(1)
    assert exports.add(1, 2) == 3


def test_exceptions_in_deep_frames_leave_the_stack_whole(make: Make) -> None:
    def f(x: int) -> int:
        raise ValueError("mine")

    exports = make(CALLER, {"env": {"f": f}}).exports
    for _ in range(300):
        with pytest.raises(ValueError, match="mine"):
            exports.deep(500)
    assert exports.add(20, 22) == 42


def test_trap_inside_a_nested_call(make: Make) -> None:
    text = """(module (import "env" "f" (func $f (param i32)))
      (func (export "go") (param i32) (result i32) (call $f (local.get 0)) (i32.const 9))
      (func (export "trap") unreachable))"""

    def f(x: int) -> None:
        if x:
            exports.trap()
        with pytest.raises(gb.Trap, match="unreachable"):
            exports.trap()

    exports = make(text, {"env": {"f": f}}).exports
    assert exports.go(0) == 9
    with pytest.raises(gb.Trap, match="unreachable") as caught:
        exports.go(1)
    assert [frame.function for frame in caught.value.backtrace] == ["trap"]
    assert exports.go(0) == 9


def test_references_are_given_back(make: Make) -> None:
    item = object()
    exports = make(CALLER, {"env": {"f": lambda x: x}}).exports
    count = sys.getrefcount(item)
    for _ in range(10):
        with pytest.raises(TypeError):
            exports.add(item, 1)
    gc.collect()
    assert sys.getrefcount(item) == count


def test_a_host_function_object_as_import(make: Make) -> None:
    double: Any = gb.Function(lambda x: 2 * x, ["i32"], ["i32"])
    exports = make(CALLER, {"env": {"f": double}}).exports
    assert exports.call(4) == 9


def test_an_import_exported_again(make: Make) -> None:
    text = '(module (import "env" "f" (func $f (param i32) (result i32))) (export "g" (func $f)))'
    exports = make(text, {"env": {"f": lambda x: x + 1}}).exports
    assert exports.g(1) == 2
    with pytest.raises(TypeError):
        exports.g("a")
    function: Any = gb.Function(lambda x: x, ["i32"], ["i32"])
    assert make(text, {"env": {"f": function}}).exports.g is function


def test_an_import_called_by_python_has_no_guest_frames(make: Make) -> None:
    """Whatever ran before, and though its frames are gone."""

    def fail(deep: int) -> None:
        raise KeyError(deep)

    text = """(module (import "env" "f" (func $f (param i32))) (export "f" (func $f))
      (func (export "guest") (param i32) (if (local.get 0) (then (call 1 (i32.sub (local.get 0) (i32.const 1)))) )
        (call $f (local.get 0))))"""
    with pytest.raises(KeyError) as caught:
        make(text, {"env": {"f": fail}}).exports.guest(50)
    assert "WebAssembly frames" in caught.value.__notes__[0]
    gc.collect()
    with pytest.raises(KeyError) as caught:
        make(text, {"env": {"f": fail}}).exports.f(3)
    assert not hasattr(caught.value, "__notes__")
