"""What traps are called: the texts that the official test suite expects."""

from greenbeat.runtime import layout

TEXTS = {
    layout.TRAP_UNREACHABLE: "unreachable",
    layout.TRAP_MEMORY: "out of bounds memory access",
    layout.TRAP_TABLE: "out of bounds table access",
    layout.TRAP_INDIRECT_NULL: "uninitialized element",
    layout.TRAP_INDIRECT_TYPE: "indirect call type mismatch",
    layout.TRAP_DIVIDE_BY_ZERO: "integer divide by zero",
    layout.TRAP_OVERFLOW: "integer overflow",
    layout.TRAP_CONVERSION: "invalid conversion to integer",
    layout.TRAP_NULL_REFERENCE: "null reference",
    layout.TRAP_STACK: "call stack exhausted",
    layout.TRAP_DEPTH: "call stack exhausted",
    layout.TRAP_TABLE_ELEMENT: "undefined element",
    layout.TRAP_EXCEPTION: "uncaught exception",
    layout.TRAP_NO_MEMORY: "no memory is left to translate the function",
    layout.TRAP_CANCELLED: "cancelled",
    layout.TRAP_TIME: "out of time",
}


def text(trap: int) -> str:
    """A trap's text."""
    return TEXTS.get(trap, f"trap {trap}")
