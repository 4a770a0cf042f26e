"""Arguments, environment, streams, clocks, chance, the end; what `gb.Wasi` and `gb.run` take and tell."""

import datetime
import gc
import io
import os
import socket
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb

from .guest import ALL, CREAT, Guest, guest

COMMAND = """(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1) (func (export "_start") {}))"""


def test_arguments_and_environment() -> None:
    with guest(args=["tool", "-v", "ä"], env={"A": "1", "B": "x=y"}) as found:
        for sizes, get, expected in (
            ("args_sizes_get", "args_get", [b"tool", b"-v", "ä".encode()]),
            ("environ_sizes_get", "environ_get", [b"A=1", b"B=x=y"]),
        ):
            found.call(sizes, 0, 4)
            count, size = found.get("II")
            found.call(get, 0x100, 0x200)
            text = found.memory.read(0x200, size)
            assert text == b"".join(each + b"\0" for each in expected)
            places = found.get(f"{count}I", 0x100)
            assert [text[each - 0x200 :].split(b"\0")[0] for each in places] == expected


def test_what_wasi_is_made_of_is_checked() -> None:
    for error, given in (
        (TypeError, {"args": "tool"}),
        (TypeError, {"args": [1]}),
        (ValueError, {"args": ["a\0b"]}),
        (ValueError, {"env": {"A=": "1"}}),
        (ValueError, {"dirs": {"/": ("/tmp", "rx")}}),
        (ValueError, {"dirs": {"/": "/tmp"}, "files": {}}),
        (ValueError, {"files": {"../x": b""}}),
        (ValueError, {"files": {"x": b"", "x/y": b""}}),
        (TypeError, {"stdin": 5}),
        (TypeError, {"stdout": b"bytes"}),
        (TypeError, {"random": "x"}),
        (ValueError, {"clock": -1}),
    ):
        with pytest.raises(error):
            gb.Wasi(**given)
    with pytest.raises(FileNotFoundError):
        guest(dirs={"/": "/does/not/exist"})
    for limits in ({"open_files": 2}, {"written_bytes": -1}, {"file_memory": "big"}):
        with pytest.raises(ValueError, match=next(iter(limits))):
            gb.Limits(**limits)


@pytest.mark.parametrize("make", [bytes, bytes.decode, io.BytesIO, lambda data: io.StringIO(data.decode())])
def test_standard_input(make: Any) -> None:
    with guest(stdin=make(b"one\ntwo")) as found:
        assert found.read(0, 2, 2) == b"one\n"
        assert found.read(0, 100) == b"two"
        assert found.read(0, 100) == b""
        assert found.refusal("fd_write", 0, *found.vectors(1), 0) == "BADF"
        assert found.refusal("fd_seek", 0, 0, 0, 0) == "SPIPE"


def test_streams_that_are_callables_and_files(tmp_path: Path) -> None:
    pieces = iter([b"abc", b"de", b""])
    written: list[bytes] = []
    with guest(stdin=lambda n: next(pieces), stdout=written.append) as found:
        assert [found.read(0, 2) for _ in range(4)] == [b"ab", b"c", b"de", b""]
        found.write(1, b"x", b"y")
        assert written == [b"xy"]
    text, data = io.StringIO(), io.BytesIO()
    with guest(stdout=text, stderr=data) as found:
        found.write(1, b"\xc3")
        found.write(1, b"\xa4")
        found.write(2, b"\xff")
    assert (text.getvalue(), data.getvalue()) == ("ä", b"\xff")
    with (tmp_path / "out").open("w+") as file:
        file.write("first ")
        with guest(stdin=file, stdout=file) as found:
            found.write(1, b"second")
            found.seek(0, 0, 0)
            assert found.read(0, 100) == b"first second"


def test_what_a_callable_raises_comes_out() -> None:
    def pull(count: int) -> bytes:
        raise LookupError("nothing more")

    with guest(stdin=pull) as found, pytest.raises(LookupError, match="nothing more"):
        found.read(0, 1)


def test_outputs_are_kept() -> None:
    wasi = gb.Wasi()
    with Guest(wasi) as found:
        found.write(1, b"a", b"b")
        found.write(2, b"c")
        assert found.refusal("fd_read", 1, *found.vectors(1), 0) == "BADF"
    assert (wasi.stdout, wasi.stderr) == (b"ab", b"c")


def test_files_in_memory_are_a_mapping() -> None:
    wasi = gb.Wasi(files={"in/a.txt": "text", "/b.bin": b"\0\1", "empty/": b""})
    with Guest(wasi) as found:
        assert found.contents("in/a.txt") == b"text"
        assert sorted(found.names()) == [".", "..", "b.bin", "empty", "in"]
        found.create("empty/new", b"made")
        found.call("path_unlink_file", 3, "b.bin")
    assert dict(wasi.files) == {"in/a.txt": b"text", "empty/new": b"made"}
    assert "b.bin" not in wasi.files
    with pytest.raises(KeyError):
        wasi.files["in"]


def test_clocks() -> None:
    with guest() as found:
        for clock in range(4):
            found.call("clock_time_get", clock, 0, 0)
            assert found.get("Q")[0] > 0
            found.call("clock_res_get", clock, 0)
            assert found.get("Q")[0] > 0
        assert found.refusal("clock_time_get", 4, 0, 0) == found.refusal("clock_res_get", -1, 0) == "INVAL"


