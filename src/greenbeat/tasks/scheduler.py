"""Running fibers.

    pool worker:  work ──▶ find ──▶ run_fiber ─┐       driver:  run_on_fiber ──▶ run_fiber(root)
                   ▲        │ nothing: sleep   │                    │ root parked: give up the GIL,
                   └────────┴──────────────────┘                    │ help like a worker until it has ended
                                                                    ▼
`run_fiber` switches to a fiber's stack; the fiber comes back when it has ended, parked, yielded, or wants something
called on the thread's own stack, as anything of Python must be.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    atomic_update,
    cast,
    compare_exchange,
    fence,
    inline,
    native,
    ptr,
    u8,
    u32,
    u64,
)
from greenbeat.runtime.layout import Task
from greenbeat.runtime.pacemaker import EVERYWHERE, begin_running, end_running, raise_pulse
from greenbeat.runtime.system import EXPEDITED, MEMBARRIER, now, syscall
from greenbeat.runtime.tasks import Thread, handles_signals
from greenbeat.tasks.layout import (
    BY_CANCEL,
    CALLING,
    DONE,
    PARKED,
    PREPARING,
    WAITING,
    YIELDED,
    Fiber,
    Worker,
)
from greenbeat.tasks.locks import lock, sched_yield, sleep_while, unlock, wake_sleepers
from greenbeat.tasks.pool import (
    ASLEEP,
    AWAKE,
    TO_SEARCH,
    anything_ready,
    anything_to_steal,
    fall_asleep,
    find_local,
    may_steal,
    pool,
    push_shared,
    sit_down,
    stand_up,
    steal_from_others,
    stop_searching,
    take_from_sleepers,
)
from greenbeat.tasks.stacks import release_fiber
from greenbeat.tasks.switch import switch
from greenbeat.tasks.tracing import REST, RISE, RUN, STOP, no_fiber, trace
from greenbeat.tasks.virtual import dawdle, virtual
from greenbeat.tasks.waiting import dequeue, interrupt, wake


@inline
def has_ended(fiber: ptr[Fiber]) -> bool:
    """Whether a fiber has left its stack for good."""
    return atomic_load(addressof(fiber.ended), "acquire") != 0


@native
def drop_reference(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """One who looks at a fiber less; the last one gives it back."""
    assert dawdle()
    if (
        atomic_load(addressof(fiber.references), "acquire") == 1
        or atomic_update("sub", addressof(fiber.references), u32(1), "acq_rel") == 1
    ):
        release_fiber(worker, fiber)


@native(noinline=True)
def tell_end(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """Wake who waits for a fiber's end."""
    assert dawdle()
    lock(addressof(fiber.guard))
    atomic_store(addressof(fiber.ended), u32(1), "seq_cst")
    waiter = dequeue(fiber.joiners)
    while waiter is not None:
        # Its owner is gone only after it has had the lock.
        wake(worker, waiter.wait, waiter.number)
        waiter = dequeue(fiber.joiners)
    unlock(addressof(fiber.guard))


