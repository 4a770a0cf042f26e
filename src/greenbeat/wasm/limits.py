"""The implementation-defined limits that the engines of the web agree on, and who exceeds them is told so.

A module within them loads everywhere; they also bound what decoding may allocate.
https://webassembly.github.io/spec/js-api/index.html#limits
"""

MODULE_SIZE = 1 << 30
TYPES = 1_000_000
FUNCTIONS = 1_000_000
IMPORTS = 1_000_000
EXPORTS = 1_000_000
GLOBALS = 1_000_000
TABLES = 100_000
TAGS = 1_000_000
MEMORIES = 100
DATA_SEGMENTS = 100_000
ELEMENT_SEGMENTS = 10_000_000
SEGMENT_ENTRIES = 10_000_000
PARAMETERS = 1_000
RESULTS = 1_000
LOCALS = 50_000
BODY_SIZE = 7_654_321
TABLE_SIZE = 10_000_000

# Not among those of the web: operands that wait at a time in a function. No stack has room for more.
OPERANDS = 1 << 23

# Nor these: how many operands a constant expression may hold, and how many sections are listed.
CONSTANT_OPERANDS = 64
LISTED_SECTIONS = 100_000


def exceeded(limit: int, what: str) -> str:
    """The message of a failure that names the limit; called while native code is compiled."""
    return f"implementation limit exceeded: at most {limit:,} {what}"
