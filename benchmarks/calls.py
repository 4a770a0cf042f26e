"""What crossing between Python and WebAssembly costs: a call in, a call out, and a megabyte of memory read.

    python -m benchmarks.calls
    python -m benchmarks.calls --rounds 9 --json calls.json

Each engine lives in a process of its own, and the engines take turns. A figure is the processor time of one crossing,
the best round of many; an empty Python loop costs the same for all engines and is left in.
"""

import argparse
import importlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import ClassVar

from benchmarks import report
from benchmarks.guests import FOLDER
from benchmarks.isolation import Worker, WorkerError

MEBIBYTE = 1 << 20


def twice(value: int) -> int:
    """The host's side of the callback; it stays inside 32 bits."""
    return value * 2 & 0x7FFF


class Crossing(ABC):
    """One engine with `calls.wasm` instantiated; every method below is one way to cross."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.add, self.call_back = self.instantiate((FOLDER / "calls.wasm").read_bytes())

    @abstractmethod
    def instantiate(self, module: bytes) -> tuple[Callable[[int, int], int], Callable[[int], int]]:
        """The exports `add` and `call_back`."""

    @abstractmethod
    def read(self) -> bytes | bytearray:
        """The first MiB of the memory, copied."""

    def export_call(self, count: int) -> float:
        """Seconds for one call of an export."""
        add = self.add
        if add(2, 40) != 42:
            raise ArithmeticError(f"add(2, 40) gave {add(2, 40)}")
        numbers = range(count)
        start = time.process_time()
        for number in numbers:
            add(number, 1)
        return (time.process_time() - start) / count

    def host_callback(self, count: int) -> float:
        """Seconds for one call from the module to Python and back."""
        start = time.process_time()
        self.call_back(count)
        return (time.process_time() - start) / count

    def memory_read(self, count: int) -> float:
        """Seconds for one copy of a MiB."""
        if len(self.read()) != MEBIBYTE:
            raise ArithmeticError(f"reading a MiB gave {len(self.read())} bytes")
        start = time.process_time()
        for _ in range(count):
            self.read()
        return (time.process_time() - start) / count


class GreenbeatCrossing(Crossing):
    """Greenbeat, through its Python API."""

    name = "greenbeat"

    def instantiate(self, module: bytes) -> tuple[Callable[[int, int], int], Callable[[int], int]]:
        greenbeat = importlib.import_module("greenbeat")
        instance = greenbeat.Module(module).instantiate(imports={"env": {"twice": twice}})
        self.memory = instance.exports["memory"]
        return instance.exports.add, instance.exports.call_back

    def read(self) -> bytes:
        copied: bytes = self.memory.read(0, MEBIBYTE)
        return copied


class Wasm3Crossing(Crossing):
    """wasm3, through pywasm3."""

    name = "pywasm3"

    def instantiate(self, module: bytes) -> tuple[Callable[[int, int], int], Callable[[int], int]]:
        wasm3 = importlib.import_module("wasm3")
        environment = wasm3.Environment()
        self.runtime = environment.new_runtime(1 << 16)
        parsed = environment.parse_module(module)
        self.runtime.load(parsed)
        parsed.link_function("env", "twice", "i(i)", twice)
        return self.runtime.find_function("add"), self.runtime.find_function("call_back")

    def read(self) -> bytes:
        return bytes(self.runtime.get_memory(0)[:MEBIBYTE])


class WasmtimeCrossing(Crossing):
    """wasmtime, through wasmtime-py."""

    name = "wasmtime"

    def instantiate(self, module: bytes) -> tuple[Callable[[int, int], int], Callable[[int], int]]:
        wasmtime = importlib.import_module("wasmtime")
        engine = wasmtime.Engine()
        self.store = wasmtime.Store(engine)
        i32 = wasmtime.ValType.i32()
        host = wasmtime.Func(self.store, wasmtime.FuncType([i32], [i32]), twice)
        instance = wasmtime.Instance(self.store, wasmtime.Module(engine, module), [host])
        exports = instance.exports(self.store)
        self.memory = exports["memory"]
        add, call_back, store = exports["add"], exports["call_back"], self.store
        return partial(add, store), partial(call_back, store)

    def read(self) -> bytes | bytearray:
        copied: bytearray = self.memory.read(self.store, 0, MEBIBYTE)
        return copied


CROSSINGS: tuple[type[Crossing], ...] = (GreenbeatCrossing, Wasm3Crossing, WasmtimeCrossing)

# What is measured, how it is named, and how often in one round: the slowest engine takes about 0.2 s for each.
LINES = (
    ("export_call", "export call (i32, i32) -> i32", 5000),
    ("host_callback", "host callback (i32) -> i32", 10000),
    ("memory_read", "memory.read of 1 MiB", 10),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the cost of crossing between Python and WebAssembly.")
    parser.add_argument("--rounds", type=int, default=5, help="how many times everything is run (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement to a file")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")

    measured: dict[str, dict[str, list[float]]] = {method: {} for method, _, _ in LINES}
    obstacles: dict[str, str] = {}
    with ExitStack() as open_workers:
        workers = {each.name: open_workers.enter_context(Worker(each)) for each in CROSSINGS}
        for _ in range(arguments.rounds):
            for method, _, count in LINES:
                for name, worker in workers.items():
                    if name in obstacles:
                        continue
                    try:
                        measured[method].setdefault(name, []).append(worker.call(method, count))
                    except WorkerError as error:
                        obstacles[name] = str(error)

    print(report.machine())
    print(f"microseconds for one crossing, best of {arguments.rounds}; in brackets relative to the fastest\n")
    rows = []
    for method, label, _ in LINES:
        best = {name: min(times) for name, times in measured[method].items() if name not in obstacles}
        cells = []
        for each in CROSSINGS:
            if each.name in best:
                cells.append(f"{best[each.name] * 1e6:.2f} ({best[each.name] / min(best.values()):.1f})")
            else:
                cells.append("-")
        rows.append([label, *cells])
    print(report.table(["", *(each.name for each in CROSSINGS)], rows))
    for name, why in obstacles.items():
        print(f"\n{name} did not run: {why}")
    if arguments.json:
        document = {"machine": report.machine(), "seconds": measured, "obstacles": obstacles}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
