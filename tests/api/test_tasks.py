"""Task, gather, TaskGroup, and asyncio: what each promises, and each of its errors."""

import asyncio
import copy
import gc
import pickle
import threading
import time
import weakref
from typing import Any

import pytest

import greenbeat as gb
from tests.tasks.kernels import chain, collect, fail, forever, wait


def endless() -> Any:
    return gb.spawn(forever)


def settle(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


# ---------------------------------------------------------------- tasks


def test_a_task_tells_its_state() -> None:
    channel: gb.Channel[int] = gb.Channel(int)
    task = gb.spawn(wait, channel)
    assert repr(task) == "<greenbeat.Task wait, running>"
    assert not task.done
    assert not task.cancelled
    channel.send(5)
    assert task.join() == 5
    assert repr(task) == "<greenbeat.Task wait, finished>"
    failed = gb.spawn(fail, 1)
    with pytest.raises(ValueError, match="failed"):
        failed.join()
    assert repr(failed) == "<greenbeat.Task fail, failed>"
    assert isinstance(failed.exception(), ValueError)
    stopped = endless()
    stopped.cancel()
    with pytest.raises(gb.Cancelled):
        stopped.join()
    assert stopped.cancelled
    assert repr(stopped) == "<greenbeat.Task forever, cancelled>"
    stopped.cancel()


def test_what_has_not_ended_has_no_result() -> None:
    task = endless()
    for ask in (task.result, task.exception):
        with pytest.raises(RuntimeError, match=r"<greenbeat.Task forever, running> has not ended: join it first"):
            ask()
    with pytest.raises(TimeoutError, match="has not ended within 0.01 s"):
        task.join(0.01)
    with pytest.raises(TimeoutError):
        task.join(0)
    task.cancel()


@pytest.mark.parametrize(
    ("timeout", "error", "message"),
    [
        ("1", TypeError, "a timeout is a number of seconds or None, not str '1'"),
        (True, TypeError, "not bool True"),
        (-1, ValueError, "a timeout is at least 0 seconds: -1"),
        (float("nan"), ValueError, "nan"),
    ],
)
def test_timeouts_are_checked(timeout: Any, error: type[Exception], message: str) -> None:
    task = gb.spawn(chain, 0)
    with pytest.raises(error, match=message):
        task.join(timeout)
    assert task.join(float("inf")) == 0
    assert task.join(10**400) == 0


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(TypeError, match="spawn takes a kernel, .* not builtin_function_or_method"):
        gb.spawn(print, 1)


def test_tasks_are_not_copied() -> None:
    task = gb.spawn(chain, 0)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a greenbeat.Task cannot be pickled or copied"):
            way(task)
    task.join()


def test_many_threads_take_one_result() -> None:
    task, found = gb.spawn(chain, 20), list[Any]()
    threads = [threading.Thread(target=lambda: found.append(task.join())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [20] * 8


def test_a_task_that_nobody_holds_runs_on() -> None:
    channel: gb.Channel[int] = gb.Channel(int)
    done: gb.Channel[int] = gb.Channel(int, 1)
    gb.spawn(forward, channel, done)
    gc.collect()
    channel.send(3)
    assert done.recv(60) == 3


@gb.kernel
def forward(source: gb.Channel[gb.i64], target: gb.Channel[gb.i64]) -> None:
    target.send(source.recv())


def test_circles_are_collected() -> None:
    class Holder:
        task: Any = None
        me: Any = None

    holder = Holder()
    holder.task, holder.me = gb.spawn(chain, 1), holder
    gone = weakref.ref(holder.task)
    holder.task.join()
    del holder
    gc.collect()
    assert gone() is None


# ---------------------------------------------------------------- gather


def test_gather_keeps_order_and_takes_a_task_twice() -> None:
    tasks = [gb.spawn(chain, n) for n in (3, 1, 2)]
    assert gb.gather(*tasks, tasks[0]) == [3, 1, 2, 3]
    assert gb.gather() == []


def test_the_first_failure_cancels_the_others() -> None:
    others = [endless(), endless()]
    with pytest.raises(ValueError, match="failed"):
        gb.gather(others[0], gb.spawn(fail, 1), others[1])
    assert all(other.cancelled for other in others)


def test_gather_wants_tasks() -> None:
    task = endless()
    with pytest.raises(TypeError, match="a task is needed here, not int 3"):
        gb.gather(task, 3)  # type: ignore[arg-type]
    assert not task.done
    task.cancel()


# ---------------------------------------------------------------- groups


def test_nothing_outlives_a_group() -> None:
    with gb.TaskGroup() as group:
        tasks = [group.spawn(chain, n) for n in range(20)]
    assert [task.result() for task in tasks] == list(range(20))


def test_a_failure_ends_a_group() -> None:
    with pytest.raises(ExceptionGroup) as caught, gb.TaskGroup() as group:
        endless_task, failing = group.spawn(forever), group.spawn(fail, 1)
    assert caught.value.exceptions == (failing.exception(),)
    assert endless_task.cancelled


def test_an_exception_in_the_block_ends_a_group() -> None:
    with pytest.raises(ExceptionGroup) as caught, gb.TaskGroup() as group:
        task = group.spawn(forever)
        raise KeyError
    assert task.cancelled
    assert [type(error) for error in caught.value.exceptions] == [KeyError]


def hurried(kind: type[BaseException]) -> Any:
    def stop() -> None:
        raise kind

    return gb.Module.from_wat('(module (import "" "f" (func)) (export "f" (func $f)) (func $f (call 0)))').instantiate(
        {"": {"f": stop}}
    )


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, gb.Cancelled])
def test_what_is_no_failure_leaves_a_group_as_it_is(kind: type[BaseException]) -> None:
    with pytest.raises(kind), gb.TaskGroup() as group:
        task = group.spawn(forever)
        raise kind
    assert task.cancelled

    async def main() -> None:
        async with gb.TaskGroup() as group:
            tasks.append(group.spawn(forever))
            raise kind

    tasks: list[gb.Task] = []
    coroutine: Any = main()
    with pytest.raises(kind):
        asyncio.run(coroutine)
    assert tasks[0].cancelled


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_goes_before_failures(kind: type[BaseException]) -> None:
    with pytest.raises(kind), gb.TaskGroup() as group:
        failing = group.spawn(fail, 1)
        settle(lambda: failing.done)
        raise kind
    with pytest.raises(kind) as caught, gb.TaskGroup() as group:
        task = group.spawn(hurried(kind).exports.f)
        settle(lambda: task.done)
        raise KeyError
    assert caught.value is task.exception()


def test_what_the_block_raised_comes_first() -> None:
    with pytest.raises(ExceptionGroup) as caught, gb.TaskGroup() as group:
        failing = group.spawn(fail, 1)
        settle(lambda: failing.done)
        raise KeyError
    assert [type(error) for error in caught.value.exceptions] == [KeyError, ValueError]


def test_a_group_is_used_once_and_inside_of_its_block() -> None:
    group = gb.TaskGroup()
    with pytest.raises(RuntimeError, match="a TaskGroup spawns inside of its `with` block"):
        group.spawn(chain, 1)
    with group:
        pass
    with pytest.raises(RuntimeError, match="spawns inside"):
        group.spawn(chain, 1)
    with pytest.raises(RuntimeError, match="a TaskGroup is used for one block"), group:
        pass


def test_threads_spawn_in_a_group_until_its_block_is_over() -> None:
    for _ in range(20):
        told: list[str] = []

        def spawn_more(group: gb.TaskGroup, told: list[str] = told) -> None:
            try:
                for _ in range(500):
                    group.spawn(chain, 0)
            except RuntimeError as error:
                told.append(str(error))

        with gb.TaskGroup() as group:
            threads = [threading.Thread(target=spawn_more, args=(group,)) for _ in range(2)]
            for thread in threads:
                thread.start()
        assert all(task.done for task in group._tasks)
        for thread in threads:
            thread.join()
        assert set(told) <= {"a TaskGroup spawns inside of its `with` block"}


def test_other_threads_cannot_spawn_in_a_group_of_asyncio() -> None:
    async def main() -> None:
        async with gb.TaskGroup() as group:
            with pytest.raises(RuntimeError, match="no running event loop"):
                await asyncio.to_thread(group.spawn, forever)

    asyncio.run(main())


def test_a_group_that_is_dropped_lets_its_tasks_go() -> None:
    channel = gb.Channel(gb.i64)
    group = gb.TaskGroup()
    group.__enter__()
    tasks = [group.spawn(wait, channel) for _ in range(10)]
    del group
    gc.collect()
    for n in range(10):
        channel.send(n)
    assert sorted(gb.gather(*tasks)) == list(range(10))


def test_a_cancelled_task_does_not_end_its_group() -> None:
    with gb.TaskGroup() as group:
        group.spawn(forever).cancel()
        last = group.spawn(chain, 5)
    assert last.result() == 5


def test_groups_in_asyncio() -> None:
    async def main() -> None:
        async with gb.TaskGroup() as group:
            tasks = [group.spawn(chain, n) for n in range(20)]
            assert await tasks[7] == 7
        assert [task.result() for task in tasks] == list(range(20))
        with pytest.raises(ExceptionGroup) as caught:
            async with gb.TaskGroup() as group:
                other = group.spawn(forever)
                group.spawn(fail, 1)
                with pytest.raises(gb.Cancelled):
                    await other
        assert [type(error) for error in caught.value.exceptions] == [ValueError]
        with pytest.raises(ExceptionGroup) as caught:
            async with gb.TaskGroup() as group:
                other = group.spawn(forever)
                group.spawn(fail, 1)
                # Being cancelled by the group is not a failure of its own.
                await other
        assert [type(error) for error in caught.value.exceptions] == [ValueError]
        with pytest.raises(ExceptionGroup) as caught:
            async with gb.TaskGroup() as group:
                other = group.spawn(forever)
                raise KeyError
        assert other.cancelled
        assert [type(error) for error in caught.value.exceptions] == [KeyError]

    asyncio.run(main())


def test_a_cancelled_block_waits_for_its_tasks() -> None:
    tasks: list[gb.Task] = []

    async def block() -> None:
        async with gb.TaskGroup() as group:
            tasks.append(group.spawn(forever))

    async def main() -> None:
        running = asyncio.ensure_future(block())
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert tasks[0].cancelled

    asyncio.run(main())


def test_a_loop_that_ends_takes_groups_with_it() -> None:
    tasks: list[gb.Task] = []

    async def block() -> None:
        async with gb.TaskGroup() as group:
            tasks.append(group.spawn(forever))

    async def main() -> None:
        tasks.append(asyncio.ensure_future(block()))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert tasks[1].cancelled


# ---------------------------------------------------------------- asyncio


def test_awaiting() -> None:
    async def main() -> None:
        assert await gb.spawn(chain, 3) == 3
        with pytest.raises(ValueError, match="failed"):
            await gb.spawn(fail, 1)
        tasks = [gb.spawn(chain, n) for n in range(100)]
        assert await asyncio.gather(*tasks) == list(range(100))
        # Several await one task, and one that has ended.
        assert await asyncio.gather(*(wait_for(tasks[5]) for _ in range(5))) == [5] * 5

    async def wait_for(task: gb.Task) -> Any:
        return await task

    asyncio.run(main())


def test_who_awaits_a_task_cancels_it_with_himself() -> None:
    async def main() -> None:
        task = endless()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.ensure_future(hold(task)), 0.01)
        with pytest.raises(gb.Cancelled):
            task.join(60)

    async def hold(task: gb.Task) -> None:
        await task

    asyncio.run(main())


def test_loops_in_many_threads() -> None:
    found: list[int] = []

    async def main() -> None:
        for _ in range(20):
            found.extend(await asyncio.gather(*(gb.spawn(chain, n) for n in range(5))))

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == sorted(list(range(5)) * 80)


def test_a_loop_closed_while_waits_are_pending() -> None:
    channel: gb.Channel[int] = gb.Channel(int)
    task = gb.spawn(collect, channel)

    async def hold() -> None:
        await task

    async def leave(holding: list[Any]) -> None:
        holding.append(asyncio.ensure_future(hold()))
        holding.append(asyncio.ensure_future(channel.arecv()))
        holding.append(asyncio.ensure_future(gb.aselect([channel, gb.Channel(int)])))
        await asyncio.sleep(0.01)

    for _ in range(20):
        holding: list[Any] = []
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave(holding))
        gone = weakref.ref(loop)
        loop.close()
        for held in holding:
            held._log_destroy_pending = False
        del loop, holding, held
        gc.collect()
        assert gone() is None
    # None of them takes a value that is sent now.
    channel.send(4)
    channel.close()
    assert task.join(60) == 4
