"""`fd_...` on files of the host's and in memory."""

import pytest

from .guest import ALL, APPEND, CREAT, DIRECTORY, Guest

SET, CUR, END = range(3)
READ, SEEK, TELL, WRITE = 1 << 1, 1 << 2, 1 << 5, 1 << 6


@pytest.fixture
def file(disk: Guest) -> int:
    """A file of ten bytes, open for everything, at its beginning."""
    disk.create("file", b"0123456789")
    return disk.open("file", 0, ALL)


def test_seek_and_tell(disk: Guest, file: int) -> None:
    assert disk.seek(file, 0, CUR) == 0
    assert disk.seek(file, -3, END) == 7
    assert disk.read(file, 2) == b"78"
    disk.call("fd_tell", file, 0)
    assert disk.get("Q") == (9,)
    assert disk.seek(file, 1000, CUR) == 1009
    assert disk.read(file, 10) == b""
    assert disk.refusal("fd_seek", file, -2000, CUR, 0) == "INVAL"
    assert disk.refusal("fd_seek", file, 0, 3, 0) == "INVAL"
    assert disk.seek(file, 12, SET) == 12
    disk.write(file, b"x")
    assert disk.contents("file") == b"0123456789\0\0x"


def test_reading_and_writing_at_an_offset(disk: Guest, file: int) -> None:
    disk.call("fd_pread", file, *disk.vectors(2, 3), 4, 0)
    assert (disk.get("I"), disk.memory.read(0x4000, 5)) == ((5,), b"45678")
    disk.call("fd_pread", file, *disk.vectors(20), 8, 0)
    assert disk.get("I") == (2,)
    disk.memory.write(0x4000, b"ab")
    disk.call("fd_pwrite", file, *disk.vectors(1, 1), 10, 0)
    assert disk.seek(file, 0, CUR) == 0
    assert disk.contents("file") == b"0123456789ab"
    assert disk.refusal("fd_pread", file, *disk.vectors(2), -1, 0) == "INVAL"
    assert disk.refusal("fd_pwrite", file, *disk.vectors(2), -1, 0) == "INVAL"
    assert disk.refusal("fd_pread", 0, *disk.vectors(2), 0, 0) == "SPIPE"


def test_appending(disk: Guest, file: int) -> None:
    appending = disk.open("file", 0, ALL, flags=APPEND)
    disk.write(appending, b"a")
    disk.seek(appending, 0, SET)
    disk.write(appending, b"b")
    assert disk.contents("file") == b"0123456789ab"
    disk.call("fd_fdstat_get", appending, 0)
    assert disk.get("BxH") == (4, APPEND)
    disk.call("fd_fdstat_set_flags", appending, 0)
    disk.seek(appending, 0, SET)
    disk.write(appending, b"c")
    assert disk.contents("file") == b"c123456789ab"
    disk.call("fd_fdstat_set_flags", appending, APPEND)
    disk.write(appending, b"d")
    assert disk.contents("file") == b"c123456789abd"
    assert disk.refusal("fd_fdstat_set_flags", appending, 32) == "INVAL"


def test_sizes(disk: Guest, file: int) -> None:
    disk.call("fd_filestat_set_size", file, 4)
    assert disk.contents("file") == b"0123"
    disk.call("fd_filestat_set_size", file, 6)
    assert disk.contents("file") == b"0123\0\0"
    disk.call("fd_allocate", file, 0, 3)
    assert disk.status("file")[4] == 6
    disk.call("fd_allocate", file, 6, 4)
    assert disk.status("file")[4] == 10
    assert disk.refusal("fd_allocate", file, 0, 0) == "INVAL"
    assert disk.refusal("fd_filestat_set_size", disk.open("file"), 0) == "INVAL"
    for advice in range(6):
        disk.call("fd_advise", file, 0, 100, advice)
    assert disk.refusal("fd_advise", file, 0, 100, 6) == "INVAL"
    disk.call("fd_sync", file)
    disk.call("fd_datasync", file)


def test_times(disk: Guest, file: int) -> None:
    disk.call("fd_filestat_set_times", file, 100, 200, 1 | 4)
    disk.call("fd_filestat_get", file, 0)
    assert disk.get("QQB7xQQQQ")[5:] == (100, 200)
    assert disk.refusal("fd_filestat_set_times", file, 100, 200, 4 | 8) == "INVAL"


