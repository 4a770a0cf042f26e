"""The process-wide registry of function types: equal types of any two modules are one `SignatureType` with one number.

A call through a table or a reference then compares numbers, and a typed reference is the number of its type (see
`valuetypes.py`). Types live as long as the process and never move, so reading them needs no lock; new ones are made
under the GIL.

    slots      ┌────┬────┬────┬────┐    open addressing by hash: number + 1, or 0
               │ 0  │ 3  │ 0  │ 1  │
               └────┴────┴────┴────┘
    buckets[k] ──▶ the 2^(k + 6) types from number 2^(k + 6) - 64 on; buckets are never moved, only added

A function type may refer to itself. Inside a type that is being looked up such a reference is written with the heap
type `SELF`, inside a registered type with its own number: types are equal when they are equal word by word under this
reading, which is iso-recursive equality for groups of one type.
https://webassembly.github.io/spec/core/valid/conventions.html#recursive-types
"""

from greenbeat.native import (
    array,
    cast,
    copy,
    count_leading_zeros,
    export,
    inline,
    native,
    ptr,
    sizeof,
    static,
    struct,
    u32,
    u64,
    unlikely,
)
from greenbeat.runtime.arena import Arena, allocate, allocate_array, calloc, free, initialize_arena
from greenbeat.runtime.layout import SignatureType
from greenbeat.wasm.valuetypes import ABSTRACT, HEAP_MASK, REFERENCE

SELF = HEAP_MASK
FIRST_BUCKET = 6
BUCKETS = 22
FIRST_SLOTS = 256
MULTIPLIER = 0x9E37_79B9_7F4A_7C15


@struct
class Registry:
    """All function types of the process."""

    arena: Arena
    slots: ptr[u32]
    slot_mask: u32
    count: u32
    buckets: array[ptr[ptr[SignatureType]], BUCKETS]


registry = static(Registry, name="function_types")


@inline
def bucket_entry(number: u32) -> ptr[ptr[SignatureType]]:
    """The place of a number whose bucket exists."""
    shifted = number + (1 << FIRST_BUCKET)
    width = 31 - count_leading_zeros(shifted)
    return registry.buckets[width - FIRST_BUCKET] + (shifted - (u32(1) << width))


@native(shared=True)
def signature_of(number: u32) -> ptr[SignatureType]:
    """The function type with a number that a value type or a signature holds."""
    assert number < registry.count
    return bucket_entry(number)[0]


@native
def hash_words(types: ptr[u32], param_count: u32, result_count: u32) -> u32:
    """A hash that depends on where the engine was loaded, so that no module can be made to collide."""
    state = cast(u64, registry) ^ (u64(param_count) << 32 | u64(result_count))
    for i in range(param_count + result_count):
        state = (state ^ u64(types[i])) * MULTIPLIER
        state = state ^ (state >> 29)
    state = state * MULTIPLIER
    return u32(state >> 32)


@inline
def is_concrete(word: u32) -> bool:
    """Whether a value type refers to a function type."""
    return word & (REFERENCE | ABSTRACT) == REFERENCE


@native
def same_words(known: ptr[SignatureType], types: ptr[u32]) -> bool:
    """Whether a registered type with the right counts is the one looked up."""
    for i in range(known.param_count + known.result_count):
        word = known.params[i]
        if is_concrete(word) and word & HEAP_MASK == known.number:
            word = word | SELF
        if word != types[i]:
            return False
    return True


@native(noinline=True)
def grow_slots() -> bool:
    """Double the hash table; False when there is no memory."""
    size = u64(FIRST_SLOTS)
    if registry.slots is None:
        initialize_arena(registry.arena)
    else:
        size = (u64(registry.slot_mask) + 1) * 2
    slots = cast(ptr[u32], calloc(size, 4))
    if slots is None:
        return False
    mask = u32(size - 1)
    for number in range(registry.count):
        at = bucket_entry(number)[0].hash & mask
        while slots[at] != 0:
            at = (at + 1) & mask
        slots[at] = number + 1
    free(registry.slots)
    registry.slots = slots
    registry.slot_mask = mask
    return True


@native(noinline=True)
def add_signature(types: ptr[u32], param_count: u32, result_count: u32, hashed: u32) -> ptr[SignatureType]:
    """Register a new type under the next number; null when there is no memory."""
    number = registry.count
    shifted = number + (1 << FIRST_BUCKET)
    width = 31 - count_leading_zeros(shifted)
    bucket = width - FIRST_BUCKET
    if bucket >= BUCKETS:
        return cast(ptr[SignatureType], 0)
    if registry.buckets[bucket] is None:
        entries = allocate_array(registry.arena, u64(1) << u64(width), sizeof(ptr[SignatureType]))
        if entries is None:
            return cast(ptr[SignatureType], 0)
        registry.buckets[bucket] = entries
    words = param_count + result_count
    made = cast(ptr[SignatureType], allocate(registry.arena, u64(sizeof(SignatureType)) + u64(words) * 4))
    if made is None:
        return cast(ptr[SignatureType], 0)
    made.number = number
    made.param_count = param_count
    made.result_count = result_count
    made.hash = hashed
    made.params = cast(ptr[u32], made + 1)
    made.results = made.params + param_count
    copy(made.params, types, u64(words) * 4)
    for i in range(words):
        word = made.params[i]
        if is_concrete(word) and word & HEAP_MASK == SELF:
            made.params[i] = (word & ~u32(HEAP_MASK)) | number
    bucket_entry(number)[0] = made
    registry.count = number + 1
    return made


@export
def intern_signature(types: ptr[u32], param_count: u32, result_count: u32) -> ptr[SignatureType]:
    """The function type with these parameters and then results, registered if it is new; null without memory."""
    if unlikely(registry.count >= registry.slot_mask - registry.slot_mask // 4) and not grow_slots():
        return cast(ptr[SignatureType], 0)
    hashed = hash_words(types, param_count, result_count)
    mask = registry.slot_mask
    at = hashed & mask
    while registry.slots[at] != 0:
        known = bucket_entry(registry.slots[at] - 1)[0]
        same_counts = known.param_count == param_count and known.result_count == result_count
        if known.hash == hashed and same_counts and same_words(known, types):
            return known
        at = (at + 1) & mask
    made = add_signature(types, param_count, result_count, hashed)
    if made is not None:
        registry.slots[at] = made.number + 1
    return made
