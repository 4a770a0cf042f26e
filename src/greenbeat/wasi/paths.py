"""The functions that work on paths: `path_...`. Where a path leads is found by `walk`, never by the host.

https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
"""

from typing import TYPE_CHECKING

from greenbeat.wasi.constants import (
    SYMLINK_FOLLOW,
    Errno,
    Failure,
    FdFlags,
    FileType,
    OpenFlags,
    Rights,
    errno_of,
)
from greenbeat.wasi.descriptors import ALL_RIGHTS, new_times, put_status
from greenbeat.wasi.directories import Directory
from greenbeat.wasi.functions import function
from greenbeat.wasi.guestmemory import U32
from greenbeat.wasi.handles import Handle, Status
from greenbeat.wasi.walk import Place, ends_in_slash, walk

if TYPE_CHECKING:
    from greenbeat.wasi.process import Process


def _place(process: "Process", fd: int, right: int, path: str, follow: bool = False) -> Place:
    """Where a path leads from a directory; a link behind a slash is always followed."""
    return walk(process.directory(fd, right).folder, path, follow)


def _follows(flags: int, path: str) -> bool:
    if flags & ~SYMLINK_FOLLOW:
        raise Failure(Errno.INVAL)
    return bool(flags & SYMLINK_FOLLOW) or ends_in_slash(path.encode())


def _ends_in_dot(path: str) -> bool:
    """Whether a path's last component is `.` or `..`, which stand for no name that could be removed."""
    return path.rstrip("/").rpartition("/")[2] in (".", "..")


def _status(place: Place) -> Status:
    """The status of what is at a place, which must be a folder if the path says so."""
    found = place.folder.status(place.name)
    if place.wants_folder and found.kind != FileType.DIRECTORY:
        raise Failure(Errno.NOTDIR)
    return found


def _new_name(place: Place, folder: bool = False) -> bytes:
    """The name for something new; with a slash behind it only a folder can be made.

    Raises:
        Failure: EXIST, NOTDIR: something is there; NOENT.
    """
    if place.name == b".":
        raise Failure(Errno.EXIST)
    if place.wants_folder and not folder:
        _status(place)
        raise Failure(Errno.EXIST)
    if not place.folder.writable:
        _read_only(place, OpenFlags.CREAT | OpenFlags.EXCL)
    return place.name


@function("iiiiiIIii")
def path_open(
    process: "Process",
    fd: int,
    lookup: int,
    address: int,
    length: int,
    oflags: int,
    base: int,
    inheriting: int,
    flags: int,
    result: int,
) -> None:
    """Open a file or a directory."""
    path = process.memory.text(address, length)
    room = process.memory.slice(result, 4)
    right = Rights.PATH_OPEN
    if oflags & OpenFlags.CREAT:
        right |= Rights.PATH_CREATE_FILE
    if oflags & OpenFlags.TRUNC:
        right |= Rights.PATH_FILESTAT_SET_SIZE
    parent = process.directory(fd, right)
    if oflags & ~OpenFlags.ALL or flags & ~FdFlags.ALL:
        raise Failure(Errno.INVAL)
    if oflags & OpenFlags.CREAT and oflags & OpenFlags.DIRECTORY:
        raise Failure(Errno.INVAL)
    if process.full():
        raise Failure(Errno.MFILE)
    base, inheriting = base & ALL_RIGHTS & ~parent.denies, inheriting & ALL_RIGHTS & ~parent.denies
    exclusive = oflags & OpenFlags.CREAT and oflags & OpenFlags.EXCL
    with walk(parent.folder, path, _follows(lookup, path) and not exclusive) as place:
        opened = _opened(place, base, oflags, flags)
    opened.flags = flags
    opened.rights = opened.possible & base
    opened.inheriting &= inheriting
    opened.denied = opened.denies = parent.denies
    U32.pack_into(room, 0, process.add(opened))


def _opened(place: Place, base: int, oflags: int, flags: int) -> Handle:
    """Open what is at a place."""
    writes = bool(base & Rights.FD_WRITE)
    changes = writes or oflags & OpenFlags.TRUNC
    if place.name == b"." or place.wants_folder or oflags & OpenFlags.DIRECTORY:
        if oflags & OpenFlags.CREAT and oflags & OpenFlags.EXCL and place.name == b".":
            raise Failure(Errno.EXIST)
        if place.name != b".":
            kind = place.folder.status(place.name).kind
            if kind == FileType.SYMBOLIC_LINK and not place.wants_folder:
                raise Failure(Errno.LOOP)
            if kind != FileType.DIRECTORY:
                raise Failure(Errno.NOTDIR)
        if changes or oflags & OpenFlags.CREAT:
            raise Failure(Errno.ISDIR)
        return Directory(place.folder.folder(place.name))
    if not place.folder.writable and (changes or oflags & OpenFlags.CREAT):
        _read_only(place, oflags)
    try:
        return place.folder.open(
            place.name, reads=bool(base & Rights.FD_READ), writes=writes, oflags=oflags, flags=flags
        )
    except Failure as failure:
        if failure.errno != Errno.ISDIR or changes or oflags & OpenFlags.CREAT:
            raise
    return Directory(place.folder.folder(place.name))


def _read_only(place: Place, oflags: int) -> None:
    """Refuse to write or create where nothing may change; what is not changed by it may be opened.

    Raises:
        Failure: ROFS, or what an open of this kind meets first.
    """
    try:
        kind = place.folder.status(place.name).kind
    except OSError as error:
        # A name that is not there can only be created.
        raise Failure(Errno.ROFS if errno_of(error) == Errno.NOENT else errno_of(error)) from None
    if oflags & OpenFlags.CREAT and oflags & OpenFlags.EXCL:
        raise Failure(Errno.EXIST)
    raise Failure(Errno.ISDIR if kind == FileType.DIRECTORY else Errno.ROFS)


