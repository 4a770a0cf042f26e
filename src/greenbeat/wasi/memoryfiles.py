"""The in-memory file system: a tree of nodes, seen by guests as folders and files, by Python as a mapping.

    files = Files({"etc/config.ini": "...", "data/": b""})       a name that ends in a slash is an empty folder
    files["etc/config.ini"]                                      bytes, before and after a guest has worked on them

Nothing of the host's file system is involved, and what it may hold is limited (see `quota.py`).
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from greenbeat.wasi.constants import Errno, Failure, FdFlags, FileType, OpenFlags, Rights, Whence
from greenbeat.wasi.folders import Folder, Item
from greenbeat.wasi.handles import Buffers, Handle, Status
from greenbeat.wasi.quota import Quota

# What a node takes besides its contents and its name.
NODE = 256
LONGEST_NAME = 255
# How deep folders may lie in each other: whoever looks through them needs no more room than that.
DEEPEST = 255
LARGEST_FILE = (1 << 63) - 1
_DEVICE = 0x6762


class Node:
    """A file, folder or link of a tree, which numbers its nodes."""

    kind: int

    def __init__(self, now: int, numbers: Iterator[int]) -> None:
        self.inode = next(numbers)
        self.links = 1
        self.accessed = self.modified = self.changed = now

    @property
    def size(self) -> int:
        return 0

    def status(self) -> Status:
        """What `filestat_get` tells."""
        return Status(_DEVICE, self.inode, self.kind, self.links, self.size, self.accessed, self.modified, self.changed)


class FileNode(Node):
    """A regular file."""

    kind = FileType.REGULAR_FILE

    def __init__(self, now: int, numbers: Iterator[int], data: bytes = b"") -> None:
        super().__init__(now, numbers)
        self.data = bytearray(data)
        self.opened = 0

    @property
    def size(self) -> int:
        return len(self.data)


class FolderNode(Node):
    """A directory."""

    kind = FileType.DIRECTORY

    def __init__(self, now: int, numbers: Iterator[int], parent: "FolderNode | None") -> None:
        super().__init__(now, numbers)
        self.numbers, self.parent, self.nodes = numbers, parent, dict[bytes, Node]()

    @property
    def depth(self) -> int:
        """How many folders it lies in."""
        depth, above = 0, self.parent
        while above is not None:
            depth, above = depth + 1, above.parent
        return depth

    @property
    def height(self) -> int:
        """How many folders lie in each other below it."""
        return max((1 + node.height for node in self.nodes.values() if isinstance(node, FolderNode)), default=0)


class LinkNode(Node):
    """A symbolic link."""

    kind = FileType.SYMBOLIC_LINK

    def __init__(self, now: int, numbers: Iterator[int], target: bytes) -> None:
        super().__init__(now, numbers)
        self.target = target

    @property
    def size(self) -> int:
        return len(self.target)


class Files(Mapping[str, bytes]):
    """A file system in memory, as a mapping of its regular files: names without a slash in front, and their contents.

    Args:
        contents: what is in it at first, bytes or text by name. Folders come to be as they are needed; a name that
            ends in a slash is an empty one.
        now: the time that they were made, in nanoseconds since 1970; by default the present.

    Raises:
        ValueError: a name is none, or one file is in the place of another's folder.
    """

    def __init__(self, contents: Mapping[str, Any] | None = None, now: int | None = None) -> None:
        self.root = FolderNode(time.time_ns() if now is None else now, itertools.count(1), None)
        for name, data in (contents or {}).items():
            self._add(name, data)

    def _add(self, name: str, data: Any) -> None:
        folder, parts = self.root, [part for part in name.encode().split(b"/") if part not in (b"", b".")]
        if b".." in parts or b"\0" in name.encode() or not parts:
            raise ValueError(f"{name!r} is no name for a file in memory")
        last = None if name.endswith("/") else parts.pop()
        for part in parts:
            if part not in folder.nodes:
                folder.nodes[part] = FolderNode(folder.modified, folder.numbers, folder)
            found = folder.nodes[part]
            if not isinstance(found, FolderNode):
                raise ValueError(f"{name!r}: {part.decode()!r} is a file already, not a folder")
            folder = found
        if last is not None:
            if last in folder.nodes:
                raise ValueError(f"{name!r} is there already")
            contents = data.encode() if isinstance(data, str) else bytes(memoryview(data))
            folder.nodes[last] = FileNode(folder.modified, folder.numbers, contents)

    def _walk(self, folder: FolderNode, prefix: str) -> Iterator[tuple[str, FileNode]]:
        for name, node in folder.nodes.items():
            path = prefix + name.decode()
            if isinstance(node, FolderNode):
                yield from self._walk(node, path + "/")
            elif isinstance(node, FileNode):
                yield path, node

    def __getitem__(self, name: str) -> bytes:
        node: Node | None = self.root
        for part in name.encode().split(b"/"):
            if part not in (b"", b"."):
                node = node.nodes.get(part) if isinstance(node, FolderNode) else None
        if not isinstance(node, FileNode):
            raise KeyError(name)
        return bytes(node.data)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._walk(self.root, ""))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<greenbeat files: {', '.join(self) or 'none'}>"

    @property
    def stored(self) -> int:
        """The bytes that it takes."""
        return sum(len(name) + NODE + node.size for name, node in self._walk(self.root, ""))


class MemoryFile(Handle):
    """An open file in memory."""

    kind = FileType.REGULAR_FILE
    possible = Rights.FILE

    def __init__(
        self, node: FileNode, quota: Quota, now: Callable[[], int], *, reads: bool, writes: bool, flags: int
    ) -> None:
        super().__init__()
        self.node, self.quota, self.now, self.reads, self.writes, self.flags = node, quota, now, reads, writes, flags
        self.position = 0
        node.opened += 1

    def close(self) -> None:
        self.node.opened -= 1
        _forget(self.node, self.quota)

    def available(self) -> int:
        return max(0, self.node.size - self.position)

    def read(self, buffers: Buffers) -> int:
        count = self.read_at(buffers, self.position)
        self.position += count
        return count

    def write(self, buffers: Buffers) -> int:
        if self.writes and self.flags & FdFlags.APPEND:
            self.position = self.node.size
        count = self.write_at(buffers, self.position)
        self.position += count
        return count

    def read_at(self, buffers: Buffers, offset: int) -> int:
        if not self.reads:
            raise Failure(Errno.BADF)
        if offset < 0:
            raise Failure(Errno.INVAL)
        start = offset
        with memoryview(self.node.data) as data:
            for buffer in buffers:
                piece = data[offset : offset + len(buffer)]
                buffer[: len(piece)] = piece
                offset += len(piece)
        self.node.accessed = self.now()
        return offset - start

    def write_at(self, buffers: Buffers, offset: int) -> int:
        if not self.writes:
            raise Failure(Errno.BADF)
        if offset < 0:
            raise Failure(Errno.INVAL)
        fitting = self.quota.writable(buffers)
        start = offset
        if offset > self.node.size and fitting:
            self._resize(offset)
        data = self.node.data
        for buffer in fitting:
            end = offset + len(buffer)
            try:
                self.quota.store(max(0, end - len(data)))
            except Failure:
                if offset > start:
                    break
                raise
            data[offset:end] = buffer
            offset = end
        self.quota.wrote(offset - start)
        self.node.modified = self.node.changed = self.now()
        return offset - start

    def _resize(self, size: int) -> None:
        data = self.node.data
        self.quota.store(size - len(data))
        if size < len(data):
            del data[size:]
        else:
            data.extend(bytes(size - len(data)))

    def seek(self, offset: int, whence: int) -> int:
        start = {Whence.SET: 0, Whence.CUR: self.position, Whence.END: self.node.size}.get(whence)
        if start is None or not 0 <= start + offset <= LARGEST_FILE:
            raise Failure(Errno.INVAL)
        self.position = start + offset
        return self.position

    def status(self) -> Status:
        return self.node.status()

    def set_size(self, size: int) -> None:
        if not self.writes:
            raise Failure(Errno.INVAL)
        if size < 0:
            raise Failure(Errno.FBIG)
        self._resize(size)
        self.node.modified = self.node.changed = self.now()

    def set_times(self, accessed: int, modified: int) -> None:
        self.node.accessed, self.node.modified = accessed, modified

    def allocate(self, offset: int, length: int) -> None:
        if not self.writes:
            raise Failure(Errno.BADF)
        if offset < 0 or length <= 0:
            raise Failure(Errno.INVAL)
        if offset + length > self.node.size:
            self._resize(offset + length)

    def advise(self, offset: int, length: int, advice: int) -> None:
        if not 0 <= advice <= 5 or offset < 0 or length < 0:
            raise Failure(Errno.INVAL)

    def sync(self, data_only: bool) -> None:
        """There is nothing to be done."""


def _forget(node: FileNode, quota: Quota) -> None:
    """Give back what a file takes, once it has neither a name nor a reader."""
    if not node.links and not node.opened:
        quota.store(-node.size - NODE)
        node.data.clear()


class MemoryFolder(Folder):
    """A directory in memory."""

    writable = True

    def __init__(self, node: FolderNode, quota: Quota, now: Callable[[], int]) -> None:
        self.node, self.quota, self.now = node, quota, now

    def close(self) -> None:
        """Nothing of the host is kept."""

    def _node(self, name: bytes) -> Node:
        found = self.node if name == b"." else self.node.nodes.get(name)
        if found is None:
            raise Failure(Errno.NAMETOOLONG if len(name) > LONGEST_NAME else Errno.NOENT)
        return found

    def _insert(self, name: bytes, node: Node) -> None:
        self.node.nodes[name] = node
        self.node.modified = self.node.changed = self.now()

    def _free(self, name: bytes, size: int = 0) -> None:
        """Make sure that a name can be added, and take the room for it."""
        if name in self.node.nodes or name == b".":
            raise Failure(Errno.EXIST)
        if len(name) > LONGEST_NAME:
            raise Failure(Errno.NAMETOOLONG)
        if self.node.parent is None and not self.node.links:
            raise Failure(Errno.NOENT)
        self.quota.store(NODE + len(name) + size)

    def passage(self, name: bytes) -> "MemoryFolder":
        found = self._node(name)
        if not isinstance(found, FolderNode):
            raise Failure(Errno.NOTDIR)
        return MemoryFolder(found, self.quota, self.now)

    folder = passage

    def open(self, name: bytes, *, reads: bool, writes: bool, oflags: int, flags: int) -> Handle:
        found = self.node.nodes.get(name)
        if found is None:
            if not oflags & OpenFlags.CREAT:
                raise Failure(Errno.NOENT)
            self._free(name)
            found = FileNode(self.now(), self.node.numbers)
            self._insert(name, found)
        elif oflags & OpenFlags.CREAT and oflags & OpenFlags.EXCL:
            raise Failure(Errno.EXIST)
        if not isinstance(found, FileNode):
            raise Failure(Errno.ISDIR if isinstance(found, FolderNode) else Errno.LOOP)
        if oflags & OpenFlags.TRUNC:
            self.quota.store(-found.size)
            found.data.clear()
            found.modified = found.changed = self.now()
        return MemoryFile(found, self.quota, self.now, reads=reads, writes=writes, flags=flags)

    def link_target(self, name: bytes) -> bytes | None:
        found = self.node.nodes.get(name)
        return found.target if isinstance(found, LinkNode) else None

    def status(self, name: bytes) -> Status:
        return self._node(name).status()

    def set_times(self, name: bytes, accessed: int, modified: int) -> None:
        found = self._node(name)
        found.accessed, found.modified, found.changed = accessed, modified, self.now()

    def items(self) -> list[Item]:
        own = self.node.inode
        listed = [Item(name, node.inode, node.kind) for name, node in self.node.nodes.items()]
        return [Item(b".", own, FileType.DIRECTORY), Item(b"..", own, FileType.DIRECTORY), *listed]

    def make_folder(self, name: bytes) -> None:
        if self.node.depth >= DEEPEST:
            raise Failure(Errno.NAMETOOLONG)
        self._free(name)
        self._insert(name, FolderNode(self.now(), self.node.numbers, self.node))

    def make_link(self, name: bytes, target: bytes) -> None:
        self._free(name, len(target))
        self._insert(name, LinkNode(self.now(), self.node.numbers, target))

    def _remove(self, name: bytes, node: Node) -> None:
        del self.node.nodes[name]
        self.node.modified = self.node.changed = node.changed = self.now()
        node.links -= 1
        self.quota.store(-len(name))
        if isinstance(node, FileNode):
            _forget(node, self.quota)
        elif not node.links:
            self.quota.store(-node.size - NODE)
        if isinstance(node, FolderNode):
            node.parent = None

    def remove_folder(self, name: bytes) -> None:
        found = self._node(name)
        if not isinstance(found, FolderNode):
            raise Failure(Errno.NOTDIR)
        if found.nodes:
            raise Failure(Errno.NOTEMPTY)
        self._remove(name, found)

    def remove_file(self, name: bytes) -> None:
        found = self._node(name)
        if isinstance(found, FolderNode):
            raise Failure(Errno.ISDIR)
        self._remove(name, found)

    def rename(self, name: bytes, folder: Folder, new: bytes) -> None:
        if not isinstance(folder, MemoryFolder) or folder.quota is not self.quota:
            raise Failure(Errno.XDEV)
        found, there = self._node(name), folder.node.nodes.get(new)
        if found is there:
            return
        if isinstance(found, FolderNode):
            _no_loop(found, folder.node)
            if folder.node.depth + found.height >= DEEPEST:
                raise Failure(Errno.NAMETOOLONG)
            if there is not None and not isinstance(there, FolderNode):
                raise Failure(Errno.NOTDIR)
            if isinstance(there, FolderNode) and there.nodes:
                raise Failure(Errno.NOTEMPTY)
        elif isinstance(there, FolderNode):
            raise Failure(Errno.ISDIR)
        if there is not None:
            folder._remove(new, there)
        folder._free(new)
        del self.node.nodes[name]
        self.quota.store(-len(name) - NODE)
        self.node.modified = self.node.changed = found.changed = self.now()
        folder._insert(new, found)
        if isinstance(found, FolderNode):
            found.parent = folder.node

    def hard_link(self, name: bytes, folder: Folder, new: bytes) -> None:
        if not isinstance(folder, MemoryFolder) or folder.quota is not self.quota:
            raise Failure(Errno.XDEV)
        found = self._node(name)
        if isinstance(found, FolderNode):
            raise Failure(Errno.PERM)
        folder._free(new)
        self.quota.store(-NODE)
        found.links += 1
        folder._insert(new, found)


def _no_loop(moved: FolderNode, into: FolderNode) -> None:
    """Refuse to put a folder into itself."""
    place: FolderNode | None = into
    while place is not None:
        if place is moved:
            raise Failure(Errno.INVAL)
        place = place.parent
