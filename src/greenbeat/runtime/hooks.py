"""Python functions that native code calls when something needs words: errors, notes, names.

They are few and off the hot path; `api/errorhooks.py` writes them and registers them when the API is imported. Each
gets addresses as integers and objects as they are. One that builds an error raises it; native code then passes it on.
"""

from greenbeat.native import array, cast, export, inline, native, ptr, stack, static, u32, void
from greenbeat.runtime.pythonapi import (
    Object,
    Py_DecRef,
    Py_IncRef,
    PyErr_Fetch,
    PyErr_NormalizeException,
    PyErr_Restore,
    PyException_GetTraceback,
    PyException_SetTraceback,
)

# The hooks, and what they are called with.
(
    ARGUMENT,  # function, position, value, cause: an argument does not fit
    ARGUMENT_COUNT,  # function, count given
    KEYWORDS,  # function
    STOPPED,  # function's address, task's address, status: the guest did not finish
    EXHAUSTED,  # resource, address of the task whose guest it stops, or 0
    BUSY,  # function: its instance runs in another thread
    DROPPED,  # function: its instance is closed or gone
    RESULT,  # FunctionInstance's address, position, value, cause: a host function's result does not fit
    NOTE,  # exception, task's address: tell which guest frames it went through
    NAME,  # FunctionInstance's address -> str
    RANGE,  # memory, offset, size or data, their number, whether it is read, cause: they are no numbers, or outside
    AWAIT,  # FunctionInstance's address, value: a host function returned an awaitable where nobody awaits it
) = range(12)
HOOKS = 12

# Resources of EXHAUSTED.
FUEL, TIME, MEMORY, DEPTH = range(4)

hooks = static(array[ptr[Object], HOOKS], name="hooks")
# Python's None, whose address C programs know as a variable and not through a function.
none_object = static(ptr[Object], name="none_object")
# The type of coroutines.
coroutine_type = static(ptr[void], name="coroutine_type")


@export
def set_hook(number: u32, callable: ptr[Object]) -> None:
    """Register a hook; it is kept for good."""
    Py_IncRef(callable)
    hooks[number] = callable


@export
def set_none(none: ptr[Object]) -> None:
    """Tell native code where None is."""
    none_object[0] = none


@export
def set_coroutine_type(coroutine: ptr[void]) -> None:
    """Tell native code what the type of coroutines is."""
    coroutine_type[0] = coroutine


@native(shared=True, noinline=True)
def take_exception() -> ptr[Object]:
    """The exception that is set, cleared and owned by the caller; null if there is none."""
    room = stack(ptr[Object], 3)
    room[0] = None
    room[1] = None
    room[2] = None
    PyErr_Fetch(room, room + 1, room + 2)
    if room[0] is None:
        return cast(ptr[Object], 0)
    PyErr_NormalizeException(room, room + 1, room + 2)
    if room[2] is not None:
        PyException_SetTraceback(room[1], room[2])
        Py_DecRef(room[2])
    Py_DecRef(room[0])
    return room[1]


@native(shared=True)
def put_exception(exception: ptr[Object]) -> None:
    """Set an exception that `take_exception` took; the reference is used up."""
    kind = exception.type
    Py_IncRef(kind)
    PyErr_Restore(kind, exception, PyException_GetTraceback(exception))


@inline
def or_none(item: ptr[Object]) -> ptr[Object]:
    """The object (borrowed), or None in place of null."""
    return item if item is not None else none_object[0]
