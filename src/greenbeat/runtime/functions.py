"""The Python object of a function, as native code sees it: what it holds, and how a reference becomes one.

    ┌ PyObject_HEAD │ vectorcall │ target ─▶ FunctionInstance │ owner ─▶ Group │ name │ weak references ┐

A function has one such object at a time, so that identity means what one expects: the FunctionInstance points to it
without owning it, and the object takes that pointer away when it goes.
"""

from greenbeat.native import (
    addressof,
    cast,
    export,
    function,
    i32,
    inline,
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
from greenbeat.runtime.groups import Group, HostFunction, group_of
from greenbeat.runtime.hooks import NAME, hooks
from greenbeat.runtime.layout import GUEST, FunctionInstance
from greenbeat.runtime.pythonapi import (
    HAVE_GC,
    HAVE_VECTORCALL,
    MEMBER_OBJECT,
    MEMBER_SIZE,
    MEMBER_UNSIGNED,
    TP_CALL,
    TP_CLEAR,
    TP_DEALLOC,
    TP_MEMBERS,
    TP_TRAVERSE,
    Member,
    Object,
    Py_DecRef,
    Py_IncRef,
    PyObject_CallFunction,
    PyObject_ClearWeakRefs,
    PyObject_GC_UnTrack,
    PyType_GenericAlloc,
    PyVectorcall_Call,
    Slot,
    drop,
    end_members,
    free_object,
    make_type,
    set_member,
    set_slot,
)


@struct
class FunctionObject:
    """A `greenbeat.Function`. `target` and `owner` are null once the garbage collector has cleared it."""

    head: Object
    vectorcall: ptr[void]
    target: ptr[FunctionInstance]
    owner: ptr[Group]
    name: ptr[Object]
    weak_references: ptr[Object]


function_type = static(ptr[void], name="function_type")
# The address of `call_function`.
call_entry = static(ptr[void], name="call_entry")


@inline
def wrapper_place(target: ptr[FunctionInstance]) -> ptr[ptr[void]]:
    """Where a function's object is remembered."""
    if target.kind == GUEST:
        return cast(ptr[ptr[void]], addressof(target.python))
    return cast(ptr[ptr[void]], addressof(cast(ptr[HostFunction], target).wrapper))


@native
def named_wrapper(target: ptr[FunctionInstance], name: ptr[Object]) -> ptr[Object]:
    """Make a function's object; null with MemoryError. The reference to the name is used up."""
    made = cast(ptr[FunctionObject], PyType_GenericAlloc(function_type[0], 0))
    if made is None:
        Py_DecRef(name)
        return cast(ptr[Object], 0)
    made.vectorcall = call_entry[0]
    made.target = target
    made.owner = group_of(target)
    made.name = name
    Py_IncRef(cast(ptr[Object], made.owner))
    wrapper_place(target)[0] = cast(ptr[void], made)
    return cast(ptr[Object], made)


@native(noinline=True)
def new_wrapper(target: ptr[FunctionInstance]) -> ptr[Object]:
    """Make the object of a function whose name has to be found out; null with an exception."""
    name = PyObject_CallFunction(hooks[NAME], "K", cast(u64, target))
    if name is None:
        return cast(ptr[Object], 0)
    # Another thread may have had its turn in the hook, and made one.
    known = cast(ptr[Object], wrapper_place(target)[0])
    if known is not None:
        Py_DecRef(name)
        Py_IncRef(known)
        return known
    return named_wrapper(target, name)


@export
def wrap_function(target: ptr[FunctionInstance]) -> ptr[Object]:
    """The Function object of a function, owned by the caller; null with an exception."""
    known = cast(ptr[Object], wrapper_place(target)[0])
    if known is not None:
        Py_IncRef(known)
        return known
    return new_wrapper(target)


@native
def forget_target(self: ptr[FunctionObject]) -> None:
    """Let a Function object's function go."""
    target = self.target
    if target is not None:
        place = wrapper_place(target)
        if cast(u64, place[0]) == cast(u64, self):
            place[0] = cast(ptr[void], 0)
        self.target = None
    owner = self.owner
    self.owner = None
    drop(cast(ptr[Object], owner))


@native
def function_traverse(
    self: ptr[FunctionObject], visit: function[[ptr[Object], ptr[void]], i32], argument: ptr[void]
) -> i32:
    """`tp_traverse`."""
    found = visit(cast(ptr[Object], self.head.type), argument)
    if found == 0 and self.owner is not None:
        found = visit(cast(ptr[Object], self.owner), argument)
    return found


@native
def function_clear(self: ptr[FunctionObject]) -> i32:
    """`tp_clear`: the object is garbage; a call that still comes gets an exception."""
    forget_target(self)
    return 0


@native
def function_dealloc(self: ptr[FunctionObject]) -> None:
    """`tp_dealloc`."""
    PyObject_GC_UnTrack(cast(ptr[Object], self))
    if self.weak_references is not None:
        PyObject_ClearWeakRefs(cast(ptr[Object], self))
    forget_target(self)
    drop(self.name)
    free_object(cast(ptr[Object], self))


@native(shared=True)
def create_function_type(call: ptr[void]) -> bool:
    """Make the type; False with an exception set."""
    call_entry[0] = call
    members = stack(Member, 6)
    set_member(members, "__vectorcalloffset__", MEMBER_SIZE, offsetof(FunctionObject, "vectorcall"))
    set_member(members + 1, "__weaklistoffset__", MEMBER_SIZE, offsetof(FunctionObject, "weak_references"))
    set_member(members + 2, "__name__", MEMBER_OBJECT, offsetof(FunctionObject, "name"))
    set_member(members + 3, "_address", MEMBER_UNSIGNED, offsetof(FunctionObject, "target"))
    set_member(members + 4, "_owner", MEMBER_OBJECT, offsetof(FunctionObject, "owner"))
    end_members(members + 5)
    slots = stack(Slot, 6)
    set_slot(slots, TP_CALL, PyVectorcall_Call)
    set_slot(slots + 1, TP_TRAVERSE, function_traverse)
    set_slot(slots + 2, TP_CLEAR, function_clear)
    set_slot(slots + 3, TP_DEALLOC, function_dealloc)
    set_slot(slots + 4, TP_MEMBERS, members)
    set_slot(slots + 5, 0, None)
    function_type[0] = make_type("greenbeat.Function", sizeof(FunctionObject), HAVE_GC | HAVE_VECTORCALL, slots)
    return function_type[0] is not None
