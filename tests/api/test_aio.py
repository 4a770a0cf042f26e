"""Guests and asyncio: `.aio`, and host functions that are coroutine functions."""

import asyncio
import contextvars
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.api.bridge import at
from greenbeat.tasks.layout import STACK_SIZES, Fiber

PROGRAM = """(module
  (import "host" "f" (func $f (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "host") (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))
  (func (export "divide") (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
  (func (export "spin") (loop $l (br $l)))
  (func (export "many") (param i32) (result i32) (local i32)
    (loop $l
      (local.set 1 (i32.add (local.get 1) (call $f (local.get 0))))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))"""

KINDS = """(module
  (import "host" "nothing" (func $nothing))
  (import "host" "two" (func $two (result i32 f64)))
  (import "host" "thing" (func $thing (param externref) (result externref)))
  (func (export "nothing") (call $nothing))
  (func (export "two") (result i32 f64) (call $two))
  (func (export "thing") (param externref) (result externref) (call $thing (local.get 0))))"""

Make = Callable[..., Any]


@pytest.fixture
def make() -> Make:
    """Exports of a new instance."""
    module = gb.Module.from_wat(PROGRAM)

    def instantiate(f: Callable[[int], Any], **limits: Any) -> Any:
        return module.instantiate({"host": {"f": gb.Func(f, ["i32"], ["i32"])}}, limits=gb.Limits(**limits)).exports

    return instantiate


@pytest.fixture(autouse=True)
def warnings_are_errors(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    """No coroutine is left that was never awaited."""
    yield
    assert not [warning for warning in recwarn if "never awaited" in str(warning.message)]


async def later(x: int) -> int:
    """A host function that takes its time."""
    await asyncio.sleep(0)
    return x + 100


async def never(x: int = 0) -> int:
    """A host function that has to be cancelled."""
    await asyncio.Event().wait()
    return x


def test_results(make: Make) -> None:
    async def main() -> None:
        exports = make(later)
        assert await exports.add.aio(2, 40) == 42
        assert await exports.host.aio(1) == 102
        assert await exports.many.aio(50) == 50 * 100 + 50 * 51 // 2
        assert await make(lambda x: 7).host.aio(1) == 8

    asyncio.run(main())


def test_a_future_can_be_returned(make: Make) -> None:
    async def main() -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, 5)
        assert await make(lambda x: future).host.aio(1) == 6

    asyncio.run(main())


def test_all_kinds_of_results() -> None:
    async def nothing() -> None:
        await asyncio.sleep(0)
        done.append(1)

    async def two() -> tuple[int, float]:
        await asyncio.sleep(0)
        return 3, 1.5

    async def thing(it: Any) -> Any:
        await asyncio.sleep(0)
        return [it]

    async def main() -> None:
        for turn in range(100):
            assert await exports.nothing.aio() is None
            assert len(done) == turn + 1
            assert await exports.two.aio() == (3, 1.5)
            it = object()
            assert (await exports.thing.aio(it))[0] is it

    done: list[int] = []
    exports = gb.Module.from_wat(KINDS).instantiate({"host": {"nothing": nothing, "two": two, "thing": thing}}).exports
    asyncio.run(main())


def test_exceptions(make: Make) -> None:
    async def wrong(x: int) -> int:
        await asyncio.sleep(0)
        raise KeyError(x)

    async def text(x: int) -> Any:
        await asyncio.sleep(0)
        return "no"

    async def main() -> None:
        exports = make(wrong)
        with pytest.raises(KeyError) as caught:
            await exports.host.aio(3)
        assert "host at" in caught.value.__notes__[0]
        with pytest.raises(TypeError, match="the result of host function text"):
            await make(text).host.aio(1)
        with pytest.raises(gb.Trap, match="divide by zero"):
            await exports.divide.aio(0)
        with pytest.raises(TypeError, match="takes 2 arguments"):
            await exports.add.aio(1)
        assert await exports.add.aio(1, 2) == 3

    asyncio.run(main())


def test_what_was_not_awaited_yet_tells_what_it_is(make: Make) -> None:
    async def main() -> None:
        exports = make(later)
        call = exports.divide.aio(0)
        line = sys._getframe().f_lineno - 1
        assert repr(call).startswith("<coroutine object divide.aio at ")
        with pytest.raises(gb.Trap) as caught:
            await asyncio.ensure_future(call)
        place = f"{main.__qualname__} at {__file__}:{line}"
        assert caught.value.__notes__ == [f"in a task that was spawned by {place}"]

    asyncio.run(main())


def test_nobody_awaits(make: Make) -> None:
    """A plain call, a task of no loop, and a call from a host function."""
    exports = make(later)
    attempts: list[Callable[[], Any]] = [lambda: exports.host(1), lambda: gb.spawn(exports.host, 1).join()]
    for attempt in attempts:
        with pytest.raises(TypeError, match=r"host function later returned .* awaited: call .*\.aio\(\.\.\.\)"):
            attempt()

    def f(x: int) -> int:
        with pytest.raises(TypeError, match="has to be awaited"):
            exports.host(1)
        return x

    async def main() -> None:
        assert await make(f).host.aio(1) == 2

    asyncio.run(main())
    with pytest.raises(TypeError, match="has to be awaited"):
        gb.Module.from_wat(KINDS).instantiate(
            {"host": {"nothing": never, "two": never, "thing": lambda it: it}}
        ).exports.nothing()


