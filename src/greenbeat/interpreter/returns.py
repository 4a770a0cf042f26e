"""Translation of calls and returns: where arguments and results are."""

from greenbeat.interpreter.calls import CALL_ITSELF, CALL_SIZE, UNLINKED
from greenbeat.interpreter.handlers import (
    CALL,
    CALL_IMPORT,
    CALL_INDIRECT,
    CALL_REF,
    CALL_UNLINKED,
    CONSTANT as CONSTANT_CELL,
    FIRST_PAIR,
    LITERAL,
    RETURN_NOTHING,
    RETURN_VALUE,
    RETURN_VALUES,
    TAIL_CALL,
    TAIL_CALL_IMPORT,
    TAIL_CALL_INDIRECT,
    TAIL_CALL_REF,
    fused_call,
    fused_return,
    pair_return,
)
from greenbeat.interpreter.linear_frames import return_in_epilogue
from greenbeat.interpreter.pairs import PAIR_SIZE, become_pair, from_last
from greenbeat.interpreter.translation import (
    CONSTANT,
    FROM_ACCUMULATOR,
    FROM_IMMEDIATE,
    IN_SLOT,
    LOCAL,
    NONE,
    class_of,
    emit,
    forget_use,
    is_real,
    operand_slot,
    set_in_slot,
    settle,
    slot_of,
    source_of,
    state,
    take,
)
from greenbeat.interpreter.values import load_constant
from greenbeat.native import i64, inline, load, native, ptr, store, u32, u64
from greenbeat.runtime.layout import NEAR, SLOT, SignatureType, header_slot
from greenbeat.wasm.validator import Validator
from greenbeat.wasm.valuetypes import I32


@inline
def is_near(signature):
    """The digit of a function whose header is at its usual place."""
    return u32(signature.param_count <= NEAR)


@inline
def near(v):
    """The same for the function that is translated."""
    return is_near(v.function.signature)


@native
def return_from(v: ptr[Validator], base: u32, always: bool) -> None:
    """Append a return of the results from `base` on; unless it is `always` taken, the operands are needed afterwards.

    Several results are in their slots already, if this is not always taken.
    """
    t = state(v)
    signature = v.function.signature
    count = signature.result_count
    if t.epilogue != NONE and always and return_in_epilogue(v, base):
        return
    if count == 0:
        cell = emit(v, RETURN_NOTHING + near(v), 16)
        store(cell, t.header, 8)
    elif count == 1:
        kind = signature.results[0]
        source = source_of(v, base, is_real(kind))
        slot = slot_of(v, base)
        if source == FROM_IMMEDIATE:
            bits = (t.entries + base).bits
            constant = emit(v, CONSTANT_CELL + class_of(kind) * 2, 24)
            store(constant, bits, 16)
            source = FROM_ACCUMULATOR
        elif always and t.last_maker != 0 and from_last(v, base, source, is_real(kind)):
            become_pair(v, u32(fused_return[t.last_maker]) + near(v), 0, t.header, t.made_at)
            t.last = NONE
            return
        elif always and t.last_pair != 0 and from_last(v, base, source, is_real(kind)):
            number = u32(pair_return[t.last_pair - FIRST_PAIR])
            if number != 0:
                third = load(u32, t.code + t.last, 20)
                become_pair(v, number + near(v), third, t.header, t.made_at)
                t.last = NONE
                return
            take(v, base, source, is_real(kind))
        elif always:
            take(v, base, source, is_real(kind))
        cell = emit(v, RETURN_VALUE + (class_of(kind) * 2 + source) * 2 + near(v), 16)
        store(cell, t.header, 8)
        store(cell, slot, 12)
    else:
        settle(v, base, base + count)
        cell = emit(v, RETURN_VALUES, 24)
        store(cell, t.header, 8)
        store(cell, count, 12)
        store(cell, operand_slot(t, base), 16)


@native
def results_arrive(v: ptr[Validator], base: u32, signature: ptr[SignatureType]) -> None:
    """After a call: the results are in slots, a single one in an accumulator too."""
    t = state(v)
    for i in range(signature.result_count):
        set_in_slot(v, base + i)
    t.integer.slot = NONE
    t.integer.cell = NONE
    t.real.slot = NONE
    t.real.cell = NONE
    if signature.result_count == 1:
        if is_real(signature.results[0]):
            t.real.slot = operand_slot(t, base)
        else:
            t.integer.slot = operand_slot(t, base)


@native
def call(v: ptr[Validator], index: u32, signature: ptr[SignatureType]) -> None:
    """`call`: the results were pushed."""
    call_at(v, v.height - signature.result_count, index, signature)


