"""Translation of everything that is not control: constants, locals, operations, memory, globals, services."""

from greenbeat.interpreter.handlers import (
    CONSTANT as CONSTANT_CELL,
    GLOBAL_GET,
    GLOBAL_SET,
    MAKER_DIGITS,
    OWN_GLOBAL,
    SELECT,
    STEP,
    access_base,
    branch_base,
    general_access,
    maker_of,
    operation_base,
)
from greenbeat.interpreter.linear_frames import become_epilogue, begin_prologue, set_in_prologue, store_in_prologue
from greenbeat.interpreter.pairs import (
    SIDE_CONSTANT,
    SIDE_LEFT,
    SIDE_RIGHT,
    become_pair,
    become_producer,
    from_last,
    fuse_binary,
    fuse_value,
    note_compared,
    pair_with_access,
    stepped_by_last,
)
from greenbeat.interpreter.translation import (
    CONSTANT,
    FROM_ACCUMULATOR,
    FROM_IMMEDIATE,
    FROM_SLOT,
    IN_SLOT,
    LOCAL,
    NONE,
    class_of,
    emit,
    flush,
    forget_use,
    is_real,
    local_slot,
    mirror_of,
    move_plain,
    operand_slot,
    overwritten,
    produce,
    set_in_slot,
    set_symbolic,
    settle,
    slot_of,
    source_of,
    state,
    take,
)
from greenbeat.native import inline, native, ptr, store, table, u8, u32, u64
from greenbeat.runtime.instantiate import OWN_GLOBALS
from greenbeat.runtime.layout import EXPLICIT
from greenbeat.wasm.body import access_type, operand_type, result_of
from greenbeat.wasm.validator import Validator
from greenbeat.wasm.valuetypes import I32, I64

# The digit of a binary variant by the sources of its operands (slot, accumulator, immediate); see BINARY_VARIANTS.
_variant = {(0, 0): 0, (0, 2): 1, (1, 0): 2, (0, 1): 3, (1, 2): 4, (2, 0): 5, (2, 1): 6}
I32_ADD, I32_SUB, I32_STORE = 0x6A, 0x6B, 0x36
binary_variant = table(
    u8, [_variant.get((left, right), 0) for left in range(3) for right in range(3)], name="binary_variant"
)


# ---------------------------------------------------------------- constants and locals


@native
def constant(v: ptr[Validator], bits: u64) -> None:
    """A constant: nothing is written yet."""
    set_symbolic(v, v.height - 1, CONSTANT, 0, bits)


@native
def local_get(v: ptr[Validator], index: u32) -> None:
    """A local: nothing is written yet."""
    t = state(v)
    set_symbolic(v, v.height - 1, LOCAL, index, 0)
    t.local_uses[index] += 1


@native
def assign_local(v: ptr[Validator], height: u32, index: u32) -> bool:
    """Give a local the value of the operand at a height; whether the cell that made the value does it itself now."""
    t = state(v)
    if t.local_uses[index] != 0:
        flush(v, height)
        t.local_uses[index] = 0
    entry = t.entries + height
    slot = local_slot(v, index)
    real = is_real(v.locals[index])
    mirror = mirror_of(t, real)
    if entry.kind == IN_SLOT and t.last != NONE and t.last == mirror.cell and mirror.slot == operand_slot(t, height):
        cell, number = mirror.cell, mirror.number
        if t.last_maker == STEP:
            t.stepped = cell
            t.stepped_local = index
        begin_prologue(t)
        t.assigned = cell
        overwritten(t, slot)
        store(t.code + cell, slot, 8)
        mirror.slot = slot
        mirror.cell = cell
        mirror.number = number
        t.last_opcode = 0
        return True
    move_plain(v, height, slot)
    overwritten(t, slot)
    return False


@native
def local_set(v: ptr[Validator], index: u32) -> None:
    """`local.set`: the value was popped."""
    t = state(v)
    entry = t.entries + v.height
    forget_use(v, v.height)
    if entry.kind == LOCAL and entry.index == index:
        return
    if assign_local(v, v.height, index):
        keep_slot(v, index)


