"""Element and data segments: what is put into tables and memories, at once or by `table.init` and `memory.init`.

An element segment's items are kept as numbers, so that any of them is found at once: function indices, or where in the
module's bytes each constant expression starts.

    flags   bit 0  passive or declarative (else active)
            bit 1  declarative (with bit 0), or with an explicit table (without)
            bit 2  items are expressions

https://webassembly.github.io/spec/core/binary/modules.html#element-section
"""

from greenbeat.native import native, ptr, sizeof, u32, u64
from greenbeat.runtime.layout import ACTIVE, DECLARATIVE, PASSIVE, DataSegment, ElementSegment, Module
from greenbeat.wasm import limits
from greenbeat.wasm.constants import read_constant, read_function_reference
from greenbeat.wasm.reader import Reader, failed, invalid, malformed_at, read_byte, read_u32, skip
from greenbeat.wasm.types import read_reference_type
from greenbeat.wasm.valuetypes import FUNCREF, I32, I64, NULLABLE, matches
from greenbeat.wasm.vectors import new_array, read_count

NOT_ACTIVE, EXPLICIT, EXPRESSIONS = 1, 2, 4


@native
def read_elements(module: ptr[Module], r: ptr[Reader]) -> None:
    """The element section."""
    count = read_count(r, limits.ELEMENT_SEGMENTS, "element segments")
    module.elements = new_array(module, r, u64(count), sizeof(ElementSegment))
    for i in range(count):
        if failed(r):
            return
        read_element_segment(module, r, module.elements + i)
        module.element_count = i + 1


@native
def read_element_segment(module: ptr[Module], r: ptr[Reader], segment: ptr[ElementSegment]) -> None:
    """One element segment, in one of its eight forms."""
    at = r.position
    flags = read_u32(r)
    if flags > (NOT_ACTIVE | EXPLICIT | EXPRESSIONS):
        malformed_at(r, at, "malformed element segment kind", 0, 0)
    segment.expressions = flags & EXPRESSIONS != 0
    target = r.position
    if flags & NOT_ACTIVE != 0:
        segment.mode = u32(DECLARATIVE) if flags & EXPLICIT != 0 else u32(PASSIVE)
    else:
        segment.mode = ACTIVE
        if flags & EXPLICIT != 0:
            segment.table = read_u32(r)
        if failed(r):
            return
        if segment.table >= module.table_count:
            invalid(r, target, "unknown table {number}", segment.table, 0)
            return
        segment.offset = read_constant(module, r, u32(I64) if module.tables[segment.table].is_64 else u32(I32))
    segment.kind = u32(FUNCREF) if segment.expressions else u32(FUNCREF & ~NULLABLE)
    at = r.position
    if flags & (NOT_ACTIVE | EXPLICIT) != 0:
        if segment.expressions:
            segment.kind = read_reference_type(module, r)
        elif read_byte(r) != 0:
            malformed_at(r, at, "malformed element kind", 0, 0)
    if failed(r):
        return
    if segment.mode == ACTIVE:
        held = module.tables[segment.table].kind
        if not matches(segment.kind, held):
            invalid(r, at, "type mismatch: a table of {type} cannot hold elements of {type}", held, segment.kind)
            return
    read_items(module, r, segment)


@native
def read_items(module: ptr[Module], r: ptr[Reader], segment: ptr[ElementSegment]) -> None:
    """The items of an element segment."""
    count = read_count(r, limits.SEGMENT_ENTRIES, "entries in an element segment")
    items = new_array(module, r, u64(count), sizeof(u32))
    if items is None:
        return
    segment.items = items
    segment.count = count
    for i in range(count):
        if segment.expressions:
            segment.items[i] = u32(read_constant(module, r, segment.kind) - module.bytes)
        else:
            segment.items[i] = read_function_reference(module, r)
        if failed(r):
            return


@native
def read_data_count(module: ptr[Module], r: ptr[Reader]) -> None:
    """The data count section, which lets bodies name data segments before they are read."""
    at = r.position
    count = read_u32(r)
    if count > limits.DATA_SEGMENTS:
        invalid(r, at, limits.exceeded(limits.DATA_SEGMENTS, "data segments"), 0, 0)
    module.has_data_count = True
    module.data_count = count


@native
def read_datas(module: ptr[Module], r: ptr[Reader]) -> None:
    """The data section."""
    at = r.position
    count = read_count(r, limits.DATA_SEGMENTS, "data segments")
    if module.has_data_count and module.data_count != count:
        malformed_at(r, at, "data count and data section have inconsistent lengths", 0, 0)
    module.datas = new_array(module, r, u64(count), sizeof(DataSegment))
    for i in range(count):
        if failed(r):
            return
        read_data_segment(module, r, module.datas + i)
    module.data_count = count


@native
def read_data_segment(module: ptr[Module], r: ptr[Reader], segment: ptr[DataSegment]) -> None:
    """One data segment: active in memory 0, passive, or active in a named memory."""
    at = r.position
    flags = read_u32(r)
    if flags > 2:
        malformed_at(r, at, "malformed data segment kind", 0, 0)
    target = r.position
    segment.mode = u32(PASSIVE) if flags == 1 else u32(ACTIVE)
    if flags == 2:
        segment.memory = read_u32(r)
    if failed(r):
        return
    if segment.mode == ACTIVE:
        if segment.memory >= module.memory_count:
            invalid(r, target, "unknown memory {number}", segment.memory, 0)
            return
        segment.offset = read_constant(module, r, u32(I64) if module.memories[segment.memory].is_64 else u32(I32))
    segment.length = u64(read_u32(r))
    segment.data = skip(r, segment.length)
