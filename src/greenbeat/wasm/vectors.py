"""Vectors of the binary format: a count that is believed only as far as the bytes go, and room for that many items.

A hostile count never makes the decoder take memory: each item is at least a byte, and the limits bound the rest.
https://webassembly.github.io/spec/core/binary/conventions.html#vectors
"""

from greenbeat.native import cast, inline, native, ptr, u8, u32, u64, unlikely, void
from greenbeat.runtime.arena import allocate_array
from greenbeat.runtime.layout import Module
from greenbeat.wasm import limits
from greenbeat.wasm.reader import OUT_OF_MEMORY, Reader, fail, invalid, malformed_at, read_u32, remaining


@native(cold=True)
def out_of_memory(r: ptr[Reader]) -> bool:
    """Record that the machine has no memory for this module; returns False."""
    return fail(r, OUT_OF_MEMORY, r.position, cast(ptr[u8], "not enough memory to load the module"), 0, 0)


@native
def counted(r: ptr[Reader], already: u32, limit: u64, message: ptr[u8]) -> u32:
    """A vector's length; with the items there are already it is within a limit, or `message` says what the limit is."""
    at = r.position
    count = read_u32(r)
    if unlikely(u64(count) > remaining(r)):
        malformed_at(r, at, "unexpected end: there are more items than bytes", 0, 0)
        return 0
    if unlikely(u64(count) + u64(already) > limit):
        invalid(r, at, message, 0, 0)
        return 0
    return count


@inline
def read_count(r: ptr[Reader], limit, what) -> u32:
    """A vector's length, within one of the limits that the engines agree on."""
    return counted(r, 0, limit, cast(ptr[u8], limits.exceeded(limit, what)))


@inline
def read_more_count(r: ptr[Reader], already: u32, limit, what) -> u32:
    """The length of a vector whose items come after others that the limit counts too."""
    return counted(r, already, limit, cast(ptr[u8], limits.exceeded(limit, what)))


@native
def new_array(module: ptr[Module], r: ptr[Reader], count: u64, size: u64) -> ptr[void]:
    """Zeroed room for items in the module's arena, or null and a failure."""
    made = allocate_array(module.arena, count, size)
    if unlikely(made is None):
        out_of_memory(r)
    return made
