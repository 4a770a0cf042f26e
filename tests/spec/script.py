"""Scripts of the official test suite (`.wast`), parsed into commands.

The grammar is the one of the reference interpreter's README: a script is a list of commands that define modules,
perform actions on their instances, and assert what comes of them. A script is read with the lexer of the text
format; modules in it stay as they are, text, quoted text or bytes, until somebody asks for their binary, because
whether that works is often what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from greenbeat.wasm.text import assemble
from greenbeat.wasm.text.cursor import Cursor
from greenbeat.wasm.text.immediates import VECTOR_SHAPES
from greenbeat.wasm.text.lexer import Tokens, tokenize
from greenbeat.wasm.text.module import ModuleParser
from greenbeat.wasm.text.numbers import F32, F64, FloatFormat, parse_float, parse_signless

# Values and patterns of results.


@dataclass(frozen=True)
class Number:
    """A number of type `i32`, `i64`, `f32` or `f64`, as its bits."""

    type: str
    bits: int


@dataclass(frozen=True)
class NanPattern:
    """Any NaN of a float type whose payload is `canonical`, or `arithmetic`: at least the highest bit set."""

    type: str
    payload: str


@dataclass(frozen=True)
class Vector:
    """A vector of type `v128`: a number or a pattern in each lane."""

    shape: str
    lanes: tuple[Number | NanPattern, ...]

    def to_bytes(self) -> bytes:
        """The sixteen bytes of a vector without patterns."""
        size = 16 // len(self.lanes)
        return b"".join(lane.bits.to_bytes(size, "little") for lane in self.lanes if isinstance(lane, Number))

    @staticmethod
    def from_bytes(content: bytes, shape: str) -> Vector:
        """The vector of a shape with these bytes."""
        count = VECTOR_SHAPES[shape][0]
        size = 16 // count
        parts = [content[start : start + size] for start in range(0, 16, size)]
        return Vector(shape, tuple(Number(shape.partition("x")[0], int.from_bytes(part, "little")) for part in parts))


@dataclass(frozen=True)
class RefNull:
    """A null reference; in a result, without a heap type it matches every null."""

    heap_type: str | None


@dataclass(frozen=True)
class RefExtern:
    """The external reference with a number; in a result, without a number any that is not null."""

    value: int | None


@dataclass(frozen=True)
class RefHost:
    """The host's object with a number, as an internal reference."""

    value: int


@dataclass(frozen=True)
class RefFunc:
    """A function; in a result any function, the index means nothing."""

    index: str | None


@dataclass(frozen=True)
class RefKind:
    """In a result: any reference that is not null and of this abstract heap type, such as `struct`."""

    kind: str


@dataclass(frozen=True)
class Either:
    """In a result: any of several patterns."""

    alternatives: tuple[Pattern, ...]


Value = Number | Vector | RefNull | RefExtern | RefHost | RefFunc
Pattern = Value | NanPattern | RefKind | Either

# Modules.


@dataclass(frozen=True)
class TextModule:
    """A module written in the script itself."""

    tokens: Tokens
    start: int
    bare: bool = False
    """Whether the script is nothing but the fields of this module."""

    def binary(self) -> bytes:
        parser = ModuleParser(Cursor(self.tokens, self.start))
        return parser.fields() if self.bare else parser.module()

    def fields(self) -> list[tuple[tuple[str, ...], str]]:
        """The fields as their tokens and as their text."""
        tokens, position = self.tokens, self.start
        found = []
        while tokens.texts[position] not in (")", ""):
            end = tokens.closing.get(position, position)
            text = tokens.source[tokens.starts[position] : tokens.starts[end + 1]]
            found.append((tuple(tokens.texts[position : end + 1]), text))
            position = end + 1
        return found


@dataclass(frozen=True)
class QuoteModule:
    """A module whose text is quoted, so that it may be malformed in any way."""

    source: bytes

    def binary(self) -> bytes:
        return assemble(self.source)


@dataclass(frozen=True)
class BinaryModule:
    """A module given as bytes."""

    content: bytes

    def binary(self) -> bytes:
        return self.content


ModuleSource = TextModule | QuoteModule | BinaryModule

# Commands.


@dataclass(frozen=True)
class Module:
    """`(module ...)`: define a module and, unless it is only a `definition`, instantiate it."""

    line: int
    name: str | None
    source: ModuleSource
    definition: bool = False


