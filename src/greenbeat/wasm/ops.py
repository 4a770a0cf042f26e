"""What the numeric and memory operations of WebAssembly mean, each written once.

An operation is a typed function whose signature is its stack effect: parameters are popped, the result is pushed.
Signedness of a parameter is how the operation reads it; `bool` as a result is an i32 that is 0 or 1. `trap(...)`
stops the guest, in whatever way the engine around the operation stops it. The interpreter wraps these functions into
handlers; a compiler can inline them. https://webassembly.github.io/spec/core/exec/numerics.html
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from greenbeat.native import (
    absolute,
    bitcast,
    copy_sign,
    count_leading_zeros,
    count_trailing_zeros,
    divide_truncating,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    inline,
    population_count,
    remainder_truncating,
    rotate_left,
    rotate_right,
    round_ceiling,
    round_floor,
    round_nearest,
    round_truncate,
    square_root,
    trap,
    truncate_unchecked,
    u8,
    u16,
    u32,
    u64,
    unlikely,
)
from greenbeat.native.language import NativeFunction
from greenbeat.native.types import BoolType, FloatType, Type
from greenbeat.runtime.layout import TRAP_CONVERSION, TRAP_DIVIDE_BY_ZERO, TRAP_OVERFLOW
from greenbeat.wasm import valuetypes

SATURATING = 0x100  # added to the second byte of an opcode behind the prefix 0xFC


@dataclass(frozen=True)
class Operation:
    """A pure operation: its opcode (0xFC-prefixed ones from 0x100 on), its name, and its meaning."""

    opcode: int
    name: str
    meaning: NativeFunction
    params: tuple[Type, ...]
    result: Type
    commutative: bool

    @property
    def compares(self) -> bool:
        """Whether the result is a truth value, which a branch can take directly."""
        return isinstance(self.result, BoolType)

    @property
    def operand_type(self) -> int:
        """The WebAssembly type of its operands."""
        return value_type(self.params[0])

    @property
    def result_type(self) -> int:
        """The WebAssembly type of its result."""
        return value_type(self.result)


def value_type(native_type: Type) -> int:
    """The WebAssembly value type that a native type is a reading of."""
    if isinstance(native_type, FloatType):
        return valuetypes.F32 if native_type.size == 4 else valuetypes.F64
    return valuetypes.I64 if native_type.size == 8 else valuetypes.I32


OPERATIONS: dict[int, Operation] = {}


def op(opcode: int, name: str, *, commutative: bool = False) -> Callable[[Any], Any]:
    """Register a meaning."""

    def register(python: Callable[..., Any]) -> Any:
        meaning: Any = inline(python)
        params, result = meaning.signature
        kinds = tuple(kind for _, kind in params)
        OPERATIONS[opcode] = Operation(opcode, name, meaning, kinds, result, commutative)
        return meaning

    return register


def integer_comparisons(name, signed, unsigned, first):
    """Test and comparison of one width, opcodes in the order of the binary format."""

    @op(first, f"{name}.eqz")
    def eqz(a: signed) -> bool:
        return a == 0

    @op(first + 1, f"{name}.eq", commutative=True)
    def eq(a: signed, b: signed) -> bool:
        return a == b

    @op(first + 2, f"{name}.ne", commutative=True)
    def ne(a: signed, b: signed) -> bool:
        return a != b

    @op(first + 3, f"{name}.lt_s")
    def lt_s(a: signed, b: signed) -> bool:
        return a < b

    @op(first + 4, f"{name}.lt_u")
    def lt_u(a: unsigned, b: unsigned) -> bool:
        return a < b

    @op(first + 5, f"{name}.gt_s")
    def gt_s(a: signed, b: signed) -> bool:
        return a > b

    @op(first + 6, f"{name}.gt_u")
    def gt_u(a: unsigned, b: unsigned) -> bool:
        return a > b

    @op(first + 7, f"{name}.le_s")
    def le_s(a: signed, b: signed) -> bool:
        return a <= b

    @op(first + 8, f"{name}.le_u")
    def le_u(a: unsigned, b: unsigned) -> bool:
        return a <= b

    @op(first + 9, f"{name}.ge_s")
    def ge_s(a: signed, b: signed) -> bool:
        return a >= b

    @op(first + 10, f"{name}.ge_u")
    def ge_u(a: unsigned, b: unsigned) -> bool:
        return a >= b


def integer_arithmetic(name, signed, unsigned, lowest, first):
    """Arithmetic of one width; `lowest` is the most negative value."""

    @op(first, f"{name}.clz")
    def clz(a: unsigned) -> unsigned:
        return count_leading_zeros(a)

    @op(first + 1, f"{name}.ctz")
    def ctz(a: unsigned) -> unsigned:
        return count_trailing_zeros(a)

    @op(first + 2, f"{name}.popcnt")
    def popcnt(a: unsigned) -> unsigned:
        return population_count(a)

    @op(first + 3, f"{name}.add", commutative=True)
    def add(a: signed, b: signed) -> signed:
        return a + b

    @op(first + 4, f"{name}.sub")
    def sub(a: signed, b: signed) -> signed:
        return a - b

    @op(first + 5, f"{name}.mul", commutative=True)
    def mul(a: signed, b: signed) -> signed:
        return a * b

    @op(first + 6, f"{name}.div_s")
    def div_s(a: signed, b: signed) -> signed:
        if b == 0:
            trap(TRAP_DIVIDE_BY_ZERO)
        if a == lowest and b == -1:
            trap(TRAP_OVERFLOW)
        return divide_truncating(a, b)

    @op(first + 7, f"{name}.div_u")
    def div_u(a: unsigned, b: unsigned) -> unsigned:
        if b == 0:
            trap(TRAP_DIVIDE_BY_ZERO)
        return divide_truncating(a, b)

    @op(first + 8, f"{name}.rem_s")
    def rem_s(a: signed, b: signed) -> signed:
        if b == 0:
            trap(TRAP_DIVIDE_BY_ZERO)
        if b == -1:
            return 0
        return remainder_truncating(a, b)

    @op(first + 9, f"{name}.rem_u")
    def rem_u(a: unsigned, b: unsigned) -> unsigned:
        if b == 0:
            trap(TRAP_DIVIDE_BY_ZERO)
        return remainder_truncating(a, b)

    @op(first + 10, f"{name}.and", commutative=True)
    def and_(a: unsigned, b: unsigned) -> unsigned:
        return a & b

    @op(first + 11, f"{name}.or", commutative=True)
    def or_(a: unsigned, b: unsigned) -> unsigned:
        return a | b

    @op(first + 12, f"{name}.xor", commutative=True)
    def xor(a: unsigned, b: unsigned) -> unsigned:
        return a ^ b

    @op(first + 13, f"{name}.shl")
    def shl(a: unsigned, b: unsigned) -> unsigned:
        return a << b

    @op(first + 14, f"{name}.shr_s")
    def shr_s(a: signed, b: signed) -> signed:
        return a >> b

    @op(first + 15, f"{name}.shr_u")
    def shr_u(a: unsigned, b: unsigned) -> unsigned:
        return a >> b

    @op(first + 16, f"{name}.rotl")
    def rotl(a: unsigned, b: unsigned) -> unsigned:
        return rotate_left(a, b)

    @op(first + 17, f"{name}.rotr")
    def rotr(a: unsigned, b: unsigned) -> unsigned:
        return rotate_right(a, b)


def float_comparisons(name, real, first):
    """IEEE comparisons: NaN is unequal to everything and unordered."""

    @op(first, f"{name}.eq", commutative=True)
    def eq(a: real, b: real) -> bool:
        return a == b

    @op(first + 1, f"{name}.ne", commutative=True)
    def ne(a: real, b: real) -> bool:
        return a != b

    @op(first + 2, f"{name}.lt")
    def lt(a: real, b: real) -> bool:
        return a < b

    @op(first + 3, f"{name}.gt")
    def gt(a: real, b: real) -> bool:
        return a > b

    @op(first + 4, f"{name}.le")
    def le(a: real, b: real) -> bool:
        return a <= b

    @op(first + 5, f"{name}.ge")
    def ge(a: real, b: real) -> bool:
        return a >= b


def float_arithmetic(name, real, first):
    """IEEE arithmetic of one width."""
    bits = u32 if real.size == 4 else u64

    @op(first, f"{name}.abs")
    def abs_(a: real) -> real:
        return absolute(a)

    @op(first + 1, f"{name}.neg")
    def neg(a: real) -> real:
        return -a

    @op(first + 2, f"{name}.ceil")
    def ceil(a: real) -> real:
        return round_ceiling(a)

    @op(first + 3, f"{name}.floor")
    def floor(a: real) -> real:
        return round_floor(a)

    @op(first + 4, f"{name}.trunc")
    def trunc(a: real) -> real:
        return round_truncate(a)

    @op(first + 5, f"{name}.nearest")
    def nearest(a: real) -> real:
        return round_nearest(a)

    @op(first + 6, f"{name}.sqrt")
    def sqrt(a: real) -> real:
        return square_root(a)

    @op(first + 7, f"{name}.add", commutative=True)
    def add(a: real, b: real) -> real:
        return a + b

    @op(first + 8, f"{name}.sub")
    def sub(a: real, b: real) -> real:
        return a - b

    @op(first + 9, f"{name}.mul", commutative=True)
    def mul(a: real, b: real) -> real:
        return a * b

    @op(first + 10, f"{name}.div")
    def div(a: real, b: real) -> real:
        return a / b

    @op(first + 11, f"{name}.min", commutative=True)
    def min_(a: real, b: real) -> real:
        smaller = bitcast(real, bitcast(bits, a) | bitcast(bits, b))  # of equals, that is of zeros, the negative one
        if a != b:
            smaller = a if a < b else b
            if unlikely(a != a or b != b):
                smaller = a + b  # which makes a signalling NaN quiet
        return smaller

    @op(first + 12, f"{name}.max", commutative=True)
    def max_(a: real, b: real) -> real:
        larger = bitcast(real, bitcast(bits, a) & bitcast(bits, b))
        if a != b:
            larger = a if a > b else b
            if unlikely(a != a or b != b):
                larger = a + b
        return larger

    @op(first + 13, f"{name}.copysign")
    def copysign(a: real, b: real) -> real:
        return copy_sign(a, b)


integer_comparisons("i32", i32, u32, 0x45)
integer_comparisons("i64", i64, u64, 0x50)
float_comparisons("f32", f32, 0x5B)
float_comparisons("f64", f64, 0x61)
integer_arithmetic("i32", i32, u32, -(2**31), 0x67)
integer_arithmetic("i64", i64, u64, -(2**63), 0x79)
float_arithmetic("f32", f32, 0x8B)
float_arithmetic("f64", f64, 0x99)


@op(0xA7, "i32.wrap_i64")
def i32_wrap_i64(a: u64) -> u32:
    """The low 32 bits."""
    return u32(a)


def truncation(opcode, saturating_opcode, name, source, target, below, above):
    """Float to integer: `below` and `above` are the nearest floats outside the range (`below` itself does not fit)."""

    @op(opcode, f"{target_name(target)}.trunc_{name}")
    def truncate(a: source) -> target:
        if a != a:
            trap(TRAP_CONVERSION)
        if not (a > below and a < above):
            trap(TRAP_OVERFLOW)
        return truncate_unchecked(target, a)

    @op(saturating_opcode, f"{target_name(target)}.trunc_sat_{name}")
    def truncate_saturating(a: source) -> target:
        return target(a)


def target_name(target):
    """`i32` for both readings of 32 bits."""
    return f"i{target.bits}"


truncation(0xA8, SATURATING, "f32_s", f32, i32, -2147483904.0, 2147483648.0)
truncation(0xA9, SATURATING + 1, "f32_u", f32, u32, -1.0, 4294967296.0)
truncation(0xAA, SATURATING + 2, "f64_s", f64, i32, -2147483649.0, 2147483648.0)
truncation(0xAB, SATURATING + 3, "f64_u", f64, u32, -1.0, 4294967296.0)
truncation(0xAE, SATURATING + 4, "f32_s", f32, i64, -9223373136366403584.0, 9223372036854775808.0)
truncation(0xAF, SATURATING + 5, "f32_u", f32, u64, -1.0, 18446744073709551616.0)
truncation(0xB0, SATURATING + 6, "f64_s", f64, i64, -9223372036854777856.0, 9223372036854775808.0)
truncation(0xB1, SATURATING + 7, "f64_u", f64, u64, -1.0, 18446744073709551616.0)


def conversion(opcode, name, source, target):
    """A conversion that the types alone describe."""

    @op(opcode, name)
    def convert(a: source) -> target:
        return target(a)


conversion(0xAC, "i64.extend_i32_s", i32, i64)
conversion(0xAD, "i64.extend_i32_u", u32, u64)
conversion(0xB2, "f32.convert_i32_s", i32, f32)
conversion(0xB3, "f32.convert_i32_u", u32, f32)
conversion(0xB4, "f32.convert_i64_s", i64, f32)
conversion(0xB5, "f32.convert_i64_u", u64, f32)
conversion(0xB6, "f32.demote_f64", f64, f32)
conversion(0xB7, "f64.convert_i32_s", i32, f64)
conversion(0xB8, "f64.convert_i32_u", u32, f64)
conversion(0xB9, "f64.convert_i64_s", i64, f64)
conversion(0xBA, "f64.convert_i64_u", u64, f64)
conversion(0xBB, "f64.promote_f32", f32, f64)


def reinterpretation(opcode, name, source, target):
    """The same bits as another type."""

    @op(opcode, name)
    def reinterpret(a: source) -> target:
        return bitcast(target, a)


reinterpretation(0xBC, "i32.reinterpret_f32", f32, u32)
reinterpretation(0xBD, "i64.reinterpret_f64", f64, u64)
reinterpretation(0xBE, "f32.reinterpret_i32", u32, f32)
reinterpretation(0xBF, "f64.reinterpret_i64", u64, f64)


def sign_extension(opcode, name, wide, narrow):
    """The low bits, sign-extended."""

    @op(opcode, name)
    def extend(a: wide) -> wide:
        return wide(narrow(a))


sign_extension(0xC0, "i32.extend8_s", i32, i8)
sign_extension(0xC1, "i32.extend16_s", i32, i16)
sign_extension(0xC2, "i64.extend8_s", i64, i8)
sign_extension(0xC3, "i64.extend16_s", i64, i16)
sign_extension(0xC4, "i64.extend32_s", i64, i32)


@dataclass(frozen=True)
class Access:
    """A load or store.

    `stored` is the type in memory, `value` the one on the stack it is widened to or narrowed from.
    """

    opcode: int
    name: str
    value: Type
    stored: Type

    @property
    def value_type(self) -> int:
        """The WebAssembly type loaded or stored."""
        return value_type(self.value)


LOADS = {
    a.opcode: a
    for a in (
        Access(0x28, "i32.load", i32, i32),
        Access(0x29, "i64.load", i64, i64),
        Access(0x2A, "f32.load", f32, f32),
        Access(0x2B, "f64.load", f64, f64),
        Access(0x2C, "i32.load8_s", i32, i8),
        Access(0x2D, "i32.load8_u", u32, u8),
        Access(0x2E, "i32.load16_s", i32, i16),
        Access(0x2F, "i32.load16_u", u32, u16),
        Access(0x30, "i64.load8_s", i64, i8),
        Access(0x31, "i64.load8_u", u64, u8),
        Access(0x32, "i64.load16_s", i64, i16),
        Access(0x33, "i64.load16_u", u64, u16),
        Access(0x34, "i64.load32_s", i64, i32),
        Access(0x35, "i64.load32_u", u64, u32),
    )
}
STORES = {
    a.opcode: a
    for a in (
        Access(0x36, "i32.store", u32, u32),
        Access(0x37, "i64.store", u64, u64),
        Access(0x38, "f32.store", f32, f32),
        Access(0x39, "f64.store", f64, f64),
        Access(0x3A, "i32.store8", u32, u8),
        Access(0x3B, "i32.store16", u32, u16),
        Access(0x3C, "i64.store8", u64, u8),
        Access(0x3D, "i64.store16", u64, u16),
        Access(0x3E, "i64.store32", u64, u32),
    )
}
