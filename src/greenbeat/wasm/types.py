"""Reading types of the binary format: value types, function types, and the types of tables, memories and globals.

A type index inside a value type is replaced by the process-wide number of that function type at once.
https://webassembly.github.io/spec/core/binary/types.html
"""

from greenbeat.native import cast, inline, native, ptr, stack, u32, u64, unlikely
from greenbeat.runtime.layout import GlobalType, MemoryType, Module, SignatureType, TableType
from greenbeat.wasm import limits
from greenbeat.wasm.functypes import SELF, intern_signature
from greenbeat.wasm.reader import Reader, failed, invalid, malformed, malformed_at, read_byte, read_i33, read_leb
from greenbeat.wasm.valuetypes import (
    ABSTRACT,
    EXN,
    EXNREF,
    EXTERN,
    EXTERNREF,
    FUNC,
    FUNCREF,
    NULLABLE,
    REFERENCE,
    V128,
    is_reference,
)
from greenbeat.wasm.vectors import out_of_memory, read_count

NO_TYPE = 0xFFFF_FFFF
PAGE_BITS = 16
LIMIT_MAXIMUM, LIMIT_SHARED, LIMIT_64 = 1, 2, 4
# Heap types beside func and extern, https://webassembly.github.io/spec/core/binary/types.html#heap-types
LATER_HEAP_TYPES = range(0x6A, 0x75)


@native(noinline=True)
def heap_type(module: ptr[Module], r: ptr[Reader], itself: u32) -> u32:
    """A heap type as the low bits of a value type; the type with index `itself` is being read."""
    at = r.position
    index = read_i33(r)
    if failed(r):
        return 0
    if index >= 0:
        if u64(index) == u64(itself):
            return SELF
        if unlikely(u64(index) >= u64(module.signature_count)):
            invalid(r, at, "unknown type {number}", index, 0)
            return 0
        return module.signatures[index].number
    byte = u32(index) & 0x7F
    if index >= -64 and (byte == FUNC or byte == EXTERN or byte == EXN):
        return ABSTRACT | byte
    if index >= -64 and byte >= LATER_HEAP_TYPES.start and byte < LATER_HEAP_TYPES.stop:
        invalid(r, at, "heap type {hex} is not supported yet: it needs garbage collection or exceptions", byte, 0)
        return 0
    malformed_at(r, at, "malformed heap type", 0, 0)
    return 0


@inline
def read_heap_type(module: ptr[Module], r: ptr[Reader]) -> u32:
    """A heap type as the low bits of a value type: what follows `ref.null`."""
    return heap_type(module, r, NO_TYPE)


@native(noinline=True)
def other_type(module: ptr[Module], r: ptr[Reader], itself: u32, referring: bool) -> u32:
    """A value type that is not a number or a vector; with `referring` there was no choice."""
    at = r.position
    byte = read_byte(r)
    if byte == FUNC:
        return FUNCREF
    if byte == EXTERN:
        return EXTERNREF
    if byte == EXN:
        return EXNREF
    if byte == 0x63:
        return REFERENCE | NULLABLE | heap_type(module, r, itself)
    if byte == 0x64:
        return REFERENCE | heap_type(module, r, itself)
    if byte >= LATER_HEAP_TYPES.start and byte < LATER_HEAP_TYPES.stop:
        invalid(r, at, "type {hex} is not supported yet: it needs garbage collection or exceptions", byte, 0)
    if referring:
        malformed_at(r, at, "malformed reference type", 0, 0)
    malformed_at(r, at, "malformed value type", 0, 0)
    return 0


@inline
def value_type(module: ptr[Module], r: ptr[Reader], itself: u32) -> u32:
    """A value type inside the type with index `itself`; numbers and vectors are read in place."""
    at = r.position
    if at < r.end and at[0] >= V128 and at[0] <= 0x7F:
        r.position = at + 1
        return u32(at[0])
    return other_type(module, r, itself, False)


@inline
def read_value_type(module: ptr[Module], r: ptr[Reader]) -> u32:
    """A value type, as a number of `valuetypes.py`; 0 after a failure."""
    return value_type(module, r, NO_TYPE)


