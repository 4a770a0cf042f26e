"""Memory that is freed all at once: what a decoded module is made of, and the process-wide function types.

    Arena ── chunk ──▶ ┌ next │ size ┬────────────────┬──────────────┐
                 next  │             │ handed out     │ free, zeroed │
    older chunks ◀─────┴─────────────┴────────────────┴──────────────┘
                                              position ─┘          end ─┘

Everything handed out is zeroed and aligned to 16 bytes. What is large gets a chunk of its own from `calloc`, so that
its pages cost nothing until they are touched.
"""

from greenbeat.native import (
    cast,
    extern,
    likely,
    multiply_overflows,
    native,
    ptr,
    sizeof,
    struct,
    u8,
    u64,
    unlikely,
    void,
)

FIRST_CHUNK = 4096
LARGEST_CHUNK = 1 << 18
ALIGNMENT = 16
# No array is longer than this: byte counts then never come near the end of the address space.
LARGEST_ALLOCATION = 1 << 40


@extern
def malloc(size: u64) -> ptr[void]:
    """C's malloc."""


@extern
def calloc(count: u64, size: u64) -> ptr[void]:
    """C's calloc."""


@extern
def free(memory: ptr[void]) -> None:
    """C's free."""


@struct
class Chunk:
    """The head of a block from the C library; what it holds follows."""

    next: ptr["Chunk"]
    size: u64


@struct
class Arena:
    """Blocks that are freed together."""

    chunks: ptr[Chunk]
    position: ptr[u8]
    end: ptr[u8]
    # The size of the next ordinary chunk.
    grain: u64


@native(shared=True)
def initialize_arena(arena: ptr[Arena]) -> None:
    """Make an arena empty; it takes no memory yet."""
    arena.chunks = None
    arena.position = None
    arena.end = None
    arena.grain = FIRST_CHUNK


@native(shared=True)
def release_arena(arena: ptr[Arena]) -> None:
    """Free everything that came from the arena. The arena itself may be among it."""
    chunk = arena.chunks
    while chunk is not None:
        following = chunk.next
        free(chunk)
        chunk = following


@native(noinline=True)
def add_chunk(arena: ptr[Arena], size: u64) -> ptr[Chunk]:
    """A zeroed block with room for `size` bytes behind its head, or null."""
    chunk = cast(ptr[Chunk], calloc(1, size + u64(sizeof(Chunk))))
    if chunk is not None:
        chunk.size = size
        chunk.next = arena.chunks
        arena.chunks = chunk
    return chunk


@native(shared=True)
def allocate(arena: ptr[Arena], size: u64) -> ptr[void]:
    """Zeroed memory, or null when there is none."""
    if unlikely(size > LARGEST_ALLOCATION):
        return cast(ptr[void], 0)
    rounded = (size + (ALIGNMENT - 1)) & ~u64(ALIGNMENT - 1)
    if likely(rounded <= u64(arena.end - arena.position)):
        place = arena.position
        arena.position = place + rounded
        return place
    if rounded > arena.grain // 4:
        own = add_chunk(arena, rounded)
        return cast(ptr[void], 0) if own is None else own + 1
    chunk = add_chunk(arena, arena.grain)
    if chunk is None:
        return cast(ptr[void], 0)
    first = cast(ptr[u8], chunk + 1)
    arena.position = first + rounded
    arena.end = first + arena.grain
    if arena.grain < LARGEST_CHUNK:
        arena.grain = arena.grain * 2
    return first


@native(shared=True)
def allocate_array(arena: ptr[Arena], count: u64, size: u64) -> ptr[void]:
    """Zeroed room for `count` items of `size` bytes, or null."""
    if unlikely(multiply_overflows(count, size)):
        return cast(ptr[void], 0)
    return allocate(arena, count * size)
