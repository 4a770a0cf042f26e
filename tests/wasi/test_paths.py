"""`path_...` on the host and in memory: what they do, and what they refuse as POSIX would."""

import pytest

from .guest import ALL, CREAT, DIRECTORY, EXCL, TRUNC, Guest

FOLDER, FILE, LINK = 3, 4, 7
WRITE = 1 << 6


@pytest.fixture
def tree(disk: Guest) -> Guest:
    """`file`, `dir/nested/file`, and links to both."""
    disk.call("path_create_directory", 3, "dir")
    disk.call("path_create_directory", 3, "dir/nested/")
    disk.create("file", b"0123456789")
    disk.create("dir/nested/file", b"nested")
    disk.call("path_symlink", "file", 3, "to_file")
    disk.call("path_symlink", "dir/nested", 3, "to_dir")
    return disk


def test_kinds_and_sizes(tree: Guest) -> None:
    assert tree.status("file")[2:5] == (FILE, 1, 10)
    assert tree.status("dir")[2] == tree.status("dir/")[2] == tree.status(".")[2] == FOLDER
    assert tree.status("to_file")[2:5] == (FILE, 1, 10)
    assert tree.status("to_file", follow=False)[2:5] == (LINK, 1, 4)
    assert tree.status("to_dir")[2] == FOLDER
    assert tree.status("to_dir", follow=False)[2] == LINK
    # A slash behind a link means what it leads to.
    assert tree.status("to_dir/", follow=False)[2] == FOLDER
    assert tree.status("file")[:2] == tree.status("to_file")[:2] == tree.status("dir/../file")[:2]


@pytest.mark.parametrize(
    "path", ["dir/.//nested/../../dir/nested/../nested///./file", "to_dir/file", "./dir/nested/file"]
)
def test_winding_paths(tree: Guest, path: str) -> None:
    assert tree.contents(path) == b"nested"


def test_open_refuses(tree: Guest) -> None:
    assert tree.open_refusal("none") == "NOENT"
    assert tree.open_refusal("none/file") == "NOENT"
    assert tree.open_refusal("file/") == tree.open_refusal("file/x") == tree.open_refusal("file/..") == "NOTDIR"
    assert tree.open_refusal("file", DIRECTORY) == "NOTDIR"
    assert tree.open_refusal("to_file", DIRECTORY) == "NOTDIR"
    assert tree.open_refusal("to_file", follow=False) == "LOOP"
    assert tree.open_refusal("to_dir", DIRECTORY, follow=False) == "LOOP"
    assert tree.open_refusal("to_dir", DIRECTORY) == "done"
    assert tree.open_refusal("file", CREAT | EXCL) == "EXIST"
    assert tree.open_refusal("to_file", CREAT | EXCL) == "EXIST"
    assert tree.open_refusal("dir", 0, ALL) == "ISDIR"
    assert tree.open_refusal("dir", TRUNC) == "ISDIR"
    assert tree.open_refusal("dir", CREAT) == "ISDIR"
    assert tree.open_refusal("new/", CREAT) in ("ISDIR", "NOENT")
    assert tree.open_refusal("new", CREAT | DIRECTORY) == "INVAL"
    assert tree.open_refusal("file", 16) == "INVAL"
    assert tree.open_refusal("file", flags=64) == "INVAL"
    file = tree.open("file")
    assert tree.open_refusal("file", fd=file) == "NOTDIR"
    assert tree.open_refusal("file", fd=77) == "BADF"


def test_open_modes(tree: Guest) -> None:
    reading = tree.open("file")
    assert tree.refusal("fd_write", reading, *tree.vectors(1), 0) == "BADF"
    writing = tree.open("file", 0, WRITE)
    assert tree.refusal("fd_read", writing, *tree.vectors(1), 0) == "BADF"
    assert tree.write(writing, b"ab", b"c") == 3
    assert tree.read(reading, 2, 3, 100) == b"abc3456789"
    # Truncating needs no right to write.
    tree.call("fd_close", tree.open("file", TRUNC, 0))
    assert tree.status("file")[4] == 0


def test_lowest_descriptors(tree: Guest) -> None:
    first, second, third = (tree.open("file") for _ in range(3))
    assert (first, second, third) == (4, 5, 6)
    tree.call("fd_close", second)
    assert tree.refusal("fd_close", second) == "BADF"
    assert tree.open("dir") == second
    assert tree.open("file") == 7


