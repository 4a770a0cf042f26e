"""The types of the text format (specification, Text Format, Types), each turned straight into its binary encoding.

`TypeParser` reads value types, signatures with their parameter names, type uses, limits and the types of tables,
memories and globals, and the type definitions themselves. Which words are types is in the tables at the top.
"""

from __future__ import annotations

from collections.abc import Callable

from .cursor import Cursor
from .encode import signed, unsigned, vector
from .scope import FunctionType, IndexSpace, Scope

NUMBER_TYPES = {"i32": b"\x7f", "i64": b"\x7e", "f32": b"\x7d", "f64": b"\x7c", "v128": b"\x7b"}

ABSTRACT_HEAP_TYPES = {
    "noexn": b"\x74",
    "nofunc": b"\x73",
    "noextern": b"\x72",
    "none": b"\x71",
    "func": b"\x70",
    "extern": b"\x6f",
    "any": b"\x6e",
    "eq": b"\x6d",
    "i31": b"\x6c",
    "struct": b"\x6b",
    "array": b"\x6a",
    "exn": b"\x69",
}

# `funcref` is short for `(ref null func)` and has the encoding of the heap type alone, and so on.
REFERENCE_SHORTHANDS = {
    "nullexnref": b"\x74",
    "nullfuncref": b"\x73",
    "nullexternref": b"\x72",
    "nullref": b"\x71",
    "funcref": b"\x70",
    "externref": b"\x6f",
    "anyref": b"\x6e",
    "eqref": b"\x6d",
    "i31ref": b"\x6c",
    "structref": b"\x6b",
    "arrayref": b"\x6a",
    "exnref": b"\x69",
}

PACKED_TYPES = {"i8": b"\x78", "i16": b"\x77"}

FUNCTION_REFERENCE = b"\x70"

_SIMPLE_VALUE_TYPES = NUMBER_TYPES | REFERENCE_SHORTHANDS
_SHORT_NULLABLE = frozenset(ABSTRACT_HEAP_TYPES.values())


