"""Calls from Python to a guest.

    function(2, 40) ──vectorcall──▶ call_function ─▶ arguments into slots ─▶ enter ─▶ run ─▶ results out of slots
                                                                           │
              the thread's task ─▶ │ frames of waiting calls │ top ▶ frame │ ...

`enter` puts the limits of the callee's instance into the task, marks the instance as busy in this thread, and takes
both back however the call ends. A call made by a host function saves what the task was doing and goes on above it.
"""

from greenbeat.interpreter.enter import run
from greenbeat.native import (
    addressof,
    atomic_store,
    cast,
    export,
    i32,
    i64,
    inline,
    likely,
    native,
    ptr,
    stack,
    struct,
    u8,
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
    STACK,
    STOPPED,
    hooks,
    none_object,
    or_none,
    take_exception,
)
from greenbeat.runtime.hostcalls import HOST_DONE, call_host
from greenbeat.runtime.layout import (
    FINISHED,
    GUEST,
    METERED,
    RAISED,
    SLOT,
    STACK_MARGIN,
    FunctionInstance,
    Guest,
    Instance,
    SignatureType,
    Task,
)
from greenbeat.runtime.pacemaker import begin_running
from greenbeat.runtime.pythonapi import (
    VECTORCALL_ROOM,
    Object,
    Py_DecRef,
    Py_IncRef,
    PyErr_NoMemory,
    PyObject_CallFunction,
    PyTuple_New,
    PyTuple_SetItem,
    PyTuple_Size,
    drop,
)
from greenbeat.runtime.system import now
from greenbeat.runtime.tasks import Thread, hold_python, native_stack_is_short, runs_elsewhere, show_fuel, this_thread


@struct
class Waiting:
    """What a task was doing when a host function called into a guest again."""

    ip: ptr[u8]
    sp: ptr[u8]
    instance: ptr[Instance]
    payer: ptr[Instance]
    ceiling: ptr[u8]
    soft: ptr[u8]
    reserve: i64
    fuel: i64
    deadline: u64
    mode: u32
    status: u32
    trap: u32
    depth: u32
    bound: u32
    shown: i64


@native
def set_aside(task: ptr[Task], waiting: ptr[Waiting]) -> None:
    """Remember what a task is doing."""
    waiting.ip = task.ip
    waiting.sp = task.sp
    waiting.instance = task.instance
    waiting.payer = task.payer
    waiting.ceiling = task.ceiling
    waiting.soft = task.soft
    waiting.reserve = task.reserve
    waiting.fuel = task.fuel
    waiting.deadline = task.deadline
    waiting.mode = task.mode
    waiting.status = task.status
    waiting.trap = task.trap
    waiting.depth = task.depth
    waiting.bound = task.bound
    waiting.shown = task.shown


@native
def put_back(task: ptr[Task], waiting: ptr[Waiting]) -> None:
    """Go on with what was set aside."""
    task.ip = waiting.ip
    task.sp = waiting.sp
    task.instance = waiting.instance
    task.payer = waiting.payer
    task.ceiling = waiting.ceiling
    task.soft = waiting.soft
    task.limit = waiting.soft
    task.reserve = waiting.reserve
    task.fuel = waiting.fuel
    task.deadline = waiting.deadline
    task.mode = waiting.mode
    task.status = waiting.status
    task.trap = waiting.trap
    task.depth = waiting.depth
    task.bound = waiting.bound
    task.shown = waiting.shown


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
    """Raise what a trap, or fuel that ran out, means; returns RAISED.

    The guest's frames are still on the stack, so calls made meanwhile (a finaliser's, say) go on above them.
    """
    top = task.sp
    if task.instance is not None:
        top += task.instance.module.largest_frame + SLOT
    task.top = top if top < task.stack_end - STACK_MARGIN else task.stack_end - STACK_MARGIN
    drop(PyObject_CallFunction(hooks[STOPPED], "KKi", cast(u64, target), cast(u64, task), i32(status)))
    return RAISED


# ---------------------------------------------------------------- running


