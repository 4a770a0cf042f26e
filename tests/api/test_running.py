"""What happens while guests run: fuel, resumption, deadlines, Ctrl-C, threads, forks."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.api.bridge import native
from tests.api.conftest import Make

SOURCE = str(Path(gb.__file__).parents[1])
LOOPS = """(module
  (import "env" "f" (func $f (param i32) (result i32)))
  (func (export "forever") (loop $l (br $l)))
  (func $even (export "even") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 1)) (else (call $odd (i32.sub (local.get 0) (i32.const
    1))))))
  (func $odd (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 0)) (else (call $even (i32.sub (local.get 0) (i32.const
    1))))))
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0)) (else
      (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func (export "count") (param i32) (result i32) (local i32)
    (loop $l (local.set 1 (i32.add (local.get 1) (i32.const 1))) (br_if $l (i32.lt_u (local.get 1) (local.get 0))))
    (local.get 1))
  (func (export "each") (param i32) (result i32) (local i32)
    (loop $l (local.set 1 (i32.add (local.get 1) (call $f (i32.const 1))))
      (br_if $l (i32.lt_u (local.get 1) (local.get 0))))
    (local.get 1))
  (func (export "trap") (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0))))"""


@pytest.fixture(name="exports")
def make_exports(make: Make) -> Any:
    return make(LOOPS, {"env": {"f": lambda x: x}}).exports


def run(code: str, timeout: float = 200) -> str:
    """The output of a Python program in a process of its own."""
    program = f"import greenbeat as gb\nLOOPS = {LOOPS!r}\n" + textwrap.dedent(code)
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---------------------------------------------------------------- fuel


def test_fuel_is_exact(make: Make) -> None:
    def used(name: str, *arguments: int) -> int:
        instance = make(LOOPS, {"env": {"f": lambda x: x}}, fuel=10**9)
        instance.exports[name](*arguments)
        assert instance.fuel is not None
        return 10**9 - instance.fuel

    cost = used("count", 1000)
    assert cost == used("count", 1000) > 1000
    assert used("count", 2000) - cost == cost - used("count", 0) - (used("count", 1) - used("count", 0)) + (
        used("count", 1001) - cost
    )
    exact = make(LOOPS, {"env": {"f": lambda x: x}}, fuel=cost)
    assert exact.exports.count(1000) == 1000 and exact.fuel == 0
    short = make(LOOPS, {"env": {"f": lambda x: x}}, fuel=cost - 1)
    with pytest.raises(gb.Exhausted, match="out of fuel") as caught:
        short.exports.count(1000)
    assert caught.value.resource == "fuel"
    assert short.fuel is not None and 0 <= short.fuel < cost
    short.fuel = cost
    assert short.exports.count(1000) == 1000


def test_fuel_of_nested_calls(make: Make) -> None:
    def f(x: int) -> int:
        seen.append(instance.fuel)
        if x == 1 and nested:
            instance.exports.count(500)
        return x

    seen: list[Any] = []
    nested = False
    instance = make(LOOPS, {"env": {"f": f}}, fuel=10**6)
    instance.exports.count(500)
    count_cost = 10**6 - (instance.fuel or 0)
    instance.fuel = 10**6
    instance.exports.each(1)
    plain_cost = 10**6 - (instance.fuel or 0)
    instance.fuel = 10**6
    nested = True
    instance.exports.each(1)
    assert 10**6 - (instance.fuel or 0) == plain_cost + count_cost
    assert all(0 < left <= 10**6 for left in seen)


def test_fuel_of_a_host_function_that_raises(make: Make) -> None:
    def f(x: int) -> int:
        instance.exports.count(500)
        left.append(instance.fuel)
        raise KeyError

    left: list[Any] = []
    instance = make(LOOPS, {"env": {"f": f}}, fuel=10**6)
    with pytest.raises(KeyError):
        instance.exports.each(1)
    assert instance.fuel == left[0]


def test_fuel_given_and_taken_by_a_host_function(make: Make) -> None:
    def f(x: int) -> int:
        instance.fuel = 50
        return x

    instance = make(LOOPS, {"env": {"f": f}}, fuel=60)
    assert instance.exports.each(1000) == 1000
    assert make(LOOPS, {"env": {"f": f}}).fuel is None


def test_signal_handlers_may_call_the_instance(make: Make) -> None:
    def handle(*_: object) -> None:
        left.append(instance.fuel)
        instance.exports.count(1000)
        left.append(instance.fuel)
        raise TimeoutError

    left: list[Any] = []
    instance = make(LOOPS, {"env": {"f": lambda x: x}}, fuel=10**12)
    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(TimeoutError):
            instance.exports.forever()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert 10**12 > left[0] > left[1] >= (instance.fuel or 0)


def test_another_thread_gives_memory_and_fuel(make: Make) -> None:
    text = """(module (memory (export "memory") 1 4)
      (func (export "wait") (result i32)
        (loop $l (br_if $l (i32.eq (memory.size) (i32.const 1))))
        (loop $l (br_if $l (i32.eqz (i32.load8_u (i32.const 70000)))))
        (i32.load8_u (i32.const 70000))))"""
    for guard in (0, 1):
        before = native.set_guard_pages(guard)
        instance = make(text, fuel=10**10)
        native.set_guard_pages(before)

        def give(instance: gb.Instance = instance) -> None:
            time.sleep(0.05)
            instance.exports.memory.grow(1)
            instance.exports.memory.write(70_000, b"*")
            instance.fuel = 10**6

        thread = threading.Thread(target=give)
        thread.start()
        assert instance.exports.wait() == ord("*")
        thread.join()
        assert (instance.fuel or 0) <= 10**6


# ---------------------------------------------------------------- resumable calls


def test_resume(exports: Any) -> None:
    call = exports.count.start(10_000)
    assert not call.done and repr(call) == "<greenbeat.Call of count, ready>"
    with pytest.raises(gb.GreenbeatError, match="no result"):
        _ = call.result
    turns = 0
    while not call.done:
        assert call.resume(fuel=1000) is call.done
        assert exports.count(3) == 3
        turns += 1
    assert call.result == 10_000 and 10 < turns < 200
    with pytest.raises(gb.GreenbeatError, match="finished"):
        call.resume()
    whole = exports.fib.start(12)
    assert whole.resume() and whole.result == 144
    for fuel in (0, -1, 2**63):
        with pytest.raises(ValueError, match="from 1 to"):
            exports.fib.start(1).resume(fuel=fuel)


def test_little_fuel_adds_up(exports: Any) -> None:
    call = exports.count.start(3)
    turns = 1
    while not call.resume(fuel=1):
        turns += 1
    assert call.result == 3 and turns >= 3


def test_many_calls_at_once(exports: Any) -> None:
    calls = [exports.fib.start(n) for n in range(15)] * 1
    waiting = list(calls)
    while waiting:
        for call in list(waiting):
            if call.resume(fuel=50):
                waiting.remove(call)
    assert [call.result for call in calls] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377]


def test_start_checks_arguments(exports: Any) -> None:
    with pytest.raises(TypeError, match="takes 1 argument, not 2"):
        exports.fib.start(1, 2)
    with pytest.raises(TypeError, match="argument 1 of fib"):
        exports.fib.start("x")
    with pytest.raises(TypeError, match="host function"):
        gb.Function(lambda: None, [], []).start()


def test_a_call_that_an_exception_ended_is_over(make: Make) -> None:
    def f(x: int) -> int:
        raise KeyError("mine")

    exports = make(LOOPS, {"env": {"f": f}}).exports
    for name, error in (("each", KeyError), ("trap", gb.Trap)):
        call = exports[name].start(0)
        with pytest.raises(error):
            call.resume()
        assert call.done and "failed" in repr(call)
        with pytest.raises(gb.GreenbeatError, match="failed"):
            call.resume()
        with pytest.raises(gb.GreenbeatError, match="failed"):
            _ = call.result


def test_resumption_uses_the_instances_fuel(make: Make) -> None:
    instance = make(LOOPS, {"env": {"f": lambda x: x}}, fuel=5000)
    call = instance.exports.count.start(10_000)
    assert not call.resume(fuel=1000)
    assert instance.fuel is not None and 4000 <= instance.fuel < 4100
    for _ in range(3):
        with pytest.raises(gb.Exhausted, match="out of fuel"):
            call.resume()
        assert not call.done and 0 <= instance.fuel < 20
    instance.fuel = 10**6
    assert call.resume() and call.result == 10_000


def test_resumable_calls_in_host_functions(make: Make) -> None:
    def f(x: int) -> int:
        if x > 1:
            return x
        call = exports.fib.start(10)
        while not call.resume(fuel=100):
            assert exports.count(10) == 10
        assert call.result == 55
        return x

    exports = make(LOOPS, {"env": {"f": f}}).exports
    outer = exports.each.start(20)
    while not outer.resume(fuel=40):
        pass
    assert outer.result == 20


def test_a_call_cannot_resume_itself(make: Make) -> None:
    def f(x: int) -> int:
        with pytest.raises(gb.GreenbeatError, match="running"):
            call.resume()
        return x

    exports = make(LOOPS, {"env": {"f": f}}).exports
    call = exports.each.start(3)
    assert call.resume() and call.result == 3


def test_abandoned_calls_give_their_stacks_back(exports: Any) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    for _ in range(300):
        exports.even.start(1000).resume(fuel=2000)
    before = resident()
    for _ in range(3000):
        exports.even.start(1000).resume(fuel=2000)
    assert resident() - before < 500


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("name", ["forever", "even", "fib"])
def test_deadline(make: Make, name: str) -> None:
    exports = make(LOOPS, {"env": {"f": lambda x: x}}, seconds=0.1, stack="64MiB").exports
    arguments = {"forever": (), "even": (10**9,), "fib": (60,)}[name]
    begin = time.perf_counter()
    with pytest.raises(gb.Exhausted) as caught:
        exports[name](*arguments)
    assert caught.value.resource in (("time", "stack") if name == "even" else ("time",))
    assert caught.value.backtrace[0].function in (name, "odd")
    assert time.perf_counter() - begin < 1.0
    assert exports.count(5) == 5


def test_deadline_of_resumable_calls(make: Make) -> None:
    exports = make(LOOPS, {"env": {"f": lambda x: x}}, seconds=0.1).exports
    call = exports.forever.start()
    begin = time.perf_counter()

    def resume_for_ever() -> None:
        while True:
            call.resume(fuel=100_000)

    with pytest.raises(gb.Exhausted, match="out of time"):
        resume_for_ever()
    assert 0.05 < time.perf_counter() - begin < 2.0


def test_inner_deadline_does_not_outlast_the_outer(make: Make) -> None:
    inner = make(LOOPS, {"env": {"f": lambda x: x}}, seconds=30)

    def f(x: int) -> int:
        inner.exports.forever()
        return x

    outer = make(LOOPS, {"env": {"f": f}}, seconds=0.1)
    begin = time.perf_counter()
    with pytest.raises(gb.Exhausted):
        outer.exports.each(1)
    assert time.perf_counter() - begin < 2.0


@pytest.mark.parametrize("name", ["forever", "fib"])
def test_ctrl_c(exports: Any, name: str) -> None:
    sent = 0.0

    def interrupt() -> None:
        nonlocal sent
        time.sleep(0.1)
        sent = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        exports[name](*([60] if name == "fib" else []))
    assert time.perf_counter() - sent < 0.5
    thread.join()
    assert exports.count(5) == 5


# ---------------------------------------------------------------- threads


def test_other_threads_go_on(exports: Any) -> None:
    counted = 0
    stop = False

    def count() -> None:
        nonlocal counted
        while not stop:
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    exports.fib(27)
    before = counted
    exports.count(10**8)
    assert counted > before
    stop = True
    thread.join()


def test_two_threads_in_one_instance(make: Make) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def f(x: int) -> int:
        inside.set()
        assert go_on.wait(10)
        return x

    instance = make(LOOPS, {"env": {"f": f}})
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(instance.exports.each(1)))
    thread.start()
    assert inside.wait(10)
    with pytest.raises(gb.GreenbeatError, match="running in another thread"):
        instance.exports.count(1)
    with pytest.raises(gb.GreenbeatError, match="running in another thread"):
        instance.exports.count.start(1).resume()
    go_on.set()
    thread.join()
    assert results == [1] and instance.exports.count(1) == 1


def test_many_threads(make: Make) -> None:
    results: list[int] = []

    def work() -> None:
        exports = make(LOOPS, {"env": {"f": lambda x: x}}).exports
        for _ in range(20):
            results.append(exports.fib(15))

    for _ in range(3):
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [610] * 480


def test_a_suspended_call_changes_threads(exports: Any) -> None:
    call = exports.fib.start(20)
    while not call.done:
        thread = threading.Thread(target=call.resume, args=(5000,))
        thread.start()
        thread.join()
    assert call.result == 6765


# ---------------------------------------------------------------- processes


def test_no_processor_time_when_nothing_runs() -> None:
    output = run("""
        import time
        e = gb.Module.from_wat(LOOPS).instantiate({"env": {"f": abs}}).exports
        e.fib(25)
        time.sleep(0.4)
        begin = time.process_time()
        time.sleep(1)
        print(time.process_time() - begin)
    """)
    assert float(output) < 0.02


def test_fork() -> None:
    output = run("""
        import os, threading, time
        m = gb.Module.from_wat(LOOPS)
        make = lambda: m.instantiate({"env": {"f": abs}}, limits=gb.Limits(seconds=0.2)).exports
        e = make()
        e.fib(25)
        stop = threading.Event()
        def other():
            exports = make()
            while not stop.is_set():
                exports.fib(10)
        thread = threading.Thread(target=other)
        thread.start()
        for attempt in range(5):
            child = os.fork()
            if child == 0:
                try:
                    e.forever()
                except gb.Exhausted:
                    os._exit(7 if e.fib(10) == 55 else 1)
                os._exit(2)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        thread.join()
        print(e.fib(10))
    """)
    assert output.split() == ["7"] * 5 + ["55"]


@pytest.mark.parametrize("moment", ["pass", "e.fib(20)", "thread.start()", "thread.start(); time.sleep(0.05)"])
def test_exit_at_any_moment(moment: str) -> None:
    for _ in range(3):
        run(f"""
            import threading, time
            e = gb.Module.from_wat(LOOPS).instantiate({{"env": {{"f": abs}}}}).exports
            thread = threading.Thread(target=e.forever, daemon=True)
            {moment}
        """)
