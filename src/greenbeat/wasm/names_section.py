"""The name section: what the functions, locals and other things of a module are called, for people to read.

It is read tolerantly: what is malformed is left out, since names change nothing about what a module does.

    subsection │ id │ size │ count │ index name │ index name │ ...
                 0 module, 1 functions, 2 locals (per function), 3 labels, 4 types, 5 tables, 6 memories, 7 globals, ...

https://webassembly.github.io/spec/core/appendix/custom.html#name-section
"""

from greenbeat.native.records import field, record

MODULE, FUNCTIONS, LOCALS, TYPES, TABLES, MEMORIES, GLOBALS, ELEMENTS, DATAS = 0, 1, 2, 4, 5, 6, 7, 8, 9


class _Cut(Exception):
    """The section ends inside of something, or a number is too long."""


class _Cursor:
    """A position in some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self) -> int:
        result = shift = 0
        while shift < 35:
            if self.at >= len(self.data):
                raise _Cut
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result
        raise _Cut

    def take(self) -> bytes:
        """As many bytes as a number says."""
        size = self.number()
        if size > len(self.data) - self.at:
            raise _Cut
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self) -> str:
        return self.take().decode("utf-8", "replace")

    def name_map(self, found: dict[int, str]) -> None:
        """Indices and their names, the first name of each, as far as they can be read."""
        for _ in range(self.number()):
            index = self.number()
            found.setdefault(index, self.name())


@record()
class Names:
    """Names by index. `locals` is by function, and there by local, parameters first."""

    module: str | None = None
    functions: dict[int, str] = field(default_factory=dict)
    locals: dict[int, dict[int, str]] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    tables: dict[int, str] = field(default_factory=dict)
    memories: dict[int, str] = field(default_factory=dict)
    globals: dict[int, str] = field(default_factory=dict)
    elements: dict[int, str] = field(default_factory=dict)
    datas: dict[int, str] = field(default_factory=dict)

    @staticmethod
    def read(data: bytes) -> "Names":
        """Read the contents of a name section."""
        names = Names()
        outer = _Cursor(data)
        while outer.at < len(data):
            number = data[outer.at]
            outer.at += 1
            try:
                inner = _Cursor(outer.take())
            except _Cut:
                break
            try:
                names._subsection(number, inner)
            except _Cut:
                continue
        return names

    def _subsection(self, number: int, cursor: _Cursor) -> None:
        maps = {
            FUNCTIONS: self.functions,
            TYPES: self.types,
            TABLES: self.tables,
            MEMORIES: self.memories,
            GLOBALS: self.globals,
            ELEMENTS: self.elements,
            DATAS: self.datas,
        }
        if number == MODULE:
            self.module = cursor.name()
        elif number == LOCALS:
            for _ in range(cursor.number()):
                cursor.name_map(self.locals.setdefault(cursor.number(), {}))
        elif number in maps:
            cursor.name_map(maps[number])