def test_create_and_remove(tree: Guest) -> None:
    assert tree.refusal("path_create_directory", 3, "dir") == "EXIST"
    assert tree.refusal("path_create_directory", 3, "to_file") == "EXIST"
    assert tree.refusal("path_create_directory", 3, ".") == "EXIST"
    assert tree.refusal("path_create_directory", 3, "none/x") == "NOENT"
    assert tree.refusal("path_remove_directory", 3, "dir") == "NOTEMPTY"
    assert tree.refusal("path_remove_directory", 3, "file") == "NOTDIR"
    assert tree.refusal("path_remove_directory", 3, "file/") == "NOTDIR"
    assert tree.refusal("path_remove_directory", 3, "to_dir") == "NOTDIR"
    assert tree.refusal("path_remove_directory", 3, "none") == "NOENT"
    assert tree.refusal("path_remove_directory", 3, "dir/.") == "INVAL"
    assert tree.refusal("path_unlink_file", 3, "dir") == tree.refusal("path_unlink_file", 3, "dir/") == "ISDIR"
    assert tree.refusal("path_unlink_file", 3, "file/") == "NOTDIR"
    assert tree.refusal("path_unlink_file", 3, "none") == "NOENT"
    tree.call("path_unlink_file", 3, "dir/nested/file")
    tree.call("path_remove_directory", 3, "dir/nested/")
    assert tree.open_refusal("to_dir") == "NOENT"
    tree.call("path_unlink_file", 3, "to_dir")
    assert sorted(tree.names()) == [".", "..", "dir", "file", "to_file"]


def test_a_file_without_a_name_can_still_be_used(tree: Guest) -> None:
    opened = tree.open("file", 0, ALL)
    tree.call("path_unlink_file", 3, "file")
    assert tree.open_refusal("file") == "NOENT"
    tree.write(opened, b"abc")
    tree.seek(opened, 0, 0)
    assert tree.read(opened, 20) == b"abc3456789"
    tree.call("fd_filestat_get", opened, 0)
    assert tree.get("QQB7xQQ")[3:] == (0, 10)


def test_symbolic_links(tree: Guest) -> None:
    tree.call("path_readlink", 3, "to_dir", 0x100, 64, 0)
    assert (tree.get("I"), tree.memory.read(0x100, 10)) == ((10,), b"dir/nested")
    tree.call("path_readlink", 3, "to_dir", 0x200, 3, 0)
    assert (tree.get("I"), tree.memory.read(0x200, 4)) == ((3,), b"dir\0")
    assert tree.refusal("path_readlink", 3, "file", 0x100, 64, 0) == "INVAL"
    assert tree.refusal("path_readlink", 3, "dir", 0x100, 64, 0) == "INVAL"
    assert tree.refusal("path_readlink", 3, "none", 0x100, 64, 0) == "NOENT"
    assert tree.refusal("path_symlink", "x", 3, "file") == "EXIST"
    assert tree.refusal("path_symlink", "x", 3, "new/") == "NOENT"
    assert tree.refusal("path_symlink", "x", 3, "dir/") == "EXIST"
    assert tree.refusal("path_symlink", "x", 3, "file/") == "NOTDIR"
    assert tree.refusal("path_symlink", "", 3, "new") == "NOENT"


def test_hard_links(tree: Guest) -> None:
    tree.call("path_link", 3, 0, "file", 3, "dir/again")
    assert tree.status("file")[:5] == tree.status("dir/again")[:5]
    assert tree.status("file")[3] == 2
    opened = tree.open("dir/again", 0, ALL)
    tree.write(opened, b"new")
    assert tree.contents("file") == b"new3456789"
    tree.call("path_unlink_file", 3, "file")
    assert tree.status("dir/again")[3] == 1
    tree.call("path_link", 3, 0, "to_file", 3, "to_file_too")
    assert tree.status("to_file_too", follow=False)[2] == LINK
    assert tree.refusal("path_link", 3, 0, "dir", 3, "new") == "PERM"
    assert tree.refusal("path_link", 3, 0, "none", 3, "new") == "NOENT"
    assert tree.refusal("path_link", 3, 0, "dir/again", 3, "dir") == "EXIST"
    assert tree.refusal("path_link", 3, 0, "dir/again", 3, "dir/again") == "EXIST"
    assert tree.refusal("path_link", 3, 0, "dir/again", 3, "new/") == "NOENT"
    assert tree.refusal("path_link", 3, 2, "dir/again", 3, "new") == "INVAL"
    assert tree.refusal("path_link", 3, 1, "to_file", 3, "new") == "NOENT"


