"""Reading the binary format: bytes, LEB128 numbers, names; and how a failure is recorded.

A reader never fails half way: the first failure is recorded and sticks, the reader stands at its end, and every further
read gives 0. So decoding code reads on and looks at `failed(reader)` where a wrong value could do harm or a loop could
run long. https://webassembly.github.io/spec/core/binary/values.html
"""

from greenbeat.native import cast, i32, i64, inline, load, native, ptr, struct, u8, u32, u64, unlikely

# Failure.kind
MALFORMED, INVALID, OUT_OF_MEMORY = 1, 2, 3
NO_FUNCTION = 0xFFFF_FFFF


@struct
class Failure:
    """Why a module was refused.

    Python puts `a` and `b` into the message's `{type}`, `{number}` and `{hex}`, in order.
    """

    kind: u32
    function: u32
    offset: u64
    message: ptr[u8]
    a: u64
    b: u64


@struct
class Reader:
    """A position in the module's bytes."""

    position: ptr[u8]
    end: ptr[u8]
    start: ptr[u8]
    failure: ptr[Failure]


@native(cold=True)
def fail(r: ptr[Reader], kind: u32, at: ptr[u8], message: ptr[u8], a: u64, b: u64) -> bool:
    """Record a failure at a byte, unless there is one already; returns False, for `return fail(...)`."""
    failure = r.failure
    if failure.kind == 0:
        failure.kind = kind
        failure.offset = u64(at - r.start)
        failure.message = message
        failure.a = a
        failure.b = b
    r.position = r.end
    return False


@inline
def malformed(r, message):
    """Record that the bytes at the reader are no module."""
    return fail(r, MALFORMED, r.position, message, 0, 0)


@inline
def malformed_at(r, at, message, a, b):
    """Record that the bytes at `at` are no module."""
    return fail(r, MALFORMED, at, message, u64(a), u64(b))


@inline
def invalid(r, at, message, a, b):
    """Record that what was read at `at` breaks a rule of validation."""
    return fail(r, INVALID, at, message, u64(a), u64(b))


@inline
def failed(r):
    """Whether anything has gone wrong."""
    return unlikely(r.failure.kind != 0)


@native
def read_byte(r: ptr[Reader]) -> u32:
    """One byte."""
    at = r.position
    if unlikely(at >= r.end):
        malformed(r, "unexpected end")
        return 0
    r.position = at + 1
    return u32(at[0])


@native(noinline=True)
def read_leb(r: ptr[Reader], bits: u32, signed: bool) -> u64:
    """A LEB128 number of at most `bits` bits, sign- or zero-extended to 64; unused bits must repeat the sign."""
    result: u64 = 0
    shift: u32 = 0
    while True:
        at = r.position
        if at >= r.end:
            malformed(r, "unexpected end")
            return 0
        byte = u64(at[0])
        left = bits - shift
        if left < 8 and byte & 0x80 != 0 and left <= 7:
            malformed(r, "integer representation too long")
            return 0
        if left < 7:
            unused = (byte & 0x7F) >> u64(left if not signed else left - 1)
            ones = u64(0x7F) >> u64(left if not signed else left - 1)
            if unused != 0 and not (signed and unused == ones):
                malformed(r, "integer too large")
                return 0
        result |= (byte & 0x7F) << u64(shift)
        r.position = at + 1
        shift += 7
        if byte & 0x80 == 0:
            if signed and shift < 64 and byte & 0x40 != 0:
                result |= (~u64(0)) << u64(shift)
            return result


@inline
def read_u32(r: ptr[Reader]) -> u32:
    """An unsigned 32-bit number; one-byte numbers are read in place."""
    at = r.position
    if at < r.end and at[0] < 0x80:
        r.position = at + 1
        return u32(at[0])
    return u32(read_leb(r, 32, False))


@inline
def read_u64(r: ptr[Reader]) -> u64:
    """An unsigned 64-bit number."""
    return read_leb(r, 64, False)


@inline
def read_i32(r: ptr[Reader]) -> i32:
    """A signed 32-bit number."""
    return i32(read_leb(r, 32, True))


@inline
def read_i33(r: ptr[Reader]) -> i64:
    """A signed 33-bit number: block types and heap types."""
    return i64(read_leb(r, 33, True))


@inline
def read_i64(r: ptr[Reader]) -> i64:
    """A signed 64-bit number."""
    return i64(read_leb(r, 64, True))


@inline
def remaining(r: ptr[Reader]) -> u64:
    """Bytes left."""
    return u64(r.end - r.position)


@native
def read_fixed_u32(r: ptr[Reader]) -> u32:
    """Four bytes, little endian."""
    if remaining(r) < 4:
        malformed(r, "unexpected end")
        return 0
    value = load(u32, r.position)
    r.position = r.position + 4
    return value


@native
def read_fixed_u64(r: ptr[Reader]) -> u64:
    """Eight bytes, little endian."""
    if remaining(r) < 8:
        malformed(r, "unexpected end")
        return 0
    value = load(u64, r.position)
    r.position = r.position + 8
    return value


@native
def skip(r: ptr[Reader], count: u64) -> ptr[u8]:
    """Step over bytes; returns where they start."""
    at = r.position
    if remaining(r) < count:
        malformed(r, "unexpected end")
        return cast(ptr[u8], at)
    r.position = at + count
    return at
