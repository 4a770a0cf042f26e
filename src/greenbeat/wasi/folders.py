"""Folders: what can be done with the names in one directory, on the host or in memory.

Every operation takes a *name*: one component of a path as bytes, without slashes, never `.` or `..`, and follows no
link in its place. Whoever resolves a path (`walk.py`) goes from folder to folder. `HostFolder` keeps a descriptor of
its directory and gives it to every system call, so a directory that is renamed meanwhile, or replaced by a link, makes
no difference: https://man7.org/linux/man-pages/man2/openat.2.html
"""

import os
import stat
from abc import ABC, abstractmethod
from typing import NamedTuple

from greenbeat.wasi.constants import Errno, Failure, FdFlags, FileType, OpenFlags
from greenbeat.wasi.handles import Handle, Status
from greenbeat.wasi.hostfiles import HostFile, status_of
from greenbeat.wasi.quota import Quota

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PASSED = (getattr(os, "O_PATH", 0)) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: if a FIFO takes the place of a file at the last moment, opening it does not wait for its other end.
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class Item(NamedTuple):
    """A name in a folder."""

    name: bytes
    inode: int
    kind: int


class Folder(ABC):
    """A directory. `writable` says whether anything in it may change."""

    writable: bool

    @abstractmethod
    def close(self) -> None:
        """Give back what it keeps of the host."""

    @abstractmethod
    def passage(self, name: bytes) -> "Folder":
        """A folder in it, good for going on to what is in there.

        Raises:
            OSError, Failure: among others NOTDIR, it is a link or no folder.
        """

    @abstractmethod
    def folder(self, name: bytes) -> "Folder":
        """A folder in it (`.` is itself), good for everything."""

    @abstractmethod
    def open(self, name: bytes, *, reads: bool, writes: bool, oflags: int, flags: int) -> Handle:
        """A regular file in it, made if `oflags` say so.

        Raises:
            OSError, Failure: among others ISDIR, it is a folder; LOOP, it is a link; ACCES, it is a device or a FIFO.
        """

    @abstractmethod
    def link_target(self, name: bytes) -> bytes | None:
        """Where a symbolic link leads; None if there is no such link."""

    @abstractmethod
    def status(self, name: bytes) -> Status:
        """What a name stands for; `.` is the folder itself."""

    @abstractmethod
    def set_times(self, name: bytes, accessed: int, modified: int) -> None:
        """Set times, in nanoseconds; `.` is the folder itself."""

    @abstractmethod
    def items(self) -> list[Item]:
        """What is in it, `.` and `..` first."""

    @abstractmethod
    def make_folder(self, name: bytes) -> None: ...

    @abstractmethod
    def make_link(self, name: bytes, target: bytes) -> None: ...

    @abstractmethod
    def remove_folder(self, name: bytes) -> None: ...

    @abstractmethod
    def remove_file(self, name: bytes) -> None: ...

    @abstractmethod
    def rename(self, name: bytes, folder: "Folder", new: bytes) -> None: ...

    @abstractmethod
    def hard_link(self, name: bytes, folder: "Folder", new: bytes) -> None: ...


