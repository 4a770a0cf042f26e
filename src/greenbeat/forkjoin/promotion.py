"""Forks become tasks at beats, not before.

A compiled `par` writes a record of its right branch at the top of the fiber's fork stack, whose top it keeps in a
register, runs the left branch, and looks at the record: untouched, it runs the right one itself.

    stack ─▶ │ child │ words ... │ child │ words ... │ site │ words ... │ ◀─ top
             └─ promoted ────────────────────────────▲ not promoted ────┘
                                                     unpromoted

A parallel loop has a record too. It can be promoted again and again: each time a child gets the later
half of the iterations that have not begun.

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
    atomic_update,
    cast,
    export,
    i64,
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
    unlikely,
)
from greenbeat.runtime.pacemaker import EVERYWHERE
from greenbeat.tasks import deque
from greenbeat.tasks.beat import beat, end_branches, leave, lower_floor
from greenbeat.tasks.layout import FINISHED, PAUSED, PROMOTED, SPAWNED, Fiber, ForkSite
from greenbeat.tasks.pool import push_local
from greenbeat.tasks.scheduler import cancel, drop_reference, has_ended
from greenbeat.tasks.spawning import adopt, await_end, await_other, fail_as, let_go
from greenbeat.tasks.stacks import has_begun, new_fiber, services
from greenbeat.tasks.tracing import JOIN, PROMOTE, UNFORK, trace
from greenbeat.tasks.virtual import clock, draw, virtual

TOKENS = 30
# How often a beat's tokens can be spent, when each time half of the rest goes to the child.
MOST_PROMOTIONS = 5
# Records that the checked build looks at, each time.
MOST_LOOKED_AT = 1000
# A chunk of a loop's iterations is to take so many nanoseconds.
SHORT_CHUNK, LONG_CHUNK = 20_000, 100_000

# For comparisons: how many tokens a beat gives, and whether those that are left are spent by the next forks.
tokens_per_beat = static(u32, name="tokens_per_beat")
eager = static(u32, name="eager")
# For recordings: what was promoted runs as a task even if it is back before anybody has begun it.
keeping_promoted = static(u32, name="keeping_promoted")

# For tests and traces: promotions, beats that found a fiber, the most promotions between two beats of one fiber.
promotions = static(u64, name="promotions")
token_beats = static(u64, name="token_beats")
most_promotions = static(u32, name="most_promotions")


@inline
def record_size(site: ptr[ForkSite]) -> u64:
    """Bytes of a record."""
    return u64(8) + u64(site.words) * 8


@native
def give_tokens(fiber: ptr[Fiber], child: ptr[Fiber]) -> None:
    """A promotion costs a token; the child gets half of what is left."""
    fiber.tokens -= 1
    child.tokens = fiber.tokens // 2
    fiber.tokens -= child.tokens
    if child.tokens != 0 and eager[0] != 0:
        child.fork_floor = cast(ptr[u8], EVERYWHERE)
    fiber.promotions += 1
    atomic_update("add", promotions, u64(1), "relaxed")
    trace(fiber.worker, PROMOTE, child.tokens, fiber, child)
    push_local(fiber.worker, child)


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
    store(record, cast(u64, child) | PROMOTED)
    fiber.unpromoted = record + record_size(site)
    give_tokens(fiber, child)
    return True


@native
def split(fiber: ptr[Fiber], record: ptr[u8]) -> bool:
    """Make a task of the later half of what a loop has not begun; False when there is no memory."""
    site = load(ptr[ForkSite], record)
    child = new_fiber(fiber.worker, SPAWNED, run_part, site.words, 2)
    if child is None:
        return False
    words = cast(ptr[u64], record + 8)
    for i in range(site.words):
        child.words[i] = words[i]
    middle = words[0] + (words[1] - words[0]) // 2
    child.words[0] = middle
    words[1] = middle
    child.site = site
    child.loop = record
    adopt(fiber, child)
    give_tokens(fiber, child)
    return True


@native
def is_prefix(fiber: ptr[Fiber], top: ptr[u8]) -> bool:
    """Whether the records below `unpromoted` are promoted, or of loops that have nothing left, and the others not.

    Only so many are looked at: a deep recursion asks often.
    """
    at = fiber.stack
    looked = 0
    while at < top and looked < MOST_LOOKED_AT:
        looked += 1
        word = load(u64, at)
        promoted = word & PROMOTED != 0
        site = cast(ptr[Fiber], word & ~u64(PROMOTED)).site if promoted else load(ptr[ForkSite], at)
        done = promoted or (cast(u64, site.thunk) == 0 and load(i64, at, 8) >= load(i64, at, 16))
        if (promoted and at >= fiber.unpromoted) or (not done and at < fiber.unpromoted):
            return False
        at += record_size(site)
    return (at == top or looked == MOST_LOOKED_AT) and fiber.unpromoted <= top


@native
def spend(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """Promote as long as there are tokens and records; then let the next fork come here if a token is left."""
    good = True
    while good and fiber.tokens != 0 and fiber.unpromoted < top:
        record = fiber.unpromoted
        site = load(ptr[ForkSite], record)
        words = cast(ptr[i64], record + 8)
        if cast(u64, site.thunk) != 0:
            good = promote(fiber, record)
        elif words[0] < words[1]:
            good = split(fiber, record)
        else:
            fiber.unpromoted = record + record_size(site)
    assert is_prefix(fiber, top) and (fiber.promotions <= MOST_PROMOTIONS or tokens_per_beat[0] != TOKENS)
    if good and fiber.tokens != 0 and eager[0] != 0:
        atomic_store(addressof(fiber.fork_floor), cast(ptr[u8], EVERYWHERE), "relaxed")


@native
def beat_with_forks(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """A beat, for a fiber whose records end at `top`."""
    if fiber.promotions > most_promotions[0]:
        most_promotions[0] = fiber.promotions
    fiber.promotions = 0
    atomic_update("add", token_beats, u64(1), "relaxed")
    fiber.tokens = tokens_per_beat[0]
    beat(fiber)


@native(noinline=True)
def pause(fiber: ptr[Fiber]) -> bool:
    """In a simulation: let others go on; whether a beat has come meanwhile."""
    leave(fiber, PAUSED)
    return draw(virtual.period) == 0 or atomic_load(addressof(fiber.cancelled), "relaxed") != 0


@native
def raise_again(fiber: ptr[Fiber]) -> None:
    """In a simulation: come back at the next look at the pulse."""
    fiber.pulse = 1
    fiber.floor = cast(ptr[u8], EVERYWHERE)
    fiber.fork_floor = cast(ptr[u8], EVERYWHERE)


@native(noinline=True)
def poll_service(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """A loop of a kernel saw the pulse."""
    if virtual.on == 0 or pause(fiber):
        beat_with_forks(fiber, top)
    spend(fiber, top)
    if unlikely(virtual.on != 0):
        raise_again(fiber)


@native(noinline=True)
def overflow_service(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """A function, or a fork, is below its floor: a beat has come, or a token is spare, or it needs more stack."""
    position = return_address_place()
    if atomic_load(addressof(fiber.pulse), "relaxed") != 0 and (virtual.on == 0 or pause(fiber)):
        beat_with_forks(fiber, top)
    lower_floor(fiber, position, top)
    spend(fiber, top)
    if unlikely(virtual.on != 0):
        raise_again(fiber)


@native(noinline=True)
def join_fork_service(fiber: ptr[Fiber], record: ptr[u8]) -> ptr[u64]:
    """The left branch is done, and the right one was promoted: its result's words, or null if it has not begun."""
    child = cast(ptr[Fiber], load(u64, record) & ~u64(PROMOTED))
    words = cast(ptr[u64], record + 8)
    assert fiber.unpromoted == record + record_size(child.site)
    if not await_branch(fiber, child):
        fiber.unpromoted = record
        release_unstarted(fiber, child)
        return cast(ptr[u64], 0)
    if child.status != FINISHED:
        fail_as(fiber, child)
    fiber.unpromoted = record
    trace(fiber.worker, JOIN, 0, fiber, child)
    for i in range(child.site.words):
        words[i] = child.words[i]
    drop_reference(fiber.worker, child)
    return words


