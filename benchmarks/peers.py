"""The engines the benchmarks compare: Greenbeat and its peers, behind one small interface.

A peer has a `name`, says with `obstacle()` why it cannot run here (or that nothing keeps it from running), and turns a
module's bytes into a callable with `load`. `measure` runs that callable once and says how many seconds of processor
time the call itself took: time the process was made to wait by others on the machine does not count.

To add a peer, write its class and append it to `PEERS`.
"""

import importlib
import importlib.metadata
import os
import re
import resource
import shutil
import struct
import subprocess
import sysconfig
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

Run = Callable[..., Any]
Clock = Callable[[], int]


class Measurement(NamedTuple):
    """What a guest answered, and the processor time it took to."""

    answer: float
    seconds: float


class Peer(ABC):
    """One engine."""

    name: ClassVar[str]
    package: ClassVar[str]
    interprets: ClassVar[bool] = True
    EMPTY_MODULE: ClassVar[bytes] = b"\0asm\1\0\0\0"
    # A peer so much slower than the others that it is asked for a smaller n, and compared at that n.
    slow: ClassVar[bool] = False

    def obstacle(self) -> str | None:
        """Why this peer cannot run here, or None."""
        try:
            importlib.import_module(self.package)
        except ImportError as error:
            return f"not installed ({error})"
        return None

    def available(self) -> bool:
        """Whether this peer can run here."""
        return self.obstacle() is None

    @abstractmethod
    def load(self, module: bytes, clock: Clock | None = None) -> Run:
        """Instantiates a module and returns its export `run`. With a clock, that is provided as `env.clock_ms`."""

    def measure(self, run: Run, *arguments: int) -> Measurement:
        """Calls `run` once."""
        start = time.process_time()
        answer = run(*arguments)
        return Measurement(answer, time.process_time() - start)

    def version(self) -> str:
        """The version of the installed package."""
        return importlib.metadata.version(self.distribution())

    def distribution(self) -> str:
        """The name under which the package is published."""
        return self.package


class Greenbeat(Peer):
    """Greenbeat itself."""

    name = "greenbeat"
    package = "greenbeat"

    def obstacle(self) -> str | None:
        missing = super().obstacle()
        if missing is None and not hasattr(importlib.import_module(self.package), "Module"):
            return "its engine is not built yet"
        return missing

    def load(self, module: bytes, clock: Clock | None = None) -> Run:
        greenbeat = importlib.import_module("greenbeat")
        imports = {"env": {"clock_ms": clock}} if clock else {}
        run: Run = greenbeat.Module(module).instantiate(imports=imports).exports.run
        return run


class Wasm3(Peer):
    """wasm3, through pywasm3."""

    name = "pywasm3"
    package = "wasm3"

    STACK_BYTES = 1 << 20

    def distribution(self) -> str:
        return "pywasm3"

    def load(self, module: bytes, clock: Clock | None = None) -> Run:
        wasm3 = importlib.import_module("wasm3")
        environment = wasm3.Environment()
        runtime = environment.new_runtime(self.STACK_BYTES)
        parsed = environment.parse_module(module)
        runtime.load(parsed)
        if clock:
            parsed.link_function("env", "clock_ms", "I()", clock)
        # It compiles a function when it is first looked up.
        run: Run = runtime.find_function("run")
        return run


class Pwasm(Peer):
    """pwasm, which makes Python source of a module."""

    name = "pwasm"
    package = "pwasm"
    slow = True

    def load(self, module: bytes, clock: Clock | None = None) -> Run:
        pwasm = importlib.import_module("pwasm")
        imports = {"env": {"clock_ms": clock}} if clock else {}
        run: Run = pwasm.instantiate(pwasm.decode_module(module), imports).exports.run
        return run


class Wasmtime(Peer):
    """Wasmtime with its optimising compiler, Cranelift."""

    name = "wasmtime"
    package = "wasmtime"
    interprets = False

    def configure(self, wasmtime: Any, config: Any) -> None:
        """Chooses how this peer's modules are run."""
        config.strategy = "cranelift"

    def load(self, module: bytes, clock: Clock | None = None) -> Run:
        wasmtime = importlib.import_module("wasmtime")
        config = wasmtime.Config()
        self.configure(wasmtime, config)
        engine = wasmtime.Engine(config)
        store = wasmtime.Store(engine)
        imports = []
        if clock:
            imports.append(wasmtime.Func(store, wasmtime.FuncType([], [wasmtime.ValType.i64()]), clock))
        run = wasmtime.Instance(store, wasmtime.Module(engine, module), imports).exports(store)["run"]
        return lambda *arguments: run(store, *arguments)


