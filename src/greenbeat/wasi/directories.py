"""Open directories, and the listing of what is in them."""

import struct

from greenbeat.wasi.constants import Errno, Failure, FdFlags, FileType, Rights
from greenbeat.wasi.folders import Folder, Item
from greenbeat.wasi.handles import Buffers, Handle, Status

_ENTRY = struct.Struct("<QQIB3x")


class Directory(Handle):
    """A folder that the guest has open, given at its start (`preopen` is its name then) or opened since."""

    kind = FileType.DIRECTORY
    possible = Rights.DIRECTORY

    def __init__(self, folder: Folder, preopen: bytes | None = None) -> None:
        super().__init__()
        self.folder, self.preopen = folder, preopen
        self.inheriting = Rights.INHERITED
        self._items: list[Item] | None = None

    def close(self) -> None:
        self.folder.close()

    def listing(self, room: memoryview, cookie: int) -> int:
        """Fill `room` with entries from the one on that a cookie stands for; the last may be cut off.

        The names are read when a listing begins, so one goes on as it began whatever happens in the folder meanwhile.

        Returns:
            How many bytes were put; less than there is room for at the end.
        """
        if cookie == 0 or self._items is None:
            self._items = self.folder.items()
        if not 0 <= cookie <= len(self._items):
            raise Failure(Errno.INVAL)
        used = 0
        for number, item in enumerate(self._items[cookie:], cookie + 1):
            entry = _ENTRY.pack(number, item.inode, len(item.name), item.kind) + item.name
            piece = entry[: len(room) - used]
            room[used : used + len(piece)] = piece
            used += len(piece)
            if used == len(room):
                break
        return used

    def read(self, buffers: Buffers) -> int:
        raise Failure(Errno.ISDIR)

    def write(self, buffers: Buffers) -> int:
        raise Failure(Errno.ISDIR)

    def read_at(self, buffers: Buffers, offset: int) -> int:
        raise Failure(Errno.ISDIR)

    def write_at(self, buffers: Buffers, offset: int) -> int:
        raise Failure(Errno.ISDIR)

    def seek(self, offset: int, whence: int) -> int:
        raise Failure(Errno.ISDIR)

    def status(self) -> Status:
        return self.folder.status(b".")

    def set_flags(self, flags: int) -> None:
        self.flags = flags & ~FdFlags.APPEND

    def set_size(self, size: int) -> None:
        raise Failure(Errno.ISDIR)

    def set_times(self, accessed: int, modified: int) -> None:
        if not self.folder.writable:
            raise Failure(Errno.ROFS)
        self.folder.set_times(b".", accessed, modified)

    def allocate(self, offset: int, length: int) -> None:
        raise Failure(Errno.ISDIR)

    def advise(self, offset: int, length: int, advice: int) -> None:
        raise Failure(Errno.ISDIR)

    def sync(self, data_only: bool) -> None:
        """The host writes directories when it sees fit."""
