"""The names of a module: an index space for each sort of definition (specification, Text Format, Contexts, Indices).

Before anything is encoded the module parser walks over all fields once and defines their names here, so a name may
be used before its definition. The type space also owns the type definitions, because an inline signature refers
to the first equal function type and defines one when there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .cursor import Cursor
from .encode import sized, unsigned, vector
from .errors import short


class IndexSpace:
    """The definitions of one sort, numbered in order, some of them named."""

    def __init__(self, sort: str) -> None:
        self.sort = sort
        self.count = 0
        self.indices: dict[str, int] = {}
        self.display_names: dict[int, str] = {}
        """Names for the name section: the identifiers, unless an annotation `(@name "...")` overrides them."""

    def define(self, cursor: Cursor) -> int:
        """Give the next index to the name at the cursor, or to nothing if no name is there."""
        position = cursor.position
        name = cursor.try_identifier()
        display_name = take_name_annotation(cursor, self.sort)
        index = self.count
        if name is not None:
            if name in self.indices:
                raise cursor.error(f"duplicate {self.sort} {short(name)}", position)
            self.indices[name] = index
            self.display_names[index] = name[1:]
        if display_name is not None:
            self.display_names[index] = display_name
        self.count += 1
        return index

    def add(self, count: int = 1) -> int:
        """Give out indices that have no names; the first of them."""
        self.count += count
        return self.count - count

    def take(self, cursor: Cursor) -> int:
        """Consume an index: a number, or the name of a definition."""
        text = cursor.texts[cursor.position]
        index = self.indices.get(text)
        if index is not None:
            cursor.position += 1
            return index
        if text.startswith("$") and text != "$":
            raise cursor.error(f"unknown {self.sort} {short(text)}")
        return cursor.take_unsigned(32, f"the index or the name of a {self.sort}")

    def take_optional(self, cursor: Cursor) -> int:
        """Consume an index if one is next; otherwise it is zero."""
        return self.take(cursor) if cursor.at_index() else 0


def take_name_annotation(cursor: Cursor, sort: str) -> str | None:
    """The name given by an annotation `(@name "...")` here (appendix, name annotations)."""
    annotations = cursor.take_annotations("name")
    if not annotations:
        return None
    if len(annotations) > 1:
        raise cursor.tokens.error(f"@name annotation: multiple names for one {sort}", annotations[1].start)
    reader = Cursor(annotations[0].body)
    name = reader.take_name("a name in quotation marks in the @name annotation").decode()
    reader.take_end()
    return name


class FunctionType(NamedTuple):
    """A function type; its value types are in their binary encoding, which makes equal types equal bytes."""

    parameters: tuple[bytes, ...]
    results: tuple[bytes, ...]

    def encode(self) -> bytes:
        return b"\x60" + vector(self.parameters) + vector(self.results)


class TypeSpace(IndexSpace):
    """The types of a module."""

    def __init__(self) -> None:
        super().__init__("type")
        self.groups: list[bytes] = []
        """The entries of the type section: one recursion group each, in order."""
        self.fields: dict[int, IndexSpace] = {}
        """The field names of the struct types, by index of the type."""
        self._function_types: dict[int, FunctionType] = {}
        self._first_index: dict[FunctionType, int] = {}

    def set_function_type(self, index: int, signature: FunctionType, *, shareable: bool) -> None:
        """Record a function type; a shareable one also serves inline signatures equal to it (Type Uses)."""
        self._function_types[index] = signature
        if shareable:
            self._first_index.setdefault(signature, index)

    def function_type(self, index: int) -> FunctionType | None:
        """The function type at an index, or None if there is no type or another sort of type."""
        return self._function_types.get(index)

    def index_of(self, signature: FunctionType) -> int:
        """The first type that defines exactly this signature; a new one behind all others if there is none."""
        index = self._first_index.get(signature)
        if index is None:
            index = self.add()
            self.groups.append(signature.encode())
            self.set_function_type(index, signature, shareable=True)
        return index


@dataclass
class Scope:
    """All index spaces of a module."""

    types: TypeSpace = field(default_factory=TypeSpace)
    functions: IndexSpace = field(default_factory=lambda: IndexSpace("func"))
    tables: IndexSpace = field(default_factory=lambda: IndexSpace("table"))
    memories: IndexSpace = field(default_factory=lambda: IndexSpace("memory"))
    globals: IndexSpace = field(default_factory=lambda: IndexSpace("global"))
    tags: IndexSpace = field(default_factory=lambda: IndexSpace("tag"))
    elements: IndexSpace = field(default_factory=lambda: IndexSpace("elem"))
    data: IndexSpace = field(default_factory=lambda: IndexSpace("data"))
    uses_data_index: bool = False
    """Whether code names a data segment, which needs a data count section (Binary Format, Data Count Section)."""

    def external(self, sort: str) -> IndexSpace | None:
        """The space of what can be imported and exported, by its keyword."""
        return {
            "func": self.functions,
            "table": self.tables,
            "memory": self.memories,
            "global": self.globals,
            "tag": self.tags,
        }.get(sort)


EXTERNAL_KINDS = {"func": 0, "table": 1, "memory": 2, "global": 3, "tag": 4}
"""How the binary format numbers what can be imported and exported (Binary Format, Import Section)."""


def encode_export(name: bytes, sort: str, index: int) -> bytes:
    """An entry of the export section (Binary Format, Export Section)."""
    return sized(name) + bytes([EXTERNAL_KINDS[sort]]) + unsigned(index)
