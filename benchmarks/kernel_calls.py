"""What a call of a kernel costs, and what compiling one takes.

    python -m benchmarks.kernel_calls
    python -m benchmarks.kernel_calls --rounds 9

A call of an empty function with one integer, of one with four numbers, and fib(27), which calls itself 832,040 times:
as a kernel, in plain Python, through ctypes, and by numba where that is installed. Then what the first call of `fib`
takes in a process that has Greenbeat loaded: compiled, and found in the cache by a second process.
"""

import argparse
import ctypes
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import greenbeat as gb
from benchmarks import report


@gb.kernel
def one(n: int) -> int:
    return n


@gb.kernel
def four(a: int, b: int, x: float, y: float) -> float:
    return a * x + b * y


@gb.kernel
def fib(n: int) -> int:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


LINES = (("one", (7,), 100_000), ("four", (1, 2, 0.5, 1.5), 100_000), ("fib", (27,), 1))
FIRST_CALL = """
import time, greenbeat, llvmlite
from benchmarks.kernel_calls import fib, one
one.compile() if {warm} else None
start = time.process_time()
fib(1)
print(time.process_time() - start)
"""


def plain() -> dict[str, Callable[..., Any]]:
    """The same functions in Python."""
    return {each.__name__: each.python for each in (one, four, fib)}


def through_ctypes() -> dict[str, Callable[..., Any]]:
    """A function of the C library that does nothing to one number; ctypes has no way to make the others."""
    function = ctypes.CDLL(None).labs
    function.argtypes, function.restype = [ctypes.c_long], ctypes.c_long
    return {"one": function}


def by_numba() -> dict[str, Callable[..., Any]]:
    """The same functions, compiled by numba."""
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        return {}
    made = {each.__name__: numba.njit(each.__wrapped__) for each in (one, four)}
    names: dict[str, Any] = {}
    exec("def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n", names)
    names["fib"] = made["fib"] = numba.njit(names["fib"])
    return made


def measured(function: Callable[..., Any], arguments: tuple[Any, ...], count: int, rounds: int) -> float:
    """Seconds of processor time for one call, the best of several rounds."""
    function(*arguments)
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(count):
            function(*arguments)
        best = min(best, (time.process_time() - start) / count)
    return best


def first_call(cache: Path, warm: bool) -> float:
    """Seconds of processor time for the first call of `fib` in a new process.

    With `warm`, the process has compiled another kernel before, so that the compiler is loaded.
    """
    environment = {**os.environ, "GREENBEAT_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", FIRST_CALL.format(warm=warm)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def compilation(rounds: int) -> list[list[str]]:
    """What the first call of `fib` takes, in three situations."""
    from greenbeat.engine import engine
    from greenbeat.native import cache

    times: dict[str, list[float]] = {"compiled": [], "compiled, the compiler being loaded": [], "cached": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            cache.write(Path(folder), engine.key, engine.obtain())
            times["compiled"].append(first_call(Path(folder), warm=False))
            times["cached"].append(first_call(Path(folder), warm=False))
        with tempfile.TemporaryDirectory() as folder:
            cache.write(Path(folder), engine.key, engine.obtain())
            times["compiled, the compiler being loaded"].append(first_call(Path(folder), warm=True))
    return [[name, f"{min(each) * 1e3:.1f}"] for name, each in times.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure calls of kernels, and their compilation.")
    parser.add_argument("--rounds", type=int, default=5, help="how many times everything is run (default 5)")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("--rounds must be at least 1")
    peers: dict[str, dict[str, Callable[..., Any]]] = {
        "kernel": {each.__name__: each for each in (one, four, fib)},
        "Python": plain(),
        "ctypes": through_ctypes(),
        "numba": by_numba(),
    }
    print(report.machine())
    print("nanoseconds for one call; in brackets relative to the kernel\n")
    rows = []
    for name, arguments, count in LINES:
        times = {
            peer: measured(functions[name], arguments, count, rounds)
            for peer, functions in peers.items()
            if name in functions
        }
        own = times["kernel"]
        cells = [f"{times[p] * 1e9:.0f} ({times[p] / own:.1f})" if p in times else "-" for p in peers]
        rows.append([f"{name}({', '.join(map(str, arguments))})", *cells])
    print(report.table(["", *peers], rows))
    print("\nmilliseconds for the first call of fib\n")
    print(report.table(["", "ms"], compilation(rounds)))


if __name__ == "__main__":
    main()
