"""Threads of Python as workers: those of the pool, and those that call fibers or wait for them.

A call from Python runs on the calling thread, on a fiber's stack, with the GIL until its first beat. If the fiber
parks, the thread gives up the GIL and helps: it runs whatever is ready until its own fiber has ended.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    export,
    fill,
    function,
    inline,
    likely,
    native,
    ptr,
    sizeof,
    stack,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.arena import calloc
from greenbeat.runtime.hooks import put_exception
from greenbeat.runtime.pacemaker import begin_running, end_running, next_alarm
from greenbeat.runtime.pythonapi import Object, PyErr_CheckSignals, PyEval_RestoreThread, PyEval_SaveThread
from greenbeat.runtime.system import SIGNAL_WORDS, block_signals, now, restore_signals, usleep
from greenbeat.runtime.tasks import Thread, handles_signals, is_cancelled, this_thread, threads
from greenbeat.tasks.beat import check_signals, give_up_gil, take_gil
from greenbeat.tasks.channels import (
    OK,
    WOULD_WAIT,
    Channel,
    attempt,
    give_back,
    outcome,
    queue_of,
    settle_kept,
)
from greenbeat.tasks.deque import has_fibers, pop
from greenbeat.tasks.layout import (
    BY_CANCEL,
    BY_TIME,
    CLASSES,
    IDLE,
    SPAWNED,
    WAITING,
    Fiber,
    Wait,
    Waiter,
    Worker,
)
from greenbeat.tasks.locks import is_given, lock, sched_yield, sleep_until_given, unlock, wake_sleepers
from greenbeat.tasks.pool import (
    AWAKE,
    anything_ready,
    pool,
    prepare_barrier,
    push_shared,
    register_worker,
    share_following,
    sit_down,
    stand_up,
    stop_searching,
    wake_one,
)
from greenbeat.tasks.scheduler import (
    INTERRUPTED,
    PATIENCE,
    SEARCHING,
    cancel,
    cancel_or_give,
    drop_reference,
    find,
    has_ended,
    rest,
    run_fiber,
)
from greenbeat.tasks.spawning import prepare_services
from greenbeat.tasks.stacks import Depot, depots, new_fiber
from greenbeat.tasks.timers import prepare_timers, timers
from greenbeat.tasks.tracing import SPAWN, no_fiber, trace
from greenbeat.tasks.virtual import dawdle
from greenbeat.tasks.waiting import begin, enqueue, fire, reason_of, remove

# What a call from Python comes to besides the statuses of fibers: an exception is set.
RAISED = 100


@native(noinline=True)
def new_worker(thread: ptr[Thread]) -> ptr[Worker]:
    """Give a thread its part in running fibers; null when there is no memory."""
    worker = cast(ptr[Worker], calloc(1, sizeof(Worker)))
    if worker is not None:
        worker.thread = cast(ptr[void], thread)
        register_worker(worker)
        thread.worker = worker
    return worker


@inline
def worker_of(thread: ptr[Thread]) -> ptr[Worker]:
    """A thread's worker; null when there is no memory."""
    worker = thread.worker
    if unlikely(worker is None):
        worker = new_worker(thread)
    return worker


@native
def this_worker() -> ptr[Worker]:
    """The calling thread's worker; null when there is no memory."""
    thread = this_thread()
    return worker_of(thread) if thread is not None else cast(ptr[Worker], 0)


@export
def prepare_tasks() -> None:
    """Make ready what tasks need; once."""
    prepare_barrier()
    prepare_services()
    prepare_timers()


# ---------------------------------------------------------------- the pool


@native
def work(worker: ptr[Worker]) -> None:
    """The life of a worker of the pool. The GIL is not held."""
    searching = False
    sit_down(worker)
    begin_running(cast(ptr[Thread], worker.thread))
    while True:
        fiber = find(worker)
        if fiber is not None:
            if searching:
                searching = False
                stop_searching()
                wake_one()
            if likely(atomic_load(addressof(pool.stopping), "relaxed") == 0) or cancel_or_give(fiber):
                run_fiber(worker, fiber)
            continue
        if searching:
            searching = False
            stop_searching()
        if atomic_load(addressof(pool.stopping), "acquire") != 0:
            break
        settle_kept(worker)
        searching = rest(worker, cast(ptr[Fiber], 0)) == SEARCHING
    settle_kept(worker)
    stand_up(worker)
    end_running(cast(ptr[Thread], worker.thread))


