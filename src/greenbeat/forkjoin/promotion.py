"""Forks become tasks at beats, not before.

A compiled `par` writes a record of its right branch at the top of the fiber's fork stack, whose top it keeps in a
register, runs the left branch, and looks at the record: untouched, it runs the right one itself.

    stack ─▶ │ child or site │ words ... │ child or site │ words ... │ site │ words ... │ ◀─ top
             └─ promoted ────────────────────────────────▲           └─ not promoted ───┘
                                                         unpromoted

A beat gives TOKENS to the fiber that it finds. A promotion costs one, and the child gets half of what is left. The
oldest record goes first, since it is the most work: so the promoted records are always those below `unpromoted`. If a
token is left when there is nothing to promote, `fork_floor` is raised: the next fork comes here, and as no record is
older, its own is the oldest. This is the invariant: *a spare token means that no record can be promoted*.

Nothing here is atomic: only the owner looks at its records, at its own polls. Heartbeat scheduling is by Acar,
Charguéraud, Guatto, Rainey and Sieczkowski (2018); tokens and eager promotion are MaPLe's.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    export,
    inline,
    load,
    native,
    ptr,
    return_address_place,
    static,
    store,
    u8,
    u32,
    u64,
)
from greenbeat.runtime.pacemaker import EVERYWHERE
from greenbeat.tasks import deque
from greenbeat.tasks.beat import abandon, beat, cancel, end_branches, lower_floor
from greenbeat.tasks.layout import FINISHED, SPAWNED, Fiber, ForkSite
from greenbeat.tasks.pool import push_local
from greenbeat.tasks.scheduler import drop_reference, has_ended
from greenbeat.tasks.spawning import await_end, await_other
from greenbeat.tasks.stacks import new_fiber, services

TOKENS = 30
# A promoted record holds its child's address with this bit.
PROMOTED = 1

# For tests and traces: promotions, beats that found a fiber, the most promotions between two beats of one fiber.
promotions = static(u64, name="promotions")
token_beats = static(u64, name="token_beats")
most_promotions = static(u32, name="most_promotions")


@inline
def record_size(site: ptr[ForkSite]) -> u64:
    """Bytes of a record."""
    return u64(8) + u64(site.words) * 8


@native
def promote(fiber: ptr[Fiber], record: ptr[u8]) -> bool:
    """Make a task of the oldest record; False when there is no memory."""
    site = load(ptr[ForkSite], record)
    child = new_fiber(fiber.worker, SPAWNED, site.thunk, site.words, 2)
    if child is None:
        return False
    words = cast(ptr[u64], record + 8)
    for i in range(site.arguments):
        child.words[i] = words[i]
    child.site = site
    fiber.tokens -= 1
    child.tokens = fiber.tokens // 2
    fiber.tokens -= child.tokens
    if child.tokens != 0:
        child.fork_floor = cast(ptr[u8], EVERYWHERE)
    child.deadline = fiber.deadline
    store(record, cast(u64, child) | PROMOTED)
    fiber.unpromoted = record + record_size(site)
    fiber.promotions += 1
    promotions[0] += 1
    push_local(fiber.worker, child)
    return True


@native
def spend(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """Promote as long as there are tokens and records; then let the next fork come here if a token is left."""
    while fiber.tokens != 0 and fiber.unpromoted < top:
        if not promote(fiber, fiber.unpromoted):
            return
    if fiber.tokens != 0:
        atomic_store(addressof(fiber.fork_floor), cast(ptr[u8], EVERYWHERE), "relaxed")


@native
def beat_with_forks(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """A beat, for a fiber whose records end at `top`."""
    if fiber.promotions > most_promotions[0]:
        most_promotions[0] = fiber.promotions
    fiber.promotions = 0
    token_beats[0] += 1
    fiber.tokens = TOKENS
    beat(fiber)


@native(noinline=True)
def poll_service(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """A loop of a kernel saw the pulse."""
    beat_with_forks(fiber, top)
    spend(fiber, top)


@native(noinline=True)
def overflow_service(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """A function, or a fork, is below its floor: a beat has come, or a token is spare, or it needs more stack."""
    position = return_address_place()
    if atomic_load(addressof(fiber.pulse), "relaxed") != 0:
        beat_with_forks(fiber, top)
    lower_floor(fiber, position, top)
    spend(fiber, top)


@native(noinline=True)
def join_fork_service(fiber: ptr[Fiber], record: ptr[u8]) -> ptr[u64]:
    """The left branch is done, and the right one was promoted: its result's words, or null if it has not begun."""
    child = cast(ptr[Fiber], load(u64, record) & ~u64(PROMOTED))
    words = cast(ptr[u64], record + 8)
    if not has_ended(child):
        newest = deque.pop(fiber.worker)
        if newest == child:
            # Nobody else has seen it: it is run here, as if it had never been promoted.
            fiber.unpromoted = record
            drop_reference(fiber.worker, child)
            drop_reference(fiber.worker, child)
            return cast(ptr[u64], 0)
        if newest is not None:
            push_local(fiber.worker, newest)
        await_end(fiber, child)
    fiber.unpromoted = record
    status = child.status
    fiber.failure = child.failure if status != FINISHED else fiber.failure
    for i in range(child.site.words):
        words[i] = child.words[i]
    drop_reference(fiber.worker, child)
    if status != FINISHED:
        abandon(fiber, status)
    return words


@native(noinline=True)
def abandon_branches(fiber: ptr[Fiber]) -> None:
    """A fiber ends early: its promoted branches are cancelled, and awaited, since they may use what it was given."""
    at = fiber.stack
    end = fiber.unpromoted
    while at < end:
        child = cast(ptr[Fiber], load(u64, at) & ~u64(PROMOTED))
        cancel(child)
        at += record_size(child.site)
    at = fiber.stack
    while at < end:
        child = cast(ptr[Fiber], load(u64, at) & ~u64(PROMOTED))
        at += record_size(child.site)
        # A cancellation of this fiber does not end the waiting: it has ended already.
        while not has_ended(child):
            await_other(fiber, child, False)
        drop_reference(fiber.worker, child)
    fiber.unpromoted = fiber.stack


@export
def prepare_forks() -> None:
    """Fill in the services of forks."""
    services.poll = poll_service
    services.overflow = overflow_service
    services.fork = overflow_service
    services.join_fork = join_fork_service
    end_branches[0] = abandon_branches
