"""What a descriptor can stand for: the operations of all kinds, and the answers of those that cannot do them.

Handle
├── HostFile, HostStream      hostfiles.py      files of the host; what the process itself was given
├── MemoryFile                memoryfiles.py    files of the in-memory file system
├── Source, Sink              streams.py        standard input and outputs made of Python objects
├── Directory                 directories.py    a folder, on the host or in memory
└── Listener, Connection      sockets.py
"""

from collections.abc import Sequence

from greenbeat.native.records import record
from greenbeat.wasi.constants import Errno, Failure, FileType, Rights

Buffers = Sequence[memoryview]


@record(frozen=True, slots=True)
class Status:
    """What `filestat_get` tells; times are nanoseconds since 1970."""

    device: int = 0
    inode: int = 0
    kind: int = FileType.UNKNOWN
    links: int = 1
    size: int = 0
    accessed: int = 0
    modified: int = 0
    changed: int = 0


class Handle:
    """An open file of the guest's.

    Attributes:
        kind: a `FileType`.
        flags: its `FdFlags`.
        rights, inheriting: what it is said to be good for, and what is opened through it.
        denied, denies: what the guest itself has given up by `fd_fdstat_set_rights`, for it and for what is opened
            through it. Only that is refused as NOTCAPABLE: programs ask for too few rights when they open files,
            because other runtimes ignore rights altogether.
        preopen: the name under which the guest finds it at its start, if it is a directory that was given.
        host: the host's descriptor to wait for; None if it never blocks.
    """

    kind: int = FileType.UNKNOWN
    possible: int = Rights.STREAM

    def __init__(self) -> None:
        self.flags = 0
        self.rights = self.possible
        self.inheriting = 0
        self.denied = 0
        self.denies = 0
        self.preopen: bytes | None = None

    @property
    def host(self) -> int | None:
        return None

    def close(self) -> None:
        """The guest is through with it."""

    def available(self) -> int:
        """How many bytes can be read at once, as far as that is known."""
        return 0

    def read(self, buffers: Buffers) -> int:
        raise Failure(Errno.BADF)

    def write(self, buffers: Buffers) -> int:
        raise Failure(Errno.BADF)

    def read_at(self, buffers: Buffers, offset: int) -> int:
        raise Failure(Errno.SPIPE)

    def write_at(self, buffers: Buffers, offset: int) -> int:
        raise Failure(Errno.SPIPE)

    def seek(self, offset: int, whence: int) -> int:
        raise Failure(Errno.SPIPE)

    def status(self) -> Status:
        return Status(kind=self.kind)

    def set_flags(self, flags: int) -> None:
        """Change APPEND and NONBLOCK."""
        self.flags = flags

    def set_size(self, size: int) -> None:
        raise Failure(Errno.INVAL)

    def set_times(self, accessed: int, modified: int) -> None:
        raise Failure(Errno.INVAL)

    def allocate(self, offset: int, length: int) -> None:
        raise Failure(Errno.SPIPE)

    def advise(self, offset: int, length: int, advice: int) -> None:
        raise Failure(Errno.SPIPE)

    def sync(self, data_only: bool) -> None:
        raise Failure(Errno.INVAL)
