"""What is short for what: folded and flat instructions, and the abbreviations of module fields.

Each pair of texts must assemble to the same bytes, apart from names.
"""

from __future__ import annotations

import pytest

from greenbeat.wasm.text import assemble
from greenbeat.wasm.text.encode import PREAMBLE

FOLDED_AND_FLAT = [
    ("(i32.add (i32.const 1) (i32.const 2)) (drop)", "i32.const 1 i32.const 2 i32.add drop"),
    ("i32.const 1 (drop)", "(drop (i32.const 1))"),
    ("(block $l (br $l))", "block $l br $l end $l"),
    ("(loop (br 0))", "loop br 0 end"),
    ("(block (nop) nop (nop))", "block nop nop nop end"),
    ("(if (i32.const 1) (then nop))", "i32.const 1 if nop end"),
    ("(if (i32.const 1) (then) (else nop))", "i32.const 1 if else nop end"),
    ("(if (then nop) (else))", "if nop else end"),
    (
        "(if $l (result i32) (i32.const 1) (then (br $l (i32.const 2))) (else (i32.const 3))) drop",
        "i32.const 1 if $l (result i32) i32.const 2 br 0 else $l i32.const 3 end $l drop",
    ),
    (
        "(block $outer (if $inner (br_if $outer (i32.const 1) (i32.const 2)) (then (br $outer))))",
        "block i32.const 1 i32.const 2 br_if 0 if br 1 end end",
    ),
    (
        "(if (if (result i32) (i32.const 1) (then (i32.const 2)) (else (i32.const 3))) (then))",
        "i32.const 1 if (result i32) i32.const 2 else i32.const 3 end if end",
    ),
    (
        "(select (result i32) (i32.const 1) (i32.const 2) (i32.const 3))",
        "i32.const 1 i32.const 2 i32.const 3 select (result i32)",
    ),
    ("(block (param) (result))", "block end"),
    ("(call_indirect (type $t) (i32.const 0))", "i32.const 0 call_indirect (type $t)"),
    ("(try_table (catch_all 0) nop)", "try_table (catch_all 0) nop end"),
]

