"""How fast a WASI program reads and writes files, beside wasmtime: 64 MiB in pieces of several sizes.

    python -m benchmarks.wasi_files
    python -m benchmarks.wasi_files --rounds 3 --json files.json

Wall time of the program alone: the module is loaded and instantiated before, and the file is in the system's cache.
Each run is a process of its own. With small pieces the time is that of the calls, with large ones that of the copies.
"""

import argparse
import importlib
import json
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from benchmarks import report
from benchmarks.isolation import Worker, WorkerError

PROGRAM = Path(__file__).parent / "commands" / "files.wasm"
PIECES = (4 << 10, 64 << 10, 1 << 20)


class Runner(ABC):
    """An engine that runs the program."""

    name: ClassVar[str]

    @abstractmethod
    def prepared(self, arguments: list[str], folder: str) -> Callable[[], None]:
        """The program, ready to be started."""

    def measure(self, mode: str, folder: str, mebibytes: int, piece: int) -> float:
        start = self.prepared(["files", mode, "/data/file", str(mebibytes), str(piece)], folder)
        began = time.perf_counter()
        start()
        return time.perf_counter() - began


class GreenbeatRunner(Runner):
    """Greenbeat."""

    name = "greenbeat"

    def prepared(self, arguments: list[str], folder: str) -> Callable[[], None]:
        greenbeat = importlib.import_module("greenbeat")
        wasi = greenbeat.Wasi(arguments, dirs={"/data": folder})
        instance = greenbeat.Module.from_file(PROGRAM).instantiate(wasi=wasi)

        def start() -> None:
            if wasi.start(instance):
                raise ArithmeticError("the program failed")

        return start


class WasmtimeRunner(Runner):
    """wasmtime, compiling with Cranelift."""

    name = "wasmtime"

    def prepared(self, arguments: list[str], folder: str) -> Callable[[], None]:
        wasmtime = importlib.import_module("wasmtime")
        engine = wasmtime.Engine()
        config = wasmtime.WasiConfig()
        config.argv = arguments
        config.preopen_dir(folder, "/data")
        config.stdout_file = f"{folder}/output"
        store = wasmtime.Store(engine)
        store.set_wasi(config)
        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        function = linker.instantiate(store, wasmtime.Module.from_file(engine, str(PROGRAM))).exports(store)["_start"]

        def start() -> None:
            try:
                function(store)
            except wasmtime.ExitTrap as ended:
                if ended.code:
                    raise

        return start


RUNNERS: tuple[type[Runner], ...] = (GreenbeatRunner, WasmtimeRunner)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare how fast WASI programs read and write files.")
    parser.add_argument("--rounds", type=int, default=3, help="how many times everything is run (default 3)")
    parser.add_argument("--mebibytes", type=int, default=64, help="the size of the file (default 64)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement to a file")
    arguments = parser.parse_args()

    print(report.machine())
    measured: dict[str, dict[str, list[float]]] = {}
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for piece in PIECES:
            for mode in ("write", "read"):
                times = measured.setdefault(f"{mode}, {piece >> 10} KiB at a time", {})
                for _ in range(arguments.rounds):
                    for runner in RUNNERS:
                        try:
                            with Worker(runner) as worker:
                                took = worker.call("measure", mode, folder, arguments.mebibytes, piece)
                            times.setdefault(runner.name, []).append(took)
                        except WorkerError as error:
                            note = f"{runner.name}: {error}"
                            notes += [note] if note not in notes else []

    print(
        f"{arguments.mebibytes} MiB, seconds, best of {arguments.rounds}; and what Greenbeat takes of wasmtime's time\n"
    )
    rows = []
    for line, times in measured.items():
        best = [min(times[runner.name]) if times.get(runner.name) else None for runner in RUNNERS]
        mine, theirs = best
        ratio = f"{mine / theirs:.2f}" if mine and theirs else "-"
        rows.append([line, *(f"{each:.3f}" if each else "-" for each in best), ratio])
    print(report.table(["", *(runner.name for runner in RUNNERS), "ratio"], rows))
    print("".join(f"\n{note}" for note in notes))
    if arguments.json:
        document = {"machine": report.machine(), "seconds": measured, "notes": notes}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
