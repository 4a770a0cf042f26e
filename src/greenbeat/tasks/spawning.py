"""Spawning and joining, from fibers and from threads; the services that kernels reach through their fiber.

A handle that kernels hold is a fiber's address with its generation in the bits that addresses do not use, so that a
task that was joined already, whose stack serves somebody else by now, is told from one that was not.

    63          48 47                              6 5        0
    │ generation  │ address / 64                    │ generation│
"""

from greenbeat.native import addressof, atomic_load, cast, function, inline, native, ptr, stack, u32, u64, void
from greenbeat.tasks.beat import abandon, fail_service, leave
from greenbeat.tasks.channels import Channel, close_channel, count_kept, fiber_transfer
from greenbeat.tasks.layout import (
    BAD_HANDLE,
    BY_CANCEL,
    CANCELLED,
    FINISHED,
    IDLE,
    NO_ROOM,
    PREPARING,
    SPAWNED,
    WAITING,
    YIELDED,
    Fiber,
    Waiter,
)
from greenbeat.tasks.locks import lock, unlock
from greenbeat.tasks.pool import make_ready
from greenbeat.tasks.scheduler import cancel, drop_reference, has_ended
from greenbeat.tasks.stacks import new_fiber, services
from greenbeat.tasks.timers import add_timer, remove_timer
from greenbeat.tasks.tracing import JOIN, SPAWN, trace
from greenbeat.tasks.virtual import clock
from greenbeat.tasks.waiting import begin, enqueue, fire, park, reason_of, remove

LOW_BITS = 6
LOW = (1 << LOW_BITS) - 1
HIGH_SHIFT = 48
ADDRESS = ((1 << HIGH_SHIFT) - 1) & ~LOW


@inline
def handle_of(fiber: ptr[Fiber]) -> u64:
    """A handle of this use of a fiber."""
    generation = u64(fiber.generation)
    return cast(u64, fiber) | (generation & LOW) | (generation >> LOW_BITS) << HIGH_SHIFT


@native(noinline=True)
def spawn_service(fiber: ptr[Fiber], thunk: ptr[void], words: u64) -> ptr[Fiber]:
    """A fiber for a task of a kernel's."""
    entry = cast(function[[ptr[Fiber]], None], thunk)
    made = new_fiber(fiber.worker, SPAWNED, entry, words, 1)
    if made is None:
        abandon(fiber, NO_ROOM)
    return made


@inline
def adopt(fiber: ptr[Fiber], made: ptr[Fiber]) -> None:
    """Let a task be one of those that a fiber has yet to join."""
    made.parent = fiber
    made.elder = None
    made.sibling = fiber.children
    if fiber.children is not None:
        fiber.children.elder = made
    fiber.children = made


@native
def let_go(fiber: ptr[Fiber], made: ptr[Fiber]) -> None:
    """A task was joined, and its result used."""
    if made.elder is not None:
        made.elder.sibling = made.sibling
    else:
        fiber.children = made.sibling
    if made.sibling is not None:
        made.sibling.elder = made.elder
    made.parent = None
    drop_reference(fiber.worker, made)


@native
def dismiss_channels(made: ptr[void]) -> None:
    """A task has ended: give its channels back."""
    fiber = cast(ptr[Fiber], made)
    for i in range(fiber.channel_count):
        count_kept(fiber.worker, fiber.channels[i], -1)


@native
def hold_service(fiber: ptr[Fiber], made: ptr[Fiber], channel: ptr[void]) -> None:
    """Let a task that has not begun keep one of at most MOST_CHANNELS channels."""
    if made.keeping is None:
        made.keeping = cast(ptr[void], made)
        made.dismiss = dismiss_channels
        made.channel_count = 0
    made.channels[made.channel_count] = channel
    made.channel_count += 1
    count_kept(fiber.worker, channel, 1)


@native(noinline=True)
def start_service(fiber: ptr[Fiber], made: ptr[Fiber], detached: u64) -> u64:
    """Let a task begin; its handle."""
    if detached == 0:
        made.references = 2
        adopt(fiber, made)
    handle = handle_of(made)
    trace(fiber.worker, SPAWN, 0, fiber, made)
    make_ready(fiber.worker, made)
    return handle


@native
def child_of(fiber: ptr[Fiber], handle: u64) -> ptr[Fiber]:
    """The task that a handle names; does not return if it was joined before, or is another fiber's to join."""
    made = cast(ptr[Fiber], handle & ADDRESS)
    if handle == 0 or made.parent != fiber or handle_of(made) != handle:
        abandon(fiber, BAD_HANDLE)
    return made


