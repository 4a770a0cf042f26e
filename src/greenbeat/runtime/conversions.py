"""Values between Python and slots.

    type        from Python                                  in the slot                  to Python
    i32, i64    an int, or what has __index__, of either     the bits, zero-extended      int, signed
                sign's range
    f32, f64    a float, an int, or what has __float__       the bits                     float
    externref   any object, None for null                    its address, or 0            the same object
    funcref     a Function, None for null                    its FunctionInstance, or 0   the same Function

An object that goes in is retained by the group, a function of another group merges the two (see `groups.py`).
"""

from greenbeat.native import (
    bitcast,
    cast,
    export,
    f32,
    f64,
    i32,
    i64,
    inline,
    likely,
    native,
    ptr,
    stack,
    u32,
    u64,
    unlikely,
)
from greenbeat.runtime.functions import FunctionObject, function_type, wrap_function
from greenbeat.runtime.groups import Group, merge_groups, retain
from greenbeat.runtime.hooks import none_object
from greenbeat.runtime.layout import FunctionInstance, Table
from greenbeat.runtime.outcomes import MISFIT
from greenbeat.runtime.pythonapi import (
    Object,
    Py_DecRef,
    Py_IncRef,
    PyErr_Clear,
    PyErr_Occurred,
    PyFloat_AsDouble,
    PyFloat_FromDouble,
    PyLong_AsLongLong,
    PyLong_AsUnsignedLongLong,
    PyLong_FromLongLong,
    PyNumber_Index,
)
from greenbeat.runtime.table import grow_table
from greenbeat.wasm.valuetypes import (
    ABSTRACT,
    EXN,
    F32,
    F64,
    FUNC,
    HEAP_MASK,
    I32,
    I64,
    NULLABLE,
    REFERENCE,
    holds_objects,
)


@native
def large_i64(item: ptr[Object], slot: ptr[u64]) -> bool:
    """An int beyond the signed range, if it is in the unsigned one; the exception that it caused is set."""
    PyErr_Clear()
    number = PyNumber_Index(item)
    if number is None:
        return False
    value = PyLong_AsUnsignedLongLong(number)
    Py_DecRef(number)
    if value == ~u64(0) and PyErr_Occurred() is not None:
        return False
    slot[0] = value
    return True


@native
def reference_to_slot(kind: u32, item: ptr[Object], slot: ptr[u64], group: ptr[Group]) -> bool:
    """A reference; False if the object is none of this type, or with an exception set."""
    if item == none_object[0]:
        slot[0] = 0
        return kind & NULLABLE != 0
    if kind & (ABSTRACT | HEAP_MASK) == ABSTRACT | EXN:
        return False
    if holds_objects(kind):
        slot[0] = cast(u64, item)
        return retain(group, item)
    if cast(u64, item.type) != cast(u64, function_type[0]):
        return False
    passed = cast(ptr[FunctionObject], item)
    if passed.target is None:
        return False
    if kind & ABSTRACT == 0:
        if passed.target.signature.number != kind & HEAP_MASK:
            return False
    elif kind & HEAP_MASK != FUNC:
        return False
    slot[0] = cast(u64, passed.target)
    return merge_groups(group, passed.owner) != 0


@inline
def to_slot(kind: u32, item: ptr[Object], slot: ptr[u64], group: ptr[Group]) -> bool:
    """Convert an object for a guest; False if it does not fit, perhaps with an exception set."""
    if likely(kind == I32):
        number = PyLong_AsLongLong(item)
        slot[0] = u64(u32(number))
        if likely(number != -1):
            return number >= -(1 << 31) and number < 1 << 32
        return PyErr_Occurred() is None
    return other_to_slot(kind, item, slot, group)


@native(noinline=True)
def other_to_slot(kind: u32, item: ptr[Object], slot: ptr[u64], group: ptr[Group]) -> bool:
    """`to_slot` for all other types."""
    if kind == F64:
        value = PyFloat_AsDouble(item)
        slot[0] = bitcast(u64, value)
        return likely(value != -1.0) or PyErr_Occurred() is None
    if kind == I64:
        number = PyLong_AsLongLong(item)
        slot[0] = u64(number)
        if unlikely(number == -1) and PyErr_Occurred() is not None:
            return large_i64(item, slot)
        return True
    if kind == F32:
        value = PyFloat_AsDouble(item)
        slot[0] = u64(bitcast(u32, f32(value)))
        return likely(value != -1.0) or PyErr_Occurred() is None
    return kind >= REFERENCE and reference_to_slot(kind, item, slot, group)


@inline
def from_slot(kind: u32, slot: ptr[u64]) -> ptr[Object]:
    """A guest's value as an object, owned by the caller; null with an exception set."""
    if likely(kind == I32):
        return PyLong_FromLongLong(i64(i32(slot[0])))
    return other_from_slot(kind, slot)


@native(noinline=True)
def other_from_slot(kind: u32, slot: ptr[u64]) -> ptr[Object]:
    """`from_slot` for all other types."""
    word = slot[0]
    if kind == F64:
        return PyFloat_FromDouble(bitcast(f64, word))
    if kind == I64:
        return PyLong_FromLongLong(i64(word))
    if kind == F32:
        return PyFloat_FromDouble(f64(bitcast(f32, u32(word))))
    found = none_object[0]
    if word != 0 and kind >= REFERENCE:
        if not holds_objects(kind):
            return wrap_function(cast(ptr[FunctionInstance], word))
        found = cast(ptr[Object], word)
    Py_IncRef(found)
    return found


@export
def read_value(kind: u32, place: ptr[u64]) -> ptr[Object]:
    """What a global or a table's element holds, owned by the caller; null with an exception set."""
    return from_slot(kind, place)


@export
def write_value(kind: u32, item: ptr[Object], place: ptr[u64], group: ptr[Group]) -> u32:
    """Put an object into a global; 0 if it does not fit, perhaps with an exception set."""
    room = stack(u64, 1)
    if not to_slot(kind, item, room, group):
        return 0
    place[0] = room[0]
    return 1


@export
def read_element(table: ptr[Table], index: u64) -> ptr[Object]:
    """What an element of a table holds; the index is in range. As `read_value`."""
    return from_slot(table.kind, table.elements + index)


@export
def grow_table_by(table: ptr[Table], count: u64, item: ptr[Object], group: ptr[Group]) -> u64:
    """Add elements that hold an object.

    Returns:
        The length before, GROWTH_FAILED, or MISFIT if the object does not fit, perhaps with an exception set.
    """
    room = stack(u64, 1)
    if not to_slot(table.kind, item, room, group):
        return MISFIT
    return grow_table(table, count, room[0])


@export
def write_element(table: ptr[Table], index: u64, item: ptr[Object], group: ptr[Group]) -> u32:
    """Put an object into a table; 0 if it does not fit, perhaps with an exception set. The index is in range."""
    room = stack(u64, 1)
    if not to_slot(table.kind, item, room, group):
        return 0
    # Tables move when they grow, and the conversion may have run any Python code: this is the place only now.
    table.elements[index] = room[0]
    return 1