@native
def await_branch(fiber: ptr[Fiber], child: ptr[Fiber]) -> bool:
    """Wait for what was promoted; False if it has not begun, and is to be run here, as if it had never been promoted.

    What has begun can be in our deque as well, if it was parked.
    """
    if has_ended(child):
        return True
    newest = deque.pop(fiber.worker)
    if newest == child and not has_begun(child) and keeping_promoted[0] == 0:
        return False
    if newest is not None:
        push_local(fiber.worker, newest)
    await_end(fiber, child)
    return True


@native
def release_unstarted(fiber: ptr[Fiber], child: ptr[Fiber]) -> None:
    """Give a fiber back that has not begun: both of its references are ours."""
    trace(fiber.worker, UNFORK, 0, fiber, child)
    child.references = 1
    drop_reference(fiber.worker, child)


@native(noinline=True)
def abandon_branches(fiber: ptr[Fiber]) -> None:
    """A fiber ends early: its branches are cancelled, and awaited, since they may use what it was given."""
    end = fiber.unpromoted
    at = fiber.stack
    while at < end:
        at = end_branch(fiber, at, False)
    child = fiber.children
    while child is not None:
        if child.loop is not None:
            cancel(child)
        child = child.sibling
    at = fiber.stack
    while at < end:
        at = end_branch(fiber, at, True)
    fiber.unpromoted = fiber.stack
    child = fiber.children
    while child is not None:
        following = child.sibling
        if child.loop is not None:
            await_ended(fiber, child)
            let_go(fiber, child)
        child = following