@native
def read_reference_type(module: ptr[Module], r: ptr[Reader]) -> u32:
    """A value type that is a reference."""
    return other_type(module, r, NO_TYPE, True)


@native
def read_function_type(module: ptr[Module], r: ptr[Reader], itself: u32) -> ptr[SignatureType]:
    """A function type behind its 0x60; null after a failure."""
    words = stack(u32, limits.PARAMETERS + limits.RESULTS)
    params = read_count(r, limits.PARAMETERS, "parameters")
    for i in range(params):
        words[i] = value_type(module, r, itself)
    results = read_count(r, limits.RESULTS, "results")
    for i in range(results):
        words[params + i] = value_type(module, r, itself)
    if failed(r):
        return cast(ptr[SignatureType], 0)
    signature = intern_signature(words, params, results)
    if signature is None:
        out_of_memory(r)
    return signature


@native
def read_limit_flags(r: ptr[Reader]) -> u32:
    """The byte before limits; sharing is left to the caller to judge."""
    if r.position < r.end and r.position[0] > (LIMIT_MAXIMUM | LIMIT_SHARED | LIMIT_64):
        malformed(r, "malformed limits flags")
        return 0
    return read_byte(r)


@native
def read_table_type(module: ptr[Module], r: ptr[Reader], table: ptr[TableType]) -> bool:
    """A table's type. https://webassembly.github.io/spec/core/valid/types.html#table-types"""
    table.kind = read_reference_type(module, r)
    at = r.position
    flags = read_limit_flags(r)
    if flags & LIMIT_SHARED != 0:
        return invalid(r, at, "shared tables are not supported", 0, 0)
    table.is_64 = flags & LIMIT_64 != 0
    table.has_maximum = flags & LIMIT_MAXIMUM != 0
    at = r.position
    table.minimum = read_leb(r, 64, False)
    if table.has_maximum:
        table.maximum = read_leb(r, 64, False)
    else:
        table.maximum = ~u64(0) if table.is_64 else u64(0xFFFF_FFFF)
    if failed(r):
        return False
    if not table.is_64 and (table.minimum > 0xFFFF_FFFF or table.maximum > 0xFFFF_FFFF):
        return invalid(r, at, "table size must be at most 2^32 - 1 elements", 0, 0)
    if table.minimum > table.maximum:
        return invalid(r, at, "size minimum must not be greater than maximum", 0, 0)
    return True


@native
def read_memory_type(r: ptr[Reader], memory: ptr[MemoryType]) -> bool:
    """A memory's type. https://webassembly.github.io/spec/core/valid/types.html#memory-types"""
    at = r.position
    flags = read_limit_flags(r)
    if flags & LIMIT_SHARED != 0:
        return invalid(r, at, "shared memories are not supported yet", 0, 0)
    memory.is_64 = flags & LIMIT_64 != 0
    memory.has_maximum = flags & LIMIT_MAXIMUM != 0
    memory.page_bits = PAGE_BITS
    most = u64(1) << 48 if memory.is_64 else u64(1) << 16
    at = r.position
    memory.minimum = read_leb(r, 64, False)
    if memory.has_maximum:
        memory.maximum = read_leb(r, 64, False)
    else:
        memory.maximum = most
    if failed(r):
        return False
    if memory.minimum > most or memory.maximum > most:
        if memory.is_64:
            return invalid(r, at, "memory size must be at most 2^48 pages (16 EiB)", 0, 0)
        return invalid(r, at, "memory size must be at most 65536 pages (4 GiB)", 0, 0)
    if memory.minimum > memory.maximum:
        return invalid(r, at, "size minimum must not be greater than maximum", 0, 0)
    return True


@native
def read_global_type(module: ptr[Module], r: ptr[Reader], held: ptr[GlobalType]) -> bool:
    """A global's type: what it holds and whether it may change."""
    held.kind = read_value_type(module, r)
    at = r.position
    mutable = read_byte(r)
    if failed(r):
        return False
    if mutable > 1:
        return malformed_at(r, at, "malformed mutability", 0, 0)
    held.mutable = mutable == 1
    return True


@inline
def has_default(kind: u32) -> bool:
    """Whether there is a value that stands in where none was given: zero, or null for nullable references."""
    return not is_reference(kind) or kind & NULLABLE != 0
