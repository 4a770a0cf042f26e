"""Select: the first of several sends and receives that can be done, and only that one.

    cases ─▶ │ channel, words, sending │ ... │        waiters ─▶ │ place in that channel's queue │ ... │
                                                                    all of one wait

The cases are tried in turn, from a random one on. If none can be done, a place is put into each channel's queue; a case
that can be done by then is claimed by firing the wait ourselves, before anything is sent or received. No two locks are
held at once.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    cast,
    export,
    native,
    ptr,
    sizeof,
    stack,
    static,
    struct,
    u32,
    u64,
    void,
)
from greenbeat.runtime.arena import calloc, free
from greenbeat.tasks.beat import abandon
from greenbeat.tasks.channels import CLOSED, OK, Channel, attempt, give_back, queue_of
from greenbeat.tasks.layout import (
    BY_CANCEL,
    BY_CLOSE,
    BY_TIME,
    CANCELLED,
    IDLE,
    PREPARING,
    WAITING,
    Bridge,
    Fiber,
    Queue,
    Wait,
    Waiter,
    Worker,
)
from greenbeat.tasks.locks import lock, unlock
from greenbeat.tasks.threads import sleep_thread
from greenbeat.tasks.timers import add_timer, remove_timer
from greenbeat.tasks.virtual import dawdle
from greenbeat.tasks.waiting import begin, enqueue, fire, park, reason_of, remove

# What `select` gives besides a case's number: the case is in the low bits of CLOSED_CASE | number.
CLOSED_CASE = 1 << 16
PENDING = 0xFFFF_FFFF
MOST_CASES = 64

rotation = static(u32, name="select_rotation")


@struct
class Case:
    """A send of `words`, or a receive into them."""

    channel: ptr[Channel]
    words: ptr[u64]
    sending: u32


@native
def has_others(queue: ptr[Queue], wait: ptr[Wait]) -> bool:
    """Whether somebody else waits in a queue: a select may send to and receive from the same channel."""
    waiter = queue.first
    while waiter is not None:
        if waiter.wait != wait:
            return True
        waiter = waiter.next
    return False


@native
def is_possible(case: ptr[Case], wait: ptr[Wait]) -> bool:
    """Under the channel's lock: whether it can probably be done."""
    channel = case.channel
    if channel.closed != 0:
        return True
    if case.sending != 0:
        return channel.count < channel.capacity or has_others(channel.receivers, wait)
    return channel.count != 0 or channel.returned is not None or has_others(channel.senders, wait)


@native
def answer(result: u32, number: u32) -> u32:
    """What a case that was done gives."""
    return number | CLOSED_CASE if result == CLOSED else number


@native
def try_all(worker: ptr[Worker], cases: ptr[Case], count: u32) -> u32:
    """Do the first case that can be done; its answer, or PENDING."""
    rotation[0] += 1
    start = rotation[0] % count
    for i in range(count):
        number = start + i
        if number >= count:
            number -= count
        case = cases + number
        lock(addressof(case.channel.guard))
        result = attempt(worker, case.channel, case.words, case.sending != 0)
        unlock(addressof(case.channel.guard))
        if result == OK or result == CLOSED:
            return answer(result, number)
    return PENDING


@native
def leave_queues(cases: ptr[Case], waiters: ptr[Waiter], count: u32) -> None:
    """Take all places out of their queues."""
    for i in range(count):
        channel = cases[i].channel
        lock(addressof(channel.guard))
        remove(queue_of(channel, cases[i].sending != 0), waiters + i)
        unlock(addressof(channel.guard))


@native
def enter_queues(
    worker: ptr[Worker], wait: ptr[Wait], cases: ptr[Case], waiters: ptr[Waiter], count: u32, state: u64
) -> u32:
    """Wait for all cases; PENDING, or the answer of one that could be done by now."""
    while True:
        begin(wait, state)
        for i in range(count):
            waiters[i].next = cast(ptr[Waiter], 0)
            waiters[i].previous = cast(ptr[Waiter], 0)
        claimed = False
        for i in range(count):
            case = cases + i
            channel = case.channel
            waiter = waiters + i
            waiter.wait = wait
            waiter.words = case.words
            waiter.number = i
            assert dawdle()
            lock(addressof(channel.guard))
            if is_possible(case, wait):
                claimed = fire(wait, i) != IDLE
                result = attempt(worker, channel, case.words, case.sending != 0) if claimed else u32(OK)
                unlock(addressof(channel.guard))
                if claimed and (result == OK or result == CLOSED):
                    leave_queues(cases, waiters, count)
                    return answer(result, i)
                break
            enqueue(queue_of(channel, case.sending != 0), waiter)
            unlock(addressof(channel.guard))
        if not claimed:
            return PENDING
        # Whom we claimed the case for was taken by somebody else meanwhile.
        leave_queues(cases, waiters, count)


