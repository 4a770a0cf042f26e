"""What guests run on when Python calls them: slots from the thread's cache."""

import ctypes
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.api.bridge import at, native
from greenbeat.runtime import layout
from greenbeat.tasks.layout import STACK_SIZES, Fiber
from greenbeat.tasks.slots import KEPT_VALUES, SHALLOW_CALLS

MODULE = """
(module
  (import "env" "f" (func $f (param i32) (result i32)))
  (func (export "host") (param i32) (result i32) (call $f (local.get 0)))
  (func $deep (export "deep") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0))
      (then (call $f (i32.const 0)))
      (else (i32.add (call $deep (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))))
  (func (export "trap") (param i32) (drop (call $f (local.get 0))) (unreachable)))
"""


def instance(f: Callable[[int], Any], **limits: Any) -> gb.Instance:
    """An instance whose functions call `f`."""
    return gb.Module.from_wat(MODULE).instantiate({"env": {"f": f}}, limits=gb.Limits(**limits))


def fiber_of(task: int) -> int:
    """The fiber of the slot that a task is in."""
    found: int = at(layout.Task, task).fiber
    return found


def test_calls_after_each_other_share_a_slot() -> None:
    seen = []

    def f(x: int) -> int:
        seen.append(native.current_task())
        return x

    made = instance(f)
    for number in range(20):
        assert made.exports.host(number) == number
        with pytest.raises(gb.Trap):
            made.exports.trap(number)
    assert len(set(seen)) == 1
    assert native.current_task() == 0


def test_a_nested_call_has_a_slot_of_its_own() -> None:
    seen = []

    def f(x: int) -> int:
        seen.append(native.current_task())
        return int(made.exports.host(x - 1)) + 1 if x else 0

    made = instance(f)
    assert made.exports.host(5) == 5
    assert len(set(seen)) == 6
    for outer, inner in pairwise(seen):
        assert at(layout.Task, inner).outer == outer
        assert at(layout.Task, inner).chain == seen[0]


def test_a_nested_call_has_the_whole_stack() -> None:
    def f(x: int) -> int:
        left.pop()
        return int(made.exports.deep(12_000)) if left else 0

    left = [0] * 5
    made = instance(f)
    assert made.exports.deep(12_000) == 60_000


def test_threads_have_slots_of_their_own() -> None:
    seen: set[int] = set()
    together = threading.Barrier(4)

    def f(x: int) -> int:
        seen.add(native.current_task())
        together.wait()
        return x

    threads = [threading.Thread(target=instance(f).exports.host, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="mincore differs elsewhere")
def test_memory_of_a_deep_call_is_given_back_later() -> None:
    fibers = set()

    def f(x: int) -> int:
        fibers.add(fiber_of(native.current_task()))
        return x

    def resident() -> int:
        (fiber,) = fibers
        found = at(Fiber, fiber)
        size = STACK_SIZES[found.size_class]
        places = (ctypes.c_ubyte * (size // 4096))()
        assert ctypes.CDLL(None).mincore(ctypes.c_void_p(found.stack), ctypes.c_size_t(size), places) == 0
        return sum(place & 1 for place in places)

    made = instance(f)
    for _ in range(3):
        made.exports.deep(12_000)
        made.exports.host(0)
    deep = resident()
    assert deep > 12_000 * 40 // 4096
    for _ in range(SHALLOW_CALLS):
        made.exports.host(0)
    assert resident() <= KEPT_VALUES // 4096 + 16 < deep


def test_large_stacks_and_small_ones() -> None:
    large = instance(lambda x: x, stack="64MiB")
    assert large.exports.deep(700_000) == 700_000
    small = instance(lambda x: x, stack="4KiB")
    with pytest.raises(gb.Exhausted, match="stack"):
        small.exports.deep(1000)
    assert small.exports.host(3) == 3


def test_a_suspended_call_borrows_a_slot() -> None:
    seen = []

    def f(x: int) -> int:
        seen.append(native.current_task())
        return x

    made = instance(f)
    call = made.exports.host.start(4)
    while not call.done:
        call.resume(fuel=1)
    assert call.result == 4
    made.exports.host(1)
    call_task, slot_task = seen
    assert call_task != slot_task
    assert at(layout.Task, call_task).fiber is None
