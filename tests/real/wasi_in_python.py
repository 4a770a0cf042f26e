"""The part of WASI preview 1 that a command needs which reads and writes no files, as plain Python functions.

This is a host for tests, and an example of one: arguments, an empty environment, standard input and output in memory,
a clock that ticks a millisecond each time it is read, random bytes from a seed, and an exit. There are no folders to
open; every other function answers that it is not supported.
"""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from .runtimes import Guest, Imports

SUCCESS, BAD_DESCRIPTOR, NOT_SUPPORTED, NO_SEEK = 0, 8, 52, 70
CHARACTER_DEVICE = 2
RIGHTS_READ, RIGHTS_WRITE = 1 << 1, 1 << 6

UNSUPPORTED = (
    "fd_advise",
    "fd_allocate",
    "fd_datasync",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_pwrite",
    "fd_readdir",
    "fd_renumber",
    "fd_sync",
    "fd_tell",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_raise",
    "sock_accept",
    "sock_recv",
    "sock_send",
    "sock_shutdown",
)


class ExitError(Exception):
    """The command ended itself."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the command exited with status {status}")
        self.status = status


class Wasi:
    """A host for one command."""

    guest: Guest

    def __init__(self, arguments: Sequence[str], standard_input: bytes = b"") -> None:
        self.arguments = [argument.encode() + b"\0" for argument in arguments]
        self.unread = standard_input
        self.written = {1: bytearray(), 2: bytearray()}
        self.time = 0
        self.random = random.Random(0)

    def run(self) -> int:
        """Runs the command to its end and returns its exit status."""
        try:
            self.guest.call("_start")
        except ExitError as ended:
            return ended.status
        return 0

    @property
    def stdout(self) -> str:
        return self.written[1].decode()

    @property
    def stderr(self) -> str:
        return self.written[2].decode()

    def imports(self) -> Imports:
        functions: dict[str, Callable[..., Any]] = dict.fromkeys(UNSUPPORTED, self.not_supported)
        supported = (
            self.args_get,
            self.args_sizes_get,
            self.environ_get,
            self.environ_sizes_get,
            self.clock_res_get,
            self.clock_time_get,
            self.fd_close,
            self.fd_fdstat_get,
            self.fd_filestat_get,
            self.fd_prestat_get,
            self.fd_prestat_dir_name,
            self.fd_read,
            self.fd_seek,
            self.fd_write,
            self.proc_exit,
            self.random_get,
            self.sched_yield,
        )
        functions.update({function.__name__: function for function in supported})
        return {"wasi_snapshot_preview1": functions}

    def not_supported(self, *_: int) -> int:
        return NOT_SUPPORTED

    def put(self, address: int, layout: str, *values: int) -> int:
        """Writes little-endian fields and reports success."""
        self.guest.write(address & 0xFFFFFFFF, struct.pack("<" + layout, *values))
        return SUCCESS

    def args_sizes_get(self, count: int, size: int) -> int:
        self.put(count, "I", len(self.arguments))
        return self.put(size, "I", sum(map(len, self.arguments)))

    def args_get(self, pointers: int, buffer: int) -> int:
        for index, argument in enumerate(self.arguments):
            self.put(pointers + 4 * index, "I", buffer)
            self.guest.write(buffer, argument)
            buffer += len(argument)
        return SUCCESS

    def environ_sizes_get(self, count: int, size: int) -> int:
        self.put(count, "I", 0)
        return self.put(size, "I", 0)

    def environ_get(self, pointers: int, buffer: int) -> int:
        return SUCCESS

    def clock_res_get(self, clock: int, result: int) -> int:
        return self.put(result, "Q", 1_000_000)

    def clock_time_get(self, clock: int, precision: int, result: int) -> int:
        self.time += 1_000_000
        return self.put(result, "Q", self.time)

    def random_get(self, buffer: int, length: int) -> int:
        self.guest.write(buffer, self.random.randbytes(length))
        return SUCCESS

    def sched_yield(self) -> int:
        return SUCCESS

    def proc_exit(self, status: int) -> None:
        raise ExitError(status)

    def fd_prestat_get(self, descriptor: int, result: int) -> int:
        # No folder is open: a command asks from descriptor 3 on until it hears this.
        return BAD_DESCRIPTOR

    def fd_prestat_dir_name(self, descriptor: int, buffer: int, length: int) -> int:
        return BAD_DESCRIPTOR

    def fd_fdstat_get(self, descriptor: int, result: int) -> int:
        if not 0 <= descriptor <= 2:
            return BAD_DESCRIPTOR
        rights = RIGHTS_READ if descriptor == 0 else RIGHTS_WRITE
        return self.put(result, "BxHxxxxQQ", CHARACTER_DEVICE, 0, rights, 0)

    def fd_filestat_get(self, descriptor: int, result: int) -> int:
        if not 0 <= descriptor <= 2:
            return BAD_DESCRIPTOR
        return self.put(result, "QQB7xQQQQQ", 0, descriptor, CHARACTER_DEVICE, 1, 0, 0, 0, 0)

    def fd_close(self, descriptor: int) -> int:
        return SUCCESS if 0 <= descriptor <= 2 else BAD_DESCRIPTOR

    def fd_seek(self, descriptor: int, offset: int, whence: int, result: int) -> int:
        return NO_SEEK if 0 <= descriptor <= 2 else BAD_DESCRIPTOR

    def pieces(self, vectors: int, count: int) -> list[tuple[int, int]]:
        """The addresses and lengths of a scattered buffer."""
        table = self.guest.read(vectors, 8 * count)
        return [(address, length) for address, length in struct.iter_unpack("<II", table)]

    def fd_read(self, descriptor: int, vectors: int, count: int, result: int) -> int:
        if descriptor != 0:
            return BAD_DESCRIPTOR
        total = 0
        for address, length in self.pieces(vectors, count):
            piece, self.unread = self.unread[:length], self.unread[length:]
            self.guest.write(address, piece)
            total += len(piece)
        return self.put(result, "I", total)

    def fd_write(self, descriptor: int, vectors: int, count: int, result: int) -> int:
        if descriptor not in self.written:
            return BAD_DESCRIPTOR
        data = b"".join(self.guest.read(address, length) for address, length in self.pieces(vectors, count))
        self.written[descriptor] += data
        return self.put(result, "I", len(data))
