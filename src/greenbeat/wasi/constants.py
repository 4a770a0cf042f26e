"""The numbers of WASI preview 1: error codes, rights, flags and kinds, with the host's errors translated to them.

They are those of https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
"""

import errno as host
import stat
from enum import IntEnum

Errno = IntEnum(
    "Errno",
    "SUCCESS TOOBIG ACCES ADDRINUSE ADDRNOTAVAIL AFNOSUPPORT AGAIN ALREADY BADF BADMSG BUSY CANCELED CHILD "
    "CONNABORTED CONNREFUSED CONNRESET DEADLK DESTADDRREQ DOM DQUOT EXIST FAULT FBIG HOSTUNREACH IDRM ILSEQ "
    "INPROGRESS INTR INVAL IO ISCONN ISDIR LOOP MFILE MLINK MSGSIZE MULTIHOP NAMETOOLONG NETDOWN NETRESET "
    "NETUNREACH NFILE NOBUFS NODEV NOENT NOEXEC NOLCK NOLINK NOMEM NOMSG NOPROTOOPT NOSPC NOSYS NOTCONN NOTDIR "
    "NOTEMPTY NOTRECOVERABLE NOTSOCK NOTSUP NOTTY NXIO OVERFLOW OWNERDEAD PERM PIPE PROTO PROTONOSUPPORT "
    "PROTOTYPE RANGE ROFS SPIPE SRCH STALE TIMEDOUT TXTBSY XDEV NOTCAPABLE",
    start=0,
)

_FROM_HOST = {
    number: code
    for code in Errno
    if (number := getattr(host, "E2BIG" if code is Errno.TOOBIG else f"E{code.name}", None)) is not None
}


class Failure(Exception):
    """A function of WASI does not do what the guest asked for; the guest is told the `errno`."""

    def __init__(self, errno: Errno) -> None:
        super().__init__(errno.name)
        self.errno = errno


def errno_of(error: OSError) -> Errno:
    """What the guest is told of an error of the host's."""
    return _FROM_HOST.get(error.errno or 0, Errno.IO)


class Rights:
    """What a descriptor may be used for."""

    FD_DATASYNC = 1 << 0
    FD_READ = 1 << 1
    FD_SEEK = 1 << 2
    FD_FDSTAT_SET_FLAGS = 1 << 3
    FD_SYNC = 1 << 4
    FD_TELL = 1 << 5
    FD_WRITE = 1 << 6
    FD_ADVISE = 1 << 7
    FD_ALLOCATE = 1 << 8
    PATH_CREATE_DIRECTORY = 1 << 9
    PATH_CREATE_FILE = 1 << 10
    PATH_LINK_SOURCE = 1 << 11
    PATH_LINK_TARGET = 1 << 12
    PATH_OPEN = 1 << 13
    FD_READDIR = 1 << 14
    PATH_READLINK = 1 << 15
    PATH_RENAME_SOURCE = 1 << 16
    PATH_RENAME_TARGET = 1 << 17
    PATH_FILESTAT_GET = 1 << 18
    PATH_FILESTAT_SET_SIZE = 1 << 19
    PATH_FILESTAT_SET_TIMES = 1 << 20
    FD_FILESTAT_GET = 1 << 21
    FD_FILESTAT_SET_SIZE = 1 << 22
    FD_FILESTAT_SET_TIMES = 1 << 23
    PATH_SYMLINK = 1 << 24
    PATH_REMOVE_DIRECTORY = 1 << 25
    PATH_UNLINK_FILE = 1 << 26
    POLL_FD_READWRITE = 1 << 27
    SOCK_SHUTDOWN = 1 << 28
    SOCK_ACCEPT = 1 << 29

    # What makes sense for each kind of descriptor. wasi-libc takes a character device without SEEK and TELL for a
    # terminal.
    STREAM = FD_READ | FD_FDSTAT_SET_FLAGS | FD_WRITE | FD_FILESTAT_GET | POLL_FD_READWRITE
    SOCKET = STREAM | SOCK_SHUTDOWN | SOCK_ACCEPT
    FILE = (
        STREAM
        | FD_DATASYNC
        | FD_SEEK
        | FD_SYNC
        | FD_TELL
        | FD_ADVISE
        | FD_ALLOCATE
        | FD_FILESTAT_SET_SIZE
        | FD_FILESTAT_SET_TIMES
    )
    DIRECTORY = (
        FD_FDSTAT_SET_FLAGS
        | FD_SYNC
        | FD_DATASYNC
        | FD_ADVISE
        | PATH_CREATE_DIRECTORY
        | PATH_CREATE_FILE
        | PATH_LINK_SOURCE
        | PATH_LINK_TARGET
        | PATH_OPEN
        | FD_READDIR
        | PATH_READLINK
        | PATH_RENAME_SOURCE
        | PATH_RENAME_TARGET
        | PATH_FILESTAT_GET
        | PATH_FILESTAT_SET_SIZE
        | PATH_FILESTAT_SET_TIMES
        | FD_FILESTAT_GET
        | FD_FILESTAT_SET_TIMES
        | PATH_SYMLINK
        | PATH_REMOVE_DIRECTORY
        | PATH_UNLINK_FILE
        | POLL_FD_READWRITE
    )
    INHERITED = DIRECTORY | FILE


class FileType:
    """What a file is."""

    UNKNOWN, BLOCK_DEVICE, CHARACTER_DEVICE, DIRECTORY, REGULAR_FILE = range(5)
    SOCKET_DGRAM, SOCKET_STREAM, SYMBOLIC_LINK = range(5, 8)


_FILE_TYPES = {
    stat.S_IFBLK: FileType.BLOCK_DEVICE,
    stat.S_IFCHR: FileType.CHARACTER_DEVICE,
    stat.S_IFDIR: FileType.DIRECTORY,
    stat.S_IFREG: FileType.REGULAR_FILE,
    stat.S_IFSOCK: FileType.SOCKET_STREAM,
    stat.S_IFLNK: FileType.SYMBOLIC_LINK,
}


def file_type(mode: int) -> int:
    """The kind of file that a mode of the host's says; a FIFO has none in WASI."""
    return _FILE_TYPES.get(stat.S_IFMT(mode), FileType.UNKNOWN)


class FdFlags:
    """How a descriptor reads and writes."""

    APPEND, DSYNC, NONBLOCK, RSYNC, SYNC = 1, 2, 4, 8, 16
    SYNCHRONOUS = DSYNC | RSYNC | SYNC
    ALL = 31


class OpenFlags:
    """How `path_open` opens."""

    CREAT, DIRECTORY, EXCL, TRUNC = 1, 2, 4, 8
    ALL = 15


class TimeFlags:
    """Which times are set, and whether to the present."""

    ATIM, ATIM_NOW, MTIM, MTIM_NOW = 1, 2, 4, 8
    ALL = 15


SYMLINK_FOLLOW = 1


class Whence:
    """Where `fd_seek` counts from."""

    SET, CUR, END = range(3)


class ClockId:
    """Clocks."""

    REALTIME, MONOTONIC, PROCESS_CPUTIME, THREAD_CPUTIME = range(4)


class EventType:
    """What `poll_oneoff` waits for."""

    CLOCK, FD_READ, FD_WRITE = range(3)
