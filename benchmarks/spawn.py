"""What a task costs: spawn one that sends () on a shared channel, and receive it.

    python -m benchmarks.spawn
    python -m benchmarks.spawn --parked 1000000

Each way to do it is measured in turn, and its best round is shown, in nanoseconds a turn. For Greenbeat's tasks the
table has a line with the cache of stacks and one without, where each stack's memory goes back to the system. `--parked`
keeps so many tasks waiting at once, and shows what memory each takes.
"""

import _thread
import argparse
import asyncio
import importlib
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import greenbeat as gb
from benchmarks import report
from greenbeat.api.bridge import native
from greenbeat.native import addressof, build, native as native_function, ptr, static, u64
from greenbeat.tasks.layout import SPAWNED, Fiber, Worker
from greenbeat.tasks.stacks import new_fiber
from greenbeat.tasks.switch import switch

GO = Path(__file__).with_name("spawning.go")
ROUNDS = 5


@gb.kernel
def report_done(done: gb.Channel[None]) -> None:
    """The task."""
    done.send()


@gb.kernel
def green_turns(done: gb.Channel[None], count: int) -> None:
    """Turns inside of a kernel."""
    for _ in range(count):
        gb.spawn(report_done, done)
        done.recv()


@gb.kernel
def wait(go: gb.Channel[None]) -> None:
    """A task that is parked."""
    go.recv()


@gb.kernel
def spawn_parked(go: gb.Channel[None], count: int) -> None:
    """Spawn tasks that wait."""
    for _ in range(count):
        gb.spawn(wait, go)


@gb.kernel
def wake(go: gb.Channel[None], count: int) -> None:
    """Let so many of them end."""
    for _ in range(count):
        go.send()


def best(turns: Callable[[int], Any], count: int) -> float:
    """Nanoseconds of one turn, in the best round."""
    turns(count // 10 + 1)
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        turns(count)
        rounds.append((time.perf_counter_ns() - start) / count)
    return min(rounds)


def from_python(count: int) -> None:
    """Greenbeat's tasks, spawned and received from by Python."""
    done: gb.Channel[None] = gb.Channel(None, 1)
    for _ in range(count):
        gb.spawn(report_done, done)
        done.recv()


def threads(count: int) -> None:
    """A `threading.Thread` and a queue."""
    done: queue.SimpleQueue[tuple[()]] = queue.SimpleQueue()
    for _ in range(count):
        threading.Thread(target=done.put, args=((),)).start()
        done.get()


def raw_threads(count: int) -> None:
    """The system's threads by the thinnest wrapper there is, and a queue."""
    done: queue.SimpleQueue[tuple[()]] = queue.SimpleQueue()
    for _ in range(count):
        _thread.start_new_thread(done.put, ((),))
        done.get()


def with_asyncio(count: int) -> None:
    """An asyncio task and a queue."""

    async def turns() -> None:
        done: asyncio.Queue[tuple[()]] = asyncio.Queue()
        for _ in range(count):
            task = asyncio.create_task(done.put(()))
            await done.get()
            await task

    asyncio.run(turns())


def with_greenlet(count: int) -> None:
    """A greenlet that puts into a list; the switch to it is the receive."""
    greenlet = importlib.import_module("greenlet").greenlet
    done: list[tuple[()]] = []
    for _ in range(count):
        greenlet(done.append).switch(())
        done.pop()


def with_gevent(count: int) -> None:
    """A gevent task and its queue."""
    gevent, channel = importlib.import_module("gevent"), importlib.import_module("gevent.queue").SimpleQueue()
    for _ in range(count):
        gevent.spawn(channel.put, ())
        channel.get()


def with_go(count: int) -> float:
    """Goroutines; nanoseconds a turn."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "spawning")
        subprocess.run(["go", "build", "-o", program, str(GO)], check=True, capture_output=True)
        found = subprocess.run([program, str(count)], check=True, capture_output=True, text=True).stdout
    return min(map(float, found.split()))


# ---------------------------------------------------------------- the switch itself

_worker = static(Worker)


@native_function(attributes="noredzone")
def _answer(fiber: ptr[Fiber]) -> None:
    while True:
        switch(addressof(fiber.stack_pointer), fiber.worker.scheduler, fiber)


@native_function(attributes="noredzone")
def _switch_turns(count: u64) -> None:
    fiber = new_fiber(_worker, SPAWNED, _answer, 2, 1)
    fiber.worker = _worker
    for _ in range(count):
        switch(addressof(_worker.scheduler), fiber.stack_pointer, fiber)


# ---------------------------------------------------------------- parked tasks


def resident() -> int:
    """Bytes of this process's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def parked(count: int) -> None:
    """Let so many tasks wait at once."""
    go: gb.Channel[None] = gb.Channel(None)
    spawn_parked(go, 10)
    before, start = resident(), time.perf_counter()
    spawn_parked(go, count)
    done: gb.Channel[None] = gb.Channel(None)
    green_turns(done, 1)
    # The last ones may still be on their way to where they wait.
    deadline = time.monotonic() + 60
    while (used := resident() - before) < count * 4096 * 0.99 and time.monotonic() < deadline:
        time.sleep(0.05)
    took = time.perf_counter() - start
    print(f"{count} parked kernels: {used / count:.0f} bytes each, {took:.2f} s to spawn and park them")
    start = time.perf_counter()
    wake(go, count + 10)
    took = time.perf_counter() - start
    deadline = time.monotonic() + 60
    while resident() - before > used // 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    print(f"waking them: {took:.2f} s; {(resident() - before) / count:.0f} bytes of each are kept for later ones")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parked", type=int, metavar="TASKS", help="keep so many tasks waiting, and show their memory")
    options = parser.parse_args()
    print(report.machine())
    if options.parked:
        parked(options.parked)
        return
    peers: dict[str, float] = {}
    for name, turns, count in (
        ("native (threading)", threads, 3_000),
        ("raw (_thread)", raw_threads, 3_000),
        ("greenlet", with_greenlet, 100_000),
        ("gevent", with_gevent, 30_000),
        ("asyncio", with_asyncio, 30_000),
    ):
        try:
            peers[name] = best(turns, count)
        except ImportError as problem:
            print(f"{name} is left out: {problem}")
    if shutil.which("go"):
        peers["Go"] = with_go(1_000_000)
    else:
        print("Go is left out: it is not installed")
    done: gb.Channel[None] = gb.Channel(None)
    rows = []
    for title, cache in (("without the cache of stacks", 0), ("with it", 1)):
        native.set_stack_cache(cache)
        # In a kernel with one worker: before anything makes a runtime, the caller runs everything.
        green = best(lambda count: green_turns(done, count), 1_000_000 if cache else 20_000)
        rows.append([title, f"{green:.1f}", *(f"{value:.0f}" for value in peers.values())])
    print(report.table(["ns a turn", "green", *peers], rows))
    print(f"green, spawned and received by Python: {best(from_python, 20_000):.0f} ns")
    library = build([_switch_turns])
    turns = library.function(_switch_turns)
    print(f"a switch to another stack and back: {best(turns, 10_000_000):.1f} ns")
    print(report.table(["times green's", *peers], [["", *(f"{value / green:.1f}" for value in peers.values())]]))


if __name__ == "__main__":
    main()
