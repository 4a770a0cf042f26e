"""Names for perf: GREENBEAT_PERF=1 writes /tmp/perf-PID.map, which `perf report` reads for code that has no file.

The linker tells the addresses of global symbols only, but most functions are internal. They are in the object's symbol
table, at offsets in sections, and the linker lays executable sections out one after the other, each at its alignment:

    known global symbol ─▶ its section's address ─▶ the other sections' ─▶ every function's
"""

import os
import struct
from dataclasses import dataclass, field

SYMBOL_TABLE, EXECUTABLE, FUNCTION, LOCAL = 2, 4, 2, 0


@dataclass
class Symbol:
    """A function of an object file: where it starts in its section."""

    name: str
    offset: int
    size: int
    is_local: bool


@dataclass
class Section:
    """An executable section and its functions."""

    size: int
    alignment: int
    functions: list[Symbol] = field(default_factory=list)


def executable_sections(data: bytes) -> list[Section]:
    """The executable sections of a 64-bit little-endian ELF object; none of another kind of object."""
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    start, size, count = *struct.unpack_from("<Q", data, 0x28), *struct.unpack_from("<HH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    code = {
        index: Section(header[5], header[8])
        for index, header in enumerate(headers)
        if header[2] & EXECUTABLE and header[5] > 0
    }
    for _, kind, _, _, offset, length, link, _, _, _ in headers:
        if kind != SYMBOL_TABLE:
            continue
        names = headers[link][4]
        for place in range(offset, offset + length, 24):
            name, info, _, section, value, extent = struct.unpack_from("<IBBHQQ", data, place)
            if info & 15 == FUNCTION and section in code:
                text = data[names + name : data.index(b"\0", names + name)].decode()
                code[section].functions.append(Symbol(text, value, extent, info >> 4 == LOCAL))
    return list(code.values())


def anchors(data: bytes) -> list[str]:
    """Global functions of an object; knowing the address of one is knowing them all."""
    return [f.name for section in executable_sections(data) for f in section.functions if not f.is_local]


def function_addresses(data: bytes, known: dict[str, int]) -> list[tuple[int, int, str]]:
    """Start, size and name of every function of a linked object, from the addresses of its global functions."""
    placed, offset, base = [], 0, None
    for section in executable_sections(data):
        offset = (offset + section.alignment - 1) & -section.alignment
        placed.append((offset, section))
        for function in section.functions:
            if base is None and function.name in known:
                base = known[function.name] - offset - function.offset
        offset += section.size
    if base is None:
        return []
    return [(base + at + f.offset, f.size, f.name) for at, section in placed for f in section.functions]


def append(functions: list[tuple[int, int, str]]) -> None:
    """Add functions to this process's map."""
    with open(f"/tmp/perf-{os.getpid()}.map", "a", encoding="utf-8") as file:
        file.writelines(f"{start:x} {size:x} {name}\n" for start, size, name in functions)
