"""Calls from Python to a guest.

    function(2, 40) ──vectorcall──▶ call_function ─▶ a slot: │ arguments │ ─▶ enter ─▶ run_on_fiber ─▶ run_guest_here
                                          ▲                                                    │
                                          └── results out of the slot, or an exception ◀───────┘

Each call has a slot of its own (see `tasks/slots.py`), from the thread's cache. `enter` puts the limits of the callee's
instance into the slot's Task, marks the instance as busy, and takes both back however the call ends. A host function
may call guests again: `thread.task` is the task that waits for it, and becomes the new one's `outer`.
"""

from greenbeat.interpreter.enter import resume, run
from greenbeat.native import (
    cast,
    export,
    i32,
    i64,
    inline,
    likely,
    native,
    ptr,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.conversions import from_slot, to_slot
from greenbeat.runtime.evaluate import function_reference
from greenbeat.runtime.functions import (
    FunctionObject,
    create_function_type,
    function_type,
    named_wrapper,
    wrapper_place,
)
from greenbeat.runtime.groups import create_group_type, group_type
from greenbeat.runtime.handles import create_handle_types, handle_type, memory_handle_type
from greenbeat.runtime.hooks import (
    ARGUMENT,
    ARGUMENT_COUNT,
    BUSY,
    DEPTH,
    DROPPED,
    EXHAUSTED,
    KEYWORDS,
    MEMORY,
    STOPPED,
    hooks,
    none_object,
    or_none,
    put_exception,
    take_exception,
)
from greenbeat.runtime.hostcalls import HOST_DONE, call_host
from greenbeat.runtime.layout import (
    FINISHED,
    GOES_ON,
    GUEST,
    METERED,
    RAISED,
    STACK_MARGIN,
    FunctionInstance,
    Guest,
    Instance,
    SignatureType,
    Task,
)
from greenbeat.runtime.pythonapi import (
    VECTORCALL_ROOM,
    Object,
    Py_DecRef,
    Py_IncRef,
    PyObject_CallFunction,
    PyTuple_New,
    PyTuple_SetItem,
    PyTuple_Size,
    drop,
)
from greenbeat.runtime.system import now
from greenbeat.runtime.tasks import Thread, native_stack_is_short, runs_elsewhere, show_fuel, this_thread
from greenbeat.tasks.layout import Fiber, Worker
from greenbeat.tasks.slots import KEPT_VALUES, guest_of, new_slot, release_slot, room_for, stack_room, task_of
from greenbeat.tasks.threads import RAISED as INTERRUPTED, run_on_fiber, worker_of

# ---------------------------------------------------------------- errors


@native(noinline=True)
def raise_about(self: ptr[FunctionObject], hook: u32) -> u32:
    """Let a hook raise an error about a function; returns RAISED."""
    drop(PyObject_CallFunction(hooks[hook], "O", self))
    return RAISED


@native(noinline=True)
def raise_exhausted(resource: u32) -> u32:
    """Raise Exhausted; returns RAISED."""
    drop(PyObject_CallFunction(hooks[EXHAUSTED], "iK", i32(resource), u64(0)))
    return RAISED


@native(noinline=True)
def bad_argument(self: ptr[FunctionObject], position: u32, value: ptr[Object]) -> ptr[Object]:
    """Say that an argument does not fit; returns null."""
    cause = take_exception()
    drop(PyObject_CallFunction(hooks[ARGUMENT], "OiOO", self, i32(position), value, or_none(cause)))
    drop(cause)
    return cast(ptr[Object], 0)


@native(noinline=True)
def bad_count(self: ptr[FunctionObject], count: u64) -> ptr[Object]:
    """Say that the number of arguments is wrong; returns null."""
    drop(PyObject_CallFunction(hooks[ARGUMENT_COUNT], "OK", self, count))
    return cast(ptr[Object], 0)


@native(noinline=True)
def explain_stop(target: ptr[FunctionInstance], task: ptr[Task], status: u32) -> u32:
    """Raise what a trap, or fuel that ran out, means; returns RAISED. The guest's frames are still on the stack."""
    drop(PyObject_CallFunction(hooks[STOPPED], "KKi", cast(u64, target), cast(u64, task), i32(status)))
    return RAISED


@native
def raise_kept(guest: ptr[Guest]) -> u32:
    """Raise what a host function of a guest has raised; returns RAISED."""
    exception = cast(ptr[Object], guest.exception)
    guest.exception = None
    put_exception(exception)
    return RAISED


# ---------------------------------------------------------------- running


@inline
def argument_slot(worker: ptr[Worker], target: ptr[FunctionInstance], entry, references) -> ptr[Fiber]:
    """A slot for a call of a function, its arguments to be filled in; null with an exception set."""
    fiber = cast(ptr[Fiber], 0)
    if likely(worker is not None):
        fiber = new_slot(worker, stack_room(target), entry, references)
    if unlikely(fiber is None):
        raise_exhausted(MEMORY)
    else:
        # References among the arguments are looked for from now on.
        task_of(fiber).top = task_of(fiber).stack + room_for(target)
    return fiber


@native
def set_limits(task: ptr[Task], instance: ptr[Instance], outer_deadline: u64) -> None:
    """Put the limits of an instance into the task that is about to run it, on a slot's stack."""
    task.mode = instance.metered
    task.bound = instance.bound
    task.payer = None
    if instance.metered == METERED:
        task.payer = instance
        task.fuel = instance.fuel
        task.shown = instance.fuel
        task.reserve = 0
    ceiling = task.stack_end - STACK_MARGIN
    if instance.stack_limit < u64(ceiling - task.stack):
        ceiling = task.stack + instance.stack_limit
    soft = task.stack + KEPT_VALUES
    task.ceiling = ceiling
    task.soft = soft if soft < ceiling else ceiling
    task.limit = task.soft
    task.deadline = outer_deadline
    if unlikely(instance.time_limit != 0):
        deadline = now() + instance.time_limit
        if outer_deadline == 0 or deadline < outer_deadline:
            task.deadline = deadline


@native
def run_guest_here(fiber: ptr[Fiber]) -> None:
    """What the fiber of a call from Python begins with. The limits are set."""
    guest = guest_of(fiber)
    task = task_of(fiber)
    if unlikely(guest.entrance == GOES_ON):
        guest.status = resume(task)
    else:
        guest.status = run(task, guest.target, task.stack)
    show_fuel(task)


@inline
def may_enter(self: ptr[FunctionObject], thread: ptr[Thread], instance: ptr[Instance]) -> bool:
    """Whether the thread may call into an instance now; False with an exception set."""
    outer = thread.task
    if runs_elsewhere(instance, outer):
        raise_about(self, BUSY)
        return False
    if unlikely(instance.closed != 0):
        raise_about(self, DROPPED)
        return False
    if unlikely(outer is not None) and (outer.depth >= instance.depth_limit or native_stack_is_short(thread)):
        raise_exhausted(DEPTH)
        return False
    return True


@native
def go(thread: ptr[Thread], worker: ptr[Worker], fiber: ptr[Fiber], target: ptr[FunctionInstance]) -> u32:
    """Run a call whose limits are set on a slot's fiber, with its instance marked as busy meanwhile.

    Returns:
        What became of the call; of RAISED, an exception is set.
    """
    task = task_of(fiber)
    guest = guest_of(fiber)
    instance = target.instance
    busy = instance.task
    outer = thread.task
    task.outer = outer
    task.depth = 1
    task.chain = task
    if unlikely(outer is not None):
        task.depth = outer.depth + 1
        task.chain = outer.chain
    instance.task = task.chain
    guest.target = target
    interrupted = run_on_fiber(thread, worker, fiber) == INTERRUPTED
    status = guest.status
    if unlikely(interrupted):
        status = RAISED
    elif unlikely(status != FINISHED):
        status = raise_kept(guest) if status == RAISED else status
    instance.task = busy
    return status


@native(noinline=True)
def enter_host(thread: ptr[Thread], task: ptr[Task], target: ptr[FunctionInstance]) -> u32:
    """Call a host function whose arguments are in a slot. No guest calls it: an exception goes through no frames."""
    if native_stack_is_short(thread):
        return raise_exhausted(DEPTH)
    task.ip = None
    task.payer = None
    if call_host(task, target, task.stack, cast(ptr[Guest], 0)) != HOST_DONE:
        return RAISED
    return FINISHED


@native
def enter(
    self: ptr[FunctionObject],
    thread: ptr[Thread],
    worker: ptr[Worker],
    fiber: ptr[Fiber],
    target: ptr[FunctionInstance],
) -> u32:
    """Run a function whose arguments are in a slot; FINISHED, or RAISED with an exception set."""
    task = task_of(fiber)
    if unlikely(target.kind != GUEST):
        return enter_host(thread, task, target)
    instance = target.instance
    if not may_enter(self, thread, instance):
        return RAISED
    set_limits(task, instance, thread.task.deadline if unlikely(thread.task is not None) else u64(0))
    status = go(thread, worker, fiber, target)
    if unlikely(status != FINISHED) and status != RAISED:
        status = explain_stop(target, task, status)
    return status


@native(noinline=True)
def many_results(signature: ptr[SignatureType], slots: ptr[u64]) -> ptr[Object]:
    """No result as None, several as a tuple; null with an exception set."""
    count = signature.result_count
    if count == 0:
        Py_IncRef(none_object[0])
        return none_object[0]
    results = PyTuple_New(i64(count))
    if results is None:
        return cast(ptr[Object], 0)
    for i in range(count):
        item = from_slot(signature.results[i], slots + i)
        if item is None:
            Py_DecRef(results)
            return cast(ptr[Object], 0)
        PyTuple_SetItem(results, i64(i), item)
    return results


@inline
def results_of(signature: ptr[SignatureType], slots: ptr[u64]) -> ptr[Object]:
    """What a finished call gives Python; null with an exception set."""
    if likely(signature.result_count == 1):
        return from_slot(signature.results[0], slots)
    return many_results(signature, slots)


@native(shared=True)
def call_function(
    self: ptr[FunctionObject], arguments: ptr[ptr[Object]], count_and_flag: u64, keywords: ptr[Object]
) -> ptr[Object]:
    """`vectorcall` of `greenbeat.Function`."""
    target = self.target
    if unlikely(target is None):
        raise_about(self, DROPPED)
        return cast(ptr[Object], 0)
    signature = target.signature
    count = count_and_flag & ~u64(VECTORCALL_ROOM)
    if unlikely(keywords is not None) and PyTuple_Size(keywords) != 0:
        raise_about(self, KEYWORDS)
        return cast(ptr[Object], 0)
    if unlikely(count != u64(signature.param_count)):
        return bad_count(self, count)
    thread = this_thread()
    worker = worker_of(thread) if likely(thread is not None) else cast(ptr[Worker], 0)
    fiber = argument_slot(worker, target, run_guest_here, 1)
    if unlikely(fiber is None):
        return cast(ptr[Object], 0)
    slots = cast(ptr[u64], task_of(fiber).stack)
    for i in range(signature.param_count):
        # This may run Python code, which may call guests: they have slots of their own.
        if unlikely(not to_slot(signature.params[i], arguments[i], slots + i, self.owner)):
            bad_argument(self, i, arguments[i])
            release_slot(worker, fiber)
            return cast(ptr[Object], 0)
    result = cast(ptr[Object], 0)
    if likely(enter(self, thread, worker, fiber, target) == FINISHED):
        result = results_of(signature, slots)
    release_slot(worker, fiber)
    return result


@export
def exported_function(instance: ptr[Instance], index: u32, name: ptr[Object]) -> ptr[Object]:
    """The Function object of an instance's function, owned by the caller; a new one gets the name."""
    target = function_reference(instance, index)
    place = wrapper_place(target)
    if place[0] is not None:
        known = cast(ptr[Object], place[0])
        Py_IncRef(known)
        return known
    Py_IncRef(name)
    return named_wrapper(target, name)


@export
def create_types(types: ptr[ptr[void]]) -> u32:
    """Make the native Python types: Group, Handle, MemoryHandle, Function; 0 with an exception set."""
    good = create_group_type() and create_handle_types() and create_function_type(call_function)
    types[0] = group_type[0]
    types[1] = handle_type[0]
    types[2] = memory_handle_type[0]
    types[3] = function_type[0]
    return u32(good)
