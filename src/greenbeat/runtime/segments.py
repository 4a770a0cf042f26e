"""Segments at run time: `memory.init`, `data.drop`, `table.init`, `elem.drop`, and the active ones of an instance.

A dropped segment is an empty one. https://webassembly.github.io/spec/core/exec/instructions.html#exec-memory-init
"""

from greenbeat.native import cast, copy, inline, native, ptr, u8, u32, u64
from greenbeat.runtime.evaluate import evaluate_constant, function_reference
from greenbeat.runtime.layout import ACTIVE, DECLARATIVE, TRAP_MEMORY, TRAP_NONE, TRAP_TABLE, ElementSegment, Instance
from greenbeat.runtime.memory import outside


@inline
def data_length(instance: ptr[Instance], segment: u32) -> u64:
    """How long a data segment is: once dropped, it is empty."""
    return u64(0) if instance.dropped_datas[segment] != 0 else instance.module.datas[segment].length


@native(shared=True)
def memory_init(instance: ptr[Instance], memory: u32, segment: u32, to: u64, start: u64, count: u64) -> u32:
    """`memory.init`: copy part of a data segment into a memory. Returns a trap's number, or 0."""
    assert memory < instance.module.memory_count and segment < instance.module.data_count
    data = instance.module.datas + segment
    target = instance.memories[memory]
    if outside(start, count, data_length(instance, segment)) or outside(to, count, target.length):
        return TRAP_MEMORY
    copy(target.base + to, data.data + start, count)
    return TRAP_NONE


@native(shared=True)
def data_drop(instance: ptr[Instance], segment: u32) -> None:
    """`data.drop`: the segment is empty from now on."""
    instance.dropped_datas[segment] = 1


@native
def segment_item(instance: ptr[Instance], segment: ptr[ElementSegment], index: u64) -> u64:
    """An item of an element segment, as it stands in a table."""
    item = segment.items[index]
    if segment.expressions:
        return evaluate_constant(instance, instance.module.bytes + item)
    return cast(u64, function_reference(instance, item))


@native(shared=True)
def table_init(instance: ptr[Instance], table: u32, segment: u32, to: u64, start: u64, count: u64) -> u32:
    """`table.init`: put part of an element segment into a table. Returns a trap's number, or 0."""
    assert table < instance.module.table_count and segment < instance.module.element_count
    items = instance.module.elements + segment
    length = u64(0) if instance.dropped_elements[segment] != 0 else u64(items.count)
    target = instance.tables[table]
    if outside(start, count, length) or outside(to, count, target.length):
        return TRAP_TABLE
    for i in range(count):
        target.elements[to + i] = segment_item(instance, items, start + i)
    return TRAP_NONE


@native(shared=True)
def elem_drop(instance: ptr[Instance], segment: u32) -> None:
    """`elem.drop`: the segment is empty from now on."""
    instance.dropped_elements[segment] = 1


@native
def active_offset(instance: ptr[Instance], expression: ptr[u8], is_64: bool) -> u64:
    """Where an active segment goes. Of a 32-bit global only the lower half means anything."""
    offset = evaluate_constant(instance, expression)
    return offset if is_64 else offset & 0xFFFF_FFFF


@native
def initialize_elements(instance: ptr[Instance], index: ptr[u32]) -> u32:
    """Put active element segments into their tables, in order, until one does not fit. `index` says which."""
    module = instance.module
    for i in range(module.element_count):
        segment = module.elements + i
        index[0] = i
        if segment.mode == ACTIVE:
            offset = active_offset(instance, segment.offset, instance.tables[segment.table].is_64)
            problem = table_init(instance, segment.table, i, offset, 0, u64(segment.count))
            if problem != TRAP_NONE:
                return problem
            elem_drop(instance, i)
        elif segment.mode == DECLARATIVE:
            elem_drop(instance, i)
    return TRAP_NONE


@native
def initialize_datas(instance: ptr[Instance], index: ptr[u32]) -> u32:
    """Put active data segments into their memories, in order, until one does not fit. `index` says which."""
    module = instance.module
    for i in range(module.data_count):
        segment = module.datas + i
        index[0] = i
        if segment.mode == ACTIVE:
            offset = active_offset(instance, segment.offset, instance.memories[segment.memory].is_64)
            problem = memory_init(instance, segment.memory, i, offset, 0, segment.length)
            if problem != TRAP_NONE:
                return problem
            data_drop(instance, i)
    return TRAP_NONE
