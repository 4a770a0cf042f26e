"""`greenbeat.Channel` and `select`: values passed between tasks, threads and event loops.

    done = gb.Channel(gb.i64, capacity=16)
    done.send(7)                 # in a thread; `await done.asend(7)` in asyncio; `done.send(7)` in a kernel too
    value = done.recv()
    for value in done: ...       # until it is closed; `async for` in asyncio

    which, value = gb.select([first, second.sending(3)], timeout=1.0)

A value is a number, a bool, None, or a tuple of numbers and bools; each item is a 64-bit word.
"""

from __future__ import annotations

import ctypes
import os
import struct
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from greenbeat.api.bridge import native
from greenbeat.api.checks import described, shown
from greenbeat.api.loops import CANCELLED, CLOSED, OK, TIMED_OUT, WAITER_CANCELLED, WOULD_WAIT, this_loop, words
from greenbeat.api.runtime import wait_natively
from greenbeat.api.tasks import deadline_of
from greenbeat.errors import Cancelled, ChannelClosed
from greenbeat.native.types import BOOL, F64, I64, BoolType, FloatType, IntegerType, Type

MOST_WORDS = 16
MOST_CAPACITY = 1 << 24
# See `tasks/selecting.py`.
CLOSED_CASE, PENDING, MOST_CASES = 1 << 16, 0xFFFF_FFFF, 64
BY_CANCEL, BY_TIME = 0x1000_0000, 0x1000_0001

_PYTHON_TYPES: dict[Any, Type] = {int: I64, float: F64, bool: BOOL}


def element_types(kind: Any) -> tuple[tuple[Type, ...], bool]:
    """The types of a value's words, and whether the value is a tuple.

    Raises:
        TypeError: values of this type cannot be sent.
    """
    if kind is None or kind is type(None):
        return (), False
    arguments = getattr(kind, "__args__", None)
    if getattr(kind, "__origin__", None) is tuple and arguments:
        return tuple(_element(item) for item in arguments), True
    if isinstance(kind, tuple):
        return tuple(_element(item) for item in kind), True
    return (_element(kind),), False


def _element(kind: Any) -> Type:
    kind = _PYTHON_TYPES.get(kind, kind)
    if not isinstance(kind, IntegerType | FloatType | BoolType):
        raise TypeError(
            f"a channel has values of {kind.__name__ if isinstance(kind, type) else described(kind)}, which cannot be "
            "sent: numbers, bools, None and tuples of numbers and bools can, "
            "as in Channel(greenbeat.i64) and Channel((greenbeat.i64, greenbeat.f64))"
        )
    return kind


class _Format:
    """How a value becomes words and back."""

    def __init__(self, kind: Any) -> None:
        self.types, self.is_tuple = element_types(kind)
        if len(self.types) > MOST_WORDS:
            raise TypeError(f"a channel's values have at most {MOST_WORDS} items, not {len(self.types)}")
        self.struct = struct.Struct("=" + "".join(map(_code, self.types)))
        self.width = len(self.types)
        names = [str(item) for item in self.types]
        self.name = f"({', '.join(names)})" if self.is_tuple else names[0] if names else "None"

    def pack(self, value: Any, room: Any) -> None:
        """Put a value into words.

        Raises:
            TypeError, OverflowError: it is no value of this type.
        """
        if self.is_tuple:
            if not isinstance(value, tuple) or len(value) != self.width:
                raise TypeError(f"this channel sends {self.name}, not {described(value)}")
            items = value
        elif self.width == 0:
            if value is not None:
                raise TypeError(f"this channel sends None, not {described(value)}")
            return
        else:
            items = (value,)
        for item, kind in zip(items, self.types, strict=True):
            _check(item, kind)
        self.struct.pack_into(room, 0, *items)

    def unpack(self, room: Any) -> Any:
        """The value that words hold."""
        if self.width == 0 and not self.is_tuple:
            return None
        found = self.struct.unpack_from(room)
        return found if self.is_tuple else found[0]


def _code(kind: Type) -> str:
    if isinstance(kind, BoolType):
        return "?7x"
    if isinstance(kind, FloatType):
        # An f32 is passed as it is computed with, as an f64.
        return "d"
    assert isinstance(kind, IntegerType)
    return "q" if kind.signed else "Q"


def _check(item: Any, kind: Type) -> None:
    if isinstance(kind, BoolType):
        if not isinstance(item, bool):
            raise TypeError(f"a bool is needed here, not {described(item)}")
    elif isinstance(kind, FloatType):
        if not isinstance(item, int | float) or isinstance(item, bool):
            raise TypeError(f"a {kind} is needed here, not {described(item)}")
    else:
        assert isinstance(kind, IntegerType)
        if not isinstance(item, int) or isinstance(item, bool):
            raise TypeError(f"an {kind} is needed here, not {described(item)}")
        if not kind.least <= item <= kind.greatest:
            raise OverflowError(f"{shown(item)} does not fit {kind}")


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # A channel made without annotations passes anything, to a type checker.
    Element = TypeVar("Element", default=Any)
