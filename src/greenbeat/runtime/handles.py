"""Handles: Python objects that hold something native of a group, and with it the group.

    ┌ PyObject_HEAD │ owner ─▶ Group │ address ─▶ Memory, Table, global, Instance │ weak references ┐

`Handle` is the base of the classes written in Python (`greenbeat.Table`, `Global`, `Instance`); `MemoryHandle` is a
buffer besides, so that `memoryview(memory)` is the memory itself. A view keeps its handle, the handle its group, and a
memory never moves: a view stays good whatever happens to the instance.
"""

from greenbeat.native import (
    array,
    cast,
    export,
    function,
    i32,
    i64,
    move,
    native,
    offsetof,
    ptr,
    sizeof,
    stack,
    static,
    struct,
    u64,
    void,
)
from greenbeat.runtime.groups import Group
from greenbeat.runtime.hooks import RANGE, hooks, none_object, or_none, take_exception
from greenbeat.runtime.layout import Memory
from greenbeat.runtime.memory import outside
from greenbeat.runtime.pythonapi import (
    BASE_TYPE,
    BF_GETBUFFER,
    HAVE_GC,
    MEMBER_OBJECT,
    MEMBER_SIZE,
    MEMBER_UNSIGNED,
    TP_CLEAR,
    TP_DEALLOC,
    TP_MEMBERS,
    TP_METHODS,
    TP_TRAVERSE,
    Buffer,
    Member,
    Method,
    Object,
    Py_IncRef,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyBytes_FromStringAndSize,
    PyLong_AsLongLong,
    PyObject_CallFunction,
    PyObject_ClearWeakRefs,
    PyObject_GC_UnTrack,
    PyObject_GetBuffer,
    PyType_GenericAlloc,
    Slot,
    drop,
    end_members,
    free_object,
    make_type,
    set_member,
    set_method,
    set_slot,
)


@struct
class Handle:
    """See above. `owner` is null once the garbage collector has cleared the handle."""

    head: Object
    owner: ptr[Group]
    address: u64
    weak_references: ptr[Object]


handle_type = static(ptr[void], name="handle_type")
memory_handle_type = static(ptr[void], name="memory_handle_type")
memory_methods = static(array[Method, 3], name="memory_methods")

READ_DOC = """read($self, offset, size, /)
--

A copy of `size` bytes from `offset` on; IndexError if they are not all in the memory."""
WRITE_DOC = """write($self, offset, data, /)
--

Put the bytes of `data`, any buffer, at `offset`; IndexError if they do not all fit, and then nothing is written."""


@export
def new_handle(type: ptr[void], owner: ptr[Group], address: u64) -> ptr[Object]:
    """A handle of a type made of one of the two base types; owned by the caller, null with MemoryError."""
    made = cast(ptr[Handle], PyType_GenericAlloc(type, 0))
    if made is not None:
        Py_IncRef(cast(ptr[Object], owner))
        made.owner = owner
        made.address = address
    return cast(ptr[Object], made)


@native
def handle_traverse(self: ptr[Handle], visit: function[[ptr[Object], ptr[void]], i32], argument: ptr[void]) -> i32:
    """`tp_traverse`."""
    found = visit(cast(ptr[Object], self.head.type), argument)
    if found == 0 and self.owner is not None:
        found = visit(cast(ptr[Object], self.owner), argument)
    return found


@native
def handle_clear(self: ptr[Handle]) -> i32:
    """`tp_clear`."""
    owner = self.owner
    self.owner = None
    self.address = 0
    drop(cast(ptr[Object], owner))
    return 0


@native
def handle_dealloc(self: ptr[Handle]) -> None:
    """`tp_dealloc`."""
    PyObject_GC_UnTrack(cast(ptr[Object], self))
    if self.weak_references is not None:
        PyObject_ClearWeakRefs(cast(ptr[Object], self))
    handle_clear(self)
    free_object(cast(ptr[Object], self))