@native
def call_at(v: ptr[Validator], base: u32, index: u32, signature: ptr[SignatureType]) -> None:
    """Append a call whose arguments, and results, are from `base` on."""
    t = state(v)
    frame = operand_slot(t, base)
    if index < v.module.imported_functions:
        settle(v, base, base + signature.param_count)
        imported = emit(v, CALL_IMPORT, 24)
        store(imported, frame, 8)
        store(imported, index, 12)
        store(imported, u32(0), 16)
        store(imported, frame, 20)
    else:
        last = base + signature.param_count - 1
        pair, first, second = u32(0), u32(0), u64(0)
        maker_at = v.at
        if signature.param_count != 0:
            pair = call_pair(v, last)
            if pair != 0:
                if (t.entries + last).kind == LOCAL:
                    first = slot_of(v, last)
                    forget_use(v, last)
                elif (t.entries + last).kind == CONSTANT:
                    second = (t.entries + last).bits
                else:
                    first = load(u32, t.code + t.last, 12)
                    second = u64(load(u32, t.code + t.last, 16))
                    maker_at = t.made_at
                    t.size = t.last
                    t.copied = NONE
                set_in_slot(v, last)
                settle(v, base, last)
            else:
                settle(v, base, last + 1)
        size = u32(CALL_SIZE)
        if pair != 0:
            size += PAIR_SIZE - 8
        cell = emit(v, CALL_UNLINKED + t.variant, size)
        store(cell, frame, 8)
        store(cell, frame + header_slot(signature.param_count) * SLOT, 12)
        store(cell, u64(index) << 1 | UNLINKED, 16)
        store(cell, u64(CALL + is_near(signature)), CALL_ITSELF)
        if pair != 0:
            store(cell, u64(pair + is_near(signature)), CALL_ITSELF)
            store(cell, operand_slot(t, last), 32)
            store(cell, first, 36)
            store(cell, second, 40)
            if i64(t.size - size) == t.watched:
                # At its start the cell is its maker, behind that the call.
                t.found = maker_at
    results_arrive(v, base, signature)


@native
def call_pair(v: ptr[Validator], height: u32) -> u32:
    """The number of a call that makes its last argument, at a height, itself; 0 if there is none."""
    t = state(v)
    if (t.entries + height).kind == LOCAL:
        return u32(fused_call[0])
    if (t.entries + height).kind == CONSTANT:
        return u32(fused_call[LITERAL])
    if t.last_maker == 0 or (t.entries + height).kind != IN_SLOT or t.integer.cell != t.last:
        return 0
    return u32(fused_call[t.last_maker]) if t.integer.slot == operand_slot(t, height) else u32(0)


@native
def dynamic(
    v: ptr[Validator],
    number: u32,
    base: u32,
    slot: u32,
    table: u32,
    type_index: u32,
    signature: ptr[SignatureType],
    size: u32,
) -> None:
    """Append the cell of a call through a table or a reference."""
    t = state(v)
    frame = operand_slot(t, base)
    cell = emit(v, number, size)
    store(cell, frame, 8)
    store(cell, slot, 12)
    store(cell, u64(type_index), 16)
    store(cell, table, 24)
    store(cell, frame + header_slot(signature.param_count) * SLOT, 28)
    store(cell, u32(table < v.module.table_count and v.module.tables[table].is_64), 32)
    if size == 48:
        store(cell, t.header, 36)
        store(cell, u32(0), 40)
    store(cell, frame, size - 4)


@native
def call_indirect(v: ptr[Validator], table: u32, type_index: u32, signature: ptr[SignatureType]) -> None:
    """`call_indirect`: the index was on top of the arguments."""
    t = state(v)
    base = v.height - signature.result_count
    index = base + signature.param_count
    settle(v, base, index)
    source: u32 = 0
    if v.module.tables[table].is_64:
        settle(v, index, index + 1)
    else:
        if source_of(v, index, False) == FROM_IMMEDIATE:
            load_constant(v, index, I32)
        source = source_of(v, index, False)
    slot = slot_of(v, index)
    take(v, index, source, False)
    number = CALL_INDIRECT + (t.variant * 2 + source) * 2 + is_near(signature)
    dynamic(v, number, base, slot, table, type_index, signature, 40)
    results_arrive(v, base, signature)


@native
def call_ref(v: ptr[Validator], type_index: u32, signature: ptr[SignatureType]) -> None:
    """`call_ref`: the reference was on top of the arguments."""
    t = state(v)
    base = v.height - signature.result_count
    reference = base + signature.param_count
    settle(v, base, reference + 1)
    number = CALL_REF + t.variant * 2 + is_near(signature)
    dynamic(v, number, base, operand_slot(t, reference), NONE, type_index, signature, 40)
    results_arrive(v, base, signature)


@native
def tail_call(v: ptr[Validator], index: u32, signature: ptr[SignatureType]) -> None:
    """`return_call`; the cells behind it return the results of a host's function."""
    t = state(v)
    base = v.height
    settle(v, base, base + signature.param_count)
    if index < v.module.imported_functions:
        frame = operand_slot(t, base)
        imported = emit(v, TAIL_CALL_IMPORT, 32)
        store(imported, frame, 8)
        store(imported, index, 12)
        store(imported, u32(0), 16)
        store(imported, t.header, 20)
        store(imported, u32(0), 24)
        store(imported, frame, 28)
        results_arrive(v, base, signature)
        return_from(v, base, True)
    else:
        cell = emit(v, TAIL_CALL + t.variant, 24)
        store(cell, t.header, 8)
        store(cell, operand_slot(t, base), 12)
        store(cell, u64(index), 16)


@native
def tail_dynamic(v: ptr[Validator], number: u32, table: u32, type_index: u32, signature: ptr[SignatureType]) -> None:
    """A tail call through a table or a reference; the cells behind it return the results of a host's function."""
    t = state(v)
    base = v.height
    target = base + signature.param_count
    settle(v, base, target + 1)
    dynamic(v, number + t.variant, base, operand_slot(t, target), table, type_index, signature, 48)
    results_arrive(v, base, signature)
    return_from(v, base, True)


@native
def tail_call_indirect(v: ptr[Validator], table: u32, type_index: u32, signature: ptr[SignatureType]) -> None:
    """`return_call_indirect`."""
    tail_dynamic(v, TAIL_CALL_INDIRECT, table, type_index, signature)


@native
def tail_call_ref(v: ptr[Validator], type_index: u32, signature: ptr[SignatureType]) -> None:
    """`return_call_ref`."""
    tail_dynamic(v, TAIL_CALL_REF, NONE, type_index, signature)
