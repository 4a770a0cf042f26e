"""Linear memories: reserved once, never moved, committed as they grow.

    base                     length           committed              base + reserved
     │  the guest's bytes      │ zeros, no access by the guest │ no access at all  │
     ├─────────────────────────┼───────────────────────────────┼───────────────────┤
       read and write            read and write (≤ 64 KiB)       PROT_NONE

A *guarded* memory reserves every address that a 32-bit index plus a 32-bit offset can name: an access out of bounds
hits PROT_NONE pages, and the fault becomes a trap (see `faults.py`), so that loads and stores check nothing. Its length
is then always a multiple of 64 KiB. Other memories reserve what they may grow to, and are checked by each load and
store.

Nothing here frees a memory while somebody can still see it: that is the business of `groups.py`.
"""

from greenbeat.native import (
    addressof,
    atomic_store,
    cast,
    export,
    fill,
    inline,
    move,
    native,
    ptr,
    sizeof,
    static,
    u8,
    u32,
    u64,
    unlikely,
)
from greenbeat.runtime.arena import calloc, free
from greenbeat.runtime.faults import fault_target, forget_reservation, install_fault_handler, register_reservation
from greenbeat.runtime.layout import TRAP_MEMORY, TRAP_NONE, Instance, Memory, MemoryType
from greenbeat.runtime.system import GRANULE, READ, WRITE, mprotect, munmap, reserve
from greenbeat.tasks.locks import lock, unlock

GROWTH_FAILED = (1 << 64) - 1
GUARDED_RESERVATION = (1 << 33) + GRANULE
# What a memory reserves at most when it is not guarded and its minimum does not need more.
LARGEST_RESERVATION = 1 << 36

# The lock of whoever grows a memory or a table: growth is rare, and short.
growing = static(u32, name="growing")
guard_pages_wanted = static(u32, 1, name="guard_pages_wanted")


@export
def set_guard_pages(wanted: u32) -> u32:
    """Whether memories made from now on may be guarded (1) or not (0). Returns what it was."""
    before = guard_pages_wanted[0]
    guard_pages_wanted[0] = wanted
    return before


@inline
def bytes_of(pages: u64, page_bits: u32) -> u64:
    """A number of pages in bytes, or the largest number when that does not fit."""
    return pages << u64(page_bits) if pages <= ~u64(0) >> u64(page_bits) else ~u64(0)


@native
def commit(memory: ptr[Memory], length: u64) -> bool:
    """Make the first `length` bytes accessible; False when the system refuses."""
    wanted = (length + (GRANULE - 1)) & ~u64(GRANULE - 1)
    if wanted <= memory.committed:
        return True
    if mprotect(memory.base + memory.committed, wanted - memory.committed, READ | WRITE) != 0:
        return False
    memory.committed = wanted
    return True


@native
def reserve_guarded(memory: ptr[Memory]) -> bool:
    """Reserve with guard pages; False when this platform or the address space has no room for them."""
    if guard_pages_wanted[0] == 0 or fault_target[0] == 0 or not install_fault_handler():
        return False
    base = reserve(GUARDED_RESERVATION)
    if base is None:
        return False
    if not register_reservation(base, GUARDED_RESERVATION):
        munmap(base, GUARDED_RESERVATION)
        return False
    memory.base = base
    memory.reserved = GUARDED_RESERVATION
    memory.guarded = True
    return True