def test_a_run_can_be_repeated() -> None:
    def run() -> tuple[Any, ...]:
        start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        with guest(clock=start, random=7, files={}) as found:
            found.create("file")
            found.call("clock_time_get", 0, 0, 0)
            found.call("random_get", 0x100, 100)
            random = found.memory.read(0x100, 100)
            return *found.get("Q"), random, found.status("file"), found.status(".")

    first = run()
    assert first == run()
    assert first[0] // 1_000_000_000 == 1577836800


def test_random_bytes() -> None:
    with guest() as found:
        found.call("random_get", 0x4000, 0x8000)
        data = found.memory.read(0x4000, 0x8000)
        assert len(set(data)) == 256
        found.call("random_get", 0x20000, 0)
    with guest(random=lambda n: b"\7" * n) as found:
        found.call("random_get", 0x100, 3)
        assert found.memory.read(0x100, 4) == b"\7\7\7\0"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", 0),
        ("(call $exit (i32.const 0))", 0),
        ("(call $exit (i32.const 3)) unreachable", 3),
        ("(call $exit (i32.const -1))", 2**32 - 1),
    ],
)
def test_exit_codes(body: str, code: int) -> None:
    result = gb.run(gb.Module.from_wat(COMMAND.format(body)))
    assert result == gb.Result(b"", b"", code, result.files)


def test_exit_is_seen_by_who_calls_start_directly() -> None:
    module = gb.Module.from_wat(COMMAND.format("(call $exit (i32.const 3))"))
    with module.instantiate(wasi=gb.Wasi()) as instance, pytest.raises(gb.Exit, match="status 3") as caught:
        instance.exports._start()
    assert caught.value.code == 3
    started = COMMAND.replace('(func (export "_start")', "(start $s) (func $s")
    assert gb.run(gb.Module.from_wat(started.format("(call $exit (i32.const 4))"))).exit_code == 4


def test_signals() -> None:
    with guest() as found:
        for number in (0, 16, 17, 27):
            found.call("proc_raise", number)
        assert found.refusal("proc_raise", 18) == "NOTSUP"
        assert found.refusal("proc_raise", 31) == "INVAL"
        with pytest.raises(gb.Exit) as caught:
            found.call("proc_raise", 6)
        assert caught.value.code == 134
        found.call("sched_yield")


def test_libraries_are_initialized() -> None:
    library = gb.Module.from_wat(
        """(module (global $ready (mut i32) (i32.const 0)) (memory (export "memory") 1)
        (func (export "_initialize") (global.set $ready (i32.const 1)))
        (func (export "ready") (result i32) (global.get $ready)))"""
    )
    wasi = gb.Wasi()
    with library.instantiate(wasi=wasi) as instance:
        assert instance.exports.ready() == 1
        with pytest.raises(gb.GreenbeatError, match="no _start"):
            wasi.start(instance)


def test_imports() -> None:
    wrong = '(module (import "wasi_snapshot_preview1" "fd_close" (func (param i64) (result i32))))'
    with pytest.raises(gb.LinkError, match=r"function of WASI from \(i32\) to \(i32\)"):
        gb.Module.from_wat(wrong).instantiate(wasi=gb.Wasi())
    with pytest.raises(gb.LinkError, match="nothing of that name"):
        gb.Module.from_wat('(module (import "wasi_snapshot_preview1" "fd_fork" (func)))').instantiate(wasi=gb.Wasi())
    # What is given takes the place of WASI's own.
    codes: list[int] = []
    module = gb.Module.from_wat(COMMAND.format("(call $exit (i32.const 3))"))
    result = gb.run(module, imports={"wasi_snapshot_preview1": {"proc_exit": codes.append}})
    assert (codes, result.exit_code) == ([3], 0)


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = count()
    with guest(dirs={"/": tmp_path}) as found:
        for number in range(20):
            found.open(f"file{number}", CREAT, ALL)
        assert count() > before + 20
    assert count() == before
    found = guest(dirs={"/": tmp_path})
    found.open("file1")
    gone = weakref.ref(found.instance)
    del found
    gc.collect()
    assert gone() is None
    assert count() == before
    with pytest.raises(FileNotFoundError):
        guest(dirs={"/a": tmp_path, "/b": tmp_path / "none"})
    gc.collect()
    assert count() == before


def test_sockets() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with guest(sockets=[listener]) as found, socket.create_connection(listener.getsockname()) as client:
            found.call("sock_accept", 3, 0, 0)
            connection = found.get("I")[0]
            client.sendall(b"hello")
            found.call("sock_recv", connection, *found.vectors(3), 1, 0, 4)
            assert (found.get("IH"), found.memory.read(0x4000, 3)) == ((3, 0), b"hel")
            found.call("sock_recv", connection, *found.vectors(2, 100), 0, 0, 4)
            assert found.get("I") == (5,)
            found.memory.write(0x4000, b"answer")
            found.call("sock_send", connection, *found.vectors(6), 0, 0)
            assert client.recv(100) == b"answer"
            found.call("fd_fdstat_set_flags", connection, 4)
            assert found.refusal("fd_read", connection, *found.vectors(6), 0) == "AGAIN"
            found.call("sock_shutdown", connection, 2)
            assert client.recv(100) == b""
            assert found.refusal("sock_shutdown", connection, 4) == "INVAL"
            found.call("fd_close", connection)
        assert listener.fileno() >= 0


def test_inherited_streams() -> None:
    code = (
        "import greenbeat as gb; from tests.wasi.guest import guest\n"
        "with guest(stdin=gb.INHERIT, stdout=gb.INHERIT, stderr=gb.INHERIT) as found:\n"
        "    found.write(1, b'got ' + found.read(0, 100)); found.write(2, b'error')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"data", capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"got data", b"error")