@dataclass(frozen=True)
class Instance:
    """`(module instance name? module?)`: instantiate a module defined before."""

    line: int
    name: str | None
    module: str | None


@dataclass(frozen=True)
class Register:
    """`(register "name" instance?)`: make the exports of an instance importable under a name."""

    line: int
    name: str
    instance: str | None


@dataclass(frozen=True)
class Invoke:
    """`(invoke instance? "name" argument*)`."""

    line: int
    instance: str | None
    name: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class Get:
    """`(get instance? "name")`: the value of an exported global."""

    line: int
    instance: str | None
    name: str


Action = Invoke | Get


@dataclass(frozen=True)
class AssertReturn:
    """The action ends with these results."""

    line: int
    action: Action
    results: tuple[Pattern, ...]


@dataclass(frozen=True)
class AssertTrap:
    """The action, or the instantiation of the module, traps."""

    line: int
    action: Action | ModuleSource
    message: str


@dataclass(frozen=True)
class AssertExhaustion:
    """The action exhausts the call stack."""

    line: int
    action: Action
    message: str


@dataclass(frozen=True)
class AssertException:
    """The action ends with an uncaught exception."""

    line: int
    action: Action


MODULE_ASSERTIONS = ("malformed", "invalid", "unlinkable", "malformed_custom", "invalid_custom")


@dataclass(frozen=True)
class AssertModule:
    """A module is refused; `kind` is one of `MODULE_ASSERTIONS`."""

    line: int
    kind: str
    source: ModuleSource
    message: str


Command = (
    Module
    | Instance
    | Register
    | Invoke
    | Get
    | AssertReturn
    | AssertTrap
    | AssertExhaustion
    | AssertException
    | AssertModule
)


def parse_script(source: str | bytes) -> list[Command]:
    """All commands of a script. A script of bare module fields is one module."""
    return _ScriptParser(tokenize(source)).script()


def read_script(path: Path) -> list[Command]:
    """All commands of the script in a file."""
    return parse_script(path.read_bytes())


