"""How the process ends: signals, pipes, full disks, terminals."""

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .command import PYTHON, environment, process


def test_from_stdin_and_the_package_as_a_command() -> None:
    done = subprocess.run(
        [*PYTHON, "run", "-"],
        input=b'(module (func (export "f") (result i32) i32.const 42))',
        capture_output=True,
        env=environment(),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"42\n", b"")


def test_control_c_ends_a_guest_quietly(program: Path, tmp_path: Path) -> None:
    # The file is a pipe: when it has been read, the process is in the command and not in Python's start.
    pipe = tmp_path / "pipe.wat"
    os.mkfifo(pipe)
    running = process("run", pipe, "--invoke", "spin", "--timeout", "30")
    pipe.write_bytes(program.read_bytes())
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (130, b"", b"")


def test_nobody_reads_the_output(program: Path) -> None:
    running = process("inspect", program, "--json")
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait(20) == 141


def test_a_pipe_closed_in_the_middle(tmp_path: Path) -> None:
    many = tmp_path / "many.wat"
    many.write_text("(module " + "".join(f'(func (export "function number {i}"))' for i in range(3000)) + ")")
    running = process("inspect", many)
    assert running.stdout is not None and running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait(20) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_told(program: Path) -> None:
    with open("/dev/full", "wb") as full:
        running = process("run", program, "--invoke", "div", "4", "2", stdout=full)
        _, err = running.communicate(timeout=20)
    assert running.returncode == 1
    assert err == b"greenbeat: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_on_a_terminal_unless_unwanted(program: Path, more: dict[str, str], coloured: bool) -> None:
    ours, theirs = pty.openpty()
    try:
        running = process("inspect", program, stdout=theirs, env=environment(**{"TERM": "xterm", **more}))
        os.close(theirs)
        output = b""
        # The end of a terminal is an error on Linux.
        try:
            while piece := os.read(ours, 4096):
                output += piece
        except OSError:
            pass
        assert running.wait(20) == 0
    finally:
        os.close(ours)
    assert b"sections" in output
    assert (b"\x1b[" in output) == coloured


def test_help_and_version(program: Path) -> None:
    for words, expected in ((["--help"], b"inspect"), (["run", "--help"], b"--fuel"), (["--version"], b"greenbeat 0.")):
        running = process(*words)
        out, err = running.communicate(timeout=20)
        assert (running.returncode, err) == (0, b"")
        assert expected in out
