"""What the generator of hazards knows of instructions: value types, constants, operations by the type they make."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.fuzz.binary import signed
from tests.fuzz.world import as_signed

I32, I64, F32, F64, FUNCREF, EXTERNREF = b"\x7f", b"\x7e", b"\x7d", b"\x7c", b"\x70", b"\x6f"
NUMBERS = (I32, I64, F32, F64)
LOADS = {I32: (0x28, 0x2C, 0x2D, 0x2E, 0x2F), I64: (0x29, *range(0x30, 0x36)), F32: (0x2A,), F64: (0x2B,)}
STORES = {I32: (0x36, 0x3A, 0x3B), I64: (0x37, 0x3C, 0x3D, 0x3E), F32: (0x38,), F64: (0x39,)}
FLOAT_EQUAL = {F32: b"\x5b", F64: b"\x61"}

BLOCK, LOOP, IF, ELSE, END = b"\x02", b"\x03", b"\x04", b"\x05", b"\x0b"
BR, BR_IF, BR_TABLE, RETURN, UNREACHABLE = b"\x0c", b"\x0d", b"\x0e", b"\x0f", b"\x00"
CALL, CALL_INDIRECT, RETURN_CALL, RETURN_CALL_INDIRECT = b"\x10", b"\x11", b"\x12", b"\x13"
CALL_REF, RETURN_CALL_REF = b"\x14", b"\x15"
DROP, SELECT, SELECT_TYPED = b"\x1a", b"\x1b", b"\x1c"
GET, SET, TEE, GLOBAL_GET, GLOBAL_SET = b"\x20", b"\x21", b"\x22", b"\x23", b"\x24"
TABLE_GET, TABLE_SET = b"\x25", b"\x26"
REF_NULL, REF_IS_NULL, REF_FUNC, REF_AS_NON_NULL = b"\xd0", b"\xd1", b"\xd2", b"\xd4"
BR_ON_NULL, BR_ON_NON_NULL = b"\xd5", b"\xd6"
I32_EQZ, I32_SUB, I32_AND, I32_OR, I64_AND, I64_OR, I64_EXTEND = (
    b"\x45",
    b"\x6b",
    b"\x71",
    b"\x72",
    b"\x83",
    b"\x84",
    b"\xad",
)


@dataclass(frozen=True)
class Producer:
    """A pure operation. `rule` says what its result is if it is a float, or that it shows bits ("bits", "sign")."""

    code: bytes
    operands: tuple[bytes, ...]
    result: bytes
    rule: str = ""
    divides: bool = False


def i32_const(value: int) -> bytes:
    """`i32.const`."""
    return b"\x41" + signed(as_signed(value, 32))


def i64_const(value: int) -> bytes:
    """`i64.const`."""
    return b"\x42" + signed(as_signed(value, 64))


def constant(kind: bytes, value: float) -> bytes:
    """`f32.const` or `f64.const`."""
    return b"\x43" + struct.pack("<f", value) if kind == F32 else b"\x44" + struct.pack("<d", value)


CANONICAL_NAN = {F32: constant(F32, float("nan")), F64: constant(F64, float("nan"))}


def _producers() -> list[Producer]:
    found: list[Producer] = []

    def add(first: int, count: int, operands: tuple[bytes, ...], result: bytes, rule: str = "") -> None:
        found.extend(Producer(bytes([first + i]), operands, result, rule) for i in range(count))

    for kind, test, compare, unary, binary in ((I32, 0x45, 0x46, 0x67, 0x6A), (I64, 0x50, 0x51, 0x79, 0x7C)):
        add(test, 1, (kind,), I32)
        add(compare, 10, (kind, kind), I32)
        add(unary, 3, (kind,), kind)
        add(binary, 3, (kind, kind), kind)
        found.extend(Producer(bytes([binary + 3 + i]), (kind, kind), kind, divides=True) for i in range(4))
        add(binary + 7, 8, (kind, kind), kind)
    for kind, compare, unary in ((F32, 0x5B, 0x8B), (F64, 0x61, 0x99)):
        add(compare, 6, (kind, kind), I32)
        add(unary, 2, (kind,), kind, "same")
        add(unary + 2, 4, (kind,), kind, "bounded")
        add(unary + 6, 1, (kind,), kind)
        add(unary + 7, 3, (kind, kind), kind, "sum")
        add(unary + 10, 1, (kind, kind), kind)
        add(unary + 11, 2, (kind, kind), kind, "bounded")
        add(unary + 13, 1, (kind, kind), kind, "sign")
    add(0xA7, 1, (I64,), I32)
    add(0xAC, 2, (I32,), I64)
    for position, (source, result) in enumerate(((F32, I32), (F64, I32), (F32, I64), (F64, I64))):
        found.extend(Producer(bytes([0xFC, 2 * position + i]), (source,), result) for i in range(2))
    add(0xA8, 2, (F32,), I32)
    add(0xB0, 2, (F64,), I64)
    add(0xAA, 2, (F64,), I32)
    add(0xAE, 2, (F32,), I64)
    for first, result in ((0xB2, F32), (0xB7, F64)):
        add(first, 2, (I32,), result, "finite")
        add(first + 2, 2, (I64,), result, "finite")
    add(0xB6, 1, (F64,), F32)
    add(0xBB, 1, (F32,), F64, "bounded")
    add(0xBC, 1, (F32,), I32, "bits")
    add(0xBD, 1, (F64,), I64, "bits")
    add(0xBE, 1, (I32,), F32, "bits")
    add(0xBF, 1, (I64,), F64, "bits")
    add(0xC0, 2, (I32,), I32)
    add(0xC2, 3, (I64,), I64)
    return found


PRODUCERS = {kind: [p for p in _producers() if p.result == kind] for kind in NUMBERS}
_FIRST_COMPARISON = {I32: (0x46, 10), I64: (0x51, 10), F32: (0x5B, 6), F64: (0x61, 6)}
COMPARISONS = {k: [bytes([first + i]) for i in range(count)] for k, (first, count) in _FIRST_COMPARISON.items()}
