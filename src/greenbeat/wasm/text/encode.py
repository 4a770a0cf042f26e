"""The binary format, written: LEB128 integers, vectors, sections and the name section (specification, Binary Format).

A `BinaryModule` collects what the parser has encoded, entry by entry, and puts the sections together in the order
the binary format wants. Nothing here knows the text format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

PREAMBLE = b"\0asm\x01\0\0\0"

_ONE_BYTE = [bytes([value]) for value in range(128)]

# The sections in their order in the binary, by the names the @custom annotation uses for them, with their ids.
SECTION_ORDER = {
    "type": 1,
    "import": 2,
    "func": 3,
    "table": 4,
    "memory": 5,
    "tag": 13,
    "global": 6,
    "export": 7,
    "start": 8,
    "elem": 9,
    "datacount": 12,
    "code": 10,
    "data": 11,
}


def unsigned(value: int) -> bytes:
    """An unsigned LEB128 integer (Integers)."""
    if value < 128:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def signed(value: int) -> bytes:
    """A signed LEB128 integer (Integers)."""
    encoded = bytearray()
    while not -64 <= value < 64:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value & 127)
    return bytes(encoded)


def vector(items: Sequence[bytes]) -> bytes:
    """A vector of encoded items: their number, then the items (Lists)."""
    return unsigned(len(items)) + b"".join(items)


def sized(content: bytes) -> bytes:
    """Bytes preceded by their number; also how names are encoded (Names)."""
    return unsigned(len(content)) + content


def section(identifier: int, content: bytes) -> bytes:
    """One section (Sections)."""
    return bytes([identifier]) + sized(content)


def custom_section(name: bytes, content: bytes) -> bytes:
    """A custom section (Custom Section)."""
    return section(0, sized(name) + content)


def run_lengths(items: Iterable[bytes]) -> list[bytes]:
    """Consecutive equal items as pairs of count and item, the way locals are declared (Code Section)."""
    runs: list[tuple[int, bytes]] = []
    for item in items:
        if runs and runs[-1][1] == item:
            runs[-1] = (runs[-1][0] + 1, item)
        else:
            runs.append((1, item))
    return [unsigned(count) + item for count, item in runs]


NameMap = Mapping[int, str]


def _name_map(names: NameMap) -> bytes:
    return vector([unsigned(index) + sized(name.encode()) for index, name in sorted(names.items())])


def _indirect_name_map(maps: Mapping[int, NameMap]) -> bytes:
    return vector([unsigned(index) + _name_map(names) for index, names in sorted(maps.items()) if names])


@dataclass
class Names:
    """What the name section tells: the identifiers of the source, without their `$` (appendix, name section)."""

    module: str | None = None
    functions: dict[int, str] = field(default_factory=dict)
    locals: dict[int, NameMap] = field(default_factory=dict)
    labels: dict[int, NameMap] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    tables: dict[int, str] = field(default_factory=dict)
    memories: dict[int, str] = field(default_factory=dict)
    globals: dict[int, str] = field(default_factory=dict)
    elements: dict[int, str] = field(default_factory=dict)
    data: dict[int, str] = field(default_factory=dict)
    fields: dict[int, NameMap] = field(default_factory=dict)
    tags: dict[int, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The content of the section behind its name; empty when nothing has a name."""
        parts = []
        if self.module is not None:
            parts.append(section(0, sized(self.module.encode())))
        direct: dict[int, NameMap] = {
            1: self.functions,
            4: self.types,
            5: self.tables,
            6: self.memories,
            7: self.globals,
            8: self.elements,
            9: self.data,
            11: self.tags,
        }
        indirect = {2: self.locals, 3: self.labels, 10: self.fields}
        contents = {identifier: _name_map(names) for identifier, names in direct.items() if names}
        contents |= {
            identifier: _indirect_name_map(maps) for identifier, maps in indirect.items() if any(maps.values())
        }
        parts += [section(identifier, content) for identifier, content in sorted(contents.items())]
        return b"".join(parts)


@dataclass(frozen=True)
class CustomSection:
    """A custom section and its place: before or after one of `SECTION_ORDER`, or of `first` and `last`."""

    name: bytes
    content: bytes
    relation: str = "after"
    anchor: str = "last"


@dataclass
class BinaryModule:
    """The entries of every section, each already encoded."""

    types: list[bytes] = field(default_factory=list)
    imports: list[bytes] = field(default_factory=list)
    functions: list[bytes] = field(default_factory=list)
    tables: list[bytes] = field(default_factory=list)
    memories: list[bytes] = field(default_factory=list)
    tags: list[bytes] = field(default_factory=list)
    globals: list[bytes] = field(default_factory=list)
    exports: list[bytes] = field(default_factory=list)
    start: int | None = None
    elements: list[bytes] = field(default_factory=list)
    code: list[bytes] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    needs_data_count: bool = False
    names: Names = field(default_factory=Names)
    custom: list[CustomSection] = field(default_factory=list)

    def encode(self) -> bytes:
        """The whole module (Modules)."""
        entries = {
            "type": self.types,
            "import": self.imports,
            "func": self.functions,
            "table": self.tables,
            "memory": self.memories,
            "tag": self.tags,
            "global": self.globals,
            "export": self.exports,
            "elem": self.elements,
            "code": self.code,
            "data": self.data,
        }
        contents = {name: vector(items) for name, items in entries.items() if items}
        if self.start is not None:
            contents["start"] = unsigned(self.start)
        if self.needs_data_count:
            contents["datacount"] = unsigned(len(self.data))
        parts = [PREAMBLE]
        for anchor in ("first", *SECTION_ORDER, "last"):
            parts += self._custom_sections("before", anchor)
            if anchor in contents:
                parts.append(section(SECTION_ORDER[anchor], contents[anchor]))
            parts += self._custom_sections("after", anchor)
        names = self.names.encode()
        if names:
            parts.append(custom_section(b"name", names))
        return b"".join(parts)

    def _custom_sections(self, relation: str, anchor: str) -> list[bytes]:
        return [
            custom_section(each.name, each.content)
            for each in self.custom
            if each.relation == relation and each.anchor == anchor
        ]
