"""CPython's C API as native code sees it: what of it is used, by name.

Only functions are used, and of objects only the two words that every object begins with, so that one compiled engine
serves every CPython from 3.11 on. Functions return null (or -1) with an exception set, as in C; "new" results are owned
by the caller.

    object ─▶ │ reference count │ type │ what its type adds ...
"""

# ruff: noqa: D103  The C functions are documented with CPython.

from greenbeat.native import (
    array,
    cast,
    extern,
    f64,
    function,
    i32,
    i64,
    inline,
    native,
    ptr,
    stack,
    struct,
    u8,
    u32,
    u64,
    void,
)


@struct
class Object:
    """The head of every Python object (`PyObject_HEAD`)."""

    reference_count: i64
    type: ptr[void]


@struct
class Slot:
    """`PyType_Slot`: a number from `typeslots.h` and what it is for the type."""

    number: i32
    value: ptr[void]


@struct
class Spec:
    """`PyType_Spec`: what `PyType_FromSpec` makes a type of."""

    name: ptr[u8]
    size: i32
    item_size: i32
    flags: u32
    slots: ptr[Slot]


@struct
class Member:
    """`PyMemberDef`: a field of an object as an attribute."""

    name: ptr[u8]
    type: i32
    offset: i64
    flags: i32
    doc: ptr[u8]


@struct
class Method:
    """`PyMethodDef`: a native function as a method. It must live as long as the type."""

    name: ptr[u8]
    function: ptr[void]
    flags: i32
    doc: ptr[u8]


@struct
class Buffer:
    """`Py_buffer`: bytes that an object lends; what follows the length is not looked at."""

    data: ptr[u8]
    owner: ptr[Object]
    size: i64
    rest: array[u64, 8]


# Numbers of `typeslots.h`, `structmember.h` and `object.h`; they are part of the stable ABI.
BF_GETBUFFER, TP_CALL, TP_CLEAR, TP_DEALLOC = 1, 50, 51, 52
TP_METHODS, TP_TRAVERSE, TP_MEMBERS, TP_FREE, AM_AWAIT = 64, 71, 72, 74, 77
MEMBER_OBJECT, MEMBER_UNSIGNED_INT, MEMBER_UNSIGNED, MEMBER_SIZE = 6, 11, 18, 19
MEMBER_READ_ONLY = 1
METHOD_FAST = 0x80
BASE_TYPE, HAVE_GC, HAVE_VECTORCALL, DEFAULT_FLAGS = 1 << 10, 1 << 14, 1 << 11, 1 << 18
NO_INSTANTIATION = 1 << 7
# The top bit of a vectorcall's count: the callee may use the word before the arguments.
VECTORCALL_ROOM = 1 << 63


@extern
def Py_IncRef(item: ptr[Object]) -> None: ...


@extern
def Py_DecRef(item: ptr[Object]) -> None: ...


@extern
def Py_EnterRecursiveCall(where: ptr[u8]) -> i32: ...


@extern
def Py_LeaveRecursiveCall() -> None: ...


@extern
def PyErr_Occurred() -> ptr[Object]: ...


@extern
def PyErr_Clear() -> None: ...


@extern
def PyErr_CheckSignals() -> i32: ...


@extern
def PyErr_NoMemory() -> ptr[Object]: ...


@extern
def PyErr_SetObject(kind: ptr[Object], value: ptr[Object]) -> None: ...


@extern
def PyErr_Fetch(kind: ptr[ptr[Object]], value: ptr[ptr[Object]], traceback: ptr[ptr[Object]]) -> None: ...


@extern
def PyErr_NormalizeException(kind: ptr[ptr[Object]], value: ptr[ptr[Object]], traceback: ptr[ptr[Object]]) -> None: ...


@extern
def PyErr_Restore(kind: ptr[Object], value: ptr[Object], traceback: ptr[Object]) -> None: ...


@extern
def PyException_GetTraceback(value: ptr[Object]) -> ptr[Object]: ...


@extern
def PyException_SetTraceback(value: ptr[Object], traceback: ptr[Object]) -> i32: ...


@extern
def PyLong_AsLongLong(item: ptr[Object]) -> i64: ...


@extern
def PyLong_AsUnsignedLongLong(item: ptr[Object]) -> u64: ...


