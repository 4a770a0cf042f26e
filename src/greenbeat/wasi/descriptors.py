"""The functions that work on descriptors: `fd_...`.

https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
"""

import struct
from typing import TYPE_CHECKING

from greenbeat.wasi.clocks import known
from greenbeat.wasi.constants import ClockId, Errno, Failure, FdFlags, Rights, TimeFlags
from greenbeat.wasi.functions import function
from greenbeat.wasi.guestmemory import MASK, U32, U64
from greenbeat.wasi.handles import Status

if TYPE_CHECKING:
    from greenbeat.wasi.process import Process

_FDSTAT = struct.Struct("<BxH4xQQ")
_FILESTAT = struct.Struct("<QQB7xQQQQQ")
_PRESTAT = struct.Struct("<B3xI")
ALL_RIGHTS = (1 << 64) - 1


@function("iiii")
def fd_read(process: "Process", fd: int, vectors: int, count: int, result: int) -> None:
    """Read where the file is."""
    handle = process.handle(fd, Rights.FD_READ)
    buffers = process.memory.vectors(vectors, count)
    room = process.memory.slice(result, 4)
    U32.pack_into(room, 0, handle.read(buffers))


@function("iiii")
def fd_write(process: "Process", fd: int, vectors: int, count: int, result: int) -> None:
    """Write where the file is."""
    handle = process.handle(fd, Rights.FD_WRITE)
    buffers = process.memory.vectors(vectors, count)
    room = process.memory.slice(result, 4)
    U32.pack_into(room, 0, handle.write(buffers))


@function("iiiIi")
def fd_pread(process: "Process", fd: int, vectors: int, count: int, offset: int, result: int) -> None:
    """Read at an offset."""
    handle = process.handle(fd, Rights.FD_READ)
    buffers = process.memory.vectors(vectors, count)
    room = process.memory.slice(result, 4)
    U32.pack_into(room, 0, handle.read_at(buffers, offset))


@function("iiiIi")
def fd_pwrite(process: "Process", fd: int, vectors: int, count: int, offset: int, result: int) -> None:
    """Write at an offset."""
    handle = process.handle(fd, Rights.FD_WRITE)
    buffers = process.memory.vectors(vectors, count)
    room = process.memory.slice(result, 4)
    U32.pack_into(room, 0, handle.write_at(buffers, offset))


@function("iIii")
def fd_seek(process: "Process", fd: int, offset: int, whence: int, result: int) -> None:
    """Move to another place in the file."""
    handle = process.handle(fd, Rights.FD_SEEK)
    room = process.memory.slice(result, 8)
    U64.pack_into(room, 0, handle.seek(offset, whence))


@function("ii")
def fd_tell(process: "Process", fd: int, result: int) -> None:
    """The place in the file."""
    handle = process.handle(fd, Rights.FD_TELL)
    room = process.memory.slice(result, 8)
    U64.pack_into(room, 0, handle.seek(0, 1))


@function("i")
def fd_close(process: "Process", fd: int) -> None:
    """Close."""
    process.close_descriptor(fd)


@function("ii")
def fd_renumber(process: "Process", source: int, target: int) -> None:
    """Give a file the descriptor of another, which is closed."""
    process.renumber(source, target)


@function("ii")
def fd_fdstat_get(process: "Process", fd: int, result: int) -> None:
    """What a descriptor is, and what it is good for."""
    handle = process.handle(fd)
    process.memory.pack(
        _FDSTAT,
        result,
        handle.kind,
        handle.flags,
        handle.rights & ~handle.denied,
        handle.inheriting & ~handle.denies,
    )


@function("ii")
def fd_fdstat_set_flags(process: "Process", fd: int, flags: int) -> None:
    """Change how a descriptor reads and writes."""
    handle = process.handle(fd, Rights.FD_FDSTAT_SET_FLAGS)
    if flags & ~FdFlags.ALL:
        raise Failure(Errno.INVAL)
    handle.set_flags(flags)


@function("iII")
def fd_fdstat_set_rights(process: "Process", fd: int, base: int, inheriting: int) -> None:
    """Give up rights: those that are not named."""
    handle = process.handle(fd)
    base, inheriting = base & ALL_RIGHTS, inheriting & ALL_RIGHTS
    if base & ~(handle.rights & ~handle.denied) or inheriting & ~(handle.inheriting & ~handle.denies):
        raise Failure(Errno.NOTCAPABLE)
    handle.denied |= handle.rights & ~base
    handle.denies |= handle.inheriting & ~inheriting


