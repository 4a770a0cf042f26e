"""Translation of pairs: the cell that makes a value takes in the operation that uses it, if there is such a handler."""

from greenbeat.interpreter.handlers import (
    FIRST_PAIR,
    USER_DIGITS,
    USERS,
    VALUE_USERS,
    fused_base,
    pair_store,
    user_of,
    value_base,
    value_user_of,
)
from greenbeat.interpreter.translation import (
    FROM_ACCUMULATOR,
    FROM_IMMEDIATE,
    IN_SLOT,
    LOCAL,
    NONE,
    forget_use,
    grow_code,
    is_real,
    mirror_of,
    operand_slot,
    overwritten,
    set_in_slot,
    slot_of,
    source_of,
    state,
)
from greenbeat.native import i64, inline, load, native, ptr, store, u8, u32, u64, unlikely
from greenbeat.runtime.layout import EXPLICIT
from greenbeat.wasm.body import result_of
from greenbeat.wasm.validator import Validator

# Sides of a user that a maker's value can be on; the digits of the table of users.
SIDE_LEFT, SIDE_RIGHT, SIDE_CONSTANT = 0, 1, 2
PAIR_SIZE = 24
I32_STORE = 0x36


@inline
def note_compared(v, compared, maker, side, step):
    """Remember what a comparison compares, if that is what the cell before it made."""
    t = state(v)
    t.compared = compared
    t.compared_maker = u32(0) if side == NONE else maker
    t.compared_side = side
    t.compared_step = step


@native
def stepped_by_last(v: ptr[Validator], height: u32, source: u32) -> u32:
    """If the operand at a height is a local that the last cell stepped: the local plus 1, else 0."""
    t = state(v)
    entry = t.entries + height
    if t.stepped == NONE or source != FROM_ACCUMULATOR or entry.kind != LOCAL or entry.index != t.stepped_local:
        return 0
    return t.stepped_local + 1


@native
def from_last(v: ptr[Validator], height: u32, source: u32, real: bool) -> bool:
    """Whether the operand at a height is what the last cell made, for nobody else."""
    t = state(v)
    return (
        source == FROM_ACCUMULATOR
        and t.last != NONE
        and (t.entries + height).kind == IN_SLOT
        and mirror_of(t, real).cell == t.last
    )


@native
def resize(v: ptr[Validator], at: u32, size: u32) -> bool:
    """Give the last cell of all, which begins at an offset, a size; False without memory."""
    t = state(v)
    if at + size > t.capacity:
        if not grow_code(v, size):
            return False
    t.size = at + size
    store(t.code + at, size, 4)
    return True


@native
def become_pair(v: ptr[Validator], number: u32, third: u32, word: u32, at: ptr[u8]) -> None:
    """The last cell, a maker, becomes a pair with its user; `at` is the instruction that may trap."""
    t = state(v)
    if not resize(v, t.last, PAIR_SIZE):
        return
    cell = t.code + t.last
    store(cell, number)
    if unlikely(i64(t.last) <= t.watched):
        t.found = at
    store(cell, word, 8)
    store(cell, third, 20)
    if t.integer.cell == t.last:
        t.integer.slot = NONE
        t.integer.cell = NONE
    if t.real.cell == t.last:
        t.real.slot = NONE
        t.real.cell = NONE
    t.last_opcode = 0
    t.last_maker = 0
    t.last_pair = 0


@native
def become_producer(v: ptr[Validator], number: u32, third: u32, height: u32, real: bool, at: ptr[u8]) -> None:
    """The last cell becomes a pair whose result is the operand at a height; `number` is the variant without a slot."""
    t = state(v)
    slot = operand_slot(t, height)
    become_pair(v, number + 1, third, slot, at)
    t.last_pair = number
    t.made_at = at
    set_in_slot(v, height)
    overwritten(t, slot)
    mirror = mirror_of(t, real)
    mirror.slot = slot
    mirror.cell = t.last
    mirror.number = number + 1


@native
def fuse_binary(v: ptr[Validator], opcode: u32, left_source: u32, right_source: u32, real: bool) -> bool:
    """Make a pair of the last cell and an operation on what it made, if there is such a pair."""
    t = state(v)
    if t.last_maker == 0:
        return False
    left, right = v.height - 1, v.height
    side, other, other_source = u32(SIDE_LEFT), right, right_source
    if not from_last(v, left, left_source, real):
        if not from_last(v, right, right_source, real):
            return False
        side, other, other_source = u32(SIDE_RIGHT), left, left_source
    third = slot_of(v, other)
    if other_source == FROM_IMMEDIATE:
        bits = (t.entries + other).bits
        if side == SIDE_RIGHT or bits > 0xFFFF_FFFF:
            return False
        side = SIDE_CONSTANT
        third = u32(bits)
    number = u32(fused_base[t.last_maker * USERS + u32(user_of[opcode * USER_DIGITS + side])])
    if number == 0:
        return False
    forget_use(v, right)
    forget_use(v, left)
    become_producer(v, number, third, left, is_real(u32(result_of[opcode])), t.made_at)
    return True


@inline
def pair_with_access(v, opcode, digit, address, offset):
    """The number of a pair of the last cell, which made the address, and an access; 0 if there is none."""
    t = state(v)
    number: u32 = 0
    if t.last_maker != 0 and t.variant & EXPLICIT == 0 and offset <= 0xFFFF_FFFF:
        if from_last(v, address, source_of(v, address, False), False):
            number = u32(fused_base[t.last_maker * USERS + u32(user_of[opcode * USER_DIGITS + digit])])
    return number


@native
def fuse_value(
    v: ptr[Validator],
    opcode: u32,
    offset: u64,
    address: u32,
    address_source: u32,
    value: u32,
    value_source: u32,
    real: bool,
) -> bool:
    """Let the last cell store what it made, if there is such a pair."""
    t = state(v)
    if address_source == FROM_IMMEDIATE or offset > 0xFFFF_FFFF or t.variant & EXPLICIT != 0:
        return False
    if not from_last(v, value, value_source, real):
        return False
    address_slot = slot_of(v, address)
    if t.last_maker != 0:
        number = u32(value_base[t.last_maker * VALUE_USERS + u32(value_user_of[opcode])])
        if number == 0:
            return False
        become_pair(v, number, u32(offset), address_slot, v.at)
    else:
        number = u32(pair_store[t.last_pair - FIRST_PAIR]) if t.last_pair != 0 and opcode == I32_STORE else u32(0)
        if number == 0:
            return False
        become_pair(v, number, load(u32, t.code + t.last, 20), address_slot, v.at)
        if not resize(v, t.last, PAIR_SIZE + 8):
            return False
        store(t.code + t.last, offset, 24)
    forget_use(v, address)
    t.last = NONE
    return True
