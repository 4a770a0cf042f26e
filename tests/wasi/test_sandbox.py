"""Ways out of a directory that other runtimes once left open, and some more: each is refused, with the right error.

| what                                                              | where it was possible          |
|-------------------------------------------------------------------|--------------------------------|
| a link that leads out, opened with CREAT and for writing          | wasmer, CVE-2024-38358         |
| links that a guest makes and follows; `..` in them                | wazero, Node.js, walrus        |
| reading and writing outside of what was given                     | wasmer, CVE-2023-51661         |
| truncating a file of a read-only directory                        | wasmtime, GHSA-2r75-cxrj-cmph  |
| a hard link or a rename from a read-only to a writable directory  | wasmtime, GHSA-4ch3-9j33-3pmj  |
| `fd_renumber` on what is not open                                 | wasmtime, CVE-2025-53901       |
| names of devices as files (of Windows; here: device files)        | wasmtime, cap-std, CVE-2024-51745 |
| a directory that is replaced by a link while a path is walked     | any that check first           |
"""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import greenbeat as gb
from greenbeat.wasi.folders import HostFolder

from .guest import ALL, CREAT, DIRECTORY, EXCL, TRUNC, Guest, Refused

SECRET = b"what no guest may see"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(SECRET)
    return folder


@pytest.fixture
def inside(tmp_path: Path, outside: Path) -> Path:
    folder = tmp_path / "inside"
    (folder / "sub").mkdir(parents=True)
    (folder / "file").write_bytes(b"data")
    return folder


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    folder = tmp_path / "precious"
    (folder / "sub").mkdir(parents=True)
    (folder / "file").write_bytes(b"precious")
    return folder


@pytest.fixture
def guest(inside: Path, read_only: Path, outside: Path) -> Iterator[Guest]:
    """The directory `inside` is descriptor 3, `read_only` is 4."""
    with Guest(gb.Wasi(dirs={"/in": inside, "/ro": (read_only, "ro")})) as found:
        yield found
    assert (outside / "secret").read_bytes() == SECRET
    assert sorted(os.listdir(outside)) == ["secret"]
    assert (read_only / "file").read_bytes() == b"precious"
    assert sorted(os.listdir(read_only)) == ["file", "sub"]


OUT = [
    "..",
    "../outside/secret",
    "./../outside/secret",
    "sub/../../outside/secret",
    "sub/./..//../outside/secret",
    "sub/../sub/../../outside/secret",
    "/etc/passwd",
    "//etc/passwd",
    "/",
]


@pytest.mark.parametrize("path", OUT)
def test_paths_that_lead_out(guest: Guest, path: str) -> None:
    assert guest.open_refusal(path) == "NOTCAPABLE"
    assert guest.open_refusal(path, CREAT, ALL) == "NOTCAPABLE"
    assert guest.open_refusal(path, DIRECTORY) == "NOTCAPABLE"
    for name in ("path_create_directory", "path_remove_directory", "path_unlink_file"):
        assert guest.refusal(name, 3, path) == "NOTCAPABLE"
    assert guest.refusal("path_filestat_get", 3, 1, path, 0) == "NOTCAPABLE"
    assert guest.refusal("path_filestat_set_times", 3, 1, path, 0, 0, 5) == "NOTCAPABLE"
    assert guest.refusal("path_readlink", 3, path, 0x100, 64, 0) == "NOTCAPABLE"
    assert guest.refusal("path_rename", 3, "file", 3, path) == "NOTCAPABLE"
    assert guest.refusal("path_rename", 3, path, 3, "new") == "NOTCAPABLE"
    assert guest.refusal("path_link", 3, 0, path, 3, "new") == "NOTCAPABLE"
    assert guest.refusal("path_link", 3, 0, "file", 3, path) == "NOTCAPABLE"
    assert guest.refusal("path_symlink", "file", 3, path) == "NOTCAPABLE"


LINKS = ["../outside/secret", "sub/../../outside/secret", "../outside", "..", "other", "sub/../other"]