def test_directories_are_no_files(disk: Guest) -> None:
    for name, *arguments in (
        ("fd_read", *disk.vectors(4), 0),
        ("fd_write", *disk.vectors(4), 0),
        ("fd_pread", *disk.vectors(4), 0, 0),
        ("fd_pwrite", *disk.vectors(4), 0, 0),
        ("fd_seek", 0, SET, 0),
        ("fd_tell", 0),
        ("fd_allocate", 0, 1),
        ("fd_filestat_set_size", 0),
    ):
        assert disk.refusal(name, 3, *arguments) == "ISDIR"
    disk.call("fd_fdstat_get", 3, 0)
    kind, rights = disk.get("B7xQ")
    assert kind == 3
    assert not rights & (READ | SEEK | WRITE)


def test_preopened_directories(disk: Guest) -> None:
    disk.call("fd_prestat_get", 3, 0)
    assert disk.get("BxxxI") == (0, 1)
    disk.call("fd_prestat_dir_name", 3, 0x100, 5)
    assert disk.memory.read(0x100, 2) == b"/\0"
    assert disk.refusal("fd_prestat_dir_name", 3, 0x100, 0) == "NAMETOOLONG"
    assert disk.refusal("fd_prestat_get", 4, 0) == "BADF"
    opened = disk.open(".", DIRECTORY)
    assert disk.refusal("fd_prestat_get", opened, 0) == "BADF"
    disk.call("fd_close", 3)
    assert disk.refusal("fd_prestat_get", 3, 0) == "BADF"
    assert disk.names(opened) == [".", ".."]


def test_renumber(disk: Guest, file: int) -> None:
    other = disk.open("other", CREAT, ALL)
    disk.write(file, b"abc")
    disk.call("fd_renumber", file, other)
    assert disk.refusal("fd_close", file) == "BADF"
    assert disk.read(other, 3) == b"345"
    # So a program redirects its output.
    disk.call("fd_renumber", other, 1)
    disk.write(1, b"out")
    assert disk.contents("file") == b"abc345out9"


def test_rights_that_are_given_up(disk: Guest, file: int) -> None:
    base = READ | WRITE | SEEK | TELL
    opened = disk.open("file", 0, base)
    disk.call("fd_fdstat_get", opened, 0)
    assert disk.get("BxHxxxxQ") == (4, 0, base)
    disk.call("fd_fdstat_set_rights", opened, SEEK, 0)
    disk.call("fd_fdstat_get", opened, 0)
    assert disk.get("BxHxxxxQ") == (4, 0, SEEK)
    assert disk.refusal("fd_read", opened, *disk.vectors(1), 0) == "NOTCAPABLE"
    assert disk.refusal("fd_write", opened, *disk.vectors(1), 0) == "NOTCAPABLE"
    assert disk.refusal("fd_tell", opened, 0) == "NOTCAPABLE"
    assert disk.seek(opened, 1, SET) == 1
    assert disk.refusal("fd_fdstat_set_rights", opened, SEEK | READ, 0) == "NOTCAPABLE"
    # What is given up for a directory is given up for all that is opened in it.
    folder = disk.open(".", DIRECTORY)
    disk.call("fd_fdstat_get", folder, 0)
    _, mine, theirs = disk.get("B7xQQ")
    disk.call("fd_fdstat_set_rights", folder, mine, theirs & ~READ)
    inside = disk.open("file", fd=folder)
    assert disk.refusal("fd_read", inside, *disk.vectors(1), 0) == "NOTCAPABLE"
    disk.call("fd_fdstat_set_rights", folder, 0, 0)
    assert disk.open_refusal("file", fd=folder) == "NOTCAPABLE"


def test_closed_descriptors(disk: Guest) -> None:
    for name, *arguments in (
        ("fd_read", 0x100, 0, 0),
        ("fd_close",),
        ("fd_sync",),
        ("fd_fdstat_get", 0),
        ("fd_filestat_get", 0),
        ("fd_readdir", 0, 0, 0, 0),
        ("sock_shutdown", 1),
        ("sock_accept", 0, 0),
    ):
        assert disk.refusal(name, 50, *arguments) == "BADF"
    assert disk.refusal("sock_shutdown", 3, 1) == "NOTSOCK"
