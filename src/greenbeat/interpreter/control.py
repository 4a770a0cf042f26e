"""Translation of control: blocks, branches, and the comparisons that become part of them.

A branch's target word holds the distance from itself to the target. Until the target is known it holds the offset of
the next such word, so that a block's forward branches are a chain:

    Control.branches ─▶ word ─▶ word ─▶ 0

The two low bits of such an offset tell that the word is an unconditional branch's, and that a copy of its one operand
stands right before it: if the label turns out to be followed by a return, these become returns themselves.

Operands that a branch takes along are moved, if they are not in place, by plain cells on the branch's own path.
"""

from greenbeat.interpreter.handlers import (
    BRANCH,
    BRANCH_TABLE,
    BRANCH_USERS,
    CHARGE,
    COPY_MANY_PLAIN,
    NULL_REFERENCE,
    RETURN_NOTHING,
    RETURN_VALUE,
    UNREACHABLE,
    USER_DIGITS,
    branch_base,
    branch_user_of,
    fused_branch_base,
    step_base,
    swapped_comparison,
)
from greenbeat.interpreter.pairs import SIDE_CONSTANT, SIDE_LEFT, SIDE_RIGHT, from_last
from greenbeat.interpreter.returns import near, return_from
from greenbeat.interpreter.translation import (
    CONSTANT,
    FROM_IMMEDIATE,
    IN_SLOT,
    NONE,
    barrier,
    class_of,
    emit,
    flush,
    forget_use,
    local_slot,
    move_plain,
    operand_slot,
    overwritten,
    set_in_slot,
    settle,
    slot_of,
    source_of,
    state,
    take,
)
from greenbeat.interpreter.values import load_constant
from greenbeat.native import i32, inline, load, native, ptr, store, u32, u64
from greenbeat.runtime.layout import METERED, SLOT
from greenbeat.wasm.reader import Reader, read_u32
from greenbeat.wasm.validator import (
    FUNCTION_BODY,
    IF,
    LOOP,
    Control,
    Validator,
    label,
    label_count,
    param_count,
    result_count,
)
from greenbeat.wasm.valuetypes import I32, I64

I32_EQZ, I64_EQZ = 0x45, 0x50
UNCONDITIONAL, COPIED = 1, 2
# A branch that takes more operands along has them in their slots and moves them at once: its code stays short, however
# often it is written.
MOVED_ONE_BY_ONE = 8

# ---------------------------------------------------------------- runs: what is paid for at once


@native
def end_run(v: ptr[Validator]) -> None:
    """The straight-line run is over: its price goes into the cell at its start."""
    t = state(v)
    if t.charge != NONE:
        store(t.code + t.charge, t.charged, 8)
        t.charge = NONE


@native
def start_run(v: ptr[Validator]) -> None:
    """A new run starts here."""
    end_run(v)
    t = state(v)
    if t.variant & METERED != 0:
        t.charge = t.size
        t.charged = 0
        emit(v, CHARGE, 16)


# ---------------------------------------------------------------- labels


@native
def link(v: ptr[Validator], word: u32, target: u32) -> None:
    """Let a target word point to a cell."""
    store(state(v).code, i32(target) - i32(word), word)


@native
def bind(v: ptr[Validator], word: u32) -> None:
    """Let a chain of target words point to the next cell."""
    t = state(v)
    while word != 0:
        place = word & ~u32(UNCONDITIONAL | COPIED)
        following = load(u32, t.code, place)
        link(v, place, t.size)
        word = following


@native
def bind_here(v: ptr[Validator], word: u32) -> None:
    """Let one target word point to the next cell."""
    link(v, word, state(v).size)


@native
def aim(v: ptr[Validator], word: u32, target: ptr[Control], marks: u32) -> None:
    """Let a target word point to a block's label: a loop's start, or one day its end."""
    if target.kind == LOOP:
        link(v, word, target.start)
    else:
        store(state(v).code, target.branches, word)
        target.branches = word | marks