@pytest.mark.parametrize("target", LINKS)
@pytest.mark.parametrize("made_by", ["host", "guest"])
def test_links_that_lead_out(guest: Guest, inside: Path, target: str, made_by: str) -> None:
    os.symlink("../outside/secret", inside / "other")
    if made_by == "host":
        os.symlink(target, inside / "link")
    else:
        guest.call("path_symlink", target, 3, "link")
    for path in ("link", "link/secret", "sub/../link", "link/.", "link/../link"):
        assert guest.open_refusal(path) in ("NOTCAPABLE", "NOTDIR")
        assert guest.open_refusal(path, CREAT, ALL) in ("NOTCAPABLE", "NOTDIR")
        assert guest.open_refusal(path, TRUNC, ALL) in ("NOTCAPABLE", "NOTDIR")
        assert guest.refusal("path_filestat_get", 3, 1, path, 0) in ("NOTCAPABLE", "NOTDIR")
    assert guest.open_refusal("link") == "NOTCAPABLE"
    assert guest.open_refusal("link", CREAT, ALL) == "NOTCAPABLE"
    assert guest.open_refusal("link", CREAT | EXCL, ALL) == "EXIST"
    assert guest.open_refusal("link", follow=False) == "LOOP"
    assert guest.refusal("path_filestat_set_times", 3, 1, "link", 0, 0, 5) == "NOTCAPABLE"
    assert guest.refusal("path_link", 3, 1, "link", 3, "new") == "NOTCAPABLE"
    assert guest.refusal("path_create_directory", 3, "link/new") == "NOTCAPABLE" or target == "../outside/secret"
    # What is done to the link itself stays inside.
    assert guest.status("link", follow=False)[2] == 7
    guest.call("path_rename", 3, "link", 3, "renamed")
    guest.call("path_link", 3, 0, "renamed", 3, "again")
    guest.call("path_unlink_file", 3, "renamed")
    assert os.readlink(inside / "again") == target


def test_absolute_links(guest: Guest, inside: Path, outside: Path) -> None:
    os.symlink(outside / "secret", inside / "link")
    os.symlink(inside, inside / "home")
    os.symlink("/proc/self/root", inside / "root")
    assert guest.open_refusal("link") == "NOTCAPABLE"
    assert guest.open_refusal("link", CREAT, ALL) == "NOTCAPABLE"
    assert guest.open_refusal("home/file") == "NOTCAPABLE"
    assert guest.open_refusal("root/etc/passwd") == "NOTCAPABLE"
    assert guest.refusal("path_symlink", str(outside), 3, "new") == "NOTCAPABLE"
    assert not os.path.lexists(inside / "new")


def test_links_inside_work_and_loops_end(guest: Guest, inside: Path) -> None:
    os.symlink("sub/../file", inside / "good")
    os.symlink("good", inside / "better")
    assert guest.contents("better") == b"data"
    os.symlink("b", inside / "a")
    os.symlink("a", inside / "b")
    os.symlink("self/self", inside / "self")
    assert guest.open_refusal("a") == "LOOP"
    assert guest.open_refusal("a/x") == "LOOP"
    assert guest.open_refusal("self") == "LOOP"
    os.symlink("file/", inside / "slash")
    assert guest.open_refusal("slash") == "NOTDIR"
    os.symlink("made", inside / "dangling")
    assert guest.open_refusal("dangling") == "NOENT"
    guest.create("dangling", b"now it is there")
    assert (inside / "made").read_bytes() == b"now it is there"


def test_a_read_only_directory_stays_as_it_is(guest: Guest) -> None:
    assert guest.contents("file", fd=4) == b"precious"
    assert guest.open_refusal("file", 0, ALL, fd=4) == "ROFS"
    assert guest.open_refusal("file", TRUNC, 0, fd=4) == "ROFS"
    assert guest.open_refusal("file", CREAT | TRUNC, 0, fd=4) == "ROFS"
    assert guest.open_refusal("new", CREAT, 0, fd=4) == "ROFS"
    assert guest.open_refusal("file", CREAT | EXCL, 0, fd=4) == "EXIST"
    sub = guest.open("sub", DIRECTORY, fd=4)
    assert guest.open_refusal("new", CREAT, ALL, fd=sub) == "ROFS"
    assert guest.refusal("path_create_directory", 4, "new") == "ROFS"
    assert guest.refusal("path_create_directory", 4, "sub") == "EXIST"
    assert guest.refusal("path_remove_directory", 4, "sub") == "ROFS"
    assert guest.refusal("path_unlink_file", 4, "file") == "ROFS"
    assert guest.refusal("path_symlink", "file", 4, "new") == "ROFS"
    assert guest.refusal("path_filestat_set_times", 4, 0, "file", 0, 0, 5) == "ROFS"
    opened = guest.open("file", fd=4)
    assert guest.refusal("fd_write", opened, 0x100, 0, 0) == "BADF"
    assert guest.refusal("fd_filestat_set_times", opened, 0, 0, 5) == "ROFS"
    assert guest.refusal("fd_filestat_set_size", opened, 0) == "INVAL"
    assert guest.refusal("fd_allocate", opened, 0, 100) == "BADF"
    assert guest.refusal("fd_filestat_set_times", 4, 0, 0, 5) == "ROFS"