def put_status(process: "Process", address: int, status: Status) -> None:
    """Put a `filestat` of preview 1."""
    process.memory.pack(
        _FILESTAT,
        address,
        status.device,
        status.inode,
        status.kind,
        status.links,
        status.size,
        status.accessed,
        status.modified,
        status.changed,
    )


@function("ii")
def fd_filestat_get(process: "Process", fd: int, result: int) -> None:
    """The size, the times and the rest of a file."""
    put_status(process, result, process.handle(fd, Rights.FD_FILESTAT_GET).status())


@function("iI")
def fd_filestat_set_size(process: "Process", fd: int, size: int) -> None:
    """Cut a file off, or make it longer with zeros."""
    process.handle(fd, Rights.FD_FILESTAT_SET_SIZE).set_size(size)


def new_times(process: "Process", before: Status, accessed: int, modified: int, flags: int) -> tuple[int, int]:
    """The times that a file gets.

    Raises:
        Failure: INVAL, the flags contradict each other.
    """
    if flags & ~TimeFlags.ALL:
        raise Failure(Errno.INVAL)
    times = []
    for given, old, fixed, now in (
        (accessed, before.accessed, TimeFlags.ATIM, TimeFlags.ATIM_NOW),
        (modified, before.modified, TimeFlags.MTIM, TimeFlags.MTIM_NOW),
    ):
        if flags & fixed and flags & now:
            raise Failure(Errno.INVAL)
        if flags & fixed and given < 0:
            raise Failure(Errno.OVERFLOW)
        present = process.clock.read(known(ClockId.REALTIME)) if flags & now else 0
        times.append(given if flags & fixed else present if flags & now else old)
    return times[0], times[1]


@function("iIIi")
def fd_filestat_set_times(process: "Process", fd: int, accessed: int, modified: int, flags: int) -> None:
    """Change when a file was read and written last."""
    handle = process.handle(fd, Rights.FD_FILESTAT_SET_TIMES)
    handle.set_times(*new_times(process, handle.status(), accessed, modified, flags))


@function("iIIi")
def fd_advise(process: "Process", fd: int, offset: int, length: int, advice: int) -> None:
    """Tell the host how a file will be read."""
    process.handle(fd, Rights.FD_ADVISE).advise(offset, length, advice)


@function("iII")
def fd_allocate(process: "Process", fd: int, offset: int, length: int) -> None:
    """Make sure that there is room for a part of a file."""
    process.handle(fd, Rights.FD_ALLOCATE).allocate(offset, length)


@function("i")
def fd_datasync(process: "Process", fd: int) -> None:
    """Wait until a file's contents are on the disk."""
    process.handle(fd, Rights.FD_DATASYNC).sync(True)


@function("i")
def fd_sync(process: "Process", fd: int) -> None:
    """Wait until a file is on the disk."""
    process.handle(fd, Rights.FD_SYNC).sync(False)


@function("ii")
def fd_prestat_get(process: "Process", fd: int, result: int) -> None:
    """How long the name of a directory is that the guest was given."""
    name = process.handle(fd).preopen
    if name is None:
        raise Failure(Errno.BADF)
    process.memory.pack(_PRESTAT, result, 0, len(name))


@function("iii")
def fd_prestat_dir_name(process: "Process", fd: int, buffer: int, length: int) -> None:
    """The name of a directory that the guest was given."""
    name = process.handle(fd).preopen
    if name is None:
        raise Failure(Errno.BADF)
    if len(name) > length & MASK:
        raise Failure(Errno.NAMETOOLONG)
    process.memory.slice(buffer, len(name))[:] = name


@function("iiiIi")
def fd_readdir(process: "Process", fd: int, buffer: int, length: int, cookie: int, result: int) -> None:
    """List a directory."""
    directory = process.directory(fd, Rights.FD_READDIR)
    room, used = process.memory.slice(buffer, length), process.memory.slice(result, 4)
    U32.pack_into(used, 0, directory.listing(room, cookie))
