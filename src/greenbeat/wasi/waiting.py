"""Waiting for time to pass and for descriptors of the host's, until a deadline of the guest's or Ctrl-C ends it.

While a guest waits nothing polls: the thread sleeps in the system, without the GIL.
"""

import select
import time

from greenbeat.api import bridge, errorhooks
from greenbeat.runtime import hooks, layout

_LONGEST = 1 << 30  # milliseconds that the system waits at once


def _deadline() -> tuple[int, int]:
    """The running task, and when it must be over, in nanoseconds of the monotonic clock; 0 is never."""
    task = bridge.native.current_task()
    return task, bridge.at(layout.Task, task).deadline if task else 0


def wait(reading: list[int], writing: list[int], nanoseconds: int | None) -> set[int]:
    """Wait until one of some descriptors is ready, or the time is over (None: no such time).

    Returns:
        The descriptors that are ready, or whose other end is gone.

    Raises:
        Exhausted: the guest's time is over.
        KeyboardInterrupt, or what a signal's handler raises.
    """
    poll = select.poll()
    for fd in {*reading, *writing}:
        poll.register(fd, (select.POLLIN if fd in reading else 0) | (select.POLLOUT if fd in writing else 0))
    task, deadline = _deadline()
    end = None if nanoseconds is None else time.monotonic_ns() + nanoseconds
    while True:
        now = time.monotonic_ns()
        if deadline and now >= deadline:
            errorhooks.exhausted(hooks.TIME, task)
        ends = [each for each in (end, deadline) if each]
        left = max(0, min(ends) - now) if ends else None
        if end is not None and not reading and not writing and left:
            # `poll` counts milliseconds: a sleep is exact.
            time.sleep(left / 1e9)
            ready = []
        else:
            ready = poll.poll(None if left is None else min(-(-left // 1_000_000), _LONGEST))
        if ready or (end is not None and time.monotonic_ns() >= end):
            return {fd for fd, _ in ready}


def wait_for(fd: int, writing: bool) -> bool:
    """Wait until a descriptor can be read, or written, if there is a deadline; else the system call itself does that.

    Returns:
        Whether there is a deadline, so that the system call must not wait.
    """
    if not _deadline()[1]:
        return False
    wait([] if writing else [fd], [fd] if writing else [], None)
    return True
