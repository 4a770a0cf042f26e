"""Calls from a guest to a Python callable.

    guest ──call_host──▶ arguments become objects ──▶ callable ──▶ its result is checked and put into the slots
                                                        └─ an exception: a note names the guest's frames

What the callable does may call guests again, which have slots of their own.

What has to be awaited can be returned to a guest that runs as a green task: it is handed to the guest's waiter, and
the results are stored when its event loop has them.
"""

from greenbeat.native import cast, i64, native, ptr, stack, u8, u32, u64, unlikely
from greenbeat.runtime.arena import free, malloc
from greenbeat.runtime.conversions import from_slot, to_slot
from greenbeat.runtime.groups import group_of
from greenbeat.runtime.hooks import (
    AWAIT,
    NOTE,
    RESULT,
    coroutine_type,
    hooks,
    none_object,
    or_none,
    put_exception,
    take_exception,
)
from greenbeat.runtime.layout import FunctionInstance, Guest, Task
from greenbeat.runtime.pythonapi import (
    AM_AWAIT,
    VECTORCALL_ROOM,
    Object,
    Py_DecRef,
    Py_EnterRecursiveCall,
    Py_LeaveRecursiveCall,
    PyErr_Clear,
    PyErr_NoMemory,
    PyObject_CallFunction,
    PyObject_Vectorcall,
    PySequence_Tuple,
    PyTuple_GetItem,
    PyTuple_Size,
    PyType_GetSlot,
    drop,
)
from greenbeat.runtime.tasks import show_fuel, take_fuel
from greenbeat.tasks.layout import PREPARING
from greenbeat.tasks.waiting import begin
from greenbeat.wasm.valuetypes import holds_objects

# What a call came to. HOST_STOPPED is for guests that were stopped while they waited: `task.trap` says why.
HOST_DONE, HOST_RAISED, HOST_WAITS, HOST_STOPPED = range(4)
# More parameters than this go through the C library's heap.
SMALL = 16


@native
def is_awaitable(value: ptr[Object]) -> bool:
    """Whether an object can be awaited."""
    return value.type == coroutine_type[0] or PyType_GetSlot(value.type, AM_AWAIT) is not None


@native(noinline=True)
def await_later(target: ptr[FunctionInstance], value: ptr[Object], slots: ptr[u64], guest: ptr[Guest]) -> u32:
    """Let an event loop await what a host function returned; HOST_WAITS, or HOST_RAISED where nobody does."""
    if guest is None or guest.waiter is None:
        drop(PyObject_CallFunction(hooks[AWAIT], "KO", cast(u64, target), value))
        return HOST_RAISED
    fiber = guest.fiber
    guest.awaited = target
    guest.slots = slots
    # The answer may come before the guest has left its stack.
    begin(fiber.wait, PREPARING)
    scheduled = PyObject_CallFunction(cast(ptr[Object], guest.waiter), "OI", value, fiber.generation)
    if scheduled is None:
        return HOST_RAISED
    Py_DecRef(scheduled)
    return HOST_WAITS


@native(noinline=True)
def bad_result(
    target: ptr[FunctionInstance], position: i64, value: ptr[Object], slots: ptr[u64], guest: ptr[Guest]
) -> u32:
    """A host function's result (`position` -1: their number) does not fit: it may have to be awaited first."""
    cause = take_exception()
    if (position < 0 or target.signature.result_count == 1) and is_awaitable(value):
        drop(cause)
        return await_later(target, value, slots, guest)
    drop(PyObject_CallFunction(hooks[RESULT], "KLOO", cast(u64, target), position, value, or_none(cause)))
    drop(cause)
    return HOST_RAISED


