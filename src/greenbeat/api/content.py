"""A module's bytes on their way into the engine, and what names the module between processes.

    Content(data=...)        bytes that are there
    Content(file=...)        a file that is read now

    │ magic │ type │ ... │ code │ data │ custom: .debug_info │ ...
      read, and part of the digest │ read │ read when it is asked for

A thread of its own reads a large file and makes the digest. Nothing of the engine is imported here: a command starts
the thread and imports the rest while it is at work.
"""

import mmap
import os
import threading
from collections.abc import Callable
from hashlib import sha256

# For smaller modules there is nothing to gain: they are validated and translated faster than a file is found and read.
LEAST_KEPT = 1 << 18
# Less than this is read faster than a thread is started.
_LEAST_AHEAD = 1 << 20

# Modules with more sections are read and hashed as a whole.
_MOST_SECTIONS = 1000
_CUSTOM, _DATA = 0, 11
_MAGIC = b"\0asm"
# Custom sections that are larger are left in the file, but for their beginnings, which have their names.
_LARGE, _BEGINNING = 1 << 16, 1 << 12

Buffer = bytes | mmap.mmap


def _sections(view: memoryview, look: Callable[[int], None]) -> list[tuple[int, int, int]] | None:
    """The kind, start and end of each section; None if there are too many, or they are malformed.

    Args:
        view: the module.
        look: called before the beginning of a section is looked at.
    """
    found: list[tuple[int, int, int]] = []
    at = 8
    while at < len(view):
        look(at)
        size, contents = _number(view, at + 1)
        end = contents + size
        if len(found) == _MOST_SECTIONS or end > len(view):
            return None
        found.append((view[at], at, end))
        at = end
    return found


def _number(view: memoryview, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number of 32 bits, and where it ends."""
    value = 0
    for position, byte in enumerate(view[at : at + 5]):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value, at + position + 1
    return 0, len(view) + 1


def digest_of(data: Buffer) -> bytes:
    """A digest of all sections that validation and translation depend on: all but the data and custom sections.

    Those can be most of a module. Whether there are as many data segments as the module says is checked each time.
    """
    with memoryview(data) as view:
        sections = _sections(view, lambda at: None)
        if sections is None:
            return sha256(view).digest()
        digest = sha256(view[:8])
        for kind, start, end in sections:
            if kind not in (_CUSTOM, _DATA):
                digest.update(view[start:end])
        return digest.digest()


class _Reading:
    """A large file in memory: a copy that nobody else can change, of all but large custom sections."""

    def __init__(self, descriptor: int) -> None:
        self.file = open(descriptor, "rb", buffering=0)  # noqa: SIM115 - open as long as something is missing
        self.version = self._version()
        self.memory = mmap.mmap(-1, self.version[0], flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.missing: list[tuple[int, int]] = []
        with memoryview(self.memory) as view:
            self._fill(view, 0, 8)
            sections = None
            if view[:4] == _MAGIC:
                sections = _sections(view, lambda at: self._fill(view, at, min(at + _BEGINNING, len(view))))
            if sections is None:
                self._fill(view, 0, len(view))
            else:
                for kind, start, end in sections:
                    rest = start + _BEGINNING
                    if kind == _CUSTOM and end - rest > _LARGE and not _is_names(view[start:rest]):
                        self.missing.append((rest, end))
                    elif end > rest:
                        self._fill(view, rest, end)
        if not self.missing:
            self.file.close()

    def _version(self) -> tuple[int, int]:
        status = os.fstat(self.file.fileno())
        return status.st_size, status.st_mtime_ns

    def _fill(self, view: memoryview, start: int, end: int) -> None:
        while start < end:
            count = os.preadv(self.file.fileno(), [view[start:end]], start)
            if not count:
                raise OSError("the file was cut short while it was read")
            start += count

    def complete(self) -> None:
        """Read what is missing.

        Raises:
            OSError: the file is another one now.
        """
        if self.missing:
            if self._version() != self.version:
                raise OSError("the module's file has been changed since it was read")
            with memoryview(self.memory) as view:
                for start, end in self.missing:
                    self._fill(view, start, end)
            self.missing.clear()
            self.file.close()


def _is_names(beginning: memoryview) -> bool:
    """Whether a custom section is the one with names, which messages need."""
    _, at = _number(beginning, 1)
    return bytes(beginning[at : at + 5]) == b"\x04name"


class Content:
    """The bytes of a module.

    Args:
        data: the bytes; or else
        file: a descriptor of the file that they are in, which is closed.
        kept: whether the module's translations should be kept, if it is large enough.

    Attributes:
        complete: reads what is still missing of the contents of custom sections.
    """

    def __init__(self, data: Buffer | None = None, *, file: int = -1, kept: bool) -> None:
        self.complete = _nothing_is_missing
        self._data, self._file = data, file
        self._kept = kept and os.environ.get("GREENBEAT_MODULE_CACHE") != "0"
        self._digest = b""
        self._problem: BaseException | None = None
        self._has_data = threading.Event()
        self._thread: threading.Thread | None = None
        size = len(data) if data is not None else os.fstat(file).st_size
        if size >= _LEAST_AHEAD:
            self._thread = threading.Thread(target=self._prepare, name="greenbeat-content", daemon=True)
            self._thread.start()
        else:
            self._prepare()

    @property
    def is_prepared_ahead(self) -> bool:
        """Whether it is so large that there is time for other things until it is needed."""
        return self._thread is not None

    def _prepare(self) -> None:
        try:
            if self._data is None:
                if os.fstat(self._file).st_size < _LEAST_AHEAD:
                    with open(self._file, "rb", buffering=0) as file:
                        self._data = file.readall()
                else:
                    reading = _Reading(self._file)
                    self._data, self.complete = reading.memory, reading.complete
            self._has_data.set()
            if self._kept and len(self._data) >= LEAST_KEPT:
                self._digest = digest_of(self._data)
        except BaseException as problem:
            self._problem = problem
        finally:
            self._has_data.set()

    @property
    def data(self) -> Buffer:
        """The bytes; of custom sections only the names may be there.

        Raises:
            OSError: the file could not be read.
        """
        self._has_data.wait()
        if self._data is None:
            assert self._problem is not None
            raise self._problem
        return self._data

    @property
    def digest(self) -> bytes:
        """The digest of what matters for validation and translation; nothing if nothing is to be kept."""
        if self._thread is not None:
            self._thread.join()
        if self._problem is not None:
            raise self._problem
        return self._digest


def _nothing_is_missing() -> None:
    """What is left to do for bytes that are there."""
