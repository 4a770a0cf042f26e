"""`greenbeat.Wasi`: what a guest gets to see of the world.

    wasi = gb.Wasi(["tool", "-v"], stdin=b"...", dirs={"/data": ("some/folder", "ro")}, files={"in.txt": "..."})
    with module.instantiate(wasi=wasi) as tool:
        code = wasi.start(tool)
    wasi.stdout, wasi.files["out.txt"]

Nothing is there that was not given: no directory, no variable of the environment, an empty standard input.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from greenbeat.errors import GreenbeatError, LinkError
from greenbeat.wasi import streams
from greenbeat.wasi.clocks import Clock, VirtualClock
from greenbeat.wasi.constants import ClockId, FdFlags
from greenbeat.wasi.directories import Directory
from greenbeat.wasi.folders import open_folder
from greenbeat.wasi.functions import bind, bind_without_result
from greenbeat.wasi.handles import Handle
from greenbeat.wasi.hostfiles import HostStream
from greenbeat.wasi.memoryfiles import Files, MemoryFolder
from greenbeat.wasi.process import Exit, Process
from greenbeat.wasi.quota import Quota
from greenbeat.wasi.randomness import RandomBytes, random_bytes
from greenbeat.wasi.sockets import Socket
from greenbeat.wasi.unstable import MODULES
from greenbeat.wasi.waiting import wait_for

if TYPE_CHECKING:
    from datetime import datetime

    from greenbeat.api.instance import Instance
    from greenbeat.api.limits import Limits
    from greenbeat.api.module import Module

HostPath = str | os.PathLike[str]
_TYPES = {"i": "i32", "I": "i64"}
_ACCESS = {"ro": False, "rw": True}
_ROOT = "/"


class Wasi:
    """What a guest gets: arguments, environment, standard streams, directories, files, time, chance and sockets.

    Args:
        args: its arguments; the first is by custom the program's name.
        env: its environment.
        stdin: bytes or text; a file object; a callable that gets a number and returns at most as many bytes, none at
            the end; or `greenbeat.INHERIT`, the process's own. By default it is empty.
        stdout, stderr: a file object; a callable that gets bytes; `greenbeat.INHERIT`. By default what is written is
            kept, and can be read from the attribute of the same name.
        dirs: directories of the host by the names that the guest sees: a path, or a pair of a path and "ro" or "rw".
            They are read-write unless told otherwise.
        files: a file system in memory, which the guest sees as `/`: contents (bytes or text) by name, or a `Files`
            object. What becomes of it can be read from the attribute of the same name.
        clock: None for the host's clocks; seconds since 1970 or a datetime for a `VirtualClock`; or any `Clock`.
        random: None for the system's random bytes; a number, their seed; or a callable that makes so many bytes.
        sockets: sockets for the guest to accept on or talk over. They get the descriptors behind the directories'.

    Raises:
        TypeError, ValueError: something given is none of these.
    """

    def __init__(
        self,
        args: Iterable[str | bytes] = (),
        *,
        env: Mapping[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        dirs: Mapping[str, HostPath | tuple[HostPath, str]] | None = None,
        files: Mapping[str, Any] | None = None,
        clock: "Clock | float | datetime | None" = None,
        random: int | RandomBytes | None = None,
        sockets: Iterable[Any] = (),
    ) -> None:
        if isinstance(args, str | bytes):
            raise TypeError(f"args is a list of arguments, not {args!r}")
        self._arguments = [_encoded(each, "an argument") for each in args]
        self._environment = [_variable(name, value) for name, value in (env or {}).items()]
        self._directories = [_directory(guest, given) for guest, given in (dirs or {}).items()]
        self._clock = _clock(clock)
        self._files = _files(files, self._clock)
        if self._files is not None and any(guest == _ROOT for guest, _, _ in self._directories):
            raise ValueError("files are seen as '/': no directory can have that name as well")
        self._random = random_bytes(random)
        self._sockets = list(sockets)
        self._kept = {1: bytearray(), 2: bytearray()}
        self._input = _input(stdin)
        self._outputs = {1: _output(stdout, "stdout"), 2: _output(stderr, "stderr")}

    @property
    def stdout(self) -> bytes:
        """What guests have written to their standard output, unless it goes elsewhere."""
        return bytes(self._kept[1])

    @property
    def stderr(self) -> bytes:
        """What guests have written to their standard error, unless it goes elsewhere."""
        return bytes(self._kept[2])

    @property
    def files(self) -> Files:
        """The file system in memory, as a mapping of contents by name."""
        return self._files if self._files is not None else Files()

    def start(self, instance: "Instance") -> int:
        """Run a command, `_start`, to its end; returns its exit status.

        Raises:
            GreenbeatError: the instance is no command.
            Trap, Exhausted: the guest did not come to its end.
        """
        start = instance.exports.get("_start")
        if start is None:
            raise GreenbeatError("the module exports no _start: it is a library whose exports are to be called")
        try:
            start()
        except Exit as end:
            return end.code
        return 0

    def instantiate(self, module: "Module", imports: Mapping[str, Any], limits: "Limits") -> "Instance":
        """See `Module.instantiate`. A library is told to initialize itself, by its export `_initialize`."""
        from greenbeat.api.instance import instantiate
        from greenbeat.api.memory import Memory

        process = self._process(limits)
        try:
            instance = instantiate(module, _imports(module, process, imports), limits)
            instance.on_close(process.close)
            memory = instance.exports.get("memory")
            if isinstance(memory, Memory):
                process.memory.bind(memory)
            if "_initialize" in instance.exports and "_start" not in instance.exports:
                instance.exports["_initialize"]()
        except BaseException:
            process.close()
            raise
        return instance

    def _process(self, limits: "Limits") -> Process:
        stored = limits.file_memory_bytes
        if stored is not None and self._files is not None:
            stored -= self._files.stored
        quota = Quota(limits.open_files, limits.written_limit, stored)
        process = Process(self._arguments, self._environment, quota, self._clock, self._random)
        try:
            for fd in range(3):
                process.add(self._stream(fd, quota))
            if self._files is not None:
                folder = MemoryFolder(self._files.root, quota, lambda: self._clock.read(ClockId.REALTIME))
                process.add(Directory(folder, _ROOT.encode()))
            for guest, host, writable in self._directories:
                process.add(Directory(open_folder(host, writable, quota), guest.encode()))
            for each in self._sockets:
                given = Socket(each, quota, wait_for, owned=False)
                given.flags = 0 if each.getblocking() else FdFlags.NONBLOCK
                process.add(given)
        except BaseException:
            process.close()
            raise
        return process

    def _stream(self, fd: int, quota: Quota) -> Handle:
        given = self._outputs[fd] if fd else self._input
        if isinstance(given, int):
            return HostStream(given, quota, wait_for, reads=fd == 0, writes=fd != 0)
        if isinstance(given, streams.BytesInput):
            return streams.BytesSource(given)
        if given is None:
            return streams.Kept(self._kept[fd], quota)
        return streams.Sink(given, quota) if fd else streams.Source(given)

    def __repr__(self) -> str:
        names = [guest for guest, _, _ in self._directories]
        return f"<greenbeat.Wasi {[each.decode(errors='replace') for each in self._arguments]}, dirs {names}>"


def _encoded(given: str | bytes, what: str) -> bytes:
    if not isinstance(given, str | bytes):
        raise TypeError(f"{what} must be a str, not {given!r}")
    encoded = given if isinstance(given, bytes) else os.fsencode(given)
    if b"\0" in encoded:
        raise ValueError(f"{what} holds a NUL: {given!r}")
    return encoded


def _variable(name: str, value: str) -> bytes:
    if not name or "=" in name:
        raise ValueError(f"a variable of the environment cannot be called {name!r}")
    return _encoded(name, "a variable's name") + b"=" + _encoded(value, f"the variable {name}")


def _directory(guest: str, given: HostPath | tuple[HostPath, str]) -> tuple[str, HostPath, bool]:
    """The guest's name, the host's path, and whether it may be written to."""
    host, access = given if isinstance(given, tuple) else (given, "rw")
    if access not in _ACCESS:
        raise ValueError(f"the directory {guest!r} is for 'ro' or 'rw', not {access!r}")
    if not guest or "\0" in guest:
        raise ValueError(f"a directory cannot be called {guest!r}")
    return guest, host, _ACCESS[access]


def _files(given: Mapping[str, Any] | None, clock: Clock) -> Files | None:
    if given is None or isinstance(given, Files):
        return given
    return Files(given, clock.read(ClockId.REALTIME))


def _clock(given: "Clock | float | datetime | None") -> Clock:
    if given is None:
        return Clock()
    return given if isinstance(given, Clock) else VirtualClock(given)


def _input(given: Any) -> Any:
    """A descriptor of the host's, a `BytesInput` or a callable."""
    if given is streams.INHERIT:
        return 0
    if given is None or isinstance(given, str | bytes | bytearray | memoryview):
        return streams.BytesInput(given.encode() if isinstance(given, str) else bytes(given or b""))
    descriptor = streams.descriptor_of(given)
    return descriptor if descriptor is not None else streams.puller(given)


