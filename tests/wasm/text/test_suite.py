"""The text format against the official suite, and against two other assemblers where they are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from greenbeat.wasm.text import TextError, assemble
from tests.spec.features import our_files
from tests.spec.json_script import read_json
from tests.spec.script import (
    AssertModule,
    AssertTrap,
    BinaryModule,
    Command,
    Get,
    Invoke,
    Module,
    ModuleSource,
    TextModule,
    read_script,
)
from tests.spec.suite import json_from_script, needs_suite, needs_wasm_tools, run_wasm_tools, scripts


def modules(commands: Sequence[Command]) -> Iterator[tuple[int, str, ModuleSource]]:
    """Every module of a script: its line, what must become of it, and the module."""
    for command in commands:
        if isinstance(command, Module):
            yield command.line, "valid", command.source
        elif isinstance(command, AssertTrap) and not isinstance(command.action, Invoke | Get):
            yield command.line, "valid", command.action
        elif isinstance(command, AssertModule):
            yield (
                command.line,
                "valid" if command.kind == "unlinkable" else command.kind.removesuffix("_custom"),
                command.source,
            )


@pytest.fixture(scope="module")
def wasmtime() -> ModuleType:
    module: ModuleType = pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    return module


@needs_suite
@pytest.mark.parametrize("path", sorted({*scripts(), *our_files()}), ids=lambda path: path.stem)
def test_every_module_assembles_or_is_refused(path: Path, wasmtime: ModuleType) -> None:
    """Valid modules become valid binaries, malformed texts are refused, invalid ones become invalid binaries."""
    config = wasmtime.Config()
    for feature in (
        "gc",
        "function_references",
        "exceptions",
        "tail_call",
        "multi_memory",
        "memory64",
        "relaxed_simd",
        "threads",
        "shared_memory",
    ):
        setattr(config, f"wasm_{feature}", True)
    engine = wasmtime.Engine(config)
    unexpected = []
    for line, expected, source in modules(read_script(path)):
        if isinstance(source, BinaryModule):
            continue
        try:
            binary = source.binary()
        except TextError as error:
            if expected != "malformed":
                unexpected.append(f"{path.name}:{line}: {expected} module refused: {error}")
            continue
        try:
            wasmtime.Module.validate(engine, binary)
            became = "valid"
        except wasmtime.WasmtimeError:
            became = "invalid"
        if became != expected:
            unexpected.append(f"{path.name}:{line}: {expected} module became {became}")
    assert not unexpected, "\n".join(unexpected)


# An inline signature means the first equal type that is final and alone in its group (6.6.4). In these modules
# wasm-tools takes a type that is open to subtypes.
INLINE_SIGNATURE_OF_OPEN_TYPE = {("type-subtyping.wast", 344), ("type-subtyping.wast", 373)}


def printed(binary: bytes) -> str:
    """A module as wasm-tools prints it, without the two things in which we differ from its assembler on purpose.

    It repeats a table that is 0 in element segments where the short form will do, and it keeps the names of
    parameters in function types in a subsection of its own.
    """
    text = run_wasm_tools("print", "-", stdin=binary).decode()
    text = re.sub(r"(\(elem \S+( \(;\d+;\))?) \(table \S+\)", r"\1", text)
    text = re.sub(r"\(param \$\S+ ", "(param ", text)
    return text.replace(") (param ", " ")


@needs_suite
@needs_wasm_tools
@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.stem)
def test_same_bytes_as_wasm_tools(path: Path, tmp_path: Path) -> None:
    different = []
    theirs_all = modules(read_json(json_from_script(path, tmp_path)))
    for (line, expected, ours), (_, _, theirs) in zip(modules(read_script(path)), theirs_all, strict=True):
        if not isinstance(ours, TextModule) or expected == "malformed":
            continue
        assert isinstance(theirs, BinaryModule), "wasm-tools assembles every text that is not quoted"
        if (path.name, line) in INLINE_SIGNATURE_OF_OPEN_TYPE:
            continue
        binary = ours.binary()
        if binary != theirs.content and printed(binary) != printed(theirs.content):
            different.append(f"{path.name}:{line}")
    assert not different, "different from wasm-tools: " + ", ".join(different)


SNIPPETS = [
    "(module)",
    "(module $m (func $f (param $x i32) (local $y f64) (block $b (loop $l (br_if $l (local.get $x))))))",
    '(memory $m (export "memory") (data "abc")) (data $d "x") (func (data.drop $d))',
    "(table $t 1 10 (ref null func) (ref.null func)) (func (drop (table.grow $t (ref.null func) (i32.const 1))))",
    "(type $f (func (param i32) (result i32))) (func (param (ref $f)) (result i32)"
    " (return_call_ref $f (i32.const 1) (local.get 0)))",
    "(global $g (mut i64) (i64.add (i64.const -0x8000_0000_0000_0000) (i64.const 0xffff_ffff_ffff_ffff)))",
    "(func (drop (f32.const nan:0x1)) (drop (f64.const -0x1.8p-1074)) (drop (f32.const 1e-45)))",
    "(memory 1) (memory $b i64 1 2) (func (drop (i64.load16_s $b offset=0x1_0000_0000 align=1 (i64.const 0))))",
]


@pytest.mark.parametrize("source", SNIPPETS)
def test_same_bytes_as_wasmtime(source: str, wasmtime: ModuleType) -> None:
    assert assemble(source) == bytes(wasmtime.wat2wasm(source))
