"""The binary format as far as fuzzing needs it: numbers, sections, and one more export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

HEADER = b"\0asm\1\0\0\0"
(TYPES, IMPORTS, FUNCTIONS, TABLES, MEMORIES, GLOBALS, EXPORTS, START, ELEMENTS, CODE, DATA, DATA_COUNT) = range(1, 13)
# The order of the sections in a module.
ORDER = (TYPES, IMPORTS, FUNCTIONS, TABLES, MEMORIES, GLOBALS, EXPORTS, START, ELEMENTS, DATA_COUNT, CODE, DATA)
# The export that lets a fuzzer refill what bounds a module's loops and calls.
FUEL = "\x01fuel"


def unsigned(value: int) -> bytes:
    """An unsigned LEB128 number."""
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def signed(value: int) -> bytes:
    """A signed LEB128 number."""
    parts = bytearray()
    while not -64 <= value < 64:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value & 0x7F)
    return bytes(parts)


def vector(items: Iterable[bytes]) -> bytes:
    """A count and that many items."""
    known = list(items)
    return unsigned(len(known)) + b"".join(known)


def name(text: str) -> bytes:
    """A length and that many bytes."""
    data = text.encode()
    return unsigned(len(data)) + data


def section(number: int, contents: bytes) -> bytes:
    """A section with its size."""
    return bytes([number]) + unsigned(len(contents)) + contents


def read_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """A number and where it ends."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def sections(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """The sections of a well-formed module: number, where it starts, where its contents start, where it ends."""
    position = len(HEADER)
    while position < len(data):
        size, contents = read_unsigned(data, position + 1)
        yield data[position], position, contents, contents + size
        position = contents + size


def with_export(data: bytes, text: str, kind: int, index: int) -> bytes:
    """A module with one export more."""
    entry = name(text) + bytes([kind]) + unsigned(index)
    behind = len(HEADER)
    for number, start, contents, end in sections(data):
        if number == EXPORTS:
            count, first = read_unsigned(data, contents)
            return data[:start] + section(EXPORTS, unsigned(count + 1) + data[first:end] + entry) + data[end:]
        if number == 0 or ORDER.index(number) < ORDER.index(EXPORTS):
            behind = end
    return data[:behind] + section(EXPORTS, unsigned(1) + entry) + data[behind:]


def own_globals(data: bytes) -> int:
    """How many globals a module declares, imported ones not counted."""
    for number, _, contents, _ in sections(data):
        if number == GLOBALS:
            return read_unsigned(data, contents)[0]
    return 0