@native
def memory_buffer(self: ptr[Handle], view: ptr[void], flags: i32) -> i32:
    """`bf_getbuffer`: the memory as it is now, writable."""
    if self.address == 0:
        return PyBuffer_FillInfo(view, cast(ptr[Object], self), cast(ptr[void], self), 0, 0, flags)
    memory = cast(ptr[Memory], self.address)
    return PyBuffer_FillInfo(view, cast(ptr[Object], self), memory.base, i64(memory.length), 0, flags)


@native(noinline=True)
def out_of_range(self: ptr[Handle], arguments: ptr[ptr[Object]], count: i64, reads: i32) -> ptr[Object]:
    """Say what is wrong with the arguments of `read` or `write`; returns null."""
    cause = take_exception()
    first = none_object[0]
    second = none_object[0]
    if count == 2:
        first = arguments[0]
        second = arguments[1]
    drop(PyObject_CallFunction(hooks[RANGE], "OOOiiO", self, first, second, i32(count), reads, or_none(cause)))
    drop(cause)
    return cast(ptr[Object], 0)


@native
def memory_read(self: ptr[Handle], arguments: ptr[ptr[Object]], count: i64) -> ptr[Object]:
    """`Memory.read(offset, size)`."""
    if count == 2 and self.address != 0:
        memory = cast(ptr[Memory], self.address)
        offset = PyLong_AsLongLong(arguments[0])
        # After an error nothing else may be asked of Python.
        size = PyLong_AsLongLong(arguments[1]) if offset >= 0 else i64(-1)
        if offset >= 0 and size >= 0 and not outside(u64(offset), u64(size), memory.length):
            return PyBytes_FromStringAndSize(memory.base + offset, size)
    return out_of_range(self, arguments, count, 1)


@native
def memory_write(self: ptr[Handle], arguments: ptr[ptr[Object]], count: i64) -> ptr[Object]:
    """`Memory.write(offset, data)`. The data may be a part of the memory itself."""
    if count == 2 and self.address != 0:
        offset = PyLong_AsLongLong(arguments[0])
        data = stack(Buffer)
        if offset >= 0 and PyObject_GetBuffer(arguments[1], data, 0) == 0:
            memory = cast(ptr[Memory], self.address)
            fits = not outside(u64(offset), u64(data.size), memory.length)
            if fits:
                move(memory.base + offset, data.data, data.size)
            PyBuffer_Release(data)
            if fits:
                Py_IncRef(none_object[0])
                return none_object[0]
    return out_of_range(self, arguments, count, 0)


@native(shared=True)
def create_handle_types() -> bool:
    """Make the two types; False with an exception set."""
    members = stack(Member, 4)
    set_member(members, "__weaklistoffset__", MEMBER_SIZE, offsetof(Handle, "weak_references"))
    set_member(members + 1, "_owner", MEMBER_OBJECT, offsetof(Handle, "owner"))
    set_member(members + 2, "_address", MEMBER_UNSIGNED, offsetof(Handle, "address"))
    end_members(members + 3)
    slots = stack(Slot, 7)
    set_slot(slots, TP_TRAVERSE, handle_traverse)
    set_slot(slots + 1, TP_CLEAR, handle_clear)
    set_slot(slots + 2, TP_DEALLOC, handle_dealloc)
    set_slot(slots + 3, TP_MEMBERS, members)
    set_slot(slots + 4, 0, None)
    handle_type[0] = make_type("greenbeat.runtime.Handle", sizeof(Handle), HAVE_GC | BASE_TYPE, slots)
    set_slot(slots + 4, BF_GETBUFFER, memory_buffer)
    set_method(memory_methods, "read", memory_read, READ_DOC)
    set_method(memory_methods + 1, "write", memory_write, WRITE_DOC)
    set_slot(slots + 5, TP_METHODS, memory_methods)
    set_slot(slots + 6, 0, None)
    memory_handle_type[0] = make_type("greenbeat.runtime.MemoryHandle", sizeof(Handle), HAVE_GC | BASE_TYPE, slots)
    return handle_type[0] is not None and memory_handle_type[0] is not None