@extern
def PyLong_FromLongLong(value: i64) -> ptr[Object]: ...


@extern
def PyNumber_Index(item: ptr[Object]) -> ptr[Object]: ...


@extern
def PyFloat_AsDouble(item: ptr[Object]) -> f64: ...


@extern
def PyFloat_FromDouble(value: f64) -> ptr[Object]: ...


@extern
def PyBytes_FromStringAndSize(data: ptr[u8], size: i64) -> ptr[Object]: ...


@extern
def PyTuple_New(size: i64) -> ptr[Object]: ...


@extern
def PyTuple_Size(item: ptr[Object]) -> i64: ...


@extern
def PyTuple_GetItem(item: ptr[Object], index: i64) -> ptr[Object]: ...


@extern
def PyTuple_SetItem(item: ptr[Object], index: i64, value: ptr[Object]) -> i32: ...


@extern
def PySequence_Tuple(item: ptr[Object]) -> ptr[Object]: ...


@extern
def PyObject_Vectorcall(
    callee: ptr[Object], arguments: ptr[ptr[Object]], count: u64, keywords: ptr[Object]
) -> ptr[Object]: ...


@extern(variadic=True)
def PyObject_CallFunction(callee: ptr[Object], form: ptr[u8]) -> ptr[Object]: ...


@extern
def PyVectorcall_Call(callee: ptr[Object], arguments: ptr[Object], keywords: ptr[Object]) -> ptr[Object]: ...


@extern
def PyObject_GetBuffer(item: ptr[Object], view: ptr[Buffer], flags: i32) -> i32: ...


@extern
def PyBuffer_FillInfo(
    view: ptr[void], owner: ptr[Object], data: ptr[void], size: i64, readonly: i32, flags: i32
) -> i32: ...


@extern
def PyBuffer_Release(view: ptr[Buffer]) -> None: ...


@extern
def PyObject_ClearWeakRefs(item: ptr[Object]) -> None: ...


@extern
def PyObject_GC_UnTrack(item: ptr[Object]) -> None: ...


@extern
def PyType_FromSpec(spec: ptr[Spec]) -> ptr[Object]: ...


@extern
def PyType_GenericAlloc(kind: ptr[void], count: i64) -> ptr[Object]: ...


@extern
def PyType_GetSlot(kind: ptr[void], number: i32) -> ptr[void]: ...


@extern
def PyEval_SaveThread() -> ptr[void]: ...


@extern
def PyEval_RestoreThread(state: ptr[void]) -> None: ...


@inline
def drop(item: ptr[Object]) -> None:
    """Give up a reference that may be null."""
    if item is not None:
        Py_DecRef(item)


@native
def free_object(item: ptr[Object]) -> None:
    """The end of a `tp_dealloc`: give the object's memory back, and its reference to its type."""
    kind = item.type
    release = cast(function[[ptr[void]], None], PyType_GetSlot(kind, TP_FREE))
    release(item)
    Py_DecRef(kind)


@inline
def set_slot(slot: ptr[Slot], number: i32, value: ptr[void]) -> None:
    """Fill in a type's slot; number 0 ends the list."""
    slot.number = number
    slot.value = value


@inline
def set_member(member: ptr[Member], name: ptr[u8], kind: i32, offset: i64) -> None:
    """Describe an attribute that is a field, for reading only."""
    member.name = name
    member.type = kind
    member.offset = offset
    member.flags = MEMBER_READ_ONLY
    member.doc = None


@inline
def set_method(method: ptr[Method], name: ptr[u8], called: ptr[void], doc: ptr[u8]) -> None:
    """Describe a method that takes positional arguments only."""
    method.name = name
    method.function = called
    method.flags = METHOD_FAST
    method.doc = doc


@inline
def end_members(member: ptr[Member]) -> None:
    """The end of a list of members."""
    member.name = None


@native
def make_type(name: ptr[u8], size: i32, flags: u32, slots: ptr[Slot]) -> ptr[void]:
    """A heap type; null with an exception set."""
    spec = stack(Spec)
    spec.name = name
    spec.size = size
    spec.item_size = 0
    spec.flags = flags | DEFAULT_FLAGS
    spec.slots = slots
    return PyType_FromSpec(spec)