@function("iiiii")
def path_filestat_get(process: "Process", fd: int, lookup: int, address: int, length: int, result: int) -> None:
    """The size, the times and the rest of a file."""
    put_status(process, result, status_at(process, fd, lookup, address, length))


def status_at(process: "Process", fd: int, lookup: int, address: int, length: int) -> Status:
    """The status of a file."""
    path = process.memory.text(address, length)
    with _place(process, fd, Rights.PATH_FILESTAT_GET, path, _follows(lookup, path)) as place:
        return _status(place)


@function("iiiiIIi")
def path_filestat_set_times(
    process: "Process", fd: int, lookup: int, address: int, length: int, accessed: int, modified: int, flags: int
) -> None:
    """Change when a file was read and written last."""
    path = process.memory.text(address, length)
    with _place(process, fd, Rights.PATH_FILESTAT_SET_TIMES, path, _follows(lookup, path)).changing() as place:
        times = new_times(process, _status(place), accessed, modified, flags)
        place.folder.set_times(place.name, *times)


@function("iii")
def path_create_directory(process: "Process", fd: int, address: int, length: int) -> None:
    """Make a directory."""
    path = process.memory.text(address, length)
    with _place(process, fd, Rights.PATH_CREATE_DIRECTORY, path) as place:
        place.folder.make_folder(_new_name(place, folder=True))


@function("iii")
def path_remove_directory(process: "Process", fd: int, address: int, length: int) -> None:
    """Remove a directory that is empty."""
    path = process.memory.text(address, length)
    with _place(process, fd, Rights.PATH_REMOVE_DIRECTORY, path).changing() as place:
        if place.name == b"." or _ends_in_dot(path):
            raise Failure(Errno.INVAL)
        place.folder.remove_folder(place.name)


@function("iii")
def path_unlink_file(process: "Process", fd: int, address: int, length: int) -> None:
    """Remove a file or a link."""
    path = process.memory.text(address, length)
    with _place(process, fd, Rights.PATH_UNLINK_FILE, path).changing() as place:
        if place.name == b"." or (place.wants_folder and _status(place)):
            raise Failure(Errno.ISDIR)
        place.folder.remove_file(place.name)


@function("iiiiii")
def path_readlink(process: "Process", fd: int, address: int, length: int, buffer: int, room: int, result: int) -> None:
    """Where a link leads, as far as there is room for it."""
    path = process.memory.text(address, length)
    target, used = process.memory.slice(buffer, room), process.memory.slice(result, 4)
    with _place(process, fd, Rights.PATH_READLINK, path, ends_in_slash(path.encode())) as place:
        if _status(place).kind != FileType.SYMBOLIC_LINK:
            raise Failure(Errno.INVAL)
        found = place.folder.link_target(place.name)
    if found is None:
        raise Failure(Errno.INVAL)
    try:
        found.decode()
    except UnicodeDecodeError:
        raise Failure(Errno.ILSEQ) from None
    piece = found[: len(target)]
    target[: len(piece)] = piece
    U32.pack_into(used, 0, len(piece))


@function("iiiii")
def path_symlink(process: "Process", address: int, length: int, fd: int, new: int, new_length: int) -> None:
    """Make a symbolic link. It may lead anywhere but to an absolute path, which no guest could follow."""
    target, path = process.memory.text(address, length), process.memory.text(new, new_length)
    if target.startswith("/"):
        raise Failure(Errno.NOTCAPABLE)
    if not target:
        raise Failure(Errno.NOENT)
    if "\0" in target:
        raise Failure(Errno.INVAL)
    with _place(process, fd, Rights.PATH_SYMLINK, path) as place:
        place.folder.make_link(_new_name(place), target.encode())


@function("iiiiiii")
def path_link(
    process: "Process", fd: int, lookup: int, address: int, length: int, new_fd: int, new: int, new_length: int
) -> None:
    """Give a file another name. Both folders must be writable: the new name must not be good for more than the old."""
    path, new_path = process.memory.text(address, length), process.memory.text(new, new_length)
    with (
        _place(process, fd, Rights.PATH_LINK_SOURCE, path, _follows(lookup, path)) as old,
        _place(process, new_fd, Rights.PATH_LINK_TARGET, new_path) as place,
    ):
        if _status(old).kind == FileType.DIRECTORY:
            raise Failure(Errno.PERM)
        name = _new_name(place)
        old.changing().folder.hard_link(old.name, place.folder, name)


@function("iiiiii")
def path_rename(process: "Process", fd: int, address: int, length: int, new_fd: int, new: int, new_length: int) -> None:
    """Give a file or directory another name, or move it to another folder."""
    path, new_path = process.memory.text(address, length), process.memory.text(new, new_length)
    with (
        _place(process, fd, Rights.PATH_RENAME_SOURCE, path).changing() as old,
        _place(process, new_fd, Rights.PATH_RENAME_TARGET, new_path).changing() as place,
    ):
        if b"." in (old.name, place.name) or _ends_in_dot(path) or _ends_in_dot(new_path):
            raise Failure(Errno.BUSY)
        if _status(old).kind != FileType.DIRECTORY and place.wants_folder:
            raise Failure(Errno.NOTDIR)
        old.folder.rename(old.name, place.folder, place.name)
