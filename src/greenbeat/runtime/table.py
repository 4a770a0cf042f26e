"""Tables: arrays of references that may grow, and so may move.

    Table ── elements ──▶ │ 8 bytes each: a FunctionInstance, a Python object, or 0 │ room │
                                                                          length ──┘      │
                                                                          capacity ───────┘

New places hold a value that the guest gives.
"""

from greenbeat.native import cast, move, native, ptr, sizeof, u32, u64, unlikely
from greenbeat.runtime.arena import calloc, free
from greenbeat.runtime.layout import SLOT, TRAP_NONE, TRAP_TABLE, Table, TableType
from greenbeat.runtime.memory import GROWTH_FAILED, outside
from greenbeat.runtime.system import realloc

# A table that grows by one takes this many elements at first.
FIRST_CAPACITY = 16


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
    if capacity > (u64(1) << 40):
        return False
    elements = cast(ptr[u64], realloc(table.elements, capacity * SLOT))
    if elements is None:
        return False
    table.elements = elements
    table.capacity = capacity
    return True


@native(shared=True)
def new_table(type: ptr[TableType], limit: u64, value: u64) -> ptr[Table]:
    """A table of its minimum size, all elements `value`; null when `limit` or the system does not allow it."""
    if type.minimum > limit:
        return cast(ptr[Table], 0)
    table = cast(ptr[Table], calloc(1, sizeof(Table)))
    if table is None:
        return cast(ptr[Table], 0)
    table.kind = type.kind
    table.is_64 = type.is_64
    table.maximum = type.maximum
    table.limit = limit
    if value == 0 and type.minimum != 0:
        # Zero pages from the system cost nothing until they are touched.
        table.elements = cast(ptr[u64], calloc(type.minimum, SLOT))
        table.capacity = type.minimum
    if table.elements is None and not reserve_elements(table, type.minimum):
        free(table)
        return cast(ptr[Table], 0)
    table.length = type.minimum
    if value != 0:
        for i in range(table.length):
            table.elements[i] = value
    return table


@native(shared=True)
def free_table(table: ptr[Table]) -> None:
    """Give a table back. Nobody may use it any more."""
    free(table.elements)
    free(table)


@native(shared=True)
def grow_table(table: ptr[Table], count: u64, value: u64) -> u64:
    """table.grow: the length before, or `GROWTH_FAILED`."""
    before = table.length
    if count > table.maximum - before or before + count > table.limit:
        return GROWTH_FAILED
    if not reserve_elements(table, before + count):
        return GROWTH_FAILED
    for i in range(before, before + count):
        table.elements[i] = value
    table.length = before + count
    return before


@native(shared=True)
def table_size(table: ptr[Table]) -> u64:
    """table.size."""
    return table.length


@native(shared=True)
def table_get(table: ptr[Table], index: u64, result: ptr[u64]) -> u32:
    """table.get into `result`; a trap's number or 0."""
    if unlikely(index >= table.length):
        return TRAP_TABLE
    result[0] = table.elements[index]
    return TRAP_NONE


@native(shared=True)
def table_set(table: ptr[Table], index: u64, value: u64) -> u32:
    """table.set; a trap's number or 0."""
    if unlikely(index >= table.length):
        return TRAP_TABLE
    table.elements[index] = value
    return TRAP_NONE


@native(shared=True)
def table_fill(table: ptr[Table], start: u64, value: u64, count: u64) -> u32:
    """table.fill; a trap's number or 0."""
    if unlikely(outside(start, count, table.length)):
        return TRAP_TABLE
    for i in range(start, start + count):
        table.elements[i] = value
    return TRAP_NONE


@native(shared=True)
def table_copy(to: ptr[Table], origin: ptr[Table], target: u64, source: u64, count: u64) -> u32:
    """table.copy; a trap's number or 0. The two may be one table and overlap."""
    if unlikely(outside(target, count, to.length) or outside(source, count, origin.length)):
        return TRAP_TABLE
    move(to.elements + target, origin.elements + source, count * SLOT)
    return TRAP_NONE
