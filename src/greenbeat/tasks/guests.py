"""Guests as green tasks: a call of a guest's function, or a resumable call, that runs on a fiber.

    new_guest ─▶ a slot: │ arguments │ ─▶ start_task ... run_guest on a worker ─▶ │ results │ ─▶ guest_result

The instance is marked as busy when the task is made, and free when its run is over. Its results, its trap with the
frames, or the exception stay in the slot until they are asked for, or nobody will ask any more.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    atomic_update,
    cast,
    export,
    i64,
    native,
    ptr,
    u32,
    u64,
    void,
)
from greenbeat.runtime.callable import (
    argument_slot,
    bad_argument,
    explain_stop,
    raise_about,
    raise_kept,
    results_of,
    run_guest_here,
    set_limits,
)
from greenbeat.runtime.conversions import to_slot
from greenbeat.runtime.functions import FunctionObject
from greenbeat.runtime.hooks import BUSY, DROPPED, none_object, put_exception
from greenbeat.runtime.hostcalls import HOST_RAISED, note_frames, store_results
from greenbeat.runtime.layout import (
    FINISHED,
    FORGOTTEN,
    FRESH,
    RAISED,
    RUN_OVER,
    SUSPENDED,
    TRAP_CANCELLED,
    TRAPPED,
    FunctionInstance,
    Guest,
    Instance,
    Task,
)
from greenbeat.runtime.outcomes import ANSWERED, LATER, NOBODY
from greenbeat.runtime.pythonapi import Object, Py_IncRef, PyTuple_GetItem, drop
from greenbeat.runtime.resumable import (
    CALL_FAILED,
    UNLIMITED,
    CallObject,
    call_slot,
    end_call,
    may_go_on,
    note_time,
    set_call_limits,
    settle_call,
)
from greenbeat.tasks.beat import call_on_thread, give_up_gil, take_gil
from greenbeat.tasks.crossing import give_up_gil_on_thread, keep_exception, take_gil_on_thread
from greenbeat.tasks.layout import (
    CANCELLED,
    FAILED,
    FINISHED as ENDED_WELL,
    IDLE,
    PREPARING,
    WAITING,
    Fiber,
    Worker,
)
from greenbeat.tasks.slots import (
    clear_slot,
    give_back_task,
    guest_of,
    release_slot,
    task_of,
)
from greenbeat.tasks.threads import this_worker
from greenbeat.tasks.waiting import deliver, fire


@native
def mark_free(guest: ptr[Guest], task: ptr[Task]) -> None:
    """The guest's instance takes calls again."""
    instance = guest.target.instance
    if atomic_load(addressof(instance.task), "relaxed") == task:
        atomic_store(addressof(instance.task), cast(ptr[Task], 0), "release")


@native
def drop_objects(fiber: ptr[Fiber]) -> None:
    """With the GIL, when the run is over and nobody asks for the result: let go of everything."""
    guest = guest_of(fiber)
    task = task_of(fiber)
    thrown = cast(ptr[Object], task.exception)
    task.exception = None
    if guest.entrance != FRESH:
        give_back_task(fiber, guest)
        end_call(cast(ptr[CallObject], guest.callable), CALL_FAILED)
    clear_slot(guest)
    called = cast(ptr[Object], guest.callable)
    exception = cast(ptr[Object], guest.exception)
    waiter = cast(ptr[Object], guest.waiter)
    guest.callable = None
    guest.exception = None
    guest.waiter = None
    drop(exception)
    drop(thrown)
    drop(waiter)
    drop(called)


@native
def let_go(fiber: ptr[Fiber]) -> None:
    """With the GIL: nobody asks for the result any more."""
    guest = guest_of(fiber)
    before = atomic_update("or", addressof(guest.state), u32(FORGOTTEN), "acq_rel")
    if before & RUN_OVER != 0:
        drop_objects(fiber)


