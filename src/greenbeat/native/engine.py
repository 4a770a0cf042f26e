"""The engine as a whole: the modules it is written in, how they are split into objects, how it gets into a process.

    shipped objects ──┐
    user cache ───────┼─▶ objects + manifest ─▶ link ─▶ engine.function("name")
    a build ──────────┘   (one process a unit)

With objects at hand nothing of the engine is imported: its source files are hashed, the objects of that hash are read
and linked. Only a build imports the modules, in child processes, since LLVM can end the process it runs in.
"""

import contextlib
import ctypes
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbeat.native import cache, start
from greenbeat.native.errors import NativeError
from greenbeat.native.linker import Library, flag
from greenbeat.native.records import record
from greenbeat.native.targets import Machine, host_machine, shipped_machines

if TYPE_CHECKING:
    import subprocess

WORD = re.compile(r"[\w.]+")
IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([\w., \t]+))", re.MULTILINE
)


class BuildError(Exception):
    """The engine's code could not be compiled, for a reason that is not a mistake in one of its functions."""


@record(frozen=True)
class UnitPlan:
    """One object file of an engine: it owns the shared functions and statics of the modules with these prefixes.

    The plan without prefixes owns everything else.
    """

    name: str
    modules: tuple[str, ...] = ()


def owner(units: Sequence[UnitPlan], module: str) -> str:
    """The name of the unit that owns a module: the one with the longest fitting prefix."""
    best, length = "", -1
    for unit in units:
        for prefix in unit.modules or ("",):
            if (not prefix or module == prefix or module.startswith(prefix + ".")) and len(prefix) > length:
                best, length = unit.name, len(prefix)
    if not best:
        raise BuildError(f"no unit of the engine owns {module}")
    return best


