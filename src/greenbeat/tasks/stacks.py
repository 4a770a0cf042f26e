"""The stacks of fibers and their cache.

    worker.free[class]        last in, first out, no lock: what most fibers come from and go to
          │ ▲  half of it
          ▼ │
    depot[class]              shared, under a lock
          ▲
    slab                      64 MiB of address space, cut into slots; never given back

A slot is cut when it is first needed. Slabs, not a mapping per stack: a process may have 65,530 mappings. A stack that
was used deeper than KEPT gives the memory below back when it is released; how deep it was is told by its floor, which
whoever reached it has lowered.
"""

from greenbeat.native import (
    addressof,
    array,
    atomic_update,
    cast,
    export,
    inline,
    native,
    ptr,
    sizeof,
    static,
    struct,
    table,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.layout import Guest
from greenbeat.runtime.system import DONT_NEED, LINUX, READ, WRITE, madvise, mprotect, munmap, realloc, reserve
from greenbeat.tasks.layout import (
    CANCELLED,
    CLASSES,
    DONE,
    FINISHED,
    IDLE,
    STACK_SIZES,
    Fiber,
    KernelServices,
    Worker,
)
from greenbeat.tasks.locks import lock, unlock
from greenbeat.tasks.switch import FIRST_FRAME, first_stack_pointer, switch
from greenbeat.tasks.virtual import virtual

SLAB = 1 << 26
# Below the hard floor: for functions that do not look, and for signal handlers.
MARGIN = 1 << 14
# What a recycled stack keeps of its memory, and the steps in which a floor is lowered.
KEPT = 1 << 15
# Bytes at the top for the Fiber.
HEAD = (sizeof(Fiber) + 63) & ~63
# A worker keeps at most this many bytes of address space per class, but at least two stacks; batches are half of it.
CACHED = tuple(max(2, min(64, (1 << 24) // size)) for size in STACK_SIZES)
# More unused stacks than this in a depot give back even the page that each one has.
KEPT_FREE = 1 << 12
NO_HUGE_PAGES = 15


@struct
class Depot:
    """The shared part of the cache, for one class."""

    guard: u32
    count: u32
    fibers: ptr[Fiber]
    # What is left of the last slab.
    fresh: ptr[u8]
    fresh_end: ptr[u8]
    # Slots that keep no memory at all, and what their fibers' generation was at most.
    bare: ptr[ptr[u8]]
    bare_count: u32
    bare_room: u32
    generation: u32


depots = static(array[Depot, CLASSES], name="depots")
services = static(KernelServices, name="services")
sizes = table(u64, STACK_SIZES, name="stack_sizes")
usual = table(u32, CACHED, name="stacks_usually_cached")
# How many each worker caches; 0 for measuring what the cache is worth.
cached = static(array[u32, CLASSES], CACHED, name="stacks_cached")
# For tests: slabs mapped, and times that memory was given back to the system.
slabs_mapped = static(u64, name="slabs_mapped")
stacks_trimmed = static(u64, name="stacks_trimmed")


@native
def map_slab(depot: ptr[Depot], size: u64) -> bool:
    """Get address space for stacks of one class; False when there is none."""
    wanted = u64(SLAB) if size < SLAB else size
    while True:
        base = reserve(wanted)
        if base is not None:
            if mprotect(base, wanted, READ | WRITE) == 0:
                break
            munmap(base, wanted)
        if wanted == size:
            return False
        wanted = wanted // 2 if wanted // 2 > size else size
    if LINUX:
        # A huge page would make two megabytes of memory of each stack's first page.
        madvise(base, wanted, NO_HUGE_PAGES)
    depot.fresh = base
    depot.fresh_end = base + wanted
    atomic_update("add", slabs_mapped, u64(1), "relaxed")
    return True


@native
def cut(depot: ptr[Depot], size_class: u32) -> ptr[Fiber]:
    """A fiber that was never used, from the slab, or one that keeps nothing; null when there is no memory."""
    size = sizes[size_class]
    base = cast(ptr[u8], 0)
    if depot.bare_count != 0:
        depot.bare_count -= 1
        base = depot.bare[depot.bare_count]
    else:
        if depot.fresh == depot.fresh_end and not map_slab(depot, size):
            return cast(ptr[Fiber], 0)
        base = depot.fresh
        depot.fresh = base + size
    fiber = cast(ptr[Fiber], base + size - HEAD)
    fiber.stack = base
    fiber.size_class = size_class
    fiber.services = services
    fiber.wait.fiber = fiber
    fiber.deepest = first_floor(fiber)
    fiber.generation = depot.generation
    return fiber


@inline
def has_begun(fiber: ptr[Fiber]) -> bool:
    """Whether a fiber that does not run at the moment has run before."""
    return fiber.stack_pointer != cast(ptr[u8], fiber.words) - FIRST_FRAME


@inline
def fork_end(fiber: ptr[Fiber]) -> ptr[u8]:
    """Where the records of forks end; they begin at the lowest address."""
    return fiber.stack + sizes[fiber.size_class] // 4


@inline
def hard_floor(fiber: ptr[Fiber]) -> ptr[u8]:
    """The lowest that functions may begin at."""
    return fork_end(fiber) + MARGIN


@inline
def first_floor(fiber: ptr[Fiber]) -> ptr[u8]:
    """The floor of a stack that was not used deeply yet."""
    return cast(ptr[u8], fiber) - KEPT


@native(noinline=True)
def refill(worker: ptr[Worker], size_class: u32) -> ptr[Fiber]:
    """A fiber from the depot, which a batch of others follows into the worker's cache; null when there is no memory."""
    depot = depots + size_class
    if unlikely(virtual.failing != 0):
        return cast(ptr[Fiber], 0)
    lock(addressof(depot.guard))
    fiber = depot.fibers
    if fiber is not None:
        depot.fibers = fiber.next
        depot.count -= 1
        batch = cached[size_class] // 2
        while worker.free_count[size_class] < batch and depot.fibers is not None:
            more = depot.fibers
            depot.fibers = more.next
            depot.count -= 1
            more.next = worker.free[size_class]
            worker.free[size_class] = more
            worker.free_count[size_class] += 1
    else:
        fiber = cut(depot, size_class)
    unlock(addressof(depot.guard))
    return fiber


@inline
def take_fiber(worker: ptr[Worker], size_class) -> ptr[Fiber]:
    """A fiber of a class; null when there is no memory."""
    fiber = worker.free[size_class]
    if unlikely(fiber is None):
        return refill(worker, size_class)
    worker.free[size_class] = fiber.next
    worker.free_count[size_class] -= 1
    return fiber


@native(noinline=True)
def trim(fiber: ptr[Fiber]) -> None:
    """Give back what a deep use of a stack has touched."""
    lowest = cast(ptr[u8], cast(u64, fiber.deepest) & ~u64(4095)) - MARGIN
    madvise(lowest, u64(first_floor(fiber) - lowest) & ~u64(4095), DONT_NEED)
    fiber.deepest = first_floor(fiber)
    atomic_update("add", stacks_trimmed, u64(1), "relaxed")


@export
def set_stack_cache(on: u32) -> None:
    """Let stacks be cached, or with 0 give their memory back to the system after each use, to be mapped anew."""
    for i in range(u32(CLASSES)):
        cached[i] = usual[i] if on != 0 else u32(0)


@native
def strip(depot: ptr[Depot], fiber: ptr[Fiber]) -> bool:
    """Under the lock: give all memory of a stack back, its fiber's too; False if that stays."""
    if fiber.task is not None:
        # A guest's Task is in the list of all tasks.
        cast(ptr[Guest], fiber.words).touched = None
        madvise(fiber.stack, u64(cast(ptr[u8], fiber.words) - fiber.stack) & ~u64(4095), DONT_NEED)
        return False
    if depot.bare_count == depot.bare_room:
        room = depot.bare_room * 2 + 256
        grown = realloc(cast(ptr[void], depot.bare), u64(room) * 8)
        if grown is None:
            return False
        depot.bare = cast(ptr[ptr[u8]], grown)
        depot.bare_room = room
    if fiber.generation > depot.generation:
        depot.generation = fiber.generation
    depot.bare[depot.bare_count] = fiber.stack
    depot.bare_count += 1
    madvise(fiber.stack, sizes[fiber.size_class], DONT_NEED)
    return True


@native(noinline=True)
def overflow_to_depot(worker: ptr[Worker], size_class: u32) -> None:
    """Move half of a worker's cache to the depot."""
    half = cached[size_class] // 2
    move_to_depot(worker, size_class, half if half != 0 else u32(1))


@native
def empty_cache(worker: ptr[Worker]) -> None:
    """Move all of a worker's cache to the depots."""
    for i in range(u32(CLASSES)):
        move_to_depot(worker, i, worker.free_count[i])


@native
def move_to_depot(worker: ptr[Worker], size_class: u32, count: u32) -> None:
    """Move some fibers, of those that a worker has in its cache, to the depot."""
    depot = depots + size_class
    lock(addressof(depot.guard))
    for _ in range(count):
        fiber = worker.free[size_class]
        worker.free[size_class] = fiber.next
        worker.free_count[size_class] -= 1
        keeps = cached[size_class] != 0 and depot.count < KEPT_FREE
        if fiber.task is not None and cast(ptr[Guest], fiber.words).touched is not None:
            keeps = False
        if keeps or not strip(depot, fiber):
            fiber.next = depot.fibers
            depot.fibers = fiber
            depot.count += 1
    unlock(addressof(depot.guard))


@inline
def release_fiber(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """Put a fiber that nobody looks at any more into a worker's cache."""
    assert fiber.joiners.first is None
    assert fiber.unpromoted == fiber.stack
    assert fiber.wait.timer == 0
    if unlikely(fiber.deepest < first_floor(fiber)):
        trim(fiber)
    fiber.generation += 1
    fiber.references = 0
    size_class = fiber.size_class
    fiber.next = worker.free[size_class]
    worker.free[size_class] = fiber
    worker.free_count[size_class] += 1
    if unlikely(worker.free_count[size_class] > cached[size_class]):
        overflow_to_depot(worker, size_class)


@native(attributes="noredzone")
def start_fiber(unused: u64, other: u64, fiber: ptr[Fiber]) -> None:
    """What a fiber begins with; entered by a switch."""
    # A guest has something to put in order even then.
    if fiber.cancelled == 0 or fiber.task is not None:
        fiber.entry(fiber)
    else:
        fiber.status = CANCELLED
    worker = fiber.worker
    worker.action = DONE
    switch(addressof(fiber.stack_pointer), worker.scheduler, fiber)


@inline
def new_fiber(worker: ptr[Worker], size_class, entry, word_count, references) -> ptr[Fiber]:
    """A fiber that is ready to run `entry`, its words to be filled in; null when there is no memory."""
    fiber = take_fiber(worker, size_class)
    if fiber is not None:
        assert fiber.references == 0 and fiber.children is None and fiber.joiners.first is None and fiber.guard == 0
        # At least two, which tell of a failure.
        words = cast(ptr[u8], fiber) - (((u64(word_count) | 1) * 8 + 15) & ~u64(15))
        fiber.words = cast(ptr[u64], words)
        fiber.entry = entry
        fiber.status = FINISHED
        fiber.pulse = 0
        fiber.floor = fiber.deepest
        fiber.stack_pointer = first_stack_pointer(words, start_fiber)
        fiber.references = references
        fiber.cancelled = 0
        fiber.ended = 0
        fiber.driver = None
        fiber.parent = None
        fiber.loop = None
        fiber.site = None
        fiber.keeping = None
        fiber.fork_floor = fiber.deepest
        fiber.unpromoted = fiber.stack
        fiber.tokens = 0
        fiber.promotions = 0
        fiber.wait.state = IDLE
    return fiber
