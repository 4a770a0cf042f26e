"""Waiting for many things at once, without a stack for each: event loops, and threads that wait for several tasks.

    Pending ─┬ wait ──bridge──▶ Bridge ── done ─▶ Pending ─▶ Pending       taken by the owner, one after the other
             ├ waiter: its place with a fiber or channel
             └ words: the value that is sent or received

A Pending is made by the owner and lives until the owner has finished with it, whatever became of it.
"""

from greenbeat.native import (
    addressof,
    array,
    atomic_store,
    cast,
    export,
    i32,
    native,
    ptr,
    sizeof,
    struct,
    u32,
    u64,
    void,
)
from greenbeat.runtime.arena import calloc, free
from greenbeat.tasks.channels import MOST_WORDS, WOULD_WAIT, Channel, attempt, outcome, pass_words, queue_of
from greenbeat.tasks.layout import BY_CANCEL, IDLE, WAITING, Bridge, Fiber, Queue, Wait, Waiter, Worker
from greenbeat.tasks.locks import lock, unlock
from greenbeat.tasks.threads import sleep_on
from greenbeat.tasks.timers import add_timer, remove_timer
from greenbeat.tasks.waiting import begin, deliver, enqueue, fire, reason_of, remove


@struct
class Pending:
    """Something that a bridge's owner waits for. Not more than one of `fiber` and `channel` is set."""

    wait: Wait
    waiter: Waiter
    fiber: ptr[Fiber]
    channel: ptr[Channel]
    queue: ptr[Queue]
    words: array[u64, MOST_WORDS]


@export
def new_bridge(file: i32) -> ptr[Bridge]:
    """A bridge that writes to a descriptor, or -1 for a thread; null when there is no memory."""
    bridge = cast(ptr[Bridge], calloc(1, sizeof(Bridge)))
    if bridge is not None:
        bridge.file = file
    return bridge


@export
def free_bridge(bridge: ptr[Bridge]) -> None:
    """Free a bridge that nothing is pending at."""
    free(cast(ptr[void], bridge))


@native
def new_pending(bridge: ptr[Bridge], deadline: u64) -> ptr[Pending]:
    """A wait at a bridge; null when there is no memory."""
    pending = cast(ptr[Pending], calloc(1, sizeof(Pending)))
    if pending is not None:
        wait = pending.wait
        wait.bridge = bridge
        wait.deadline = deadline
        pending.waiter.wait = wait
        pending.waiter.words = pending.words
        begin(wait, WAITING)
    return pending


@export
def pend_end(bridge: ptr[Bridge], fiber: ptr[Fiber], deadline: u64) -> ptr[Pending]:
    """Wait for a task's end, which may have come already; null when there is no memory."""
    pending = new_pending(bridge, deadline)
    if pending is None:
        return pending
    pending.fiber = fiber
    lock(addressof(fiber.guard))
    if fiber.ended != 0:
        state = fire(pending.wait, 0)
        deliver(cast(ptr[Worker], 0), pending.wait, state)
    else:
        pending.queue = fiber.joiners
        enqueue(fiber.joiners, pending.waiter)
        add_timer(pending.wait)
    unlock(addressof(fiber.guard))
    return pending


@export
def pend_channel(
    bridge: ptr[Bridge], channel: ptr[Channel], words: ptr[u64], deadline: u64, sending: u32, result: ptr[u32]
) -> ptr[Pending]:
    """Send or receive; `result` tells what it came to, or WOULD_WAIT: then what is pending is returned, or null."""
    pending = cast(ptr[Pending], 0)
    lock(addressof(channel.guard))
    result[0] = attempt(cast(ptr[Worker], 0), channel, words, sending != 0)
    if result[0] == WOULD_WAIT:
        pending = new_pending(bridge, deadline)
        if pending is not None:
            pending.channel = channel
            if sending != 0:
                pass_words(pending.words, words, channel.width)
            pending.queue = queue_of(channel, sending != 0)
            enqueue(pending.queue, pending.waiter)
            add_timer(pending.wait)
    unlock(addressof(channel.guard))
    return pending


@export
def take_done(bridge: ptr[Bridge]) -> ptr[Pending]:
    """One of the waits that are over; null if there is none."""
    lock(addressof(bridge.guard))
    wait = bridge.done
    if wait is not None:
        bridge.done = wait.next
    else:
        atomic_store(addressof(bridge.signal), u32(0), "relaxed")
    unlock(addressof(bridge.guard))
    return cast(ptr[Pending], wait)


@export
def cancel_pending(pending: ptr[Pending]) -> bool:
    """Give up waiting; False if it is over already, and in the list or about to be."""
    return fire(pending.wait, BY_CANCEL) != IDLE


@export
def finish_pending(pending: ptr[Pending], words: ptr[u64]) -> u32:
    """What a wait came to, with the value received; what was pending is freed."""
    if pending.fiber is not None:
        lock(addressof(pending.fiber.guard))
        if pending.queue is not None:
            remove(pending.queue, pending.waiter)
        unlock(addressof(pending.fiber.guard))
    if pending.channel is not None:
        lock(addressof(pending.channel.guard))
        remove(pending.queue, pending.waiter)
        unlock(addressof(pending.channel.guard))
        if words is not None:
            pass_words(words, pending.words, pending.channel.width)
    remove_timer(pending.wait)
    result = outcome(reason_of(pending.wait))
    free(cast(ptr[void], pending))
    return result


@export
def sleep_at_bridge(bridge: ptr[Bridge], deadline: u64, may_end: u32) -> u32:
    """Sleep in a thread of Python's until something is over: SLEPT, ALARMED with an exception set, or DISTURBED."""
    return sleep_on(addressof(bridge.signal), deadline, may_end != 0)
