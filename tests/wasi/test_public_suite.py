"""The programs of the public WASI test suite for preview 1, if `GREENBEAT_WASI_TESTSUITE` names a copy of it.

    git clone -b prod/testsuite-all https://github.com/WebAssembly/wasi-testsuite
    GREENBEAT_WASI_TESTSUITE=wasi-testsuite pytest tests/wasi/test_public_suite.py

That branch has them compiled. Each comes with a description in JSON of what it is given and how it must end.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

import greenbeat as gb

SUITE = os.environ.get("GREENBEAT_WASI_TESTSUITE", "")
FOLDERS = [f"tests/{language}/testsuite/wasm32-wasip1" for language in ("c", "rust", "assemblyscript")]
PROGRAMS = [path for folder in FOLDERS for path in sorted(Path(SUITE, folder).glob("*.wasm"))] if SUITE else []


@pytest.mark.skipif(not PROGRAMS, reason="GREENBEAT_WASI_TESTSUITE names no copy of the suite")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: f"{path.parts[-4]}-{path.stem}")
def test_program(program: Path, tmp_path: Path) -> None:
    described = program.with_suffix(".json")
    wanted = json.loads(described.read_text()) if described.exists() else {}
    assert set(wanted) <= {"dirs", "args", "env", "exit_code", "stdout"}
    dirs = {}
    for name in wanted.get("dirs", []):
        dirs[name] = tmp_path / name
        shutil.copytree(program.parent / name, dirs[name])
    result = gb.run(program, wanted.get("args", []), env=wanted.get("env"), dirs=dirs)
    assert result.exit_code == wanted.get("exit_code", 0), result.stderr.decode()
    assert result.stdout.decode() == wanted.get("stdout", result.stdout.decode())