else:
    from typing import TypeVar

    Element = TypeVar("Element")


class _Head(ctypes.Structure):
    """How a channel begins in `tasks/channels.py`, which would be much to import for one bit."""

    _fields_ = (("guard", ctypes.c_uint32), ("closed", ctypes.c_uint32))


_channels: weakref.WeakSet[Channel[Any]] = weakref.WeakSet()


class Channel(Generic[Element]):
    """A queue between tasks, threads and event loops.

    Args:
        kind: the type of its values: a number type (`int` is i64, `float` f64), `bool`, `None`, or a tuple of those.
        capacity: how many values it holds before a sender waits; with 0, a sender waits for its receiver.

    Raises:
        TypeError: values of this type cannot be sent.
        ValueError: the capacity is not from 0 to 2**24.
    """

    __slots__ = ("__weakref__", "_address", "_format", "capacity", "kind")

    def __init__(self, kind: Any = None, capacity: int = 0) -> None:
        if not isinstance(capacity, int) or isinstance(capacity, bool):
            raise TypeError(f"a capacity is a number of values, not {described(capacity)}")
        if not 0 <= capacity <= MOST_CAPACITY:
            raise ValueError(f"a capacity is from 0 to {MOST_CAPACITY}: {shown(capacity)}")
        self._format = _Format(kind)
        self.kind, self.capacity = tuple.__class_getitem__(kind) if isinstance(kind, tuple) else kind, capacity
        self._address: int = native.new_channel(self._format.width, capacity)
        if not self._address:
            raise MemoryError(f"no memory for a channel of {capacity} values")
        _channels.add(self)

    if not TYPE_CHECKING:

        def __class_getitem__(cls, kind):
            return ChannelOf(kind)

    def send(self, value: Any = None, timeout: float | None = None) -> None:
        """Send a value; wait in this thread while the channel is full.

        Raises:
            ChannelClosed: it is closed.
            TimeoutError: nobody has received in time.
            TypeError, OverflowError: it is no value of the channel's type.
        """
        room = words(self._format.width)
        self._format.pack(value, room)
        self._conclude(self._now(room, timeout, sending=True), timeout, "sent")

    def recv(self, timeout: float | None = None) -> Any:
        """Receive the oldest value; wait in this thread while there is none.

        Raises:
            ChannelClosed: it is closed, and nothing is left.
            TimeoutError: nobody has sent in time.
        """
        room = words(self._format.width)
        self._conclude(self._now(room, timeout, sending=False), timeout, "received")
        return self._format.unpack(room)

    async def asend(self, value: Any = None) -> None:
        """Send a value; the event loop runs others while the channel is full.

        Raises:
            ChannelClosed, TypeError, OverflowError: as `send`.
        """
        room = words(self._format.width)
        self._format.pack(value, room)
        self._conclude(await self._later(room, sending=True), None, "sent")

    async def arecv(self) -> Any:
        """Receive the oldest value; the event loop runs others while there is none.

        Raises:
            ChannelClosed: it is closed, and nothing is left.
        """
        room = words(self._format.width)
        self._conclude(await self._later(room, sending=False), None, "received")
        return self._format.unpack(room)

    def _now(self, room: Any, timeout: float | None, *, sending: bool) -> int:
        deadline = deadline_of(timeout)
        return wait_natively(native.thread_transfer, self._address, room, deadline, timeout != 0, sending)

    async def _later(self, room: Any, *, sending: bool) -> int:
        bridge = this_loop()
        result = ctypes.c_uint32()
        pending = native.pend_channel(bridge.address, self._address, room, 0, sending, ctypes.byref(result))
        if result.value != WOULD_WAIT:
            return result.value

        def finish(address: int) -> int:
            outcome: int = native.finish_pending(address, None if sending else room)
            return outcome

        def undo(outcome: int) -> None:
            if outcome == OK and not sending:
                native.give_back(self._address, room)

        return await bridge.wait(pending, finish, undo)

    def close(self) -> None:
        """Let nothing more be sent. What was sent before can still be received; who waits gets `ChannelClosed`."""
        native.close_channel(self._address)

    def sending(self, value: Any = None) -> Sending:
        """For `select`: to send this value."""
        room = words(self._format.width)
        self._format.pack(value, room)
        return Sending(self, room)

    def _conclude(self, result: int, timeout: float | None, done: str) -> None:
        if result == CLOSED:
            _closed(self)
        if result in (TIMED_OUT, WOULD_WAIT):
            raise TimeoutError(f"nothing was {done} within {timeout} s")
        if result == CANCELLED:
            raise Cancelled(WAITER_CANCELLED)
        if result != OK:
            raise MemoryError("no memory to wait with")

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                value = self.recv()
            except ChannelClosed:
                return
            yield value

    async def __aiter__(self) -> AsyncIterator[Any]:
        while True:
            try:
                value = await self.arecv()
            except ChannelClosed:
                return
            yield value

    def __del__(self) -> None:
        address = getattr(self, "_address", 0)
        if address:
            native.drop_channel(address)

    def __repr__(self) -> str:
        closed = _Head.from_address(self._address).closed
        return f"<{self._told()}{', closed' if closed else ''}>"

    def _told(self) -> str:
        return f"greenbeat.Channel of {self._format.name}, capacity {self.capacity}"

    def __reduce__(self) -> Any:
        raise TypeError("a greenbeat.Channel cannot be pickled or copied")