def test_rename(tree: Guest) -> None:
    tree.call("path_rename", 3, "file", 3, "dir/moved")
    assert tree.contents("dir/moved") == b"0123456789"
    tree.create("other", b"other")
    tree.call("path_rename", 3, "other", 3, "dir/moved")
    assert tree.contents("dir/moved") == b"other"
    tree.call("path_rename", 3, "dir/nested/", 3, "flat/")
    assert tree.contents("flat/file") == b"nested"
    tree.call("path_create_directory", 3, "empty")
    tree.call("path_rename", 3, "flat", 3, "empty")
    assert tree.contents("empty/file") == b"nested"
    tree.call("path_rename", 3, "to_file", 3, "renamed")
    assert tree.status("renamed", follow=False)[2] == LINK
    tree.create("file", b"")
    assert tree.refusal("path_rename", 3, "none", 3, "new") == "NOENT"
    assert tree.refusal("path_rename", 3, "file", 3, "none/new") == "NOENT"
    assert tree.refusal("path_rename", 3, "dir", 3, "dir/inside") == "INVAL"
    assert tree.refusal("path_rename", 3, "dir", 3, "file") == "NOTDIR"
    assert tree.refusal("path_rename", 3, "file", 3, "dir") == "ISDIR"
    assert tree.refusal("path_rename", 3, "dir", 3, "empty") == "NOTEMPTY"
    assert tree.refusal("path_rename", 3, "file", 3, "new/") == "NOTDIR"
    assert tree.refusal("path_rename", 3, "file/", 3, "new") == "NOTDIR"
    assert tree.refusal("path_rename", 3, ".", 3, "new") == "BUSY"
    tree.call("path_rename", 3, "file", 3, "file")
    assert sorted(tree.names()) == [".", "..", "dir", "empty", "file", "renamed", "to_dir"]


def test_times(tree: Guest) -> None:
    second = 1_000_000_000
    tree.call("path_filestat_set_times", 3, 0, "file", 5 * second, 7 * second, 1 | 4)
    assert tree.status("file")[5:7] == (5 * second, 7 * second)
    tree.call("path_filestat_set_times", 3, 0, "file", 6 * second, 0, 1)
    assert tree.status("file")[5:7] == (6 * second, 7 * second)
    tree.call("path_filestat_set_times", 3, 0, "file", 0, 0, 8)
    assert tree.status("file")[5] == 6 * second < tree.status("file")[6]
    tree.call("path_filestat_set_times", 3, 0, "to_file", 0, 3 * second, 4)
    assert tree.status("to_file", follow=False)[6] == 3 * second != tree.status("file")[6]
    tree.call("path_filestat_set_times", 3, 1, "to_file", 0, 4 * second, 4)
    assert tree.status("file")[6] == 4 * second
    for flags in (1 | 2, 4 | 8, 16):
        assert tree.refusal("path_filestat_set_times", 3, 0, "file", 0, 0, flags) == "INVAL"
    assert tree.refusal("path_filestat_set_times", 3, 0, "none", 0, 0, 1) == "NOENT"


def test_listing(disk: Guest) -> None:
    assert disk.names() == [".", ".."]
    for number in range(100):
        disk.create(f"file.{number}")
    expected = sorted([".", "..", *(f"file.{number}" for number in range(100))])
    for room in (64, 256, 4096, 16384):
        assert sorted(disk.names(room=room)) == expected
    disk.call("fd_readdir", 3, 0x4000, 24, 0, 0)
    assert disk.get("I") == (24,)
    # A listing goes on as it began.
    disk.call("fd_readdir", 3, 0x4000, 256, 0, 0)
    disk.call("path_unlink_file", 3, "file.0")
    disk.call("fd_readdir", 3, 0x4000, 0x4000, 1, 0)
    assert disk.get("I")[0] == 24 * 101 + sum(len(name) for name in expected) - 1
    assert len(disk.names()) == 101
    assert disk.refusal("fd_readdir", 3, 0x4000, 256, 5000, 0) == "INVAL"
    assert disk.refusal("fd_readdir", disk.open("file.1"), 0x4000, 256, 0, 0) == "NOTDIR"
