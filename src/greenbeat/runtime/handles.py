"""Handles: Python objects that hold something native of a group, and with it the group.

    ┌ PyObject_HEAD │ owner ─▶ Group │ address ─▶ Memory, Table, global, Instance │ weak references ┐

`Handle` is the base of the classes written in Python (`greenbeat.Table`, `Global`, `Instance`); `MemoryHandle` is a
buffer besides, so that `memoryview(memory)` is the memory itself. A view keeps its handle, the handle its group, and a
memory never moves: a view stays good whatever happens to the instance.
"""

from greenbeat.native import (
    cast,
    export,
    function,
    i32,
    i64,
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
from greenbeat.runtime.layout import Memory
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
    TP_TRAVERSE,
    Member,
    Object,
    Py_IncRef,
    PyBuffer_FillInfo,
    PyObject_ClearWeakRefs,
    PyObject_GC_UnTrack,
    PyType_GenericAlloc,
    Slot,
    drop,
    end_members,
    free_object,
    make_type,
    set_member,
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


@native(shared=True)
def create_handle_types() -> bool:
    """Make the two types; False with an exception set."""
    members = stack(Member, 4)
    set_member(members, "__weaklistoffset__", MEMBER_SIZE, offsetof(Handle, "weak_references"))
    set_member(members + 1, "_owner", MEMBER_OBJECT, offsetof(Handle, "owner"))
    set_member(members + 2, "_address", MEMBER_UNSIGNED, offsetof(Handle, "address"))
    end_members(members + 3)
    slots = stack(Slot, 6)
    set_slot(slots, TP_TRAVERSE, handle_traverse)
    set_slot(slots + 1, TP_CLEAR, handle_clear)
    set_slot(slots + 2, TP_DEALLOC, handle_dealloc)
    set_slot(slots + 3, TP_MEMBERS, members)
    set_slot(slots + 4, 0, None)
    handle_type[0] = make_type("greenbeat.runtime.Handle", sizeof(Handle), HAVE_GC | BASE_TYPE, slots)
    set_slot(slots + 4, BF_GETBUFFER, memory_buffer)
    set_slot(slots + 5, 0, None)
    memory_handle_type[0] = make_type("greenbeat.runtime.MemoryHandle", sizeof(Handle), HAVE_GC | BASE_TYPE, slots)
    return handle_type[0] is not None and memory_handle_type[0] is not None