class HostFolder(Folder):
    """A directory of the host. The descriptor belongs to it."""

    def __init__(self, fd: int, writable: bool, quota: Quota) -> None:
        self.fd, self.writable, self.quota = fd, writable, quota

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close

    def passage(self, name: bytes) -> "HostFolder":
        return HostFolder(os.open(name, _PASSED, dir_fd=self.fd), self.writable, self.quota)

    def folder(self, name: bytes) -> "HostFolder":
        return HostFolder(os.open(name, _FOLDER, dir_fd=self.fd), self.writable, self.quota)

    def _kind(self, name: bytes, creates: bool) -> None:
        """Refuse to open what is no regular file, before opening it can do anything."""
        try:
            mode = os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode
        except FileNotFoundError:
            if creates:
                return
            raise
        _refuse(mode)

    def open(self, name: bytes, *, reads: bool, writes: bool, oflags: int, flags: int) -> Handle:
        creates = bool(oflags & OpenFlags.CREAT)
        truncates = bool(oflags & OpenFlags.TRUNC)
        if not (creates and oflags & OpenFlags.EXCL):
            self._kind(name, creates)
        mode = _FILE | (os.O_RDWR if reads and (writes or truncates) else os.O_WRONLY if writes or truncates else 0)
        if creates:
            mode |= os.O_CREAT | (os.O_EXCL if oflags & OpenFlags.EXCL else 0)
        if flags & FdFlags.APPEND:
            mode |= os.O_APPEND
        if flags & (FdFlags.SYNC | FdFlags.RSYNC):
            mode |= os.O_SYNC
        elif flags & FdFlags.DSYNC:
            mode |= getattr(os, "O_DSYNC", os.O_SYNC)
        fd = os.open(name, mode, 0o666, dir_fd=self.fd)
        made = HostFile(fd, self.quota, reads=reads, writes=writes, writable=self.writable)
        _refuse(os.fstat(fd).st_mode)
        if truncates:
            os.ftruncate(fd, 0)
        return made

    def link_target(self, name: bytes) -> bytes | None:
        try:
            return os.readlink(name, dir_fd=self.fd)
        except OSError:
            return None

    def status(self, name: bytes) -> Status:
        if name == b".":
            return status_of(os.fstat(self.fd))
        return status_of(os.stat(name, dir_fd=self.fd, follow_symlinks=False))

    def set_times(self, name: bytes, accessed: int, modified: int) -> None:
        os.utime(name, ns=(accessed, modified), dir_fd=self.fd, follow_symlinks=False)

    def items(self) -> list[Item]:
        own = os.fstat(self.fd).st_ino
        # What is above the folder is none of the guest's business.
        found = [Item(b".", own, FileType.DIRECTORY), Item(b"..", own, FileType.DIRECTORY)]
        with os.scandir(self.fd) as entries:
            for entry in entries:
                name = os.fsencode(entry.name)
                if _is_utf8(name):
                    found.append(Item(name, entry.inode(), _kind_of(entry)))
        return found

    def make_folder(self, name: bytes) -> None:
        os.mkdir(name, dir_fd=self.fd)

    def make_link(self, name: bytes, target: bytes) -> None:
        os.symlink(target, name, dir_fd=self.fd)

    def remove_folder(self, name: bytes) -> None:
        os.rmdir(name, dir_fd=self.fd)

    def remove_file(self, name: bytes) -> None:
        os.unlink(name, dir_fd=self.fd)

    def rename(self, name: bytes, folder: Folder, new: bytes) -> None:
        if not isinstance(folder, HostFolder):
            raise Failure(Errno.XDEV)
        os.rename(name, new, src_dir_fd=self.fd, dst_dir_fd=folder.fd)

    def hard_link(self, name: bytes, folder: Folder, new: bytes) -> None:
        if not isinstance(folder, HostFolder):
            raise Failure(Errno.XDEV)
        os.link(name, new, src_dir_fd=self.fd, dst_dir_fd=folder.fd, follow_symlinks=False)


def _refuse(mode: int) -> None:
    """Let nothing but regular files be opened."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise Failure(Errno.ISDIR)
    raise Failure(Errno.LOOP if stat.S_ISLNK(mode) else Errno.ACCES)


def _is_utf8(name: bytes) -> bool:
    """Whether a guest can be told a name: in WASI all names are UTF-8, others are left out."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _kind_of(entry: "os.DirEntry[str]") -> int:
    if entry.is_symlink():
        return FileType.SYMBOLIC_LINK
    if entry.is_dir(follow_symlinks=False):
        return FileType.DIRECTORY
    return FileType.REGULAR_FILE if entry.is_file(follow_symlinks=False) else FileType.UNKNOWN


def open_folder(path: "str | os.PathLike[str]", writable: bool, quota: Quota) -> HostFolder:
    """The folder of a path that the embedder gives; there, links are followed.

    Raises:
        OSError: there is no such directory.
    """
    return HostFolder(os.open(path, _FOLDER & ~os.O_NOFOLLOW), writable, quota)