@native
def local_tee(v: ptr[Validator], index: u32) -> None:
    """`local.tee`: the value stays; if the local got it first hand, it is the local from now on."""
    t = state(v)
    height = v.height - 1
    entry = t.entries + height
    if entry.kind == LOCAL and entry.index == index:
        return
    if entry.kind == LOCAL:
        other = entry.index
        t.local_uses[other] -= 1
        assign_local(v, height, index)
        t.local_uses[other] += 1
        return
    if assign_local(v, height, index):
        keep_slot(v, index)
        set_symbolic(v, height, LOCAL, index, 0)
        t.local_uses[index] += 1


@inline
def keep_slot(v, index):
    """A local's slot is always written: the cell that made its value keeps its variant."""
    t = state(v)
    mirror_of(t, is_real(v.locals[index])).cell = NONE
    t.last = NONE


# ---------------------------------------------------------------- operations


@native
def load_constant(v: ptr[Validator], height: u32, kind: u32) -> None:
    """Write a constant operand's own cell, so that it is in the accumulator."""
    t = state(v)
    bits = (t.entries + height).bits
    cell = produce(v, height, CONSTANT_CELL + class_of(kind) * 2, 24, is_real(kind))
    store(cell, bits, 16)


@native
def binary(v: ptr[Validator], opcode: u32) -> None:
    """An operation on two operands."""
    t = state(v)
    left, right = v.height - 1, v.height
    if opcode == I32_SUB and (t.entries + right).kind == CONSTANT:
        # The same with one operation less to have pairs of.
        opcode = I32_ADD
        (t.entries + right).bits = u64(u32(0) - u32((t.entries + right).bits))
    kind = u32(operand_type[opcode])
    real = is_real(kind)
    if source_of(v, left, real) == FROM_IMMEDIATE and source_of(v, right, real) == FROM_IMMEDIATE:
        load_constant(v, left, kind)
    left_source, right_source = source_of(v, left, real), source_of(v, right, real)
    if left_source == FROM_ACCUMULATOR and right_source == FROM_ACCUMULATOR:
        right_source = FROM_SLOT
    variant = u32(binary_variant[left_source * 3 + right_source])
    if fuse_binary(v, opcode, left_source, right_source, real):
        return
    compared, side = t.last, u32(NONE)
    maker = t.last_maker
    if from_last(v, left, left_source, real):
        side = u32(SIDE_CONSTANT) if right_source == FROM_IMMEDIATE else u32(SIDE_LEFT)
    elif left_source != FROM_IMMEDIATE and from_last(v, right, right_source, real):
        side = SIDE_RIGHT
    step = stepped_by_last(v, left, left_source)
    if (t.entries + right).kind == LOCAL and (t.entries + right).index + 1 == step:
        # Both are the local's new value; the pair reads what it compares with before it writes that.
        step = 0
    if step != 0:
        compared = t.stepped
        side = u32(SIDE_CONSTANT) if right_source == FROM_IMMEDIATE else u32(SIDE_LEFT)
    left_slot, right_slot = slot_of(v, left), slot_of(v, right)
    first = right_slot if left_source != FROM_SLOT else left_slot
    second = u64(right_slot)
    if left_source == FROM_IMMEDIATE:
        second = (t.entries + left).bits
    elif right_source == FROM_IMMEDIATE:
        second = (t.entries + right).bits
    take(v, right, right_source, real)
    take(v, left, left_source, real)
    cell = produce(v, left, u32(operation_base[opcode]) + variant * 2, 24, is_real(u32(result_of[opcode])))
    store(cell, first, 12)
    store(cell, second, 16)
    note_comparison(v, opcode, 2, variant)
    note_compared(v, compared, maker, side, step)
    if kind != I64 or second <= 0xFFFF_FFFF:
        t.last_maker = u32(maker_of[opcode * MAKER_DIGITS + variant])


