"""What a parallel program is to the benchmark, and how it and its peers are timed."""

import ctypes
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Inputs = tuple[Any, ...]


@dataclass
class Workload:
    """A program in several versions. All of them take what `prepare` gives, and give the same.

    Attributes:
        about: what it does, in a line.
        sizes: of a quick and of a full run.
        prepare: the inputs for a size.
        serial: a kernel without forks, the best that is known for one processor.
        parallel: the same with forks, without any grain.
        check: raises AssertionError unless a result is right; compares with plain Python or numpy.
        numba: makes the same for numba, where it can say it; takes the inputs.
        openmp: the same in C, by a function of the library of `peers/openmp.c`; takes it, and the inputs.
        pieces: the serial work cut into calls of kernels, for pools of processes, and what makes one result of theirs.
    """

    about: str
    sizes: tuple[int, int]
    prepare: Callable[[int], Inputs]
    serial: Callable[..., Any]
    parallel: Callable[..., Any]
    check: Callable[[Inputs, Any], None]
    numba: Callable[[], Callable[..., Any]] | None = None
    openmp: Callable[..., Any] | None = None
    pieces: Callable[..., list[tuple[Callable[..., Any], Inputs]]] | None = None
    gather: Callable[[list[Any]], Any] = sum
    go: str | None = field(default=None)


def seconds(function: Callable[..., Any], inputs: Inputs, rounds: int) -> float:
    """The best time of several calls, after one that may compile."""
    function(*inputs)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        function(*inputs)
        best = min(best, time.perf_counter() - start)
    return best


def address(array: Any) -> ctypes.c_void_p:
    """Where the elements of a numpy array are."""
    return ctypes.c_void_p(array.ctypes.data)


def installed(name: str) -> Any:
    """A module, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
