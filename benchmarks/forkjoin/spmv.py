"""A sparse matrix by a vector, in compressed rows whose lengths differ widely: bound by memory."""

from typing import Any

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Numbers = gb.Array[gb.f64]
Starts = gb.Array[gb.i64]
Columns = gb.Array[gb.i32]


@gb.kernel
def row(starts: Starts, columns: Columns, values: Numbers, vector: Numbers, i: int) -> float:
    total = 0.0
    for k in range(starts[i], starts[i + 1]):
        total += values[k] * vector[columns[k]]
    return total


@gb.kernel
def serial(starts: Starts, columns: Columns, values: Numbers, vector: Numbers, out: Numbers) -> None:
    for i in range(len(out)):
        out[i] = row(starts, columns, values, vector, i)


@gb.kernel
def parallel(starts: Starts, columns: Columns, values: Numbers, vector: Numbers, out: Numbers) -> None:
    for i in gb.prange(len(out)):
        out[i] = row(starts, columns, values, vector, i)


def prepare(size: int) -> Inputs:
    """`size` rows, most of them short, a few with thousands of elements."""
    random = numpy.random.default_rng(6)
    lengths = numpy.minimum((4 / (1 - random.random(size)) ** 0.7).astype(numpy.int64), size)
    starts = numpy.concatenate([[0], numpy.cumsum(lengths)])
    columns = random.integers(0, size, starts[-1]).astype(numpy.int32)
    return starts, columns, random.random(starts[-1]), random.random(size), numpy.zeros(size)


def check(inputs: Inputs, found: Any) -> None:
    starts, columns, values, vector, out = inputs
    assert numpy.allclose(out, numpy.add.reduceat(values * vector[columns], starts[:-1]))


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def run(starts: Any, columns: Any, values: Any, vector: Any, out: Any) -> None:
        for i in prange(len(out)):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += values[k] * vector[columns[k]]
            out[i] = total

    return run


def by_openmp(library: Any, starts: Any, columns: Any, values: Any, vector: Any, out: Any) -> None:
    library.spmv(*map(address, (starts, columns, values, vector, out)), len(out))


WORKLOAD = Workload(
    about="a sparse matrix with long and short rows, by a vector",
    sizes=(1_000_000, 8_000_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
    numba=numba,
    openmp=by_openmp,
)
