"""Calls from a guest to a Python callable.

    guest ──call_host──▶ arguments become objects ──▶ callable ──▶ its result is checked and put into the slots
                                                        └─ an exception: a note names the guest's frames

What the callable does may call guests again, on the same task above `task.top`; the stack is left as it was found.
"""

from greenbeat.native import cast, i64, native, ptr, stack, u8, u32, u64, unlikely
from greenbeat.runtime.arena import free, malloc
from greenbeat.runtime.conversions import from_slot, to_slot
from greenbeat.runtime.groups import group_of
from greenbeat.runtime.hooks import NOTE, RESULT, hooks, or_none, put_exception, take_exception
from greenbeat.runtime.layout import FunctionInstance, Task
from greenbeat.runtime.pythonapi import (
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
    drop,
)
from greenbeat.runtime.tasks import show_fuel, take_fuel

# More parameters than this go through the C library's heap.
SMALL = 16


@native(noinline=True)
def bad_result(target: ptr[FunctionInstance], position: i64, value: ptr[Object]) -> bool:
    """Say that a host function's result does not fit (`position` -1: their number); returns False."""
    cause = take_exception()
    drop(PyObject_CallFunction(hooks[RESULT], "KLOO", cast(u64, target), position, value, or_none(cause)))
    drop(cause)
    return False


@native
def store_results(target: ptr[FunctionInstance], result: ptr[Object], slots: ptr[u64]) -> bool:
    """Convert what a host function returned; False with an exception set.

    The function's group may be another one after each call of Python code: it may be merged.
    """
    signature = target.signature
    count = signature.result_count
    if count == 0:
        return True
    if count == 1:
        if unlikely(not to_slot(signature.results[0], result, slots, group_of(target))):
            return bad_result(target, 0, result)
        return True
    items = PySequence_Tuple(result)
    if items is None:
        return bad_result(target, -1, result)
    good = True
    if PyTuple_Size(items) != i64(count):
        good = bad_result(target, -1, result)
    for i in range(count):
        if good:
            item = PyTuple_GetItem(items, i64(i))
            if not to_slot(signature.results[i], item, slots + i, group_of(target)):
                good = bad_result(target, i64(i), item)
    Py_DecRef(items)
    return good


@native
def call_with(target: ptr[FunctionInstance], slots: ptr[u64], items: ptr[ptr[Object]]) -> bool:
    """Convert the arguments into `items`, whose first place is spare, call, and store the results."""
    signature = target.signature
    count = signature.param_count
    for i in range(count):
        items[i + 1] = from_slot(signature.params[i], slots + i)
        if unlikely(items[i + 1] is None):
            for done in range(i):
                Py_DecRef(items[done + 1])
            return False
    result = PyObject_Vectorcall(target.python, items + 1, u64(count) | VECTORCALL_ROOM, None)
    for passed in range(count):
        Py_DecRef(items[passed + 1])
    if unlikely(result is None):
        return False
    good = store_results(target, result, slots)
    Py_DecRef(result)
    return good


@native(noinline=True)
def call_with_many(target: ptr[FunctionInstance], slots: ptr[u64]) -> bool:
    """`call_with` for any number of parameters."""
    items = cast(ptr[ptr[Object]], malloc((u64(target.signature.param_count) + 1) * 8))
    if items is None:
        PyErr_NoMemory()
        return False
    good = call_with(target, slots, items)
    free(items)
    return good


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
def call_host(task: ptr[Task], target: ptr[FunctionInstance], arguments: ptr[u8]) -> u32:
    """Call a host function.

    Args:
        task: the guest that calls; its ip, sp and instance tell where it is, `top` is above what is live.
        target: the function; its kind is HOST.
        arguments: slots with the arguments, replaced by the results.

    Returns:
        0, or 1 with a Python exception set.
    """
    if Py_EnterRecursiveCall(" in a call from a WebAssembly guest") != 0:
        note_frames(task)
        return 1
    show_fuel(task)
    slots = cast(ptr[u64], arguments)
    good = False
    if target.signature.param_count <= SMALL:
        good = call_with(target, slots, stack(ptr[Object], SMALL + 1))
    else:
        good = call_with_many(target, slots)
    take_fuel(task)
    Py_LeaveRecursiveCall()
    if unlikely(not good):
        note_frames(task)
        return 1
    return 0
