"""Where a guest meets Python: host functions, beats, and code whose values may be Python objects.

    guest, on a fiber's stack   call_out ──switch──▶ the thread's own stack, the GIL ──▶ Python ──switch──▶ back
                                beat_of_guest: deadlines, signals; others get their turn

What a host function raises while the guest is on a fiber is kept in its Guest, since the worker that raised it may have
run others by the time the guest's frames are gone. A host function that returns something to be awaited parks the
guest, and its worker goes on with others.

A guest that is `bound`, whose values may be Python objects, holds the GIL whenever it runs: whoever looks for objects
that are still needed looks at all stacks, and must find them at rest.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    native,
    ptr,
    stack,
    struct,
    u8,
    u32,
    unlikely,
    void,
)
from greenbeat.runtime.hooks import none_object, take_exception
from greenbeat.runtime.hostcalls import HOST_RAISED, HOST_STOPPED, HOST_WAITS, call_host
from greenbeat.runtime.layout import TRAP_CANCELLED, TRAP_NONE, TRAP_TIME, FunctionInstance, Task
from greenbeat.runtime.pacemaker import profiling
from greenbeat.runtime.pythonapi import (
    Object,
    PyErr_Clear,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyObject_CallFunction,
    drop,
)
from greenbeat.runtime.system import now
from greenbeat.runtime.tasks import Thread, is_cancelled, show_fuel, take_fuel
from greenbeat.tasks import deque
from greenbeat.tasks.beat import call_on_thread, driver_beat, give_up_gil, leave, take_gil
from greenbeat.tasks.layout import BY_CANCEL, BY_TIME, YIELDED, Fiber
from greenbeat.tasks.pool import ends_with_pool, pool, share_following
from greenbeat.tasks.sampling import guest_sampler
from greenbeat.tasks.scheduler import has_ended
from greenbeat.tasks.slots import guest_of, task_of
from greenbeat.tasks.timers import add_timer, remove_timer
from greenbeat.tasks.tracing import BEAT, no_fiber, trace
from greenbeat.tasks.waiting import fire, park, reason_of


@struct
class Crossing:
    """A call of a host function from a fiber, and what it came to."""

    target: ptr[FunctionInstance]
    arguments: ptr[u8]
    outcome: u32


# ---------------------------------------------------------------- the GIL, from a fiber


@native
def take_gil_on_thread(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """Called from a fiber: be able to use Python."""
    take_gil(fiber.worker)


@native
def give_up_gil_on_thread(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """Called from a fiber: let other threads of Python run."""
    give_up_gil(fiber.worker)


@native
def pass_gil_on_thread(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """Called from a fiber: let other threads of Python run for a moment."""
    PyEval_RestoreThread(PyEval_SaveThread())


@native(shared=True, noinline=True)
def become_bound(task: ptr[Task]) -> None:
    """A guest enters an instance whose values may be Python objects: it keeps the GIL for the rest of its call."""
    task.bound = 1
    call_on_thread(task.fiber, take_gil_on_thread, None)


@native
def keep_exception(fiber: ptr[Fiber]) -> None:
    """On the thread's own stack: the exception that is set belongs to the fiber's guest."""
    guest = guest_of(fiber)
    before = cast(ptr[Object], guest.exception)
    guest.exception = cast(ptr[void], take_exception())
    drop(before)


# ---------------------------------------------------------------- host functions


@native
def call_for_guest(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """Called from a fiber: call a host function."""
    crossing = cast(ptr[Crossing], argument)
    worker = fiber.worker
    thread = cast(ptr[Thread], worker.thread)
    task = task_of(fiber)
    held = worker.python is None
    take_gil(worker)
    outer = thread.task
    thread.task = task
    crossing.outcome = call_host(task, crossing.target, crossing.arguments, guest_of(fiber))
    thread.task = outer
    if crossing.outcome == HOST_RAISED:
        keep_exception(fiber)
    if not held or crossing.outcome == HOST_WAITS:
        give_up_gil(worker)


@native
def stop_waiting(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """Called from a fiber: nobody waits any more for what is awaited."""
    worker = fiber.worker
    held = worker.python is None
    take_gil(worker)
    waiter = cast(ptr[Object], guest_of(fiber).waiter)
    told = PyObject_CallFunction(waiter, "OI", none_object[0], fiber.generation)
    if told is None:
        PyErr_Clear()
    drop(told)
    if not held:
        give_up_gil(worker)


@native
def wait_for_answer(task: ptr[Task], fiber: ptr[Fiber]) -> u32:
    """Let others run until what a host function returned was awaited; what the call came to."""
    guest = guest_of(fiber)
    wait = fiber.wait
    wait.deadline = task.deadline
    if fiber.cancelled != 0:
        fire(wait, BY_CANCEL)
    add_timer(wait)
    park(fiber, cast(ptr[u32], 0))
    remove_timer(wait)
    reason = reason_of(wait)
    if task.bound != 0:
        call_on_thread(fiber, take_gil_on_thread, None)
    if reason == BY_CANCEL or reason == BY_TIME:
        call_on_thread(fiber, stop_waiting, None)
        task.trap = TRAP_TIME if reason == BY_TIME else u32(TRAP_CANCELLED)
        return HOST_STOPPED
    take_fuel(task)
    return guest.answer


@native(shared=True, noinline=True)
def call_out(task: ptr[Task], target: ptr[FunctionInstance], arguments: ptr[u8]) -> u32:
    """Call a host function from a guest; HOST_DONE, HOST_RAISED or HOST_STOPPED."""
    crossing = stack(Crossing)
    crossing.target = target
    crossing.arguments = arguments
    fiber = task.fiber
    call_on_thread(fiber, call_for_guest, crossing)
    if crossing.outcome == HOST_WAITS:
        return wait_for_answer(task, fiber)
    return crossing.outcome


# ---------------------------------------------------------------- beats


@native
def give_way(task: ptr[Task], fiber: ptr[Fiber]) -> None:
    """Let other fibers run."""
    if task.bound != 0:
        call_on_thread(fiber, give_up_gil_on_thread, None)
    leave(fiber, YIELDED)
    if task.bound != 0:
        call_on_thread(fiber, take_gil_on_thread, None)


@native
def beat_on_thread(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """Called from a fiber: `driver_beat`. A signal's handler may call the guest that it interrupts."""
    worker = fiber.worker
    thread = cast(ptr[Thread], worker.thread)
    outer = thread.task
    if fiber == worker.root:
        thread.task = task_of(fiber)
    driver_beat(fiber, argument)
    thread.task = outer