@native
def jump(v: ptr[Validator], target: ptr[Control], copied: bool) -> None:
    """Append an unconditional branch; `copied` tells that the cell before it copies its one operand."""
    at = state(v).size
    emit(v, BRANCH + u32(target.kind == LOOP), 16)
    marks = u32(UNCONDITIONAL)
    if copied:
        marks |= COPIED
    aim(v, at + 8, target, marks)


@native
def become_returns(v: ptr[Validator], word: u32) -> u32:
    """A return follows the label of a chain: its unconditional branches become returns.

    Gives what is left of the chain.
    """
    t = state(v)
    signature = v.function.signature
    left: u32 = 0
    while word != 0:
        place = word & ~u32(UNCONDITIONAL | COPIED)
        following = load(u32, t.code, place)
        if word & UNCONDITIONAL == 0:
            store(t.code, left, place)
            left = word
        else:
            cell = t.code + (place - 8)
            number = RETURN_NOTHING + near(v)
            slot: u32 = 0
            if signature.result_count == 1:
                number = RETURN_VALUE + class_of(signature.results[0]) * 4 + near(v)
                slot = operand_slot(t, v.control.height)
                if word & COPIED != 0:
                    cell = t.code + (place - 24)
                    slot = load(u32, cell, 12)
            store(cell, number)
            store(cell, t.header, 8)
            store(cell, slot, 12)
        word = following
    return left


@native
def return_follows(v: ptr[Validator]) -> bool:
    """Whether the instruction after a block's end returns from the function, with at most one result."""
    r = v.reader
    count = result_count(v.control)
    if count > 1 or count != v.function.signature.result_count or r.position >= r.end:
        return False
    following = r.position[0]
    return following == 0x0F or (following == 0x0B and v.depth == 2)


@native
def in_place(v: ptr[Validator], target: ptr[Control], base: u32) -> bool:
    """Whether the operands from `base` on are where a branch to `target` needs them."""
    t = state(v)
    count = label_count(target)
    if count != 0 and base != target.height:
        return False
    for i in range(count):
        if (t.entries + base + i).kind != IN_SLOT:
            return False
    return True


@native
def move_operands(v: ptr[Validator], target: ptr[Control], base: u32) -> None:
    """Append the moves that a branch needs; the entries stay as they are, for who does not branch.

    Many operands are in their slots already, if somebody may not branch.
    """
    t = state(v)
    count = label_count(target)
    if count > MOVED_ONE_BY_ONE:
        settle(v, base, base + count)
        if base != target.height:
            cell = emit(v, COPY_MANY_PLAIN, 24)
            store(cell, operand_slot(t, target.height), 8)
            store(cell, operand_slot(t, base), 12)
            store(cell, u64(count) * SLOT, 16)
            t.integer.cell = NONE
            t.real.cell = NONE
        return
    for i in range(count):
        move_plain(v, base + i, operand_slot(t, target.height + i))


@native
def branch_from(v: ptr[Validator], target: ptr[Control], base: u32, always: bool) -> None:
    """Append everything that a branch is once it is taken; one to the function's body is a return."""
    if target.kind == FUNCTION_BODY:
        return_from(v, base, always)
    else:
        copied = is_copied(v, target, base)
        move_operands(v, target, base)
        jump(v, target, copied and alone(v))


@native
def alone(v: ptr[Validator]) -> bool:
    """Whether the last cell is a plain copy of one operand."""
    return state(v).copied != NONE


@native
def is_copied(v: ptr[Validator], target: ptr[Control], base: u32) -> bool:
    """Whether the moves of a branch are the copy of one operand."""
    t = state(v)
    if label_count(target) != 1 or (t.entries + base).kind == CONSTANT:
        return False
    return slot_of(v, base) != operand_slot(t, target.height)


# ---------------------------------------------------------------- conditions


