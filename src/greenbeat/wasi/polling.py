"""`poll_oneoff`: waiting for clocks and descriptors.

    subscription   0 user data │ 8 what │ 16 clock  │ 24 timeout │ 32 precision │ 40 absolute?          48 bytes
                                        │ 16 descriptor
    event          0 user data │ 8 error │ 10 what │ 16 bytes to read │ 24 hang-up?                    32 bytes

What never blocks (files, Python objects, memory) is ready at once. A descriptor that cannot be waited for makes an
event with its error, as POSIX's POLLNVAL.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from greenbeat.wasi.clocks import known
from greenbeat.wasi.constants import Errno, EventType, Failure, Rights
from greenbeat.wasi.functions import function
from greenbeat.wasi.guestmemory import MASK, U32
from greenbeat.wasi.handles import Handle
from greenbeat.wasi.waiting import wait

if TYPE_CHECKING:
    from greenbeat.wasi.process import Process

_SUBSCRIPTION = struct.Struct("<QB7xI4xQQH6x")
_EVENT = struct.Struct("<QHB5xQH6x")
ABSOLUTE = 1
_MOST = 1 << 16


class Subscription(NamedTuple):
    """What a guest waits for; `number` is a clock or a descriptor."""

    user: int
    what: int
    number: int
    timeout: int
    flags: int


class Event(NamedTuple):
    """What has happened."""

    user: int
    error: int
    what: int
    available: int = 0


def subscriptions(table: memoryview) -> Iterator[Subscription]:
    """The subscriptions of preview 1."""
    for user, what, number, timeout, _, flags in _SUBSCRIPTION.iter_unpack(table):
        yield Subscription(user, what, number, timeout, flags)


@function("iiii")
def poll_oneoff(process: "Process", subscribed: int, events: int, count: int, result: int) -> None:
    """Wait until at least one of some things has happened."""
    table = process.memory.slice(subscribed, _SUBSCRIPTION.size * checked_count(count))
    poll(process, list(subscriptions(table)), events, result)


def checked_count(count: int) -> int:
    """The number of subscriptions.

    Raises:
        Failure: INVAL, there are none, or more than make sense.
    """
    if not 0 < count & MASK <= _MOST:
        raise Failure(Errno.INVAL)
    return count


def poll(process: "Process", wanted: list[Subscription], events: int, result: int) -> None:
    """Wait, and put the events into memory."""
    room = process.memory.slice(events, _EVENT.size * len(wanted))
    number = process.memory.slice(result, U32.size)
    happened = _happened(process, wanted)
    for index, event in enumerate(happened):
        _EVENT.pack_into(room, index * _EVENT.size, event.user, event.error, event.what, event.available, 0)
    U32.pack_into(number, 0, len(happened))


def _happened(process: "Process", wanted: list[Subscription]) -> list[Event]:
    ready: list[Event] = []
    blocked: list[tuple[Subscription, Handle, int]] = []
    timers: list[tuple[int, Subscription]] = []
    for each in wanted:
        if each.what == EventType.CLOCK:
            try:
                timers.append((_left(process, each), each))
            except Failure as failure:
                ready.append(Event(each.user, failure.errno, each.what))
        elif each.what in (EventType.FD_READ, EventType.FD_WRITE):
            _look(process, each, ready, blocked)
        else:
            raise Failure(Errno.INVAL)
    soonest = 0 if ready else min((left for left, _ in timers), default=None)
    reads = [fd for each, _, fd in blocked if each.what == EventType.FD_READ]
    writes = [fd for each, _, fd in blocked if each.what == EventType.FD_WRITE]
    skipped = bool(soonest) and process.clock.skip(soonest or 0)
    found = wait(reads, writes, 0 if skipped else soonest) if blocked or not ready else set()
    for each, handle, fd in blocked:
        if fd in found:
            available = handle.available() if each.what == EventType.FD_READ else 0
            ready.append(Event(each.user, 0, each.what, available))
    if soonest is not None and not ready:
        ready += [Event(each.user, 0, each.what) for left, each in timers if left <= soonest]
    elif soonest == 0:
        ready += [Event(each.user, 0, each.what) for left, each in timers if left == 0]
    return ready


def _left(process: "Process", timer: Subscription) -> int:
    """Nanoseconds until a timer is over."""
    clock = known(timer.number)
    return max(0, timer.timeout - process.clock.read(clock)) if timer.flags & ABSOLUTE else timer.timeout


def _look(
    process: "Process",
    wanted: Subscription,
    ready: list[Event],
    blocked: list[tuple[Subscription, Handle, int]],
) -> None:
    """Find out whether a descriptor is ready, or has to be waited for."""
    try:
        handle = process.handle(wanted.number, Rights.POLL_FD_READWRITE)
        fd = handle.host
        if fd is None:
            available = handle.available() if wanted.what == EventType.FD_READ else 0
            ready.append(Event(wanted.user, 0, wanted.what, available))
        else:
            blocked.append((wanted, handle, fd))
    except Failure as failure:
        ready.append(Event(wanted.user, failure.errno, wanted.what))
