"""Modules as Python sees them."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from greenbeat.native import ctypes_of
from greenbeat.wasm.description import (
    ExportType,
    FunctionType,
    GlobalType,
    ImportType,
    MemoryType,
    Section,
    TableType,
    ValueType,
    describe_failure,
)
from greenbeat.wasm.names_section import Names
from greenbeat.wasm.printable import printable
from greenbeat.wasm.reader import NO_FUNCTION, Failure
from greenbeat.wasm.text import assemble
from greenbeat.wasm.valuetypes import EXTERNREF, F32, FUNCREF, I32, I64
from tests.wasm.modules import Decoder, leb, module, name, section, vector

TEXT = """
(module $example
  (import "env" "log" (func $log (param i32 f32)))
  (import "env" "table" (table 1 10 funcref))
  (import "env" "memory" (memory 1 2))
  (import "env" "global" (global (mut i64)))
  (func $add (param $a i32) (param $b i32) (result i32) i32.const 0)
  (func (export "anonymous"))
  (table 3 externref)
  (memory i64 0 65536)
  (global $counter i32 (i32.const 0))
  (export "add" (func $add)) (export "log" (func $log))
  (export "table" (table 1)) (export "memory" (memory 1)) (export "counter" (global $counter)))
"""


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return Decoder(False)


def kinds(*numbers: int) -> tuple[ValueType, ...]:
    return tuple(map(ValueType, numbers))


def test_description(decoder: Decoder) -> None:
    add = FunctionType(kinds(I32, I32), kinds(I32))
    log = FunctionType(kinds(I32, F32), ())
    with decoder.decoded(assemble(TEXT)) as found:
        assert found.imports == (
            ImportType("env", "log", log),
            ImportType("env", "table", TableType(ValueType(FUNCREF), 1, 10)),
            ImportType("env", "memory", MemoryType(1, 2)),
            ImportType("env", "global", GlobalType(ValueType(I64), True)),
        )
        assert found.exports == (
            ExportType("anonymous", FunctionType((), ()), 2),
            ExportType("add", add, 1),
            ExportType("log", log, 0),
            ExportType("table", TableType(ValueType(EXTERNREF), 3), 1),
            ExportType("memory", MemoryType(0, 65536, True), 1),
            ExportType("counter", GlobalType(ValueType(I32)), 1),
        )
        assert found.function_count == 3
        assert found.function_type(1) == add
        assert found.names.module == "example"
        assert found.names.locals[1] == {0: "a", 1: "b"}
        assert [found.function_name(i) for i in range(4)] == ["log", "add", "anonymous", None]
        assert repr(found).startswith('<module "example": 4 imports, 6 exports')
        assert list(map(str, (*found.imports, *found.exports))) == [
            '(import "env" "log" (func (param i32 f32)))',
            '(import "env" "table" (table 1 10 funcref))',
            '(import "env" "memory" (memory 1 2))',
            '(import "env" "global" (global (mut i64)))',
            '(export "anonymous" (func))',
            '(export "add" (func (param i32 i32) (result i32)))',
            '(export "log" (func (param i32 f32)))',
            '(export "table" (table 3 externref))',
            '(export "memory" (memory i64 0 65536))',
            '(export "counter" (global i32))',
        ]


def test_sections(decoder: Decoder) -> None:
    data = module(section(0, name("first") + b"abc"), section(1, b"\0"), section(0, name("second")))
    with decoder.decoded(data) as found:
        assert found.sections == (
            Section("custom", "first", 16, 3),
            Section("type", None, 21, 1),
            Section("custom", "second", 31, 0),
        )
        assert list(found.custom_sections("first")) == [b"abc"]
        assert list(found.custom_sections("other")) == []


def test_link_names_where_there_are_no_others(decoder: Decoder) -> None:
    data = module(
        section(1, vector(b"\x60\0\0")),
        section(2, vector(name("env") + name("f") + b"\0\0")),
        section(3, vector(b"\0", b"\0")),
        section(7, vector(name("g") + b"\0\1")),
        section(10, vector(b"\2\0\x0b", b"\2\0\x0b")),
    )
    with decoder.decoded(data) as found:
        assert [found.function_name(i) for i in range(3)] == ["env.f", "g", None]


def test_malformed_name_sections(decoder: Decoder) -> None:
    """Whatever a name section holds, the module stays a module, and what can be read is kept."""
    good = b"\1" + leb(4) + vector(b"\0" + name("f"))
    assert Names.read(good).functions == {0: "f"}
    assert Names.read(good + b"\2\x05abc").functions == {0: "f"}
    assert Names.read(b"\0\2\5a" + good).functions == {0: "f"}
    assert Names.read(b"\1\6\2\0" + name("a") + b"\1\x80").functions == {0: "a"}
    assert Names.read(b"\1\6\2\0\1a\0\1b").functions == {0: "a"}
    assert Names.read(b"\0\3\2\xff\xfe").module == "\ufffd\ufffd"
    for size in range(len(good)):
        Names.read(good[:size])
    with decoder.decoded(module(section(0, name("name") + b"\1\xff\xff\xff"))) as found:
        assert found.names == Names()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain name é 名", "plain name é 名"),
        ("a\nb\0", "a\\u{a}b\\u{0}"),
        ("\x1b[31m", "\\u{1b}[31m"),
        ("user\u202egpj.exe", "user\\u{202e}gpj.exe"),
        ("\u2028\u00a0\u200b\ufeff", "\\u{2028}\\u{a0}\\u{200b}\\u{feff}"),
        ("\ud800", "\\u{d800}"),
        ('quote " and \\', 'quote \\" and \\\\'),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_printable_cuts() -> None:
    assert printable("abcdef", 3) == "abc…"
    assert printable("abc", 3) == "abc"


def test_describe_failure() -> None:
    message = ctypes.create_string_buffer(b"wanted {type}, found {hex}")
    failure: Any = ctypes_of(Failure)(2, NO_FUNCTION, 12, ctypes.addressof(message), FUNCREF, 0xAB)
    assert describe_failure(failure) == ("wanted funcref, found 0xAB", 12, None)
    failure.function = 3
    assert describe_failure(ctypes.addressof(failure)) == ("wanted funcref, found 0xAB", 12, 3)
