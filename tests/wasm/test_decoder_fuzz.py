"""Broken modules, in child processes: see `fuzz.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("wasmtime", reason="wasmtime is not installed")

ROOT = Path(__file__).parents[2]
needs_smith = pytest.mark.skipif(shutil.which("wasm-tools") is None, reason="wasm-tools is not on the path")


def run(*arguments: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "MALLOC_PERTURB_": "165"}
    command = [sys.executable, "-m", "tests.wasm.fuzz", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


@pytest.mark.parametrize("build", ["fast", "checked"])
def test_prefixes(build: str) -> None:
    assert int(run(build, "prefixes")) > 3


@pytest.mark.parametrize("build", ["fast", "checked"])
def test_flipped_bytes(build: str) -> None:
    assert int(run(build, "flips")) > 0


@pytest.mark.parametrize("build", ["fast", "checked"])
def test_mutations(build: str) -> None:
    """Random modules and broken ones are accepted exactly when wasmtime accepts them."""
    assert int(run(build, "mutations", "1", "3000", "15")) > 30


@needs_smith
@pytest.mark.parametrize("build", ["fast", "checked"])
def test_instances(build: str) -> None:
    """Memories and globals start as they do in wasmtime."""
    assert int(run(build, "instances", "1", "25")) > 5


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits address space")
def test_no_memory() -> None:
    assert run("fast", "starved") == "1"