@native
def take_condition(v: ptr[Validator], height: u32, opcode: u32, negated: bool) -> None:
    """Note a branch's condition: the test `opcode` of the operand at a height, or the comparison that just made it.

    `opcode` is a test for zero; with `negated` the branch is taken where the test fails.
    """
    t = state(v)
    condition = t.condition
    condition.negated = negated
    condition.fused = 0
    condition.step = 0
    if opcode == I32_EQZ and t.last != NONE and t.last_opcode != 0 and (t.entries + height).kind == IN_SLOT:
        if t.integer.slot == operand_slot(t, height):
            cell = t.code + t.last
            condition.opcode = t.last_opcode
            condition.arity = t.last_arity
            condition.variant = t.last_variant
            condition.first = load(u32, cell, 12)
            condition.second = load(u64, cell, 16)
            condition.negated = not negated
            fuse_comparison(v)
            t.size = t.compared if condition.fused != 0 else t.last
            t.last = NONE
            t.last_opcode = 0
            t.last_maker = 0
            t.last_pair = 0
            t.integer.slot = NONE
            t.integer.cell = NONE
            return
    if source_of(v, height, False) == FROM_IMMEDIATE:
        load_constant(v, height, u32(I32) if opcode == I32_EQZ else u32(I64))
    condition.opcode = opcode
    condition.arity = 1
    condition.variant = source_of(v, height, False)
    condition.first = slot_of(v, height)
    if opcode == I32_EQZ and t.last_maker != 0 and from_last(v, height, condition.variant, False):
        fuse_condition(v, t.last, t.last_maker, u32(branch_user_of[opcode * USER_DIGITS]))
        if condition.fused != 0:
            t.size = t.last
            t.last = NONE
            t.last_maker = 0
            t.last_pair = 0
            t.integer.slot = NONE
            t.integer.cell = NONE


@native
def fuse_condition(v: ptr[Validator], at: u32, maker: u32, user: u32) -> None:
    """Let the maker in the cell at an offset take part in the branch, if there is such a pair."""
    t = state(v)
    condition = t.condition
    condition.fused = u32(fused_branch_base[maker * BRANCH_USERS + user])
    if condition.fused != 0:
        condition.first = load(u32, t.code + at, 12)
        condition.second = u64(load(u32, t.code + at, 16))


@native
def fuse_comparison(v: ptr[Validator]) -> None:
    """The same for what the comparison that was taken out compares."""
    t = state(v)
    condition = t.condition
    opcode, side = condition.opcode, t.compared_side
    if t.compared_step != 0:
        # Moves may come between; nobody may be waiting for the local's new value in them.
        if t.local_uses[t.compared_step - 1] != 0:
            return
        third = u32(condition.second) if side == SIDE_CONSTANT else condition.first
        condition.fused = u32(step_base[branch_user_of[opcode * USER_DIGITS + (0 if condition.arity == 1 else side)]])
        if condition.fused != 0:
            condition.step = t.compared_step
            condition.third = third
            condition.first = load(u32, t.code + t.compared, 12)
            condition.second = u64(load(u32, t.code + t.compared, 16))
        return
    if t.compared_maker == 0:
        return
    if side == SIDE_RIGHT:
        opcode, side = u32(swapped_comparison[opcode]), u32(SIDE_LEFT)
    third = u32(condition.second) if side == SIDE_CONSTANT else condition.first
    fuse_condition(v, t.compared, t.compared_maker, u32(branch_user_of[opcode * USER_DIGITS + side]))
    if condition.fused != 0:
        condition.third = third


