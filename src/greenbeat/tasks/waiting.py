"""Waiting for something, and being woken: the same for fibers, threads, and event loops.

owner                                        whoever has what is waited for
─────                                        ─────────────────────────────
begin(wait), put places into queues          take a place out of a queue, under its lock
sleep: park the fiber, or the thread         fire(wait, reason): the first to do so wins
on waking: take the other places out         pass the words, deliver(wait)
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    compare_exchange,
    extern,
    i32,
    i64,
    inline,
    native,
    ptr,
    u8,
    u32,
    u64,
)
from greenbeat.tasks.layout import FIRED, IDLE, PARKED, PREPARING, WAITING, Fiber, Queue, Wait, Waiter, Worker
from greenbeat.tasks.locks import give_signal, lock, sched_yield, unlock
from greenbeat.tasks.pool import make_ready, publish
from greenbeat.tasks.switch import switch
from greenbeat.tasks.tracing import WAKE, no_fiber, trace
from greenbeat.tasks.virtual import dawdle


@extern
def write(file: i32, data: ptr[u8], size: u64) -> i64:
    """Write to a descriptor."""


@inline
def begin(wait: ptr[Wait], state) -> None:
    """Be somebody who waits. Who looks whether it was cancelled after that sees it, or is woken."""
    if wait.fiber is None:
        wait.signal = 0
    atomic_store(addressof(wait.state), u64(state), "release")
    publish()


@inline
def reason_of(wait: ptr[Wait]) -> u32:
    """Why a wait is over."""
    return u32(atomic_load(addressof(wait.state), "acquire") >> 2)


@inline
def fire(wait: ptr[Wait], reason: u32) -> u64:
    """End a wait, if nobody did yet; what its state was before, or IDLE if we are not the one who ended it."""
    result: u64 = IDLE
    while True:
        state = atomic_load(addressof(wait.state), "relaxed")
        if state != WAITING and state != PREPARING:
            break
        assert dawdle()
        if compare_exchange(addressof(wait.state), state, u64(FIRED) | u64(reason) << 2, "acq_rel") == state:
            result = state
            break
    return result


@native(noinline=True)
def deliver_elsewhere(wait: ptr[Wait]) -> None:
    """Wake a thread or an event loop."""
    bridge = wait.bridge
    if bridge is None:
        # The wait is on the thread's stack.
        give_signal(addressof(wait.signal))
        return
    # All of it under the lock: the owner, who takes waits out under it, may free the bridge after the last one.
    lock(addressof(bridge.guard))
    first = bridge.done is None
    wait.next = bridge.done
    assert dawdle()
    bridge.done = wait
    if first and bridge.file >= 0:
        write(bridge.file, "!", 1)
    elif first:
        give_signal(addressof(bridge.signal))
    unlock(addressof(bridge.guard))


@inline
def deliver(worker: ptr[Worker], wait: ptr[Wait], state: u64) -> None:
    """Wake the owner of a wait that we have fired, given what `fire` returned."""
    assert dawdle()
    if wait.fiber is None:
        deliver_elsewhere(wait)
    else:
        trace(worker, WAKE, 0, no_fiber(), wait.fiber)
        if state == WAITING:
            make_ready(worker, wait.fiber)


@inline
def wake(worker: ptr[Worker], wait: ptr[Wait], reason: u32) -> bool:
    """End a wait that needs no words; whether it had not ended yet."""
    state = fire(wait, reason)
    if state != IDLE:
        deliver(worker, wait, state)
    return state != IDLE


@native(noinline=True)
def interrupt(wait: ptr[Wait], reason: u32) -> None:
    """End a wait for a cause of its own: by somebody without the lock that its owner may hold until it is parked."""
    state = fire(wait, reason)
    if state == IDLE:
        return
    fiber = wait.fiber
    if fiber is not None and state == WAITING:
        # Nobody else lets it go on, so it stays with this worker until it has left its stack.
        while atomic_load(addressof(fiber.worker.current), "acquire") == fiber:
            sched_yield()
    deliver(cast(ptr[Worker], 0), wait, state)


@native(noinline=True, attributes="noredzone")
def park(fiber: ptr[Fiber], held: ptr[u32]) -> None:
    """Let the worker go on with others until somebody wakes this fiber; the lock is released when that is safe.

    Without a lock, the wait was begun as PREPARING.
    """
    worker = fiber.worker
    assert dawdle()
    worker.action = PARKED
    worker.unlock = held
    switch(addressof(fiber.stack_pointer), worker.scheduler, fiber)


# ---------------------------------------------------------------- queues


@inline
def enqueue(queue: ptr[Queue], waiter: ptr[Waiter]) -> None:
    """Put a place at the end."""
    last = queue.last
    waiter.previous = last
    waiter.next = None
    if last is not None:
        last.next = waiter
    else:
        queue.first = waiter
    queue.last = waiter


@inline
def remove(queue: ptr[Queue], waiter: ptr[Waiter]) -> None:
    """Take a place out, if it is in."""
    if waiter.previous is not None:
        waiter.previous.next = waiter.next
    elif queue.first == waiter:
        queue.first = waiter.next
    if waiter.next is not None:
        waiter.next.previous = waiter.previous
    elif queue.last == waiter:
        queue.last = waiter.previous
    waiter.next = None
    waiter.previous = None


@inline
def dequeue(queue: ptr[Queue]) -> ptr[Waiter]:
    """Take out the oldest place; null if there is none."""
    waiter = queue.first
    if waiter is not None:
        following = waiter.next
        queue.first = following
        if following is not None:
            following.previous = None
        else:
            queue.last = None
        waiter.next = None
    return waiter
