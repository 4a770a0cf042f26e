"""`greenbeat inspect`: the module, a function's instructions, a function's cells."""

import json
from pathlib import Path

import pytest

from greenbeat.wasm.text import assemble

from .command import Command


def test_the_module(greenbeat: Command, program: Path) -> None:
    outcome = greenbeat("inspect", program)
    assert outcome.status == 0
    for expected in (
        'WebAssembly module "tour"',
        '(export "div" (func (param i32 i32) (result i32)))',
        "memories (1)",
        "functions (7: 0 imported, 7 with",
        "$div (func (param i32 i32) (result i32))",
        'custom "name"',
    ):
        assert expected in outcome.out


def test_the_module_for_programs(greenbeat: Command, program: Path, tmp_path: Path) -> None:
    binary = tmp_path / "tour.wasm"
    binary.write_bytes(assemble(program.read_bytes()))
    found = json.loads(greenbeat("inspect", binary, "--json").out)
    assert (found["name"], found["size"]) == ("tour", binary.stat().st_size)
    assert found["functions"][0] == {
        "index": 0,
        "name": "div",
        "type": "(func (param i32 i32) (result i32))",
        "size": 7,
    }
    assert found["exports"][-1] == {"name": "memory", "type": "(memory 2)", "index": 0}
    last = found["sections"][-1]
    assert (last["kind"], last["name"], last["offset"] + last["size"]) == ("custom", "name", found["size"])


@pytest.mark.parametrize("wanted", ["div", "$div", "0"])
def test_a_function(greenbeat: Command, program: Path, wanted: str) -> None:
    header, *lines = greenbeat("inspect", program, "--function", wanted).out.splitlines()
    assert header == '(func $div (;0;) (export "div") (param $a i32) (param $b i32) (result i32)'
    assert [line[8:].rstrip() for line in lines] == ["    local.get $a", "    local.get $b", "    i32.div_s", "  )"]
    offset = int(lines[2][:8], 16)
    assert assemble(program.read_bytes())[offset] == 0x6D


def test_a_function_for_programs(greenbeat: Command, program: Path) -> None:
    found = json.loads(greenbeat("inspect", program, "--function", "spin", "--json").out)
    assert [(line["depth"], line["text"]) for line in found["instructions"]] == [
        (0, "loop"),
        (1, "br 0"),
        (0, "end"),
        (0, "end"),
    ]


def test_cells(greenbeat: Command, program: Path) -> None:
    first, *lines = greenbeat("inspect", program, "--cells", "div").out.splitlines()
    assert first.startswith(f"function 0 $div: {len(lines)} cells, ")
    handlers = [line.split()[1] for line in lines]
    assert handlers[0].startswith("i32.div_s.")
    assert handlers[-1].startswith("return.")
    found = json.loads(greenbeat("inspect", program, "--cells", "div", "--json").out)
    assert [cell["handler"] for cell in found["cells"]] == handlers


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("7", "the module has no function 7: it has 7, numbered from 0"),
        ("other", "the module has no function other"),
    ],
)
def test_no_such_function(greenbeat: Command, program: Path, wanted: str, said: str) -> None:
    outcome = greenbeat("inspect", program, "--function", wanted)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err


def test_imported_and_ambiguous_functions(greenbeat: Command, tmp_path: Path) -> None:
    path = tmp_path / "names.wat"
    path.write_text('(module (import "a" "b" (func $f)) (func (@name "twin")) (func (@name "twin")))')
    assert "function 0 is imported" in greenbeat("inspect", path, "--cells", "0").err
    assert (
        "several functions are called twin: choose by number: 1, 2"
        in greenbeat("inspect", path, "--function", "twin").err
    )
