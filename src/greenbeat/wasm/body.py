"""The instructions: one pass over a function's body that validates it and, for a translator, says what it meets.

`function_pass(emit)` makes the pass. `emit` is None for validation alone, or a namespace of native functions, each
named after what has just been validated; it is called in reachable code only, when operand types have been popped and
pushed already. https://webassembly.github.io/spec/core/valid/instructions.html
"""

from greenbeat.native import inline, native, ptr, stack, table, u8, u32, u64, unlikely
from greenbeat.runtime.layout import HEADER_SLOTS, SLOT, header_slot
from greenbeat.wasm.body_calls import call_pass, function_signature
from greenbeat.wasm.body_exceptions import exception_pass, read_block_type
from greenbeat.wasm.body_extended import extended_pass, memory_type, unknown_instruction
from greenbeat.wasm.ops import LOADS, OPERATIONS, STORES
from greenbeat.wasm.reader import (
    Reader,
    failed,
    malformed,
    read_byte,
    read_fixed_u32,
    read_fixed_u64,
    read_i32,
    read_i64,
    read_u32,
    read_u64,
)
from greenbeat.wasm.types import read_heap_type, read_value_type
from greenbeat.wasm.validator import (
    BLOCK,
    ELSE,
    FUNCTION_BODY,
    IF,
    LOOP,
    Validator,
    broken,
    check_label,
    check_results,
    check_table_label,
    label,
    label_count,
    label_type,
    local_type,
    mismatch,
    note_set,
    open_block,
    param_count,
    pop,
    pop_any,
    pop_params,
    pop_reference,
    push,
    read_locals,
    result_count,
    result_type,
    set_unreachable,
    unset_locals,
)
from greenbeat.wasm.valuetypes import (
    BOTTOM,
    F32,
    F64,
    I32,
    I64,
    NULLABLE,
    REFERENCE,
    is_reference,
    matches,
)

OPCODES = 0x110
arity = table(u8, [len(OPERATIONS[o].params) if o in OPERATIONS else 0 for o in range(OPCODES)], name="arity")
operand_type = table(
    u8, [OPERATIONS[o].operand_type if o in OPERATIONS else 0 for o in range(OPCODES)], name="operand_type"
)
result_of = table(u8, [OPERATIONS[o].result_type if o in OPERATIONS else 0 for o in range(OPCODES)], name="result_of")
_accesses = LOADS | STORES
access_type = table(u8, [_accesses[o].value_type if o in _accesses else 0 for o in range(OPCODES)], name="access_type")
access_bits = table(
    u8, [_accesses[o].stored.size.bit_length() - 1 if o in _accesses else 0 for o in range(OPCODES)], name="access_bits"
)


@native
def global_type(v: ptr[Validator], index: u32) -> u32:
    """A global's type; BOTTOM after a failure."""
    if unlikely(index >= v.module.global_count):
        broken(v, "unknown global {number}: the module has {number}", index, v.module.global_count)
        return BOTTOM
    return v.module.globals[index].kind


@native
def read_memory_argument(v: ptr[Validator], r: ptr[Reader], bits: u32, offset: ptr[u64]) -> u32:
    """Alignment, memory index and offset of a load or store; returns the memory's index."""
    flags = read_u32(r)
    if failed(r):
        return 0
    if flags >= 128:
        malformed(r, "malformed memop flags")
        return 0
    memory: u32 = 0
    if flags & 64 != 0:
        memory = read_u32(r)
    is_64 = memory_type(v, memory) == I64
    if failed(r):
        return 0
    if flags & 63 > bits:
        broken(v, "alignment must not be larger than natural: at most 2**{number}, not 2**{number}", bits, flags & 63)
        return 0
    if is_64:
        offset[0] = read_u64(r)
    else:
        offset[0] = read_u64(r)
        if offset[0] > 0xFFFF_FFFF:
            broken(v, "offset out of range: {number} does not fit 32 bits", offset[0], 0)
    return memory