@export
def work_in_pool() -> bool:
    """Be a worker of the pool until it stops; for a thread of Python's. False when there is no memory."""
    worker = this_worker()
    if worker is None:
        return False
    # Signals are for the threads that Python knows how to interrupt.
    before = stack(u64, SIGNAL_WORDS)
    block_signals(before)
    worker.is_pool = 1
    give_up_gil(worker)
    work(worker)
    take_gil(worker)
    worker.is_pool = 0
    restore_signals(before)
    return True


@export
def run_what_is_left() -> None:
    """For a thread that waits for the pool's end: cancel what is ready, and run it to its end.

    What threads of Python's have called is left to those.
    """
    worker = this_worker()
    if worker is None:
        return
    thread = cast(ptr[Thread], worker.thread)
    outer_fiber = thread.fiber
    running = thread.running
    current = worker.current
    scheduler = worker.scheduler
    give_up_gil(worker)
    begin_running(thread)
    fiber = find(worker)
    while fiber is not None and fiber.driver is None:
        cancel(fiber)
        run_fiber(worker, fiber)
        fiber = find(worker)
    if fiber is not None:
        push_shared(fiber)
    share_all(worker)
    settle_kept(worker)
    thread.running = running
    thread.fiber = outer_fiber
    worker.current = current
    worker.scheduler = scheduler
    take_gil(worker)


@export
def stop_pool(stopping: u32) -> None:
    """Let the pool's workers end, and cancel what they run; or, with 0, let new ones begin."""
    atomic_store(addressof(pool.stopping), stopping, "seq_cst")
    if stopping != 0:
        lock(addressof(pool.guard))
        worker = pool.sleepers
        while worker is not None:
            following = worker.next
            atomic_store(addressof(worker.asleep), u32(AWAKE), "release")
            wake_sleepers(addressof(worker.asleep))
            worker = following
        pool.sleepers = None
        atomic_store(addressof(pool.sleeping), u32(0), "relaxed")
        unlock(addressof(pool.guard))


@export
def forget_pool() -> None:
    """In a forked child: workers, fibers and waits of the parent's do not exist. Their stacks are not used again.

    Whatever other threads were about to change may be half changed, so none of it is used.
    """
    pool.guard = 0
    pool.first = None
    pool.last = None
    pool.count = 0
    pool.sleepers = None
    pool.sleeping = 0
    pool.searching = 0
    pool.seated = 0
    pool.stopping = 0
    pool.worker_count = 0
    pool.barrier = 0
    prepare_barrier()
    timers.guard = 0
    timers.count = 0
    timers.capacity = 0
    timers.entries = None
    next_alarm[0] = 0
    for i in range(u32(CLASSES)):
        fill(cast(ptr[u8], depots + i), 0, sizeof(Depot))
    # Nor are their records of workers, which say that their threads have given up the GIL.
    thread = threads[0]
    while thread is not None:
        thread.worker = None
        thread.fiber = None
        thread = thread.next


# ---------------------------------------------------------------- calls


@native
def leave_to_pool(fiber: ptr[Fiber]) -> None:
    """A thread of Python's that helps has found a guest, whose host functions could wait for what the thread does next.

    The pool's workers can wait, since others take their place.
    """
    push_shared(fiber)
    usleep(HANDING_OVER)


@native
def who_waits_is_to_end(worker: ptr[Worker]) -> bool:
    """Whether a task is to end, or the pool of one, whose host function this thread is in."""
    stopping = worker.is_pool != 0 and atomic_load(addressof(pool.stopping), "relaxed") != 0
    return stopping or is_cancelled(cast(ptr[Thread], worker.thread).task)


