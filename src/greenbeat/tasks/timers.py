"""Waits that end at a time: a heap of them, by when.

    entries ─▶ │ soonest │ ... children of entry n are 2n+1 and 2n+2 │

The pacemaker fires what is due; it sleeps no longer than until the soonest.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    cast,
    native,
    ptr,
    sizeof,
    static,
    struct,
    u32,
    u64,
    void,
)
from greenbeat.runtime.pacemaker import alarm_hook, next_alarm, set_alarm
from greenbeat.runtime.system import realloc
from greenbeat.tasks.layout import BY_TIME, Wait
from greenbeat.tasks.locks import lock, unlock
from greenbeat.tasks.virtual import dawdle, virtual
from greenbeat.tasks.waiting import interrupt


@struct
class Timers:
    """The heap."""

    guard: u32
    count: u32
    capacity: u32
    entries: ptr[ptr[Wait]]


timers = static(Timers, name="timers")


@native
def put(at: u32, wait: ptr[Wait]) -> None:
    """Store an entry."""
    timers.entries[at] = wait
    wait.timer = at + 1


@native
def sift_up(start: u32, wait: ptr[Wait]) -> None:
    """Move an entry towards the front, from a place that is free."""
    at = start
    while at > 0:
        parent = (at - 1) // 2
        above = timers.entries[parent]
        if above.deadline <= wait.deadline:
            break
        put(at, above)
        at = parent
    put(at, wait)


@native
def sift_down(start: u32, wait: ptr[Wait]) -> None:
    """Move an entry towards the end, from a place that is free."""
    at = start
    while True:
        child = 2 * at + 1
        if child >= timers.count:
            break
        if child + 1 < timers.count and timers.entries[child + 1].deadline < timers.entries[child].deadline:
            child += 1
        below = timers.entries[child]
        if wait.deadline <= below.deadline:
            break
        put(at, below)
        at = child
    put(at, wait)


@native
def note_soonest() -> None:
    """Tell the pacemaker when something is due."""
    soonest: u64 = 0
    if timers.count != 0:
        soonest = timers.entries[0].deadline
    if soonest != atomic_load(next_alarm, "relaxed"):
        set_alarm(soonest)


@native
def take_out(at: u32) -> None:
    """Remove an entry."""
    timers.entries[at].timer = 0
    timers.count -= 1
    if at != timers.count:
        last = timers.entries[timers.count]
        if at > 0 and last.deadline < timers.entries[(at - 1) // 2].deadline:
            sift_up(at, last)
        else:
            sift_down(at, last)


@native
def add_timer(wait: ptr[Wait]) -> bool:
    """Let a wait end at its deadline; False when there is no memory. True for a wait without a deadline."""
    if wait.deadline == 0:
        return True
    lock(addressof(timers.guard))
    good = True
    if timers.count == timers.capacity:
        more = timers.capacity * 2 + 64
        grown = cast(ptr[ptr[Wait]], 0)
        if virtual.failing == 0:
            grown = cast(ptr[ptr[Wait]], realloc(cast(ptr[void], timers.entries), u64(more) * sizeof(u64)))
        if grown is None:
            good = False
        else:
            timers.entries = grown
            timers.capacity = more
    if good:
        timers.count += 1
        sift_up(timers.count - 1, wait)
        note_soonest()
    unlock(addressof(timers.guard))
    return good


@native
def remove_timer(wait: ptr[Wait]) -> None:
    """The wait is over, whatever ended it."""
    if wait.deadline != 0:
        lock(addressof(timers.guard))
        if wait.timer != 0:
            take_out(wait.timer - 1)
            note_soonest()
        unlock(addressof(timers.guard))


@native
def fire_timers(time: u64) -> None:
    """End the waits that are due."""
    lock(addressof(timers.guard))
    while timers.count != 0 and timers.entries[0].deadline <= time:
        wait = timers.entries[0]
        take_out(0)
        # Under the lock, which the owner takes before it leaves: so the wait is still there.
        assert dawdle()
        interrupt(wait, BY_TIME)
    note_soonest()
    unlock(addressof(timers.guard))


@native
def prepare_timers() -> None:
    """Let the pacemaker call us."""
    alarm_hook[0] = fire_timers
