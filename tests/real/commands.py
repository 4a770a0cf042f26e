"""WASI commands and libraries out of packages, run by Greenbeat and by wasmtime on the same input.

wasmtime compiles a module to machine code first, which takes it seconds for the largest; what it compiled is kept for
the tests of a run.
"""

import functools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb


@dataclass(frozen=True)
class Ended:
    """What a command did: its exit status, its output, and the files of its directory by name."""

    status: int
    stdout: bytes
    stderr: bytes
    files: Mapping[str, bytes]


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def fill(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make some files in a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@functools.cache
def _module(data: bytes) -> gb.Module:
    return gb.Module(data)


def on_greenbeat(
    module: bytes, args: Sequence[str], stdin: bytes, env: Mapping[str, str], files: Mapping[str, bytes], where: str
) -> Ended:
    """Run a command on a directory of the host's."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), files)
        result = gb.run(_module(module), args, program="tool", stdin=stdin, env=env, dirs={where: folder})
        return Ended(result.exit_code, result.stdout, result.stderr, contents(Path(folder)))


def on_files_in_memory(
    module: bytes, args: Sequence[str], stdin: bytes, env: Mapping[str, str], files: Mapping[str, bytes], where: str
) -> Ended:
    """Run a command on files in memory, which must make no difference to it."""
    inside = where.strip("/") + "/" if where != "/" else ""
    given = {inside: b""} if inside else {}
    given |= {inside + name: data for name, data in files.items()}
    result = gb.run(_module(module), args, program="tool", stdin=stdin, env=env, files=given)
    left = {name.removeprefix(inside): data for name, data in result.files.items()}
    return Ended(result.exit_code, result.stdout, result.stderr, left)


@functools.cache
def engine() -> Any:
    wasmtime = pytest.importorskip("wasmtime", reason="pip install wasmtime to compare with it")
    config = wasmtime.Config()
    config.wasm_exceptions = True
    return wasmtime.Engine(config)


@functools.cache
def compiled(module: bytes) -> Any:
    """A module, compiled by wasmtime."""
    import wasmtime

    return wasmtime.Module(engine(), module)


def on_wasmtime(
    module: bytes, args: Sequence[str], stdin: bytes, env: Mapping[str, str], files: Mapping[str, bytes], where: str
) -> Ended:
    """Run a command on wasmtime."""
    shared = engine()
    import wasmtime

    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as streams:
        fill(Path(work), files)
        pipes = {name: Path(streams, name) for name in ("stdin", "stdout", "stderr")}
        pipes["stdin"].write_bytes(stdin)
        config = wasmtime.WasiConfig()
        config.argv = ["tool", *args]
        config.env = list(env.items())
        config.stdin_file, config.stdout_file, config.stderr_file = (str(path) for path in pipes.values())
        config.preopen_dir(work, where)
        store = wasmtime.Store(shared)
        store.set_wasi(config)
        linker = wasmtime.Linker(shared)
        linker.define_wasi()
        exports: Any = linker.instantiate(store, compiled(module)).exports(store)
        status = 0
        try:
            exports["_start"](store)
        except wasmtime.ExitTrap as ended:
            status = ended.code
        del store
        return Ended(status, pipes["stdout"].read_bytes(), pipes["stderr"].read_bytes(), contents(Path(work)))


def run_on_greenbeat(
    module: bytes,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    files: Mapping[str, bytes] | None = None,
    where: str = "/work",
    in_memory: bool = True,
) -> Ended:
    """Run a command on Greenbeat, on files of the host's and, if told so, in memory as well."""
    ended = on_greenbeat(module, args, stdin, env or {}, files or {}, where)
    if in_memory:
        assert ended == on_files_in_memory(module, args, stdin, env or {}, files or {}, where)
    return ended


def run_alike(
    module: bytes,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    files: Mapping[str, bytes] | None = None,
    where: str = "/work",
    in_memory: bool = True,
) -> Ended:
    """Run a command on both, and make sure that they do the same. Its directory is called `where`."""
    ended = run_on_greenbeat(module, args, stdin, env, files, where, in_memory)
    assert ended == on_wasmtime(module, args, stdin, env or {}, files or {}, where)
    return ended