ABBREVIATIONS = [
    ('(func (export "a") (export "b"))', '(func) (export "a" (func 0)) (export "b" (func 0))'),
    ('(func (import "m" "n") (param i32))', '(import "m" "n" (func (param i32)))'),
    ('(func $f (export "e") (import "m" "n"))', '(import "m" "n" (func)) (export "e" (func 0))'),
    ('(table (import "m" "n") 1 2 funcref)', '(import "m" "n" (table 1 2 funcref))'),
    ('(memory (export "e") (import "m" "n") 1)', '(import "m" "n" (memory 1)) (export "e" (memory 0))'),
    ('(global (import "m" "n") (mut i64))', '(import "m" "n" (global (mut i64)))'),
    ('(tag (export "e") (import "m" "n") (param i32))', '(import "m" "n" (tag (param i32))) (export "e" (tag 0))'),
    ("(func (param i32 i64) (param f32))", "(func (param i32) (param i64) (param f32))"),
    ("(func (local i32 i32) (local) (local i64))", "(func (local i32) (local i32) (local i64))"),
    (
        "(func (param i32) (result i64) unreachable)",
        "(type (func (param i32) (result i64))) (func (type 0) unreachable)",
    ),
    ("(func (param i32)) (type (func (param i32)))", "(type (func (param i32))) (func (type 0))"),
    (
        "(func (block (param i32) (result i32)))",
        "(func block (type 1) end) (type (func)) (type (func (param i32) (result i32)))",
    ),
    ("(func (type 0) (param i32)) (type (func (param i32)))", "(func (type 0)) (type (func (param i32)))"),
    ('(memory (data "ab" "c"))', '(memory 1 1) (data (i32.const 0) "abc")'),
    ('(memory i64 (data "abc"))', '(memory i64 1 1) (data (memory 0) (offset i64.const 0) "abc")'),
    ("(memory (data))", '(memory 0 0) (data (offset (i32.const 0)) "")'),
    ("(memory i32 1)", "(memory 1)"),
    ("(func) (table funcref (elem 0 0))", "(func) (table 2 2 funcref) (elem (i32.const 0) func 0 0)"),
    ("(table funcref (elem (ref.null func)))", "(table 1 1 funcref) (elem (i32.const 0) funcref (item ref.null func))"),
    (
        "(table i64 externref (elem (ref.null extern)))",
        "(table i64 1 1 externref) (elem (table 0) (i64.const 0) externref (item (ref.null extern)))",
    ),
    (
        "(func) (type $t (func)) (table (ref null $t) (elem 0))",
        "(func) (type $t (func)) (table 1 1 (ref null 0)) (elem (table 0) (i32.const 0) (ref null 0) (ref.func 0))",
    ),
    (
        "(table 1 funcref) (func) (elem (i32.const 0) 0)",
        "(table 1 funcref) (func) (elem (table 0) (offset (i32.const 0)) func 0)",
    ),
    ("(func (param anyref externref funcref))", "(func (param (ref null any) (ref null extern) (ref null func)))"),
    (
        "(memory 1) (func (drop (i32.load (i32.const 0))))",
        "(memory 1) (func (drop (i32.load 0 offset=0 align=4 (i32.const 0))))",
    ),
    (
        "(memory 1) (memory 1) (func (memory.copy (i32.const 0) (i32.const 0) (i32.const 0)))",
        "(memory 1) (memory 1) (func (memory.copy 0 0 (i32.const 0) (i32.const 0) (i32.const 0)))",
    ),
    (
        '(memory 1) (data "") (func (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 0)))',
        '(memory 1) (data "") (func (memory.init 0 0 (i32.const 0) (i32.const 0) (i32.const 0)))',
    ),
    ("(type (sub final (struct)))", "(type (struct))"),
    ("(type (struct (field i32 i8) (field (mut i16))))", "(type (struct (field i32) (field i8) (field (mut i16))))"),
    ("(module)", ""),
    ("(module (func))", "(func)"),
]

NAMES = [
    ("(func $a (call $b)) (func $b)", "(func (call 1)) (func)"),
    (
        "(func (param $x i32) (local $y i64) (drop (local.get $y)))",
        "(func (param i32) (local i64) (drop (local.get 1)))",
    ),
    ('(global $g i32 (i32.const 1)) (export "g" (global $g))', '(global i32 (i32.const 1)) (export "g" (global 0))'),
    ("(func $f) (start $f)", "(func) (start 0)"),
    (
        "(table $t 1 funcref) (func $f) (elem $e (table $t) (i32.const 0) func $f) (func (elem.drop $e))",
        "(table 1 funcref) (func) (elem (i32.const 0) 0) (func (elem.drop 0))",
    ),
    (
        "(memory 1) (memory $m 1) (data $d (memory $m) (i32.const 0)) (func (data.drop $d) (drop (memory.size $m)))",
        "(memory 1) (memory 1) (data (memory 1) (i32.const 0)) (func (data.drop 0) (drop (memory.size 1)))",
    ),
    (
        "(type $s (struct (field i32) (field $b i64))) (func (param (ref $s)) (drop (struct.get $s $b (local.get 0))))",
        "(type (struct (field i32) (field i64))) (func (param (ref 0)) (drop (struct.get 0 1 (local.get 0))))",
    ),
    (
        "(rec (type $a (struct (field (ref null $b)))) (type $b (struct (field (ref null $a)))))",
        "(rec (type (struct (field (ref null 1)))) (type (struct (field (ref null 0)))))",
    ),
]


def without_custom_sections(binary: bytes) -> bytes:
    """The module without its name section."""
    assert binary.startswith(PREAMBLE)
    position, kept = len(PREAMBLE), [PREAMBLE]
    while position < len(binary):
        start, identifier = position, binary[position]
        size = shift = 0
        while True:
            position += 1
            size |= (binary[position] & 127) << shift
            shift += 7
            if binary[position] < 128:
                break
        position += 1 + size
        if identifier != 0:
            kept.append(binary[start:position])
    return b"".join(kept)