@native
def unary(v: ptr[Validator], opcode: u32) -> None:
    """An operation on one operand."""
    height = v.height - 1
    kind = u32(operand_type[opcode])
    real = is_real(kind)
    if source_of(v, height, real) == FROM_IMMEDIATE:
        load_constant(v, height, kind)
    source = source_of(v, height, real)
    slot = slot_of(v, height)
    t = state(v)
    compared, maker = t.last, t.last_maker
    side = u32(SIDE_LEFT) if from_last(v, height, source, real) else u32(NONE)
    step = stepped_by_last(v, height, source)
    if step != 0:
        compared = t.stepped
    take(v, height, source, real)
    cell = produce(v, height, u32(operation_base[opcode]) + source * 2, 16, is_real(u32(result_of[opcode])))
    store(cell, slot, 12)
    note_comparison(v, opcode, 1, source)
    note_compared(v, compared, maker, side, step)
    t.last_maker = u32(maker_of[opcode * MAKER_DIGITS + source])


@inline
def note_comparison(v, opcode, arity, variant):
    """Remember a comparison that a branch could take over."""
    t = state(v)
    if branch_base[opcode] != 0:
        t.last_opcode = opcode
        t.last_arity = arity
        t.last_variant = variant


@native
def select(v: ptr[Validator], kind: u32) -> None:
    """`select`: the condition may be in the accumulator, the values are in slots."""
    height = v.height - 1
    condition = v.height + 1
    settle_constants(v, height, condition)
    if source_of(v, condition, False) == FROM_IMMEDIATE:
        load_constant(v, condition, I32)
    source = source_of(v, condition, False)
    condition_slot = slot_of(v, condition)
    left, right = slot_of(v, height), slot_of(v, height + 1)
    take(v, condition, source, False)
    forget_use(v, height + 1)
    forget_use(v, height)
    cell = produce(v, height, SELECT + class_of(kind) * 4 + source * 2, 24, is_real(kind))
    store(cell, condition_slot, 12)
    store(cell, left, 16)
    store(cell, right, 20)


@native
def settle_constants(v: ptr[Validator], first: u32, last: u32) -> None:
    """Put the constants among the operands at these heights into their slots."""
    t = state(v)
    for height in range(first, last):
        if (t.entries + height).kind == CONSTANT:
            settle(v, height, height + 1)


@native
def drop(v: ptr[Validator]) -> None:
    """`drop`: the operand was popped."""
    forget_use(v, v.height)


# ---------------------------------------------------------------- memory


@inline
def is_general(v, memory):
    """Whether accesses to a memory go through the general handlers."""
    return memory != 0 or v.module.memories[memory].is_64


@native
def load(v: ptr[Validator], opcode: u32, memory: u32, offset: u64) -> None:
    """A load."""
    t = state(v)
    height = v.height - 1
    real = is_real(u32(access_type[opcode]))
    if is_general(v, memory):
        settle_constants(v, height, height + 1)
        slot = slot_of(v, height)
        forget_use(v, height)
        cell = produce(v, height, u32(general_access[opcode]), 32, real)
        store(cell, slot, 12)
        store(cell, offset, 16)
        store(cell, memory, 24)
        store(cell, u32(v.module.memories[memory].is_64), 28)
        return
    pair = pair_with_access(v, opcode, 0, height, offset)
    if pair != 0:
        become_producer(v, pair, u32(offset), height, real, v.at)
        return
    source = source_of(v, height, False)
    slot = slot_of(v, height)
    if source == FROM_IMMEDIATE:
        offset += (t.entries + height).bits
    take(v, height, source, False)
    explicit = u32(t.variant & EXPLICIT != 0)
    cell = produce(v, height, u32(access_base[opcode]) + (explicit * 3 + source) * 2, 24, real)
    store(cell, slot, 12)
    store(cell, offset, 16)
    if explicit == 0 and source != FROM_IMMEDIATE and offset <= 0xFFFF_FFFF:
        t.last_maker = u32(maker_of[opcode * MAKER_DIGITS + source])


