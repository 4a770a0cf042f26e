"""The immediates of instructions: what stands behind the name in the text, and its bytes behind the opcode.

There is one reader for each member of `Immediate`, listed in `READERS` at the end. A reader gets the row of the
instruction table and returns the whole encoded instruction, because a few immediates change the opcode.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from .cursor import Cursor
from .encode import signed, unsigned, vector
from .instructions import Immediate, Instruction
from .numbers import F32, F64, FloatFormat, parse_float, parse_signless, parse_unsigned
from .scope import IndexSpace, Scope
from .types import TypeParser

# Shapes of vector literals: how many lanes, the integer width or float format of one lane, and its struct code.
VECTOR_SHAPES: dict[str, tuple[int, int | FloatFormat, str]] = {
    "i8x16": (16, 8, "B"),
    "i16x8": (8, 16, "H"),
    "i32x4": (4, 32, "I"),
    "i64x2": (2, 64, "Q"),
    "f32x4": (4, F32, "I"),
    "f64x2": (2, F64, "Q"),
}

_NO_FIELDS = IndexSpace("field")


class ImmediateReader:
    """Reads the immediates of instructions inside one function or constant expression."""

    def __init__(self, cursor: Cursor, scope: Scope, types: TypeParser, local_space: IndexSpace) -> None:
        self.cursor = cursor
        self.scope = scope
        self.types = types
        self.local_space = local_space
        self.labels: list[str | None] = []
        """The labels of the enclosing blocks, innermost last."""

    def label(self) -> bytes:
        """A label, by name or as the number of blocks to leave (Labels)."""
        cursor = self.cursor
        text = cursor.texts[cursor.position]
        if not text.startswith("$"):
            return unsigned(cursor.take_unsigned(32, "the depth or the name of a label"))
        for depth, name in enumerate(reversed(self.labels)):
            if name == text:
                cursor.position += 1
                return unsigned(depth)
        raise cursor.error(f"unknown label {text}")

    def integer(self, bits: int) -> int:
        """An integer literal as its bits."""
        return self._literal(lambda text: parse_signless(text, bits))

    def float(self, form: FloatFormat) -> int:
        """A floating-point literal as its bits."""
        return self._literal(lambda text: parse_float(text, form))

    def _literal(self, parse: Callable[[str], int]) -> int:
        cursor = self.cursor
        text = cursor.texts[cursor.position]
        if not text or text[0] in '()"$':
            raise cursor.unexpected("a number")
        try:
            value = parse(text)
        except ValueError as error:
            raise cursor.error(str(error)) from None
        cursor.position += 1
        return value

    def _type(self) -> bytes:
        return unsigned(self.scope.types.take(self.cursor))

    def _label(self, instruction: Instruction) -> bytes:
        return instruction.opcode + self.label()

    def _label_table(self, instruction: Instruction) -> bytes:
        labels = [self.label()]
        while self.cursor.at_index():
            labels.append(self.label())
        return instruction.opcode + vector(labels[:-1]) + labels[-1]

    def _call_indirect(self, instruction: Instruction) -> bytes:
        table = self.scope.tables.take_optional(self.cursor)
        return instruction.opcode + unsigned(self.types.type_use(None)) + unsigned(table)

    def _select(self, instruction: Instruction) -> bytes:
        if not self.cursor.at_open("result"):
            return instruction.opcode
        results: list[bytes] = []
        while self.cursor.try_open("result"):
            results += self.types.value_types()
        # `select` with types is the next opcode.
        return bytes([instruction.opcode[0] + 1]) + vector(results)

    def _local(self, instruction: Instruction) -> bytes:
        return instruction.opcode + unsigned(self.local_space.take(self.cursor))

    def _two_optional(self, space: IndexSpace) -> bytes:
        """Both indices of a copy, or neither, which means zero twice."""
        if not self.cursor.at_index():
            return b"\0\0"
        return unsigned(space.take(self.cursor)) + unsigned(space.take(self.cursor))

    def _segment_of(self, segments: IndexSpace, targets: IndexSpace) -> bytes:
        """The index of a segment, with that of its target before it if there are two; the binary swaps them."""
        target = targets.take(self.cursor) if self.cursor.at_index(1) else 0
        return unsigned(segments.take(self.cursor)) + unsigned(target)

    def _memory_init(self, instruction: Instruction) -> bytes:
        self.scope.uses_data_index = True
        return instruction.opcode + self._segment_of(self.scope.data, self.scope.memories)

    def _data(self, instruction: Instruction) -> bytes:
        self.scope.uses_data_index = True
        return instruction.opcode + unsigned(self.scope.data.take(self.cursor))

    def _access(self, instruction: Instruction) -> bytes:
        memory = self.scope.memories.take_optional(self.cursor)
        return instruction.opcode + self._memory_argument(memory, instruction.access)

    def _access_lane(self, instruction: Instruction) -> bytes:
        # The lane is a number too: the first number is a memory only if something other than a closing
        # parenthesis or the next instruction follows it.
        cursor = self.cursor
        memory = 0
        if cursor.at_index() and (
            cursor.at_index(1) or cursor.texts[cursor.position + 1].startswith(("offset=", "align="))
        ):
            memory = self.scope.memories.take(cursor)
        argument = self._memory_argument(memory, instruction.access)
        return instruction.opcode + argument + self._lane_index()

    def _memory_argument(self, memory: int, access: int) -> bytes:
        """The `offset=` and `align=` of a memory instruction (Memory Instructions)."""
        offset = self._attribute("offset=", 64, 0)
        position = self.cursor.position
        align = self._attribute("align=", 64, access)
        if align.bit_count() != 1:
            raise self.cursor.error(f"alignment must be a power of two, not {align}", position)
        logarithm = align.bit_length() - 1
        if memory == 0:
            return unsigned(logarithm) + unsigned(offset)
        return unsigned(logarithm | 64) + unsigned(memory) + unsigned(offset)

    def _attribute(self, prefix: str, bits: int, default: int) -> int:
        cursor = self.cursor
        text = cursor.texts[cursor.position]
        if not text.startswith(prefix):
            return default
        return self._literal(lambda text: parse_unsigned(text.removeprefix(prefix), bits))

    def _lane_index(self) -> bytes:
        return bytes([self.cursor.take_unsigned(8, "the index of a lane")])

    def _shuffle(self, instruction: Instruction) -> bytes:
        return instruction.opcode + b"".join(self._lane_index() for _ in range(16))

    def _vector(self, instruction: Instruction) -> bytes:
        cursor = self.cursor
        shape = VECTOR_SHAPES.get(cursor.texts[cursor.position])
        if shape is None:
            raise cursor.unexpected(f"the shape of a vector: one of {', '.join(VECTOR_SHAPES)}")
        cursor.position += 1
        count, lane, code = shape
        lanes = [self.integer(lane) if isinstance(lane, int) else self.float(lane) for _ in range(count)]
        return instruction.opcode + struct.pack(f"<{count}{code}", *lanes)

    def _reference_type(self, instruction: Instruction) -> bytes:
        nullable, heap_type = self.types.reference_parts()
        # The instruction on a nullable type is the next opcode.
        return instruction.opcode[:-1] + bytes([instruction.opcode[-1] + nullable]) + heap_type

    def _cast_branch(self, instruction: Instruction) -> bytes:
        label = self.label()
        source_nullable, source = self.types.reference_parts()
        target_nullable, target = self.types.reference_parts()
        return instruction.opcode + bytes([source_nullable | target_nullable << 1]) + label + source + target

    def _type_field(self, instruction: Instruction) -> bytes:
        index = self.scope.types.take(self.cursor)
        fields = self.scope.types.fields.get(index, _NO_FIELDS)
        return instruction.opcode + unsigned(index) + unsigned(fields.take(self.cursor))

    def _type_count(self, instruction: Instruction) -> bytes:
        return instruction.opcode + self._type() + unsigned(self.cursor.take_unsigned(32, "a number of elements"))

    def _type_data(self, instruction: Instruction) -> bytes:
        self.scope.uses_data_index = True
        return instruction.opcode + self._type() + unsigned(self.scope.data.take(self.cursor))

    def _type_element(self, instruction: Instruction) -> bytes:
        return instruction.opcode + self._type() + unsigned(self.scope.elements.take(self.cursor))


_Reader = Callable[[ImmediateReader, Instruction], bytes]


def _index(space_of: Callable[[Scope], IndexSpace]) -> _Reader:
    return lambda reader, instruction: instruction.opcode + unsigned(space_of(reader.scope).take(reader.cursor))


def _optional_index(space_of: Callable[[Scope], IndexSpace]) -> _Reader:
    return lambda reader, instruction: (
        instruction.opcode + unsigned(space_of(reader.scope).take_optional(reader.cursor))
    )


READERS: dict[Immediate, _Reader] = {
    Immediate.NONE: lambda reader, instruction: instruction.opcode,
    Immediate.LABEL: ImmediateReader._label,
    Immediate.LABEL_TABLE: ImmediateReader._label_table,
    Immediate.FUNCTION: _index(lambda scope: scope.functions),
    Immediate.TYPE: _index(lambda scope: scope.types),
    Immediate.CALL_INDIRECT: ImmediateReader._call_indirect,
    Immediate.SELECT: ImmediateReader._select,
    Immediate.LOCAL: ImmediateReader._local,
    Immediate.GLOBAL: _index(lambda scope: scope.globals),
    Immediate.TABLE: _optional_index(lambda scope: scope.tables),
    Immediate.TABLE_COPY: lambda reader, instruction: instruction.opcode + reader._two_optional(reader.scope.tables),
    Immediate.TABLE_INIT: lambda reader, instruction: (
        instruction.opcode + reader._segment_of(reader.scope.elements, reader.scope.tables)
    ),
    Immediate.ELEMENT: _index(lambda scope: scope.elements),
    Immediate.MEMORY: _optional_index(lambda scope: scope.memories),
    Immediate.MEMORY_COPY: lambda reader, instruction: instruction.opcode + reader._two_optional(reader.scope.memories),
    Immediate.MEMORY_INIT: ImmediateReader._memory_init,
    Immediate.DATA: ImmediateReader._data,
    Immediate.ACCESS: ImmediateReader._access,
    Immediate.ACCESS_LANE: ImmediateReader._access_lane,
    Immediate.LANE: lambda reader, instruction: instruction.opcode + reader._lane_index(),
    Immediate.SHUFFLE: ImmediateReader._shuffle,
    Immediate.I32: lambda reader, instruction: instruction.opcode + _signed_bits(reader.integer(32), 32),
    Immediate.I64: lambda reader, instruction: instruction.opcode + _signed_bits(reader.integer(64), 64),
    Immediate.F32: lambda reader, instruction: instruction.opcode + reader.float(F32).to_bytes(4, "little"),
    Immediate.F64: lambda reader, instruction: instruction.opcode + reader.float(F64).to_bytes(8, "little"),
    Immediate.V128: ImmediateReader._vector,
    Immediate.HEAP_TYPE: lambda reader, instruction: instruction.opcode + reader.types.heap_type(),
    Immediate.REFERENCE_TYPE: ImmediateReader._reference_type,
    Immediate.CAST_BRANCH: ImmediateReader._cast_branch,
    Immediate.TYPE_FIELD: ImmediateReader._type_field,
    Immediate.TYPE_COUNT: ImmediateReader._type_count,
    Immediate.TYPE_DATA: ImmediateReader._type_data,
    Immediate.TYPE_ELEMENT: ImmediateReader._type_element,
    Immediate.TYPE_TYPE: lambda reader, instruction: instruction.opcode + reader._type() + reader._type(),
    Immediate.TAG: _index(lambda scope: scope.tags),
    Immediate.ZERO: lambda reader, instruction: instruction.opcode + b"\0",
}


def _signed_bits(bits: int, width: int) -> bytes:
    """The bits of an integer, encoded as the signed integer they stand for."""
    return signed(bits - (1 << width) if bits >> (width - 1) else bits)
