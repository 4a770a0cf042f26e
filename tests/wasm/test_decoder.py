"""What the decoder accepts and refuses: of each section, each limit, and each way to be malformed."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from greenbeat.wasm import limits
from greenbeat.wasm.text import TextError, assemble
from tests.spec.features import our_commands, our_files
from tests.spec.script import AssertModule, Module
from tests.spec.suite import needs_suite
from tests.wasm.modules import HEADER, Decoder, Refusal, leb, module, name, section, vector

TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, START, ELEMENT, CODE, DATA, DATA_COUNT, TAG = range(1, 14)
NOTHING = b"\x60\x00\x00"
ONE_TYPE = section(TYPE, vector(NOTHING))
ONE_FUNCTION = ONE_TYPE + section(FUNCTION, vector(b"\0"))
ONE_BODY = section(CODE, vector(b"\2\0\x0b"))
ONE_TABLE = section(TABLE, vector(b"\x70\x00\x01"))
ONE_MEMORY = section(MEMORY, vector(b"\0\1"))


@pytest.fixture(params=[False, True], ids=["fast", "checked"])
def decoder(request: pytest.FixtureRequest) -> Decoder:
    return Decoder(request.param)


def refused(decoder: Decoder, data: bytes) -> Refusal:
    refusal = decoder.refusal(data)
    assert refusal is not None
    return refusal


MALFORMED = [
    # The header.
    (b"", "unexpected end", 0),
    (b"\0as", "unexpected end", 0),
    (b"asm\0", "magic header not detected", 0),
    (b"\0ASM\1\0\0\0", "magic header not detected", 0),
    (b"\0asm\1\0\0", "unexpected end", 4),
    (b"\0asm\2\0\0\0", "unknown binary version 2", 4),
    (b"\0asm\x0d\0\1\0", "unknown binary version: this is a component", 4),
    # Sections.
    (module(b"\x0e\1\0"), "malformed section id", 8),
    (module(b"\1"), "unexpected end", 9),
    (module(b"\1\x80"), "unexpected end", 10),
    (module(b"\1\xff\xff\xff\xff\x7f"), "integer too large", 13),
    (module(b"\1\xff\xff\xff\xff\xff\0"), "integer representation too long", 13),
    (module(b"\1\2\0"), "length out of bounds", 9),
    (module(b"\1\2\0\0"), "section size mismatch", 11),
    (module(section(MEMORY, b"\0"), section(TYPE, b"\0")), "unexpected content after last section", 11),
    (module(section(TYPE, b"\0"), section(TYPE, b"\0")), "unexpected content after last section", 11),
    (module(section(CODE, b"\0"), section(DATA_COUNT, b"\0")), "unexpected content after last section", 11),
    (module(section(0, b"")), "unexpected end", 10),
    (module(section(0, b"\5abc")), "length out of bounds", 11),
    (module(section(0, b"\1\xff")), "malformed UTF-8 encoding", 11),
    # Counts.
    (module(section(TYPE, b"\2" + NOTHING + b"\x60\x00")), "unexpected end", 16),
    (module(section(TYPE, leb(0xFFFFFFFF))), "unexpected end: there are more items than bytes", 10),
    (module(section(IMPORT, leb(1_000_000) + bytes(10))), "unexpected end: there are more items than bytes", 10),
    # Types.
    (module(section(TYPE, vector(b"\x40\x00\x00"))), "malformed type form", 11),
    (module(section(TYPE, vector(b"\x60\x01\x40\x00"))), "malformed value type", 13),
    (module(section(TYPE, vector(b"\x60\x01\x64\x40\x00"))), "malformed heap type", 14),
    # Imports.
    (module(section(IMPORT, vector(b"\0\0\5"))), "malformed import kind", 13),
    (module(section(IMPORT, vector(b"\0\1\x80\0\0"))), "malformed UTF-8 encoding", 13),
    (module(section(IMPORT, vector(b"\0\0\1\x7f\0\0"))), "malformed reference type", 14),
    # Limits.
    (module(section(TABLE, vector(b"\x70\x08\0"))), "malformed limits flags", 12),
    (module(section(MEMORY, vector(b"\x81\0\0"))), "malformed limits flags", 11),
    (module(section(TABLE, vector(b"\x40\x01\x70\0\0"))), "malformed table", 12),
    # Globals and constant expressions.
    (module(section(GLOBAL, vector(b"\x7f\2\x41\0\x0b"))), "malformed mutability", 12),
    (module(section(GLOBAL, vector(b"\x7f\0\xff\x0b"))), "illegal opcode 0xFF", 13),
    (module(section(GLOBAL, vector(b"\x7f\0\x41"))), "unexpected end", 14),
    (module(section(GLOBAL, vector(b"\x7f\0\x41\0"))), "unexpected end", 15),
    (module(section(GLOBAL, vector(b"\x7f\0\x41\xff\xff\xff\xff\x4f\x0b"))), "integer too large", 18),
    (module(section(GLOBAL, vector(b"\x7b\0\xfd\x0c" + bytes(15)))), "unexpected end", 15),
    # Exports.
    (module(ONE_MEMORY, section(EXPORT, vector(b"\1a\5\0"))), "malformed export kind", 18),
    # Segments.
    (module(ONE_TABLE, section(ELEMENT, vector(b"\x08\0"))), "malformed element segment kind", 17),
    (module(ONE_TABLE, section(ELEMENT, vector(b"\1\1\0"))), "malformed element kind", 18),
    (module(ONE_TABLE, section(ELEMENT, vector(b"\5\x7f\0"))), "malformed reference type", 18),
    (module(section(DATA, vector(b"\3\0"))), "malformed data segment kind", 11),
    (module(section(DATA, vector(b"\1\2a"))), "unexpected end", 13),
    (module(section(DATA_COUNT, b"\1"), section(DATA, b"\0")), "data count and data section have", 13),
    (module(section(DATA_COUNT, b"\1")), "data count and data section have inconsistent lengths", 11),
    # Code.
    (module(ONE_FUNCTION), "function and code section have inconsistent lengths", 18),
    (module(section(CODE, vector(b"\2\0\x0b"))), "function and code section have inconsistent lengths", 10),
    (module(ONE_FUNCTION, section(CODE, vector(b"\3\0\x0b"))), "unexpected end", 21),
    (module(ONE_FUNCTION, section(CODE, vector(b"\x09\1\xff\xff\xff\xff\x1f\x7f\x0b\0"))), "integer too large", 27),
]


@pytest.mark.parametrize(("data", "message", "offset"), MALFORMED, ids=itertools.count())
def test_malformed(decoder: Decoder, data: bytes, message: str, offset: int) -> None:
    found = refused(decoder, data)
    assert found.kind == "malformed"
    assert found.message.startswith(message)
    assert found.offset == offset


INVALID = [
    ('(import "" "" (func (type 0)))', "unknown type 0"),
    ("(func (type 0))", "unknown type 0"),
    ("(type (func)) (func (type 1))", "unknown type 1"),
    ("(type (func (param (ref 1))))", "unknown type 1"),
    ("(memory 1 0)", "size minimum must not be greater than maximum"),
    ("(table 1 0 funcref)", "size minimum must not be greater than maximum"),
    ("(memory 65537)", "memory size must be at most 65536 pages (4 GiB)"),
    ("(memory 0 65537)", "memory size must be at most 65536 pages (4 GiB)"),
    ("(memory i64 0 0x1000000000001)", "memory size must be at most 2^48 pages"),
    ("(table 1 (ref func))", "type mismatch: a table of (ref func) needs a first value for its elements"),
    ("(global i32 (i64.const 0))", "type mismatch: this must compute i32, but computes i64"),
    ("(global i32)", "type mismatch: this must compute one i32, but leaves 0 values"),
    ("(global i32 (i32.const 0) (i32.const 0))", "type mismatch: this must compute one i32, but leaves 2 values"),
    ("(global i32 (i32.add (i32.const 0) (i64.const 0)))", "type mismatch: the instruction needs two i32"),
    ("(global i64 (i64.mul (i64.const 0)))", "type mismatch: the instruction needs two i64"),
    ("(global i32 (nop))", "constant expression required: instruction 0x01 is not constant"),
    ("(global i32 (i32.div_u (i32.const 1) (i32.const 1)))", "constant expression required"),
    ("(global v128 (v128.not (v128.const i64x2 0 0)))", "constant expression required"),
    (
        '(import "" "" (global (mut i32))) (global i32 (global.get 0))',
        "constant expression required: global 0 is mutable",
    ),
    ("(global i32 (global.get 0))", "unknown global 0"),
    ("(global i32 (global.get 1)) (global i32 (i32.const 0))", "unknown global 1"),
    ("(global funcref (ref.func 0))", "unknown function 0"),
    ("(global (ref func) (ref.null func))", "type mismatch: this must compute (ref func), but computes funcref"),
    ("(global externref (ref.null func))", "type mismatch: this must compute externref, but computes funcref"),
    ('(export "a" (func 0))', "unknown function 0"),
    ('(export "a" (table 0))', "unknown table 0"),
    ('(export "a" (memory 0))', "unknown memory 0"),
    ('(export "a" (global 0))', "unknown global 0"),
    ('(memory 0) (export "a" (memory 0)) (export "b" (memory 0)) (export "a" (memory 0))', "duplicate export name"),
    ("(start 0)", "unknown function 0"),
    ("(func (param i32)) (start 0)", "start function: function 0 has parameters or results"),
    ("(elem (i32.const 0))", "unknown table 0"),
    ("(table 1 externref) (func) (elem (i32.const 0) func 0)", "type mismatch: a table of externref cannot hold"),
    ("(table 1 funcref) (elem (i64.const 0))", "type mismatch: this must compute i32, but computes i64"),
    ("(table i64 1 funcref) (elem (i32.const 0))", "type mismatch: this must compute i64, but computes i32"),
    ("(elem func 0)", "unknown function 0"),
    ("(elem declare func 0)", "unknown function 0"),
    ("(elem funcref (ref.null extern))", "type mismatch: this must compute funcref, but computes externref"),
    ('(data (i32.const 0) "")', "unknown memory 0"),
    ('(memory 1) (data (memory 1) (i32.const 0) "")', "unknown memory 1"),
    ('(memory 1) (data (i64.const 0) "")', "type mismatch: this must compute i32, but computes i64"),
    # Later features.
    ("(type (struct))", "type form 0x5F is not supported yet"),
    ("(rec)", "type form 0x4E is not supported yet"),
    ("(global anyref (ref.null any))", "type 0x6E is not supported yet"),
    ("(type (func (result i32))) (tag (type 0))", "non-empty tag result type"),
    ("(memory 1 1 shared)", "shared memories are not supported yet"),
]


@pytest.mark.parametrize(("text", "message"), INVALID, ids=[text for text, _ in INVALID])
def test_invalid(decoder: Decoder, text: str, message: str) -> None:
    if "shared" in text:
        data = module(section(MEMORY, vector(b"\3\1\1")))
    else:
        data = assemble(f"(module {text})")
    found = refused(decoder, data)
    assert found.kind == "invalid"
    assert found.message.startswith(message)
    assert 8 < found.offset < len(data)


VALID = [
    "",
    "(type (func (param i32 i64 f32 f64 v128 funcref externref) (result externref v128)))",
    "(type $t (func (param (ref $t)) (result (ref null $t))))",
    "(type $t (func)) (type (func (param (ref $t) (ref null $t) (ref func) (ref null extern))))",
    "(memory i64 0 0x1000000000000) (memory 65536) (memory 0 0)",
    "(table 0xffffffff funcref) (table i64 0 0xffffffffffffffff externref)",
    "(func $f) (table 3 (ref func) (ref.func $f))",
    "(type $t (func)) (func $f (type $t)) (global (ref $t) (ref.func $f)) (global (ref null $t) (ref.null $t))",
    '(import "" "" (global i32)) (global i32 (i32.mul (global.get 0) (i32.sub (i32.const 2) (i32.const 3))))',
    "(global i64 (i64.const 1)) (global i64 (i64.add (global.get 0) (global.get 0)))",
    "(global v128 (v128.const i32x4 1 2 3 4))",
    "(table 1 funcref) (func) (elem (i32.const 0) 0) (elem func 0) (elem (table 0) (i32.const 0) func 0)",
    "(table 1 funcref) (func) (elem declare func 0) (elem (i32.const 0) funcref (ref.func 0) (ref.null func))",
    "(table 1 funcref) (func) (elem funcref (item ref.func 0)) (elem declare funcref (item ref.func 0))",
    "(table i64 1 funcref) (func) (elem (table 0) (i64.const 0) funcref (item ref.func 0))",
    '(memory 1) (data "a") (data (i32.const 0) "b") (data (memory 0) (i32.const 1) "c")',
    '(func) (start 0) (export "" (func 0)) (export "\\00" (func 0))',
]


@pytest.mark.parametrize("text", VALID)
def test_valid(decoder: Decoder, text: str) -> None:
    assert decoder.refusal(assemble(f"(module {text})")) is None


def test_failure_in_a_body(decoder: Decoder) -> None:
    """A failure in a body says in which function, imports counted."""
    types = section(TYPE, vector(NOTHING)) + section(IMPORT, vector(b"\0\0\0\0"))
    bodies = section(CODE, vector(b"\2\0\x0b", b"\4\1\1\x40\x0b"))
    data = module(types, section(FUNCTION, vector(b"\0", b"\0")), bodies)
    assert refused(decoder, data) == Refusal("malformed", "malformed value type", len(data) - 2, 2)


def locals_body(*counts: int) -> bytes:
    contents = vector(*(leb(count) + b"\x7f" for count in counts)) + b"\x0b"
    return leb(len(contents)) + contents


def counted(number: int, count: int) -> bytes:
    return module(section(number, leb(count) + bytes(count)))


I32S = b"\x7f" * 1001
LIMITS = [
    (counted(TYPE, limits.TYPES + 1), "1,000,000 types"),
    (counted(IMPORT, limits.IMPORTS + 1), "1,000,000 imports"),
    (counted(FUNCTION, limits.FUNCTIONS + 1), "1,000,000 functions"),
    (counted(TABLE, limits.TABLES + 1), "100,000 tables"),
    (counted(MEMORY, limits.MEMORIES + 1), "100 memories"),
    (counted(GLOBAL, limits.GLOBALS + 1), "1,000,000 globals"),
    (counted(EXPORT, limits.EXPORTS + 1), "1,000,000 exports"),
    (counted(ELEMENT, limits.ELEMENT_SEGMENTS + 1), "10,000,000 element segments"),
    (counted(DATA, limits.DATA_SEGMENTS + 1), "100,000 data segments"),
    (module(section(DATA_COUNT, leb(limits.DATA_SEGMENTS + 1))), "100,000 data segments"),
    (module(section(ELEMENT, vector(b"\1\0" + leb(10_000_001) + bytes(10_000_001)))), "10,000,000 entries"),
    (module(section(TYPE, vector(b"\x60" + leb(1001) + I32S + b"\0"))), "1,000 parameters"),
    (module(section(TYPE, vector(b"\x60\0" + leb(1001) + I32S))), "1,000 results"),
    (module(ONE_FUNCTION, section(CODE, vector(locals_body(50_001)))), "50,000 locals"),
    (module(ONE_FUNCTION, section(CODE, vector(locals_body(25_000, 25_001)))), "50,000 locals"),
    (module(ONE_FUNCTION, section(CODE, vector(leb(7_654_322)))), "7,654,321 bytes in a function's body"),
    (module(section(IMPORT, vector(*[b"\0\0\2\0\0"] * 99)), counted(MEMORY, 2)[8:]), "100 memories"),
    (module(section(GLOBAL, vector(b"\x7f\0" + b"\x41\0" * 65 + b"\x0b"))), "64 operands in a constant expression"),
]


@pytest.mark.parametrize(("data", "limit"), LIMITS, ids=[f"{limit} {i}" for i, (_, limit) in enumerate(LIMITS)])
def test_limits(data: bytes, limit: str) -> None:
    found = refused(Decoder(False), data)
    assert found.kind == "invalid"
    assert found.message.startswith(f"implementation limit exceeded: at most {limit}")


def test_at_the_limits(decoder: Decoder) -> None:
    assert decoder.refusal(module(ONE_FUNCTION, section(CODE, vector(locals_body(25_000, 25_000))))) is None
    kind = b"\x60" + leb(1000) + I32S[:1000]
    assert decoder.refusal(module(section(TYPE, vector(kind + leb(1000) + I32S[:1000])))) is None
    assert decoder.refusal(module(section(MEMORY, vector(*[b"\0\0"] * 100)))) is None
    assert decoder.refusal(module(section(GLOBAL, vector(b"\x7f\0" + b"\x41\0" * 64 + b"\x6a" * 63 + b"\x0b")))) is None


def test_too_many_locals_to_count(decoder: Decoder) -> None:
    data = module(ONE_FUNCTION, section(CODE, vector(locals_body(0xFFFFFFFF, 1))))
    assert refused(decoder, data).message == "too many locals"
    assert refused(decoder, data).kind == "malformed"


def test_module_size() -> None:
    """More than 1 GiB is refused before a byte is read."""
    found = Decoder(False).decode_at(ctypes.addressof(ctypes.c_char()), (1 << 30) + 1)
    assert isinstance(found, Refusal)
    assert found.message == "implementation limit exceeded: at most 1,073,741,824 bytes in a module"


def test_custom_sections_anywhere(decoder: Decoder) -> None:
    custom = section(0, name("c") + b"payload")
    ordered = [ONE_TYPE, section(FUNCTION, vector(b"\0")), ONE_TABLE, ONE_MEMORY, ONE_BODY]
    data = module(custom, *itertools.chain.from_iterable((part, custom, custom) for part in ordered))
    with decoder.decoded(data) as description:
        assert [s.name for s in description.sections].count("c") == 11
        assert all(contents == b"payload" for contents in description.custom_sections("c"))


def test_many_sections(decoder: Decoder) -> None:
    """A module may have any number of sections, of which the first ones are listed."""
    count = limits.LISTED_SECTIONS + 1
    with decoder.decoded(module(*[section(0, b"\0")] * count)) as description:
        assert len(description.sections) == 65536


@given(st.binary(max_size=40))
def test_names_are_utf8(text: bytes) -> None:
    data = module(section(0, leb(len(text)) + text))
    try:
        text.decode()
    except UnicodeDecodeError:
        assert refused(Decoder(False), data).message == "malformed UTF-8 encoding"
    else:
        assert Decoder(False).refusal(data) is None


@given(st.text(max_size=40), st.integers(0, 39), st.integers(0, 255))
def test_names_nearly_utf8(text: str, position: int, byte: int) -> None:
    data = bytearray(text.encode())
    if position < len(data):
        data[position] = byte
    test_names_are_utf8.hypothesis.inner_test(bytes(data))  # type: ignore[attr-defined]


@given(st.lists(st.text(max_size=3), max_size=60))
def test_export_names_differ(names: list[str]) -> None:
    exports = section(EXPORT, vector(*(name(text) + b"\2\0" for text in names)))
    found = Decoder(False).refusal(module(ONE_MEMORY, exports))
    assert (found is None) == (len(set(names)) == len(names))


@needs_suite
@pytest.mark.parametrize("path", our_files(), ids=lambda path: path.name)
def test_suite(path: Path) -> None:
    """Each of our modules of the official suite is accepted, or refused as malformed or invalid, as it says."""
    decoder = Decoder(False)
    commands, later = our_commands(path)
    for command in commands:
        if command.line in later:
            continue
        if isinstance(command, Module) or (isinstance(command, AssertModule) and command.kind == "unlinkable"):
            assert decoder.refusal(command.source.binary()) is None, command.line
        elif isinstance(command, AssertModule) and command.kind in ("malformed", "invalid"):
            try:
                data = command.source.binary()
            except TextError:
                continue
            assert refused(decoder, data).kind == command.kind, command.line


def test_header_only(decoder: Decoder) -> None:
    with decoder.decoded(HEADER) as description:
        assert not description.sections
        assert not description.imports
        assert not description.exports
        assert not description.types
        assert description.function_count == 0
        assert description.start is None
