"""Translation of prologues and epilogues: the cells of `linear_stack.py` grow, one instruction after the other."""

from greenbeat.interpreter.handlers import (
    EPILOGUE,
    EPILOGUE_OF_LOAD,
    EPILOGUE_OF_NOTHING,
    EPILOGUE_OF_VALUE,
    LOAD,
    PROLOGUE,
    PROLOGUE_SETS,
    PROLOGUE_STORES,
    PROLOGUE_STORES_TWO,
    STEP,
)
from greenbeat.interpreter.pairs import become_pair, from_last, resize
from greenbeat.interpreter.translation import (
    FROM_ACCUMULATOR,
    FROM_SLOT,
    LOCAL,
    NONE,
    class_of,
    forget_use,
    is_real,
    slot_of,
    source_of,
    state,
)
from greenbeat.native import i64, inline, load, native, ptr, store, u8, u32, u64, unlikely
from greenbeat.runtime.layout import EXPLICIT, NEAR
from greenbeat.wasm.validator import Validator
from greenbeat.wasm.valuetypes import I32

SIZE, LONGER, LONGEST = 24, 32, 40


@native
def behind(at: ptr[u8], end: ptr[u8], opcode: u32) -> ptr[u8]:
    """Where the instruction with one immediate ends that begins here, if its opcode is this; else the end of all."""
    if at >= end or u32(at[0]) != opcode:
        return end
    at += 1
    while at < end and at[0] >= 0x80:
        at += 1
    return at + 1 if at < end else end


@native
def set_at_once(v: ptr[Validator]) -> u32:
    """The local that a prologue at the start of the body sets, so that it need not be zeroed; NONE without."""
    end = v.reader.end
    at = behind(behind(v.reader.position, end, 0x23), end, 0x41)
    if end - at < 3 or (at[0] != 0x6A and at[0] != 0x6B) or (at[1] != 0x21 and at[1] != 0x22) or at[2] >= 0x80:
        return NONE
    return u32(at[2])


@inline
def begin_prologue(t):
    """A local was given its value by the last cell."""
    if t.last_pair == PROLOGUE:
        t.prologue = t.last


@native
def set_in_prologue(v: ptr[Validator], place: u32) -> bool:
    """Let the prologue set the global to what is in the accumulator, if the last cell is a prologue."""
    t = state(v)
    if t.prologue == NONE or (t.entries + v.height).kind != LOCAL:
        return False
    cell = t.code + t.prologue
    if load(u32, cell) != PROLOGUE + 1 or load(u32, cell, 12) != place:
        return False
    store(cell, u32(PROLOGUE_SETS))
    forget_use(v, v.height)
    return True


@native
def store_in_prologue(v: ptr[Validator], offset: u64, address: u32, value: u32) -> bool:
    """Let the prologue store a slot's value at what is in the accumulator, if the last cell is a prologue."""
    t = state(v)
    if t.prologue == NONE or (t.entries + address).kind != LOCAL or offset > 0xFFFF_FFFF or t.variant & EXPLICIT != 0:
        return False
    at = t.prologue
    again = load(u32, t.code + at) >= PROLOGUE_STORES
    if not resize(v, at, u32(LONGEST) if again else u32(LONGER)):
        return False
    cell = t.code + at
    slot = slot_of(v, value)
    if again:
        # A frame that is outside is found by the first store.
        store(cell, load(u32, cell) + (PROLOGUE_STORES_TWO - PROLOGUE_STORES))
        store(cell, slot, 28)
        store(cell, offset, 32)
        t.prologue = NONE
    else:
        store(cell, PROLOGUE_STORES + u32(load(u32, cell) == PROLOGUE_SETS))
        store(cell, slot, 16)
        store(cell, offset, 24)
        if unlikely(i64(at) <= t.watched):
            t.found = v.at
    forget_use(v, value)
    forget_use(v, address)
    return True


@native
def become_epilogue(v: ptr[Validator], place: u32) -> bool:
    """Let the last cell set the global to what it made, if that was a local plus a constant."""
    t = state(v)
    if t.last_maker != STEP or not from_last(v, v.height, FROM_ACCUMULATOR, False):
        return False
    at = t.last
    become_pair(v, EPILOGUE, 0, place, v.at)
    t.last = NONE
    t.epilogue = at
    return True


@native
def return_in_epilogue(v: ptr[Validator], base: u32) -> bool:
    """Let the epilogue, which is the last cell, return the operand at a height, if the function returns one."""
    t = state(v)
    signature = v.function.signature
    at = t.epilogue
    cell = t.code + at
    if signature.param_count > NEAR:
        return False
    if signature.result_count == 0:
        store(cell, u32(EPILOGUE_OF_NOTHING))
        return True
    kind = signature.results[0]
    if signature.result_count != 1 or is_real(kind) or source_of(v, base, False) != FROM_SLOT:
        return False
    slot = slot_of(v, base)
    if kind == I32 and t.previous_maker == LOAD and t.previous + SIZE == at:
        loading = t.code + t.previous
        # Nobody else can want the value: locals end here.
        if load(u32, loading, 8) == slot and load(u32, cell, 12) != slot:
            store(loading, u32(EPILOGUE_OF_LOAD))
            store(loading, u32(LONGER), 4)
            store(loading, load(u32, cell, 8), 8)
            store(loading, load(u32, cell, 12), 20)
            store(loading, u64(load(u32, cell, 16)), 24)
            t.size = t.previous + LONGER
            if unlikely(i64(t.previous) <= t.watched):
                t.found = t.previous_at
            return True
    store(cell, EPILOGUE_OF_VALUE + class_of(kind))
    store(cell, slot, 20)
    forget_use(v, base)
    return True