@native(noinline=True)
def forget_children(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """A fiber has ended without having joined what it spawned: nobody can any more."""
    child = fiber.children
    fiber.children = None
    while child is not None:
        following = child.sibling
        # Its handle is worth nothing to who uses our stack next.
        child.parent = None
        drop_reference(worker, child)
        child = following


@native
def end_fiber(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """A fiber has left its stack for good."""
    if fiber.children is not None:
        forget_children(worker, fiber)
    if fiber.keeping is not None:
        fiber.dismiss(fiber.keeping)
    driver = fiber.driver
    if driver is not None:
        # The driver gives it back, perhaps as soon as it sees this.
        atomic_store(addressof(fiber.ended), u32(1), "release")
        assert dawdle()
        if driver != worker:
            wake_driver(driver)
        return
    if atomic_load(addressof(fiber.references), "acquire") != 1:
        tell_end(worker, fiber)
    drop_reference(worker, fiber)


@native
def wake_driver(driver: ptr[Worker]) -> None:
    """Make a driver that sleeps look at its root; one that runs something looks at its next beat."""
    fence("seq_cst")
    if take_from_sleepers(driver):
        wake_sleepers(addressof(driver.asleep))


@native
def cancel(fiber: ptr[Fiber]) -> None:
    """Let a fiber end at its next poll, or now if it waits."""
    atomic_store(addressof(fiber.cancelled), u32(1), "seq_cst")
    assert dawdle()
    if pool.barrier != 0:
        syscall(MEMBARRIER, EXPEDITED, 0, 0)
    atomic_store(addressof(fiber.floor), cast(ptr[u8], EVERYWHERE), "relaxed")
    atomic_store(addressof(fiber.fork_floor), cast(ptr[u8], EVERYWHERE), "relaxed")
    atomic_store(addressof(fiber.pulse), u32(1), "seq_cst")
    raise_pulse(cast(ptr[Task], fiber.task))
    interrupt(fiber.wait, BY_CANCEL)


@native(attributes="noredzone", noinline=True)
def run_fiber(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """Run a fiber until it has ended, parked or yielded."""
    thread = cast(ptr[Thread], worker.thread)
    if thread is not None:
        # Once, not at each beat, which calls something as well: or every other tick would be spared.
        thread.calls += 1
    while True:
        worker.current = fiber
        fiber.worker = worker
        if thread is not None:
            atomic_store(addressof(thread.fiber), fiber, "relaxed")
        trace(worker, RUN, 0, fiber, no_fiber())
        switch(addressof(worker.scheduler), fiber.stack_pointer, fiber)
        action = worker.action
        trace(worker, STOP, action, fiber, no_fiber())
        if action == CALLING:
            worker.call(fiber, worker.argument)
            continue
        # From now on it may go on elsewhere; see `interrupt`.
        atomic_store(addressof(worker.current), cast(ptr[Fiber], 0), "release")
        assert dawdle()
        if action == PARKED:
            held = worker.unlock
            if held is not None:
                unlock(held)
                return
            wait = fiber.wait
            if compare_exchange(addressof(wait.state), u64(PREPARING), u64(WAITING), "acq_rel") == PREPARING:
                return
            # It was woken already.
            continue
        if action == DONE:
            end_fiber(worker, fiber)
        elif action == YIELDED:
            push_shared(fiber)
        # What is paused goes on when a simulation wants it to.
        return


@native
def find(worker: ptr[Worker]) -> ptr[Fiber]:
    """Something to run, or null."""
    fiber = find_local(worker)
    if fiber is None and may_steal():
        fiber = steal_from_others(worker)
    return fiber


# How a rest ended.
WOKEN, SEARCHING, INTERRUPTED = 0, 1, 2


# How long who may have to look at something else sleeps at most, in nanoseconds: a signal that arrives just before the
# sleep does not end it, nor does the cancellation of a task whose host function sleeps.
PATIENCE = 50_000_000
# How long a worker that has nothing to do looks around before it sleeps, in nanoseconds. To sleep and to be woken takes
# the system as long, and whoever makes something ready meanwhile need not wake anybody.
LINGER = 30_000


@native
def is_wanted(root: ptr[Fiber]) -> bool:
    """Whether there is something to run for a worker that has a seat, or its root has ended."""
    if root is not None and has_ended(root):
        return True
    if atomic_load(addressof(pool.count), "acquire") != 0:
        return True
    return may_steal() and anything_to_steal()


@native
def linger(root: ptr[Fiber]) -> bool:
    """Look around for a while, one worker at a time; whether it is wanted, and counts as one that searches."""
    if virtual.on != 0 or pool.seats < 2:
        return False
    if compare_exchange(addressof(pool.searching), u32(0), u32(1), "acq_rel") != 0:
        return False
    end = now() + LINGER
    while not is_wanted(root):
        if atomic_load(addressof(pool.stopping), "relaxed") != 0 or now() >= end:
            stop_searching()
            return False
    return True


@native
def rest(worker: ptr[Worker], root: ptr[Fiber]) -> u32:
    """Sleep until there may be something to run, or the root has ended, or it is time to look for signals."""
    if linger(root):
        return SEARCHING
    thread = cast(ptr[Thread], worker.thread)
    result = u32(WOKEN)
    end_running(thread)
    stand_up(worker)
    trace(worker, REST, 0, no_fiber(), no_fiber())
    fall_asleep(worker)
    stopping = atomic_load(addressof(pool.stopping), "acquire") != 0
    if anything_ready() or (has_ended(root) if root is not None else stopping):
        take_from_sleepers(worker)
    else:
        assert dawdle()
        watchful = root is not None and virtual.on == 0 and (handles_signals() or thread.task is not None)
        sleep_while(addressof(worker.asleep), ASLEEP, u64(PATIENCE) if watchful else u64(0))
        if atomic_load(addressof(worker.asleep), "acquire") == ASLEEP and take_from_sleepers(worker):
            result = u32(INTERRUPTED)
    # If somebody else took it out, its word changes any moment.
    while atomic_load(addressof(worker.asleep), "acquire") == ASLEEP:
        sched_yield()
    if atomic_load(addressof(worker.asleep), "acquire") == TO_SEARCH:
        result = u32(SEARCHING)
    worker.asleep = AWAKE
    sit_down(worker)
    trace(worker, RISE, 0, no_fiber(), no_fiber())
    begin_running(thread)
    return result


@native(noinline=True)
def cancel_or_give(fiber: ptr[Fiber]) -> bool:
    """The pool ends: what is found is cancelled, and True; what a thread of Python's waits for is left to that."""
    driver = fiber.driver
    if driver is None:
        cancel(fiber)
        return True
    push_shared(fiber)
    wake_driver(driver)
    sched_yield()
    return False
