"""What happens, for `greenbeat.trace`: events that workers write while `tracing` is set.

    Worker ── trace ──▶ Ring ── events ──▶ │ newest │ oldest │ ... │ ... │
                          └── next ──▶ Ring ...      a power of two; the oldest are overwritten

Each worker writes to a ring of its own; whoever is no worker, to one that they share. A worker makes its ring ready for
a trace when it writes the first event of it. Rings stay for the next trace, since a worker that has seen `tracing` set
may be about to write.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    compare_exchange,
    export,
    inline,
    native,
    ptr,
    sizeof,
    static,
    struct,
    u32,
    u64,
    unlikely,
)
from greenbeat.runtime.arena import calloc, free
from greenbeat.runtime.layout import Guest
from greenbeat.runtime.system import now, pthread_self
from greenbeat.tasks.layout import CALLING, Fiber, Worker
from greenbeat.tasks.locks import lock, unlock

# Event.kind; what `subject`, `other` and `number` are.
(
    RUN,  # a fiber goes on; other: its code; of a guest, its module, and number: one more than its function's index
    STOP,  # a fiber comes back; number: Worker.action; other: with CALLING, what is called
    BEAT,  # a fiber has a beat
    SPAWN,  # a fiber starts a task, other
    PROMOTE,  # a fiber makes a task of a fork, other; number: the child's tokens
    UNFORK,  # a fiber takes back a promoted fork that has not begun, other
    JOIN,  # a fiber has the result of another one
    WAKE,  # another fiber is ready to go on
    STEAL,  # a worker takes a fiber of another worker's; number: whose
    REST,  # a worker has nothing to do
    RISE,  # a worker was woken
) = range(1, 12)
# Ring.number where no worker writes.
NO_WORKER = (1 << 32) - 1
GENERATION_SHIFT = 48


@struct
class Event:
    """One thing that happened. Fibers are told by address and generation."""

    time: u64
    subject: u64
    other: u64
    kind: u32
    number: u32


@struct
class Ring:
    """The latest events of one worker. `epoch` tells of which trace they are."""

    next: ptr["Ring"]
    events: ptr[Event]
    capacity: u64
    written: u64
    thread: u64
    guard: u32
    number: u32
    epoch: u32


# Whether events are wanted; which trace it is; how many events a ring has room for.
tracing = static(u32, name="tracing")
epoch = static(u32, name="trace_epoch")
capacity = static(u64, name="trace_capacity")
rings = static(ptr[Ring], name="rings")
shared_ring = static(Ring, name="shared_ring")


@export
def start_tracing(events: u64) -> None:
    """Let rings be filled, which have room for so many events, a power of two."""
    capacity[0] = events
    epoch[0] += 1
    shared_ring.number = NO_WORKER
    atomic_store(tracing, u32(1), "seq_cst")


@export
def stop_tracing() -> u32:
    """Stop writing events; which trace it was."""
    atomic_store(tracing, u32(0), "seq_cst")
    return epoch[0]


@export
def first_ring() -> ptr[Ring]:
    """The rings of workers; the shared one has no `next` and is told by `other_ring`."""
    return atomic_load(rings, "acquire")


@export
def other_ring() -> ptr[Ring]:
    """The ring of those who are no workers."""
    return shared_ring


@export
def forget_tracing() -> None:
    """In a forked child: nothing is traced, and nobody holds the lock."""
    tracing[0] = 0
    shared_ring.guard = 0
    rings[0] = None


@native
def make_ready(ring: ptr[Ring]) -> bool:
    """The first event of a trace is about to be written; False when there is no memory."""
    if ring.capacity != capacity[0]:
        free(ring.events)
        ring.capacity = 0
        ring.events = cast(ptr[Event], calloc(capacity[0], sizeof(Event)))
        if ring.events is None:
            return False
        ring.capacity = capacity[0]
    ring.thread = pthread_self()
    ring.written = 0
    atomic_store(addressof(ring.epoch), epoch[0], "release")
    return True


@native
def ring_of(worker: ptr[Worker]) -> ptr[Ring]:
    """Where a worker writes, or null."""
    ring = cast(ptr[Ring], worker.trace)
    if ring is None:
        ring = cast(ptr[Ring], calloc(1, sizeof(Ring)))
        if ring is not None:
            ring.number = worker.number
            worker.trace = ring
            while True:
                first = atomic_load(rings, "relaxed")
                ring.next = first
                if compare_exchange(rings, first, ring, "release") == first:
                    break
    return ring


@inline
def identity(fiber: ptr[Fiber]) -> u64:
    """This use of a fiber."""
    return cast(u64, fiber) | u64(fiber.generation) << GENERATION_SHIFT


@native
def code_of(fiber: ptr[Fiber]) -> u64:
    """The address of what a fiber runs: of a thunk, or of a loop's body."""
    if fiber.loop is not None:
        return cast(u64, fiber.site.chunk)
    return cast(u64, fiber.entry)


@native(cold=True, shared=True, convention="preserve_mostcc")
def note(worker: ptr[Worker], kind: u32, number: u32, fiber: ptr[Fiber], other: ptr[Fiber]) -> None:
    """Write an event; the worker is the calling thread's, or null."""
    ring = ring_of(worker) if worker is not None else cast(ptr[Ring], shared_ring)
    if ring is None:
        return
    if worker is None:
        lock(addressof(ring.guard))
    if ring.epoch == epoch[0] or make_ready(ring):
        at = ring.written
        event = ring.events + (at & (ring.capacity - 1))
        event.time = now()
        event.kind = kind
        event.number = number
        event.subject = identity(fiber) if fiber is not None else u64(0)
        event.other = identity(other) if other is not None else u64(0)
        if kind == RUN and fiber.task is not None:
            target = cast(ptr[Guest], fiber.words).target
            event.other = cast(u64, target.instance.module)
            event.number = target.index + 1
        elif kind == RUN:
            event.other = code_of(fiber)
        elif kind == STOP and number == CALLING:
            event.other = cast(u64, worker.call)
        atomic_store(addressof(ring.written), at + 1, "release")
    if worker is None:
        unlock(addressof(ring.guard))


@inline
def trace(worker, kind, number, fiber, other) -> None:
    """Write an event if that is wanted: one load and one branch if not."""
    if unlikely(atomic_load(tracing, "relaxed") != 0):
        note(worker, kind, number, fiber, other)


@inline
def no_fiber() -> ptr[Fiber]:
    """Nobody."""
    return cast(ptr[Fiber], 0)
