"""Guests that wait: many at once on one event loop, each in an instance of its own, in the middle of a coroutine.

    python -m benchmarks.waiting
    python -m benchmarks.waiting --guests 20000

Every guest calls a host function that is a coroutine function, which waits until all guests do. Shown is what one guest
takes then: memory, of which two pages are its stack's, and time from the call to its result. Beside it stands an
asyncio task that waits for the same coroutine without any guest.
"""

import argparse
import asyncio
import ctypes
import time
from functools import partial
from pathlib import Path
from typing import Any

import greenbeat as gb
from benchmarks import report
from benchmarks.isolation import Worker
from greenbeat.api.bridge import at
from greenbeat.tasks.layout import STACK_SIZES, Fiber

PROGRAM = """(module
  (import "host" "wait" (func $wait (param i32) (result i32)))
  (func (export "run") (param i32) (result i32) (i32.add (call $wait (local.get 0)) (i32.const 1))))"""
PAGE = 4096


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def stack_bytes(fiber: int) -> int:
    """Bytes of memory that a fiber's slot has."""
    found = at(Fiber, fiber)
    size = STACK_SIZES[found.size_class]
    places = (ctypes.c_ubyte * (size // PAGE))()
    if ctypes.CDLL(None).mincore(ctypes.c_void_p(found.stack), ctypes.c_size_t(size), places) != 0:
        raise OSError("mincore failed")
    return sum(place & 1 for place in places) * PAGE


class Meeting:
    """Everybody waits until all are there."""

    def __init__(self, count: int) -> None:
        self.missing, self.complete, self.leave = count, asyncio.Event(), asyncio.Event()

    async def wait(self, number: int) -> int:
        """Wait for the others."""
        self.missing -= 1
        if not self.missing:
            self.complete.set()
        await self.leave.wait()
        return number


class Waiting:
    """One way to wait, in a process of its own."""

    def __init__(self, way: str, count: int) -> None:
        self.way, self.count = way, count

    def measure(self) -> tuple[float, float, float]:
        """For each of many: bytes of memory, bytes of that in its stack, and seconds."""
        return asyncio.run(self._measure())

    async def _measure(self) -> tuple[float, float, float]:
        meeting = Meeting(self.count)
        module = gb.Module.from_wat(PROGRAM)
        exports = [module.instantiate({"host": {"wait": meeting.wait}}).exports for _ in range(self.count)]
        # What is used by all of them, such as workers, is there already.
        await gb.Module.from_wat('(module (func (export "f")))').instantiate().exports.f.aio()
        before, start = resident(), time.perf_counter()
        waiting: list[Any] = []
        match self.way:
            case "asyncio task":
                waiting = [asyncio.ensure_future(meeting.wait(number)) for number in range(self.count)]
            case "guest, by .aio":
                waiting = [asyncio.ensure_future(each.run.aio(number)) for number, each in enumerate(exports)]
            case _:
                waiting = [gb.spawn(each.run, number) for number, each in enumerate(exports)]
        await meeting.complete.wait()
        # A guest parks after it has said that it waits.
        await asyncio.sleep(0.1)
        grown = resident() - before
        stacks = sum(stack_bytes(each._fiber) for each in waiting if isinstance(each, gb.Task))
        start += 0.1
        meeting.leave.set()
        await asyncio.gather(*waiting)
        return grown / self.count, stacks / self.count, (time.perf_counter() - start) / self.count


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guests", type=int, default=10_000, help="how many wait at once (default 10000)")
    count: int = parser.parse_args().guests
    print(report.machine())
    rows = []
    for way in ("asyncio task", "guest, by .aio", "spawned guest"):
        with Worker(partial(Waiting, way, count)) as worker:
            size, stack, seconds = worker.call("measure")
        rows.append((way, f"{size / 1024:.1f}", f"{stack / 1024:.1f}" if stack else "", f"{seconds * 1e6:.1f}"))
    print(report.table((f"{count} at once", "KiB each", "in its stack", "microseconds each"), rows))


if __name__ == "__main__":
    main()
