"""`greenbeat.run`: a command from its bytes to its exit status."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from greenbeat.api.limits import Limits
from greenbeat.api.module import Module
from greenbeat.wasi.clocks import Clock
from greenbeat.wasi.config import HostPath, Wasi
from greenbeat.wasi.memoryfiles import Files
from greenbeat.wasi.process import Exit
from greenbeat.wasi.randomness import RandomBytes

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Result:
    """How a command ended.

    Attributes:
        stdout, stderr: what it wrote, as far as that was kept.
        exit_code: its exit status; 128 and a signal's number if it ended itself by one.
        files: its file system in memory, as a mapping of contents by name.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int
    files: Files = field(repr=False)


def run(
    module: "str | os.PathLike[str] | bytes | bytearray | memoryview | Module",
    args: "Sequence[str | bytes]" = (),
    *,
    program: str | None = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    env: Mapping[str, str] | None = None,
    dirs: Mapping[str, HostPath | tuple[HostPath, str]] | None = None,
    files: Mapping[str, Any] | None = None,
    clock: Clock | float | datetime | None = None,
    random: int | RandomBytes | None = None,
    sockets: Iterable[Any] = (),
    imports: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> Result:
    """Run a WASI command to its end.

    Args:
        module: a file's path, the module's bytes, or a `Module`.
        args: the arguments behind the program's name.
        program: the program's name, by default the file's or the module's.
        stdin: see `Wasi`, as for what follows up to `imports`.
        stdout: as above.
        stderr: as above.
        env: as above.
        dirs: as above.
        files: as above.
        clock: as above.
        random: as above.
        sockets: as above.
        imports: see `Module.instantiate`.
        limits: see `Module.instantiate`.

    Raises:
        CompileError, LinkError: the module cannot be used.
        Trap, Exhausted: it did not come to its end.
    """
    if isinstance(args, str | bytes):
        raise TypeError(f"args is a list of arguments, not {args!r}")
    loaded = module if isinstance(module, Module) else _load(module)
    if program is None:
        named = isinstance(module, str | os.PathLike)
        program = PurePath(os.fspath(module)).name if named else loaded.name or "program"  # type: ignore[arg-type]
    wasi = Wasi(
        [program, *args],
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        dirs=dirs,
        files=files,
        clock=clock,
        random=random,
        sockets=sockets,
    )
    try:
        with loaded.instantiate(imports, wasi=wasi, limits=limits) as instance:
            code = wasi.start(instance)
    except Exit as end:
        # It ended while it was being instantiated.
        code = end.code
    return Result(wasi.stdout, wasi.stderr, code, wasi.files)


def _load(module: Any) -> Module:
    return Module.from_file(module) if isinstance(module, str | os.PathLike) else Module(module)
