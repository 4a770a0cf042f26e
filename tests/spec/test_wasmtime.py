"""The runner, the script parser and the text format, proved on an engine that is known to pass the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.features import our_commands, our_files
from tests.spec.json_script import read_json
from tests.spec.runner import Report, Runner
from tests.spec.script import read_script
from tests.spec.suite import json_from_script, needs_suite, needs_wasm_tools, scripts

pytest.importorskip("wasmtime", reason="wasmtime is not installed")

from tests.spec.wasmtime_adapter import WasmtimeAdapter, make_engine

# wasmtime lets a constant expression read the module's own globals only together with gc.
READ_OWN_GLOBALS = {"data.wast", "elem.wast", "global.wast"}

# Passes host objects as internal references, which wasmtime's Python interface cannot do.
HOST_REFERENCES = {"extern.wast"}


def check(path: Path, report: Report) -> None:
    assert report.passed > 0
    assert not report.failures, "\n".join(f"{path.name}:{line}: {problem}" for line, problem in report.failures)


@needs_suite
@pytest.mark.parametrize("path", our_files(), ids=lambda path: path.stem)
def test_our_files_need_no_later_feature(path: Path) -> None:
    commands, later = our_commands(path)
    engine = make_engine(gc=path.name in READ_OWN_GLOBALS)
    check(path, Runner(WasmtimeAdapter(engine), later).run(commands))


@needs_suite
@pytest.mark.parametrize(
    "path", [path for path in scripts() if path.name not in HOST_REFERENCES], ids=lambda path: path.stem
)
def test_every_core_file_passes_with_all_features(path: Path) -> None:
    engine = make_engine(gc=True, exceptions=True, simd=True, relaxed_simd=True, threads=True)
    report = Runner(WasmtimeAdapter(engine)).run(read_script(path))
    assert not report.skipped
    check(path, report)


@needs_suite
@needs_wasm_tools
@pytest.mark.parametrize("path", our_files()[::8], ids=lambda path: path.stem)
def test_scripts_from_json_run_as_well(path: Path, tmp_path: Path) -> None:
    engine = make_engine(gc=True, exceptions=True)
    check(path, Runner(WasmtimeAdapter(engine)).run(read_json(json_from_script(path, tmp_path))))