def function_pass(emit):
    """The pass over one body, with what `emit` wants to hear of."""

    @inline
    def emitting(v):
        return emit is not None and v.control.reachable

    extended = extended_pass(emit)
    calls = call_pass(emit)
    exceptions = exception_pass(emit)

    @native
    def begin_block(v: ptr[Validator], r: ptr[Reader], kind: u32) -> None:
        """`block`, `loop` and `if`: the block's type, its parameters, and the new block."""
        single = stack(u32)
        signature = read_block_type(v, r, single)
        if failed(r):
            return
        if kind == IF:
            pop(v, I32)
        if signature is not None:
            pop_params(v, signature)
        if failed(r):
            return
        if emit is not None:
            if v.control.reachable:
                if kind == IF:
                    emit.begin_if(v, 0 if signature is None else signature.param_count)
                else:
                    emit.begin_block(v, kind, 0 if signature is None else signature.param_count)
        open_block(v, kind, signature, single[0])
        if emit is not None:
            if v.control.reachable:
                emit.opened(v)

    @native
    def begin_else(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`else`."""
        control = v.control
        if control.kind != IF:
            malformed(r, "`else` without an open `if`")
            return
        if not check_results(v):
            return
        if emit is not None:
            if control.entered:
                emit.begin_else(v)
        unset_locals(v, control.set_height)
        control.kind = ELSE
        control.reachable = control.entered
        control.polymorphic = False
        v.height = control.height
        for i in range(param_count(control)):
            push(v, control.signature.params[i])

    @native
    def end_block(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`end` of a block, or of the function."""
        control = v.control
        if not check_results(v):
            return
        if control.kind == IF:
            if param_count(control) != result_count(control):
                broken(v, "type mismatch: an `if` without `else` must leave what it takes", 0, 0)
                return
            for i in range(param_count(control)):
                if not matches(control.signature.params[i], result_type(control, i)):
                    mismatch(v, result_type(control, i), control.signature.params[i])
                    return
        unset_locals(v, control.set_height)
        if emit is not None:
            if control.entered:
                emit.end_block(v)
        v.depth -= 1
        v.height = control.height
        if v.depth != 0:
            v.control = v.controls + (v.depth - 1)
            for i in range(result_count(control)):
                push(v, result_type(control, i))

    @native
    def branch_table(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`br_table`: all targets take the same number of operands, of fitting types."""
        pop(v, I32)
        at = r.position
        count = read_u32(r)
        if u64(count) > u64(r.end - r.position):
            malformed(r, "unexpected end: the table of branches is longer than the function")
            return
        if count > 65520:
            broken(v, "implementation limit exceeded: at most 65,520 targets of a `br_table`", 0, 0)
            return
        expected: u32 = 0
        for i in range(count + 1):
            target = label(v, read_u32(r))
            if failed(r):
                return
            if i == 0:
                expected = label_count(target)
            elif label_count(target) != expected:
                broken(
                    v,
                    "type mismatch: targets of `br_table` take {number} and {number} values",
                    expected,
                    label_count(target),
                )
                return
            check_table_label(v, target)
        if failed(r):
            return
        if emit is not None:
            if v.control.reachable:
                after = r.position
                r.position = at
                emit.branch_table(v, r)
                r.position = after
        set_unreachable(v)

    @native
    def check_return(v: ptr[Validator]) -> None:
        """The function's results are there."""
        body = v.controls
        count = result_count(body)
        for i in range(count):
            pop(v, result_type(body, count - 1 - i))

    @native
    def select_typed(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`select` with its type written out."""
        if read_u32(r) != 1:
            broken(v, "invalid result arity: `select` has one result", 0, 0)
            return
        kind = read_value_type(v.module, r)
        if failed(r):
            return
        pop(v, I32)
        pop(v, kind)
        pop(v, kind)
        push(v, kind)
        if emitting(v):
            emit.select(v, kind)

    @native
    def select_untyped(v: ptr[Validator]) -> None:
        """`select` of two numbers of one type."""
        pop(v, I32)
        first = pop_any(v)
        second = pop_any(v)
        if is_reference(first) or is_reference(second):
            broken(v, "type mismatch: `select` of references needs its type written out", 0, 0)
            return
        if first != second and first != BOTTOM and second != BOTTOM:
            mismatch(v, first, second)
            return
        push(v, second if first == BOTTOM else first)
        if emitting(v):
            emit.select(v, first)

    @native
    def reference_instruction(v: ptr[Validator], r: ptr[Reader], opcode: u32) -> None:
        """Instructions on references, from 0xD0 to 0xD6."""
        match opcode:
            case 0xD0:
                heap = read_heap_type(v.module, r)
                push(v, REFERENCE | NULLABLE | heap)
                if emitting(v):
                    emit.constant(v, 0)
            case 0xD1:
                pop_reference(v)
                push(v, I32)
                if emitting(v):
                    emit.unary(v, 0x50)
            case 0xD2:
                index = read_u32(r)
                signature = function_signature(v, index)
                if failed(r):
                    return
                if v.module.declared is None or u32(v.module.declared[index >> 3] >> u8(index & 7)) & 1 == 0:
                    broken(v, "undeclared function reference {number}", index, 0)
                    return
                push(v, REFERENCE | signature.number)
                if emitting(v):
                    emit.service(v, emit.REF_FUNC, 0, True, index, 0, 0)
            case 0xD4:
                kind = pop_reference(v)
                push(v, kind if kind == BOTTOM else kind & ~u32(NULLABLE))
                if emitting(v):
                    emit.as_non_null(v)
            case 0xD5:
                target = label(v, read_u32(r))
                if failed(r):
                    return
                kind = pop_reference(v)
                check_label(v, target)
                push(v, kind if kind == BOTTOM else kind & ~u32(NULLABLE))
                if failed(r):
                    return
                if emitting(v):
                    emit.branch_on_null(v, target)
            case 0xD6:
                target = label(v, read_u32(r))
                if failed(r):
                    return
                count = label_count(target)
                if count == 0 or label_type(target, count - 1) < REFERENCE:
                    broken(v, "type mismatch: `br_on_non_null` goes to a block whose last result is a reference", 0, 0)
                    return
                kind = pop_reference(v)
                push(v, kind if kind == BOTTOM else kind & ~u32(NULLABLE))
                check_label(v, target)
                pop_any(v)
                if failed(r):
                    return
                if emitting(v):
                    emit.branch_on_non_null(v, target)
            case _:
                unknown_instruction(v, r, opcode)

    @native
    def validate_body(v: ptr[Validator], r: ptr[Reader]) -> bool:
        """Validate one body, between the reader's position and its end."""
        if not read_locals(v):
            return False
        v.height = 0
        v.highest = 0
        v.depth = 0
        open_block(v, FUNCTION_BODY, v.function.signature, 0)
        if emit is not None:
            if not emit.begin(v):
                return False
        while v.depth != 0:
            v.at = r.position
            opcode = read_byte(r)
            if emit is not None:
                if not emit.instruction(v):
                    return False
            if opcode >= 0x45 and opcode <= 0xC4:
                count = arity[opcode]
                kind = u32(operand_type[opcode])
                pop(v, kind)
                if count == 2:
                    pop(v, kind)
                push(v, u32(result_of[opcode]))
                if emit is not None:
                    if v.control.reachable:
                        if count == 2:
                            emit.binary(v, opcode)
                        else:
                            emit.unary(v, opcode)
            elif opcode >= 0x28 and opcode <= 0x3E:
                access(v, r, opcode)
            else:
                other_instruction(v, r, opcode)
            if failed(r):
                return False
            if v.height > v.highest:
                v.highest = v.height
        if r.position != r.end:
            malformed(r, "section size mismatch: the function's body goes on behind its end")
            return False
        locals_end = header_slot(v.function.signature.param_count)
        if v.local_count > locals_end:
            locals_end = v.local_count
        v.function.frame_size = (locals_end + HEADER_SLOTS + v.highest) * SLOT
        if emit is not None:
            return emit.finish(v)
        return True

    @native
    def access(v: ptr[Validator], r: ptr[Reader], opcode: u32) -> None:
        """A load or store."""
        offset = stack(u64)
        memory = read_memory_argument(v, r, u32(access_bits[opcode]), offset)
        if failed(r):
            return
        kind, address = u32(access_type[opcode]), memory_type(v, memory)
        if opcode < 0x36:
            pop(v, address)
            push(v, kind)
            if emitting(v):
                emit.load(v, opcode, memory, offset[0])
        else:
            pop(v, kind)
            pop(v, address)
            if emitting(v):
                emit.store(v, opcode, memory, offset[0])

    @native
    def other_instruction(v: ptr[Validator], r: ptr[Reader], opcode: u32) -> None:
        """Everything that is no numeric operation, load or store."""
        match opcode:
            case 0x00:
                if emitting(v):
                    emit.unreachable(v)
                set_unreachable(v)
            case 0x01:
                if emitting(v):
                    emit.nop(v)
            case 0x02:
                begin_block(v, r, BLOCK)
            case 0x03:
                begin_block(v, r, LOOP)
            case 0x04:
                begin_block(v, r, IF)
            case 0x05:
                begin_else(v, r)
            case 0x08:
                exceptions.throw(v, r)
            case 0x0A:
                exceptions.throw_reference(v)
            case 0x0B:
                end_block(v, r)
            case 0x0C:
                target = label(v, read_u32(r))
                if failed(r):
                    return
                check_label(v, target)
                if failed(r):
                    return
                if emitting(v):
                    emit.branch(v, target)
                set_unreachable(v)
            case 0x0D:
                target = label(v, read_u32(r))
                if failed(r):
                    return
                pop(v, I32)
                check_label(v, target)
                if failed(r):
                    return
                if emitting(v):
                    emit.branch_if(v, target)
            case 0x0E:
                branch_table(v, r)
            case 0x0F:
                check_return(v)
                if emitting(v):
                    emit.return_(v)
                set_unreachable(v)
            case 0x10:
                calls.call_function(v, r, False)
            case 0x11:
                calls.call_table(v, r, False)
            case 0x12:
                calls.call_function(v, r, True)
            case 0x13:
                calls.call_table(v, r, True)
            case 0x14:
                calls.call_reference(v, r, False)
            case 0x15:
                calls.call_reference(v, r, True)
            case 0x1A:
                pop_any(v)
                if emitting(v):
                    emit.drop(v)
            case 0x1B:
                select_untyped(v)
            case 0x1C:
                select_typed(v, r)
            case 0x1F:
                exceptions.try_table(v, r)
            case 0x20:
                index = read_u32(r)
                kind = local_type(v, index)
                if failed(r):
                    return
                if unlikely(v.unset[index] != 0):
                    broken(v, "uninitialized local {number}: it has no default and is not set yet", index, 0)
                    return
                push(v, kind)
                if emitting(v):
                    emit.local_get(v, index)
            case 0x21:
                index = read_u32(r)
                pop(v, local_type(v, index))
                note_set(v, index)
                if emitting(v):
                    emit.local_set(v, index)
            case 0x22:
                index = read_u32(r)
                kind = local_type(v, index)
                pop(v, kind)
                push(v, kind)
                note_set(v, index)
                if emitting(v):
                    emit.local_tee(v, index)
            case 0x23:
                index = read_u32(r)
                push(v, global_type(v, index))
                if emitting(v):
                    emit.global_get(v, index)
            case 0x24:
                index = read_u32(r)
                kind = global_type(v, index)
                if failed(r):
                    return
                if not v.module.globals[index].mutable:
                    broken(v, "global {number} is immutable", index, 0)
                    return
                pop(v, kind)
                if emitting(v):
                    emit.global_set(v, index)
            case 0x41:
                number = read_i32(r)
                push(v, I32)
                if emitting(v):
                    emit.constant(v, u64(u32(number)))
            case 0x42:
                wide = read_i64(r)
                push(v, I64)
                if emitting(v):
                    emit.constant(v, u64(wide))
            case 0x43:
                bits = read_fixed_u32(r)
                push(v, F32)
                if emitting(v):
                    emit.constant(v, u64(bits))
            case 0x44:
                wide_bits = read_fixed_u64(r)
                push(v, F64)
                if emitting(v):
                    emit.constant(v, wide_bits)
            case 0xD0 | 0xD1 | 0xD2 | 0xD4 | 0xD5 | 0xD6:
                reference_instruction(v, r, opcode)
            case _:
                extended(v, r, opcode)

    return validate_body
