"""Guests as tasks: `spawn(export)`, and `await export.aio(...)`.

    guest parks ──waiter(awaitable)──▶ the loop's thread ─▶ asyncio task ─▶ answer ──▶ guest goes on, on any worker

A host function that returns something to be awaited is called by a worker; what it returned is awaited on the event
loop that the guest was spawned in, with the context variables of whoever spawned it.
"""

import asyncio
import contextvars
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from types import CodeType
from typing import Any

from greenbeat.api import bridge, errorhooks, loops
from greenbeat.api.bridge import native
from greenbeat.api.call import STATES, Call
from greenbeat.api.function import Function
from greenbeat.api.tasks import Task
from greenbeat.errors import GreenbeatError
from greenbeat.runtime import layout
from greenbeat.runtime.outcomes import LATER
from greenbeat.wasm.description import function_type_at


class Waiter:
    """Awaits, on an event loop, what a guest's host functions return. Called by workers."""

    __slots__ = ("_context", "_loop", "_running", "fiber")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._context = loop, contextvars.copy_context()
        self.fiber = 0
        self._running: asyncio.Task[Any] | None = None

    def __call__(self, awaitable: Any, generation: int) -> None:
        """Await something, or nothing any more if it is None. RuntimeError if the loop is closed."""
        try:
            if awaitable is None:
                self._loop.call_soon_threadsafe(self._stop)
            else:
                self._loop.call_soon_threadsafe(self._start, awaitable, generation, context=self._context)
        except RuntimeError:
            errorhooks.close_awaitable(awaitable)
            raise

    def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _start(self, awaitable: Any, generation: int) -> None:
        running = self._running = self._loop.create_task(_result(awaitable), context=self._context)

        def over(done: "asyncio.Task[Any]") -> None:
            # If it was cancelled before it began, the awaitable was not awaited.
            if done.cancelled():
                errorhooks.close_awaitable(awaitable)
            self._answer(done, generation)

        running.add_done_callback(over, context=self._context)

    def _answer(self, done: "asyncio.Task[Any]", generation: int) -> None:
        if self._running is done:
            self._running = None
        if done.cancelled():
            item: Any = asyncio.CancelledError()
            failed = True
        else:
            item = done.exception()
            failed = item is not None
            if not failed:
                item = done.result()
        if native.answer_guest(self.fiber, generation, item, failed) == LATER:
            self._loop.call_soon(self._answer, done, generation)


async def _result(awaitable: Any) -> Any:
    return await awaitable


class _Guest(ABC):
    """What a guest does as a task. Its host functions are awaited on the loop that runs where it begins, if any."""

    # The guest holds its waiter, which holds the loop, until it has ended.
    _loop: "weakref.ref[asyncio.AbstractEventLoop] | None" = None

    def begin(self) -> int:
        """The fiber."""
        # `get_running_loop` would tell by an exception, at several times the price, that there is none.
        loop = asyncio._get_running_loop()
        if loop is None:
            return self._begin(None)
        waiter, self._loop = Waiter(loop), weakref.ref(loop)
        waiter.fiber = self._begin(waiter)
        return waiter.fiber

    @abstractmethod
    def _begin(self, waiter: Waiter | None) -> int: ...

    def finish(self, fiber: int) -> Any:
        """The result, or what ended the guest."""
        return native.guest_result(fiber)

    def waits_for(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether this loop awaits what its host functions return."""
        return self._loop is not None and self._loop() is loop


class GuestWork(_Guest):
    """A call of a guest's function as a task."""

    def __init__(self, function: Function, arguments: tuple[Any, ...]) -> None:
        target = bridge.at(layout.FunctionInstance, bridge.address_of(function))  # type: ignore[arg-type]
        if target.kind == layout.HOST:
            raise TypeError(f"{errorhooks.told(function)} is a host function: only guests run as tasks")
        if len(arguments) != len(function_type_at(target.signature).params):
            errorhooks.argument_count(function, len(arguments))
        self.name = errorhooks.told(function)
        self._function, self._arguments = function, arguments

    def _begin(self, waiter: Waiter | None) -> int:
        fiber: int = native.new_guest(self._function, self._arguments, waiter)
        return fiber


class CallWork(_Guest):
    """A resumable call as a task, which runs it until it is over."""

    def __init__(self, call: Call, arguments: tuple[Any, ...]) -> None:
        if arguments:
            raise TypeError("a resumable call has its arguments already")
        self.name = errorhooks.told(call.function)
        self._call = call

    def _begin(self, waiter: Waiter | None) -> int:
        fiber: int = native.new_call_guest(self._call, waiter)
        if not fiber:
            raise GreenbeatError(f"this call cannot be spawned: it is {STATES[self._call._state]}")
        return fiber


def aio(function: Function, arguments: tuple[Any, ...]) -> Coroutine[Any, Any, Any]:
    """See `Function.aio`, which calls this."""
    work = GuestWork(function, arguments)
    # Who awaits it may be anybody: what the guest raises tells of the line that calls `.aio`.
    caller = sys._getframe(2)
    running: Any = _run(work, (caller.f_code, caller.f_lineno))
    running.__name__ = running.__qualname__ = f"{work.name}.aio"
    made: Coroutine[Any, Any, Any] = running
    return made


async def _run(work: GuestWork, place: tuple[CodeType, int]) -> Any:
    task = Task(work, place=place)
    bridged = loops.this_loop()
    interrupted: asyncio.CancelledError | None = None
    while not task.done:
        pending = native.pend_end(bridged.address, task._fiber, 0)
        try:
            await bridged.wait(pending, task._finish_wait)
        except asyncio.CancelledError as error:
            # The guest leaves its instance before the cancellation goes on.
            interrupted = error
            task.cancel()
    if interrupted is not None:
        task.exception()
        raise interrupted
    return task.result()