class ChannelOf:
    """`Channel[T]` in an annotation: a channel of values of a type."""

    def __init__(self, kind: Any) -> None:
        element_types(kind)
        self.kind = self.channel_values = kind

    def __repr__(self) -> str:
        return f"greenbeat.Channel[{self.kind}]"


class Sending:
    """A send for `select`; made by `Channel.sending`."""

    def __init__(self, channel: Channel[Any], room: Any) -> None:
        self.channel, self.room = channel, room


class _Case(ctypes.Structure):
    _fields_ = (("channel", ctypes.c_uint64), ("words", ctypes.c_void_p), ("sending", ctypes.c_uint32))


class _Cases:
    """The cases of a select, as native code wants them."""

    def __init__(self, cases: Sequence[Channel[Any] | Sending]) -> None:
        if not isinstance(cases, Sequence):
            raise TypeError(
                f"select takes a list of cases, as in select([first, second.sending(3)]), not {described(cases)}"
            )
        if not 1 <= len(cases) <= MOST_CASES:
            raise ValueError(f"select takes from 1 to {MOST_CASES} cases, not {len(cases)}")
        self.channels: list[Channel[Any]] = []
        self.rooms: list[Any] = []
        self.sends: list[bool] = []
        for case in cases:
            if not isinstance(case, Channel | Sending):
                raise TypeError(
                    f"a case of select is a channel, to receive, or channel.sending(value), not {described(case)}"
                )
            is_send = isinstance(case, Sending)
            channel = case.channel if isinstance(case, Sending) else case
            self.channels.append(channel)
            self.sends.append(is_send)
            self.rooms.append(case.room if isinstance(case, Sending) else words(channel._format.width))
        self.native = (_Case * len(cases))(
            *(
                _Case(channel._address, ctypes.addressof(room), is_send)
                for channel, room, is_send in zip(self.channels, self.rooms, self.sends, strict=True)
            )
        )

    def finish(self, pending: int) -> int:
        """What an event loop's select came to."""
        found: int = native.finish_select(pending)
        return found

    def undo(self, found: int) -> None:
        """Give back what a select has received."""
        native.undo_case(self.native, found)

    def answer(self, found: int, timeout: float | None) -> tuple[int, Any]:
        """Which case was done, and what it received."""
        if found == BY_TIME:
            count = len(self.channels)
            told = "the channel was not" if count == 1 else f"none of the {count} channels was"
            raise TimeoutError(f"{told} ready within {timeout} s")
        if found == BY_CANCEL:
            raise Cancelled(WAITER_CANCELLED)
        number = found & (CLOSED_CASE - 1)
        if found & CLOSED_CASE:
            _closed(self.channels[number])
        value = None if self.sends[number] else self.channels[number]._format.unpack(self.rooms[number])
        return number, value


def select(cases: Sequence[Channel[Any] | Sending], timeout: float | None = None) -> tuple[int, Any]:
    """Do the first of several sends and receives that can be done, and only that one; wait in this thread for it.

    Args:
        cases: channels to receive from, and `channel.sending(value)`.
        timeout: seconds to wait at most; 0 to not wait.

    Returns:
        Its number among the cases, and the value received (None for a send).

    Raises:
        ChannelClosed: the channel of the case that came first is closed.
        TimeoutError: none could be done in time.
    """
    made = _Cases(cases)
    found = wait_natively(native.thread_select, made.native, len(cases), deadline_of(timeout), timeout != 0)
    return made.answer(found, timeout)


async def aselect(cases: Sequence[Channel[Any] | Sending], timeout: float | None = None) -> tuple[int, Any]:
    """As `select`, while the event loop runs others.

    Raises:
        ChannelClosed: the channel of the case that came first is closed.
        TimeoutError: none could be done in time.
    """
    made = _Cases(cases)
    bridge = this_loop()
    deadline = deadline_of(timeout)
    if timeout == 0:
        return made.answer(native.thread_select(made.native, len(cases), deadline, False), timeout)
    found = ctypes.c_uint32()
    pending = native.pend_select(bridge.address, made.native, len(cases), deadline, ctypes.byref(found))
    if found.value != PENDING:
        return made.answer(found.value, timeout)
    return made.answer(await bridge.wait(pending, made.finish, made.undo), timeout)


def _closed(channel: Channel[Any]) -> NoReturn:
    raise ChannelClosed(f"<{channel._told()}> is closed")


def _forget_in_child() -> None:
    for channel in _channels:
        native.forget_waiters(channel._address)


os.register_at_fork(after_in_child=_forget_in_child)
