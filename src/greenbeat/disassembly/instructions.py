"""WebAssembly instructions out of a function's body, as lines of the text format with their offsets.

    0x0025  local.get $a
    0x0027  if (result i32)  ;; @1
    0x0029    i32.const -1

It is the inverse of `greenbeat.wasm.text.immediates`: one method for each member of `Immediate`, from the same table of
instructions. Names are written as identifiers, quoted where the text format wants that, so they can do no harm.
"""

import math
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from greenbeat.wasm.names_section import Names
from greenbeat.wasm.printable import printable
from greenbeat.wasm.text.instructions import INSTRUCTIONS, Immediate, Instruction
from greenbeat.wasm.text.types import ABSTRACT_HEAP_TYPES, NUMBER_TYPES, REFERENCE_SHORTHANDS

_HEAP_TYPES = {code[0]: name for name, code in ABSTRACT_HEAP_TYPES.items()}
_VALUE_TYPES = {code[0]: name for name, code in (NUMBER_TYPES | REFERENCE_SHORTHANDS).items()}
_PREFIXES = (0xFB, 0xFC, 0xFD, 0xFE)
_ELSE, _END, _TYPED_SELECT, _EMPTY_BLOCK = 0x05, 0x0B, 0x1C, 0x40
_CATCHES = ("catch", "catch_ref", "catch_all", "catch_all_ref")
_PLAIN_IDENTIFIER = re.compile(r"[0-9A-Za-z!#$%&'*+\-./:<=>?@\\^_`|~]+")


class DisassemblyError(ValueError):
    """The bytes are no instruction. A body that was validated has none of those."""


def _table() -> dict[tuple[int, int], Instruction]:
    """The rows by prefix (0: none) and number."""
    found: dict[tuple[int, int], Instruction] = {}
    for row in INSTRUCTIONS.values():
        if len(row.opcode) == 1:
            found[0, row.opcode[0]] = row
        else:
            found[row.opcode[0], Bytes(row.opcode, 1).unsigned()] = row
    found[0, _TYPED_SELECT] = Instruction("select", bytes([_TYPED_SELECT]), Immediate.SELECT)
    for name in ("ref.test", "ref.cast"):
        row = INSTRUCTIONS[name]
        nullable = bytes([0xFB, row.opcode[1] + 1])
        found[0xFB, nullable[1]] = Instruction(name, nullable, row.immediate)
    return found


class Bytes:
    """A position in some bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        """The next byte."""
        if self.at >= len(self.data):
            raise DisassemblyError("the code ends inside of an instruction")
        self.at += 1
        return self.data[self.at - 1]

    def take(self, count: int) -> bytes:
        """The next bytes."""
        return bytes(self.byte() for _ in range(count))

    def unsigned(self) -> int:
        """An integer in LEB128."""
        result = shift = 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    def signed(self) -> int:
        """A signed integer in LEB128."""
        start = self.at
        result = self.unsigned()
        bits = 7 * (self.at - start)
        return result - (1 << bits) if result >> (bits - 1) else result


def identifier(name: str) -> str:
    """A name as the text format's identifier."""
    return f"${name}" if _PLAIN_IDENTIFIER.fullmatch(name) else f'$"{printable(name)}"'


