"""`greenbeat wat`: text to binary, through files and pipes."""

import subprocess
from pathlib import Path

from greenbeat.wasm.text import assemble

from .command import PYTHON, Command, environment


def test_files(greenbeat: Command, program: Path, tmp_path: Path) -> None:
    expected = assemble(program.read_bytes())
    assert greenbeat("wat", program, "-o", tmp_path / "out.wasm").status == 0
    assert (tmp_path / "out.wasm").read_bytes() == expected
    assert greenbeat("wat", program).status == 0
    assert program.with_suffix(".wasm").read_bytes() == expected


def test_pipes(program: Path) -> None:
    done = subprocess.run(
        [*PYTHON, "wat", "-", "-o", "-"], input=program.read_bytes(), capture_output=True, env=environment()
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, assemble(program.read_bytes()), b"")


def test_mistakes(greenbeat: Command, program: Path, tmp_path: Path) -> None:
    program.write_text('(module\n  (func (export "f") (local.get $x)))')
    outcome = greenbeat("wat", program, "-o", tmp_path / "out.wasm")
    first, line, caret = outcome.err.splitlines()
    assert (outcome.status, (tmp_path / "out.wasm").exists()) == (1, False)
    assert first.startswith(f"greenbeat: {program}:2:33: unknown local $x")
    assert line[caret.index("^") :].startswith("$x")


def test_a_long_line_is_cut_around_the_mistake(greenbeat: Command, program: Path) -> None:
    program.write_text("(module (func " + "nop " * 1000 + "wrong " + "nop " * 1000 + "))")
    _, line, caret = greenbeat("wat", program).err.splitlines()
    assert line[caret.index("^") :].startswith("wrong ")
    assert len(line) < 120


def test_where_the_binary_goes(greenbeat: Command, tmp_path: Path) -> None:
    assert "say where the binary goes" in greenbeat("wat", "-").err
    assert greenbeat("wat", tmp_path / "a.wasm").status == 2
    (tmp_path / "a.wat").write_text("(module)")
    outcome = greenbeat("wat", tmp_path / "a.wat", "-o", tmp_path / "missing" / "a.wasm")
    assert (outcome.status, "it cannot be written" in outcome.err) == (1, True)