class Winch(Wasmtime):
    """Wasmtime with its one-pass compiler. The package's own setting knows no name for it, the library beneath does."""

    name = "wasmtime-winch"

    STRATEGY_WINCH = 2

    def configure(self, wasmtime: Any, config: Any) -> None:
        bindings = importlib.import_module("wasmtime._bindings")
        bindings.wasmtime_config_strategy_set(config.ptr(), self.STRATEGY_WINCH)

    def obstacle(self) -> str | None:
        missing = super().obstacle()
        if missing is None:
            wasmtime = importlib.import_module("wasmtime")
            config = wasmtime.Config()
            self.configure(wasmtime, config)
            try:
                wasmtime.Module(wasmtime.Engine(config), self.EMPTY_MODULE)
            except wasmtime.WasmtimeError as error:
                return f"Winch does not run here ({error})"
        return missing


class Pulley(Wasmtime):
    """Wasmtime with its interpreter: Cranelift compiles to a portable bytecode."""

    name = "wasmtime-pulley"
    interprets = True

    def configure(self, wasmtime: Any, config: Any) -> None:
        config.target = "pulley64" if struct.calcsize("P") == 8 else "pulley32"


class Wamr(Peer):
    """WAMR's `iwasm` program, from `GREENBEAT_IWASM` or the search path.

    Every call is a process. What starting it costs, reading and translating the module included, is measured with n = 0
    and taken off. The package `wamr-bin` is tried as well, though the versions known to date bring no interpreter.
    """

    name = "wamr"
    package = "wamr_cli"

    RESULT = re.compile(r"0x([0-9a-f]+):i32")

    def program(self) -> str | None:
        """Where `iwasm` is, if it is anywhere."""
        return os.environ.get("GREENBEAT_IWASM") or shutil.which("iwasm")

    def obstacle(self) -> str | None:
        if self.program():
            return None
        packaged = Path(sysconfig.get_path("scripts")) / "wamr"
        if not packaged.exists():
            return "no iwasm on the search path or in GREENBEAT_IWASM"
        with tempfile.NamedTemporaryFile(suffix=".wasm") as file:
            file.write(self.EMPTY_MODULE)
            file.flush()
            tried = subprocess.run([str(packaged), "run", file.name], capture_output=True, text=True, check=False)
        version = importlib.metadata.version("wamr-bin")
        complaint = (tried.stderr.strip() or tried.stdout.strip() or "nothing").splitlines()[0]
        said = complaint.replace(file.name, "the module")
        return f"no iwasm on the search path or in GREENBEAT_IWASM, and wamr-bin {version} says: {said}"

    def version(self) -> str:
        shown = subprocess.run([str(self.program()), "--version"], capture_output=True, text=True, check=False)
        return shown.stdout.partition("\n")[0].removeprefix("iwasm ")

    def load(self, module: bytes, clock: Clock | None = None) -> Run:
        if clock:
            raise NotImplementedError("its program cannot be given a clock")
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "guest.wasm"
        path.write_bytes(module)

        def run(n: int) -> int:
            command = [str(self.program()), "--stack-size=1000000", "-f", "run", str(path), str(n)]
            shown = subprocess.run(command, capture_output=True, text=True, check=False)
            result = self.RESULT.search(shown.stdout)
            if not result:
                raise RuntimeError((shown.stderr or shown.stdout).strip() or f"it ended with status {shown.returncode}")
            word = int(result[1], 16)
            return word - (1 << 32) if word >> 31 else word

        self.starting = min(self._seconds(run, 0).seconds for _ in range(3))
        return run

    def measure(self, run: Run, *arguments: int) -> Measurement:
        whole = self._seconds(run, *arguments)
        return Measurement(whole.answer, max(whole.seconds - self.starting, 0.0))

    def _seconds(self, run: Run, *arguments: int) -> Measurement:
        """The processor time of the program that `run` starts."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        answer = run(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Measurement(answer, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


PEERS: tuple[type[Peer], ...] = (Greenbeat, Wasm3, Wamr, Pulley, Pwasm, Winch, Wasmtime)


def peer(name: str) -> Peer:
    """The peer of that name."""
    for each in PEERS:
        if each.name == name:
            return each()
    raise KeyError(f"no peer is called {name!r}; there are {', '.join(p.name for p in PEERS)}")


def first_available(names: Iterable[str]) -> Peer:
    """The first of these peers that runs here."""
    for name in names:
        candidate = peer(name)
        if candidate.available():
            return candidate
    raise LookupError(f"none of {', '.join(names)} is installed")


class Bench:
    """What a worker process holds: one peer and the module it has loaded."""

    def __init__(self, name: str) -> None:
        self.peer = peer(name)
        self.run: Run | None = None

    def obstacle(self) -> str | None:
        return self.peer.obstacle()

    def version(self) -> str:
        return self.peer.version()

    def load(self, module: bytes) -> None:
        self.run = self.peer.load(module)

    def load_with_clock(self, module: bytes) -> None:
        self.run = self.peer.load(module, lambda: time.monotonic_ns() // 1_000_000)

    def measure(self, *arguments: int) -> Measurement:
        if self.run is None:
            raise RuntimeError("no module is loaded")
        return self.peer.measure(self.run, *arguments)
