"""Runtime: one at a time, and every task ends or goes on in the next."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import greenbeat as gb
from tests.tasks.kernels import chain, forever, wait


def test_a_runtime_made_by_hand() -> None:
    with gb.Runtime(workers=3) as runtime:
        assert repr(runtime) == "<greenbeat.Runtime of 3 workers>"
        assert gb.gather(*(gb.spawn(chain, n) for n in range(30))) == list(range(30))
        with pytest.raises(RuntimeError, match="there is a runtime already: close it first"):
            gb.Runtime()
    assert repr(runtime) == "<greenbeat.Runtime of 3 workers, closed>"
    runtime.close()
    assert gb.spawn(chain, 3).join() == 3
    with gb.Runtime(1) as runtime:
        assert repr(runtime) == "<greenbeat.Runtime of 1 worker>"


def test_a_closed_runtime_is_not_entered() -> None:
    runtime = gb.Runtime(workers=1)
    with runtime:
        pass
    with pytest.raises(RuntimeError, match=r"closed> cannot be entered again: make a new one, .*Runtime\(workers=1\)"):
        runtime.__enter__()
    # One that was made in its place is as closed as that.
    with gb.Runtime(workers=2), pytest.raises(RuntimeError, match="cannot be entered again"):
        runtime.__enter__()


@pytest.mark.parametrize(
    ("workers", "error"), [("2", TypeError), (True, TypeError), (0, ValueError), (129, ValueError), (-1, ValueError)]
)
def test_numbers_are_checked(workers: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="workers"):
        gb.Runtime(workers)


def test_pinned_workers() -> None:
    with gb.Runtime(2, pin=True):
        assert gb.spawn(chain, 3).join() == 3


def test_closing_cancels_what_runs_and_keeps_what_waits() -> None:
    channel: gb.Channel[int] = gb.Channel(int, 1)
    with gb.Runtime(2):
        waiting = gb.spawn(wait, channel)
        with pytest.raises(TimeoutError):
            waiting.join(0.1)
        running = [gb.spawn(forever) for _ in range(20)]
    for task in running:
        with pytest.raises(gb.Cancelled):
            task.join(60)
    channel.send(3)
    with gb.Runtime(1):
        assert waiting.join(60) == 3


def test_runtimes_in_turn_while_others_spawn() -> None:
    over = threading.Event()
    problems: list[BaseException] = []

    def spawn_all_the_time() -> None:
        while not over.is_set():
            try:
                gb.spawn(chain, 3).join(60)
            except gb.Cancelled:
                pass
            except BaseException as problem:
                problems.append(problem)
                return

    threads = [threading.Thread(target=spawn_all_the_time) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        try:
            gb.Runtime(2).close()
        except RuntimeError as problem:
            problems.append(problem)
    over.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert problems == []


async def _awaited(task: gb.Task) -> object:
    return await task


@pytest.mark.parametrize(
    "join", [gb.Task.join, lambda task: gb.gather(task)[0], lambda task: asyncio.run(_awaited(task))]
)
def test_who_joins_a_task_that_waits_in_no_runtime_makes_one(join: Callable[[gb.Task], object]) -> None:
    channel = gb.Channel(gb.i64)
    with gb.Runtime(1):
        waiting = gb.spawn(wait, channel)
        with pytest.raises(TimeoutError):
            waiting.join(0.1)
    channel.send(3)
    assert join(waiting) == 3