class Engine:
    """Native code described by its modules, linked into the process when something of it is first asked for.

    Args:
        modules: the modules that a build imports; they import others as they need.
        units: how their code is split into objects, compiled side by side.
        packages: the directory of each top-level package whose sources count.
        shipped: a directory of objects made beforehand.
        checked, debug, machine: what to build; by default what the environment and this machine say.
        images: whether later processes start from an image of the linked engine, where there can be one.
    """

    def __init__(
        self,
        modules: Sequence[str],
        units: Sequence[UnitPlan],
        *,
        packages: Mapping[str, Path],
        shipped: Path | None = None,
        checked: bool | None = None,
        debug: bool | None = None,
        machine: Machine | None = None,
        images: bool = False,
    ) -> None:
        self.modules, self.units, self.packages, self.shipped = tuple(modules), tuple(units), dict(packages), shipped
        self.checked = flag("GREENBEAT_CHECKED") if checked is None else checked
        self.debug = flag("GREENBEAT_DEBUG") if debug is None else debug
        # Read by greenbeat.interpreter.convention when it is compiled.
        self.counting = flag("GREENBEAT_COUNTING")
        self._machine = machine
        # Debuggers and profilers are told of code by LLVM.
        self.images = images and start.possible() and not (self.debug or flag("GREENBEAT_PERF"))
        self._functions: dict[str, Any] = {}
        self._lock = threading.RLock()
        # A child could not go on with what another thread builds.
        os.register_at_fork(
            before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
        )

    # ---------------------------------------------------------------- use

    def function(self, name: str) -> Any:
        """An exported function as a ctypes callable. It holds the GIL: it is short, or lets go of it by itself."""
        found = self._functions.get(name)
        if found is None:
            try:
                returns, *params = self._loaded[0][name]
            except KeyError:
                raise AttributeError(f"the engine exports no function {name!r}") from None
            types: list[Any] = [None if n == "None" else _ctype(n) for n in (returns, *params)]
            found = self._functions[name] = ctypes.PYFUNCTYPE(*types)(self._loaded[1][name])
        return found

    def address(self, name: str) -> int:
        """The address of an exported function or a static, by symbol."""
        try:
            return self._loaded[1][name]
        except KeyError:
            raise AttributeError(f"the engine has no symbol {name!r}") from None

    def load(self) -> None:
        """Make the engine ready, building it if it must be; otherwise the first use does."""
        _ = self._loaded

    @property
    def _loaded(self) -> tuple[dict[str, list[str]], dict[str, int]]:
        with self._lock:
            return self._linked

    @cached_property
    def _linked(self) -> tuple[dict[str, list[str]], dict[str, int]]:
        """The types of functions, and the addresses of symbols."""
        if os.environ.get("GREENBEAT_BUILDING"):
            raise BuildError(
                "the engine is used while it is built: its modules must not use engine.function when imported"
            )
        directory = cache.user_directory() if self.images else None
        signature = None
        if directory is not None:
            variant = (self.modules, self.units, self.checked, self.debug, self.counting)
            signature = start.signature(self.packages, variant)
            if signature is not None and (started := start.start(directory, signature)):
                self.key = started.key
                return started.functions, started.addresses
        compiled = self.obtain()
        library = Library(compiled.objects.values(), [*compiled.functions, *compiled.addresses])
        if directory is not None and signature is not None:
            start.keep(directory, signature, self.key, compiled)
        return compiled.functions, library.addresses

    # ---------------------------------------------------------------- objects

    @cached_property
    def machine(self) -> Machine:
        """What the engine is compiled for."""
        return self._machine or host_machine()

    @cached_property
    def key(self) -> str:
        """Names the result of a build: everything that it depends on, hashed. Python's version is not part of it.

        A repair release of llvmlite brings the same LLVM and takes the same objects.
        """
        import json  # here, since a start from an image does without

        import llvmlite
        import llvmlite.binding as llvm

        series = llvmlite.__version__.split(".")[:2]
        plan = [
            self.modules,
            [vars(u) for u in self.units],
            vars(self.machine),
            self.checked,
            self.debug,
            self.counting,
        ]
        digest = hashlib.sha256(json.dumps([plan, series, llvm.llvm_version_info]).encode())
        for name, data in self.sources().items():
            digest.update(f"{name}\0{len(data)}\0".encode())
            digest.update(data)
        kind = "-checked" * self.checked + "-debug" * self.debug + "-counting" * self.counting
        return f"{self.machine.name}{kind}-{digest.hexdigest()[:20]}"

    def sources(self) -> dict[str, bytes]:
        """Every module that the engine's modules import from its packages, found by reading import statements."""
        files = self._files
        found: dict[str, bytes] = {}
        waiting = ["greenbeat.native", "greenbeat.native.worker", *self.modules]
        while waiting:
            name = waiting.pop()
            if name in found or name not in files:
                continue
            found[name] = data = files[name].read_bytes()
            waiting.append(name.rpartition(".")[0])
            for base, names, plain in IMPORT.findall(data):
                module = base.decode()
                waiting.append(module)
                if module in files or module in self.packages:
                    waiting += [f"{module}.{n}" for n in WORD.findall(names.decode())]
                waiting += WORD.findall(plain.decode())
        return dict(sorted(found.items()))

    @cached_property
    def _files(self) -> dict[str, Path]:
        """The file of every module there is. `greenbeat/__init__.py` is the users' front door: builds do without it."""
        found: dict[str, Path] = {}
        waiting = [(f"{name}.", path) for name, path in self.packages.items()]
        while waiting:
            prefix, directory = waiting.pop()
            for entry in os.scandir(directory):
                if entry.name.endswith(".py") and entry.name != "__init__.py":
                    found[prefix + entry.name[:-3]] = Path(entry.path)
                elif entry.is_dir() and os.path.isfile(initial := os.path.join(entry.path, "__init__.py")):
                    found[prefix + entry.name] = Path(initial)
                    waiting.append((f"{prefix}{entry.name}.", Path(entry.path)))
        return found

    def obtain(self) -> cache.Compiled:
        """The engine's objects: shipped, cached, or built now and cached.

        Raises:
            NativeError: a function of the engine cannot be compiled.
            BuildError: the build failed in another way.
        """
        if self.shipped is not None and (found := cache.read(self.shipped, self.key)):
            return found
        directory = cache.user_directory()
        if directory is None:
            return self.build()
        if found := cache.read(directory, self.key):
            return found
        with cache.only_one(directory, self.key):
            found = cache.read(directory, self.key)
            if found is None:
                found = self.build()
                if cache.write(directory, self.key, found):
                    cache.prune(directory)
        return found

    def build(self) -> cache.Compiled:
        """Compile every unit, each in a process of its own.

        Raises:
            NativeError: a function of the engine cannot be compiled.
            BuildError: the build failed in another way.
        """
        with _progress():
            children = [self._start(unit) for unit in self.units]
            outputs: list[tuple[bytes, bytes]] = [(b"", b"")] * len(children)

            def collect(position: int) -> None:
                outputs[position] = children[position].communicate()

            threads = [threading.Thread(target=collect, args=(i,)) for i in range(len(children))]
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            finally:
                for child in children:
                    if child.poll() is None:
                        child.kill()
        import json

        compiled = cache.Compiled()

        for unit, child, (out, err) in zip(self.units, children, outputs, strict=True):
            if child.returncode != 0:
                raise _failure(unit.name, child.returncode, out, err)
            header, _, data = out.partition(b"\n")
            manifest = json.loads(header)
            compiled.objects[unit.name] = data
            compiled.functions.update(manifest["functions"])
            compiled.addresses += manifest["addresses"]
        return compiled

    def ship(self, directory: Path) -> None:
        """Compile for every level of this machine's family into a directory that a wheel will carry."""
        for machine in shipped_machines():
            options: dict[str, Any] = {"checked": False, "debug": False, "machine": machine}
            engine = Engine(self.modules, self.units, packages=self.packages, **options)
            if not cache.write(directory, engine.key, engine.build()):
                raise BuildError(f"cannot write to {directory}")

    def _start(self, unit: UnitPlan) -> "subprocess.Popen[bytes]":
        plan = {
            "unit": unit.name,
            "modules": self.modules,
            "units": [vars(u) for u in self.units],
            "packages": {name: str(path) for name, path in self.packages.items()},
            "machine": vars(self.machine),
            "checked": self.checked,
            "debug": self.debug,
            "seen": list(self.sources()),
        }
        # The child must not run greenbeat/__init__.py (see worker.py), nor take native/types.py for the library's
        # `types`: hence the file by its path, with -P.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "GREENBEAT_BUILDING": "1"}
        command = [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]
        import json
        import subprocess  # here, since a warm start does without

        pipe = subprocess.PIPE
        try:
            child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        except OSError as problem:
            raise BuildError(f"cannot start Python to compile the engine: {problem}") from problem
        assert child.stdin is not None
        with contextlib.suppress(OSError):
            child.stdin.write(json.dumps(plan).encode() + b"\n")
            child.stdin.flush()
        return child


def _ctype(name: str) -> Any:
    return getattr(ctypes, name)


def _failure(unit: str, status: int, out: bytes, err: bytes) -> Exception:
    """What a child's end means."""
    if status == 3:
        import json

        return NativeError(**json.loads(out))
    how = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
    text = err.decode("utf-8", "replace").strip() or "it said nothing"
    return BuildError(f"compiling unit {unit!r} of the engine {how}:\n{text}")


@contextlib.contextmanager
def _progress() -> Iterator[None]:
    """A line with the time passed while the engine is built, on a terminal only."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    begin = time.monotonic()

    def show() -> None:
        while True:
            text = f"\rgreenbeat: compiling the engine for this machine, once: {time.monotonic() - begin:.1f} s "
            print(text, end="", file=sys.stderr, flush=True)
            if done.wait(0.1):
                break

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
