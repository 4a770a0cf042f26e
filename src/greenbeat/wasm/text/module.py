"""Modules in the text format: their fields, in two passes (specification, Text Format, Modules).

The first pass defines the name of everything, so that names can be used before their definition, and checks that
imports come first. The second encodes the fields: types first, because inline signatures are compared with them,
then the others in order, so that inline signatures define new types in the order in which they appear.

Abbreviations are expanded on the way: inline imports and exports, inline data and element segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .cursor import Cursor
from .custom import custom_section
from .encode import BinaryModule, run_lengths, sized, unsigned, vector
from .expressions import ExpressionParser
from .scope import EXTERNAL_KINDS, IndexSpace, Scope, encode_export, take_name_annotation
from .segments import SegmentParser
from .types import TypeParser

_PLACED_ANNOTATIONS = frozenset({"name", "custom"})
_DEFAULT_PAGE_SIZE = 65536


@dataclass(frozen=True)
class _Function:
    """A function whose body must wait, because an inline signature further down defines its type."""

    index: int
    type: int
    body: int
    code_index: int


class ModuleParser:
    """Parses and encodes the fields of one module."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._start_of_module = cursor.position
        self.scope = Scope()
        self.types = TypeParser(cursor, self.scope)
        self.binary = BinaryModule()
        self.segments = SegmentParser(cursor, self.scope, self.types, self.binary)
        self._field_end = 0
        self._defined: str | None = None
        self._types_encoded = 0
        self._waiting: list[_Function] = []
        # How many definitions of each sort the second pass has met: the index of the next one.
        self._met = dict.fromkeys(EXTERNAL_KINDS, 0)
        self._encoders: dict[str, Callable[[], None]] = {
            "import": self._import,
            "func": self._function,
            "table": self._table,
            "memory": self._memory,
            "global": self._global,
            "tag": self._tag,
            "export": self._export,
            "start": self._start,
            "elem": self.segments.element,
            "data": self.segments.data,
        }

    def module(self) -> bytes:
        """Encode a module from behind its keyword to the parenthesis that closes it."""
        name = self.cursor.try_identifier()
        self.binary.names.module = take_name_annotation(self.cursor, "module") or (name and name[1:])
        return self.fields()

    def fields(self) -> bytes:
        """Encode a module from its first field to the parenthesis, or the end of the text, that closes it."""
        cursor = self.cursor
        fields_start = cursor.position
        for keyword in self._fields():
            self.binary.custom += map(custom_section, cursor.take_annotations("custom", cursor.position - 2))
            self._bind_field(keyword)
        self.binary.custom += map(custom_section, cursor.take_annotations("custom"))
        end = cursor.position
        cursor.position = fields_start
        for keyword in self._fields():
            self._encode_types(keyword)
        cursor.position = fields_start
        for keyword in self._fields():
            if keyword in self._encoders:
                self._encoders[keyword]()
                cursor.take_close()
        for function in self._waiting:
            cursor.position = function.body
            local_space = IndexSpace("local")
            signature = self.scope.types.function_type(function.type)
            local_space.add(len(signature.parameters) if signature else 0)
            self.binary.code[function.code_index] = self._body(function.index, local_space)
        cursor.position = end
        cursor.refuse_other_annotations(_PLACED_ANNOTATIONS, self._start_of_module)
        return self._finish()

    def _fields(self) -> Iterator[str]:
        """The keyword of every field, with the cursor behind it; whatever the caller does, the next field follows."""
        cursor = self.cursor
        while cursor.texts[cursor.position] == "(":
            self._field_end = cursor.tokens.closing[cursor.position]
            after = self._field_end + 1
            cursor.position += 2
            yield cursor.texts[cursor.position - 1]
            cursor.position = after
        if cursor.texts[cursor.position] not in (")", ""):
            raise cursor.unexpected("a module field in parentheses")

    # First pass: names.

    def _bind_field(self, keyword: str) -> None:
        cursor = self.cursor
        space = self.scope.external(keyword)
        if space is not None:
            space.define(cursor)
            self._bind_definition(keyword)
        elif keyword == "import":
            self._bind_import()
        elif keyword == "type":
            self.scope.types.define(cursor)
        elif keyword == "rec":
            while cursor.try_open("type"):
                after = cursor.tokens.closing[cursor.position - 2] + 1
                self.scope.types.define(cursor)
                cursor.position = after
        elif keyword == "elem":
            self.scope.elements.define(cursor)
        elif keyword == "data":
            self.scope.data.define(cursor)
        elif keyword not in self._encoders:
            cursor.position -= 1
            raise cursor.unexpected("a module field such as `type`, `import`, `func`, `memory` or `export`")

    def _bind_definition(self, sort: str) -> None:
        """Look ahead whether a definition is an inline import, and whether it contains a segment."""
        cursor = self.cursor
        while cursor.at_open("export"):
            cursor.skip()
        if cursor.at_open("import"):
            self._check_import_order()
            return
        self._defined = self._defined or sort
        if sort in ("table", "memory"):
            keyword, space = ("elem", self.scope.elements) if sort == "table" else ("data", self.scope.data)
            while cursor.texts[cursor.position] != ")":
                if cursor.at_open(keyword):
                    space.add()
                cursor.skip()

    def _check_import_order(self) -> None:
        if self._defined:
            sort = "function" if self._defined == "func" else self._defined
            raise self.cursor.error(f"import after {sort}: expected all imports before the first definition")

    def _bind_import(self) -> None:
        cursor = self.cursor
        self._check_import_order()
        cursor.take_name("the name of a module in quotation marks")
        cursor.take_name("the name of an import in quotation marks")
        sort = cursor.texts[cursor.position + 1] if cursor.texts[cursor.position] == "(" else ""
        space = self.scope.external(sort)
        if space is None:
            raise cursor.unexpected("the type of the import: `(func`, `(table`, `(memory`, `(global` or `(tag`")
        cursor.position += 2
        space.define(cursor)

    # Second pass: types, then everything else.

    def _encode_types(self, keyword: str) -> None:
        cursor, groups = self.cursor, self.scope.types.groups
        if keyword == "type":
            groups.append(self._type_definition(alone=True))
            cursor.take_close()
        elif keyword == "rec":
            members = []
            while cursor.try_open("type"):
                members.append(self._type_definition(alone=False))
                cursor.take_close()
            cursor.take_close("`(type` or `)`")
            groups.append(b"\x4e" + vector(members))

    def _type_definition(self, *, alone: bool) -> bytes:
        self.cursor.try_identifier()
        index = self._types_encoded
        self._types_encoded += 1
        return self.types.sub_type(index, alone=alone)

    def _begin(self, sort: str) -> tuple[int, bool]:
        """The start of a definition: its index, and whether an inline import has made it complete.

        The inline exports are encoded (Functions, Tables, Memories, Globals: abbreviations).
        """
        cursor = self.cursor
        index = self._next_index(sort)
        cursor.try_identifier()
        while cursor.try_open("export"):
            self.binary.exports.append(encode_export(cursor.take_name(), sort, index))
            cursor.take_close()
        if not cursor.try_open("import"):
            return index, False
        names = sized(cursor.take_name()) + sized(cursor.take_name())
        cursor.take_close()
        self._encode_import(names, sort, index)
        return index, True

    def _next_index(self, sort: str) -> int:
        self._met[sort] += 1
        return self._met[sort] - 1

    def _import(self) -> None:
        cursor = self.cursor
        names = sized(cursor.take_name()) + sized(cursor.take_name())
        sort = cursor.texts[cursor.position + 1]
        cursor.position += 2
        cursor.try_identifier()
        self._encode_import(names, sort, self._next_index(sort))
        cursor.take_close()

    def _encode_import(self, names: bytes, sort: str, index: int) -> None:
        if sort == "func":
            local_space = IndexSpace("local")
            encoded = unsigned(self.types.type_use(local_space))
            self.binary.names.locals[index] = local_space.display_names
        elif sort == "table":
            encoded = self.types.table_type()
        elif sort == "memory":
            encoded = self.types.memory_type()
        elif sort == "global":
            encoded = self.types.global_type()
        else:
            encoded = self._tag_type()
        self.binary.imports.append(names + bytes([EXTERNAL_KINDS[sort]]) + encoded)

    def _function(self) -> None:
        index, imported = self._begin("func")
        if imported:
            return
        local_space = IndexSpace("local")
        type_index = self.types.type_use(local_space)
        self.binary.functions.append(unsigned(type_index))
        if self.scope.types.function_type(type_index) is None:
            self._waiting.append(_Function(index, type_index, self.cursor.position, len(self.binary.code)))
            self.binary.code.append(b"")
            self.cursor.position = self._field_end
        else:
            self.binary.code.append(self._body(index, local_space))

    def _body(self, index: int, local_space: IndexSpace) -> bytes:
        """Locals and instructions of a function (Functions)."""
        cursor = self.cursor
        locals_: list[bytes] = []
        while cursor.try_open("local"):
            locals_ += self.types.named_value_types(local_space)
        expression = ExpressionParser(cursor, self.scope, self.types, local_space)
        instructions = expression.sequence()
        self.binary.names.locals[index] = local_space.display_names
        self.binary.names.labels[index] = expression.label_names
        return sized(vector(run_lengths(locals_)) + instructions)

    def _table(self) -> None:
        index, imported = self._begin("table")
        if imported:
            return
        cursor = self.cursor
        start = cursor.position
        is_64 = self.types.address_type()
        if self.types.at_reference_type():
            reference_type = self.types.reference_type()
            count = self.segments.inline_elements(index, reference_type, is_64)
            flags = 5 if is_64 else 1
            self.binary.tables.append(reference_type + bytes([flags]) + unsigned(count) + unsigned(count))
            return
        cursor.position = start
        table_type = self.types.table_type()
        if cursor.texts[cursor.position] != ")":
            table_type = b"\x40\x00" + table_type + self._constant()
        self.binary.tables.append(table_type)

    def _constant(self) -> bytes:
        return ExpressionParser(self.cursor, self.scope, self.types).sequence()

    def _memory(self) -> None:
        index, imported = self._begin("memory")
        if imported:
            return
        cursor = self.cursor
        start = cursor.position
        is_64 = self.types.address_type()
        page_size = self.types.page_size()
        if cursor.at_open("data"):
            size = self.segments.inline_data(index, is_64)
            page_bytes = 1 << page_size[0] if page_size else _DEFAULT_PAGE_SIZE
            pages = unsigned(-(-size // page_bytes))
            flags = 1 | (4 if is_64 else 0) | (8 if page_size else 0)
            self.binary.memories.append(bytes([flags]) + pages + pages + page_size)
            return
        cursor.position = start
        self.binary.memories.append(self.types.memory_type())

    def _global(self) -> None:
        _, imported = self._begin("global")
        if not imported:
            self.binary.globals.append(self.types.global_type() + self._constant())

    def _tag(self) -> None:
        _, imported = self._begin("tag")
        if not imported:
            self.binary.tags.append(self._tag_type())

    def _tag_type(self) -> bytes:
        return b"\x00" + unsigned(self.types.type_use(IndexSpace("parameter")))

    def _export(self) -> None:
        cursor = self.cursor
        name = cursor.take_name()
        sort = cursor.texts[cursor.position + 1] if cursor.texts[cursor.position] == "(" else ""
        space = self.scope.external(sort)
        if space is None:
            raise cursor.unexpected("`(func`, `(table`, `(memory`, `(global` or `(tag`")
        cursor.position += 2
        self.binary.exports.append(encode_export(name, sort, space.take(cursor)))
        cursor.take_close()

    def _start(self) -> None:
        if self.binary.start is not None:
            raise self.cursor.error("multiple start sections: expected at most one")
        self.binary.start = self.scope.functions.take(self.cursor)

    def _finish(self) -> bytes:
        scope, names = self.scope, self.binary.names
        self.binary.types = scope.types.groups
        self.binary.needs_data_count = scope.uses_data_index
        names.functions = scope.functions.display_names
        names.types = scope.types.display_names
        names.tables = scope.tables.display_names
        names.memories = scope.memories.display_names
        names.globals = scope.globals.display_names
        names.elements = scope.elements.display_names
        names.data = scope.data.display_names
        names.fields = {index: fields.display_names for index, fields in scope.types.fields.items()}
        names.tags = scope.tags.display_names
        return self.binary.encode()