@native
def reserve_checked(memory: ptr[Memory], minimum: u64, most: u64) -> bool:
    """Reserve at least `minimum` and, if there is room, `most` bytes."""
    size = most
    if size > LARGEST_RESERVATION:
        size = LARGEST_RESERVATION
    if size < minimum:
        size = minimum
    if size > ~u64(GRANULE):
        return False
    size = (size + (GRANULE - 1)) & ~u64(GRANULE - 1)
    if size == 0:
        size = GRANULE
    while True:
        memory.base = reserve(size)
        if memory.base is not None:
            memory.reserved = size
            return True
        if size // 2 < minimum or size <= GRANULE:
            return False
        size = (size // 2 + (GRANULE - 1)) & ~u64(GRANULE - 1)


@native(shared=True)
def new_memory(type: ptr[MemoryType], limit: u64) -> ptr[Memory]:
    """A memory of its minimum size, all zeros; null when `limit` (bytes) or the system does not allow it."""
    minimum = bytes_of(type.minimum, type.page_bits)
    if minimum > limit:
        return cast(ptr[Memory], 0)
    memory = cast(ptr[Memory], calloc(1, sizeof(Memory)))
    if memory is None:
        return cast(ptr[Memory], 0)
    memory.maximum = type.maximum
    memory.limit = limit
    memory.is_64 = type.is_64
    memory.page_bits = type.page_bits
    most = bytes_of(type.maximum, type.page_bits)
    if limit < most:
        most = limit
    if type.is_64 or type.page_bits < 16 or not reserve_guarded(memory):
        if not reserve_checked(memory, minimum, most):
            free(memory)
            return cast(ptr[Memory], 0)
    if not commit(memory, minimum):
        free_memory(memory)
        return cast(ptr[Memory], 0)
    memory.length = minimum
    return memory


@native(shared=True)
def free_memory(memory: ptr[Memory]) -> None:
    """Give a memory back. Nobody may use it any more."""
    if memory.guarded:
        forget_reservation(memory.base)
    munmap(memory.base, memory.reserved)
    free(memory)


@native
def memory_use(instance: ptr[Instance]) -> u64:
    """Bytes of all memories that an instance sees."""
    total = u64(0)
    for i in range(instance.module.memory_count):
        total += instance.memories[i].length
    return total


@native
def may_grow(instance: ptr[Instance], memory: ptr[Memory], length: u64) -> bool:
    """Whether the limits allow a length."""
    if length > memory.limit or length > memory.reserved or (memory.guarded and length > u64(1) << 32):
        return False
    if instance is None or length == memory.length:
        return True
    total = memory_use(instance)
    return total <= instance.memory_limit and length - memory.length <= instance.memory_limit - total


@native(shared=True)
def grow_memory(instance: ptr[Instance], memory: ptr[Memory], pages: u64) -> u64:
    """Add pages of zeros. The instance, whose limit counts for all of its memories together, may be null.

    Returns:
        The size before, in pages, or `GROWTH_FAILED`.
    """
    lock(growing)
    before = memory.length >> u64(memory.page_bits)
    result = u64(GROWTH_FAILED)
    if pages <= memory.maximum - before:
        length = bytes_of(before + pages, memory.page_bits)
        if may_grow(instance, memory, length) and commit(memory, length):
            # Other threads may use the memory meanwhile: what they can see as its length is there.
            atomic_store(addressof(memory.length), length, "release")
            result = before
    unlock(growing)
    return result


@inline
def outside(start: u64, count: u64, length: u64) -> bool:
    """Whether `count` things from `start` on do not all lie in the first `length`; nothing overflows."""
    return count > length or start > length - count


@native(shared=True)
def memory_fill(memory: ptr[Memory], start: u64, byte: u32, count: u64) -> u32:
    """memory.fill; a trap's number or 0."""
    if unlikely(outside(start, count, memory.length)):
        return TRAP_MEMORY
    fill(memory.base + start, u8(byte), count)
    return TRAP_NONE


@native(shared=True)
def memory_copy(to: ptr[Memory], origin: ptr[Memory], target: u64, source: u64, count: u64) -> u32:
    """memory.copy; a trap's number or 0. The two may be one memory and overlap."""
    if unlikely(outside(target, count, to.length) or outside(source, count, origin.length)):
        return TRAP_MEMORY
    move(to.base + target, origin.base + source, count)
    return TRAP_NONE
