"""Channels: values of one size, passed from who sends to who receives, in order, through a buffer or hand to hand.

    ┌ Channel ┬ senders, receivers: queues of those who wait ─▶ Waiter ─▶ Waiter
    └─────────┴ buffer ─▶ │ ... │ oldest │ ... │ newest │ ... │   `capacity` times `width` words
                            head ─┘

A value goes straight to a receiver that waits. Senders wait only while the buffer is full; with a capacity of 0 they
wait until somebody has received. After `close`, what is in the buffer can still be received.
"""

from greenbeat.native import (
    addressof,
    array,
    atomic_load,
    atomic_update,
    cast,
    export,
    fill,
    inline,
    native,
    ptr,
    sizeof,
    stack,
    struct,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.arena import calloc, free
from greenbeat.tasks.beat import abandon
from greenbeat.tasks.layout import (
    BY_CANCEL,
    BY_CLOSE,
    BY_TIME,
    CANCELLED,
    IDLE,
    WAITING,
    Fiber,
    Queue,
    Waiter,
    Worker,
)
from greenbeat.tasks.locks import lock, unlock
from greenbeat.tasks.timers import add_timer, remove_timer
from greenbeat.tasks.waiting import begin, deliver, dequeue, enqueue, fire, park, reason_of, remove, wake

# What an operation came to. WOULD_WAIT is for those who must not wait, and never given to others.
OK, CLOSED, TIMED_OUT, WOULD_WAIT, CANCELLED_WAIT, NO_MEMORY = range(6)

MOST_WORDS = 16
# Tasks that a kernel spawns hold its channels. Each worker counts for the channel that it met last without telling
# others; as long as it does, the channel has so many references more, and so never none.
COUNTING = 1 << 32


@struct
class Returned:
    """A value that its receiver has given back."""

    next: ptr["Returned"]
    words: array[u64, MOST_WORDS]


@struct
class Channel:
    """A channel; `references` are Python's objects and running tasks that hold it.

    While there are `returned` values, which are received before all others, nobody waits to receive.
    """

    guard: u32
    closed: u32
    capacity: u32
    width: u32
    count: u32
    head: u32
    senders: Queue
    receivers: Queue
    buffer: ptr[u64]
    returned: ptr[Returned]
    references: u64


@export
def new_channel(width: u32, capacity: u32) -> ptr[Channel]:
    """A channel of values of `width` words; null when there is no memory."""
    channel = cast(ptr[Channel], calloc(1, sizeof(Channel)))
    if channel is None:
        return cast(ptr[Channel], 0)
    channel.width = width
    channel.capacity = capacity
    channel.references = 1
    if capacity != 0 and width != 0:
        channel.buffer = cast(ptr[u64], calloc(u64(capacity) * u64(width), 8))
        if channel.buffer is None:
            free(cast(ptr[void], channel))
            return cast(ptr[Channel], 0)
    return channel


@export
def drop_channel(channel: ptr[Channel]) -> None:
    """One holder less; the last one frees it."""
    if atomic_update("sub", addressof(channel.references), u64(1), "acq_rel") == 1:
        free_channel(channel)


@native(noinline=True)
def free_channel(channel: ptr[Channel]) -> None:
    """Free a channel that nobody holds."""
    while channel.returned is not None:
        free_returned(channel)
    free(cast(ptr[void], channel.buffer))
    free(cast(ptr[void], channel))


@native(noinline=True)
def settle_kept(worker: ptr[Worker]) -> None:
    """Add what a worker has counted to the channel that it counts for, and count for none."""
    channel = cast(ptr[Channel], worker.kept)
    worker.kept = None
    if channel is not None:
        change = u64(worker.kept_count) - COUNTING
        if atomic_update("add", addressof(channel.references), change, "acq_rel") + change == 0:
            free_channel(channel)


@inline
def count_kept(worker: ptr[Worker], channel: ptr[void], change) -> None:
    """Tasks that this worker has spawned or ended hold a channel, or do not any more."""
    if unlikely(worker.kept != channel):
        settle_kept(worker)
        atomic_update("add", addressof(cast(ptr[Channel], channel).references), u64(COUNTING), "relaxed")
        worker.kept = channel
        worker.kept_count = 0
    worker.kept_count += change


@native
def free_returned(channel: ptr[Channel]) -> None:
    """Drop the oldest of the values that were given back."""
    first = channel.returned
    channel.returned = first.next
    free(cast(ptr[void], first))


@inline
def pass_words(destination: ptr[u64], source: ptr[u64], width: u32) -> None:
    """Copy a value."""
    for i in range(width):
        destination[i] = source[i]


@inline
def slot(channel: ptr[Channel], position: u32) -> ptr[u64]:
    """Where the value at a position of the buffer is."""
    at = channel.head + position
    if at >= channel.capacity:
        at -= channel.capacity
    return channel.buffer + u64(at) * u64(channel.width)


@inline
def hand_over(worker: ptr[Worker], channel: ptr[Channel], words: ptr[u64]) -> bool:
    """Under the lock: let the receiver that waits longest go on with a value; False if there is none."""
    handed = False
    waiter = dequeue(channel.receivers)
    while waiter is not None:
        # Before it is woken: a fiber may go on at once. If somebody else has woken it, it will not look.
        pass_words(waiter.words, words, channel.width)
        state = fire(waiter.wait, waiter.number)
        if state != IDLE:
            deliver(worker, waiter.wait, state)
            handed = True
            break
        waiter = dequeue(channel.receivers)
    return handed


@inline
def try_send(worker: ptr[Worker], channel: ptr[Channel], words: ptr[u64]) -> u32:
    """Under the channel's lock: OK, CLOSED, or WOULD_WAIT."""
    result = u32(WOULD_WAIT)
    if channel.closed != 0:
        result = u32(CLOSED)
    elif hand_over(worker, channel, words):
        result = u32(OK)
    elif channel.count < channel.capacity:
        pass_words(slot(channel, channel.count), words, channel.width)
        channel.count += 1
        result = u32(OK)
    return result


@inline
def take_from_sender(worker: ptr[Worker], channel: ptr[Channel], words: ptr[u64]) -> bool:
    """Under the lock: let the sender that waits longest go on, its value at `words`; False if there is none."""
    taken = False
    waiter = dequeue(channel.senders)
    while waiter is not None:
        pass_words(words, waiter.words, channel.width)
        state = fire(waiter.wait, waiter.number)
        if state != IDLE:
            deliver(worker, waiter.wait, state)
            taken = True
            break
        waiter = dequeue(channel.senders)
    return taken


@inline
def try_receive(worker: ptr[Worker], channel: ptr[Channel], words: ptr[u64]) -> u32:
    """Under the channel's lock: OK with a value at `words`, CLOSED, or WOULD_WAIT."""
    result = u32(OK)
    if unlikely(channel.returned is not None):
        pass_words(words, channel.returned.words, channel.width)
        free_returned(channel)
    elif channel.count != 0:
        pass_words(words, slot(channel, 0), channel.width)
        channel.head += 1
        if channel.head >= channel.capacity:
            channel.head = 0
        channel.count -= 1
        if channel.senders.first is not None:
            if take_from_sender(worker, channel, slot(channel, channel.count)):
                channel.count += 1
    elif channel.senders.first is None or not take_from_sender(worker, channel, words):
        result = u32(CLOSED) if channel.closed != 0 else u32(WOULD_WAIT)
    return result


@inline
def attempt(worker: ptr[Worker], channel: ptr[Channel], words: ptr[u64], sending: bool) -> u32:
    """Under the channel's lock: send or receive, if it can be done at once."""
    if sending:
        return try_send(worker, channel, words)
    return try_receive(worker, channel, words)


@inline
def queue_of(channel: ptr[Channel], sending: bool) -> ptr[Queue]:
    """Where those wait who send, or receive."""
    return addressof(channel.senders) if sending else addressof(channel.receivers)


@export
def give_back(channel: ptr[Channel], words: ptr[u64]) -> bool:
    """Undo a receive: the value is the next to be received, after those given back before. False without memory."""
    given = True
    lock(addressof(channel.guard))
    if not hand_over(cast(ptr[Worker], 0), channel, words):
        returned = cast(ptr[Returned], calloc(1, sizeof(Returned)))
        given = returned is not None
        if given:
            pass_words(returned.words, words, channel.width)
            place = addressof(channel.returned)
            while place[0] is not None:
                place = addressof(place[0].next)
            place[0] = returned
    unlock(addressof(channel.guard))
    return given


@export
def forget_waiters(channel: ptr[Channel]) -> None:
    """In a forked child: nobody waits."""
    channel.guard = 0
    fill(cast(ptr[u8], addressof(channel.senders)), 0, sizeof(Queue))
    fill(cast(ptr[u8], addressof(channel.receivers)), 0, sizeof(Queue))


@export
def close_channel(channel: ptr[Channel]) -> bool:
    """Close a channel: who waits to send or receive is told; False if it was closed before."""
    lock(addressof(channel.guard))
    first = channel.closed == 0
    channel.closed = 1
    waiter = dequeue(channel.receivers)
    while waiter is not None:
        wake(cast(ptr[Worker], 0), waiter.wait, BY_CLOSE)
        waiter = dequeue(channel.receivers)
    waiter = dequeue(channel.senders)
    while waiter is not None:
        wake(cast(ptr[Worker], 0), waiter.wait, BY_CLOSE)
        waiter = dequeue(channel.senders)
    unlock(addressof(channel.guard))
    return first


# ---------------------------------------------------------------- fibers


@native
def outcome(reason: u32) -> u32:
    """What the end of a wait means for an operation."""
    if reason == BY_CLOSE:
        return CLOSED
    if reason == BY_TIME:
        return TIMED_OUT
    if reason == BY_CANCEL:
        return CANCELLED_WAIT
    return OK


@native(noinline=True)
def wait_in(fiber: ptr[Fiber], channel: ptr[Channel], queue: ptr[Queue], words: ptr[u64], deadline: u64) -> u32:
    """Under the channel's lock, which is released: wait in one of its queues."""
    wait = fiber.wait
    waiter = stack(Waiter)
    waiter.wait = wait
    waiter.words = words
    waiter.number = 0
    wait.deadline = deadline
    begin(wait, WAITING)
    # Whoever has ended the wait before we do lets us go on, so we park even then.
    if atomic_load(addressof(fiber.cancelled), "relaxed") != 0 and fire(wait, BY_CANCEL) != IDLE:
        unlock(addressof(channel.guard))
        abandon(fiber, CANCELLED)
    enqueue(queue, waiter)
    if deadline != 0 and not add_timer(wait) and fire(wait, BY_TIME) != IDLE:
        remove(queue, waiter)
        unlock(addressof(channel.guard))
        return NO_MEMORY
    park(fiber, addressof(channel.guard))
    reason = reason_of(wait)
    if reason >= BY_CANCEL:
        lock(addressof(channel.guard))
        remove(queue, waiter)
        unlock(addressof(channel.guard))
    remove_timer(wait)
    if reason == BY_CANCEL:
        abandon(fiber, CANCELLED)
    return outcome(reason)


@inline
def fiber_transfer(fiber: ptr[Fiber], channel: ptr[Channel], words: ptr[u64], deadline: u64, sending: bool) -> u32:
    """Send or receive in a fiber; OK, CLOSED or TIMED_OUT (if the deadline is not 0)."""
    lock(addressof(channel.guard))
    result = attempt(fiber.worker, channel, words, sending)
    if result == WOULD_WAIT:
        return wait_in(fiber, channel, queue_of(channel, sending), words, deadline)
    unlock(addressof(channel.guard))
    return result
