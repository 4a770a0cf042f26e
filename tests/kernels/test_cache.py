"""What one process compiled, the next one finds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import greenbeat
from greenbeat.engine import engine
from greenbeat.native import cache

PROGRAM = """
import greenbeat as gb
from helpers import helper

SCALE = 3

@gb.kernel
def f(n: int) -> int:
    return helper(n) * SCALE

print(f(2))
import sys
compiler = sys.modules.get("greenbeat.kernels.compiler")
print(compiler.compiled if compiler else 0, "greenbeat.native.emitter" in sys.modules)
"""
HELPER = "import greenbeat as gb\n\n@gb.kernel\ndef helper(n: int) -> int:\n    return n + 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program and an empty cache, but for the engine."""
    found = engine.obtain()
    assert cache.write(tmp_path / "cache", engine.key, found)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helpers.py").write_text(HELPER)
    return tmp_path


def run(folder: Path, *options: str, program: str = "program.py") -> list[str]:
    environment = {**os.environ, "GREENBEAT_CACHE": str(folder / "cache")}
    environment["PYTHONPATH"] = str(Path(greenbeat.__file__).parents[1])
    command = [sys.executable, *options, str(folder / program)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split()


def test_an_imported_program_has_names_of_its_own(folder: Path) -> None:
    """What the object calls the kernel is told by traces and profiles."""
    run(folder)
    importing = "import program\nfrom greenbeat.kernels import linked\nprint([name for _, name in linked.entries()])"
    (folder / "importing.py").write_text(importing)
    found = run(folder, program="importing.py")
    assert found[:2] == ["9", "1"]
    assert found[3:] == ["['program.f']"]


def test_a_second_process_compiles_nothing(folder: Path) -> None:
    assert run(folder)[:2] == ["9", "1"]
    assert run(folder) == ["9", "0", "False"]


def test_whatever_changes_makes_another_key(folder: Path) -> None:
    run(folder)
    (folder / "program.py").write_text(PROGRAM.replace("SCALE = 3", "SCALE = 5"))
    assert run(folder)[:2] == ["15", "1"]
    (folder / "helpers.py").write_text(HELPER.replace("n + 1", "n + 2"))
    assert run(folder)[:2] == ["20", "1"]
    (folder / "program.py").write_text(PROGRAM.replace("SCALE = 3", "SCALE = 5.0").replace("-> int", "-> float"))
    assert run(folder)[:2] == ["20.0", "1"]
    (folder / "program.py").write_text(PROGRAM)
    assert run(folder)[:2] == ["12", "1"]
    assert run(folder)[:2] == ["12", "0"]


@pytest.mark.parametrize("damage", [b"", b"damaged", None])
def test_what_is_damaged_is_compiled_again(folder: Path, damage: bytes | None) -> None:
    run(folder)
    for path in (folder / "cache" / "kernels").iterdir():
        path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
        assert run(folder)[:2] == ["9", "1"]
        assert run(folder)[:2] == ["9", "0"]


def test_a_cache_that_cannot_be_written_is_no_error(folder: Path) -> None:
    (folder / "cache" / "kernels").write_text("in the way")
    assert run(folder)[:2] == run(folder)[:2] == ["9", "1"]


def test_importing_loads_nothing() -> None:
    command = [sys.executable, "-c", "import greenbeat, sys; print('llvmlite' in sys.modules, 'ctypes' in sys.modules)"]
    environment = {**os.environ, "PYTHONPATH": str(Path(greenbeat.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["False", "False"]
