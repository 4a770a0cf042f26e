"""Waiting without burning time, deadlines and Ctrl-C while a guest waits, and quotas."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb

from .guest import ALL, CREAT, Guest, Refused, guest

MILLISECOND = 1_000_000
CLOCK, READ, WRITE = range(3)


def subscribe(found: Guest, *wanted: tuple[int, int, int, int]) -> list[tuple[int, ...]]:
    """Poll for (what, clock or descriptor, timeout, flags); the events as (index, error, what, bytes)."""
    for index, (what, number, timeout, flags) in enumerate(wanted):
        found.put(0x1000 + 48 * index, "QB7xI4xQQH6x", index, what, number, timeout, 0, flags)
    found.call("poll_oneoff", 0x1000, 0x2000, len(wanted), 0)
    return [found.get("QHB5xQ", 0x2000 + 32 * index) for index in range(found.get("I")[0])]


def test_sleeping_takes_time_but_no_work() -> None:
    with guest() as found:
        worked, began = time.process_time(), time.monotonic()
        assert subscribe(found, (CLOCK, 1, 80 * MILLISECOND, 0)) == [(0, 0, CLOCK, 0)]
        assert time.monotonic() - began >= 0.08
        assert time.process_time() - worked < 0.04
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        assert subscribe(found, (CLOCK, 1, now + 20 * MILLISECOND, 1)) == [(0, 0, CLOCK, 0)]
        assert time.clock_gettime_ns(time.CLOCK_MONOTONIC) >= now + 20 * MILLISECOND
        assert subscribe(found, (CLOCK, 1, 5, 1), (CLOCK, 0, 3600 * 10**9, 0)) == [(0, 0, CLOCK, 0)]


def test_nobody_waits_for_a_clock_of_the_guests_own() -> None:
    with guest(clock=1000) as found:
        began = time.monotonic()
        assert subscribe(found, (CLOCK, 0, 3600 * 10**9, 0)) == [(0, 0, CLOCK, 0)]
        assert time.monotonic() - began < 1
        found.call("clock_time_get", 0, 0, 0)
        assert found.get("Q")[0] >= 4600 * 10**9


def test_polling_descriptors(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe, guest(stdin=pipe, dirs={"/": tmp_path}) as found:
        began = time.monotonic()
        assert subscribe(found, (READ, 0, 0, 0), (CLOCK, 1, 30 * MILLISECOND, 0)) == [(1, 0, CLOCK, 0)]
        assert time.monotonic() - began >= 0.03
        os.write(writing, b"abc")
        assert subscribe(found, (READ, 0, 0, 0), (CLOCK, 1, 10**12, 0)) == [(0, 0, READ, 3)]
        file = found.open("file", CREAT, ALL)
        both = subscribe(found, (READ, file, 0, 0), (WRITE, file, 0, 0), (WRITE, 1, 0, 0), (READ, 99, 0, 0))
        assert both == [(0, 0, READ, 0), (1, 0, WRITE, 0), (2, 0, WRITE, 0), (3, 8, READ, 0)]
        assert subscribe(found, (CLOCK, 9, 0, 0)) == [(0, 28, CLOCK, 0)]
        assert found.refusal("poll_oneoff", 0x1000, 0x2000, 0, 0) == "INVAL"
        found.put(0x1000, "QB", 0, 3)
        assert found.refusal("poll_oneoff", 0x1000, 0x2000, 1, 0) == "INVAL"
        os.close(writing)
        assert found.read(0, 10) == b"abc"
        assert subscribe(found, (READ, 0, 0, 0)) == [(0, 0, READ, 0)]


def blocked_guest(seconds: float | None, stdin: Any) -> Guest:
    return guest({"seconds": seconds} if seconds else None, stdin=stdin)


@pytest.mark.parametrize("how", ["sleep", "poll", "read"])
def test_a_deadline_ends_waiting(how: str) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe, open(writing, "wb"), blocked_guest(0.1, pipe) as found:
        began = time.monotonic()
        with pytest.raises(gb.Exhausted, match="out of time") as caught:
            wait(found, how)
        assert caught.value.resource == "time"
        assert 0.09 < time.monotonic() - began < 2
        # The instance is as good as before.
        found.call("random_get", 0, 16)


def test_a_deadline_ends_writing_to_a_pipe_that_nobody_reads() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "wb") as pipe, guest({"seconds": 0.1}, stdout=pipe) as found:

        def write_on() -> None:
            while True:
                assert found.write(1, bytes(0x4000)) == 4096

        with pytest.raises(gb.Exhausted, match="out of time"):
            write_on()


def test_a_deadline_does_not_shorten_what_is_written_to_files(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out, guest({"seconds": 10}, stdout=out) as found:
        assert found.write(1, bytes(0x4000)) == 0x4000


def test_exit_from_a_resumable_call() -> None:
    module = gb.Module.from_wat(
        """(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32))) (memory (export "memory") 1)
        (func (export "_start") (local i32) (loop $l (br_if $l (i32.lt_u
          (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000)))) (call $exit (i32.const 9))))"""
    )
    with module.instantiate(wasi=gb.Wasi()) as instance:
        call = instance.exports._start.start()
        assert not call.resume(fuel=100)
        with pytest.raises(gb.Exit, match="status 9"):
            call.resume()
        assert call.done


@pytest.mark.parametrize("how", ["sleep", "poll", "read"])
def test_an_interrupt_ends_waiting(how: str) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe, open(writing, "wb"), blocked_guest(None, pipe) as found:
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait(found, how)
        timer.join()


def wait(found: Guest, how: str) -> None:
    """Wait for what does not happen."""
    if how == "sleep":
        subscribe(found, (CLOCK, 1, 3600 * 10**9, 0))
    elif how == "poll":
        subscribe(found, (READ, 0, 0, 0))
    else:
        found.read(0, 10)


def test_open_files(tmp_path: Path) -> None:
    disks: tuple[dict[str, Any], ...] = ({"dirs": {"/": tmp_path}}, {"files": {}})
    for given in disks:
        with guest({"open_files": 8}, **given) as found:
            opened = [found.open("file", CREAT, ALL) for _ in range(4)]
            assert opened == [4, 5, 6, 7]
            assert found.open_refusal("file") == "MFILE"
            assert found.open_refusal("new", CREAT, ALL) == "MFILE"
            assert sorted(found.names()) == [".", "..", "file"]
            found.call("fd_close", 5)
            assert found.open("file") == 5


def test_bytes_written(tmp_path: Path) -> None:
    disks: tuple[dict[str, Any], ...] = ({"dirs": {"/": tmp_path}}, {"files": {}})
    for given in disks:
        wasi = gb.Wasi(**given)
        with Guest(wasi, gb.Limits(written_bytes=10)) as found:
            file = found.open("file", CREAT, ALL)
            assert found.write(file, b"1234", b"56") == 6
            assert found.write(1, b"78") == 2
            assert found.write(file, b"9", b"abcdef") == 2
            with pytest.raises(Refused, match="DQUOT"):
                found.write(file, b"x")
            with pytest.raises(Refused, match="DQUOT"):
                found.write(1, b"x")
            assert found.write(file, b"") == 0
            assert found.contents("file") == b"1234569a"
    with guest({"written_bytes": 10}, dirs={"/": tmp_path}) as found:
        file = found.open("new", CREAT, ALL)
        assert found.refusal("fd_allocate", file, 0, 11) == "DQUOT"
        assert found.refusal("fd_filestat_set_size", file, 11) == "DQUOT"
        found.call("fd_filestat_set_size", file, 10)


def test_folders_in_memory_lie_only_so_deep_in_each_other() -> None:
    wasi = gb.Wasi(files={})
    with Guest(wasi, gb.Limits(open_files=400)) as found:
        folder, depth = 3, 0
        while found.refusal("path_create_directory", folder, "d") == "done":
            folder, depth = found.open("d", 2, fd=folder), depth + 1
        assert depth == 255
        assert found.refusal("path_create_directory", folder, "d") == "NAMETOOLONG"
        found.create("file", b"deep", fd=folder)
        found.call("path_create_directory", 3, "e")
        found.call("path_create_directory", 3, "e/f")
        assert found.refusal("path_rename", 3, "e", folder, "e") == "NAMETOOLONG"
        assert found.refusal("path_rename", 3, "d", 3, "e/d") == "NAMETOOLONG"
        found.call("path_rename", 3, "d", 3, "renamed")
    assert list(wasi.files.values()) == [b"deep"]


def test_memory_of_files() -> None:
    with guest({"file_memory": 5000}, files={}) as found:
        file = found.open("file", CREAT, ALL)
        assert found.write(file, bytes(4000)) == 4000
        with pytest.raises(Refused, match="NOSPC"):
            found.write(file, bytes(1000))
        assert found.refusal("fd_filestat_set_size", file, 1 << 40) == "NOSPC"
        assert found.refusal("fd_pwrite", file, *found.vectors(1), 1 << 50, 0) == "NOSPC"
        assert found.refusal("fd_allocate", file, 0, 1 << 40) == "NOSPC"
        made = 0
        while found.refusal("path_create_directory", 3, f"folder{made}") == "done":
            made += 1
        assert made < 10
        assert found.refusal("path_symlink", "x" * 1000, 3, "link") == "NOSPC"
        with pytest.raises(Refused, match="NOSPC"):
            found.write(1, bytes(1000))
        # What is given up can be used again, when nobody has it open any more.
        found.call("path_unlink_file", 3, "file")
        with pytest.raises(Refused, match="NOSPC"):
            found.create("other", bytes(3000))
        found.call("fd_close", file)
        found.create("other", bytes(3000))
        found.call("path_rename", 3, "other", 3, "renamed")
        for _ in range(20):
            found.create("renamed", bytes(3000))
