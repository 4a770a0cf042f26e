"""What is wrong with a text, and where: one row for each way to be malformed."""

from __future__ import annotations

import pytest

from greenbeat.wasm.text import TextError, assemble

ERRORS = [
    # Module fields.
    ("(module) (module)", "expected nothing more behind the module", 1, 10),
    ("(module (fun))", "expected a module field", 1, 10),
    ("(module func)", "expected a module field in parentheses", 1, 9),
    ("()", "expected a module field", 1, 2),
    ("$m (func)", "expected a module field in parentheses", 1, 1),
    ("(func $f) (func $f)", "duplicate func $f", 1, 17),
    ('(import "" "" (memory $m 1)) (memory $m 1)', "duplicate memory $m", 1, 38),
    ("(func (param $x i32) (local $x i32))", "duplicate local $x", 1, 29),
    ("(type (struct (field $x i32) (field $x i32)))", "duplicate field $x", 1, 37),
    ('(func)\n(import "" "" (func))', "import after function", 2, 9),
    ('(memory 1) (func (import "" ""))', "import after memory", 1, 18),
    ("(func $f) (start $f) (start $f)", "multiple start sections", 1, 29),
    ('(import "m" (func))', "expected the name of an import in quotation marks", 1, 13),
    ('(import "m" "n" (fun))', "expected the type of the import", 1, 17),
    ('(export "e" (fun 0))', "expected `(func`, `(table`", 1, 13),
    ('(export "e" (func $f))', "unknown func $f", 1, 19),
    ("(export e (func 0))", "token `e`: expected a name in quotation marks", 1, 9),
    ("(start)", "token `)`: expected the index or the name of a func", 1, 7),
    ("(start 4294967296)", "u32 constant out of range", 1, 8),
    ("(start 0 1)", "token `1`: expected `)`", 1, 10),
    ("(memory)", "expected a minimum size", 1, 8),
    ("(memory -1)", "expected a minimum size", 1, 9),
    ("(memory 1 2 3)", "expected `)`", 1, 13),
    ("(memory (data $x))", "expected a string or `)`", 1, 15),
    ("(table 1)", "expected a reference type", 1, 9),
    ("(table 1 i32)", "expected a reference type", 1, 10),
    ("(global i32 i32.const)", "expected a number", 1, 22),
    ("(global (mut) (i32.const 0))", "expected a value type", 1, 13),
    ("(elem (i32.const 0) funcref 0)", "expected `)`", 1, 29),
    ("(elem 0)", "expected `func` or a reference type", 1, 7),
    ("(elem (table 0) (i32.const 0) 0)", "expected `func` or a reference type", 1, 31),
    ("(data (i32.const 0) (i32.const 0))", "expected `)`", 1, 21),
    ('(data (memory 0) "")', "expected an instruction in parentheses", 1, 18),
    # Types.
    ("(type (func (result i32) (param i32)))", "`(param ...)` comes before `(result ...)`", 1, 26),
    ("(func (result i32) (param i32))", "`(param ...)` comes before `(result ...)`", 1, 20),
    ("(func (param $x i32 i32))", "a named parameter or local has one type", 1, 21),
    ("(func (param x))", "token `x`: expected a value type", 1, 14),
    ("(func (param (ref 0 1)))", "expected `)`", 1, 21),
    ("(func (param (ref null fun)))", "expected a heap type", 1, 24),
    ("(func (type $t))", "unknown type $t", 1, 13),
    ("(type (func)) (func (type 0) (param i32))", "inline function type differs from type 0", 1, 21),
    ("(func (type 7) (param i32))", "unknown type 7", 1, 7),
    ("(type (struct)) (func (type 0) (param i32))", "unknown type 0: not a function type", 1, 23),
    ("(func (block (param $x i32)))", "expected a value type", 1, 21),
    ("(type (fun))", "expected `(func`, `(struct` or `(array`", 1, 7),
    ("(type (array i32 i32))", "expected `)`", 1, 18),
    ("(rec (func))", "expected `(type` or `)`", 1, 6),
    # Instructions.
    ("(func i32.foo)", "unknown operator `i32.foo`: expected an instruction", 1, 7),
    ("(func (i32.foo))", "unknown operator `i32.foo`", 1, 8),
    ("(func 1)", "unknown operator `1`", 1, 7),
    ("(func ())", "token `)`: expected an instruction", 1, 8),
    ("(func (local i32) nop (local i32))", "token `local`: expected an instruction", 1, 24),
    ("(func block)", "expected `end` of the block", 1, 12),
    ("(func (block end))", "token `end`: expected an instruction", 1, 14),
    ("(func end)", "token `end`: expected an instruction", 1, 7),
    ("(func block else end)", "token `else`", 1, 13),
    ("(func if else else end)", "token `else`", 1, 15),
    ("(func block $a end $b)", "mismatching label `$b`: expected `$a`", 1, 20),
    ("(func block end $b)", "mismatching label `$b`: expected no label", 1, 17),
    ("(func (if (i32.const 0)))", "expected `(then`", 1, 24),
    ("(func (if (i32.const 0) nop))", "expected a condition in parentheses or `(then`", 1, 25),
    ("(func (if (then) (nop)))", "expected `(else` or `)`", 1, 18),
    ("(func (if (then) nop))", "expected `(else` or `)`", 1, 18),
    ("(func (if (then) (else) (else)))", "token `(`: expected `)`", 1, 25),
    ("(func (else))", "token `else`", 1, 8),
    ("(func (i32.add i32.const 1))", "expected an operand in parentheses or `)`", 1, 16),
    ("(func (br))", "expected the depth or the name of a label", 1, 10),
    ("(func (br $l))", "unknown label $l", 1, 11),
    ("(func (block $l) (br $l))", "unknown label $l", 1, 22),
    ("(func (if $l (br_if $l) (then)))", "unknown label $l", 1, 21),
    ("(func (br_table))", "expected the depth or the name of a label", 1, 16),
    ("(func (local.get $x))", "unknown local $x", 1, 18),
    ("(func (local.get -1))", "expected the index or the name of a local", 1, 18),
    ("(func (call $f))", "unknown func $f", 1, 13),
    ("(func (i32.const))", "expected a number", 1, 17),
    ("(func (i32.const x))", "expected an i32 literal, found `x`", 1, 18),
    ("(func (i32.const 4294967296))", "i32 constant out of range: 4294967296", 1, 18),
    ("(func (f32.const 0x1p128))", "f32 constant out of range", 1, 18),
    ("(func (i32.load align=3))", "alignment must be a power of two, not 3", 1, 17),
    ("(func (i32.load align=0))", "alignment must be a power of two, not 0", 1, 17),
    ("(func (i32.load align=4 offset=0))", "expected an operand in parentheses", 1, 25),
    ("(func (i32.load offset=-1))", "expected an unsigned integer, found `-1`", 1, 17),
    ("(func (i32.load offset=0x1_0000_0000_0000_0000))", "u64 constant out of range", 1, 17),
    ("(memory 1) (func (memory.copy 0 (nop)))", "expected the index or the name of a memory", 1, 33),
    ("(func (ref.null))", "expected a heap type", 1, 16),
    ("(func (call_indirect (param $x i32)))", "expected a value type", 1, 29),
    ("(func (struct.get 0 $f))", "unknown field $f", 1, 21),
    ("(func (v128.const i8x17 0))", "expected the shape of a vector", 1, 19),
    ("(func (v128.const i64x2 0))", "expected a number", 1, 26),
    ("(func (i8x16.extract_lane_s 256))", "u8 constant out of range", 1, 29),
    # Annotations with a meaning.
    ('(module (@name "a") (@name "b"))', "multiple names for one module", 1, 21),
    ('(func) (@name "a")', "misplaced @name annotation", 1, 8),
    ("(func (@name 1))", "expected a name in quotation marks in the @name annotation", 1, 14),
    ("(@custom)", "a section name in quotation marks", 1, 9),
    ('(func (@custom "x"))', "misplaced @custom annotation", 1, 7),
    ('(@custom "x" (before types))', "expected @custom annotation: a section kind or `first`", 1, 22),
]


@pytest.mark.parametrize(("source", "message", "line", "column"), ERRORS)
def test_errors_say_what_and_where(source: str, message: str, line: int, column: int) -> None:
    with pytest.raises(TextError) as caught:
        assemble(source)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value) == f"{line}:{column}: {caught.value.message}"


def test_long_tokens_are_shortened() -> None:
    with pytest.raises(TextError, match=r"token `x{37}\.\.\.`"):
        assemble("(start " + "x" * 1000 + ")")
