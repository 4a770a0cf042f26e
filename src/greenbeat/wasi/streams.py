"""Standard input and outputs that are Python objects: bytes, file objects, callables.

what is given                     as stdin                         as stdout, stderr
None                              empty                            kept, to be read afterwards
bytes, str                        read from                        -
a file of the host's (fileno())   read from, by the system         written to, by the system
another file object               its read(n), or read1(n)         its write(data)
a callable                        called with n, returns at        called with bytes
most n bytes, b"" at the end
INHERIT                           the process's own                the process's own
"""

import codecs
import io
from collections.abc import Callable
from typing import Any, Final

from greenbeat.wasi.constants import Errno, Failure, Rights
from greenbeat.wasi.handles import Buffers, Handle
from greenbeat.wasi.quota import Quota


class _Inherit:
    """What is given for a stream that is the process's own."""

    def __repr__(self) -> str:
        return "greenbeat.INHERIT"


INHERIT: Final = _Inherit()


def descriptor_of(given: Any) -> int | None:
    """The host's descriptor of a file object, if it has one."""
    try:
        found = given.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return found if isinstance(found, int) else None


class Source(Handle):
    """An input that a callable gives piece by piece."""

    possible = Rights.STREAM & ~Rights.FD_WRITE

    def __init__(self, pull: Callable[[int], Any]) -> None:
        super().__init__()
        self._pull, self._left = pull, b""

    def available(self) -> int:
        return len(self._left)

    def read(self, buffers: Buffers) -> int:
        count = 0
        for buffer in buffers:
            if not self._left:
                if count:
                    break
                found = self._pull(sum(map(len, buffers)))
                self._left = found.encode() if isinstance(found, str) else bytes(found or b"")
            piece = self._left[: len(buffer)]
            self._left = self._left[len(piece) :]
            buffer[: len(piece)] = piece
            count += len(piece)
            if len(piece) < len(buffer):
                break
        return count

    def write(self, buffers: Buffers) -> int:
        raise Failure(Errno.BADF)


class BytesSource(Handle):
    """An input that is there as a whole. Several guests of one `Wasi` read it one after the other."""

    possible = Rights.STREAM & ~Rights.FD_WRITE

    def __init__(self, data: "BytesInput") -> None:
        super().__init__()
        self._data = data

    def available(self) -> int:
        return len(self._data.data) - self._data.position

    def read(self, buffers: Buffers) -> int:
        count = 0
        for buffer in buffers:
            piece = self._data.data[self._data.position : self._data.position + len(buffer)]
            buffer[: len(piece)] = piece
            self._data.position += len(piece)
            count += len(piece)
        return count


class BytesInput:
    """Bytes, and how far they have been read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = memoryview(data), 0


class Sink(Handle):
    """An output that a callable takes piece by piece."""

    possible = Rights.STREAM & ~Rights.FD_READ

    def __init__(self, push: Callable[[bytes], Any], quota: Quota) -> None:
        super().__init__()
        self._push, self._quota = push, quota

    def write(self, buffers: Buffers) -> int:
        data = b"".join(self._quota.writable(buffers))
        if data:
            self._push(data)
            self._quota.wrote(len(data))
        return len(data)


class Kept(Sink):
    """An output that is kept in memory, within the quota."""

    def __init__(self, kept: bytearray, quota: Quota) -> None:
        super().__init__(self._keep, quota)
        self._kept = kept

    def _keep(self, data: bytes) -> None:
        self._quota.store(len(data))
        self._kept += data


def puller(given: Any) -> Callable[[int], Any]:
    """How to read from a callable or a file object that the system does not know.

    Raises:
        TypeError: it is neither.
    """
    for found in (getattr(given, "read1", None), getattr(given, "read", None), given):
        if callable(found):
            pull: Callable[[int], Any] = found
            return pull
    raise TypeError(f"stdin must be bytes, str, a file object, a callable or INHERIT, not {given!r}")


def pusher(given: Any, what: str) -> Callable[[bytes], Any]:
    """How to write to a callable or a file object that the system does not know.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(given, io.TextIOBase):
        buffer = getattr(given, "buffer", None)
        if buffer is None:
            decode = codecs.getincrementaldecoder("utf-8")("replace").decode
            return lambda data: given.write(decode(data))
        given.flush()
        given = buffer
    for found in (getattr(given, "write", None), given):
        if callable(found):
            push: Callable[[bytes], Any] = found
            return push
    raise TypeError(f"{what} must be None, a file object, a callable or INHERIT, not {given!r}")
