"""What is kept of modules between processes: that they are valid, and the cells of functions that were called.

A file for each module and engine, in the directory `modules` of the user's cache directory:

    0          32     40         64
    │ identity │ size │ checksum │ record │ record │ ...       identity: engine, contents, form

A process that finds the file maps it and validates no function's body. Where it would translate a function it looks at
the function's record, which has a checksum of its own, and runs from its cells (`greenbeat.interpreter.placement`).
Whoever loses a race, meets a full disk or finds a file damaged, cut short or another's works as if there were none.
Files are never changed, only replaced by others.

Cells are native code in another spelling: whoever can write such a file can do what the user can. So directory and
files are made for the user alone, and a file is believed only if it belongs to the user, or to root, and nobody else
may write to it. Checksums tell damage, not malice. What guests do has no influence on what is written, beyond the
code that they are made of, and no file of theirs gets there unless they are given the cache directory to write to.
"""

import contextlib
import mmap
import os
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from greenbeat.api import bridge
from greenbeat.engine import engine
from greenbeat.native import cache

if TYPE_CHECKING:
    from greenbeat.api.content import Content

_FORM = b"greenbeat translations 1"
_HEADER = 64
_SUFFIX, _TEMPORARY = ".cells", ".tmp"
# Of one file, and of all of them: beyond this the ones that were not used for longest are deleted.
LARGEST, LARGEST_TOTAL = 1 << 27, 1 << 28
# A file is written again when this part of it is new: a few functions more are not worth it.
_WORTH = 32
# What a process that was killed left behind.
_STALE_SECONDS = 3600


class Users:
    """Kept by everything that may run a module's code: when it goes, no more is translated."""


class Translations:
    """The file of a module.

    Attributes:
        known: whether there is a good one: the module is valid.
    """

    def __init__(self, content: "Content", directory: Path) -> None:
        self._identity = sha256(b"\0".join((_FORM, engine.key.encode(), content.digest))).digest()
        self._directory = directory
        self._path = directory / f"{self._identity.hex()}{_SUFFIX}"
        self._file: mmap.mmap | None = None
        # What was found or written last: the file's inode and size.
        self._last: tuple[int, int] | None = None
        descriptor = self._open()
        if descriptor is not None:
            with contextlib.suppress(OSError):
                self._file = mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
                self._last = _told(os.fstat(descriptor))
                os.utime(descriptor)  # when it was used last
            os.close(descriptor)

    @property
    def known(self) -> bool:
        return self._file is not None

    def _open(self) -> int | None:
        """The file's descriptor, if it is there and this module's."""
        descriptor = cache.open_own(self._path)
        if descriptor is None:
            return None
        with contextlib.suppress(OSError):
            if os.pread(descriptor, _HEADER, 0) == self._header(os.fstat(descriptor).st_size):
                return descriptor
        os.close(descriptor)
        return None

    def _header(self, size: int) -> bytes:
        beginning = self._identity + size.to_bytes(8, "little")
        return beginning + sha256(beginning).digest()[: _HEADER - len(beginning)]

    def attach(self, group: Any, module: int) -> Users:
        """Let a module that has just been decoded use what was found, and record what is translated from now on.

        It is saved when the last of its users goes, or at the end of the process. The group, which owns the native
        module, leads to no Python object that could lead back: that it is held meanwhile closes no circle.
        """
        if self._file is not None:
            address, kept = bridge.address_of_buffer(self._file)
            bridge.native.keep(group, kept)
            bridge.native.use_translations(module, address + _HEADER, len(self._file) - _HEADER)
            self._file = None
        bridge.at(bridge.layout.Module, module).recording = 1
        users = Users()
        finalize(users, self._save_last, group, module)
        return users

    def _save_last(self, group: object, module: int) -> None:
        """Save what the group's module has, while the group is still there."""
        self.save(module)

    def save(self, module: int) -> None:
        """Write the file again if enough is new; a file that cannot be written is no error."""
        size = bridge.native.collect_translations(module, None, 0)
        before = self._last[1] if self._last is not None else 0
        if (self._last is not None and size <= before // _WORTH) or before + size + _HEADER > LARGEST:
            return
        with contextlib.suppress(OSError):
            old = self._records()
            if old is None:
                return
            start = _HEADER + len(old)
            data = bytearray(start + size)
            data[:_HEADER], data[_HEADER:start] = self._header(len(data)), old
            place, _kept = bridge.address_of_buffer(data)
            if bridge.native.collect_translations(module, place + start, size) > size:
                return  # another thread is translating
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            cache.replace(self._path, data)
            self._last = _told(self._path.stat())
            _prune(self._directory)

    def _records(self) -> bytes | None:
        """What the file has now: the module has changed its own copy.

        None if another process has written it meanwhile: then most of what is new here is new there.
        """
        descriptor = self._open()
        if descriptor is None:
            return b"" if self._last is None or not self._path.exists() else None
        with open(descriptor, "rb") as file:
            return file.read()[_HEADER:] if _told(os.fstat(descriptor)) == self._last else None


def _told(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_size


def translations_of(content: "Content") -> Translations | None:
    """What is kept of a module; None if there is no place for it."""
    directory = cache.user_directory()
    return Translations(content, directory / "modules") if directory is not None else None


def _prune(directory: Path) -> None:
    """Delete what is beyond the limit, the file used last first to stay, and what was left behind half written."""
    with os.scandir(directory) as entries:
        found = [(entry.stat(follow_symlinks=False), entry) for entry in entries]
    total = 0
    for status, entry in sorted(found, key=lambda each: each[0].st_mtime, reverse=True):
        if entry.name.endswith(_SUFFIX):
            total += status.st_size
            unwanted = total > LARGEST_TOTAL
        else:
            unwanted = entry.name.endswith(_TEMPORARY) and status.st_mtime < time.time() - _STALE_SECONDS
        if unwanted:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


__all__ = ["Translations", "Users", "translations_of"]
