"""Tables: arrays of references that may grow, and so may move.

    Table ── elements ──────────────────────▼
              │ array before this │ length │ 8 bytes each: a FunctionInstance, a Python object, or 0 │ room │
                                                                                         length ──┘      │
                                                                                         capacity ───────┘

New places hold a value that the guest gives. Threads may use a table at once, without the GIL: an array that was
replaced is kept as long as the table, and each has its own length, so that whoever loads `elements` once stays inside
of it. What is written to the old array while it is being replaced may be lost.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    copy,
    move,
    native,
    ptr,
    sizeof,
    u32,
    u64,
    unlikely,
)
from greenbeat.runtime.arena import calloc, free
from greenbeat.runtime.layout import SLOT, TRAP_NONE, TRAP_TABLE, Table, TableType
from greenbeat.runtime.memory import GROWTH_FAILED, growing, outside
from greenbeat.tasks.locks import lock, unlock

# A table that grows by one takes this many elements at first.
FIRST_CAPACITY = 16
LARGEST_CAPACITY = 1 << 40
# Words in front of the elements.
HEADER = 2


@native
def new_array(capacity: u64, before: ptr[u64]) -> ptr[u64]:
    """Elements of 0, of which there are none yet; null when there is no memory."""
    # Zero pages from the system cost nothing until they are touched.
    array = cast(ptr[u64], calloc(capacity + HEADER, SLOT))
    if array is None:
        return cast(ptr[u64], 0)
    array[0] = cast(u64, before)
    return array + HEADER


@native
def reserve_elements(table: ptr[Table], length: u64) -> bool:
    """Make room for `length` elements; False when there is no memory."""
    if length <= table.capacity:
        return True
    capacity = table.capacity * 2
    if capacity < FIRST_CAPACITY:
        capacity = FIRST_CAPACITY
    if capacity < length:
        capacity = length
    if capacity > LARGEST_CAPACITY:
        return False
    elements = new_array(capacity, table.elements)
    if elements is None:
        return False
    copy(elements, table.elements, table.length * SLOT)
    elements[-1] = table.length
    atomic_store(addressof(table.elements), elements, "release")
    table.capacity = capacity
    return True


@native
def set_length(table: ptr[Table], length: u64) -> None:
    """Let the elements be used: they are in place."""
    atomic_store(table.elements - 1, length, "release")
    table.length = length


@native(shared=True)
def new_table(type: ptr[TableType], limit: u64, value: u64) -> ptr[Table]:
    """A table of its minimum size, all elements `value`; null when `limit` or the system does not allow it."""
    if type.minimum > limit or type.minimum > LARGEST_CAPACITY:
        return cast(ptr[Table], 0)
    table = cast(ptr[Table], calloc(1, sizeof(Table)))
    if table is None:
        return cast(ptr[Table], 0)
    table.kind = type.kind
    table.is_64 = type.is_64
    table.maximum = type.maximum
    table.limit = limit
    table.elements = new_array(type.minimum, cast(ptr[u64], 0))
    if table.elements is None:
        free(table)
        return cast(ptr[Table], 0)
    table.capacity = type.minimum
    if value != 0:
        for i in range(type.minimum):
            table.elements[i] = value
    set_length(table, type.minimum)
    return table


@native(shared=True)
def free_table(table: ptr[Table]) -> None:
    """Give a table back. Nobody may use it any more."""
    elements = table.elements
    while elements is not None:
        array = elements - HEADER
        elements = cast(ptr[u64], array[0])
        free(array)
    free(table)


@native(shared=True)
def grow_table(table: ptr[Table], count: u64, value: u64) -> u64:
    """table.grow: the length before, or `GROWTH_FAILED`."""
    lock(growing)
    before = table.length
    result = before
    if count > table.maximum - before or before + count > table.limit or not reserve_elements(table, before + count):
        result = GROWTH_FAILED
    else:
        for i in range(before, before + count):
            table.elements[i] = value
        set_length(table, before + count)
    unlock(growing)
    return result


@native(shared=True)
def table_size(table: ptr[Table]) -> u64:
    """table.size."""
    return table.length


@native(shared=True)
def table_get(table: ptr[Table], index: u64, result: ptr[u64]) -> u32:
    """table.get into `result`; a trap's number or 0."""
    elements = atomic_load(addressof(table.elements), "relaxed")
    if unlikely(index >= elements[-1]):
        return TRAP_TABLE
    result[0] = elements[index]
    return TRAP_NONE


@native(shared=True)
def table_set(table: ptr[Table], index: u64, value: u64) -> u32:
    """table.set; a trap's number or 0."""
    elements = atomic_load(addressof(table.elements), "relaxed")
    if unlikely(index >= elements[-1]):
        return TRAP_TABLE
    atomic_store(elements + index, value, "release")
    return TRAP_NONE


@native(shared=True)
def table_fill(table: ptr[Table], start: u64, value: u64, count: u64) -> u32:
    """table.fill; a trap's number or 0."""
    elements = atomic_load(addressof(table.elements), "relaxed")
    if unlikely(outside(start, count, elements[-1])):
        return TRAP_TABLE
    for i in range(start, start + count):
        elements[i] = value
    return TRAP_NONE


@native(shared=True)
def table_copy(to: ptr[Table], origin: ptr[Table], target: u64, source: u64, count: u64) -> u32:
    """table.copy; a trap's number or 0. The two may be one table and overlap."""
    written = atomic_load(addressof(to.elements), "relaxed")
    read = atomic_load(addressof(origin.elements), "relaxed")
    if unlikely(outside(target, count, written[-1]) or outside(source, count, read[-1])):
        return TRAP_TABLE
    move(written + target, read + source, count * SLOT)
    return TRAP_NONE