@native(noinline=True)
def await_other(fiber: ptr[Fiber], made: ptr[Fiber], may_end: bool) -> u32:
    """Park until another fiber has ended, or this one is cancelled; the wait's reason.

    A fiber that has been cancelled already waits only without `may_end`.
    """
    wait = fiber.wait
    waiter = stack(Waiter)
    waiter.wait = wait
    waiter.number = 0
    wait.deadline = 0
    lock(addressof(made.guard))
    if made.ended != 0:
        unlock(addressof(made.guard))
        return 0
    begin(wait, WAITING)
    # Whoever has ended the wait before we do lets us go on, so we park even then.
    if may_end and atomic_load(addressof(fiber.cancelled), "relaxed") != 0 and fire(wait, BY_CANCEL) != IDLE:
        unlock(addressof(made.guard))
        return BY_CANCEL
    enqueue(made.joiners, waiter)
    park(fiber, addressof(made.guard))
    # Who woke us had the lock, and may have it still: our place must stay until it has not.
    lock(addressof(made.guard))
    remove(made.joiners, waiter)
    unlock(addressof(made.guard))
    return reason_of(wait)


@native(noinline=True)
def await_end(fiber: ptr[Fiber], made: ptr[Fiber]) -> None:
    """Park until another fiber has ended; does not return if this one is cancelled."""
    if await_other(fiber, made, True) == BY_CANCEL:
        abandon(fiber, CANCELLED)


@native(cold=True)
def fail_as(fiber: ptr[Fiber], other: ptr[Fiber]) -> None:
    """End a fiber for the reason that ended another one; does not return."""
    fiber.failure = other.failure
    fiber.words[0] = other.words[0]
    fiber.words[1] = other.words[1]
    abandon(fiber, other.status)


@native(noinline=True)
def join_service(fiber: ptr[Fiber], handle: u64) -> ptr[Fiber]:
    """Wait for a task; its failure is this one's too."""
    made = child_of(fiber, handle)
    if not has_ended(made):
        await_end(fiber, made)
    trace(fiber.worker, JOIN, 0, fiber, made)
    if made.status != FINISHED:
        fail_as(fiber, made)
    return made


@native(noinline=True)
def cancel_service(fiber: ptr[Fiber], handle: u64) -> None:
    """Cancel a task."""
    cancel(child_of(fiber, handle))


@native
def send_service(fiber: ptr[Fiber], channel: ptr[void], words: ptr[u64], deadline: u64) -> u32:
    """Send a value."""
    return fiber_transfer(fiber, cast(ptr[Channel], channel), words, deadline, True)


@native
def receive_service(fiber: ptr[Fiber], channel: ptr[void], words: ptr[u64], deadline: u64) -> u32:
    """Receive a value."""
    return fiber_transfer(fiber, cast(ptr[Channel], channel), words, deadline, False)


@native
def close_service(fiber: ptr[Fiber], channel: ptr[void]) -> None:
    """Close a channel."""
    close_channel(cast(ptr[Channel], channel))


@native(noinline=True)
def sleep_service(fiber: ptr[Fiber], nanoseconds: u64) -> None:
    """Wait for a time."""
    wait = fiber.wait
    wait.deadline = clock() + nanoseconds
    begin(wait, PREPARING)
    if atomic_load(addressof(fiber.cancelled), "relaxed") != 0:
        abandon(fiber, CANCELLED)
    if not add_timer(wait):
        abandon(fiber, NO_ROOM)
    park(fiber, cast(ptr[u32], 0))
    remove_timer(wait)
    if reason_of(wait) == BY_CANCEL:
        abandon(fiber, CANCELLED)


@native(noinline=True)
def give_way_service(fiber: ptr[Fiber]) -> None:
    """Let others that are ready run first."""
    leave(fiber, YIELDED)
    if fiber.cancelled != 0:
        abandon(fiber, CANCELLED)


@native
def prepare_services() -> None:
    """Fill in the table that kernels call through."""
    services.fail = fail_service
    services.spawn = spawn_service
    services.start = start_service
    services.hold = hold_service
    services.join = join_service
    services.forget = let_go
    services.cancel = cancel_service
    services.send = send_service
    services.receive = receive_service
    services.close = close_service
    services.sleep = sleep_service
    services.give_way = give_way_service
