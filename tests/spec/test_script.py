"""Scripts: every command and value, and the same commands as `wasm-tools json-from-wast` finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from greenbeat.wasm.text import TextError
from tests.spec.features import our_commands, our_files
from tests.spec.json_script import read_json
from tests.spec.script import (
    AssertException,
    AssertExhaustion,
    AssertModule,
    AssertReturn,
    AssertTrap,
    BinaryModule,
    Command,
    Either,
    Get,
    Instance,
    Invoke,
    Module,
    NanPattern,
    Number,
    Pattern,
    QuoteModule,
    RefExtern,
    RefFunc,
    RefHost,
    RefKind,
    RefNull,
    Register,
    TextModule,
    Vector,
    parse_script,
    read_script,
)
from tests.spec.suite import json_from_script, needs_suite, needs_wasm_tools, scripts

EMPTY = b"\0asm\1\0\0\0"


def test_modules() -> None:
    text, quote, binary, definition, instance, register = parse_script(
        r"""(module $m (func))
        (module quote "(mod" "ule)")
        (module $b binary "\00asm" "\01\00\00\00")
        (module definition $d (func))
        (module instance $i $d)
        (register "name" $i)"""
    )
    assert isinstance(text, Module) and isinstance(text.source, TextModule) and text.name == "$m" and text.line == 1
    assert text.source.binary().startswith(EMPTY)
    assert quote == Module(2, None, QuoteModule(b"(module)"))
    assert quote.source.binary() == EMPTY
    assert binary == Module(3, "$b", BinaryModule(EMPTY))
    assert isinstance(definition, Module) and definition.definition and definition.name == "$d"
    assert instance == Instance(5, "$i", "$d")
    assert register == Register(6, "name", "$i")


def test_bare_fields_are_one_module() -> None:
    (module,) = parse_script('(func) (memory 1) (export "m" (memory 0))')
    assert isinstance(module, Module)
    assert b"\x07\x05\x01\x01m\x02\x00" in module.source.binary()


def test_actions_and_assertions() -> None:
    invoke = Invoke(1, "$i", "f", (Number("i32", 0xFFFF_FFFF),))
    assert parse_script('(invoke $i "f" (i32.const -1))') == [invoke]
    assert parse_script('(get "g")') == [Get(1, None, "g")]
    assert parse_script('(assert_return (invoke $i "f" (i32.const -1)) (f64.const -0))') == [
        AssertReturn(1, invoke, (Number("f64", 1 << 63),))
    ]
    assert parse_script('(assert_trap (get "g") "why")') == [AssertTrap(1, Get(1, None, "g"), "why")]
    assert parse_script('(assert_exhaustion (invoke "f") "why")') == [
        AssertExhaustion(1, Invoke(1, None, "f", ()), "why")
    ]
    assert parse_script('(assert_exception (invoke "f"))') == [AssertException(1, Invoke(1, None, "f", ()))]
    assert parse_script('(assert_trap (module quote "(func)") "why")') == [AssertTrap(1, QuoteModule(b"(func)"), "why")]
    for kind in ("malformed", "invalid", "unlinkable", "malformed_custom", "invalid_custom"):
        assert parse_script(f'(assert_{kind} (module quote "x") "why")') == [
            AssertModule(1, kind, QuoteModule(b"x"), "why")
        ]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("(i64.const 0x10)", Number("i64", 16)),
        ("(f32.const 1)", Number("f32", 0x3F80_0000)),
        ("(f32.const nan:0x1)", Number("f32", 0x7F80_0001)),
        ("(f32.const nan:canonical)", NanPattern("f32", "canonical")),
        ("(f64.const nan:arithmetic)", NanPattern("f64", "arithmetic")),
        ("(v128.const i64x2 1 -1)", Vector("i64x2", (Number("i64", 1), Number("i64", 2**64 - 1)))),
        ("(v128.const f64x2 0 nan:canonical)", Vector("f64x2", (Number("f64", 0), NanPattern("f64", "canonical")))),
        ("(ref.null)", RefNull(None)),
        ("(ref.null func)", RefNull("func")),
        ("(ref.extern 7)", RefExtern(7)),
        ("(ref.extern)", RefExtern(None)),
        ("(ref.host 7)", RefHost(7)),
        ("(ref.func)", RefFunc(None)),
        ("(ref.func 3)", RefFunc("3")),
        ("(ref.struct)", RefKind("struct")),
        ("(either (i32.const 1) (i32.const 2))", Either((Number("i32", 1), Number("i32", 2)))),
    ],
)
def test_values_and_patterns(text: str, pattern: Pattern) -> None:
    assert parse_script(f'(assert_return (invoke "f") {text})') == [
        AssertReturn(1, Invoke(1, None, "f", ()), (pattern,))
    ]


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("(module)\nassert", "expected a command in parentheses", 2, 1),
        ("(module)\n(assert_retrun)", "expected a command in parentheses", 2, 1),
        ('(assert_return (call "f"))', "expected `(get`", 1, 16),
        ('(assert_return (invoke "f") (i33.const 0))', "expected a value or a pattern", 1, 40),
        ('(invoke "f" (i32.const x))', "expected an i32 literal", 1, 24),
        ('(invoke "f" (v128.const i8x17))', "unknown shape of a vector", 1, 25),
    ],
)
def test_errors(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(TextError) as caught:
        parse_script(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


def comparable(command: Command) -> Command:
    """The command without what the two readers cannot agree on.

    These are the modules, the sorts of null references, and the lines: the JSON has that of the word behind the
    parenthesis, or for an assertion about a module that of the module.
    """
    command = replace(command, line=0)
    match command:
        case Module() | AssertModule():
            return replace(command, source=BinaryModule(b""))
        case AssertTrap(action=TextModule() | QuoteModule() | BinaryModule()):
            return replace(command, action=BinaryModule(b""))
        case Invoke() | Get():
            return comparable_action(command)
        case AssertReturn():
            return replace(command, action=comparable_action(command.action), results=untyped(command.results))
        case AssertTrap(action=Invoke() | Get() as action):
            return replace(command, action=comparable_action(action))
        case AssertExhaustion() | AssertException():
            return replace(command, action=comparable_action(command.action))
    return command


def comparable_action(action: Invoke | Get) -> Invoke | Get:
    if isinstance(action, Get):
        return replace(action, line=0)
    return replace(action, line=0, arguments=untyped(action.arguments))


T = TypeVar("T")


def untyped(values: tuple[T, ...]) -> tuple[T | RefNull, ...]:
    return tuple(RefNull(None) if isinstance(each, RefNull) else each for each in values)


@needs_suite
@needs_wasm_tools
@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.stem)
def test_same_commands_as_wasm_tools(path: Path, tmp_path: Path) -> None:
    ours, theirs = read_script(path), read_json(json_from_script(path, tmp_path))
    assert [comparable(command) for command in ours] == [comparable(command) for command in theirs]


@needs_suite
@pytest.mark.parametrize("path", our_files(), ids=lambda path: path.stem)
def test_what_is_left_out_exists(path: Path) -> None:
    commands, later = our_commands(path)
    assert set(later) <= {command.line for command in commands}
