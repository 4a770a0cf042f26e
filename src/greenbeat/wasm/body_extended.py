"""Less frequent instructions of a body: tables, bulk memory, growth; and what to say of instructions that are unknown.

For a translator these are all alike: operands in a row go in, at most one result comes out, with two indices on the
side (`emit.service`). https://webassembly.github.io/spec/core/valid/instructions.html#table-instructions
"""

from greenbeat.native import cast, inline, native, ptr, table, u8, u32, unlikely
from greenbeat.runtime.layout import TableType
from greenbeat.wasm.ops import OPERATIONS, SATURATING
from greenbeat.wasm.reader import MALFORMED, Reader, fail, failed, read_u32
from greenbeat.wasm.validator import Validator, broken, mismatch, pop, push
from greenbeat.wasm.valuetypes import BOTTOM, I32, I64, matches

_saturating = [OPERATIONS[SATURATING + n] for n in range(8)]
saturating_operand = table(u8, [o.operand_type for o in _saturating], name="saturating_operand")
saturating_result = table(u8, [o.result_type for o in _saturating], name="saturating_result")

# What the operands of a service are: bits of a mask, one an operand, tell which are 64 bits wide.
FIRST_WIDE, SECOND_WIDE, THIRD_WIDE = 1, 2, 4


@inline
def address_type(is_64):
    """The type of an address or index into a memory or table."""
    kind = u32(I32)
    if is_64:
        kind = u32(I64)
    return kind


@native
def memory_type(v: ptr[Validator], index: u32) -> u32:
    """The address type of a memory; BOTTOM after a failure."""
    if unlikely(index >= v.module.memory_count):
        broken(v, "unknown memory {number}: the module has {number}", index, v.module.memory_count)
        return BOTTOM
    return address_type(v.module.memories[index].is_64)


@native
def table_of(v: ptr[Validator], index: u32) -> ptr[TableType]:
    """A table's type; null after a failure."""
    if unlikely(index >= v.module.table_count):
        broken(v, "unknown table {number}: the module has {number}", index, v.module.table_count)
        return cast(ptr[TableType], 0)
    return v.module.tables + index


@native
def unknown_instruction(v: ptr[Validator], r: ptr[Reader], opcode: u32) -> None:
    """Refuse an opcode: one of a later feature, or none at all."""
    match opcode:
        case 0xFD:
            broken(v, "vector instructions are not supported yet", 0, 0)
        case 0xFB | 0xD3:
            broken(v, "instructions on garbage-collected objects are not supported yet", 0, 0)
        case 0x06 | 0x07 | 0x09 | 0x18 | 0x19:
            broken(v, "the exception instructions before version 3 are not supported: `try_table` is", 0, 0)
        case 0xFE:
            broken(v, "atomic instructions are not supported yet", 0, 0)
        case _:
            fail(r, MALFORMED, v.at, "illegal opcode", 0, 0)


@inline
def mask(wide, bit):
    """A bit if an operand is wide."""
    value: u32 = 0
    if wide:
        value = bit
    return value


