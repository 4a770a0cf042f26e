"""Value types as numbers, the same in native code and in Python.

    31        30        29        28 .......................... 0
    reference nullable  abstract  heap type                             a reference
    0         0         0         the byte of the binary format         a number or a vector
    0                                                                   the bottom type of unreachable code

A heap type is an abstract one (its byte in the binary format) or the process-wide number of a function type, so that
types of different modules are equal exactly when their numbers are (see `functypes.py`).
"""

from greenbeat.native import inline, u32

BOTTOM = 0
I32, I64, F32, F64, V128 = 0x7F, 0x7E, 0x7D, 0x7C, 0x7B
FUNC, EXTERN, EXN = 0x70, 0x6F, 0x69
REFERENCE, NULLABLE, ABSTRACT = 1 << 31, 1 << 30, 1 << 29
HEAP_MASK = ABSTRACT - 1
FUNCREF = REFERENCE | NULLABLE | ABSTRACT | FUNC
EXTERNREF = REFERENCE | NULLABLE | ABSTRACT | EXTERN
EXNREF = REFERENCE | NULLABLE | ABSTRACT | EXN

NAMES = {
    BOTTOM: "any value",
    I32: "i32",
    I64: "i64",
    F32: "f32",
    F64: "f64",
    V128: "v128",
    FUNCREF: "funcref",
    EXTERNREF: "externref",
    EXNREF: "exnref",
    FUNCREF & ~NULLABLE: "(ref func)",
    EXTERNREF & ~NULLABLE: "(ref extern)",
    EXNREF & ~NULLABLE: "(ref exn)",
}


def name_of(kind: int) -> str:
    """A value type as the text format writes it."""
    if kind in NAMES:
        return NAMES[kind]
    null = "null " if kind & NULLABLE else ""
    return f"(ref {null}type#{kind & HEAP_MASK})"


@inline
def is_reference(kind: u32) -> bool:
    """Whether a value type is one of references."""
    return kind >= REFERENCE


@inline
def holds_objects(kind: u32) -> bool:
    """Whether values of a type are Python objects."""
    heap = kind & (ABSTRACT | HEAP_MASK)
    return kind >= REFERENCE and (heap == ABSTRACT | EXTERN or heap == ABSTRACT | EXN)


@inline
def is_nullable(kind: u32) -> bool:
    """Whether a reference may be null."""
    return kind & NULLABLE != 0


@inline
def matches(found: u32, wanted: u32) -> bool:
    """Whether `found` may stand where `wanted` is needed.

    https://webassembly.github.io/spec/core/valid/matching.html
    """
    if found == wanted or found == BOTTOM:
        return True
    if found < REFERENCE or wanted < REFERENCE:
        return False
    if found & NULLABLE != 0 and wanted & NULLABLE == 0:
        return False
    if found & (ABSTRACT | HEAP_MASK) == wanted & (ABSTRACT | HEAP_MASK):
        return True
    return found & ABSTRACT == 0 and wanted & (ABSTRACT | HEAP_MASK) == ABSTRACT | FUNC
