"""Breadth-first search of a random graph, level by level; each level is a parallel loop over all vertices.

Two vertices may reach a third at the same time: both write the same number, so it does not matter who comes first.
"""

from typing import Any

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Starts = gb.Array[gb.i64]
Vertices = gb.Array[gb.i32]
DEGREE = 8


@gb.kernel
def serial(starts: Starts, ends: Vertices, level: Vertices) -> int:
    """How many vertices are reached from the first. On graphs of few levels this is faster than with a queue."""
    for v in range(len(level)):
        level[v] = -1
    level[0] = 0
    reached = 0
    depth = 0
    while True:
        found = 0
        for v in range(len(level)):
            if level[v] == depth:
                found += 1
                for k in range(starts[v], starts[v + 1]):
                    if level[ends[k]] < 0:
                        level[ends[k]] = depth + 1
        if found == 0:
            return reached
        reached += found
        depth += 1


@gb.kernel
def parallel(starts: Starts, ends: Vertices, level: Vertices) -> int:
    for v in gb.prange(len(level)):
        level[v] = -1
    level[0] = 0
    reached = 0
    depth = 0
    while True:
        found = 0
        for v in gb.prange(len(level)):
            if level[v] == depth:
                found += 1
                for k in range(starts[v], starts[v + 1]):
                    if level[ends[k]] < 0:
                        level[ends[k]] = depth + 1
        if found == 0:
            return reached
        reached += found
        depth += 1


def prepare(size: int) -> Inputs:
    random = numpy.random.default_rng(8)
    tails = numpy.sort(random.integers(0, size, size * DEGREE))
    starts = numpy.searchsorted(tails, numpy.arange(size + 1)).astype(numpy.int64)
    ends = random.integers(0, size, size * DEGREE).astype(numpy.int32)
    return starts, ends, numpy.zeros(size, dtype=numpy.int32)


def check(inputs: Inputs, found: Any) -> None:
    """Every edge leads at most one level further, and every level but the first is reached from the one before."""
    starts, ends, level = inputs
    tails = numpy.repeat(level, numpy.diff(starts))
    heads = level[ends]
    assert (heads[tails >= 0] >= 0).all()
    assert (heads[tails >= 0] <= tails[tails >= 0] + 1).all()
    closest = numpy.full(len(level), 1 << 30)
    numpy.minimum.at(closest, ends[tails >= 0], tails[tails >= 0])
    assert (level[level > 0] == closest[level > 0] + 1).all()
    assert found == (level >= 0).sum()
    assert (level == 0).sum() == 1


def numba() -> Any:
    from numba import njit, prange

    @njit(parallel=True)
    def run(starts: Any, ends: Any, level: Any) -> Any:
        for v in prange(len(level)):
            level[v] = -1
        level[0] = 0
        reached = 0
        depth = 0
        while True:
            found = 0
            for v in prange(len(level)):
                if level[v] == depth:
                    found += 1
                    for k in range(starts[v], starts[v + 1]):
                        if level[ends[k]] < 0:
                            level[ends[k]] = depth + 1
            if found == 0:
                return reached
            reached += found
            depth += 1

    return run


def by_openmp(library: Any, starts: Any, ends: Any, level: Any) -> Any:
    return library.bfs(address(starts), address(ends), address(level), len(level))


WORKLOAD = Workload(
    about="breadth-first search, level by level",
    sizes=(500_000, 4_000_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
    numba=numba,
    openmp=by_openmp,
)
