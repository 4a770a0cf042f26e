"""`greenbeat.Task`, `spawn`, `gather` and `TaskGroup`: work that runs beside what spawned it.

    task = gb.spawn(kernel, 1, 2)
    task.join()                       # in a thread; or `await task`

    with gb.TaskGroup() as group:     # or `async with`: nothing outlives the block
        group.spawn(kernel, 1)
        group.spawn(kernel, 2)

What is awaited while it runs leaves the event loop to others; a thread that joins sleeps.
"""

import asyncio
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable
from types import CodeType, TracebackType
from typing import Any, Protocol

from greenbeat.api.bridge import native
from greenbeat.api.checks import described
from greenbeat.api.loops import CANCELLED, DISTURBED, TIMED_OUT, WAITER_CANCELLED, new_native_bridge, this_loop
from greenbeat.api.runtime import ensure_runtime, wait_natively
from greenbeat.errors import Cancelled


class Work(Protocol):
    """What a task runs: how it begins, and what it came to."""

    name: str

    def begin(self) -> int:
        """The address of a fiber with its arguments in place, held by the caller. Raises what is wrong with them."""

    def finish(self, fiber: int) -> Any:
        """The result of a fiber that has ended; raises what ended it."""

    def waits_for(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether it may wait for what an event loop does."""


_Maker = Callable[[Any, tuple[Any, ...]], Work]
# What makes work of objects of a type, as far as such were spawned.
_makers: dict[type, _Maker] = {}


def work_of(function: Any, arguments: tuple[Any, ...]) -> Work:
    """The work of calling something.

    Raises:
        TypeError: it is nothing that runs as a task.
    """
    maker = _makers.get(type(function))
    if maker is None:
        maker = _makers[type(function)] = _maker_for(function)
    return maker(function, arguments)


def _maker_for(function: Any) -> _Maker:
    # Here, since tasks of guests do without kernels, and the other way round.
    from greenbeat.api.call import Call
    from greenbeat.api.function import Function

    if isinstance(function, Function):
        from greenbeat.api.guests import GuestWork

        return GuestWork
    if isinstance(function, Call):
        from greenbeat.api.guests import CallWork

        return CallWork
    from greenbeat.kernels.objects import Kernel
    from greenbeat.kernels.work import KernelWork

    if isinstance(function, Kernel):
        return KernelWork
    raise TypeError(
        f"spawn takes a kernel, a guest's function or a resumable call, not {described(function)}: "
        "an ordinary Python function becomes a kernel by @greenbeat.kernel"
    )


def deadline_of(timeout: float | None) -> int:
    """A timeout in seconds as a time of the monotonic clock in nanoseconds; 0 for None.

    Raises:
        TypeError, ValueError: it is no number of seconds.
    """
    if timeout is None:
        return 0
    if not isinstance(timeout, int | float) or isinstance(timeout, bool):
        raise TypeError(f"a timeout is a number of seconds or None, not {described(timeout)}")
    if not timeout >= 0:
        raise ValueError(f"a timeout is at least 0 seconds: {timeout!r}")
    return min(time.monotonic_ns() + int(min(timeout, 1e9) * 1e9), (1 << 64) - 1)


_PENDING = object()
# How many forks this process is away from the first one: tasks stay behind.
_process = 0


class Task:
    """Something that runs beside what spawned it; made by `spawn`.

    Attributes:
        name: what it runs.
    """

    __slots__ = ("__weakref__", "_error", "_fiber", "_guard", "_process", "_result", "_spawned", "_work", "name")

    def __init__(self, work: Work, depth: int = 1, place: tuple[CodeType, int] | None = None) -> None:
        if place is None:
            frame = sys._getframe(depth)
            place = frame.f_code, frame.f_lineno
        self._spawned = place
        self._work: Work | None = work
        self.name = work.name
        self._result: Any = _PENDING
        self._error: BaseException | None = None
        self._guard = threading.Lock()
        self._process = _process
        ensure_runtime()
        self._fiber: int = work.begin()
        native.start_task(self._fiber)

    @property
    def done(self) -> bool:
        """Whether it has ended: finished, failed, or cancelled."""
        return self._result is not _PENDING or native.task_ended(self._fiber)

    @property
    def cancelled(self) -> bool:
        """Whether it has ended because it was cancelled."""
        return self.done and isinstance(self._outcome()[1], Cancelled)

    def join(self, timeout: float | None = None) -> Any:
        """Wait in this thread until it has ended; what it returned.

        Args:
            timeout: seconds to wait at most.

        Raises:
            TimeoutError: it has not ended by then; it runs on.
            RuntimeError: this thread runs the event loop that awaits what the guest's host functions return.
            Cancelled: it was cancelled.
            Exception: what ended it, with a note that tells where it was spawned.
        """
        deadline = deadline_of(timeout)
        if not self.done:
            self._check_process()
            # A look without waiting keeps nobody from going on.
            if timeout != 0:
                self._check_loop()
            ensure_runtime()
            result = wait_natively(native.join_task, self._fiber, deadline)
            if result == TIMED_OUT:
                raise TimeoutError(f"{self!r} has not ended within {timeout} s")
            if result == CANCELLED:
                raise Cancelled(WAITER_CANCELLED)
        return self.result()

    def result(self) -> Any:
        """What it returned.

        Raises:
            RuntimeError: it has not ended.
            Cancelled, Exception: as `join`.
        """
        result, error = self._outcome()
        if error is not None:
            raise error
        return result

    def exception(self) -> BaseException | None:
        """What ended it, or None if it has finished.

        Raises:
            RuntimeError: it has not ended.
        """
        return self._outcome()[1]

    def cancel(self) -> None:
        """Let it end, raising `Cancelled`: at once if it waits, else at its next look at the beat."""
        if not self.done:
            native.cancel_task(self._fiber)

    def _outcome(self) -> tuple[Any, BaseException | None]:
        if self._result is _PENDING:
            if not self.done:
                raise RuntimeError(f"{self!r} has not ended: join it first")
            with self._guard:
                if self._result is _PENDING:
                    self._collect()
        return self._result, self._error

    def _collect(self) -> None:
        work, self._work = self._work, None
        assert work is not None
        result = None
        try:
            result = work.finish(self._fiber)
        except BaseException as error:
            code, line = self._spawned
            error.add_note(f"in a task that was spawned by {code.co_qualname} at {code.co_filename}:{line}")
            self._error = error
        self._result = result

    def _finish_wait(self, address: int) -> int:
        result: int = native.finish_pending(address, None)
        return result

    def _check_process(self) -> None:
        if self._process != _process:
            raise RuntimeError(f"{self!r} runs in the process that this one was forked from")

    def _check_loop(self) -> None:
        """Refuse to wait in a thread whose event loop the task may wait for: that one would never go on."""
        loop, work = asyncio._get_running_loop(), self._work
        if loop is not None and work is not None and work.waits_for(loop) and not self.done:
            raise RuntimeError(
                f"{self!r} cannot be waited for in this thread, which runs the event loop that its host functions are "
                "awaited on: use `await task`, `await asyncio.gather(...)` or `async with greenbeat.TaskGroup()`"
            )

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.done:
            self._check_process()
            ensure_runtime()
            bridge = this_loop()
            pending = native.pend_end(bridge.address, self._fiber, 0)
            try:
                yield from bridge.wait(pending, self._finish_wait).__await__()
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.result()

    def __del__(self) -> None:
        fiber = getattr(self, "_fiber", 0)
        if fiber and self._process == _process:
            native.forget_task(fiber)

    def __repr__(self) -> str:
        if not self.done:
            state = "running"
        else:
            error = self._outcome()[1]
            state = "finished" if error is None else "cancelled" if isinstance(error, Cancelled) else "failed"
        return f"<greenbeat.Task {self.name}, {state}>"

    def __reduce__(self) -> Any:
        raise TypeError("a greenbeat.Task cannot be pickled or copied")


def _checked(task: Any) -> Task:
    if not isinstance(task, Task):
        raise TypeError(f"a task is needed here, not {described(task)}: spawn(...) makes one")
    return task


class _Crowd:
    """Tasks that a thread waits for together; told one by one as they end. Other threads may add some."""

    def __init__(self) -> None:
        self._bridge = new_native_bridge(-1)
        self._pending: dict[int, Task] = {}
        # What has just been added may be over before it is in the dictionary.
        self._guard = threading.RLock()
        # At the interpreter's end, what is still waited for needs the bridge.
        weakref.finalize(self, _give_up, _process, self._bridge, self._pending).atexit = False

    def add(self, task: Task) -> None:
        """Wait for one more."""
        ensure_runtime()
        with self._guard:
            address = native.pend_end(self._bridge, task._fiber, 0)
            if not address:
                raise MemoryError("no memory to wait with")
            self._pending[address] = task

    def __len__(self) -> int:
        return len(self._pending)

    def next(self, *, may_end: bool = True) -> Task:
        """The next that has ended; may raise what a signal's handler raises, and `Cancelled`, if it may end."""
        while not (address := native.take_done(self._bridge)):
            if wait_natively(native.sleep_at_bridge, self._bridge, 0, may_end) == DISTURBED:
                raise Cancelled(WAITER_CANCELLED)
        with self._guard:
            task = self._pending.pop(address)
        # From now on, the address may be another's.
        native.finish_pending(address, None)
        return task

    def cancel(self) -> None:
        """Cancel all that have not ended."""
        for task in list(self._pending.values()):
            task.cancel()

    def end(self) -> list[Task]:
        """Cancel all, and wait until they have ended; a second interrupt does not shorten that."""
        self.cancel()
        ended, interrupted = [], None
        while self._pending:
            try:
                ended.append(self.next(may_end=False))
            except BaseException as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted
        return ended


def _give_up(process: int, bridge: int, pending: dict[int, Task]) -> None:
    """Wait no longer for what nobody asks about; in a forked child it is the parent's."""
    if process != _process:
        return
    for address in list(pending):
        if native.cancel_pending(address):
            native.finish_pending(address, None)
            del pending[address]
    while pending:
        # What could not be cancelled is over, or just about to be.
        if address := native.take_done(bridge):
            native.finish_pending(address, None)
            del pending[address]
        else:
            time.sleep(0)
    native.free_bridge(bridge)


def gather(*tasks: Task) -> list[Any]:
    """Wait in this thread for all tasks; their results, in order.

    The first that fails cancels the others, and its exception is raised when all have ended. In asyncio, use
    `asyncio.gather`.

    Raises:
        RuntimeError: as `Task.join`.
    """
    for task in tasks:
        _checked(task)._check_loop()
    crowd = _Crowd()
    failed: BaseException | None = None
    try:
        for task in dict.fromkeys(tasks):
            crowd.add(task)
        while len(crowd):
            failed = crowd.next().exception()
            if failed is not None:
                break
    finally:
        crowd.end()
    if failed is not None:
        raise failed
    return [task.result() for task in tasks]


class TaskGroup:
    """Tasks that do not outlive a block, a `with` or an `async with`.

    The first one that fails, or an exception in the block, cancels the others. What failed is raised at the block's
    end, when all have ended: always as an `ExceptionGroup`, as `asyncio.TaskGroup` does. What is no `Exception`, such
    as `KeyboardInterrupt` or `asyncio.CancelledError`, passes as it is; so does `Cancelled` that the block raises when
    nothing has failed.
    """

    def __init__(self) -> None:
        self._tasks: list[Task] = []
        self._entered = self._left = False
        self._crowd: _Crowd | None = None
        # Other threads may spawn, too.
        self._guard = threading.RLock()
        # Not as tasks of asyncio, which others may cancel.
        self._waiting: dict[asyncio.Future[int], Task] = {}

    def spawn(self, function: Any, /, *arguments: Any) -> Task:
        """Spawn a task of this group.

        Raises:
            RuntimeError: the block has not begun, or is over.
            TypeError, ValueError: as `greenbeat.spawn`.
        """
        with self._guard:
            if not self._entered or self._left:
                raise RuntimeError("a TaskGroup spawns inside of its `with` block")
            crowd = self._crowd
            bridge = this_loop() if crowd is None else None
            task = Task(work_of(function, arguments), 2)
            self._tasks.append(task)
            if crowd is not None:
                crowd.add(task)
            elif bridge is not None:
                waiting = bridge.expect(native.pend_end(bridge.address, task._fiber, 0), task._finish_wait)
                self._waiting[waiting] = task
                waiting.add_done_callback(self._one_ended)
            return task

    def _enter(self) -> None:
        if self._entered:
            raise RuntimeError("a TaskGroup is used for one block")
        self._entered = True

    def __enter__(self) -> "TaskGroup":
        self._enter()
        self._crowd = _Crowd()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._crowd is not None
        failed: list[BaseException] = []
        try:
            if error is None and asyncio._get_running_loop() is not None:
                for task in list(self._tasks):
                    task._check_loop()
            while error is None and not failed and not self._leave():
                failed += _failures([self._crowd.next()])
        finally:
            with self._guard:
                self._left = True
            failed += _failures(self._crowd.end())
        self._raise(error, failed)

    def _leave(self) -> bool:
        """Whether all have ended; then there will be no others."""
        with self._guard:
            self._left = self._left or not len(self._crowd or ())
            return self._left

    async def __aenter__(self) -> "TaskGroup":
        self._enter()
        return self

    def _one_ended(self, waiting: "asyncio.Future[int]") -> None:
        if _failures([self._waiting.pop(waiting)]):
            self._cancel_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        interrupted: BaseException | None = None
        if error is not None:
            self._cancel_all()
        while self._waiting:
            try:
                await asyncio.wait(list(self._waiting))
            except asyncio.CancelledError as problem:
                interrupted = problem
                self._cancel_all()
        self._left = True
        if interrupted is not None and error is None:
            raise interrupted
        self._raise(error, _failures(self._tasks))

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _raise(self, error: BaseException | None, failed: Iterable[BaseException]) -> None:
        """What the block ends with; what the block itself raised goes first."""
        if error is not None and not isinstance(error, Exception):
            return
        errors = []
        # What the block has noticed of the others being cancelled says nothing.
        if error is not None and not isinstance(error, Cancelled):
            errors.append(error)
        for problem in failed:
            if not isinstance(problem, Exception):
                raise problem
            errors.append(problem)
        if errors:
            raise ExceptionGroup("failures in a TaskGroup", errors) from None


def _failures(tasks: Iterable[Task]) -> list[BaseException]:
    """What tasks that have ended failed with, other than by being cancelled."""
    errors = (task.exception() for task in tasks)
    return [error for error in errors if error is not None and not isinstance(error, Cancelled)]


def _forget_in_child() -> None:
    global _process
    _process += 1


os.register_at_fork(after_in_child=_forget_in_child)
