"""Files of the host: those that a guest opens in a directory it was given, and the streams the process itself has.

Data goes between the host's file and the guest's memory in one system call, without a copy on the way.
"""

import array
import fcntl
import os
import select
import termios
from collections.abc import Callable

from greenbeat.wasi.constants import Errno, Failure, FdFlags, FileType, Rights, Whence, file_type
from greenbeat.wasi.handles import Buffers, Handle, Status
from greenbeat.wasi.quota import Quota

_WHENCE = {Whence.SET: os.SEEK_SET, Whence.CUR: os.SEEK_CUR, Whence.END: os.SEEK_END}
_ADVICE = ("NORMAL", "SEQUENTIAL", "RANDOM", "WILLNEED", "DONTNEED", "NOREUSE")
LARGEST_OFFSET = (1 << 63) - 1


def status_of(found: os.stat_result) -> Status:
    """A status of the host's as the guest sees it."""
    return Status(
        found.st_dev & 0xFFFF_FFFF_FFFF_FFFF,
        found.st_ino & 0xFFFF_FFFF_FFFF_FFFF,
        file_type(found.st_mode),
        found.st_nlink,
        found.st_size,
        *(max(0, time) for time in (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)),
    )


def readable_bytes(fd: int) -> int:
    """How many bytes a pipe, terminal or socket has at once."""
    count = array.array("i", [0])
    try:
        fcntl.ioctl(fd, termios.FIONREAD, count)
    except OSError:
        return 0
    return max(0, count[0])


class HostFile(Handle):
    """A regular file. The descriptor belongs to it."""

    kind = FileType.REGULAR_FILE
    possible = Rights.FILE

    def __init__(self, fd: int, quota: Quota, *, reads: bool, writes: bool, writable: bool = True) -> None:
        super().__init__()
        self.fd, self.quota, self.reads, self.writes, self.writable = fd, quota, reads, writes, writable

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close

    def available(self) -> int:
        return max(0, os.fstat(self.fd).st_size - os.lseek(self.fd, 0, os.SEEK_CUR))

    def read(self, buffers: Buffers) -> int:
        if not self.reads:
            raise Failure(Errno.BADF)
        return os.readv(self.fd, buffers) if buffers else 0

    def write(self, buffers: Buffers) -> int:
        if not self.writes:
            raise Failure(Errno.BADF)
        fitting = self.quota.writable(buffers)
        written = os.writev(self.fd, fitting) if fitting else 0
        self.quota.wrote(written)
        return written

    def read_at(self, buffers: Buffers, offset: int) -> int:
        if not self.reads:
            raise Failure(Errno.BADF)
        if offset < 0:
            raise Failure(Errno.INVAL)
        return os.preadv(self.fd, buffers, offset) if buffers else 0

    def write_at(self, buffers: Buffers, offset: int) -> int:
        if not self.writes:
            raise Failure(Errno.BADF)
        if offset < 0:
            raise Failure(Errno.INVAL)
        fitting = self.quota.writable(buffers)
        written = os.pwritev(self.fd, fitting, offset) if fitting else 0
        self.quota.wrote(written)
        return written

    def seek(self, offset: int, whence: int) -> int:
        if whence not in _WHENCE:
            raise Failure(Errno.INVAL)
        return os.lseek(self.fd, offset, _WHENCE[whence])

    def status(self) -> Status:
        return status_of(os.fstat(self.fd))

    def set_flags(self, flags: int) -> None:
        if (flags ^ self.flags) & FdFlags.SYNCHRONOUS:
            # The host cannot change this once a file is open.
            raise Failure(Errno.NOTSUP)
        host = fcntl.fcntl(self.fd, fcntl.F_GETFL) & ~os.O_APPEND
        fcntl.fcntl(self.fd, fcntl.F_SETFL, host | (os.O_APPEND if flags & FdFlags.APPEND else 0))
        self.flags = flags

    def set_size(self, size: int) -> None:
        if not self.writes:
            raise Failure(Errno.INVAL)
        if size < 0:
            raise Failure(Errno.FBIG)
        self.quota.grow(size - os.fstat(self.fd).st_size)
        os.ftruncate(self.fd, size)

    def set_times(self, accessed: int, modified: int) -> None:
        if not self.writable:
            raise Failure(Errno.ROFS)
        os.utime(self.fd, ns=(accessed, modified))

    def allocate(self, offset: int, length: int) -> None:
        if not self.writes:
            raise Failure(Errno.BADF)
        if offset < 0 or length <= 0:
            raise Failure(Errno.INVAL)
        if offset > LARGEST_OFFSET - length:
            raise Failure(Errno.FBIG)
        self.quota.grow(offset + length - os.fstat(self.fd).st_size)
        os.posix_fallocate(self.fd, offset, length)

    def advise(self, offset: int, length: int, advice: int) -> None:
        if not 0 <= advice < len(_ADVICE) or offset < 0 or length < 0:
            raise Failure(Errno.INVAL)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self.fd, offset, length, getattr(os, f"POSIX_FADV_{_ADVICE[advice]}"))

    def sync(self, data_only: bool) -> None:
        if data_only and hasattr(os, "fdatasync"):
            os.fdatasync(self.fd)
        else:
            os.fsync(self.fd)