def float_text(bits: int, width: int) -> str:
    """A float as the text format writes it, so that exactly these bits are read back."""
    mantissa_bits = 23 if width == 32 else 52
    mantissa = bits & ((1 << mantissa_bits) - 1)
    sign = "-" if bits >> (width - 1) else ""
    value: float = struct.unpack("<f" if width == 32 else "<d", bits.to_bytes(width // 8, "little"))[0]
    if math.isnan(value):
        return f"{sign}nan" if mantissa == 1 << (mantissa_bits - 1) else f"{sign}nan:0x{mantissa:x}"
    return f"{value:.9g}" if width == 32 else repr(value)


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction: where it begins and ends, how deep it is nested, its name, its operands and a remark."""

    offset: int
    end: int
    depth: int
    name: str
    operands: str = ""
    remark: str = ""

    def __str__(self) -> str:
        operands = f" {self.operands}" if self.operands else ""
        remark = f"  ;; {self.remark}" if self.remark else ""
        return f"{'  ' * self.depth}{self.name}{operands}{remark}"


@dataclass
class Decoder:
    """Decodes the instructions of one function.

    Attributes:
        data: the module.
        names: its names.
        local_names: those of the function's locals.
        function_name: the name of a function by index, None if it has none.
    """

    data: bytes
    names: Names = field(default_factory=Names)
    local_names: dict[int, str] = field(default_factory=dict)
    function_name: Callable[[int], str | None] = lambda index: None

    def locals(self, start: int) -> tuple[list[tuple[int, str]], int]:
        """The locals that a body declares, as counts and types, and where its instructions begin."""
        self.at = Bytes(self.data, start)
        groups = [(self.at.unsigned(), self._value_type()) for _ in range(self.at.unsigned())]
        return groups, self.at.at

    def lines(self, start: int, end: int) -> Iterator[Line]:
        """The instructions between two offsets.

        Raises:
            DisassemblyError: some bytes are no instruction.
        """
        self.at = at = Bytes(self.data[:end], start)
        self.depth = 0
        while at.at < end:
            offset = at.at
            code = at.byte()
            if code in (_ELSE, _END):
                remark = f"@{self.depth}" if self.depth else ""
                depth = max(self.depth - 1, 0)
                if code == _END:
                    self.depth = depth
                yield Line(offset, at.at, depth, "else" if code == _ELSE else "end", "", remark)
                continue
            row = _TABLE.get((code, at.unsigned()) if code in _PREFIXES else (0, code))
            if row is None:
                raise DisassemblyError(f"0x{self.data[offset : at.at].hex()} at offset 0x{offset:x} is no instruction")
            depth, remark = self.depth, ""
            if row.immediate is Immediate.BLOCK:
                self.depth += 1
                remark = f"@{self.depth}"
            operands = _READERS[row.immediate](self, row)
            if row.immediate in (Immediate.LABEL, Immediate.CAST_BRANCH):
                remark = self._target(int(operands.split()[0]))
            yield Line(offset, at.at, depth, row.name, operands, remark)

    def _target(self, label: int) -> str:
        """What a branch leaves, or begins again."""
        return f"@{self.depth - label}" if label < self.depth else "return"

    # ---------------------------------------------------------------- indices and types

    def _index(self, names: dict[int, str]) -> str:
        index = self.at.unsigned()
        return identifier(names[index]) if index in names else str(index)

    def _unless_zero(self, names: dict[int, str]) -> str:
        """An index that is left out where it is zero."""
        start = self.at.at
        index = self.at.unsigned()
        if index == 0:
            return ""
        self.at.at = start
        return self._index(names)

    def _heap_type(self) -> str:
        index = self.at.signed()
        if index < 0:
            return _HEAP_TYPES.get(index & 0x7F, f"0x{index & 0x7F:x}")
        return identifier(self.names.types[index]) if index in self.names.types else str(index)

    def _value_type(self) -> str:
        byte = self.at.byte()
        if byte in (0x63, 0x64):
            return f"(ref {'null ' if byte == 0x63 else ''}{self._heap_type()})"
        return _VALUE_TYPES.get(byte, f"0x{byte:x}")

    # ---------------------------------------------------------------- immediates

    def _block(self, row: Instruction) -> str:
        start = self.at.at
        if self.at.byte() == _EMPTY_BLOCK:
            kind = ""
        else:
            self.at.at = start
            index = self.at.signed()
            if index >= 0:
                kind = f"(type {identifier(self.names.types[index]) if index in self.names.types else index})"
            else:
                self.at.at = start
                kind = f"(result {self._value_type()})"
        if row.name != "try_table":
            return kind
        return " ".join([kind, *(self._catch() for _ in range(self.at.unsigned()))]).strip()

    def _catch(self) -> str:
        number = self.at.byte()
        tag = f" {self.at.unsigned()}" if number < 2 else ""
        return f"({_CATCHES[number]}{tag} {self.at.unsigned()})"

    def _label_table(self, row: Instruction) -> str:
        return " ".join(str(self.at.unsigned()) for _ in range(self.at.unsigned() + 1))

    def _function(self, row: Instruction) -> str:
        index = self.at.unsigned()
        name = self.function_name(index)
        return str(index) if name is None else identifier(name)

    def _type(self, row: Instruction) -> str:
        return self._index(self.names.types)

    def _call_indirect(self, row: Instruction) -> str:
        kind = f"(type {self._index(self.names.types)})"
        return f"{self._unless_zero(self.names.tables)} {kind}".strip()

    def _select(self, row: Instruction) -> str:
        if row.opcode[0] != _TYPED_SELECT:
            return ""
        return f"(result {' '.join(self._value_type() for _ in range(self.at.unsigned()))})"

    def _two_unless_zero(self, names: dict[int, str]) -> str:
        start = self.at.at
        if self.at.unsigned() == 0 and self.at.unsigned() == 0:
            return ""
        self.at.at = start
        return f"{self._index(names)} {self._index(names)}"

    def _segment(self, segments: dict[int, str], targets: dict[int, str]) -> str:
        segment = self._index(segments)
        return f"{self._unless_zero(targets)} {segment}".strip()

    def _access(self, row: Instruction) -> str:
        flags = self.at.unsigned()
        words = [self._index(self.names.memories)] if flags & 0x40 else []
        offset, align = self.at.unsigned(), 1 << (flags & 0x3F)
        words += [f"offset={offset}"] if offset else []
        words += [f"align={align}"] if align != row.access else []
        return " ".join(words)

    def _access_lane(self, row: Instruction) -> str:
        return f"{self._access(row)} {self.at.byte()}".strip()

    def _shuffle(self, row: Instruction) -> str:
        return " ".join(map(str, self.at.take(16)))

    def _vector(self, row: Instruction) -> str:
        words = struct.unpack("<4I", self.at.take(16))
        return "i32x4 " + " ".join(f"0x{word:08x}" for word in words)

    def _reference_type(self, row: Instruction) -> str:
        return f"(ref {'null ' if row.opcode[1] & 1 else ''}{self._heap_type()})"

    def _cast_branch(self, row: Instruction) -> str:
        flags, label = self.at.byte(), self.at.unsigned()
        nullable = ["null " if flags & bit else "" for bit in (1, 2)]
        return " ".join([str(label), *(f"(ref {null}{self._heap_type()})" for null in nullable)])

    def _type_field(self, row: Instruction) -> str:
        return f"{self._type(row)} {self.at.unsigned()}"

    def _type_data(self, row: Instruction) -> str:
        return f"{self._type(row)} {self._index(self.names.datas)}"

    def _type_element(self, row: Instruction) -> str:
        return f"{self._type(row)} {self._index(self.names.elements)}"

    def _zero(self, row: Instruction) -> str:
        self.at.byte()
        return ""


_Reader = Callable[[Decoder, Instruction], str]

_READERS: dict[Immediate, _Reader] = {
    Immediate.NONE: lambda d, row: "",
    Immediate.BLOCK: Decoder._block,
    Immediate.LABEL: lambda d, row: str(d.at.unsigned()),
    Immediate.LABEL_TABLE: Decoder._label_table,
    Immediate.FUNCTION: Decoder._function,
    Immediate.TYPE: Decoder._type,
    Immediate.CALL_INDIRECT: Decoder._call_indirect,
    Immediate.SELECT: Decoder._select,
    Immediate.LOCAL: lambda d, row: d._index(d.local_names),
    Immediate.GLOBAL: lambda d, row: d._index(d.names.globals),
    Immediate.TABLE: lambda d, row: d._unless_zero(d.names.tables),
    Immediate.TABLE_COPY: lambda d, row: d._two_unless_zero(d.names.tables),
    Immediate.TABLE_INIT: lambda d, row: d._segment(d.names.elements, d.names.tables),
    Immediate.ELEMENT: lambda d, row: d._index(d.names.elements),
    Immediate.MEMORY: lambda d, row: d._unless_zero(d.names.memories),
    Immediate.MEMORY_COPY: lambda d, row: d._two_unless_zero(d.names.memories),
    Immediate.MEMORY_INIT: lambda d, row: d._segment(d.names.datas, d.names.memories),
    Immediate.DATA: lambda d, row: d._index(d.names.datas),
    Immediate.ACCESS: Decoder._access,
    Immediate.ACCESS_LANE: Decoder._access_lane,
    Immediate.LANE: lambda d, row: str(d.at.byte()),
    Immediate.SHUFFLE: Decoder._shuffle,
    Immediate.I32: lambda d, row: str(d.at.signed()),
    Immediate.I64: lambda d, row: str(d.at.signed()),
    Immediate.F32: lambda d, row: float_text(int.from_bytes(d.at.take(4), "little"), 32),
    Immediate.F64: lambda d, row: float_text(int.from_bytes(d.at.take(8), "little"), 64),
    Immediate.V128: Decoder._vector,
    Immediate.HEAP_TYPE: lambda d, row: d._heap_type(),
    Immediate.REFERENCE_TYPE: Decoder._reference_type,
    Immediate.CAST_BRANCH: Decoder._cast_branch,
    Immediate.TYPE_FIELD: Decoder._type_field,
    Immediate.TYPE_COUNT: lambda d, row: f"{d._type(row)} {d.at.unsigned()}",
    Immediate.TYPE_DATA: Decoder._type_data,
    Immediate.TYPE_ELEMENT: Decoder._type_element,
    Immediate.TYPE_TYPE: lambda d, row: f"{d._type(row)} {d._type(row)}",
    Immediate.TAG: lambda d, row: str(d.at.unsigned()),
    Immediate.ZERO: Decoder._zero,
}

_TABLE = _table()