def test_spawned_in_a_loop(make: Make) -> None:
    async def main() -> None:
        task = gb.spawn(make(later).host, 1)
        assert await task == 102 and task.result() == 102
        group = gb.TaskGroup()
        await group.__aenter__()
        waits, fails = group.spawn(make(never).host, 1), group.spawn(make(later).divide, 0)
        with pytest.raises(ExceptionGroup):
            await group.__aexit__(None, None, None)
        assert waits.cancelled and isinstance(fails.exception(), gb.Trap)

    asyncio.run(main())


def test_what_its_own_loop_is_needed_for_is_not_waited_for_in_its_thread(make: Make) -> None:
    def grouped(task: gb.Task) -> None:
        with gb.TaskGroup() as group:
            inside.append(group.spawn(make(later).host, 1))

    waits: list[Callable[[gb.Task], Any]] = [gb.Task.join, lambda task: task.join(60), gb.gather, grouped]
    begins: list[Callable[[Any], gb.Task]] = [
        lambda exports: gb.spawn(exports.host, 1),
        lambda exports: gb.spawn(exports.host.start(1)),
    ]
    inside: list[gb.Task] = []

    async def main() -> None:
        for wait in waits:
            for begin in begins:
                task = begin(make(later))
                with pytest.raises(RuntimeError, match=r"Task host, running> cannot be waited for .* `await task`"):
                    wait(task)
                assert await task == 102
                # What has ended needs no loop.
                assert task.join() == 102 and gb.gather(task) == [102]
        task = gb.spawn(make(later).host, 1)
        with pytest.raises(TimeoutError):
            task.join(0)
        # Another thread's loop awaits nothing of it.
        assert await asyncio.to_thread(task.join, 60) == 102

    asyncio.run(main())
    assert len(inside) == 2 and all(task.cancelled for task in inside)


def test_context_variables(make: Make) -> None:
    variable = contextvars.ContextVar("variable", default=0)

    async def f(x: int) -> int:
        await asyncio.sleep(0)
        assert threading.current_thread() is threading.main_thread()
        return variable.get()

    async def main() -> None:
        variable.set(5)
        assert await make(f).host.aio(1) == 6

    asyncio.run(main())


def test_cancelling(make: Make) -> None:
    """What awaits is cancelled: so are the guest and what the guest waits for, and the instance is free."""
    cancelled: list[int] = []

    async def f(x: int) -> int:
        try:
            return await never()
        except asyncio.CancelledError:
            cancelled.append(x)
            raise

    async def main() -> None:
        exports = make(f)
        for turn in range(20):
            for call in (exports.host.aio(turn), exports.spin.aio()):
                task = asyncio.ensure_future(call)
                for _ in range(turn):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await exports.add.aio(1, 2) == 3
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(exports.host.aio(-1), 0.05)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await exports.spin.aio()
        assert exports.add(1, 2) == 3
        await asyncio.sleep(0)

    asyncio.run(main())
    assert cancelled[-1] == -1


def test_limits_count_while_it_waits(make: Make) -> None:
    async def main() -> None:
        exports = make(never, seconds=0.03)
        with pytest.raises(gb.Exhausted, match="out of time") as caught:
            await exports.host.aio(1)
        assert caught.value.backtrace[0].function == "host"
        with pytest.raises(gb.Exhausted, match="out of fuel"):
            await make(later, fuel=10_000).spin.aio()

    asyncio.run(main())


def test_the_host_coroutine_is_cancelled(make: Make) -> None:
    async def f(x: int) -> int:
        raise asyncio.CancelledError

    async def main() -> None:
        exports = make(f)
        with pytest.raises(asyncio.CancelledError):
            await exports.host.aio(1)
        assert exports.add(1, 2) == 3

    asyncio.run(main())


def test_busy(make: Make) -> None:
    async def main() -> None:
        exports = make(never)
        task = asyncio.ensure_future(exports.host.aio(1))
        await asyncio.sleep(0)
        with pytest.raises(gb.GreenbeatError, match="one call at a time"):
            await exports.add.aio(1, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_the_loop_ends_while_a_guest_waits(make: Make) -> None:
    exports = make(never)

    async def main() -> gb.Task:
        task: gb.Task = gb.spawn(exports.host, 1)
        for _ in range(50):
            await asyncio.sleep(0.001)
        return task

    task: gb.Task = asyncio.run(main())
    with pytest.raises(asyncio.CancelledError):
        task.join()
    assert exports.add(1, 2) == 3


def resident_pages(fiber: int) -> int:
    """How many pages of a fiber's slot are in memory."""
    found = at(Fiber, fiber)
    size = STACK_SIZES[found.size_class]
    places = (ctypes.c_ubyte * (size // 4096))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(found.stack), ctypes.c_size_t(size), places) == 0
    return sum(place & 1 for place in places)


def test_many_at_once(make: Make) -> None:
    """Each keeps two pages while it waits."""
    count = 300

    async def main() -> None:
        waiting, go_on = 0, asyncio.Event()
        everybody = asyncio.Event()

        async def f(x: int) -> int:
            nonlocal waiting
            waiting += 1
            if waiting == count:
                everybody.set()
            await go_on.wait()
            return x

        tasks = [gb.spawn(make(f).host, number) for number in range(count)]
        await everybody.wait()
        if sys.platform == "linux":
            # Slots that were used by other tests before may keep some more.
            assert sum(resident_pages(task._fiber) == 2 for task in tasks) > count // 2
        go_on.set()
        assert await asyncio.gather(*tasks) == [number + 1 for number in range(count)]

    asyncio.run(main())
