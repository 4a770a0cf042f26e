"""Data and element segments, alone or in a memory or table (specification, Text Format, Element and Data Segments)."""

from __future__ import annotations

from .cursor import Cursor
from .encode import BinaryModule, sized, unsigned, vector
from .expressions import ExpressionParser
from .scope import Scope
from .types import FUNCTION_REFERENCE, TypeParser

# Bits of the flags in front of an element segment (Binary Format, Element Section). The second means an explicit table
# in an active segment and makes an inactive one declarative.
_INACTIVE, _EXPLICIT_TABLE, _DECLARATIVE, _EXPRESSIONS = 1, 2, 2, 4

_FUNCTION_KIND = b"\x00"
_ZERO_I32 = b"\x41\x00\x0b"
_ZERO_I64 = b"\x42\x00\x0b"
_REF_FUNC, _END = b"\xd2", b"\x0b"


class SegmentParser:
    """Parses segments and puts them into a binary module."""

    def __init__(self, cursor: Cursor, scope: Scope, types: TypeParser, binary: BinaryModule) -> None:
        self.cursor = cursor
        self.scope = scope
        self.types = types
        self.binary = binary

    def data(self) -> None:
        """A data segment, passive or active (Data Segments)."""
        cursor = self.cursor
        cursor.try_identifier()
        memory = None
        if cursor.try_open("memory"):
            memory = self.scope.memories.take(cursor)
            cursor.take_close()
        if memory is None and cursor.texts[cursor.position] != "(":
            self.binary.data.append(unsigned(1) + sized(cursor.take_strings()))
            return
        offset = self._offset()
        self._active_data(memory or 0, offset, cursor.take_strings())

    def _active_data(self, memory: int, offset: bytes, content: bytes) -> None:
        target = unsigned(2) + unsigned(memory) if memory else unsigned(0)
        self.binary.data.append(target + offset + sized(content))

    def inline_data(self, memory: int, is_64: bool) -> int:
        """The segment in `(memory (data ...))`; its size in bytes (Memories)."""
        self.cursor.take_open("data")
        content = self.cursor.take_strings()
        self.cursor.take_close("a string or `)`")
        self._active_data(memory, _ZERO_I64 if is_64 else _ZERO_I32, content)
        return len(content)

    def element(self) -> None:
        """An element segment: passive, active or declarative (Element Segments)."""
        cursor = self.cursor
        cursor.try_identifier()
        if cursor.try_keyword("declare"):
            self._encode_element(_INACTIVE | _DECLARATIVE, b"", *self._element_list())
            return
        table = None
        if cursor.try_open("table"):
            table = self.scope.tables.take(cursor)
            cursor.take_close()
        if table is None and (cursor.texts[cursor.position] != "(" or cursor.at_open("ref")):
            self._encode_element(_INACTIVE, b"", *self._element_list())
            return
        offset = self._offset()
        if table is None and (cursor.at_index() or cursor.texts[cursor.position] == ")"):
            # Only without an explicit table may functions be listed without `func` before them.
            self._active_elements(0, offset, None, self._function_indices())
        else:
            self._active_elements(table or 0, offset, *self._element_list())

    def inline_elements(self, table: int, reference_type: bytes, is_64: bool) -> int:
        """The segment in `(table reftype (elem ...))`; the number of its elements (Tables)."""
        cursor = self.cursor
        cursor.take_open("elem")
        offset = _ZERO_I64 if is_64 else _ZERO_I32
        if cursor.at_index() or cursor.texts[cursor.position] == ")":
            items = self._function_indices()
            if reference_type == FUNCTION_REFERENCE:
                self._active_elements(table, offset, None, items)
            else:
                # A list of functions has the type (ref func); any other type needs expressions.
                expressions = [_REF_FUNC + index + _END for index in items]
                self._active_elements(table, offset, reference_type, expressions)
        else:
            items = self._expressions()
            self._active_elements(table, offset, reference_type, items)
        cursor.take_close()
        return len(items)

    def _active_elements(self, table: int, offset: bytes, reference_type: bytes | None, items: list[bytes]) -> None:
        # The short form has room for neither a table nor a type.
        short = table == 0 and reference_type in (None, FUNCTION_REFERENCE)
        if short:
            flags = 0 if reference_type is None else _EXPRESSIONS
            self.binary.elements.append(unsigned(flags) + offset + vector(items))
        else:
            self._encode_element(_EXPLICIT_TABLE, unsigned(table) + offset, reference_type, items)

    def _encode_element(self, flags: int, target: bytes, reference_type: bytes | None, items: list[bytes]) -> None:
        if reference_type is None:
            encoded = unsigned(flags) + target + _FUNCTION_KIND
        else:
            encoded = unsigned(flags | _EXPRESSIONS) + target + reference_type
        self.binary.elements.append(encoded + vector(items))

    def _element_list(self) -> tuple[bytes | None, list[bytes]]:
        """`func x*`, whose type is given as None, or a reference type and expressions (Element Segments)."""
        cursor = self.cursor
        if cursor.try_keyword("func"):
            return None, self._function_indices()
        if not self.types.at_reference_type():
            raise cursor.unexpected("`func` or a reference type, and then the elements")
        return self.types.reference_type(), self._expressions()

    def _function_indices(self) -> list[bytes]:
        indices = []
        while self.cursor.at_index():
            indices.append(unsigned(self.scope.functions.take(self.cursor)))
        return indices

    def _expressions(self) -> list[bytes]:
        """Element expressions: `(item ...)`, or one folded instruction each (Element Segments)."""
        expressions = []
        while self.cursor.texts[self.cursor.position] == "(":
            expressions.append(self._wrapped_expression("item"))
        return expressions

    def _offset(self) -> bytes:
        """`(offset ...)`, or one folded instruction (Element Segments)."""
        return self._wrapped_expression("offset")

    def _wrapped_expression(self, keyword: str) -> bytes:
        expression = ExpressionParser(self.cursor, self.scope, self.types)
        if not self.cursor.try_open(keyword):
            return expression.folded()
        encoded = expression.sequence()
        self.cursor.take_close()
        return encoded
