"""Computing constant expressions, and making the references that they and the guest ask for.

Expressions were validated when the module was decoded, so nothing can go wrong here; the reader keeps to the module's
bytes all the same. Values take 16 bytes, as globals do.
https://webassembly.github.io/spec/core/valid/instructions.html#constant-expressions
"""

from greenbeat.native import addressof, atomic_store, cast, load, native, ptr, stack, store, u8, u32, u64
from greenbeat.runtime.layout import GUEST, FunctionInstance, Instance
from greenbeat.wasm import limits
from greenbeat.wasm.constants import END
from greenbeat.wasm.reader import Failure, Reader, failed, read_byte, read_i32, read_i33, read_i64, read_u32, skip

WORDS = 2


@native(shared=True)
def function_reference(instance: ptr[Instance], index: u32) -> ptr[FunctionInstance]:
    """What a reference to a function points to; an own function's is filled in when it is first asked for."""
    module = instance.module
    assert index < module.function_count
    if index < module.imported_functions:
        return instance.imports[index]
    reference = instance.functions + (index - module.imported_functions)
    if reference.signature is None:
        function = module.functions + index
        reference.kind = GUEST
        reference.index = index
        reference.function = function
        reference.instance = instance
        # Last: whoever sees the signature sees the rest.
        atomic_store(addressof(reference.signature), function.signature, "release")
    return reference


@native
def arithmetic(byte: u32, left: u64, right: u64) -> u64:
    """The instructions of extended constant expressions; i32 ones leave the upper half zero."""
    match byte:
        case 0x6A:  # i32.add
            return u64(u32(left) + u32(right))
        case 0x6B:  # i32.sub
            return u64(u32(left) - u32(right))
        case 0x6C:  # i32.mul
            return u64(u32(left) * u32(right))
        case 0x7C:  # i64.add
            return left + right
        case 0x7D:  # i64.sub
            return left - right
        case _:  # i64.mul
            return left * right


@native(shared=True)
def evaluate_into(instance: ptr[Instance], expression: ptr[u8], place: ptr[u64]) -> None:
    """Put the value of a constant expression of the instance's module into two words."""
    module = instance.module
    failure = stack(Failure)
    failure.kind = 0
    r = stack(Reader)
    r.position = expression
    r.start = module.bytes
    r.end = module.bytes + module.length
    r.failure = failure
    operands = stack(u64, limits.CONSTANT_OPERANDS * WORDS)
    height: u32 = 0
    while not failed(r):
        byte = read_byte(r)
        if byte == END:
            break
        top = operands + height * WORDS
        top_low: u64 = 0
        top_high: u64 = 0
        match byte:
            case 0x41:  # i32.const
                top_low = u64(u32(read_i32(r)))
            case 0x42:  # i64.const
                top_low = u64(read_i64(r))
            case 0x43:  # f32.const
                top_low = u64(load(u32, skip(r, 4)))
            case 0x44:  # f64.const
                top_low = load(u64, skip(r, 8))
            case 0x23:  # global.get
                held = instance.globals[read_u32(r)]
                top_low = held[0]
                top_high = held[1]
            case 0xD0:  # ref.null
                read_i33(r)
            case 0xD2:  # ref.func
                top_low = cast(u64, function_reference(instance, read_u32(r)))
            case 0xFD:  # v128.const
                read_u32(r)
                bits = skip(r, 16)
                top_low = load(u64, bits)
                top_high = load(u64, bits, 8)
            case _:
                assert height >= 2
                height -= 2
                top = operands + height * WORDS
                top_low = arithmetic(byte, top[0], top[WORDS])
        assert height < limits.CONSTANT_OPERANDS
        store(top, top_low)
        store(top + 1, top_high)
        height += 1
    assert height == 1 and failure.kind == 0
    place[0] = operands[0]
    place[1] = operands[1]


@native(shared=True)
def evaluate_constant(instance: ptr[Instance], expression: ptr[u8]) -> u64:
    """The value of a constant expression, but of vectors only half; of 32-bit values only the lower half counts."""
    value = stack(u64, WORDS)
    evaluate_into(instance, expression, value)
    return value[0]