def assert_same(first: str, second: str) -> None:
    assert without_custom_sections(assemble(first)) == without_custom_sections(assemble(second))


@pytest.mark.parametrize(("folded", "flat"), FOLDED_AND_FLAT)
def test_folded_is_flat(folded: str, flat: str) -> None:
    assert_same(
        f"(type $t (func)) (table 1 funcref) (func {folded})", f"(type $t (func)) (table 1 funcref) (func {flat})"
    )


@pytest.mark.parametrize(("short", "full"), ABBREVIATIONS)
def test_abbreviations(short: str, full: str) -> None:
    assert_same(short, full)


@pytest.mark.parametrize(("named", "numbered"), NAMES)
def test_names_are_indices(named: str, numbered: str) -> None:
    assert_same(named, numbered)


def test_a_whole_module_byte_by_byte() -> None:
    source = """
      (module $m
        (func $add (export "add") (param $a i32) (param $b i32) (result i32)
          (i32.add (local.get $a) (local.get $b))))
    """
    assert assemble(source) == (
        PREAMBLE
        + bytes.fromhex("01 07 01 60 02 7f 7f 01 7f")
        + bytes.fromhex("03 02 01 00")
        + b"\x07\x07\x01\x03add\x00\x00"
        + bytes.fromhex("0a 09 01 07 00 20 00 20 01 6a 0b")
        + b"\x00\x1c\x04name"
        + b"\x00\x02\x01m"
        + b"\x01\x06\x01\x00\x03add"
        + b"\x02\x09\x01\x00\x02\x00\x01a\x01\x01b"
    )


def test_label_and_other_names() -> None:
    binary = assemble('(memory $m 1) (func (block (block $inner)) (loop $"a b"))')
    assert binary.endswith(b"\x03\x0f\x01\x00\x02\x01\x05inner\x02\x03a b" + b"\x06\x04\x01\x00\x01m")


def test_name_annotations_override_identifiers() -> None:
    assert assemble('(module $m (@name "Modül"))').endswith(b"\x00\x07\x06" + "Modül".encode())
    assert assemble('(func $f (@name "a b"))').endswith(b"\x01\x06\x01\x00\x03a b")


def test_custom_annotations() -> None:
    binary = assemble('(@custom "a" (before first) "x" "y") (func) (@custom "b" (after func))')
    assert binary[8:14] == b"\x00\x04\x01axy\x01"[:6]
    assert b"\x03\x02\x01\x00" + b"\x00\x02\x01b" + b"\x0a" in binary


def test_a_function_may_use_a_type_that_is_implied_further_down() -> None:
    source = "(type (func)) (func (type 1) (local $x i64) (drop (local.get $x))) (func (param i32))"
    assert_same(
        source,
        "(type (func)) (type (func (param i32))) (func (type 1) (local i64) (drop (local.get 1))) (func (type 1))",
    )


def test_deep_nesting_needs_no_stack() -> None:
    depth = 20_000
    folded = "(func " + "(block " * depth + ")" * depth + ")"
    flat = "(func " + "block " * depth + "end " * depth + ")"
    assert assemble(folded) == assemble(flat)
    operands = "(i32.eqz " * depth + "(i32.const 0)" + ")" * depth
    assert assemble(f"(func (drop {operands}))") == assemble(f"(func i32.const 0 {'i32.eqz ' * depth} drop)")


def test_data_count_section_comes_only_with_code_that_needs_it() -> None:
    assert b"\x0c\x01\x01" not in assemble('(memory 1) (data "")')
    assert b"\x0c\x01\x01" in assemble('(memory 1) (data "") (func (data.drop 0))')


def test_bytes_and_text_are_the_same() -> None:
    source = '(import "ä" "ö" (func))'
    assert assemble(source) == assemble(source.encode())