def extended_pass(emit):
    """The part of the pass that is in this file."""

    @inline
    def emitting(v):
        return emit is not None and v.control.reachable

    @native
    def prefixed(v: ptr[Validator], r: ptr[Reader]) -> None:
        """Instructions behind the prefix 0xFC."""
        number = read_u32(r)
        if failed(r):
            return
        match number:
            case 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7:
                truncate(v, number)
            case 8:
                segment = read_u32(r)
                memory = read_u32(r)
                address = memory_type(v, memory)
                if failed(r) or not data_exists(v, r, segment):
                    return
                pop(v, I32)
                pop(v, I32)
                pop(v, address)
                if emitting(v):
                    emit.service(v, emit.MEMORY_INIT, 3, False, memory, segment, mask(address == I64, FIRST_WIDE))
            case 9:
                segment = read_u32(r)
                if failed(r) or not data_exists(v, r, segment):
                    return
                if emitting(v):
                    emit.service(v, emit.DATA_DROP, 0, False, segment, 0, 0)
            case 10:
                copy_memory(v, r)
            case 11:
                memory = read_u32(r)
                address = memory_type(v, memory)
                pop(v, address)
                pop(v, I32)
                pop(v, address)
                if emitting(v):
                    wide = mask(address == I64, FIRST_WIDE | THIRD_WIDE)
                    emit.service(v, emit.MEMORY_FILL, 3, False, memory, 0, wide)
            case 12:
                init_table(v, r)
            case 13:
                segment = read_u32(r)
                if failed(r) or not element_exists(v, segment):
                    return
                if emitting(v):
                    emit.service(v, emit.ELEM_DROP, 0, False, segment, 0, 0)
            case 14:
                copy_table(v, r)
            case 15:
                index = read_u32(r)
                held = table_of(v, index)
                if failed(r):
                    return
                address = address_type(held.is_64)
                pop(v, address)
                pop(v, held.kind)
                push(v, address)
                if emitting(v):
                    emit.service(v, emit.TABLE_GROW, 2, True, index, 0, mask(held.is_64, SECOND_WIDE))
            case 16:
                index = read_u32(r)
                held = table_of(v, index)
                if failed(r):
                    return
                push(v, address_type(held.is_64))
                if emitting(v):
                    emit.service(v, emit.TABLE_SIZE, 0, True, index, 0, 0)
            case 17:
                index = read_u32(r)
                held = table_of(v, index)
                if failed(r):
                    return
                address = address_type(held.is_64)
                pop(v, address)
                pop(v, held.kind)
                pop(v, address)
                if emitting(v):
                    emit.service(v, emit.TABLE_FILL, 3, False, index, 0, mask(held.is_64, FIRST_WIDE | THIRD_WIDE))
            case _:
                fail(r, MALFORMED, v.at, "illegal opcode", 0, 0)

    @inline
    def truncate(v, number):
        """Saturating conversions: 0 to 3 make an i32, 4 to 7 an i64, of f32, f32, f64, f64."""
        opcode = number + SATURATING
        pop(v, u32(saturating_operand[number]))
        push(v, u32(saturating_result[number]))
        if emitting(v):
            emit.unary(v, opcode)

    @native
    def data_exists(v: ptr[Validator], r: ptr[Reader], segment: u32) -> bool:
        """Whether there is a data segment with this index; their number must have been announced."""
        if not v.module.has_data_count:
            return fail(r, MALFORMED, v.at, "data count section required", 0, 0)
        if segment >= v.module.data_count:
            return broken(v, "unknown data segment {number}: the module has {number}", segment, v.module.data_count)
        return True

    @native
    def element_exists(v: ptr[Validator], segment: u32) -> bool:
        """Whether there is an element segment with this index."""
        if segment >= v.module.element_count:
            return broken(v, "unknown elem segment {number}: the module has {number}", segment, v.module.element_count)
        return True

    @native
    def copy_memory(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`memory.copy`: the count is as wide as the narrower of the two address types."""
        destination = read_u32(r)
        source = read_u32(r)
        to, of = memory_type(v, destination), memory_type(v, source)
        if failed(r):
            return
        both = to == I64 and of == I64
        pop(v, address_type(both))
        pop(v, of)
        pop(v, to)
        if emitting(v):
            wide = mask(to == I64, FIRST_WIDE) | mask(of == I64, SECOND_WIDE) | mask(both, THIRD_WIDE)
            emit.service(v, emit.MEMORY_COPY, 3, False, destination, source, wide)

    @native
    def init_table(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`table.init`."""
        segment = read_u32(r)
        index = read_u32(r)
        held = table_of(v, index)
        if failed(r) or not element_exists(v, segment):
            return
        kind = v.module.elements[segment].kind
        if not matches(kind, held.kind):
            mismatch(v, held.kind, kind)
            return
        pop(v, I32)
        pop(v, I32)
        pop(v, address_type(held.is_64))
        if emitting(v):
            emit.service(v, emit.TABLE_INIT, 3, False, index, segment, mask(held.is_64, FIRST_WIDE))

    @native
    def copy_table(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`table.copy`."""
        destination = read_u32(r)
        source = read_u32(r)
        to, of = table_of(v, destination), table_of(v, source)
        if failed(r):
            return
        if not matches(of.kind, to.kind):
            mismatch(v, to.kind, of.kind)
            return
        both = to.is_64 and of.is_64
        pop(v, address_type(both))
        pop(v, address_type(of.is_64))
        pop(v, address_type(to.is_64))
        if emitting(v):
            wide = mask(to.is_64, FIRST_WIDE) | mask(of.is_64, SECOND_WIDE) | mask(both, THIRD_WIDE)
            emit.service(v, emit.TABLE_COPY, 3, False, destination, source, wide)

    @native
    def extended(v: ptr[Validator], r: ptr[Reader], opcode: u32) -> None:
        """The instructions of this file."""
        match opcode:
            case 0x25:
                index = read_u32(r)
                held = table_of(v, index)
                if failed(r):
                    return
                pop(v, address_type(held.is_64))
                push(v, held.kind)
                if emitting(v):
                    emit.service(v, emit.TABLE_GET, 1, True, index, 0, mask(held.is_64, FIRST_WIDE))
            case 0x26:
                index = read_u32(r)
                held = table_of(v, index)
                if failed(r):
                    return
                pop(v, held.kind)
                pop(v, address_type(held.is_64))
                if emitting(v):
                    emit.service(v, emit.TABLE_SET, 2, False, index, 0, mask(held.is_64, FIRST_WIDE))
            case 0x3F:
                index = read_u32(r)
                address = memory_type(v, index)
                push(v, address)
                if emitting(v):
                    emit.service(v, emit.MEMORY_SIZE, 0, True, index, 0, 0)
            case 0x40:
                index = read_u32(r)
                address = memory_type(v, index)
                pop(v, address)
                push(v, address)
                if emitting(v):
                    emit.service(v, emit.MEMORY_GROW, 1, True, index, 0, mask(address == I64, FIRST_WIDE))
            case 0xFC:
                prefixed(v, r)
            case _:
                unknown_instruction(v, r, opcode)

    return extended