@native(noinline=True)
def wait_for_root(worker: ptr[Worker], root: ptr[Fiber]) -> None:
    """The fiber that a thread of Python's has called is parked, or runs elsewhere: help until it has ended."""
    give_up_gil(worker)
    sit_down(worker)
    searching = False
    while not has_ended(root):
        fiber = find(worker)
        if fiber is not None:
            if searching:
                searching = False
                stop_searching()
                wake_one()
            if fiber.task is not None and fiber.driver is None:
                leave_to_pool(fiber)
            else:
                run_fiber(worker, fiber)
            continue
        if searching:
            stop_searching()
        settle_kept(worker)
        how = rest(worker, root)
        searching = how == SEARCHING
        if how == INTERRUPTED:
            take_gil(worker)
            check_signals(worker)
            give_up_gil(worker)
            if who_waits_is_to_end(worker):
                cancel(root)
    if searching:
        # We were woken for something that somebody else has to find now.
        stop_searching()
        wake_one()


@native(noinline=True)
def share_all(worker: ptr[Worker]) -> None:
    """The thread goes back to Python: what it has made ready is for others to run."""
    share_following(worker)
    while True:
        fiber = pop(worker)
        if fiber is None:
            break
        push_shared(fiber)


@native(shared=True)
def run_on_fiber(thread: ptr[Thread], worker: ptr[Worker], fiber: ptr[Fiber]) -> u32:
    """Run a new fiber to its end; its status, or RAISED with an exception set. The caller gives the fiber back."""
    outer = worker.root
    outer_fiber = thread.fiber
    running = thread.running
    current = worker.current
    scheduler = worker.scheduler
    worker.root = fiber
    fiber.driver = worker
    begin_running(thread)
    run_fiber(worker, fiber)
    if unlikely(not has_ended(fiber)):
        wait_for_root(worker, fiber)
    thread.running = running
    thread.fiber = outer_fiber
    worker.root = outer
    worker.current = current
    worker.scheduler = scheduler
    if unlikely(worker.python is not None):
        take_gil(worker)
    if unlikely(worker.following is not None) or unlikely(has_fibers(worker)):
        share_all(worker)
    if unlikely(worker.is_seated != 0) and outer is None:
        stand_up(worker)
        if anything_ready():
            wake_one()
    if unlikely(worker.kept is not None):
        settle_kept(worker)
    if unlikely(worker.exception is not None):
        exception = worker.exception
        worker.exception = None
        put_exception(cast(ptr[Object], exception))
        return RAISED
    return fiber.status


# ---------------------------------------------------------------- tasks, from Python


@export
def new_task(entry: ptr[void], words: u64) -> ptr[Fiber]:
    """A fiber for a task, held by the caller; null when there is no memory."""
    worker = this_worker()
    if worker is None:
        return cast(ptr[Fiber], 0)
    return new_fiber(worker, SPAWNED, cast(function[[ptr[Fiber]], None], entry), words, 2)


@export
def start_task(fiber: ptr[Fiber]) -> None:
    """Let a task begin."""
    trace(this_worker(), SPAWN, 0, no_fiber(), fiber)
    push_shared(fiber)


@export
def forget_task(fiber: ptr[Fiber]) -> None:
    """The caller holds a task no longer."""
    if fiber.task is not None:
        fiber.let_go(fiber)
    worker = this_worker()
    if worker is not None:
        drop_reference(worker, fiber)


@export
def cancel_task(fiber: ptr[Fiber]) -> None:
    """Let a task end at its next poll, or now if it waits."""
    cancel(fiber)


@export
def task_ended(fiber: ptr[Fiber]) -> bool:
    """Whether a task has ended."""
    return has_ended(fiber)


# How sleeping ended: by the word or the deadline; with an exception set; because who sleeps is to end.
SLEPT, ALARMED, DISTURBED = 0, 1, 2
# How long a thread looks before it sleeps, in nanoseconds: to sleep and to be woken takes the system longer.
WATCHED = 10_000
# How long a worker of the pool is given to take what is left to it, in microseconds.
HANDING_OVER = 50


@native
def watch(signal: ptr[u32]) -> None:
    """Wait without sleeping for as long as a short task takes on another processor, if there is one."""
    if pool.seats > 1:
        end = now() + WATCHED
        while not is_given(signal) and now() < end:
            continue


