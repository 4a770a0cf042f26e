"""Guests in several threads: they run without the GIL, and nothing that they share breaks."""

import gc
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import greenbeat as gb

COUNTER = """(module
  (memory (export "memory") 1)
  (func (export "count")
    (loop $l
      (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
      (br_if $l (i32.eqz (i32.load (i32.const 8)))))))"""


@pytest.fixture
def no_switches() -> Iterator[None]:
    """A thread that has the GIL keeps it until it gives it up."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def advanced(exports: Any, seen: list[int]) -> bool:
    """Whether a counter has moved often."""
    now = int.from_bytes(exports.memory.read(0, 8), "little")
    if not seen or now != seen[-1]:
        seen.append(now)
    return len(seen) > 50


def both_advance(counters: list[Any]) -> bool:
    """Whether all counters move while this thread has the GIL; they are told to stop."""
    seen: list[list[int]] = [[] for _ in counters]
    moved = [False]
    while not all(moved):
        moved = [advanced(exports, numbers) for exports, numbers in zip(counters, seen, strict=True)]
    for exports in counters:
        exports.memory.write(8, b"\1")
    return True


def started(exports: Any) -> None:
    """Wait until a counter runs without the GIL: others get it then."""
    while not any(exports.memory.read(0, 8)):
        threading.Event().wait(0.001)


def test_threads_run_in_parallel(no_switches: None) -> None:
    counters = [gb.Module.from_wat(COUNTER).instantiate().exports for _ in range(2)]
    threads = [threading.Thread(target=exports.count) for exports in counters]
    for thread, exports in zip(threads, counters, strict=True):
        thread.start()
        started(exports)
    assert both_advance(counters)
    for thread in threads:
        thread.join()


def test_tasks_run_in_parallel(no_switches: None) -> None:
    with gb.Runtime(workers=2):
        counters = [gb.Module.from_wat(COUNTER).instantiate().exports for _ in range(2)]
        tasks = [gb.spawn(exports.count) for exports in counters]
        for exports in counters:
            started(exports)
        assert both_advance(counters)
        for task in tasks:
            task.join()


def test_objects_keep_the_gil() -> None:
    """A guest whose values may be Python objects lets others run at beats only."""
    text = """(module (func (export "same") (param externref i32) (result externref)
      (loop $l (br_if $l (local.tee 1 (i32.sub (local.get 1) (i32.const 1))))) (local.get 0)))"""
    results: list[bool] = []

    def run() -> None:
        exports = gb.Module.from_wat(text).instantiate().exports
        for _ in range(20):
            thing = object()
            results.append(exports.same(thing, 200_000) is thing)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80


def test_a_signal_arrives_without_the_gil() -> None:
    exports = gb.Module.from_wat('(module (func (export "f") (loop $l (br $l))))').instantiate().exports

    def interrupt(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.08)
            with pytest.raises(TimeoutError):
                exports.f()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_host_functions_between_beats() -> None:
    """Host functions, exceptions, nested calls and other threads take turns with the GIL."""
    text = """(module (import "h" "f" (func $f (param i32) (result i32)))
      (func $spin (export "spin") (param i32) (result i32)
        (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) (i32.const 1))
      (func (export "run") (param i32) (result i32) (local i32)
        (loop $l
          (drop (call $spin (i32.const 400000)))
          (local.set 1 (i32.add (local.get 1) (call $f (local.get 0))))
          (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 1)))"""

    def run(results: list[Any]) -> None:
        def f(x: int) -> int:
            if x % 8 == 0:
                raise LookupError(x)
            return int(exports.spin(300_000))

        exports = gb.Module.from_wat(text).instantiate({"h": {"f": f}}, limits=gb.Limits(fuel=1 << 40)).exports
        results.append(exports.run(7))
        with pytest.raises(LookupError):
            exports.run(12)

    results: list[Any] = []
    threads = [threading.Thread(target=run, args=(results,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [7, 7, 7]


SHARED = """(module
  (import "h" "memory" (memory 1 1000))
  (import "h" "table" (table $t 1 100000 funcref))
  (type $n (func (param i32) (result i32)))
  (elem declare func $one)
  (func $one (type $n) (i32.add (local.get 0) (i32.const 1)))
  (func (export "work") (param i32) (result i32) (local i32 i32)
    (local.set 2 (table.grow $t (ref.func $one) (i32.const 1)))
    (loop $l
      (local.set 1 (call_indirect $t (type $n) (local.get 1) (local.get 2)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (drop (memory.grow (i32.const 1)))
    (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (local.get 1))
    (local.get 1)))"""


def test_instances_that_share_a_memory_and_a_table() -> None:
    module = gb.Module.from_wat(SHARED)
    owner = gb.Module.from_wat(
        '(module (memory (export "memory") 1 1000) (table (export "table") 1 100000 funcref))'
    ).instantiate()
    shared = {"memory": owner.exports.memory, "table": owner.exports.table}
    everything = [module.instantiate({"h": shared}).exports for _ in range(8)]
    for _ in range(30):
        tasks = [gb.spawn(exports.work, 20_000) for exports in everything]
        for task in tasks:
            assert task.join() == 20_000
    assert len(owner.exports.table) == 241
    assert len(owner.exports.memory) == 241 * 65536


def test_two_threads_translate_one_module() -> None:
    """Many functions, called first by several threads at once, through cells that all of them link."""
    count = 300
    functions = "".join(
        f"(func $f{i} (param i32) (result i32) (i32.add (local.get 0) "
        + (f"(call $f{i + 1} (i32.const {i}))" if i + 1 < count else "(i32.const 0)")
        + "))"
        for i in range(count)
    )
    for _ in range(20):
        module = gb.Module.from_wat(f'(module {functions} (export "f" (func $f0)))')
        everything = [module.instantiate().exports for _ in range(6)]
        tasks = [gb.spawn(exports.f, 0) for exports in everything]
        assert {task.join() for task in tasks} == {sum(range(count - 1))}


STRESS = """(module
  (import "h" "f" (func $f (param i32) (result i32)))
  (memory (export "memory") 1 200)
  (table $t 1 1000 funcref)
  (func $spin (param i32) (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "run") (param i32) (result i32)
    (call $spin (i32.mul (local.get 0) (i32.const 1000)))
    (drop (memory.grow (i32.const 1)))
    (drop (table.grow $t (ref.null func) (i32.const 3)))
    (i32.store (i32.mul (local.get 0) (i32.const 64)) (local.get 0))
    (i32.add (call $f (local.get 0)) (i32.load (i32.mul (local.get 0) (i32.const 64)))))
  (func (export "trap") (result i32) (i32.load (i32.const -1)))
  (func $deep (export "deep") (call $deep)))"""


def test_stress() -> None:
    """Threads, tasks, fuel, growth, traps, closing, cancelling, and the garbage collector, all at once."""
    module = gb.Module.from_wat(STRESS)
    problems: list[BaseException] = []

    def f(x: int) -> int:
        if x % 7 == 0:
            raise LookupError(x)
        return x

    def attempt(action: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return action(*arguments)
        except (gb.Trap, gb.Exhausted, gb.Cancelled, LookupError):
            return None
        except gb.GreenbeatError as error:
            if "closed" not in str(error) and "one call at a time" not in str(error):
                raise
            return None

    def turn(chance: random.Random) -> None:
        fuel = chance.choice((None, 10_000, 10**8))
        limits = gb.Limits(fuel=fuel, seconds=chance.choice((None, 0.001, 10)))
        instance = module.instantiate({"h": {"f": f}}, limits=limits)
        exports = instance.exports
        tasks: list[gb.Task | None] = []
        for _ in range(chance.randrange(1, 6)):
            match chance.randrange(7):
                case 0 | 1:
                    attempt(exports.run, chance.randrange(1, 50))
                case 2 | 3:
                    tasks.append(attempt(gb.spawn, exports.run, chance.randrange(1, 50)))
                case 4:
                    attempt(exports.trap)
                case 5:
                    tasks.append(attempt(gb.spawn, exports.deep))
                case _:
                    instance.close()
        for task in filter(None, tasks):
            if chance.random() < 0.3:
                task.cancel()
            if chance.random() < 0.8:
                attempt(task.join)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for _ in range(60):
                turn(chance)
                if chance.random() < 0.1:
                    gc.collect()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_closing_while_it_runs() -> None:
    """The call that runs goes on to its end; no other begins."""
    inside, go_on = threading.Event(), threading.Event()

    def f(x: int) -> int:
        inside.set()
        assert go_on.wait(30)
        return x

    instance = gb.Module.from_wat(STRESS).instantiate({"h": {"f": f}})
    task = gb.spawn(instance.exports.run, 5)
    assert inside.wait(30)
    instance.close()
    with pytest.raises(gb.GreenbeatError):
        instance.exports.trap()
    go_on.set()
    assert task.join() == 10
    with pytest.raises(gb.GreenbeatError, match="closed"):
        instance.exports.trap()


def test_forks_beside_guests() -> None:
    """Children begin in the middle of growth and translation; they can grow, translate, and run what the parent ran."""
    text = """(module (memory 1 60000) (func $grow (drop (memory.grow (i32.const 1))))
      (func (export "run") (loop $l (call $grow) (br $l)))
      (func (export "size") (result i32) (memory.size)))"""
    module = gb.Module.from_wat(text)
    instance = module.instantiate()
    task = gb.spawn(instance.exports.run)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            good = instance.exports.size() >= 1 and module.instantiate().exports.size() == 1
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
    task.cancel()
    with pytest.raises(gb.Cancelled):
        task.join()