class HostStream(Handle):
    """A standard stream of the process's own, whatever it is. It stays open, and its flags are left alone.

    Args:
        fd: the host's descriptor.
        quota: what may be written.
        wait: if there is a deadline, waits until the descriptor can be read (or, if told so, written), and says so.
        reads, writes: which way it goes.
    """

    def __init__(self, fd: int, quota: Quota, wait: Callable[[int, bool], bool], *, reads: bool, writes: bool) -> None:
        found = os.fstat(fd)
        self.kind = file_type(found.st_mode)
        self.possible = Rights.FILE if self.kind == FileType.REGULAR_FILE else Rights.STREAM
        if not reads:
            self.possible &= ~Rights.FD_READ
        if not writes:
            self.possible &= ~Rights.FD_WRITE
        super().__init__()
        self.fd, self.quota, self.wait, self.reads, self.writes = fd, quota, wait, reads, writes
        self.blocks = self.kind != FileType.REGULAR_FILE

    @property
    def host(self) -> int | None:
        return self.fd if self.blocks else None

    def available(self) -> int:
        return readable_bytes(self.fd)

    def _ready(self, writing: bool) -> bool:
        """Wait if need be; returns whether the system must not wait for more."""
        if not self.blocks:
            return False
        if self.flags & FdFlags.NONBLOCK:
            if not is_ready(self.fd, writing):
                raise Failure(Errno.AGAIN)
            return True
        return self.wait(self.fd, writing)

    def read(self, buffers: Buffers) -> int:
        if not self.reads:
            raise Failure(Errno.BADF)
        if not buffers:
            return 0
        self._ready(False)
        return os.readv(self.fd, buffers)

    def write(self, buffers: Buffers) -> int:
        if not self.writes:
            raise Failure(Errno.BADF)
        fitting = self.quota.writable(buffers)
        if not fitting:
            return 0
        if self._ready(True):
            # So much a pipe that is ready takes at once.
            fitting = [fitting[0][: select.PIPE_BUF]]
        written = os.writev(self.fd, fitting)
        self.quota.wrote(written)
        return written

    def seek(self, offset: int, whence: int) -> int:
        if self.kind != FileType.REGULAR_FILE:
            raise Failure(Errno.SPIPE)
        if whence not in _WHENCE:
            raise Failure(Errno.INVAL)
        return os.lseek(self.fd, offset, _WHENCE[whence])

    def status(self) -> Status:
        return status_of(os.fstat(self.fd))


def is_ready(fd: int, writing: bool) -> bool:
    """Whether a descriptor can be read or written without waiting."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT if writing else select.POLLIN)
    return bool(poll.poll(0))