def test_no_name_leads_from_a_writable_directory_into_a_read_only_one(guest: Guest) -> None:
    assert guest.refusal("path_link", 4, 0, "file", 3, "mine") == "ROFS"
    assert guest.refusal("path_link", 3, 0, "file", 4, "yours") == "ROFS"
    assert guest.refusal("path_rename", 4, "file", 3, "mine") == "ROFS"
    assert guest.refusal("path_rename", 4, "sub", 3, "mine") == "ROFS"
    assert guest.refusal("path_rename", 3, "file", 4, "file") == "ROFS"
    # Nor does giving up the descriptor of one for that of the other.
    guest.call("fd_renumber", 4, 3)
    assert guest.open_refusal("file", 0, ALL) == "ROFS"


def test_renumbering_what_is_not_open(guest: Guest) -> None:
    for source, target in ((99, 3), (3, 99), (-1, 3), (3, -1), (2**31 - 1, 99)):
        assert guest.refusal("fd_renumber", source, target) == "BADF"
    assert guest.contents("file") == b"data"
    guest.call("fd_renumber", 3, 3)
    assert guest.contents("file") == b"data"


def test_only_files_and_folders_are_opened(guest: Guest, inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(inside / "fifo")
    monkeypatch.chdir(inside)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    # Opening a FIFO would wait for its other end, or wake it.
    for rights in (ALL, ALL & ~(1 << 6)):
        assert guest.open_refusal("fifo", 0, rights) == "ACCES"
        assert guest.open_refusal("socket", 0, rights) == "ACCES"
    assert guest.open_refusal("fifo", TRUNC, 0) == "ACCES"
    with Guest(gb.Wasi(dirs={"/proc": "/proc"})) as processes:
        for name in ("self/root/etc/passwd", "self/cwd", "self/exe", "self/fd/0/../../x"):
            assert processes.open_refusal(name) in ("NOTCAPABLE", "NOENT")
    with Guest(gb.Wasi(dirs={"/dev": "/dev"})) as devices:
        for name in ("null", "zero", "tty", "full"):
            assert devices.open_refusal(name) == "ACCES"
            assert devices.open_refusal(name, TRUNC, ALL) == "ACCES"


def test_names_that_are_none(guest: Guest, inside: Path) -> None:
    for name, error in ((b"fi\0le", "INVAL"), (b"file\0", "INVAL"), (b"\xff", "ILSEQ"), (b"\xed\xa0\x80", "ILSEQ")):
        assert guest.open_refusal(name) == error
        assert guest.open_refusal(name, CREAT, ALL) == error
        assert guest.refusal("path_symlink", name, 3, "new") == error
        assert guest.refusal("path_symlink", "file", 3, name) == error
        assert guest.refusal("path_rename", 3, "file", 3, name) == error
    assert guest.open_refusal("") == "NOENT"
    assert guest.open_refusal("n" * 256) == "NAMETOOLONG"
    assert guest.open_refusal("a/" * 3000) == "NAMETOOLONG"
    assert guest.open_refusal("CON") == guest.open_refusal("..\\outside") == "NOENT"
    # Names on the host that no guest could be told are not in a listing, and links to them have no target.
    (inside / os.fsdecode(b"\xff")).write_bytes(b"")
    os.symlink(b"\xff", os.fsencode(inside / "link"))
    assert sorted(guest.names()) == [".", "..", "file", "link", "sub"]
    assert guest.refusal("path_readlink", 3, "link", 0x100, 64, 0) == "ILSEQ"


def test_the_folder_above_is_not_shown(guest: Guest, inside: Path) -> None:
    guest.call("fd_readdir", 3, 0x4000, 4096, 0, 0)
    data = guest.memory.read(0x4000, guest.get("I")[0])
    assert data[24:25] == b"." and data[25 + 24 : 25 + 26] == b".."
    assert data[8:16] == data[25 + 8 : 25 + 16] == inside.stat().st_ino.to_bytes(8, "little")


def test_a_folder_that_is_moved_out_while_it_is_open(guest: Guest, inside: Path, outside: Path) -> None:
    (inside / "sub/deep").mkdir()
    deep = guest.open("sub/deep", DIRECTORY)
    os.rename(inside / "sub/deep", outside / "deep")
    try:
        # It is still the guest's, but nothing that is above it now.
        guest.create("mine", b"x", fd=deep)
        assert guest.open_refusal("../secret", fd=deep) == "NOTCAPABLE"
    finally:
        os.rename(outside / "deep", inside / "sub/deep")
    assert (inside / "sub/deep/mine").read_bytes() == b"x"


def test_a_folder_that_is_moved_out_during_a_walk(
    guest: Guest, inside: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inside / "sub/deep").mkdir()
    passage = HostFolder.passage

    def passage_and_move(folder: HostFolder, name: bytes) -> HostFolder:
        found = passage(folder, name)
        if name == b"deep":
            os.rename(inside / "sub/deep", outside / "deep")
        return found

    monkeypatch.setattr(HostFolder, "passage", passage_and_move)
    try:
        assert guest.open_refusal("sub/deep/../secret") == "NOENT"
    finally:
        os.rename(outside / "deep", inside / "sub/deep")


def test_a_folder_that_becomes_a_link_during_a_walk(
    guest: Guest, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passage = HostFolder.passage

    def swap_and_pass(folder: HostFolder, name: bytes) -> HostFolder:
        if name == b"sub" and not os.path.islink(inside / "sub"):
            os.rename(inside / "sub", inside / "old")
            os.symlink("../outside", inside / "sub")
        return passage(folder, name)

    monkeypatch.setattr(HostFolder, "passage", swap_and_pass)
    assert guest.open_refusal("sub/secret") == "NOTCAPABLE"


def test_a_file_that_becomes_a_link_before_it_is_opened(
    guest: Guest, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = HostFolder._kind

    def look_and_swap(folder: HostFolder, name: bytes, creates: bool) -> None:
        kind(folder, name, creates)
        os.unlink(inside / "file")
        os.symlink("../outside/secret", inside / "file")

    monkeypatch.setattr(HostFolder, "_kind", look_and_swap)
    assert guest.open_refusal("file") == "LOOP"
    os.unlink(inside / "file")
    (inside / "file").write_bytes(b"data")
    assert guest.open_refusal("file", CREAT, ALL) == "LOOP"


def test_a_file_that_becomes_a_fifo_before_it_is_opened(
    guest: Guest, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = HostFolder._kind

    def look_and_swap(folder: HostFolder, name: bytes, creates: bool) -> None:
        kind(folder, name, creates)
        os.unlink(inside / "file")
        os.mkfifo(inside / "file")

    monkeypatch.setattr(HostFolder, "_kind", look_and_swap)
    assert guest.open_refusal("file") == "ACCES"


def test_a_race_of_a_link_and_a_folder(guest: Guest, inside: Path) -> None:
    """Another process swaps a folder and a link that leads out, as fast as it can, while the guest opens through it."""
    (inside / "sub/secret").write_bytes(b"harmless")
    os.symlink("../outside", inside / "evil")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            os.rename(inside / "sub", inside / "spare")
            os.rename(inside / "evil", inside / "sub")
            os.rename(inside / "sub", inside / "evil")
            os.rename(inside / "spare", inside / "sub")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(1500):
            try:
                seen.add(guest.contents("sub/secret"))
            except Refused as refused:
                seen.add(refused.name.encode())
    finally:
        over.set()
        thread.join()
    assert seen <= {b"harmless", b"NOENT", b"NOTCAPABLE", b"NOTDIR", b"LOOP"}


def test_nothing_is_there_that_was_not_given() -> None:
    with Guest(gb.Wasi()) as bare:
        assert bare.refusal("fd_prestat_get", 3, 0) == "BADF"
        assert bare.open_refusal("file") == "BADF"
        assert bare.open_refusal("file", fd=0) == "NOTDIR"
        bare.call("environ_sizes_get", 0, 4)
        assert bare.get("II") == (0, 0)
        assert bare.read(0, 16) == b""


BAD = [-1, 0x20000, 0x1FFFF, 0x7FFFFFFF]


@pytest.mark.parametrize("address", BAD)
def test_bad_addresses(guest: Guest, address: int) -> None:
    for name, *arguments in (
        ("args_sizes_get", address, 0),
        ("environ_sizes_get", 0, address),
        ("clock_time_get", 0, 0, address),
        ("clock_res_get", 1, address),
        ("fd_fdstat_get", 3, address),
        ("fd_filestat_get", 3, address),
        ("fd_prestat_get", 3, address),
        ("fd_prestat_dir_name", 3, address, 16),
        ("fd_readdir", 3, address, 100, 0, 0),
        ("fd_readdir", 3, 0x4000, 100, 0, address),
        ("fd_read", 0, address, 1, 0),
        ("fd_write", 1, address, 1, 0),
        ("fd_write", 1, 0x100, 0, address),
        ("fd_write", 1, 0x100, -1, 0),
        ("path_open", 3, 0, address, 9, 0, 0, 0, 0, 0),
        ("path_filestat_get", 3, 0, address, 9, 0),
        ("path_unlink_file", 3, address, 9),
        ("poll_oneoff", address, 0, 1, 0),
        ("poll_oneoff", 0, address, 1, 0),
        ("random_get", address, 64),
        ("random_get", 0, -1),
    ):
        assert guest.refusal(name, *arguments) == "FAULT", (name, arguments)
    guest.put(0x100, "II", address & 0xFFFFFFFF, 16)
    assert guest.refusal("fd_read", 0, 0x100, 1, 0) == "FAULT"
    assert guest.refusal("fd_write", 1, 0x100, 1, 0) == "FAULT"
