"""Whose turn it is: the shared queue, the workers, and who of them sleeps.

A fiber that becomes ready goes to its worker's `following` place; what was there goes to the deque, where others may
steal it. What comes from threads that are no workers, or was interrupted by a beat, goes to the shared queue.

A worker that finds nothing looks around for a moment (`scheduler.linger`), since to sleep and to be woken takes long.
Then it says that it sleeps, makes every other thread pass a memory barrier, and looks once more. So whoever makes a
fiber ready needs no barrier of its own: either it sees the sleeper, or the sleeper sees the fiber.

A runtime has as many *seats* as it was given workers. Whoever runs fibers takes one, a thread that called a kernel too
from its first beat on; without a seat a worker runs what is in the shared queue, and steals nothing. So a call that
forks runs on as many processors as the runtime has workers, the calling thread included.
"""

from greenbeat.native import (
    addressof,
    array,
    atomic_load,
    atomic_store,
    atomic_update,
    cast,
    export,
    fence,
    inline,
    native,
    ptr,
    static,
    struct,
    u32,
    u64,
    unlikely,
)
from greenbeat.runtime.system import EXPEDITED, MEMBARRIER, REGISTER, syscall
from greenbeat.tasks import deque
from greenbeat.tasks.layout import MOST_WORKERS, Fiber, Worker
from greenbeat.tasks.locks import lock, unlock, wake_sleepers
from greenbeat.tasks.stacks import has_begun
from greenbeat.tasks.tracing import STEAL, no_fiber, trace
from greenbeat.tasks.virtual import dawdle, following_random

# A worker looks at the shared queue before its own fibers once in this many.
FAIRNESS = 61
# Worker.asleep: whether its thread sleeps, or what it was woken for.
AWAKE, ASLEEP, TO_SEARCH = 0, 1, 2


@struct
class Pool:
    """What all workers share."""

    guard: u32
    # The shared queue, oldest first.
    first: ptr[Fiber]
    last: ptr[Fiber]
    count: u64
    # Workers asleep, and how many; how many are looking for something to do.
    sleepers: ptr[Worker]
    sleeping: u32
    searching: u32
    # Whether the pool's workers are to end.
    stopping: u32
    # Whether threads can be made to pass a barrier.
    barrier: u32
    # How many may steal, and how many run fibers.
    seats: u32
    seated: u32
    # All workers, those of drivers too.
    worker_count: u32
    workers: array[ptr[Worker], MOST_WORKERS]


pool = static(Pool, name="pool")


@native
def prepare_barrier() -> None:
    """Find out whether threads can be made to pass a barrier."""
    if MEMBARRIER != 0 and pool.barrier == 0:
        pool.barrier = 1 if syscall(MEMBARRIER, REGISTER, 0, 0) == 0 else u32(0)


@inline
def publish() -> None:
    """What comes before is seen by whoever goes to sleep after; see the file's text."""
    if unlikely(pool.barrier == 0):
        fence("seq_cst")


@native
def sit_down(worker: ptr[Worker]) -> None:
    """A worker runs fibers from now on."""
    if worker.is_seated == 0:
        worker.is_seated = 1
        atomic_update("add", addressof(pool.seated), u32(1), "seq_cst")


@native
def stand_up(worker: ptr[Worker]) -> None:
    """A worker runs no fibers any more."""
    if worker.is_seated != 0:
        worker.is_seated = 0
        atomic_update("sub", addressof(pool.seated), u32(1), "seq_cst")


@inline
def ends_with_pool(worker: ptr[Worker], fiber: ptr[Fiber]) -> bool:
    """Whether what a worker runs is to end because the pool does: what a thread has called is not, but in a task."""
    if atomic_load(addressof(pool.stopping), "relaxed") == 0:
        return False
    return fiber.driver is None or (fiber.driver == worker and worker.is_pool != 0)


@inline
def seat_is_free() -> bool:
    """Whether one more may steal."""
    return atomic_load(addressof(pool.seated), "relaxed") < atomic_load(addressof(pool.seats), "relaxed")


@inline
def may_steal() -> bool:
    """Whether those who run fibers, the caller among them, all have a seat."""
    return atomic_load(addressof(pool.seated), "relaxed") <= atomic_load(addressof(pool.seats), "relaxed")


@export
def set_seats(count: u32) -> None:
    """How many may run what is forked."""
    atomic_store(addressof(pool.seats), count, "seq_cst")


@native(noinline=True)
def wake_sleeper() -> None:
    """Wake one worker, unless one is awake that looks for something to do."""
    if atomic_load(addressof(pool.searching), "relaxed") != 0:
        return
    lock(addressof(pool.guard))
    worker = pool.sleepers
    if worker is not None:
        pool.sleepers = worker.next
        pool.sleeping -= 1
        atomic_update("add", addressof(pool.searching), u32(1), "relaxed")
    unlock(addressof(pool.guard))
    assert dawdle()
    if worker is not None:
        atomic_store(addressof(worker.asleep), u32(TO_SEARCH), "release")
        wake_sleepers(addressof(worker.asleep))


@inline
def wake_one() -> None:
    """Something can be stolen: let a worker know that sleeps."""
    assert dawdle()
    publish()
    if unlikely(atomic_load(addressof(pool.sleeping), "relaxed") != 0):
        wake_sleeper()


@native
def push_shared(fiber: ptr[Fiber]) -> None:
    """Put a fiber at the end of the shared queue."""
    fiber.next = None
    lock(addressof(pool.guard))
    if pool.last is not None:
        pool.last.next = fiber
    else:
        pool.first = fiber
    pool.last = fiber
    atomic_store(addressof(pool.count), pool.count + 1, "relaxed")
    unlock(addressof(pool.guard))
    wake_one()