@native
def drop_on_thread(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """Called from a fiber whose result nobody asks for."""
    worker = fiber.worker
    held = worker.python is None
    take_gil(worker)
    drop_objects(fiber)
    if not held:
        give_up_gil(worker)


@native
def run_call(fiber: ptr[Fiber], guest: ptr[Guest]) -> None:
    """Run the function, or the resumable call."""
    task = task_of(fiber)
    instance = guest.target.instance
    begun: u64 = 0
    if guest.entrance == FRESH:
        set_limits(task, instance, 0)
    else:
        task.deadline = 0
        begun = set_call_limits(cast(ptr[CallObject], guest.callable), task, instance)
    if task.bound != 0:
        call_on_thread(fiber, take_gil_on_thread, None)
    run_guest_here(fiber)
    if task.bound != 0:
        call_on_thread(fiber, give_up_gil_on_thread, None)
    if guest.entrance == FRESH:
        task.payer = None
    else:
        note_time(cast(ptr[CallObject], guest.callable), begun)


@native
def run_guest(fiber: ptr[Fiber]) -> None:
    """What the fiber begins with."""
    guest = guest_of(fiber)
    fiber.status = CANCELLED
    if fiber.cancelled == 0:
        run_call(fiber, guest)
        fiber.status = ENDED_WELL if guest.status == FINISHED else u32(FAILED)
    mark_free(guest, task_of(fiber))
    before = atomic_update("or", addressof(guest.state), u32(RUN_OVER), "acq_rel")
    if before & FORGOTTEN != 0:
        call_on_thread(fiber, drop_on_thread, None)


@native
def is_busy(instance: ptr[Instance]) -> bool:
    """Whether a call runs inside of an instance, or waits there."""
    busy = instance.task
    return busy is not None and busy.stack is not None


@native
def put_arguments(function: ptr[FunctionObject], arguments: ptr[Object], slots: ptr[u64]) -> bool:
    """Convert arguments into slots; False with an exception set."""
    signature = function.target.signature
    for i in range(signature.param_count):
        slots[i] = 0
    for i in range(signature.param_count):
        item = PyTuple_GetItem(arguments, i64(i))
        if not to_slot(signature.params[i], item, slots + i, function.owner):
            bad_argument(function, i, item)
            return False
    return True


@export
def new_guest(function: ptr[FunctionObject], arguments: ptr[Object], waiter: ptr[Object]) -> ptr[Fiber]:
    """A fiber for a call of a guest's function, held by the caller; its instance is busy from now on.

    Args:
        function: a Function of a guest.
        arguments: a tuple of the right size.
        waiter: see `Guest`; None for nobody.

    Returns:
        Null with an exception set.
    """
    nothing = cast(ptr[Fiber], 0)
    target = function.target
    if target is None:
        raise_about(function, DROPPED)
        return nothing
    instance = target.instance
    worker = this_worker()
    fiber = argument_slot(worker, target, run_guest, 2)
    if fiber is None:
        return nothing
    task = task_of(fiber)
    good = put_arguments(function, arguments, cast(ptr[u64], task.stack))
    if good and is_busy(instance):
        raise_about(function, BUSY)
        good = False
    if good and instance.closed != 0:
        raise_about(function, DROPPED)
        good = False
    if not good:
        release_slot(worker, fiber)
        return nothing
    begin_guest(fiber, target, cast(ptr[Object], function), waiter)
    task.ip = None
    task.sp = task.stack
    return fiber


@native
def begin_guest(fiber: ptr[Fiber], target: ptr[FunctionInstance], called: ptr[Object], waiter: ptr[Object]) -> None:
    """Fill in a Guest; its instance is busy from now on."""
    guest = guest_of(fiber)
    task = task_of(fiber)
    target.instance.task = task
    fiber.let_go = let_go
    Py_IncRef(called)
    guest.callable = cast(ptr[void], called)
    guest.waiter = None
    if waiter != none_object[0]:
        Py_IncRef(waiter)
        guest.waiter = cast(ptr[void], waiter)
    guest.exception = None
    guest.target = target
    guest.state = 0
    # If it is cancelled before it begins, this is what it came to.
    guest.status = TRAPPED
    task.status = TRAPPED
    task.trap = TRAP_CANCELLED
    task.depth = 1
    task.outer = None
    task.chain = task


@export
def new_call_guest(call: ptr[CallObject], waiter: ptr[Object]) -> ptr[Fiber]:
    """A fiber that resumes a call until it is over; as `new_guest`.

    Null, and no exception, if it is over or runs.
    """
    nothing = cast(ptr[Fiber], 0)
    if not may_go_on(call):
        return nothing
    target = call.function.target
    if target is not None and is_busy(target.instance):
        raise_about(call.function, BUSY)
        return nothing
    fiber = call_slot(call, this_worker(), UNLIMITED, cast(ptr[void], run_guest), 2)
    if fiber is not None:
        begin_guest(fiber, target, cast(ptr[Object], call), waiter)
    return fiber


@export
def guest_result(fiber: ptr[Fiber]) -> ptr[Object]:
    """What a guest's call that has ended came to, owned by the caller; null with an exception set."""
    guest = guest_of(fiber)
    task = task_of(fiber)
    status = guest.status
    if status == RAISED:
        raise_kept(guest)
    elif status != FINISHED and (status != SUSPENDED or guest.entrance == FRESH):
        status = explain_stop(guest.target, task, status)
    if guest.entrance != FRESH:
        call = cast(ptr[CallObject], guest.callable)
        give_back_task(fiber, guest)
        if settle_call(call, status) == 0 or call.result is None:
            return cast(ptr[Object], 0)
        Py_IncRef(call.result)
        return call.result
    if status != FINISHED:
        return cast(ptr[Object], 0)
    return results_of(guest.target.signature, cast(ptr[u64], task.stack))


@export
def answer_guest(fiber: ptr[Fiber], generation: u32, item: ptr[Object], failed: u32) -> u32:
    """What a guest's host function returned was awaited: let the guest go on.

    Args:
        fiber: the guest's, or what was it once.
        generation: tells whether it still is.
        item: the result, or the exception.
        failed: 1 if it is an exception.

    Returns:
        NOBODY if nobody waits for it any more, LATER if the guest does not quite wait yet.
    """
    # Nobody else makes a guest of this fiber meanwhile, since that takes the GIL.
    if fiber.generation != generation:
        return NOBODY
    state = atomic_load(addressof(fiber.wait.state), "acquire")
    if state == PREPARING:
        return LATER
    if fire(fiber.wait, 0) == IDLE:
        return NOBODY
    guest = guest_of(fiber)
    guest.answer = HOST_RAISED
    if failed == 0:
        guest.answer = store_results(guest.awaited, item, guest.slots, cast(ptr[Guest], 0))
    else:
        Py_IncRef(item)
        put_exception(item)
    if guest.answer == HOST_RAISED:
        note_frames(task_of(fiber))
        keep_exception(fiber)
    deliver(cast(ptr[Worker], 0), fiber.wait, WAITING)
    return ANSWERED
