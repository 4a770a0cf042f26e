"""Guests as green tasks: what comes back, how they end, and that nothing is left behind."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.api.bridge import at, native
from greenbeat.runtime import layout
from greenbeat.tasks.layout import Fiber

PROGRAM = """(module
  (import "host" "f" (func $f (param i32) (result i32)))
  (memory (export "memory") 1 100)
  (table $t (export "table") 1 100 funcref)
  (global $count (export "count") (mut i64) (i64.const 0))
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "two") (param f64 i64) (result i64 f64) (local.get 1) (local.get 0))
  (func (export "host") (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))
  (func (export "divide") (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "spin") (loop $l (global.set $count (i64.add (global.get $count) (i64.const 1))) (br $l)))
  (func $deep (export "deep") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0))
      (then (i32.const 0))
      (else (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))))
  (func (export "grow") (result i32)
    (drop (table.grow $t (ref.null func) (i32.const 1)))
    (memory.grow (i32.const 1)))
  (func (export "many") (param i32) (result i32) (local i32)
    (loop $l
      (local.set 1 (i32.add (local.get 1) (call $f (local.get 0))))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))"""

OBJECTS = """(module
  (import "host" "make" (func $make (result externref)))
  (import "host" "take" (func $take (param externref) (result i32)))
  (tag $e (param i32))
  (func (export "pass") (param externref) (result externref) (local.get 0))
  (func (export "carry") (param i32) (result i32) (local externref i32)
    (local.set 1 (call $make))
    (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (call $take (local.get 1)))
  (func (export "throw") (param i32) (throw $e (local.get 0)))
  (func (export "catch") (param i32) (result i32)
    (block $h (result i32)
      (try_table (catch $e $h) (throw $e (local.get 0)))
      (i32.const -1))))"""

Make = Callable[..., Any]


@pytest.fixture
def make() -> Make:
    """Exports of a new instance: `make(f)` or `make(f, fuel=...)`."""
    module = gb.Module.from_wat(PROGRAM)

    def instantiate(f: Callable[[int], Any] = lambda x: 2 * x, **limits: Any) -> Any:
        return module.instantiate({"host": {"f": f}}, limits=gb.Limits(**limits)).exports

    return instantiate


def test_results(make: Make) -> None:
    exports = make()
    task = gb.spawn(exports.add, 2, 40)
    assert task.join() == 42 and task.result() == 42 and task.done
    assert gb.spawn(exports.two, 1.5, -3).join() == (-3, 1.5)
    assert gb.spawn(exports.host, 20).join() == 41
    assert repr(task) == "<greenbeat.Task add, finished>"


def test_what_cannot_be_spawned(make: Make) -> None:
    exports = make()
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        gb.spawn(exports.add, 1)
    with pytest.raises(TypeError, match="argument 2 of add"):
        gb.spawn(exports.add, 1, "x")
    with pytest.raises(TypeError, match="is a host function: only guests run as tasks"):
        gb.spawn(gb.Func(lambda: None, [], []))
    # Nothing was left busy.
    assert exports.add(1, 2) == 3


def test_a_closed_instance_runs_no_tasks() -> None:
    instance = gb.Module.from_wat('(module (func (export "f")))').instantiate()
    instance.close()
    with pytest.raises(gb.GreenbeatError, match="closed"):
        gb.spawn(instance.exports.f)


def test_traps(make: Make) -> None:
    exports = make()
    for name, argument, kind in (
        ("divide", 0, "integer divide by zero"),
        ("load", 1 << 20, "out of bounds memory access"),
    ):
        for _ in range(3):
            with pytest.raises(gb.Trap, match=kind) as caught:
                gb.spawn(exports[name], argument).join()
            assert caught.value.backtrace[0].function == name
    assert exports.add(1, 2) == 3


def test_deep_recursion(make: Make) -> None:
    exports = make()
    for _ in range(3):
        assert gb.spawn(exports.deep, 10_000).join() == 10_000
        with pytest.raises(gb.Exhausted, match="call stack exhausted"):
            gb.spawn(exports.deep, 1 << 30).join()
    large = make(stack="32MiB")
    assert gb.spawn(large.deep, 300_000).join() == large.deep(300_000) == 300_000


def test_limits(make: Make) -> None:
    with pytest.raises(gb.Exhausted, match="out of time") as caught:
        gb.spawn(make(seconds=0.02).spin).join()
    assert caught.value.backtrace[0].function == "spin"
    with pytest.raises(gb.Exhausted, match="out of fuel"):
        gb.spawn(make(fuel=100_000).spin).join()
    module = gb.Module.from_wat(PROGRAM)
    metered = module.instantiate({"host": {"f": lambda x: x}}, limits=gb.Limits(fuel=1_000))
    assert gb.spawn(metered.exports.add, 1, 2).join() == 3
    assert 0 < (metered.fuel or 0) < 1_000


def test_host_exceptions(make: Make) -> None:
    def f(x: int) -> int:
        raise KeyError(x)

    exports = make(f)
    with pytest.raises(KeyError) as caught:
        gb.spawn(exports.host, 7).join()
    assert "host at" in caught.value.__notes__[0] and exports.add(1, 1) == 2


def test_a_wrong_result(make: Make) -> None:
    with pytest.raises(TypeError, match="result of host function"):
        gb.spawn(make(lambda x: "no").host, 1).join()


def test_cancelling(make: Make) -> None:
    exports = make()
    for _ in range(20):
        task = gb.spawn(exports.spin)
        task.cancel()
        with pytest.raises(gb.Cancelled):
            task.join()
        assert task.cancelled and exports.add(1, 2) == 3


def test_busy(make: Make) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def f(x: int) -> int:
        inside.set()
        assert go_on.wait(30)
        return x

    exports = make(f)
    task = gb.spawn(exports.host, 1)
    assert inside.wait(30)
    for attempt in (lambda: exports.add(1, 2), lambda: gb.spawn(exports.add, 1, 2), exports.add.start(1, 2).resume):
        with pytest.raises(gb.GreenbeatError, match="one call at a time.*make an instance for each thread and task"):
            attempt()
    go_on.set()
    assert task.join() == 2 and exports.add(1, 2) == 3


def test_calls_from_a_host_function(make: Make) -> None:
    """A host function of a task calls its own guest, another one, and spawns."""
    other = make()
    results: list[Any] = []

    def f(x: int) -> int:
        results.append(exports.add(x, 1))
        results.append(other.host(x))
        results.append(gb.spawn(other.add, x, 5).join())
        results.append(threading.current_thread() is not threading.main_thread())
        with pytest.raises(gb.GreenbeatError, match="one call at a time"):
            gb.spawn(exports.add, 1, 2)
        with pytest.raises(gb.Trap):
            exports.divide(0)
        call = exports.add.start(3, 4)
        call.resume()
        results.append(call.result)
        return x

    exports = make(f)
    assert gb.spawn(exports.host, 1).join() == 2
    assert results == [2, 3, 6, True, 7]


def test_a_nested_endless_call_is_cancelled(make: Make) -> None:
    inside = threading.Event()

    def f(x: int) -> int:
        inside.set()
        exports.spin()
        return x

    exports = make(f)
    task = gb.spawn(exports.host, 1)
    assert inside.wait(30)
    task.cancel()
    with pytest.raises(gb.Cancelled):
        task.join()
    assert exports.add(1, 2) == 3


def test_objects() -> None:
    class Thing:
        pass

    made: list[Thing] = []

    def make() -> Thing:
        made.append(Thing())
        return made[-1]

    exports = (
        gb.Module.from_wat(OBJECTS)
        .instantiate({"host": {"make": make, "take": lambda thing: made.index(thing)}})
        .exports
    )
    thing = Thing()
    assert gb.spawn(exports["pass"], thing).join() is thing
    assert gb.spawn(exports["pass"], None).join() is None
    for turn in range(200):
        assert gb.spawn(exports.carry, 1).join() == turn
    assert gb.spawn(exports.carry, 3_000_000).join() == 200
    assert gb.spawn(exports["catch"], 9).join() == 9
    with pytest.raises(gb.UncaughtException) as caught:
        gb.spawn(exports.throw, 5).join()
    assert caught.value.values == (5,)


def test_resumable_calls(make: Make) -> None:
    exports = make(fuel=1 << 40)
    call = exports.deep.start(500)
    assert gb.spawn(call).join() == 500 and call.done and call.result == 500
    call = exports.many.start(300)
    assert not call.resume(fuel=500)
    task = gb.spawn(call)
    with pytest.raises(gb.GreenbeatError, match="cannot be resumed: it is running"):
        call.resume()
    assert task.join() == 300 * 301 and call.result == 300 * 301
    with pytest.raises(gb.GreenbeatError, match="cannot be spawned: it is finished"):
        gb.spawn(call)
    with pytest.raises(TypeError, match="has its arguments already"):
        gb.spawn(exports.add.start(1, 2), 3)
    assert exports.add(1, 2) == 3


def test_resumable_calls_that_fail(make: Make) -> None:
    exports = make()
    call = exports.divide.start(0)
    with pytest.raises(gb.Trap, match="divide by zero"):
        gb.spawn(call).join()
    assert call.done
    for _ in range(10):
        call = exports.spin.start()
        task = gb.spawn(call)
        with pytest.raises(gb.GreenbeatError, match="one call at a time"):
            exports.add(1, 2)
        task.cancel()
        with pytest.raises(gb.Cancelled):
            task.join()
        assert call.done and exports.add(1, 2) == 3
    # Nobody asks for the result.
    call = exports.deep.start(5)
    task = gb.spawn(call)
    native.join_task(task._fiber, 0)
    del task
    assert call.done
    with pytest.raises(gb.Exhausted, match="out of time"):
        gb.spawn(make(seconds=0.02).spin.start()).join()


def test_many_tasks(make: Make) -> None:
    everything = [make() for _ in range(200)]
    for _ in range(5):
        tasks = [gb.spawn(exports.many, 50) for exports in everything]
        assert [task.join() for task in tasks] == [50 * 51] * len(tasks)


def test_results_that_nobody_asks_for(make: Make) -> None:
    """Tasks are dropped before and after they end: functions and exceptions are let go of."""
    alive = 0

    class Counted:
        def __init__(self) -> None:
            nonlocal alive
            alive += 1

        def __call__(self, x: int) -> int:
            if x == 1:
                raise ValueError(Counted())
            return x

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    module = gb.Module.from_wat(PROGRAM)
    for x in (0, 1):
        last = None
        for turn in range(100):
            instance = module.instantiate({"host": {"f": gb.Func(Counted(), ["i32"], ["i32"])}})
            task = gb.spawn(instance.exports.host, x)
            if turn % 2:
                native.join_task(task._fiber, 0)
            del instance, task
        last = make()
        assert gb.spawn(last.add, 1, 2).join() == 3
    # Whoever ran them may be about to let go.
    for _ in range(1000):
        gc.collect()
        if alive == 0:
            break
    assert alive == 0


def test_value_stacks_are_given_back(make: Make) -> None:
    """A stack that was used deeply is trimmed, and right when it is used again."""
    exports = make()
    for _ in range(10):
        task = gb.spawn(exports.deep, 15_000)
        assert task.join() == 15_000
        used = at(layout.Task, at(Fiber, task._fiber).task)
        assert used.soft > used.stack + 15_000 * layout.SLOT
        del task
        assert gb.spawn(exports.add, 1, 2).join() == 3


WAITS = """(module (import "h" "f" (func $f (param i32) (result i32)))
 (func (export "twice") (param i32) (result i32) (i32.mul (i32.const 2) (call $f (local.get 0)))))"""


def waiting_guests(host: Any, count: int) -> list[gb.Task]:
    module = gb.Module.from_wat(WAITS)
    function = gb.Function(host, ["i32"], ["i32"])
    return [gb.spawn(module.instantiate({"h": {"f": function}}).exports.twice, i) for i in range(count)]


def test_host_functions_that_wait_do_not_use_up_the_workers() -> None:
    from tests.tasks import kernels

    def through_task(x: int) -> int:
        gb.spawn(kernels.chain, 2).join()
        return x

    channel = gb.Channel(gb.i64)

    def through_channel(x: int) -> int:
        if x % 2:
            channel.send(x)
            return x
        return int(channel.recv()) * 0 + x

    def through_gather(x: int) -> int:
        gb.gather(gb.spawn(kernels.chain, 1), gb.spawn(kernels.chain, 2))
        return x

    with gb.Runtime(2):
        for host in (through_task, through_channel, through_gather):
            assert gb.gather(*waiting_guests(host, 12)) == [2 * i for i in range(12)]


def test_what_waits_in_a_host_function_can_be_cancelled_and_closed() -> None:
    channel = gb.Channel(gb.i64)

    def host(x: int) -> int:
        return int(channel.recv())

    with gb.Runtime(2):
        tasks = waiting_guests(host, 5)
        tasks[0].cancel()
        with pytest.raises(gb.Cancelled):
            tasks[0].join()
    for task in tasks[1:]:
        with pytest.raises(gb.Cancelled):
            task.join()