class TypeParser:
    """Reads types at a cursor."""

    def __init__(self, cursor: Cursor, scope: Scope) -> None:
        self.cursor = cursor
        self.scope = scope

    def heap_type(self) -> bytes:
        """An abstract heap type or the index of a type (Heap Types)."""
        cursor = self.cursor
        abstract = ABSTRACT_HEAP_TYPES.get(cursor.texts[cursor.position])
        if abstract is not None:
            cursor.position += 1
            return abstract
        if not cursor.at_index():
            raise cursor.unexpected("a heap type: a word like `func` or `extern`, or the index or name of a type")
        return signed(self.scope.types.take(cursor))

    def reference_parts(self) -> tuple[bool, bytes]:
        """A reference type as whether it is nullable and its heap type (Reference Types)."""
        cursor = self.cursor
        shorthand = REFERENCE_SHORTHANDS.get(cursor.texts[cursor.position])
        if shorthand is not None:
            cursor.position += 1
            return True, shorthand
        if not cursor.try_open("ref"):
            raise cursor.unexpected("a reference type: a word like `funcref`, or `(ref ...)`")
        nullable = cursor.try_keyword("null")
        heap_type = self.heap_type()
        cursor.take_close()
        return nullable, heap_type

    def reference_type(self) -> bytes:
        """A reference type in its shortest encoding (Reference Types)."""
        nullable, heap_type = self.reference_parts()
        if nullable and heap_type in _SHORT_NULLABLE:
            return heap_type
        return (b"\x63" if nullable else b"\x64") + heap_type

    def at_reference_type(self) -> bool:
        """Whether a reference type is next."""
        cursor = self.cursor
        return cursor.texts[cursor.position] in REFERENCE_SHORTHANDS or cursor.at_open("ref")

    def value_type(self) -> bytes:
        """A value type (Value Types)."""
        cursor = self.cursor
        simple = _SIMPLE_VALUE_TYPES.get(cursor.texts[cursor.position])
        if simple is not None:
            cursor.position += 1
            return simple
        if cursor.at_open("ref"):
            return self.reference_type()
        raise cursor.unexpected("a value type")

    def value_types(self) -> list[bytes]:
        """Value types up to the closing parenthesis, which is consumed."""
        types = []
        while not self.cursor.try_close():
            types.append(self.value_type())
        return types

    def named_value_types(self, names: IndexSpace | None) -> list[bytes]:
        """The inside of `(param ...)` or `(local ...)`: one named type, or any number without names (Function Types).

        With `names` None, names are not allowed here.
        """
        cursor = self.cursor
        if names is None:
            return self.value_types()
        if cursor.texts[cursor.position].startswith("$"):
            names.define(cursor)
            types = [self.value_type()]
            cursor.take_close("`)`: a named parameter or local has one type")
            return types
        types = self.value_types()
        names.add(len(types))
        return types

    def signature(self, names: IndexSpace | None) -> FunctionType:
        """`(param ...)* (result ...)*` (Function Types); parameters get their names in `names` unless that is None."""
        cursor = self.cursor
        parameters: list[bytes] = []
        results: list[bytes] = []
        while cursor.try_open("param"):
            parameters += self.named_value_types(names)
        while cursor.try_open("result"):
            results += self.value_types()
        if cursor.at_open("param"):
            raise cursor.unexpected("no more parameters: `(param ...)` comes before `(result ...)`")
        return FunctionType(tuple(parameters), tuple(results))

    def explicit_type(self) -> int | None:
        """`(type x)` if it is next (Type Uses)."""
        cursor = self.cursor
        if not cursor.try_open("type"):
            return None
        index = self.scope.types.take(cursor)
        cursor.take_close()
        return index

    def type_use(self, names: IndexSpace | None) -> int:
        """A reference to a function type, by index, by signature or by both, which must then agree (Type Uses)."""
        cursor = self.cursor
        position = cursor.position
        explicit = self.explicit_type()
        if explicit is None:
            return self.scope.types.index_of(self.signature(names))
        self.check_inline(explicit, self.signature(names), names, position)
        return explicit

    def check_inline(self, index: int, inline: FunctionType, names: IndexSpace | None, position: int) -> None:
        """Compare an inline signature with the type named before it; without one, count the named type's parameters."""
        named = self.scope.types.function_type(index)
        if inline == FunctionType((), ()):
            if named is not None and names is not None:
                names.add(len(named.parameters))
        elif named is None:
            raise self.cursor.error(f"unknown type {index}: not a function type of this module", position)
        elif named != inline:
            raise self.cursor.error(f"inline function type differs from type {index}", position)

    def address_type(self) -> bool:
        """Whether a memory or table is addressed by i64; `i32` is the default (Address Types)."""
        return not self.cursor.try_keyword("i32") and self.cursor.try_keyword("i64")

    def limits(self, is_64: bool) -> tuple[int, bytes]:
        """Limits as the flags and the numbers of their encoding; validation sees to their range (Limits)."""
        cursor = self.cursor
        numbers = unsigned(cursor.take_unsigned(64, "a minimum size"))
        flags = 4 if is_64 else 0
        if cursor.at_index():
            flags |= 1
            numbers += unsigned(cursor.take_unsigned(64, "a maximum size"))
        return flags, numbers

    def memory_type(self) -> bytes:
        """A memory type (Memory Types), with the `shared` and `(pagesize n)` of the threads and page size proposals."""
        is_64 = self.address_type()
        flags, numbers = self.limits(is_64)
        if self.cursor.try_keyword("shared"):
            flags |= 2
        page_size = self.page_size()
        return bytes([flags | (8 if page_size else 0)]) + numbers + page_size

    def page_size(self) -> bytes:
        """`(pagesize n)` as the encoded logarithm of n; empty if it is not next."""
        cursor = self.cursor
        if not cursor.try_open("pagesize"):
            return b""
        size = cursor.take_unsigned(32, "a page size")
        if size.bit_count() != 1:
            raise cursor.error(f"invalid custom page size {size}: expected a power of two", cursor.position - 1)
        cursor.take_close()
        return unsigned(size.bit_length() - 1)

    def table_type(self) -> bytes:
        """A table type: in the text the limits come first, in the binary the type of the elements (Table Types)."""
        flags, numbers = self.limits(self.address_type())
        return self.reference_type() + bytes([flags]) + numbers

    def global_type(self) -> bytes:
        """A global type (Global Types)."""
        return self._maybe_mutable(self.value_type)

    def storage_type(self) -> bytes:
        """A value type or a packed type (Aggregate Types)."""
        cursor = self.cursor
        packed = PACKED_TYPES.get(cursor.texts[cursor.position])
        if packed is None:
            return self.value_type()
        cursor.position += 1
        return packed

    def field_type(self) -> bytes:
        """The type of a field of a structure or array (Aggregate Types)."""
        return self._maybe_mutable(self.storage_type)

    def _maybe_mutable(self, read_type: Callable[[], bytes]) -> bytes:
        if self.cursor.try_open("mut"):
            encoded = read_type() + b"\x01"
            self.cursor.take_close()
            return encoded
        return read_type() + b"\x00"

    def composite_type(self, index: int, *, shareable: bool) -> bytes:
        """`(func ...)`, `(struct ...)` or `(array ...)` as the definition of the type `index` (Composite Types)."""
        cursor = self.cursor
        if cursor.try_open("func"):
            signature = self.signature(IndexSpace("parameter"))
            self.scope.types.set_function_type(index, signature, shareable=shareable)
            encoded = signature.encode()
        elif cursor.try_open("struct"):
            encoded = b"\x5f" + vector(self._struct_fields(index))
        elif cursor.try_open("array"):
            encoded = b"\x5e" + self.field_type()
        else:
            raise cursor.unexpected("`(func`, `(struct` or `(array`")
        cursor.take_close()
        return encoded

    def _struct_fields(self, index: int) -> list[bytes]:
        cursor = self.cursor
        names = self.scope.types.fields.setdefault(index, IndexSpace("field"))
        fields: list[bytes] = []
        while cursor.try_open("field"):
            if cursor.texts[cursor.position].startswith("$"):
                names.define(cursor)
                fields.append(self.field_type())
                cursor.take_close("`)`: a named field has one type")
            else:
                while not cursor.try_close():
                    names.add()
                    fields.append(self.field_type())
        return fields

    def sub_type(self, index: int, *, alone: bool) -> bytes:
        """The definition of a type and its supertypes, `(sub final? supertype* composite)` (Recursive Types)."""
        cursor = self.cursor
        if not cursor.try_open("sub"):
            return self.composite_type(index, shareable=alone)
        final = cursor.try_keyword("final")
        supertypes = []
        while cursor.at_index():
            supertypes.append(unsigned(self.scope.types.take(cursor)))
        plain = final and not supertypes
        encoded = self.composite_type(index, shareable=alone and plain)
        cursor.take_close()
        return encoded if plain else (b"\x4f" if final else b"\x50") + vector(supertypes) + encoded