@native
def store_results(target: ptr[FunctionInstance], result: ptr[Object], slots: ptr[u64], guest: ptr[Guest]) -> u32:
    """Convert what a host function returned.

    The function's group may be another one after each call of Python code: it may be merged.
    """
    signature = target.signature
    count = signature.result_count
    if count == 0:
        if unlikely(result != none_object[0]) and is_awaitable(result):
            return await_later(target, result, slots, guest)
        return HOST_DONE
    if count == 1:
        kind = signature.results[0]
        if unlikely(result.type == coroutine_type[0]) and holds_objects(kind):
            return await_later(target, result, slots, guest)
        if unlikely(not to_slot(kind, result, slots, group_of(target))):
            return bad_result(target, 0, result, slots, guest)
        return HOST_DONE
    items = PySequence_Tuple(result)
    if items is None:
        return bad_result(target, -1, result, slots, guest)
    outcome = u32(HOST_DONE)
    if PyTuple_Size(items) != i64(count):
        outcome = bad_result(target, -1, result, slots, guest)
    for i in range(count):
        if outcome == HOST_DONE:
            item = PyTuple_GetItem(items, i64(i))
            if not to_slot(signature.results[i], item, slots + i, group_of(target)):
                outcome = bad_result(target, i64(i), item, slots, guest)
    Py_DecRef(items)
    return outcome


@native
def call_with(target: ptr[FunctionInstance], slots: ptr[u64], items: ptr[ptr[Object]], guest: ptr[Guest]) -> u32:
    """Convert the arguments into `items`, whose first place is spare, call, and store the results."""
    signature = target.signature
    count = signature.param_count
    for i in range(count):
        items[i + 1] = from_slot(signature.params[i], slots + i)
        if unlikely(items[i + 1] is None):
            for done in range(i):
                Py_DecRef(items[done + 1])
            return HOST_RAISED
    result = PyObject_Vectorcall(target.python, items + 1, u64(count) | VECTORCALL_ROOM, None)
    for passed in range(count):
        Py_DecRef(items[passed + 1])
    if unlikely(result is None):
        return HOST_RAISED
    outcome = store_results(target, result, slots, guest)
    Py_DecRef(result)
    return outcome


@native(noinline=True)
def call_with_many(target: ptr[FunctionInstance], slots: ptr[u64], guest: ptr[Guest]) -> u32:
    """`call_with` for any number of parameters."""
    items = cast(ptr[ptr[Object]], malloc((u64(target.signature.param_count) + 1) * 8))
    if items is None:
        PyErr_NoMemory()
        return HOST_RAISED
    outcome = call_with(target, slots, items, guest)
    free(items)
    return outcome


@native(noinline=True)
def note_frames(task: ptr[Task]) -> None:
    """Tell in the exception that is set which guest frames it goes through."""
    exception = take_exception()
    if exception is None:
        return
    noted = PyObject_CallFunction(hooks[NOTE], "OK", exception, cast(u64, task))
    if noted is None:
        PyErr_Clear()
    drop(noted)
    put_exception(exception)


@native(shared=True, noinline=True)
def call_host(task: ptr[Task], target: ptr[FunctionInstance], arguments: ptr[u8], guest: ptr[Guest]) -> u32:
    """Call a host function, with the GIL and on the thread's own stack.

    Args:
        task: the guest that calls; its ip, sp and instance tell where it is, `top` is above what is live.
        target: the function; its kind is HOST.
        arguments: slots with the arguments, replaced by the results.
        guest: who waits for what the function returns if that has to be awaited, or null.

    Returns:
        HOST_DONE, HOST_RAISED with a Python exception set, or HOST_WAITS: the results come later.
    """
    if Py_EnterRecursiveCall(" in a call from a WebAssembly guest") != 0:
        note_frames(task)
        return HOST_RAISED
    show_fuel(task)
    slots = cast(ptr[u64], arguments)
    outcome = u32(HOST_DONE)
    if target.signature.param_count <= SMALL:
        outcome = call_with(target, slots, stack(ptr[Object], SMALL + 1), guest)
    else:
        outcome = call_with_many(target, slots, guest)
    take_fuel(task)
    Py_LeaveRecursiveCall()
    if unlikely(outcome == HOST_RAISED):
        note_frames(task)
    return outcome
