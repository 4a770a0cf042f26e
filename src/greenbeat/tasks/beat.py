"""What a fiber does at a beat, and how it leaves its stack early.

poll, overflow ──▶ beat ──┬─ cancelled, deadline over: abandon the stack
                          ├─ on a driver: a turn for signals; from the first beat on the GIL is given up
                          └─ unless it is what the driver waits for: others that are ready get their turn
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    function,
    inline,
    native,
    ptr,
    static,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.hooks import take_exception
from greenbeat.runtime.pacemaker import profiling
from greenbeat.runtime.pythonapi import PyErr_CheckSignals, PyEval_RestoreThread, PyEval_SaveThread
from greenbeat.runtime.system import now
from greenbeat.runtime.tasks import Thread, handles_signals, is_cancelled
from greenbeat.tasks.layout import (
    CALLING,
    CANCELLED,
    DONE,
    FAILED,
    OVERFLOWED,
    YIELDED,
    Fiber,
    Worker,
)
from greenbeat.tasks.pool import FAIRNESS, ends_with_pool, pool, share_following, share_tasks, sit_down
from greenbeat.tasks.sampling import sample_fiber
from greenbeat.tasks.scheduler import cancel, has_ended
from greenbeat.tasks.stacks import KEPT, fork_end, hard_floor
from greenbeat.tasks.switch import switch
from greenbeat.tasks.tracing import BEAT, no_fiber, trace

# A driver without the GIL takes it this often to look for signals, in nanoseconds, if they are for its thread.
SIGNAL_PERIOD = 20_000_000
# A frame that forks has at least 32 bytes, its record at most 17 words.
RECORDS = 5
LEAST_STEP = 512


@native(noinline=True, attributes="noredzone")
def leave(fiber: ptr[Fiber], action: u32) -> None:
    """Switch to the scheduler."""
    worker = fiber.worker
    worker.action = action
    switch(addressof(fiber.stack_pointer), worker.scheduler, fiber)


# What ends the promoted branches of a fiber that is abandoned; see `forkjoin/promotion.py`.
end_branches = static(function[[ptr[Fiber]], void], name="end_branches")


@native(cold=True)
def abandon(fiber: ptr[Fiber], status: u32) -> None:
    """End a fiber from anywhere on its stack; does not return."""
    fiber.status = status
    if fiber.unpromoted != fiber.stack or fiber.children is not None:
        end_branches[0](fiber)
    leave(fiber, DONE)


@native(noinline=True, attributes="noredzone")
def call_on_thread(fiber: ptr[Fiber], call: ptr[void], argument: ptr[void]) -> None:
    """Call something on the thread's own stack, with the fiber and an argument."""
    worker = fiber.worker
    worker.call = cast(function[[ptr[Fiber], ptr[void]], None], call)
    worker.argument = argument
    worker.action = CALLING
    switch(addressof(fiber.stack_pointer), worker.scheduler, fiber)


@native
def give_up_gil(worker: ptr[Worker]) -> None:
    """Let other threads of Python run, if we have not yet."""
    if worker.python is None:
        worker.python = PyEval_SaveThread()


@native
def take_gil(worker: ptr[Worker]) -> None:
    """Be able to use Python again."""
    state = worker.python
    if state is not None:
        worker.python = None
        PyEval_RestoreThread(state)


@native
def check_signals(worker: ptr[Worker]) -> None:
    """With the GIL: let Python handle signals; what a handler raises ends the driver's root."""
    if worker.exception is None and PyErr_CheckSignals() != 0:
        worker.exception = cast(ptr[void], take_exception())
        cancel(worker.root)


@native
def driver_beat(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """A beat on a thread of Python's that is inside of a call."""
    worker = fiber.worker
    time = now()
    sit_down(worker)
    is_due = time - worker.looked >= SIGNAL_PERIOD and handles_signals()
    if worker.python is None or is_due:
        worker.looked = time
        take_gil(worker)
        check_signals(worker)
        give_up_gil(worker)
    if is_cancelled(cast(ptr[Thread], worker.thread).task):
        # The task whose host function has called this.
        cancel(worker.root)


@native
def beat(fiber: ptr[Fiber]) -> None:
    """A beat has come while a fiber ran."""
    worker = fiber.worker
    trace(worker, BEAT, 0, fiber, no_fiber())
    if unlikely(profiling[0] != 0):
        sample_fiber(fiber)
    atomic_store(addressof(fiber.pulse), u32(0), "relaxed")
    atomic_store(addressof(fiber.floor), fiber.deepest, "relaxed")
    atomic_store(addressof(fiber.fork_floor), fiber.deepest, "relaxed")
    if atomic_load(addressof(fiber.cancelled), "relaxed") != 0:
        abandon(fiber, CANCELLED)
    if ends_with_pool(worker, fiber):
        abandon(fiber, CANCELLED)
    share_following(worker)
    share_tasks(worker)
    root = worker.root
    if root is not None:
        if fiber != root and has_ended(root):
            leave(fiber, YIELDED)
            return
        call_on_thread(fiber, driver_beat, None)
        if atomic_load(addressof(fiber.cancelled), "relaxed") != 0:
            abandon(fiber, CANCELLED)
        if fiber == root:
            return
    if atomic_load(addressof(pool.count), "relaxed") != 0:
        # What is shared goes first, not a branch of this fiber: each branch that has begun needs a stack until it ends,
        # so one begins only when nothing else is left to do.
        worker.ticks = FAIRNESS
        leave(fiber, YIELDED)


# ---------------------------------------------------------------- what kernels call


@inline
def lower_floor(fiber: ptr[Fiber], position: ptr[u8], top: ptr[u8]) -> None:
    """A function at `position` is below the floor, and its records end at `top`: give it more, or end the fiber.

    While the native stack grows by a step, so do the records: by at most RECORDS times as much. So what is left for
    them limits the step, and forks need not look at their end.
    """
    if position < fiber.deepest:
        hard = hard_floor(fiber)
        step = u64(fork_end(fiber) - top) // RECORDS if top < fork_end(fiber) else u64(0)
        if position < hard or step < LEAST_STEP:
            abandon(fiber, OVERFLOWED)
        wanted = position - (step if step < KEPT else u64(KEPT))
        fiber.deepest = wanted if wanted > hard else hard
    atomic_store(addressof(fiber.floor), fiber.deepest, "relaxed")
    atomic_store(addressof(fiber.fork_floor), fiber.deepest, "relaxed")


@native(noinline=True)
def fail_service(fiber: ptr[Fiber], site: ptr[void]) -> None:
    """A kernel fails; `site` tells where and why."""
    fiber.failure = site
    abandon(fiber, FAILED)
