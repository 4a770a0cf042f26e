"""Where the official test suite and wasm-tools are, and the marks for tests that need them.

The suite is not part of the repository. `GREENBEAT_TESTSUITE` names a checkout of
https://github.com/WebAssembly/testsuite; without it a directory beside the repository is tried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
SUITE = Path(os.environ.get("GREENBEAT_TESTSUITE", _ROOT.parent / "shared" / "wasm-testsuite"))

needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason=f"no test suite at {SUITE}: set GREENBEAT_TESTSUITE")

_BESIDE_PYTHON = Path(sys.executable).with_name("wasm-tools")
WASM_TOOLS = str(_BESIDE_PYTHON) if _BESIDE_PYTHON.exists() else shutil.which("wasm-tools")

needs_wasm_tools = pytest.mark.skipif(WASM_TOOLS is None, reason="wasm-tools is not installed")


def scripts(directory: str = ".") -> list[Path]:
    """The scripts in a directory of the suite, by name; none when the suite is absent."""
    return sorted((SUITE / directory).glob("*.wast"))


def run_wasm_tools(*arguments: str | Path, stdin: bytes = b"") -> bytes:
    """The output of wasm-tools, which must succeed."""
    assert WASM_TOOLS is not None, "callers are skipped without it"
    return subprocess.run([WASM_TOOLS, *arguments], input=stdin, capture_output=True, check=True).stdout


def json_from_script(path: Path, directory: Path) -> Path:
    """Let wasm-tools take a script apart into a JSON file and modules beside it."""
    file = directory / "script.json"
    run_wasm_tools("json-from-wast", path, "-o", file, "--wasm-dir", directory)
    return file
