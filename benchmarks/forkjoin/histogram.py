"""How often each byte occurs: blocks count for themselves, in a row of a table each, then the rows are added up."""

from typing import Any

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Bytes = gb.Array[gb.u8]
Counts = gb.Array[gb.i64]
BLOCK = 1 << 16


@gb.kernel
def serial(data: Bytes, table: Counts, out: Counts) -> None:
    for k in range(256):
        out[k] = 0
    for i in range(len(data)):
        out[data[i]] += 1


@gb.kernel
def count(data: Bytes, table: Counts, block: int) -> None:
    base = 256 * block
    for k in range(base, base + 256):
        table[k] = 0
    for i in range(block * BLOCK, min(block * BLOCK + BLOCK, len(data))):
        table[base + data[i]] += 1


@gb.kernel
def parallel(data: Bytes, table: Counts, out: Counts) -> None:
    blocks = len(table) // 256
    for block in gb.prange(blocks):
        count(data, table, block)
    for k in gb.prange(256):
        total = 0
        for row in range(blocks):
            total += table[256 * row + k]
        out[k] = total


def prepare(size: int) -> Inputs:
    data = numpy.random.default_rng(9).integers(0, 256, size).astype(numpy.uint8)
    blocks = (size + BLOCK - 1) // BLOCK
    return data, numpy.zeros(256 * blocks, dtype=numpy.int64), numpy.zeros(256, dtype=numpy.int64)


def check(inputs: Inputs, found: Any) -> None:
    assert (inputs[2] == numpy.bincount(inputs[0], minlength=256)).all()


def numba() -> Any:
    from numba import njit, prange

    one = njit(count.__wrapped__)

    @njit(parallel=True)
    def run(data: Any, table: Any, out: Any) -> None:
        blocks = len(table) // 256
        for block in prange(blocks):
            one(data, table, block)
        for k in prange(256):
            total = 0
            for row in range(blocks):
                total += table[256 * row + k]
            out[k] = total

    return run


WORKLOAD = Workload(
    about="how often each byte occurs",
    sizes=(100_000_000, 1_000_000_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
    numba=numba,
    openmp=lambda library, data, table, out: library.histogram(address(data), len(data), address(out)),
)