@native
def sleep_on(signal: ptr[u32], deadline: u64, may_end: bool) -> u32:
    """Sleep without the GIL until a word is set, or a deadline (0: none).

    A worker of the pool gives up its seat meanwhile. In a host function of a task, with `may_end`, the task's
    cancellation ends the sleep.
    """
    how = u32(SLEPT)
    worker = this_worker()
    hosting = worker is not None and cast(ptr[Thread], worker.thread).task is not None
    in_pool = worker is not None and worker.is_pool != 0
    if in_pool:
        stand_up(worker)
        if anything_ready():
            wake_one()
    state = PyEval_SaveThread()
    watch(signal)
    while how == SLEPT and not is_given(signal):
        left: u64 = 0
        if deadline != 0:
            time = now()
            if time >= deadline:
                break
            left = deadline - time
        if hosting and may_end and who_waits_is_to_end(worker):
            how = DISTURBED
            break
        if hosting or handles_signals():
            left = left if left != 0 and left < PATIENCE else u64(PATIENCE)
        sleep_until_given(signal, left)
        if handles_signals() and not is_given(signal) and (deadline == 0 or now() < deadline):
            PyEval_RestoreThread(state)
            if PyErr_CheckSignals() != 0:
                how = ALARMED
            state = PyEval_SaveThread()
    PyEval_RestoreThread(state)
    if in_pool:
        sit_down(worker)
    return how


@native
def sleep_thread(wait: ptr[Wait]) -> bool:
    """Sleep until a wait is over, by its deadline at the latest; False with an exception set, which ended it."""
    how = sleep_on(addressof(wait.signal), wait.deadline, True)
    assert dawdle()
    if not is_given(addressof(wait.signal)):
        reason = u32(BY_TIME) if how == SLEPT else u32(BY_CANCEL)
        if fire(wait, reason) == IDLE:
            # Somebody else has ended it, and tells so at once.
            while not is_given(addressof(wait.signal)):
                sched_yield()
    return how != ALARMED


@inline
def thread_wait(wait: ptr[Wait], waiter: ptr[Waiter], words: ptr[u64], deadline: u64) -> None:
    """Make a thread's wait and its place."""
    wait.fiber = None
    wait.bridge = None
    wait.timer = 0
    wait.deadline = deadline
    waiter.wait = wait
    waiter.words = words
    waiter.number = 0
    waiter.next = None
    waiter.previous = None
    begin(wait, WAITING)


@export
def join_task(fiber: ptr[Fiber], deadline: u64) -> u32:
    """Wait in a thread of Python's for a task to end: OK, TIMED_OUT, or RAISED with an exception set."""
    if has_ended(fiber):
        return OK
    wait = stack(Wait)
    waiter = stack(Waiter)
    thread_wait(wait, waiter, cast(ptr[u64], 0), deadline)
    lock(addressof(fiber.guard))
    if fiber.ended != 0:
        unlock(addressof(fiber.guard))
        return OK
    enqueue(fiber.joiners, waiter)
    unlock(addressof(fiber.guard))
    good = sleep_thread(wait)
    lock(addressof(fiber.guard))
    remove(fiber.joiners, waiter)
    unlock(addressof(fiber.guard))
    if not good:
        return RAISED
    return outcome(reason_of(wait))


# ---------------------------------------------------------------- channels, from Python


@native
def thread_waits(channel: ptr[Channel], words: ptr[u64], deadline: u64, sending: bool) -> u32:
    """Under the channel's lock, which is released: wait in one of its queues."""
    queue = queue_of(channel, sending)
    wait = stack(Wait)
    waiter = stack(Waiter)
    thread_wait(wait, waiter, words, deadline)
    enqueue(queue, waiter)
    unlock(addressof(channel.guard))
    good = sleep_thread(wait)
    lock(addressof(channel.guard))
    remove(queue, waiter)
    unlock(addressof(channel.guard))
    reason = reason_of(wait)
    if not good:
        if outcome(reason) == OK and not sending:
            give_back(channel, words)
        return RAISED
    return outcome(reason)


@export
def thread_transfer(channel: ptr[Channel], words: ptr[u64], deadline: u64, may_wait: u32, sending: u32) -> u32:
    """Send or receive in a thread of Python's; what it came to, or RAISED with an exception set."""
    lock(addressof(channel.guard))
    result = attempt(cast(ptr[Worker], 0), channel, words, sending != 0)
    if result == WOULD_WAIT and may_wait != 0:
        return thread_waits(channel, words, deadline, sending != 0)
    unlock(addressof(channel.guard))
    return result