@native
def await_ended(fiber: ptr[Fiber], child: ptr[Fiber]) -> None:
    """Wait for a branch; a cancellation of this fiber does not end the waiting: it has ended already."""
    while not has_ended(child):
        await_other(fiber, child, False)


@native
def end_branch(fiber: ptr[Fiber], record: ptr[u8], wait: bool) -> ptr[u8]:
    """Cancel, or await, what a record became; where the next record is. Loops have children of their own."""
    word = load(u64, record)
    if word & PROMOTED == 0:
        return record + record_size(cast(ptr[ForkSite], word))
    child = cast(ptr[Fiber], word & ~u64(PROMOTED))
    following = record + record_size(child.site)
    if wait:
        await_ended(fiber, child)
        drop_reference(fiber.worker, child)
    else:
        cancel(child)
    return following


# ---------------------------------------------------------------- loops


@native(noinline=True)
def loop_service(fiber: ptr[Fiber], record: ptr[u8]) -> None:
    """Run a loop whose record is complete."""
    run_iterations(fiber, record)
    if fiber.children is not None:
        join_parts(fiber, record)


@native
def run_iterations(fiber: ptr[Fiber], record: ptr[u8]) -> None:
    """Run what a loop has not begun, in chunks that take neither too long nor too short to look up between."""
    site = load(ptr[ForkSite], record)
    words = cast(ptr[i64], record + 8)
    top = record + record_size(site)
    size: i64 = 1
    before = clock()
    run_chunk = site.chunk
    while words[0] < words[1]:
        first = words[0]
        left = words[1] - first
        end = first + size if size < left else words[1]
        words[0] = end
        run_chunk(fiber, top, cast(ptr[u64], words), first, end)
        if atomic_load(addressof(fiber.pulse), "relaxed") != 0:
            poll_service(fiber, top)
            before = clock()
        else:
            if fiber.tokens != 0 and eager[0] != 0:
                spend(fiber, top)
            time = clock()
            if time - before < SHORT_CHUNK:
                size *= 2
            elif time - before > LONG_CHUNK and size > 1:
                size = size // 2
            before = time
    if fiber.unpromoted > record:
        fiber.unpromoted = record


@native(noinline=True)
def join_parts(fiber: ptr[Fiber], record: ptr[u8]) -> None:
    """Wait for what was split off a loop, the latest part first: its iterations come first."""
    site = load(ptr[ForkSite], record)
    words = cast(ptr[u64], record + 8)
    combine = site.combine
    child = fiber.children
    while child is not None:
        if child.loop == record:
            if not await_branch(fiber, child):
                # It has not begun, and begins where the result so far ends: go on with that.
                words[0] = child.words[0]
                words[1] = child.words[1]
                let_go_unstarted(fiber, child)
                run_iterations(fiber, record)
            else:
                if child.status != FINISHED:
                    fail_as(fiber, child)
                trace(fiber.worker, JOIN, 0, fiber, child)
                if site.results != 0:
                    combine(fiber, record + record_size(site), words, child.words)
                    # A beat may have come meanwhile, and found nothing left of this loop.
                    if fiber.unpromoted > record:
                        fiber.unpromoted = record
                let_go(fiber, child)
            child = fiber.children
        else:
            child = child.sibling


@native
def let_go_unstarted(fiber: ptr[Fiber], child: ptr[Fiber]) -> None:
    """Forget a part that has not begun."""
    trace(fiber.worker, UNFORK, 0, fiber, child)
    child.references = 1
    let_go(fiber, child)


@native
def begin_part(site: ptr[ForkSite], words: ptr[u64]) -> None:
    """A part begins with the neutral result."""
    for i in range(site.results):
        words[2 + site.results + i] = words[2 + i]


@native
def run_part(fiber: ptr[Fiber]) -> None:
    """A part of a loop as a task: its words become a record, and in the end its result."""
    site = fiber.site
    record = fiber.stack
    store(record, site)
    words = cast(ptr[u64], record + 8)
    for i in range(site.words):
        words[i] = fiber.words[i]
    begin_part(site, words)
    loop_service(fiber, record)
    for i in range(site.results):
        fiber.words[i] = words[2 + site.results + i]


@export
def set_fork_policy(tokens: u32, spend_early: u32) -> None:
    """Let a beat give so many tokens, and forks spend those that are left, or not."""
    tokens_per_beat[0] = tokens
    eager[0] = spend_early


@export
def keep_promoted(on: u32) -> None:
    """Let no promotion be taken back, so that a trace tells where each branch ended; or with 0, as usual."""
    keeping_promoted[0] = on


@export
def promotion_count() -> u64:
    """How many promotions there were."""
    return promotions[0]


@export
def prepare_forks() -> None:
    """Fill in the services of forks."""
    set_fork_policy(u32(TOKENS), u32(1))
    services.poll = poll_service
    services.overflow = overflow_service
    services.fork = overflow_service
    services.join_fork = join_fork_service
    services.loop = loop_service
    end_branches[0] = abandon_branches
