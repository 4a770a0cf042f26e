"""Instruction sequences in functions and constant expressions (specification, Text Format, Instructions).

A folded instruction is its operands first and then the instruction; an unfolded one stands as it is. Both are encoded
in one pass without recursion, so nesting is limited by memory only. The parser keeps a stack of what is open:

    OPERATOR   (i32.add ...          its encoding waits until the parenthesis is closed
    BLOCK      (block ...            folded `block`, `loop` and `try_table`
    IF         (if ...               condition, then `(then`, then perhaps `(else`; the encoding waits for `(then`
    THEN ELSE  (then ...  (else ...
    FLAT       block ... end         flat `block`, `loop`, `try_table`, and `if` behind its `else`
    FLAT_IF    if ... else           flat `if` that may still have an `else`
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from .cursor import Cursor
from .encode import signed, unsigned, vector
from .immediates import READERS, ImmediateReader
from .instructions import INSTRUCTIONS, Immediate, Instruction
from .scope import IndexSpace, Scope, take_name_annotation
from .types import TypeParser

_ELSE = 0x05
_END = 0x0B
_EMPTY_BLOCK = b"\x40"
_CATCHES = {"catch": 0, "catch_ref": 1, "catch_all": 2, "catch_all_ref": 3}


class _Open(Enum):
    OPERATOR = auto()
    BLOCK = auto()
    IF = auto()
    THEN = auto()
    ELSE = auto()
    FLAT = auto()
    FLAT_IF = auto()


@dataclass(slots=True)
class _Frame:
    kind: _Open
    position: int
    pending: bytes = b""
    """What to emit when the operands are complete."""
    label: str | None = None
    arms: int = 0
    """Of a folded `if`: how many of `then` and `else` are complete."""


class ExpressionParser:
    """Encodes the instructions of one function or constant expression."""

    def __init__(self, cursor: Cursor, scope: Scope, types: TypeParser, local_space: IndexSpace | None = None) -> None:
        self.cursor = cursor
        self.scope = scope
        self.types = types
        self.reader = ImmediateReader(cursor, scope, types, local_space or IndexSpace("local"))
        self.encoded = bytearray()
        self.label_names: dict[int, str] = {}
        """The names of labels by their number in the function, for the name section."""
        self._labels_seen = 0
        self._frames: list[_Frame] = []

    def sequence(self) -> bytes:
        """The instructions up to a closing parenthesis that is not theirs, with the final `end` (Expressions)."""
        cursor, texts, frames = self.cursor, self.cursor.texts, self._frames
        while True:
            text = texts[cursor.position]
            if text == "(":
                self._open()
            elif text != ")":
                self._flat(text)
            elif frames:
                self._close()
            else:
                break
        self.encoded.append(_END)
        return bytes(self.encoded)

    def folded(self) -> bytes:
        """A single folded instruction, with the final `end` (Folded Instructions)."""
        if self.cursor.texts[self.cursor.position] != "(":
            raise self.cursor.unexpected("an instruction in parentheses")
        self._open()
        while self._frames:
            text = self.cursor.texts[self.cursor.position]
            if text == "(":
                self._open()
            elif text == ")":
                self._close()
            else:
                self._flat(text)
        self.encoded.append(_END)
        return bytes(self.encoded)

    def _flat(self, text: str) -> None:
        """Whatever is not a parenthesis, where an instruction is expected."""
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.kind is _Open.OPERATOR:
            raise self.cursor.unexpected("an operand in parentheses or `)`")
        if frame is not None and frame.kind is _Open.IF:
            raise self.cursor.unexpected("`(else` or `)`" if frame.arms else "a condition in parentheses or `(then`")
        instruction = INSTRUCTIONS.get(text)
        if instruction is None:
            self._flat_delimiter(frame, text)
            return
        self.cursor.position += 1
        if instruction.immediate is Immediate.BLOCK:
            position = self.cursor.position - 1
            label, header = self._block_header(instruction)
            self.encoded += header
            kind = _Open.FLAT_IF if instruction.name == "if" else _Open.FLAT
            self._enter(_Frame(kind, position, label=label))
        else:
            self.encoded += READERS[instruction.immediate](self.reader, instruction)

    def _flat_delimiter(self, frame: _Frame | None, text: str) -> None:
        if text == "end" and frame is not None and frame.kind in (_Open.FLAT, _Open.FLAT_IF):
            self.cursor.position += 1
            self._check_label(frame)
            self.encoded.append(_END)
            self._leave()
        elif text == "else" and frame is not None and frame.kind is _Open.FLAT_IF:
            self.cursor.position += 1
            self._check_label(frame)
            self.encoded.append(_ELSE)
            frame.kind = _Open.FLAT
        else:
            raise self._no_instruction(text)

    def _no_instruction(self, text: str) -> Exception:
        if text in ("end", "else", "then", "param", "result", "local", "type", "") or text[0] in '()"$':
            return self.cursor.unexpected("an instruction")
        return self.cursor.error(f"unknown operator `{text}`: expected an instruction")

    def _check_label(self, frame: _Frame) -> None:
        """The label that `end` and `else` may repeat (Control Instructions)."""
        position = self.cursor.position
        name = self.cursor.try_identifier()
        if name is not None and name != frame.label:
            expected = f"`{frame.label}`" if frame.label else "no label, as the block has none"
            raise self.cursor.error(f"mismatching label `{name}`: expected {expected}", position)

    def _open(self) -> None:
        """An opening parenthesis and the word behind it."""
        cursor = self.cursor
        position = cursor.position
        frame = self._frames[-1] if self._frames else None
        text = cursor.texts[position + 1]
        cursor.position += 1
        if frame is not None and frame.kind is _Open.IF and self._open_arm(frame, text):
            return
        instruction = INSTRUCTIONS.get(text)
        if instruction is None:
            raise self._no_instruction(text)
        cursor.position += 1
        if instruction.immediate is not Immediate.BLOCK:
            encoded = READERS[instruction.immediate](self.reader, instruction)
            self._frames.append(_Frame(_Open.OPERATOR, position, encoded))
            return
        label, header = self._block_header(instruction)
        if instruction.name == "if":
            # The label is not in scope in the condition: it is entered with the arms.
            self._frames.append(_Frame(_Open.IF, position, header, label))
        else:
            self.encoded += header
            self._enter(_Frame(_Open.BLOCK, position, label=label))

    def _open_arm(self, frame: _Frame, text: str) -> bool:
        """Begin an arm of a folded `if`, if one is next; else it must be an instruction of the condition."""
        if frame.arms == 0 and text == "then":
            self.encoded += frame.pending
            self.reader.labels.append(frame.label)
            kind = _Open.THEN
        elif frame.arms == 1 and text == "else":
            self.encoded.append(_ELSE)
            kind = _Open.ELSE
        elif frame.arms == 0:
            return False
        else:
            self.cursor.position -= 1
            raise self.cursor.unexpected("`(else` or `)`" if frame.arms == 1 else "`)`")
        self._frames.append(_Frame(kind, self.cursor.position - 1))
        self.cursor.position += 1
        return True

    def _close(self) -> None:
        """A closing parenthesis that belongs to one of our frames."""
        frame = self._frames[-1]
        if frame.kind is _Open.OPERATOR:
            self._frames.pop()
            self.encoded += frame.pending
        elif frame.kind in (_Open.THEN, _Open.ELSE):
            self._frames.pop()
            self._frames[-1].arms += 1
        elif frame.kind is _Open.BLOCK or (frame.kind is _Open.IF and frame.arms > 0):
            self.encoded.append(_END)
            self._leave()
        else:
            raise self.cursor.unexpected("`(then`" if frame.kind is _Open.IF else "`end` of the block before `)`")
        self.cursor.position += 1

    def _enter(self, frame: _Frame) -> None:
        self._frames.append(frame)
        self.reader.labels.append(frame.label)

    def _leave(self) -> None:
        self._frames.pop()
        self.reader.labels.pop()

    def _block_header(self, instruction: Instruction) -> tuple[str | None, bytes]:
        """The label of a block, and its encoding up to the first instruction inside (Control Instructions)."""
        cursor = self.cursor
        label = cursor.try_identifier()
        display_name = take_name_annotation(cursor, "label") or (label and label[1:])
        if display_name:
            self.label_names[self._labels_seen] = display_name
        self._labels_seen += 1
        header = instruction.opcode + self._block_type()
        if instruction.name == "try_table":
            header += vector(self._catches())
        return label, header

    def _block_type(self) -> bytes:
        """A block type: nothing, a value type, or a type use (Control Instructions)."""
        position = self.cursor.position
        explicit = self.types.explicit_type()
        inline = self.types.signature(None)
        if explicit is not None:
            self.types.check_inline(explicit, inline, None, position)
            return signed(explicit)
        if inline.parameters or len(inline.results) > 1:
            return signed(self.scope.types.index_of(inline))
        return inline.results[0] if inline.results else _EMPTY_BLOCK

    def _catches(self) -> list[bytes]:
        """The catch clauses of `try_table` (Control Instructions)."""
        cursor = self.cursor
        catches = []
        while cursor.texts[cursor.position] == "(" and cursor.texts[cursor.position + 1] in _CATCHES:
            kind = _CATCHES[cursor.texts[cursor.position + 1]]
            cursor.position += 2
            tag = unsigned(self.scope.tags.take(cursor)) if kind < 2 else b""
            catches.append(bytes([kind]) + tag + self.reader.label())
            cursor.take_close()
        return catches
