"""A guest whose exports are WASI's own functions: tests call them as a program would, with addresses in its memory."""

import struct
from collections.abc import Mapping
from typing import Any

import greenbeat as gb
from greenbeat.wasi.constants import Errno, Rights
from greenbeat.wasi.unstable import MODULES

_TYPES = {"i": "i32", "I": "i64"}
ALL = Rights.FILE | Rights.DIRECTORY
CREAT, DIRECTORY, EXCL, TRUNC = 1, 2, 4, 8
APPEND, NONBLOCK = 1, 4


class Refused(Exception):
    """A function did not do what was asked for."""

    def __init__(self, code: int) -> None:
        super().__init__(Errno(code).name)
        self.name = Errno(code).name


def module_text(module: str) -> str:
    """A module that imports all functions of WASI and exports each under its name."""
    imports, functions = [], []
    for name, entry in MODULES[module].items():
        params = " ".join(_TYPES[letter] for letter in entry.params)
        result = f"(result {_TYPES[entry.results]})" if entry.results else ""
        kind = f"(param {params}) {result}" if params else result
        imports.append(f'(import "{module}" "{name}" (func ${name} {kind}))')
        gets = " ".join(f"(local.get {index})" for index in range(len(entry.params)))
        functions.append(f'(func (export "{name}") {kind} (call ${name} {gets}))')
    return f'(module {" ".join(imports)} (memory (export "memory") 2 16) {" ".join(functions)})'


_modules: dict[str, gb.Module] = {}


class Guest:
    """An instance of it. Strings that are given to `call` become an address and a length."""

    def __init__(self, wasi: gb.Wasi, limits: gb.Limits | None = None, module: str = "wasi_snapshot_preview1") -> None:
        if module not in _modules:
            _modules[module] = gb.Module.from_wat(module_text(module))
        self.instance = _modules[module].instantiate(wasi=wasi, limits=limits)
        self.memory = self.instance.exports["memory"]

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *error: object) -> None:
        self.instance.close()

    def call(self, name: str, *arguments: int | str | bytes) -> None:
        """Call a function; what it refuses is raised."""
        given: list[int] = []
        place = 0x8000
        for argument in arguments:
            if isinstance(argument, int):
                given.append(argument)
                continue
            data = argument.encode() if isinstance(argument, str) else argument
            self.memory.write(place, data)
            given += [place, len(data)]
            place += len(data) + 8
        code = self.instance.exports[name](*given)
        if code:
            raise Refused(code)

    def get(self, layout: str, address: int = 0) -> tuple[Any, ...]:
        return struct.unpack("<" + layout, self.memory.read(address, struct.calcsize("<" + layout)))

    def put(self, address: int, layout: str, *values: Any) -> None:
        self.memory.write(address, struct.pack("<" + layout, *values))

    def open(
        self,
        path: str | bytes,
        oflags: int = 0,
        rights: int = ALL & ~Rights.FD_WRITE,
        *,
        fd: int = 3,
        flags: int = 0,
        follow: bool = True,
    ) -> int:
        self.call("path_open", fd, int(follow), path, oflags, rights, ALL, flags, 0)
        return int(self.get("I")[0])

    def create(self, path: str, data: bytes = b"", *, fd: int = 3) -> None:
        """Make a file."""
        opened = self.open(path, CREAT | TRUNC, ALL, fd=fd)
        if data:
            self.write(opened, data)
        self.call("fd_close", opened)

    def contents(self, path: str, *, fd: int = 3) -> bytes:
        """The first part of a file."""
        opened = self.open(path, fd=fd)
        data = self.read(opened, 4096)
        self.call("fd_close", opened)
        return data

    def vectors(self, *lengths: int) -> tuple[int, int]:
        """A scattered buffer from 0x4000 on; its table is at 0x100."""
        address = 0x4000
        for index, length in enumerate(lengths):
            self.put(0x100 + 8 * index, "II", address, length)
            address += length
        return 0x100, len(lengths)

    def read(self, fd: int, *lengths: int) -> bytes:
        self.call("fd_read", fd, *self.vectors(*lengths), 0)
        return bytes(self.memory.read(0x4000, self.get("I")[0]))

    def write(self, fd: int, *pieces: bytes) -> int:
        self.memory.write(0x4000, b"".join(pieces))
        self.call("fd_write", fd, *self.vectors(*map(len, pieces)), 0)
        return int(self.get("I")[0])

    def seek(self, fd: int, offset: int, whence: int) -> int:
        self.call("fd_seek", fd, offset, whence, 0)
        return int(self.get("Q")[0])

    def status(self, path: str, *, follow: bool = True, fd: int = 3) -> tuple[int, ...]:
        """Device, inode, kind, links, size, times."""
        self.call("path_filestat_get", fd, int(follow), path, 0)
        return self.get("QQB7xQQQQQ")

    def names(self, fd: int = 3, room: int = 4096) -> list[str]:
        """What is in a directory."""
        found, cookie = [], 0
        while True:
            self.call("fd_readdir", fd, 0x4000, room, cookie, 0)
            used = self.get("I")[0]
            data, place = self.memory.read(0x4000, used), 0
            while place + 24 <= used:
                following, _, length, _ = struct.unpack_from("<QQIB", data, place)
                if place + 24 + length > used:
                    break
                found.append(data[place + 24 : place + 24 + length].decode())
                place, cookie = place + 24 + length, following
            if used < room:
                return found

    def refusal(self, name: str, *arguments: int | str | bytes) -> str:
        """What a function refuses with; `done` if it does not."""
        try:
            self.call(name, *arguments)
        except Refused as refused:
            return refused.name
        return "done"

    def open_refusal(self, path: str | bytes, *arguments: Any, **named: Any) -> str:
        """What opening is refused with; `done` if it is not."""
        try:
            self.call("fd_close", self.open(path, *arguments, **named))
        except Refused as refused:
            return refused.name
        return "done"


def guest(limits: Mapping[str, Any] | None = None, **given: Any) -> Guest:
    """A guest with what `gb.Wasi` takes."""
    return Guest(gb.Wasi(**given), gb.Limits(**limits) if limits else None)