@native
def pop_shared() -> ptr[Fiber]:
    """The oldest fiber of the shared queue, or null."""
    if atomic_load(addressof(pool.count), "relaxed") == 0:
        return cast(ptr[Fiber], 0)
    lock(addressof(pool.guard))
    fiber = pool.first
    if fiber is not None:
        pool.first = fiber.next
        if pool.first is None:
            pool.last = None
        atomic_store(addressof(pool.count), pool.count - 1, "relaxed")
    unlock(addressof(pool.guard))
    return fiber


@native(noinline=True)
def push_local(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """Let others steal a fiber."""
    if deque.push(worker, fiber):
        if seat_is_free():
            wake_one()
    else:
        push_shared(fiber)


@inline
def make_ready(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """A fiber can go on. `worker` is the calling thread's, if it runs fibers at the moment, else null."""
    if worker is None:
        push_shared(fiber)
    else:
        before = worker.following
        worker.following = fiber
        if before is not None:
            push_local(worker, before)


@native
def share_following(worker: ptr[Worker]) -> None:
    """At a beat: what would run next here may run elsewhere."""
    fiber = worker.following
    if fiber is not None:
        worker.following = None
        push_shared(fiber)


@native
def share_tasks(worker: ptr[Worker]) -> None:
    """At a beat: tasks go to the shared queue, the oldest first, since their worker may not get to them for long.

    Branches stay: they are for those who have a seat. But those that have begun go too: what they have forked is ended
    by them if they were cancelled, and their stacks are in use for as long as they wait here.
    """
    count = worker.bottom - atomic_load(addressof(worker.top), "relaxed")
    for _ in range(count):
        fiber = deque.steal(worker)
        if fiber is None:
            return
        if fiber.site is not None and fiber.cancelled == 0 and not has_begun(fiber):
            deque.push(worker, fiber)
        else:
            push_shared(fiber)


@native
def steal_from_others(worker: ptr[Worker]) -> ptr[Fiber]:
    """Look through the others' deques, from a random one on."""
    count = atomic_load(addressof(pool.worker_count), "acquire")
    worker.random = following_random(worker.random)
    start = u32(worker.random >> 32) % count if count != 0 else u32(0)
    for i in range(count):
        at = start + i
        victim = pool.workers[at if at < count else at - count]
        if victim != worker:
            fiber = deque.steal(victim)
            if fiber is not None:
                trace(worker, STEAL, victim.number, fiber, no_fiber())
                return fiber
    return cast(ptr[Fiber], 0)


@native
def find_local(worker: ptr[Worker]) -> ptr[Fiber]:
    """What a worker has itself, or what was shared; null if there is nothing."""
    worker.ticks += 1
    if unlikely(worker.ticks >= FAIRNESS):
        worker.ticks = 0
        fiber = pop_shared()
        if fiber is None:
            fiber = deque.steal(worker)
        if fiber is not None:
            return fiber
    fiber = worker.following
    if fiber is not None:
        worker.following = None
        return fiber
    fiber = deque.pop(worker)
    if fiber is not None:
        return fiber
    return pop_shared()


@native
def anything_to_steal() -> bool:
    """Whether a worker has fibers for others."""
    for i in range(atomic_load(addressof(pool.worker_count), "acquire")):
        if deque.has_fibers(pool.workers[i]):
            return True
    return False


@native
def anything_ready() -> bool:
    """Whether there is something to run for a worker that has nothing, and no seat."""
    if atomic_load(addressof(pool.count), "acquire") != 0:
        return True
    return seat_is_free() and anything_to_steal()


@native
def fall_asleep(worker: ptr[Worker]) -> None:
    """Enter the list of sleepers."""
    lock(addressof(pool.guard))
    atomic_store(addressof(worker.asleep), u32(ASLEEP), "relaxed")
    worker.next = pool.sleepers
    pool.sleepers = worker
    atomic_store(addressof(pool.sleeping), pool.sleeping + 1, "relaxed")
    unlock(addressof(pool.guard))
    assert dawdle()
    if pool.barrier != 0:
        syscall(MEMBARRIER, EXPEDITED, 0, 0)
    else:
        fence("seq_cst")


@native
def take_from_sleepers(worker: ptr[Worker]) -> bool:
    """Take a worker out of the list of sleepers; False if it is not in it."""
    found = False
    lock(addressof(pool.guard))
    place = addressof(pool.sleepers)
    while place[0] is not None:
        if place[0] == worker:
            place[0] = worker.next
            atomic_store(addressof(pool.sleeping), pool.sleeping - 1, "relaxed")
            atomic_store(addressof(worker.asleep), u32(AWAKE), "relaxed")
            found = True
            break
        place = addressof(place[0].next)
    unlock(addressof(pool.guard))
    return found


@native
def stop_searching() -> None:
    """One worker less looks for something to do."""
    assert dawdle()
    atomic_update("sub", addressof(pool.searching), u32(1), "seq_cst")


@native
def register_worker(worker: ptr[Worker]) -> bool:
    """Let others steal from a worker; False if there are too many."""
    lock(addressof(pool.guard))
    number = pool.worker_count
    good = number < MOST_WORKERS
    if good:
        worker.number = number
        worker.random = u64(number + 1) * 0x9E37_79B9_7F4A_7C15
        pool.workers[number] = worker
        atomic_store(addressof(pool.worker_count), number + 1, "release")
    unlock(addressof(pool.guard))
    return good