@native
def conclude(wait: ptr[Wait], cases: ptr[Case], waiters: ptr[Waiter], count: u32) -> u32:
    """The wait is over: the answer, with BY_CANCEL or BY_TIME as they are."""
    leave_queues(cases, waiters, count)
    remove_timer(wait)
    reason = reason_of(wait)
    if reason == BY_CLOSE:
        for i in range(count):
            if cases[i].channel.closed != 0:
                return i | CLOSED_CASE
    return reason


@export
def undo_case(cases: ptr[Case], found: u32) -> None:
    """Nobody takes a select's answer: give back what it has received."""
    if found < MOST_CASES and cases[found].sending == 0:
        give_back(cases[found].channel, cases[found].words)


@export
def thread_select(cases: ptr[Case], count: u32, deadline: u64, may_wait: u32) -> u32:
    """Select in a thread of Python's; an answer, BY_TIME, or BY_CANCEL with an exception set."""
    nobody = cast(ptr[Worker], 0)
    found = try_all(nobody, cases, count)
    if found != PENDING:
        return found
    if may_wait == 0:
        return BY_TIME
    wait = stack(Wait)
    wait.fiber = None
    wait.bridge = None
    wait.timer = 0
    wait.deadline = deadline
    waiters = stack(Waiter, MOST_CASES)
    found = enter_queues(nobody, wait, cases, waiters, count, WAITING)
    if found != PENDING:
        return found
    if not sleep_thread(wait):
        undo_case(cases, conclude(wait, cases, waiters, count))
        return BY_CANCEL
    return conclude(wait, cases, waiters, count)


@native(noinline=True)
def fiber_select(fiber: ptr[Fiber], cases: ptr[Case], count: u32, deadline: u64) -> u32:
    """Select in a fiber; an answer, or BY_TIME."""
    found = try_all(fiber.worker, cases, count)
    if found != PENDING:
        return found
    wait = fiber.wait
    wait.deadline = deadline
    waiters = stack(Waiter, MOST_CASES)
    found = enter_queues(fiber.worker, wait, cases, waiters, count, PREPARING)
    if found != PENDING:
        return found
    if atomic_load(addressof(fiber.cancelled), "relaxed") != 0:
        fire(wait, BY_CANCEL)
    if not add_timer(wait):
        fire(wait, BY_TIME)
    park(fiber, cast(ptr[u32], 0))
    found = conclude(wait, cases, waiters, count)
    if found == BY_CANCEL:
        abandon(fiber, CANCELLED)
    return found


# ---------------------------------------------------------------- event loops


@struct
class PendingSelect:
    """A select that an event loop waits for; cases and waiters are behind it."""

    wait: Wait
    cases: ptr[Case]
    waiters: ptr[Waiter]
    count: u32


@export
def pend_select(
    bridge: ptr[Bridge], cases: ptr[Case], count: u32, deadline: u64, found: ptr[u32]
) -> ptr[PendingSelect]:
    """Select for an event loop: `found` is the answer, or PENDING and what is pending is returned, or null.

    The cases must stay where they are until it is finished with.
    """
    nobody = cast(ptr[Worker], 0)
    nothing = cast(ptr[PendingSelect], 0)
    found[0] = try_all(nobody, cases, count)
    if found[0] != PENDING:
        return nothing
    pending = cast(ptr[PendingSelect], calloc(1, sizeof(PendingSelect) + u64(count) * sizeof(Waiter)))
    if pending is None:
        return nothing
    pending.cases = cases
    pending.count = count
    pending.waiters = cast(ptr[Waiter], pending + 1)
    pending.wait.bridge = bridge
    pending.wait.deadline = deadline
    found[0] = enter_queues(nobody, pending.wait, cases, pending.waiters, count, WAITING)
    if found[0] != PENDING:
        free(cast(ptr[void], pending))
        return nothing
    add_timer(pending.wait)
    return pending


@export
def finish_select(pending: ptr[PendingSelect]) -> u32:
    """The answer of a select that is over; what was pending is freed."""
    result = conclude(pending.wait, pending.cases, pending.waiters, pending.count)
    free(cast(ptr[void], pending))
    return result