@native
def branch_on_condition(v: ptr[Validator], flipped: bool, backward: bool) -> u32:
    """Append the conditional branch; returns its target word. What is in a slot now is needed on two paths."""
    t = state(v)
    condition = t.condition
    negated = condition.negated != flipped
    if condition.fused != 0:
        place = t.size + 8
        pair = emit(v, condition.fused + u32(negated) * 2 + u32(backward), u32(24) if condition.step == 0 else u32(32))
        store(pair, condition.first, 12)
        store(pair, u32(condition.second), 16)
        store(pair, condition.third, 20)
        if condition.step != 0:
            slot = local_slot(v, condition.step - 1)
            store(pair, u64(slot), 24)
            overwritten(t, slot)
            t.integer.slot = slot
        t.integer.cell = NONE
        t.real.cell = NONE
        return place
    size = u32(24) if condition.arity == 2 else u32(16)
    number = u32(branch_base[condition.opcode]) + condition.variant * 4 + u32(negated) * 2 + u32(backward)
    at = t.size
    cell = emit(v, number, size)
    store(cell, condition.first, 12)
    if condition.arity == 2:
        store(cell, condition.second, 16)
    t.integer.cell = NONE
    t.real.cell = NONE
    return at + 8


@native
def settle_many(v: ptr[Validator], target: ptr[Control], base: u32) -> None:
    """Many operands, or several results of the function, must be in their slots before the paths part."""
    count = label_count(target)
    if count > (u32(1) if target.kind == FUNCTION_BODY else u32(MOVED_ONE_BY_ONE)):
        settle(v, base, base + count)


@native
def conditional(v: ptr[Validator], target: ptr[Control], base: u32) -> None:
    """Append a conditional branch whose operands are from `base` on; the condition was taken."""
    settle_many(v, target, base)
    if target.kind != FUNCTION_BODY and in_place(v, target, base):
        aim(v, branch_on_condition(v, False, target.kind == LOOP), target, 0)
    else:
        t = state(v)
        word = branch_on_condition(v, True, False)
        branch_from(v, target, base, False)
        link(v, word, t.size)
        t.last = NONE
    start_run(v)


@native
def branch_if(v: ptr[Validator], target: ptr[Control]) -> None:
    """`br_if`: the condition was popped."""
    finish_condition(v, v.height, I32_EQZ)
    conditional(v, target, v.height - label_count(target))


@inline
def finish_condition(v, height, opcode):
    """Take a condition that is popped for good."""
    take_condition(v, height, opcode, True)
    t = state(v)
    if t.condition.arity == 1 and t.condition.opcode == opcode and t.condition.fused == 0:
        take(v, height, t.condition.variant, False)


@native
def branch_on_null(v: ptr[Validator], target: ptr[Control]) -> None:
    """`br_on_null`: the reference stays if it is none."""
    take_condition(v, v.height - 1, I64_EQZ, False)
    conditional(v, target, v.height - 1 - label_count(target))


@native
def branch_on_non_null(v: ptr[Validator], target: ptr[Control]) -> None:
    """`br_on_non_null`: the reference goes along as the last operand."""
    take_condition(v, v.height, I64_EQZ, True)
    conditional(v, target, v.height + 1 - label_count(target))
    forget_use(v, v.height)


@native
def as_non_null(v: ptr[Validator]) -> None:
    """`ref.as_non_null`: a branch around a trap."""
    t = state(v)
    take_condition(v, v.height - 1, I64_EQZ, True)
    word = branch_on_condition(v, False, False)
    emit(v, NULL_REFERENCE, 8)
    link(v, word, t.size)


# ---------------------------------------------------------------- blocks


@native
def begin_block(v: ptr[Validator], kind: u32, params: u32) -> None:
    """`block` and `loop`: what lies below must look the same on every path."""
    flush(v, v.height + params)


@native
def begin_if(v: ptr[Validator], params: u32) -> None:
    """`if`: the condition's branch goes to `else`, which is not known yet."""
    height = v.height + params
    finish_condition(v, height, I32_EQZ)
    flush(v, height)
    state(v).pending = branch_on_condition(v, True, False)


@native
def opened(v: ptr[Validator]) -> None:
    """The block is open."""
    t = state(v)
    control = v.control
    if control.kind == LOOP:
        end_run(v)
        barrier(v)
        control.start = t.size
        start_run(v)
    elif control.kind == IF:
        store(t.code, u32(0), t.pending)
        control.otherwise = t.pending
        start_run(v)


