"""The largest sum of neighbours: a reduction whose results are four numbers."""

from typing import Any

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Numbers = gb.Array[gb.f64]
LOW = -1e300


@gb.kernel
def serial(a: Numbers) -> float:
    """Kadane's algorithm."""
    best = LOW
    here = LOW
    for i in range(len(a)):
        here = max(here, 0.0) + a[i]
        best = max(best, here)
    return best


@gb.kernel
def joined(
    x: tuple[float, float, float, float], y: tuple[float, float, float, float]
) -> tuple[float, float, float, float]:
    """Of two parts one after the other: the best sum inside, at the beginning, at the end, and of all."""
    return max(x[0], y[0], x[2] + y[1]), max(x[1], x[3] + y[1]), max(y[2], x[2] + y[3]), x[3] + y[3]


@gb.kernel
def item(i: int, a: Numbers) -> tuple[float, float, float, float]:
    return a[i], a[i], a[i], a[i]


@gb.kernel
def parallel(a: Numbers) -> float:
    return gb.preduce(joined, item, len(a), (LOW, LOW, LOW, 0.0), a)[0]


def prepare(size: int) -> Inputs:
    # Integers, so that the order of additions changes nothing.
    return (numpy.random.default_rng(4).integers(-1000, 1000, size).astype(float),)


def check(inputs: Inputs, found: Any) -> None:
    sums = numpy.concatenate([[0.0], numpy.cumsum(inputs[0])])
    assert found == (sums[1:] - numpy.minimum.accumulate(sums)[:-1]).max()


def numba() -> Any:
    """Numba has no reductions of its own: a loop over parts, one per thread."""
    from numba import get_num_threads, njit, prange

    @njit(parallel=True)
    def run(a: Any) -> Any:
        count = get_num_threads()
        found = numpy.empty((count, 4))
        for part in prange(count):
            best, first, here, total = -1e300, -1e300, -1e300, 0.0
            for i in range(part * len(a) // count, (part + 1) * len(a) // count):
                here = max(here, 0.0) + a[i]
                best = max(best, here)
                total += a[i]
                first = max(first, total)
            found[part, 0], found[part, 1], found[part, 2], found[part, 3] = best, first, here, total
        best, here = -1e300, -1e300
        for part in range(count):
            best = max(best, found[part, 0], here + found[part, 1])
            here = max(found[part, 2], here + found[part, 3])
        return best

    return run


WORKLOAD = Workload(
    about="largest sum of neighbours: a reduction of tuples",
    sizes=(10_000_000, 200_000_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
    numba=numba,
    openmp=lambda library, a: library.mcss(address(a), len(a)),
)
