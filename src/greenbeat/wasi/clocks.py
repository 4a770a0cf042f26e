"""Clocks: the host's, or one of the guest's own, which makes a run reproducible.

A `VirtualClock` stands still but for a tick each time it is read; a guest that sleeps on it does not wait: the time is
later at once. https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md#clockid
"""

import time
from typing import TYPE_CHECKING

from greenbeat.wasi.constants import ClockId, Errno, Failure
from greenbeat.wasi.functions import function
from greenbeat.wasi.guestmemory import U64

if TYPE_CHECKING:
    from datetime import datetime

    from greenbeat.wasi.process import Process

NANOSECONDS = 1_000_000_000
_HOST = {
    ClockId.REALTIME: time.CLOCK_REALTIME,
    ClockId.MONOTONIC: time.CLOCK_MONOTONIC,
    ClockId.PROCESS_CPUTIME: time.CLOCK_PROCESS_CPUTIME_ID,
    ClockId.THREAD_CPUTIME: time.CLOCK_THREAD_CPUTIME_ID,
}


class Clock:
    """The host's clocks; a class derived from it may tell the guest another time."""

    def read(self, clock: int) -> int:
        """The time of a clock (a `ClockId`) in nanoseconds."""
        return time.clock_gettime_ns(_HOST[clock])

    def resolution(self, clock: int) -> int:
        """The shortest time, in nanoseconds, that a clock can tell."""
        return max(1, round(time.clock_getres(_HOST[clock]) * NANOSECONDS))

    def skip(self, duration: int) -> bool:
        """Whether a wait of so many nanoseconds is over at once, because this clock has been put forward."""
        return False


class VirtualClock(Clock):
    """A clock that starts at a given time and goes on only by being read and by guests that sleep.

    Args:
        start: seconds since 1970, or a datetime.
        tick: nanoseconds that each reading takes.
    """

    def __init__(self, start: "float | datetime", tick: int = 1000) -> None:
        seconds = start if isinstance(start, int | float) else start.timestamp()
        if not 0 <= seconds < 1 << 34:
            raise ValueError(f"a clock starts at seconds since 1970, or at a datetime: {start!r}")
        self.start, self.passed, self.tick = round(seconds * NANOSECONDS), 0, tick

    def read(self, clock: int) -> int:
        self.passed += self.tick
        return self.passed + (self.start if clock == ClockId.REALTIME else 0)

    def resolution(self, clock: int) -> int:
        return self.tick

    def skip(self, duration: int) -> bool:
        self.passed += duration
        return True


def known(clock: int) -> int:
    """A guest's clock.

    Raises:
        Failure: INVAL, there is no such clock.
    """
    if clock not in _HOST:
        raise Failure(Errno.INVAL)
    return clock


@function("ii")
def clock_res_get(process: "Process", clock: int, result: int) -> None:
    """The resolution of a clock."""
    process.memory.pack(U64, result, process.clock.resolution(known(clock)))


@function("iIi")
def clock_time_get(process: "Process", clock: int, precision: int, result: int) -> None:
    """The time of a clock."""
    process.memory.pack(U64, result, process.clock.read(known(clock)))