class _ScriptParser:
    def __init__(self, tokens: Tokens) -> None:
        self.cursor = Cursor(tokens)
        self._commands: dict[str, Callable[[int], Command]] = {
            "module": self._module,
            "register": self._register,
            "invoke": self._invoke,
            "get": self._get,
            "assert_return": self._assert_return,
            "assert_trap": self._assert_trap,
            "assert_exhaustion": lambda line: AssertExhaustion(line, self._action(), self._name()),
            "assert_exception": lambda line: AssertException(line, self._action()),
        }
        for kind in MODULE_ASSERTIONS:
            self._commands[f"assert_{kind}"] = self._assert_module(kind)

    def script(self) -> list[Command]:
        cursor = self.cursor
        if cursor.texts[0] == "(" and cursor.texts[1] not in self._commands:
            return [Module(1, None, TextModule(cursor.tokens, 0, bare=True))]
        commands = []
        while cursor.texts[cursor.position]:
            commands.append(self._command())
        return commands

    def _command(self) -> Command:
        cursor = self.cursor
        line = cursor.line
        read = self._commands.get(cursor.texts[cursor.position + 1])
        if cursor.texts[cursor.position] != "(" or read is None:
            raise cursor.unexpected("a command in parentheses")
        cursor.position += 2
        command = read(line)
        cursor.take_close()
        return command

    def _name(self) -> str:
        return self.cursor.take_name().decode()

    def _module(self, line: int) -> Module | Instance:
        cursor = self.cursor
        if cursor.try_keyword("instance"):
            return Instance(line, cursor.try_identifier(), cursor.try_identifier())
        definition = cursor.try_keyword("definition")
        name, source = self._module_source()
        return Module(line, name, source, definition)

    def _module_source(self) -> tuple[str | None, ModuleSource]:
        """What stands behind `(module` and perhaps `definition`, up to its closing parenthesis."""
        cursor = self.cursor
        start = cursor.position
        name = cursor.try_identifier()
        if cursor.try_keyword("binary"):
            return name, BinaryModule(cursor.take_strings())
        if cursor.try_keyword("quote"):
            return name, QuoteModule(cursor.take_strings())
        while cursor.texts[cursor.position] not in (")", ""):
            cursor.skip()
        return name, TextModule(cursor.tokens, start)

    def _module_argument(self) -> ModuleSource:
        self.cursor.take_open("module")
        self.cursor.try_keyword("definition")
        _, source = self._module_source()
        self.cursor.take_close()
        return source

    def _register(self, line: int) -> Register:
        return Register(line, self._name(), self.cursor.try_identifier())

    def _invoke(self, line: int) -> Invoke:
        instance = self.cursor.try_identifier()
        name = self._name()
        arguments = []
        while self.cursor.texts[self.cursor.position] == "(":
            value = self._pattern()
            if isinstance(value, NanPattern | RefKind | Either):
                raise self.cursor.unexpected("a value rather than a pattern")
            arguments.append(value)
        return Invoke(line, instance, name, tuple(arguments))

    def _get(self, line: int) -> Get:
        return Get(line, self.cursor.try_identifier(), self._name())

    def _action(self) -> Action:
        cursor = self.cursor
        line = cursor.line
        action: Action
        if cursor.try_open("invoke"):
            action = self._invoke(line)
        else:
            cursor.take_open("get")
            action = self._get(line)
        cursor.take_close()
        return action

    def _assert_return(self, line: int) -> AssertReturn:
        return AssertReturn(line, self._action(), self._patterns())

    def _assert_trap(self, line: int) -> AssertTrap:
        action = self._module_argument() if self.cursor.at_open("module") else self._action()
        return AssertTrap(line, action, self._name())

    def _assert_module(self, kind: str) -> Callable[[int], Command]:
        return lambda line: AssertModule(line, kind, self._module_argument(), self._name())

    def _patterns(self) -> tuple[Pattern, ...]:
        patterns = []
        while self.cursor.texts[self.cursor.position] == "(":
            patterns.append(self._pattern())
        return tuple(patterns)

    def _pattern(self) -> Pattern:
        cursor = self.cursor
        cursor.position += 1
        pattern = self._pattern_inside(cursor.take())
        cursor.take_close()
        return pattern

    def _pattern_inside(self, keyword: str) -> Pattern:
        cursor = self.cursor
        if keyword in ("i32.const", "i64.const"):
            return self._integer(keyword[:3], int(keyword[1:3]))
        if keyword in ("f32.const", "f64.const"):
            return self._float(F32 if keyword == "f32.const" else F64)
        if keyword == "v128.const":
            return self._vector()
        if keyword == "ref.null":
            return RefNull(None if cursor.texts[cursor.position] == ")" else cursor.take())
        if keyword == "ref.extern":
            return RefExtern(cursor.take_unsigned(32, "a number") if cursor.at_index() else None)
        if keyword == "ref.host":
            return RefHost(cursor.take_unsigned(32, "a number"))
        if keyword == "ref.func":
            return RefFunc(None if cursor.texts[cursor.position] == ")" else cursor.take())
        if keyword == "either":
            return Either(self._patterns())
        if keyword.startswith("ref."):
            return RefKind(keyword.removeprefix("ref."))
        raise cursor.unexpected("a value or a pattern")

    def _integer(self, type_: str, bits: int) -> Number:
        return Number(type_, self._literal(lambda text: parse_signless(text, bits)))

    def _float(self, form: FloatFormat) -> Number | NanPattern:
        text = self.cursor.texts[self.cursor.position]
        if text in ("nan:canonical", "nan:arithmetic"):
            self.cursor.position += 1
            return NanPattern(form.name, text.removeprefix("nan:"))
        return Number(form.name, self._literal(lambda text: parse_float(text, form)))

    def _literal(self, parse: Callable[[str], int]) -> int:
        text = self.cursor.take()
        try:
            return parse(text)
        except ValueError as error:
            raise self.cursor.error(str(error), self.cursor.position - 1) from None

    def _vector(self) -> Vector:
        shape = self.cursor.take()
        if shape not in VECTOR_SHAPES:
            raise self.cursor.error(f"unknown shape of a vector: {shape}", self.cursor.position - 1)
        count, lane, _ = VECTOR_SHAPES[shape]
        lanes = [
            self._integer(shape.partition("x")[0], lane) if isinstance(lane, int) else self._float(lane)
            for _ in range(count)
        ]
        return Vector(shape, tuple(lanes))