@native
def set_limits(task: ptr[Task], instance: ptr[Instance], frame: ptr[u8], outer_deadline: u64) -> None:
    """Put the limits of an instance into the task that is about to run it."""
    task.mode = instance.metered
    task.bound = instance.bound
    task.payer = None
    if instance.metered == METERED:
        task.payer = instance
        task.fuel = instance.fuel
        task.shown = instance.fuel
        task.reserve = 0
    ceiling = task.stack_end - STACK_MARGIN
    if instance.stack_limit < u64(ceiling - frame):
        ceiling = frame + instance.stack_limit
    task.ceiling = ceiling
    task.soft = ceiling
    task.limit = ceiling
    task.deadline = outer_deadline
    if unlikely(instance.time_limit != 0):
        deadline = now() + instance.time_limit
        if outer_deadline == 0 or deadline < outer_deadline:
            task.deadline = deadline


@native
def enter(
    self: ptr[FunctionObject], thread: ptr[Thread], task: ptr[Task], target: ptr[FunctionInstance], frame: ptr[u8]
) -> u32:
    """Run a function whose arguments are in slots at `frame`; FINISHED, or RAISED with an exception set."""
    if unlikely(target.kind != GUEST):
        # No guest calls it: an exception goes through no frames and nobody's fuel is at stake, whatever the task ran
        # before.
        if unlikely(native_stack_is_short(thread)):
            return raise_exhausted(DEPTH)
        ip = task.ip
        payer = task.payer
        task.ip = None
        task.payer = None
        raised = call_host(task, target, frame, cast(ptr[Guest], 0)) != HOST_DONE
        task.ip = ip
        task.payer = payer
        return RAISED if raised else u32(FINISHED)
    instance = target.instance
    busy = instance.task
    if runs_elsewhere(instance, thread):
        return raise_about(self, BUSY)
    if unlikely(instance.closed != 0):
        return raise_about(self, DROPPED)
    depth = task.depth
    if unlikely(depth >= instance.depth_limit) or (unlikely(depth != 0) and native_stack_is_short(thread)):
        return raise_exhausted(DEPTH)
    instance.task = thread.marker
    status = u32(0)
    if likely(depth == 0):
        set_limits(task, instance, frame, 0)
        task.depth = 1
        # A worker that frees an object may call a guest meanwhile.
        running = thread.running
        begin_running(thread)
        status = run(task, target, frame)
        if unlikely(task.python is not None):
            hold_python(task)
        show_fuel(task)
        if unlikely(status != FINISHED) and status != RAISED:
            status = explain_stop(target, task, status)
        atomic_store(addressof(thread.running), running, "relaxed")
        task.depth = 0
        task.payer = None
    else:
        waiting = stack(Waiting)
        set_aside(task, waiting)
        set_limits(task, instance, frame, waiting.deadline)
        task.depth = depth + 1
        task.deep = 1
        status = run(task, target, frame)
        if unlikely(task.python is not None):
            hold_python(task)
        show_fuel(task)
        if unlikely(status != FINISHED) and status != RAISED:
            status = explain_stop(target, task, status)
        put_back(task, waiting)
    instance.task = busy
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
    if unlikely(thread is None):
        return PyErr_NoMemory()
    task = thread.task
    frame = task.top
    # What is converted here may run Python code, which may call guests: they go on above.
    top = frame + (u64(signature.param_count) + u64(signature.result_count)) * SLOT
    if unlikely(top > task.stack_end - STACK_MARGIN):
        raise_exhausted(STACK)
        return cast(ptr[Object], 0)
    task.top = top
    slots = cast(ptr[u64], frame)
    for i in range(signature.param_count):
        if unlikely(not to_slot(signature.params[i], arguments[i], slots + i, self.owner)):
            task.top = frame
            return bad_argument(self, i, arguments[i])
    result = cast(ptr[Object], 0)
    if likely(enter(self, thread, task, target, frame) == FINISHED):
        result = results_of(signature, slots)
    task.top = frame
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