@native(shared=True, noinline=True)
def beat_of_guest(task: ptr[Task]) -> u32:
    """What a guest does when it finds its pulse set. `task.top` covers all that is live.

    Signals get their turn, so that Ctrl-C arrives, and so do others that are ready. A call from Python gives up the GIL
    at its first beat and takes it only for host functions and now and then for signals. While others run, memories may
    grow, fuel may be used or given, instances may be closed.

    Returns:
        TRAP_NONE to go on, TRAP_CANCELLED or TRAP_TIME. What a signal's handler has raised cancels the call, and is in
        the worker.
    """
    if unlikely(profiling[0] != 0):
        guest_sampler[0](task)
    fiber = task.fiber
    worker = fiber.worker
    trace(worker, BEAT, 0, fiber, no_fiber())
    atomic_store(addressof(fiber.pulse), u32(0), "relaxed")
    atomic_store(addressof(task.pulse), u32(0), "seq_cst")
    task.limit = task.soft
    show_fuel(task)
    root = worker.root
    if ends_with_pool(worker, fiber) or is_cancelled(task):
        return TRAP_CANCELLED
    if task.deadline != 0 and now() >= task.deadline:
        return TRAP_TIME
    share_following(worker)
    if root is not None:
        if fiber != root and has_ended(root):
            give_way(task, fiber)
        else:
            call_on_thread(fiber, beat_on_thread, None)
            if task.bound != 0:
                call_on_thread(fiber, take_gil_on_thread, None)
    elif atomic_load(addressof(pool.count), "relaxed") != 0 or deque.has_fibers(worker):
        give_way(task, fiber)
    elif task.bound != 0:
        call_on_thread(fiber, pass_gil_on_thread, None)
    take_fuel(task)
    if atomic_load(addressof(fiber.cancelled), "relaxed") != 0:
        return TRAP_CANCELLED
    return TRAP_NONE