@native
def begin_else(v: ptr[Validator]) -> None:
    """`else`: the first side goes to the end."""
    control = v.control
    if control.reachable:
        copied = is_copied(v, control, control.height)
        flush(v, control.height + result_count(control))
        jump(v, control, copied and alone(v))
    end_run(v)
    bind(v, control.otherwise)
    control.otherwise = 0
    at_label(v, control.height, param_count(control))


@native
def at_label(v: ptr[Validator], height: u32, count: u32) -> None:
    """Branches meet here, with this many operands in their slots."""
    t = state(v)
    barrier(v)
    for i in range(count):
        set_in_slot(v, height + i)
    if t.flushed > height:
        t.flushed = height
    start_run(v)


@native
def close_try(v: ptr[Validator], control: ptr[Control]) -> None:
    """The body ends here: its clauses join those that are closed, which so are in order from the innermost outward."""
    t = state(v)
    for i in range(control.catch_count):
        clause = t.open + control.first_catch + i
        clause.start = control.covered_from
        clause.end = t.size
        to = t.closed + t.closed_catches
        t.closed_catches += 1
        to.start = clause.start
        to.end = clause.end
        to.landing = clause.landing
        to.slot = clause.slot
        to.tag = clause.tag
        to.by_reference = clause.by_reference
    t.open_catches = control.first_catch
    barrier(v)


@native
def end_block(v: ptr[Validator]) -> None:
    """`end`: of a block, or of the function, which returns."""
    control = v.control
    count = result_count(control)
    if control.kind == FUNCTION_BODY:
        if control.reachable:
            return_from(v, control.height, True)
        end_run(v)
        return
    if control.catch_count != 0:
        close_try(v, control)
    if control.branches != 0 and return_follows(v):
        control.branches = become_returns(v, control.branches)
    if control.reachable:
        flush(v, control.height + count)
    if control.branches != 0 or control.otherwise != 0 or not control.reachable:
        end_run(v)
        bind(v, control.branches)
        bind(v, control.otherwise)
        at_label(v, control.height, count)


# ---------------------------------------------------------------- branches


@native
def branch(v: ptr[Validator], target: ptr[Control]) -> None:
    """`br`."""
    branch_from(v, target, v.height - label_count(target), True)
    end_run(v)


@native
def unreachable(v: ptr[Validator]) -> None:
    """`unreachable`."""
    emit(v, UNREACHABLE, 8)
    end_run(v)


@native
def return_(v: ptr[Validator]) -> None:
    """`return`: the results were popped."""
    return_from(v, v.height, True)
    end_run(v)


@native
def branch_table(v: ptr[Validator], r: ptr[Reader]) -> None:
    """`br_table`: targets that need more than a jump get a cell of their own behind the table."""
    t = state(v)
    if source_of(v, v.height, False) == FROM_IMMEDIATE:
        load_constant(v, v.height, I32)
    source = source_of(v, v.height, False)
    slot = slot_of(v, v.height)
    take(v, v.height, source, False)
    start = r.position
    count = read_u32(r)
    taken = label_count(label(v, read_u32(r)))
    if taken > 1:
        settle(v, v.height - taken, v.height)
    r.position = start
    read_u32(r)
    at = t.size
    cell = emit(v, BRANCH_TABLE + source, 16 + ((count + 2) & ~u32(1)) * 4)
    store(cell, count, 8)
    store(cell, slot, 12)
    for i in range(count + 1):
        target = label(v, read_u32(r))
        if target.kind != FUNCTION_BODY and target.kind != LOOP and in_place(v, target, v.height - label_count(target)):
            aim(v, at + 16 + i * 4, target, 0)
    r.position = start
    read_u32(r)
    for i in range(count + 1):
        target = label(v, read_u32(r))
        base = v.height - label_count(target)
        if target.kind == FUNCTION_BODY or target.kind == LOOP or not in_place(v, target, base):
            link(v, at + 16 + i * 4, t.size)
            branch_from(v, target, base, False)
    end_run(v)
