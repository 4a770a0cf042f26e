"""Names of the binary format: a length and that many bytes of UTF-8.

https://webassembly.github.io/spec/core/binary/values.html#names
"""

from greenbeat.native import inline, load, native, ptr, u8, u32, u64, unlikely
from greenbeat.wasm.reader import Reader, failed, malformed, read_u32, remaining

HIGH_BITS = 0x8080_8080_8080_8080


@inline
def is_continuation(byte: u8) -> bool:
    """Whether a byte continues a character of UTF-8."""
    return byte & 0xC0 == 0x80


@native(shared=True)
def is_utf8(text: ptr[u8], length: u64) -> bool:
    """Whether bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF."""
    end = text + length
    while text < end:
        if u64(end - text) >= 8 and load(u64, text) & HIGH_BITS == 0:
            text += 8
            continue
        first = text[0]
        left = u64(end - text)
        if first < 0x80:
            text += 1
        elif first < 0xE0:
            if first < 0xC2 or left < 2 or not is_continuation(text[1]):
                return False
            text += 2
        elif first < 0xF0:
            if left < 3 or not is_continuation(text[1]) or not is_continuation(text[2]):
                return False
            if (first == 0xE0 and text[1] < 0xA0) or (first == 0xED and text[1] >= 0xA0):
                return False
            text += 3
        else:
            if first > 0xF4 or left < 4:
                return False
            if not is_continuation(text[1]) or not is_continuation(text[2]) or not is_continuation(text[3]):
                return False
            if (first == 0xF0 and text[1] < 0x90) or (first == 0xF4 and text[1] >= 0x90):
                return False
            text += 4
    return True


@native
def read_name(r: ptr[Reader]) -> u32:
    """Step over a name; returns its length. Its bytes end where the reader stands."""
    length = read_u32(r)
    if failed(r):
        return 0
    if unlikely(u64(length) > remaining(r)):
        malformed(r, "length out of bounds")
        return 0
    if unlikely(not is_utf8(r.position, u64(length))):
        malformed(r, "malformed UTF-8 encoding")
        return 0
    r.position = r.position + length
    return length
