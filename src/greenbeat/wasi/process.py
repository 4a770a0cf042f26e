"""A guest as WASI sees it, a process: arguments, environment, open descriptors, memory; and how it ends."""

import heapq
import signal
import struct
from typing import TYPE_CHECKING

from greenbeat.errors import GreenbeatError
from greenbeat.wasi.clocks import Clock
from greenbeat.wasi.constants import Errno, Failure
from greenbeat.wasi.directories import Directory
from greenbeat.wasi.functions import function
from greenbeat.wasi.guestmemory import MASK, U32, GuestMemory
from greenbeat.wasi.handles import Handle
from greenbeat.wasi.quota import Quota
from greenbeat.wasi.randomness import RandomBytes

if TYPE_CHECKING:
    from collections.abc import Sequence

# WASI's signals, by their numbers.
_SIGNALS = tuple(
    "NONE HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM CHLD CONT STOP TSTP TTIN TTOU URG XCPU "  # noqa: SIM905
    "XFSZ VTALRM PROF WINCH POLL PWR SYS".split()
)
_IGNORED = ("NONE", "CHLD", "CONT", "URG", "WINCH")
_STOPPING = ("STOP", "TSTP", "TTIN", "TTOU")
# As shells tell that a process was ended by a signal.
SIGNALLED = 128


class Exit(GreenbeatError):
    """The guest ended itself, by `proc_exit` or by a signal. `greenbeat.run` tells the code in its result.

    Attributes:
        code: its exit status; 128 and the signal's number if it was a signal.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"the guest exited with status {code}")
        self.code = code


class Process:
    """One instance's side of WASI. `close` gives back what it has open.

    Attributes:
        arguments, environment: as the guest gets them, without the NULs at the end.
        memory: the instance's memory.
        quota, clock, random: see there.
    """

    def __init__(
        self,
        arguments: "Sequence[bytes]",
        environment: "Sequence[bytes]",
        quota: Quota,
        clock: Clock,
        random: RandomBytes,
    ) -> None:
        self.arguments, self.environment = arguments, environment
        self.quota, self.clock, self.random = quota, clock, random
        self.memory = GuestMemory()
        self._open: dict[int, Handle] = {}
        self._free: list[int] = []

    def handle(self, fd: int, right: int = 0) -> Handle:
        """What a descriptor stands for.

        Raises:
            Failure: BADF, it is not open; NOTCAPABLE, the guest has given up the right to do this with it.
        """
        found = self._open.get(fd)
        if found is None:
            raise Failure(Errno.BADF)
        if found.denied & right:
            raise Failure(Errno.NOTCAPABLE)
        return found

    def directory(self, fd: int, right: int = 0) -> Directory:
        """What a descriptor stands for, if that is a directory.

        Raises:
            Failure: BADF, NOTCAPABLE as `handle`; NOTDIR.
        """
        found = self.handle(fd, right)
        if not isinstance(found, Directory):
            raise Failure(Errno.NOTDIR)
        return found

    def full(self) -> bool:
        """Whether there may be no more descriptors."""
        return len(self._open) >= self.quota.open_files

    def add(self, handle: Handle) -> int:
        """Give a handle the lowest descriptor that is free.

        Raises:
            Failure: MFILE, there are too many; the handle is closed then.
        """
        if self.full():
            handle.close()
            raise Failure(Errno.MFILE)
        fd = heapq.heappop(self._free) if self._free else len(self._open)
        self._open[fd] = handle
        return fd

    def close_descriptor(self, fd: int) -> None:
        """Close a descriptor.

        Raises:
            Failure: BADF, it is not open.
        """
        found = self.handle(fd)
        del self._open[fd]
        heapq.heappush(self._free, fd)
        found.close()

    def renumber(self, source: int, target: int) -> None:
        """Put a descriptor in the place of another, which is closed.

        Raises:
            Failure: BADF, one of them is not open.
        """
        moved, replaced = self.handle(source), self.handle(target)
        if moved is replaced:
            return
        self._open[target] = moved
        del self._open[source]
        heapq.heappush(self._free, source)
        replaced.close()

    def close(self) -> None:
        """Close everything."""
        for handle in self._open.values():
            handle.close()
        self._open.clear()
        self._free.clear()


def _sizes(process: Process, strings: "Sequence[bytes]", count: int, size: int) -> None:
    process.memory.pack(U32, count, len(strings))
    process.memory.pack(U32, size, sum(map(len, strings)) + len(strings))


def _strings(process: Process, strings: "Sequence[bytes]", pointers: int, buffer: int) -> None:
    table = process.memory.slice(pointers, 4 * len(strings))
    text = b"".join(each + b"\0" for each in strings)
    address, addresses = buffer & MASK, []
    for each in strings:
        addresses.append(address)
        address += len(each) + 1
    process.memory.slice(buffer, len(text))[:] = text
    struct.pack_into(f"<{len(strings)}I", table, 0, *addresses)


@function("ii")
def args_sizes_get(process: Process, count: int, size: int) -> None:
    """How many arguments there are, and how long they are together."""
    _sizes(process, process.arguments, count, size)


@function("ii")
def args_get(process: Process, pointers: int, buffer: int) -> None:
    """The arguments."""
    _strings(process, process.arguments, pointers, buffer)


@function("ii")
def environ_sizes_get(process: Process, count: int, size: int) -> None:
    """How many variables there are, and how long they are together."""
    _sizes(process, process.environment, count, size)


@function("ii")
def environ_get(process: Process, pointers: int, buffer: int) -> None:
    """The environment, each variable as `name=value`."""
    _strings(process, process.environment, pointers, buffer)


@function("i", "")
def proc_exit(process: Process, code: int) -> None:
    """End the guest: what unwinds it is `Exit`."""
    raise Exit(code & MASK)


@function("i")
def proc_raise(process: Process, number: int) -> None:
    """Send the guest a signal: it is ended by all that would end a process, and does not notice the others."""
    if not 0 <= number < len(_SIGNALS):
        raise Failure(Errno.INVAL)
    name = _SIGNALS[number]
    if name in _STOPPING:
        raise Failure(Errno.NOTSUP)
    if name not in _IGNORED:
        raise Exit(SIGNALLED + getattr(signal, f"SIG{name}", number))


@function("")
def sched_yield(process: Process) -> None:
    """Let others run; the beat does that in any case."""