def _output(given: Any, what: str) -> Any:
    """A descriptor of the host's, None or a callable."""
    if given is streams.INHERIT:
        return 1 if what == "stdout" else 2
    if given is None:
        return None
    descriptor = streams.descriptor_of(given)
    if descriptor is None:
        return streams.pusher(given, what)
    if hasattr(given, "flush"):
        # What Python has written so far comes first.
        given.flush()
    return descriptor


def _imports(module: "Module", process: Process, imports: Mapping[str, Any]) -> dict[str, Any]:
    """What a module gets: the functions of WASI that it imports, unless others were given for them.

    Raises:
        LinkError: it imports one with another type.
    """
    merged = dict(imports)
    for wanted in module.imports:
        if wanted.module not in MODULES:
            continue
        entry = MODULES[wanted.module].get(wanted.name)
        given = merged.setdefault(wanted.module, {})
        if entry is None or wanted.name in getattr(given, "exports", given):
            continue
        found = tuple(tuple(_TYPES[letter] for letter in types) for types in (entry.params, entry.results))
        declared = tuple(tuple(map(str, getattr(wanted.type, types, ("?",)))) for types in ("params", "results"))
        if found != declared:
            shown = f"a function of WASI from ({', '.join(found[0])}) to ({', '.join(found[1])})"
            raise LinkError(wanted.module, wanted.name, str(wanted.type), shown)
        made: Callable[..., Any] = bind if entry.results else bind_without_result
        functions = dict(getattr(given, "exports", given))
        functions[wanted.name] = made(process, wanted.name, entry.implementation)
        merged[wanted.module] = functions
    return merged


__all__ = ["Wasi"]
