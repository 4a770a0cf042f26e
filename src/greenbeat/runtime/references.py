"""The set of Python objects that guests may hold as externref: it owns one reference to each.

    slots   ┌─────────┬───┬─────────┬───┐    open addressing; an object's address, or 0
            │ address │ 0 │ address │ 0 │    lowest bit: seen by the sweep that is going on
            └─────────┴───┴─────────┴───┘

Guests copy references as numbers, so nothing tells when the last copy is gone. When the set has doubled, a sweep marks
every object whose address is found where a guest may have it, and lets go of the others (see `groups.py`).
"""

from greenbeat.native import cast, inline, native, ptr, struct, u64
from greenbeat.runtime.arena import calloc, free
from greenbeat.runtime.pythonapi import Object, Py_DecRef, Py_IncRef

FIRST_SLOTS = 64
MULTIPLIER = 0x9E37_79B9_7F4A_7C15
# Objects are aligned to 8 bytes at least.
MARK = 1


@struct
class References:
    """The set; empty when all zeros. A sweep is due when `count` reaches `sweep_at`."""

    slots: ptr[u64]
    mask: u64
    count: u64
    sweep_at: u64


@inline
def place_of(set: ptr[References], address: u64) -> u64:
    """The slot that has an address, or the free one where it belongs."""
    at = ((address >> 3) * MULTIPLIER >> 20) & set.mask
    while set.slots[at] != 0 and set.slots[at] & ~u64(MARK) != address:
        at = (at + 1) & set.mask
    return at


@native
def reserve_references(set: ptr[References], count: u64) -> bool:
    """Make room for `count` objects in all; False when there is no memory."""
    size = u64(FIRST_SLOTS)
    while size * 3 < count * 4:
        size = size * 2
    if set.slots is not None and size <= set.mask + 1:
        return True
    slots = cast(ptr[u64], calloc(size, 8))
    if slots is None:
        return False
    before = set.slots
    before_count = set.mask + 1
    set.slots = slots
    set.mask = size - 1
    if before is not None:
        for i in range(before_count):
            if before[i] != 0:
                set.slots[place_of(set, before[i] & ~u64(MARK))] = before[i]
        free(before)
    return True


@native
def add_reference(set: ptr[References], item: ptr[Object]) -> bool:
    """Own an object, once; there must be room. False when the set has it already."""
    at = place_of(set, cast(u64, item))
    if set.slots[at] != 0:
        return False
    Py_IncRef(item)
    set.slots[at] = cast(u64, item)
    set.count += 1
    return True


@native
def mark_reference(set: ptr[References], word: u64) -> None:
    """Note that a guest may hold this word; most words are no object's address."""
    if word == 0 or word & 7 != 0:
        return
    at = place_of(set, word)
    if set.slots[at] != 0:
        set.slots[at] = word | MARK


@native
def mark_range(set: ptr[References], start: ptr[u64], end: ptr[u64]) -> None:
    """Note every word of a range."""
    while start < end:
        mark_reference(set, start[0])
        start += 1


@native
def drop_unmarked(set: ptr[References]) -> bool:
    """Let go of what no mark was put on; False (and nothing dropped) when there is no memory."""
    kept = u64(0)
    for i in range(set.mask + 1):
        if set.slots[i] & MARK != 0:
            kept += 1
    size = u64(FIRST_SLOTS)
    while size * 3 < kept * 8:
        size = size * 2
    slots = cast(ptr[u64], calloc(size, 8))
    if slots is None:
        for i in range(set.mask + 1):
            set.slots[i] = set.slots[i] & ~u64(MARK)
        return False
    before = set.slots
    before_count = set.mask + 1
    set.slots = slots
    set.mask = size - 1
    set.count = kept
    for i in range(before_count):
        if before[i] & MARK != 0:
            address = before[i] & ~u64(MARK)
            set.slots[place_of(set, address)] = address
    # The set is whole again: what dies now may run any Python code.
    for i in range(before_count):
        if before[i] != 0 and before[i] & MARK == 0:
            Py_DecRef(cast(ptr[Object], before[i]))
    free(before)
    return True


@native
def drop_references(set: ptr[References]) -> None:
    """Let go of everything."""
    slots = set.slots
    count = set.mask + 1
    set.slots = None
    set.mask = 0
    set.count = 0
    if slots is not None:
        for i in range(count):
            if slots[i] != 0:
                Py_DecRef(cast(ptr[Object], slots[i]))
        free(slots)
