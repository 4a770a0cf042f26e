"""Programs in C, built for WASI: they find what POSIX promises, on the host and in memory; as they do on wasmtime."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import greenbeat as gb
from greenbeat.wasi.hostfiles import readable_bytes
from tests.real.commands import on_wasmtime

PROGRAMS = Path(__file__).parent / "programs"

POSIX = """\
mkdir: done
mkdir again: File exists
create: done
create again: File exists
write: 12
seek: 7
read: 5 world
pread: 5 hello
truncate: done
fstat: done
size: 5, regular: 1, links: 1
close: done
close again: Bad file descriptor
symlink: done
readlink: 11
open the link: done
open the link itself: Symbolic link loop
link: done
stat: done
links: 2
rename: done
../ ./ folder/ link@
../ ./ file renamed
rmdir what is not empty: Directory not empty
unlink a folder: Is a directory
unlink: done
open what is gone: No such file or directory
open a file as a folder: Not a directory
open a folder to write: Is a directory
read a folder: Is a directory
open what is above: Capabilities insufficient
append: done
write: 4 3
times: done
size: 7, modified: 2000
slept: long enough
poll: 1
terminal: 0
random: done
chance: 1
"""


@pytest.mark.parametrize("place", ["host", "memory"])
def test_posix(place: str, tmp_path: Path) -> None:
    given = {"dirs": {"/work": tmp_path}} if place == "host" else {"files": {"work/": b""}}
    result = gb.run(PROGRAMS / "posix.wasm", ["/work"], env={"GREETING": "good day"}, **given)
    assert result.stdout.decode().splitlines() == POSIX.splitlines()
    assert (result.stderr, result.exit_code) == (b"good day\n", 7)
    if place == "memory":
        assert dict(result.files) == {"work/folder/file": b"hello", "work/log": b"one two"}
    else:
        assert (tmp_path / "folder/file").read_bytes() == b"hello"
        assert (tmp_path / "log").read_bytes() == b"one two"


def test_posix_on_wasmtime() -> None:
    """wasmtime says the same, but of two things: of a descriptor that is no file, and of a way out."""
    ended = on_wasmtime((PROGRAMS / "posix.wasm").read_bytes(), ["/work"], b"", {}, {}, "/work")
    theirs = ended.stdout.decode().splitlines()
    differing = {mine.split(":")[0] for mine, other in zip(POSIX.splitlines(), theirs, strict=True) if mine != other}
    assert differing <= {"read a folder", "open what is above"}
    assert (ended.status, ended.files) == (7, {"folder/file": b"hello", "log": b"one two"})


def texts() -> list[bytes]:
    chosen = random.Random(5)
    words = [chosen.randbytes(chosen.randrange(2, 9)) for _ in range(50)]
    return [b"", b"a", b"abcd" * 5000, chosen.randbytes(70000), b"".join(chosen.choices(words, k=40000))]


@pytest.mark.parametrize("data", texts(), ids=["nothing", "a byte", "a run", "noise", "words"])
def test_pack_and_unpack(data: bytes) -> None:
    program = gb.Module.from_file(PROGRAMS / "pack.wasm")
    packed = gb.run(program, stdin=data)
    assert (packed.exit_code, packed.stderr) == (0, b"")
    assert gb.run(program, ["-d"], stdin=packed.stdout).stdout == data
    if data.startswith(b"abcd"):
        assert len(packed.stdout) < len(data) / 20
    # Small pieces make no difference.
    rest = bytearray(data)

    def pull(count: int) -> bytes:
        piece = bytes(rest[: min(count, 777)])
        del rest[: len(piece)]
        return piece

    pieces: list[bytes] = []
    gb.run(program, stdin=pull, stdout=pieces.append)
    assert b"".join(pieces) == packed.stdout


def test_a_failure_of_a_program() -> None:
    result = gb.run(PROGRAMS / "pack.wasm", ["-d"], program="unpack", stdin=b"\xff\xff")
    assert (result.exit_code, result.stderr) == (2, b"unpack: this was not packed here\n")
    missing = gb.run(PROGRAMS / "posix.wasm", ["/none"], files={})
    assert (missing.exit_code, missing.stderr) == (1, b"/none: No such file or directory\n")


def test_a_full_disk_is_an_error_of_the_program() -> None:
    limits = gb.Limits(written_bytes=1000)
    result = gb.run(PROGRAMS / "pack.wasm", stdin=random.Random(1).randbytes(5000), limits=limits)
    assert (result.exit_code, len(result.stdout)) == (1, 1000)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_signals_reach_a_program_that_waits_for_its_input(number: int, status: int) -> None:
    module = str(PROGRAMS / "pack.wasm")
    command = [sys.executable, "-m", "greenbeat", "run", module]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdin is not None
    # It has read this when the pipe is empty, and then it waits for more.
    running.stdin.write(b"data")
    running.stdin.flush()
    until = time.monotonic() + 20
    while readable_bytes(running.stdin.fileno()) and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.05)
    running.send_signal(number)
    assert running.wait(timeout=20) == status
    running.stdin.close()


def test_a_pipe_between_two_programs() -> None:
    command = [sys.executable, "-m", "greenbeat", "run", str(PROGRAMS / "pack.wasm")]
    data = b"so it goes on and on " * 3000
    pack = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpack = subprocess.Popen([*command, "--", "-d"], stdin=pack.stdout, stdout=subprocess.PIPE)
    assert pack.stdin is not None and pack.stdout is not None
    pack.stdout.close()
    pack.stdin.write(data)
    pack.stdin.close()
    assert unpack.communicate(timeout=30)[0] == data
    assert (pack.wait(), unpack.wait()) == (0, 0)
