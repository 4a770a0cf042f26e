"""Sockets that the embedder gives: a guest can accept, receive, send and shut down, but open none of its own.

Python's own module is imported where a socket is at hand, and so is the module: other guests start without.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from greenbeat.wasi.constants import Errno, Failure, FdFlags, FileType, Rights
from greenbeat.wasi.functions import function
from greenbeat.wasi.guestmemory import U32
from greenbeat.wasi.handles import Buffers, Handle
from greenbeat.wasi.hostfiles import is_ready, readable_bytes
from greenbeat.wasi.quota import Quota

if TYPE_CHECKING:
    import socket

    from greenbeat.wasi.process import Process

_PEEK, _WAITALL = 1, 2
_TRUNCATED = 1
_SHUT_RD, _SHUT_WR = 1, 2
Wait = Callable[[int, bool], bool]


class Socket(Handle):
    """A socket, listening or connected. What the guest accepts belongs to it, what it was given does not."""

    possible = Rights.SOCKET

    def __init__(self, given: "socket.socket", quota: Quota, wait: Wait, *, owned: bool) -> None:
        import socket

        stream = given.type == socket.SOCK_STREAM
        self.kind = FileType.SOCKET_STREAM if stream else FileType.SOCKET_DGRAM
        super().__init__()
        self.socket, self.quota, self.wait, self.owned = given, quota, wait, owned

    @property
    def host(self) -> int | None:
        return self.socket.fileno()

    def close(self) -> None:
        if self.owned:
            self.socket.close()

    def available(self) -> int:
        return readable_bytes(self.socket.fileno())

    def ready(self, writing: bool) -> int:
        """Wait until it can be read or written, unless it must not block; returns what to tell the system then."""
        import socket

        # With a deadline, or NONBLOCK, only what is there at once is sent and received.
        at_once = socket.MSG_DONTWAIT
        fd = self.socket.fileno()
        if self.flags & FdFlags.NONBLOCK:
            if not is_ready(fd, writing):
                raise Failure(Errno.AGAIN)
            return at_once
        return at_once if self.wait(fd, writing) else 0

    def read(self, buffers: Buffers) -> int:
        return self.receive(buffers, 0)[0]

    def write(self, buffers: Buffers) -> int:
        return self.send(buffers)

    def receive(self, buffers: Buffers, flags: int) -> tuple[int, int]:
        """Receive into some buffers: how many bytes, and the host's flags."""
        if not buffers:
            return 0, 0
        count, _, found, _ = self.socket.recvmsg_into(buffers, 0, flags | self.ready(False))
        return count, found

    def send(self, buffers: Buffers) -> int:
        """Send some buffers: how many bytes."""
        import socket

        fitting = self.quota.writable(buffers)
        count = self.socket.sendmsg(fitting, (), self.ready(True) | getattr(socket, "MSG_NOSIGNAL", 0))
        self.quota.wrote(count)
        return count


def _socket(process: "Process", fd: int, right: int) -> Socket:
    found = process.handle(fd, right)
    if not isinstance(found, Socket):
        raise Failure(Errno.NOTSOCK)
    return found


@function("iii")
def sock_accept(process: "Process", fd: int, flags: int, result: int) -> None:
    """Accept a connection."""
    listener = _socket(process, fd, Rights.SOCK_ACCEPT)
    room = process.memory.slice(result, U32.size)
    if flags & ~FdFlags.NONBLOCK:
        raise Failure(Errno.INVAL)
    if process.full():
        raise Failure(Errno.MFILE)
    listener.ready(False)
    accepted, _ = listener.socket.accept()
    accepted.setblocking(True)
    connection = Socket(accepted, process.quota, listener.wait, owned=True)
    connection.flags = flags
    U32.pack_into(room, 0, process.add(connection))


@function("iiiiii")
def sock_recv(process: "Process", fd: int, vectors: int, count: int, flags: int, received: int, found: int) -> None:
    """Receive."""
    import socket

    connection = _socket(process, fd, Rights.FD_READ)
    buffers = process.memory.vectors(vectors, count)
    length, about = process.memory.slice(received, U32.size), process.memory.slice(found, 2)
    if flags & ~(_PEEK | _WAITALL):
        raise Failure(Errno.INVAL)
    wanted = (socket.MSG_PEEK if flags & _PEEK else 0) | (socket.MSG_WAITALL if flags & _WAITALL else 0)
    got, host_flags = connection.receive(buffers, wanted)
    U32.pack_into(length, 0, got)
    about[:] = (_TRUNCATED if host_flags & socket.MSG_TRUNC else 0).to_bytes(2, "little")


@function("iiiii")
def sock_send(process: "Process", fd: int, vectors: int, count: int, flags: int, sent: int) -> None:
    """Send."""
    connection = _socket(process, fd, Rights.FD_WRITE)
    buffers = process.memory.vectors(vectors, count)
    length = process.memory.slice(sent, U32.size)
    if flags:
        raise Failure(Errno.INVAL)
    U32.pack_into(length, 0, connection.send(buffers))


@function("ii")
def sock_shutdown(process: "Process", fd: int, how: int) -> None:
    """Say that no more is received, or sent."""
    import socket

    connection = _socket(process, fd, Rights.SOCK_SHUTDOWN)
    ways = {
        _SHUT_RD: socket.SHUT_RD,
        _SHUT_WR: socket.SHUT_WR,
        _SHUT_RD | _SHUT_WR: socket.SHUT_RDWR,
    }
    if how not in ways:
        raise Failure(Errno.INVAL)
    connection.socket.shutdown(ways[how])
