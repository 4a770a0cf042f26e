"""Event loops that wait for tasks and channels.

Each asyncio loop gets a bridge: a pipe that the loop watches, and a native list of waits that are over. A wait is a
native *pending*, and a future until it is over; a future that is cancelled ends the wait.
"""

import asyncio
import contextlib
import ctypes
import os
import weakref
from collections.abc import Callable
from typing import Any

from greenbeat.api.bridge import native

# What an operation came to; see `tasks/channels.py`.
OK, CLOSED, TIMED_OUT, WOULD_WAIT, CANCELLED = range(5)


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
    """What one event loop waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        self.address = new_native_bridge(writer)
        # By the address of what is pending: what to call when it is over.
        self._pending: dict[int, Callable[[int], None]] = {}
        loop.add_reader(self._reader, self._collect)
        weakref.finalize(loop, _dismantle, self.address, self._reader, writer, self._pending)

    def expect(self, address: int, finish: Callable[[int], Any]) -> "asyncio.Future[Any]":
        """A future of what `finish(address)` returns, or raises, once the pending wait is over.

        Raises:
            MemoryError: the address is 0.
        """
        if not address:
            raise MemoryError("no memory to wait with")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def over(address: int) -> None:
            try:
                result = finish(address)
            except Exception as problem:
                if not future.done():
                    future.set_exception(problem)
            else:
                if not future.done():
                    future.set_result(result)

        def given_up(future: "asyncio.Future[Any]") -> None:
            if future.cancelled() and address in self._pending and native.cancel_pending(address):
                del self._pending[address]
                with contextlib.suppress(Exception):
                    finish(address)

        self._pending[address] = over
        future.add_done_callback(given_up)
        return future

    def _collect(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)
        while address := native.take_done(self.address):
            over = self._pending.pop(address, None)
            if over is not None:
                over(address)


def _dismantle(address: int, reader: int, writer: int, pending: dict[int, Callable[[int], None]]) -> None:
    """The loop is gone: end what it still waited for."""
    for waiting in list(pending):
        if native.cancel_pending(waiting):
            pending.pop(waiting)
            native.finish_pending(waiting, None)
    while done := native.take_done(address):
        if pending.pop(done, None) is not None:
            native.finish_pending(done, None)
    if not pending:
        native.free_bridge(address)
        os.close(writer)
    os.close(reader)


_bridges: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBridge]" = weakref.WeakKeyDictionary()


def this_loop() -> LoopBridge:
    """The running event loop's bridge.

    Raises:
        RuntimeError: no event loop is running.
    """
    loop = asyncio.get_running_loop()
    found = _bridges.get(loop)
    if found is None:
        found = _bridges[loop] = LoopBridge(loop)
    return found


def words(count: int) -> Any:
    """Room for native words."""
    return (ctypes.c_uint64 * max(count, 1))()
