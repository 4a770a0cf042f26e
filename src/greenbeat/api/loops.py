"""Event loops that wait for tasks and channels.

Each asyncio loop gets a bridge: a pipe that the loop watches, and a native list of waits that are over. A wait is a
native *pending*, and a future until it is over. Who is cancelled while waiting ends the wait; what was received for him
meanwhile is given back.
"""

import asyncio
import contextlib
import ctypes
import os
import time
import weakref
from collections.abc import Callable
from typing import Any

from greenbeat.api.bridge import native

# What an operation came to; see `tasks/channels.py`.
OK, CLOSED, TIMED_OUT, WOULD_WAIT, CANCELLED = range(5)
# What `sleep_at_bridge` gives if the task whose host function sleeps is to end.
DISTURBED = 2
WAITER_CANCELLED = "the task that waited here was cancelled"

# How to finish with what was pending, and how to undo what that came to.
_Ending = tuple[Callable[[int], int], Callable[[int], object] | None]


def new_native_bridge(file: int) -> int:
    """A native bridge.

    Raises:
        MemoryError: there is no memory.
    """
    address: int = native.new_bridge(file)
    if not address:
        raise MemoryError("no memory to wait with")
    return address


class LoopBridge:
    """What one event loop waits for.

    The loop keeps it, as the owner of a callback; when the loop is closed or gone, what is still waited for is undone.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        self.address = new_native_bridge(writer)
        # By the address of what is pending: how it ends, which must not lead to the loop; and whom to tell.
        self._open: dict[int, _Ending] = {}
        self._futures: dict[int, asyncio.Future[int]] = {}
        loop.add_reader(self._reader, self._collect)
        weakref.finalize(self, _dismantle, os.getpid(), self.address, self._reader, writer, self._open)

    def expect(
        self, address: int, finish: Callable[[int], int], undo: Callable[[int], object] | None = None
    ) -> "asyncio.Future[int]":
        """A future of what `finish(address)` returns once the pending wait is over.

        Args:
            address: of what is pending. It is finished with once, whatever happens.
            finish: finishes; holds what the wait needs.
            undo: called with what `finish` returned if nobody takes it.

        Raises:
            MemoryError: the address is 0.
        """
        if not address:
            raise MemoryError("no memory to wait with")
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._open[address] = finish, undo
        self._futures[address] = future
        return future

    async def wait(
        self, address: int, finish: Callable[[int], int], undo: Callable[[int], object] | None = None
    ) -> int:
        """Wait for what `expect` tells of; whoever is cancelled leaves everything as if he had never waited."""
        future = self.expect(address, finish, undo)
        try:
            return await future
        except BaseException:
            if future.done() and not future.cancelled() and undo is not None:
                undo(future.result())
            # If it is over, its address may be that of another one by now.
            if self._futures.get(address) is future:
                self._give_up(address)
            raise

    def _give_up(self, address: int) -> None:
        self._futures.pop(address, None)
        # If it is over already, `_collect` comes across it.
        if address in self._open and native.cancel_pending(address):
            finish, _ = self._open.pop(address)
            finish(address)

    def _collect(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)
        while address := native.take_done(self.address):
            finish, undo = self._open.pop(address)
            result = finish(address)
            future = self._futures.pop(address, None)
            if future is not None and not future.done():
                future.set_result(result)
            elif undo is not None:
                undo(result)


def _dismantle(process: int, address: int, reader: int, writer: int, pending: dict[int, _Ending]) -> None:
    """End what a loop waited for. In a forked child it is the parent's."""
    if os.getpid() != process:
        return
    for waiting in list(pending):
        if native.cancel_pending(waiting):
            finish, _ = pending.pop(waiting)
            finish(waiting)
    while pending:
        # What could not be cancelled is in the list, or is being put into it.
        if done := native.take_done(address):
            finish, undo = pending.pop(done)
            result = finish(done)
            if undo is not None:
                undo(result)
        else:
            time.sleep(0)
    native.free_bridge(address)
    os.close(writer)
    os.close(reader)


_bridges: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[LoopBridge]]" = weakref.WeakKeyDictionary()


def this_loop() -> LoopBridge:
    """The running event loop's bridge.

    Raises:
        RuntimeError: no event loop is running.
    """
    loop = asyncio.get_running_loop()
    place = _bridges.get(loop)
    found = place() if place is not None else None
    if found is None:
        found = LoopBridge(loop)
        _bridges[loop] = weakref.ref(found)
    return found


def words(count: int) -> Any:
    """Room for native words."""
    return (ctypes.c_uint64 * max(count, 1))()
