"""From a trace to the program that the simulation runs."""

from collections.abc import Iterator
from typing import Any

import pytest

import greenbeat as gb
from benchmarks.forkjoin.heartbeat import Fork, Program, Sequence, Work, simulate, span_of, work_of
from benchmarks.forkjoin.recorded import program_of
from greenbeat.api.bridge import native


def running(task: int, start: float, end: float, track: int = 0) -> dict[str, Any]:
    """A slice, in microseconds."""
    arguments = {"task": task, "end": "done"}
    return {"ph": "X", "cat": "task", "ts": start, "dur": end - start, "tid": track, "args": arguments}


def instant(name: str, time: float, task: int, child: int, track: int = 0) -> dict[str, Any]:
    """Something that happens, in microseconds."""
    return {"ph": "i", "name": name, "ts": time, "tid": track, "args": {"task": task, "child": child}}


def works(program: Program) -> list[float]:
    """The time of all pieces, in order."""
    match program:
        case Work(time):
            return [time]
        case Sequence(parts):
            return [time for part in parts for time in works(part)]
        case Fork(left, right):
            return [*works(left), *works(right)]
    raise AssertionError(program)


def test_nested_forks() -> None:
    events = [
        running(1, 0, 30),
        instant("promotion", 1, 1, 2),
        instant("promotion", 3, 1, 3),
        running(2, 5, 11, track=1),
        running(3, 12, 14, track=1),
        instant("join", 17, 1, 3),
        instant("join", 20, 1, 2),
    ]
    found = program_of(events)
    assert works(found) == [1000, 2000, 14_000, 2000, 3000, 6000, 10_000]
    assert work_of(found) == 38_000
    assert span_of(found) == 30_000


def test_what_is_taken_back_or_never_joined_is_no_fork() -> None:
    events = [
        running(1, 0, 10),
        instant("promotion", 1, 1, 2),
        instant("promotion", 2, 1, 3),
        instant("unfork", 3, 1, 3),
        instant("promotion", 4, 1, 4),
        running(4, 5, 6, track=1),
        instant("join", 7, 1, 4),
        instant("unfork", 8, 1, 2),
    ]
    found = program_of(events)
    assert work_of(found) == 11_000
    assert span_of(found) == 10_000


def test_a_task_that_waits_does_not_work() -> None:
    events = [
        running(1, 0, 4),
        instant("promotion", 2, 1, 2),
        running(2, 4, 9),
        running(1, 9, 10),
        instant("join", 9.5, 1, 2),
    ]
    found = program_of(events, whole=20_000)
    assert work_of(found) == 20_000
    assert span_of(found) == pytest.approx((2 + 5 + 0.5) * 2000)


@gb.kernel
def fib(n: int) -> int:
    if n < 2:
        return n
    x, y = gb.par(fib(n - 1), fib(n - 2))
    return x + y


@pytest.fixture
def kept() -> Iterator[None]:
    """One worker, whose promotions are not taken back."""
    with gb.Runtime(1):
        native.keep_promoted(1)
        yield
        native.keep_promoted(0)


def test_a_real_trace(kept: None) -> None:
    fib(20)
    with gb.trace(events=1 << 20) as trace:
        fib(31)
    assert trace.timeline is not None
    summary = trace.timeline.summary()
    found = program_of(trace.timeline.events)
    assert work_of(found) == pytest.approx(summary.work * 1e3, rel=1e-3)
    assert span_of(found) == pytest.approx(summary.span * 1e3, rel=0.05)
    assert simulate(found, 1).time >= work_of(found)
