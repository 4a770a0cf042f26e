"""Handlers of pure operations, and of branches fused with a comparison: made from the operations' meanings."""

from functools import cache

from greenbeat.interpreter.convention import (
    ACCUMULATOR,
    FIRST,
    IMMEDIATE,
    RESULT,
    SECOND,
    SLOT,
    finish,
    handler,
    proceed,
    read,
)
from greenbeat.interpreter.poll import branch_to
from greenbeat.native import i32, i64, load, ptr, u8, u64, v128
from greenbeat.runtime.layout import Instance, Task
from greenbeat.wasm.ops import OPERATIONS

# Where the two operands of a binary cell are; the order is part of the handlers' numbering.
BINARY_VARIANTS = (
    (SLOT, SLOT),
    (SLOT, IMMEDIATE),
    (ACCUMULATOR, SLOT),
    (SLOT, ACCUMULATOR),
    (ACCUMULATOR, IMMEDIATE),
    (IMMEDIATE, SLOT),
    (IMMEDIATE, ACCUMULATOR),
)
UNARY_VARIANTS = (SLOT, ACCUMULATOR)

# Comparisons with their operands exchanged, and integer comparisons that hold exactly when the other does not, as
# distances within each group: eqz eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u; eq ne lt gt le ge.
_INTEGER_SWAPPED = {1: 1, 2: 2, 3: 5, 4: 6, 5: 3, 6: 4, 7: 9, 8: 10, 9: 7, 10: 8}
_INTEGER_INVERSE = {1: 2, 2: 1, 3: 9, 4: 10, 5: 7, 6: 8, 7: 5, 8: 6, 9: 3, 10: 4}
_FLOAT_SWAPPED = {0: 0, 1: 1, 2: 3, 3: 2, 4: 5, 5: 4}
SWAPPED: dict[int, int] = {}
INVERSE: dict[int, int] = {}
for _first in (0x45, 0x50):
    SWAPPED |= {_first + a: _first + b for a, b in _INTEGER_SWAPPED.items()}
    INVERSE |= {_first + a: _first + b for a, b in _INTEGER_INVERSE.items()}
for _first in (0x5B, 0x61):
    SWAPPED |= {_first + a: _first + b for a, b in _FLOAT_SWAPPED.items()}


def exchange(opcode, left, right):
    """An equal operation with the operands exchanged, if there is one."""
    if opcode in SWAPPED:
        return SWAPPED[opcode], right, left
    if OPERATIONS[opcode].commutative:
        return opcode, right, left
    return opcode, left, right


def canonical(opcode, left, right):
    """One representative of the operand orders that mean the same."""
    if left == IMMEDIATE or (left == ACCUMULATOR and right == SLOT):
        return exchange(opcode, left, right)
    return opcode, left, right


def slots_at(left, right):
    """Where a binary cell has its operands: a lone slot is at FIRST, an immediate at SECOND."""
    if left == SLOT and right == SLOT:
        return FIRST, SECOND
    return (SECOND if left == IMMEDIATE else FIRST), (SECOND if right == IMMEDIATE else FIRST)


@cache
def unary(opcode, operand, to_slot):
    """A unary operation."""
    meaning, param, result = OPERATIONS[opcode].meaning, OPERATIONS[opcode].params[0], OPERATIONS[opcode].result

    @handler
    def run_unary(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = meaning(read(operand, param, FIRST, ip, sp, accumulator, float_accumulator))
        finish(result, value, to_slot, 16, ip, sp, accumulator, float_accumulator)

    return run_unary


def binary(opcode, left, right, to_slot):
    """A binary operation."""
    return _binary(*canonical(opcode, left, right), to_slot)


@cache
def _binary(opcode, left, right, to_slot):
    operation = OPERATIONS[opcode]
    meaning, result = operation.meaning, operation.result
    left_type, right_type = operation.params
    left_at, right_at = slots_at(left, right)

    @handler
    def run_binary(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        a = read(left, left_type, left_at, ip, sp, accumulator, float_accumulator)
        b = read(right, right_type, right_at, ip, sp, accumulator, float_accumulator)
        finish(result, meaning(a, b), to_slot, 24, ip, sp, accumulator, float_accumulator)

    return run_binary


def branch_binary(opcode, left, right, negated, backward):
    """A comparison and a conditional branch in one."""
    opcode, left, right = canonical(opcode, left, right)
    if negated and opcode in INVERSE:
        opcode, negated = INVERSE[opcode], False
    return _branch_binary(opcode, left, right, negated, backward)


@cache
def _branch_binary(opcode, left, right, negated, backward):
    operation = OPERATIONS[opcode]
    meaning = operation.meaning
    left_type, right_type = operation.params
    left_at, right_at = slots_at(left, right)

    @handler
    def run_branch_binary(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        a = read(left, left_type, left_at, ip, sp, accumulator, float_accumulator)
        b = read(right, right_type, right_at, ip, sp, accumulator, float_accumulator)
        taken = meaning(a, b) if not negated else not meaning(a, b)
        if taken:
            target = ip + RESULT + load(i32, ip, RESULT)
            return branch_to(target, backward, accumulator, float_accumulator)
        return proceed(ip + 24, accumulator, float_accumulator)

    return run_branch_binary


@cache
def branch_unary(opcode, operand, negated, backward):
    """A test of one value and a conditional branch in one; `br_if` itself is the negated test for zero."""
    meaning, param = OPERATIONS[opcode].meaning, OPERATIONS[opcode].params[0]

    @handler
    def run_branch_unary(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = read(operand, param, FIRST, ip, sp, accumulator, float_accumulator)
        taken = meaning(value) if not negated else not meaning(value)
        if taken:
            target = ip + RESULT + load(i32, ip, RESULT)
            return branch_to(target, backward, accumulator, float_accumulator)
        return proceed(ip + 16, accumulator, float_accumulator)

    return run_branch_unary
