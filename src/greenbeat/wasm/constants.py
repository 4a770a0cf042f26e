"""Constant expressions: what globals, tables and segments start with. Checked here, computed at instantiation.

An expression is kept as its bytes in the module. Its operands are few, so checking keeps them on a small array:

    i32.const 8   global.get 0   i32.add   end
    [i32]         [i32 i32]      [i32]     the one type that is left must match

https://webassembly.github.io/spec/core/valid/instructions.html#constant-expressions
"""

from greenbeat.native import inline, native, ptr, stack, table, u8, u32, u64
from greenbeat.runtime.arena import allocate
from greenbeat.runtime.layout import Module
from greenbeat.wasm import limits
from greenbeat.wasm.reader import Reader, failed, invalid, malformed_at, read_byte, read_i32, read_i64, read_u32, skip
from greenbeat.wasm.types import read_heap_type
from greenbeat.wasm.valuetypes import F32, F64, I32, I64, NULLABLE, REFERENCE, V128, matches
from greenbeat.wasm.vectors import out_of_memory

END, V128_CONST = 0x0B, 12
I32_ADD, I32_MUL, I64_ADD, I64_MUL = 0x6A, 0x6C, 0x7C, 0x7E

# The first bytes of instructions: any other byte is no instruction at all, rather than one that is not constant.
ASSIGNED = (
    *range(0x06), 0x08, 0x0A, 0x0B, *range(0x0C, 0x16), *range(0x1A, 0x1D), *range(0x1F, 0x27),
    *range(0x28, 0xC5), *range(0xD0, 0xD7), 0xFB, 0xFC, 0xFD,
)  # fmt: skip
is_instruction = table(u8, [int(byte in ASSIGNED) for byte in range(256)], name="is_instruction")


@native
def reserve_declared(module: ptr[Module], r: ptr[Reader]) -> bool:
    """Make room for one bit a function, once all functions are known."""
    if module.declared is None:
        module.declared = allocate(module.arena, u64(module.function_count) // 8 + 1)
        if module.declared is None:
            return out_of_memory(r)
    return True


@native
def declare_function(module: ptr[Module], r: ptr[Reader], index: u32) -> None:
    """Note that a function is mentioned outside bodies, so that `ref.func` in a body may name it."""
    if reserve_declared(module, r):
        module.declared[index >> 3] |= u8(1) << u8(index & 7)


@native
def read_function_reference(module: ptr[Module], r: ptr[Reader]) -> u32:
    """A function index that makes a reference to the function."""
    at = r.position
    index = read_u32(r)
    if failed(r):
        return 0
    if index >= module.function_count:
        invalid(r, at, "unknown function {number}", index, 0)
        return 0
    declare_function(module, r, index)
    return index


@native
def read_constant_global(module: ptr[Module], r: ptr[Reader]) -> u32:
    """A global index in a constant expression; returns the type. Only globals before this one are known yet."""
    at = r.position
    index = read_u32(r)
    if failed(r):
        return 0
    if index >= module.global_count:
        invalid(r, at, "unknown global {number}", index, 0)
        return 0
    if module.globals[index].mutable:
        invalid(r, at, "constant expression required: global {number} is mutable", index, 0)
        return 0
    return module.globals[index].kind


@native(cold=True)
def not_constant(r: ptr[Reader], at: ptr[u8], byte: u32) -> bool:
    """Record what is wrong with an instruction that no constant expression has."""
    if is_instruction[byte] == 0:
        return malformed_at(r, at, "illegal opcode {hex}", byte, 0)
    return invalid(r, at, "constant expression required: instruction {hex} is not constant", byte, 0)


@inline
def is_arithmetic(byte: u32) -> bool:
    """Whether an opcode is an addition, subtraction or multiplication of integers."""
    return (byte >= I32_ADD and byte <= I32_MUL) or (byte >= I64_ADD and byte <= I64_MUL)


@native(noinline=True)
def read_constant(module: ptr[Module], r: ptr[Reader], wanted: u32) -> ptr[u8]:
    """Step over a constant expression that must leave one value of type `wanted`; returns where it starts."""
    start = r.position
    operands = stack(u32, limits.CONSTANT_OPERANDS)
    height: u32 = 0
    while not failed(r):
        at = r.position
        byte = read_byte(r)
        kind: u32 = 0
        if byte == END:
            break
        if is_arithmetic(byte):
            kind = u32(I32) if byte <= I32_MUL else u32(I64)
            if height < 2 or operands[height - 1] != kind or operands[height - 2] != kind:
                invalid(r, at, "type mismatch: the instruction needs two {type}", kind, 0)
                return start
            height -= 1
            continue
        match byte:
            case 0x41:  # i32.const
                kind = I32
                read_i32(r)
            case 0x42:  # i64.const
                kind = I64
                read_i64(r)
            case 0x43:  # f32.const
                kind = F32
                skip(r, 4)
            case 0x44:  # f64.const
                kind = F64
                skip(r, 8)
            case 0x23:  # global.get
                kind = read_constant_global(module, r)
            case 0xD0:  # ref.null
                kind = REFERENCE | NULLABLE | read_heap_type(module, r)
            case 0xD2:  # ref.func
                index = read_function_reference(module, r)
                if not failed(r):
                    kind = REFERENCE | module.functions[index].signature.number
            case 0xFD:  # v128.const
                if read_u32(r) != V128_CONST:
                    not_constant(r, at, byte)
                kind = V128
                skip(r, 16)
            case _:
                if not failed(r):
                    not_constant(r, at, byte)
        if height == limits.CONSTANT_OPERANDS:
            invalid(r, at, limits.exceeded(limits.CONSTANT_OPERANDS, "operands in a constant expression"), 0, 0)
            return start
        operands[height] = kind
        height += 1
    if failed(r):
        return start
    if height != 1:
        invalid(r, start, "type mismatch: this must compute one {type}, but leaves {number} values", wanted, height)
    elif not matches(operands[0], wanted):
        invalid(r, start, "type mismatch: this must compute {type}, but computes {type}", wanted, operands[0])
    return start