@native
def store_(v: ptr[Validator], opcode: u32, memory: u32, offset: u64) -> None:
    """A store: address and value were popped."""
    t = state(v)
    address, value = v.height, v.height + 1
    kind = u32(access_type[opcode])
    real = is_real(kind)
    if is_general(v, memory):
        settle_constants(v, address, value + 1)
        address_slot, value_slot = slot_of(v, address), slot_of(v, value)
        forget_use(v, value)
        forget_use(v, address)
        cell = emit(v, u32(general_access[opcode]), 32)
        store(cell, value_slot, 8)
        store(cell, address_slot, 12)
        store(cell, offset, 16)
        store(cell, memory, 24)
        store(cell, u32(v.module.memories[memory].is_64), 28)
        return
    if source_of(v, address, False) == FROM_IMMEDIATE and source_of(v, value, real) == FROM_IMMEDIATE:
        load_constant(v, value, kind)
    address_source, value_source = source_of(v, address, False), source_of(v, value, real)
    if not real and address_source == FROM_ACCUMULATOR and value_source == FROM_ACCUMULATOR:
        address_source = FROM_SLOT
    address_slot, value_slot = slot_of(v, address), slot_of(v, value)
    if value_source != FROM_IMMEDIATE and address_source == FROM_ACCUMULATOR:
        pair = pair_with_access(v, opcode, value_source, address, offset)
        if pair != 0:
            take(v, value, value_source, real)
            forget_use(v, address)
            become_pair(v, pair, u32(offset), value_slot, v.at)
            t.last = NONE
            return
    if fuse_value(v, opcode, offset, address, address_source, value, value_source, real):
        return
    if opcode == I32_STORE and value_source == FROM_SLOT and address_source == FROM_ACCUMULATOR:
        if store_in_prologue(v, offset, address, value):
            return
    bits = (t.entries + value).bits
    if address_source == FROM_IMMEDIATE:
        offset += (t.entries + address).bits
    take(v, value, value_source, real)
    take(v, address, address_source, False)
    explicit = u32(t.variant & EXPLICIT != 0)
    number = u32(access_base[opcode]) + explicit * 9 + value_source * 3 + address_source
    size = u32(32) if value_source == FROM_IMMEDIATE else u32(24)
    cell = emit(v, number, size)
    store(cell, value_slot, 8)
    store(cell, address_slot, 12)
    store(cell, offset, 16)
    if value_source == FROM_IMMEDIATE:
        store(cell, bits, 24)


# ---------------------------------------------------------------- globals and services


@inline
def global_place(v, index):
    """An own global's byte offset from the instance, or an imported one's index."""
    own = u32(OWN_GLOBALS) + (index - v.module.imported_globals) * 16
    return index if index < v.module.imported_globals else own


@native
def global_get(v: ptr[Validator], index: u32) -> None:
    """`global.get`."""
    kind = v.module.globals[index].kind
    imported = u32(index < v.module.imported_globals)
    cell = produce(v, v.height - 1, GLOBAL_GET + class_of(kind) * 4 + imported * 2, 16, is_real(kind))
    store(cell, global_place(v, index), 12)
    if kind == I32 and imported == 0:
        state(v).last_maker = OWN_GLOBAL


@native
def global_set(v: ptr[Validator], index: u32) -> None:
    """`global.set`: the value was popped."""
    kind = v.module.globals[index].kind
    real = is_real(kind)
    if source_of(v, v.height, real) == FROM_IMMEDIATE:
        load_constant(v, v.height, kind)
    source = source_of(v, v.height, real)
    imported = u32(index < v.module.imported_globals)
    if kind == I32 and imported == 0 and source == FROM_ACCUMULATOR:
        if set_in_prologue(v, global_place(v, index)) or become_epilogue(v, global_place(v, index)):
            return
    slot = slot_of(v, v.height)
    take(v, v.height, source, real)
    cell = emit(v, GLOBAL_SET + class_of(kind) * 4 + imported * 2 + source, 16)
    store(cell, slot, 8)
    store(cell, global_place(v, index), 12)


@native
def service(v: ptr[Validator], number: u32, pops: u32, pushes: bool, one: u32, two: u32, wide: u32) -> None:
    """An operation that takes its operands from slots in a row."""
    t = state(v)
    first = v.height - u32(pushes)
    settle(v, first, first + pops)
    cell = emit(v, number, 24)
    slot = operand_slot(t, first)
    store(cell, slot, 8)
    store(cell, one, 12)
    store(cell, two, 16)
    store(cell, wide, 20)
    if pushes:
        set_in_slot(v, first)
        overwritten(t, slot)
        t.integer.slot = slot
        t.integer.cell = NONE
