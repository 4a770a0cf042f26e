"""Instructions back to text: what the assembler reads in it is what it was."""

from pathlib import Path

import pytest

from greenbeat import Module
from greenbeat.disassembly.instructions import Bytes, Decoder, DisassemblyError, Line, float_text, identifier
from greenbeat.wasm.text import assemble
from greenbeat.wasm.text.instructions import INSTRUCTIONS, Immediate

GUESTS = sorted(Path(__file__).resolve().parents[2].glob("benchmarks/guests/*.wasm"))

# Operands for instructions with each sort of immediate.
EXAMPLES: dict[Immediate, list[str]] = {
    Immediate.NONE: [""],
    Immediate.BLOCK: [
        "",
        "(result i32)",
        "(type 1)",
        "(result (ref null 0))",
        "(result externref)",
    ],
    Immediate.LABEL: ["0", "200"],
    Immediate.LABEL_TABLE: ["0", "3 1 2 0"],
    Immediate.FUNCTION: ["0", "300"],
    Immediate.TYPE: ["0", "1"],
    Immediate.CALL_INDIRECT: ["(type 0)", "2 (type 1)"],
    Immediate.SELECT: ["", "(result i32)", "(result (ref func))"],
    Immediate.LOCAL: ["0", "130"],
    Immediate.GLOBAL: ["0", "5"],
    Immediate.TABLE: ["", "1"],
    Immediate.TABLE_COPY: ["", "1 0", "0 1"],
    Immediate.TABLE_INIT: ["1", "0 1", "2 1"],
    Immediate.ELEMENT: ["1"],
    Immediate.MEMORY: ["", "1"],
    Immediate.MEMORY_COPY: ["", "1 0"],
    Immediate.MEMORY_INIT: ["1", "2 1"],
    Immediate.DATA: ["1"],
    Immediate.ACCESS: ["", "offset=8", "align=1", "1 offset=4294967296 align=1"],
    Immediate.ACCESS_LANE: ["0", "offset=8 align=1 1", "1 offset=3 0"],
    Immediate.LANE: ["1"],
    Immediate.SHUFFLE: [" ".join(map(str, range(15, -1, -1)))],
    Immediate.I32: ["0", "-2147483648", "2147483647", "64"],
    Immediate.I64: ["0", "-9223372036854775808", "-65"],
    Immediate.F32: ["0", "-0", "0.1", "inf", "-nan", "nan:0x200000", "3.4028235e38", "1e-45"],
    Immediate.F64: ["0", "-0", "0.1", "-inf", "nan", "nan:0x1", "1.7976931348623157e308", "5e-324"],
    Immediate.V128: ["i32x4 0 1 -1 0x80000000"],
    Immediate.HEAP_TYPE: ["func", "extern", "1"],
    Immediate.REFERENCE_TYPE: ["(ref null any)", "(ref 1)"],
    Immediate.CAST_BRANCH: ["1 (ref null any) (ref eq)", "0 (ref any) (ref null 1)"],
    Immediate.TYPE_FIELD: ["1 2"],
    Immediate.TYPE_COUNT: ["1 4"],
    Immediate.TYPE_DATA: ["1 0"],
    Immediate.TYPE_ELEMENT: ["1 0"],
    Immediate.TYPE_TYPE: ["1 0"],
    Immediate.TAG: ["1"],
    Immediate.ZERO: [""],
}


def code_of(binary: bytes) -> tuple[int, int]:
    """Where the instructions of a module's only function begin and end."""
    at = Bytes(binary, 8)
    while at.at < len(binary):
        kind, size = at.byte(), at.unsigned()
        if kind == 10:
            assert at.unsigned() == 1
            body = at.unsigned()
            end = at.at + body
            return Decoder(binary).locals(at.at)[1], end
        at.at += size
    raise AssertionError("no code")


def with_body(body: str) -> bytes:
    return assemble(f"(module (type (func)) (type (func (param i32) (result i64))) (func {body}\n))")


def decoded(binary: bytes) -> list[Line]:
    return list(Decoder(binary).lines(*code_of(binary)))


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_every_instruction_there_and_back(name: str) -> None:
    row = INSTRUCTIONS[name]
    for operands in EXAMPLES[row.immediate]:
        end = " end" if row.immediate is Immediate.BLOCK else ""
        binary = with_body(f"{name} {operands}{end}")
        lines = decoded(binary)
        assert lines[0].name == name
        assert [line.offset for line in lines[1:]] == [line.end for line in lines[:-1]]
        assert lines[-1].end == len(binary)
        assert with_body("\n".join(map(str, lines[:-1]))) == binary


def test_every_sort_of_immediate_has_an_example() -> None:
    assert set(EXAMPLES) == set(Immediate)


def test_try_table() -> None:
    text = "try_table (result i32) (catch 0 0) (catch_all_ref 1)\nend"
    assert with_body("\n".join(map(str, decoded(with_body(text))[:-1]))) == with_body(text)


def test_nesting_and_where_branches_go() -> None:
    lines = decoded(with_body("block loop br 0 br_if 1 br 2 end if br 0 else br 1 end end"))
    assert [(line.depth, line.name, line.remark) for line in lines] == [
        (0, "block", "@1"),
        (1, "loop", "@2"),
        (2, "br", "@2"),
        (2, "br_if", "@1"),
        (2, "br", "return"),
        (1, "end", "@2"),
        (1, "if", "@2"),
        (2, "br", "@2"),
        (1, "else", "@2"),
        (2, "br", "@1"),
        (1, "end", "@2"),
        (0, "end", "@1"),
        (0, "end", ""),
    ]


@pytest.mark.parametrize("path", GUESTS, ids=lambda path: path.stem)
def test_whole_programs(path: Path) -> None:
    """What C compilers write pads some numbers, so the second reading is compared with the first, not the bytes."""
    module = Module.from_file(path)
    description = module.description
    types = " ".join(f"(type {kind})" for kind in description.types)
    for index in range(description.function_count):
        body = description.body(index)
        if body is None:
            continue
        decoder = Decoder(bytes(description.data))
        _, start = decoder.locals(body[0])
        first = list(map(str, decoder.lines(start, body[1])))
        text = "\n".join(first[:-1])
        number = description.types.index(description.function_type(index))
        assert list(map(str, decoded(assemble(f"(module {types} (func (type {number}) {text}\n))")))) == first


@pytest.mark.parametrize("code", ["06", "ff", "fcff7f", "fdff7f", "41", "4180", "0e01"])
def test_no_instruction(code: str) -> None:
    with pytest.raises(DisassemblyError):
        list(Decoder(bytes.fromhex(code)).lines(0, len(code) // 2))


@pytest.mark.parametrize(
    ("name", "written"),
    [("plain.name_0", "$plain.name_0"), ("two words", '$"two words"'), ("\x1b[31m", r'$"\u{1b}[31m"'), ("", '$""')],
)
def test_identifiers(name: str, written: str) -> None:
    assert identifier(name) == written


def test_floats() -> None:
    assert float_text(0x3DCCCCCD, 32) == "0.100000001"
    assert float_text(0xFFC00000, 32) == "-nan"
    assert float_text(0x7FF0000000000001, 64) == "nan:0x1"
