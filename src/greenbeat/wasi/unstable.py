"""`wasi_unstable`, the preview before preview 1, where that differs: three layouts, one order, one function less.

    filestat       0 device │ 8 inode │ 16 kind │ 20 links, 4 bytes │ 24 size │ 32 48 times                56 bytes
    whence         CUR, END, SET
    subscription   0 user data │ 8 what │ 16 identifier │ 24 clock │ 32 timeout │ 40 precision │ 48 flags  56 bytes
                                        │ 16 descriptor

https://github.com/WebAssembly/WASI/blob/main/legacy/preview0/docs.md
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from greenbeat.wasi import clocks, descriptors, paths, polling, process as processes, randomness, sockets
from greenbeat.wasi.constants import Errno, EventType, Failure, Rights, Whence
from greenbeat.wasi.functions import PREVIEW1, Table, function
from greenbeat.wasi.handles import Status
from greenbeat.wasi.polling import Subscription, checked_count, poll

if TYPE_CHECKING:
    from greenbeat.wasi.process import Process

# Importing these registers what is the same in both.
_GROUPS = (clocks, descriptors, paths, polling, processes, randomness, sockets)
_FILESTAT = struct.Struct("<QQB3xIQQQQ")
_SUBSCRIPTION = struct.Struct("<QB7xQI4xQQH6x")
_WHENCE = {0: Whence.CUR, 1: Whence.END, 2: Whence.SET}
_LOW_HALF = 0xFFFFFFFF

UNSTABLE: Table = {name: entry for name, entry in PREVIEW1.items() if name != "sock_accept"}
MODULES: dict[str, Table] = {"wasi_snapshot_preview1": PREVIEW1, "wasi_unstable": UNSTABLE}


@function("iIii", table=UNSTABLE)
def fd_seek(process: "Process", fd: int, offset: int, whence: int, result: int) -> None:
    """Move to another place in the file."""
    if whence not in _WHENCE:
        raise Failure(Errno.INVAL)
    descriptors.fd_seek(process, fd, offset, _WHENCE[whence], result)


def _put_status(process: "Process", address: int, status: Status) -> None:
    process.memory.pack(
        _FILESTAT,
        address,
        status.device,
        status.inode,
        status.kind,
        min(status.links, _LOW_HALF),
        status.size,
        status.accessed,
        status.modified,
        status.changed,
    )


@function("ii", table=UNSTABLE)
def fd_filestat_get(process: "Process", fd: int, result: int) -> None:
    """The size, the times and the rest of a file."""
    _put_status(process, result, process.handle(fd, Rights.FD_FILESTAT_GET).status())


@function("iiiii", table=UNSTABLE)
def path_filestat_get(process: "Process", fd: int, lookup: int, address: int, length: int, result: int) -> None:
    """The size, the times and the rest of a file."""
    _put_status(process, result, paths.status_at(process, fd, lookup, address, length))


def _subscriptions(table: memoryview) -> Iterator[Subscription]:
    for user, what, identifier, clock, timeout, _, flags in _SUBSCRIPTION.iter_unpack(table):
        number = clock if what == EventType.CLOCK else identifier & _LOW_HALF
        yield Subscription(user, what, number, timeout, flags)


@function("iiii", table=UNSTABLE)
def poll_oneoff(process: "Process", subscribed: int, events: int, count: int, result: int) -> None:
    """Wait until at least one of some things has happened."""
    table = process.memory.slice(subscribed, _SUBSCRIPTION.size * checked_count(count))
    poll(process, list(_subscriptions(table)), events, result)
