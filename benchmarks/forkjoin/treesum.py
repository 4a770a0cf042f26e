"""The sum of a binary search tree of random shape, kept in arrays: unbalanced, and bound by memory's latency."""

from typing import Any

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Numbers = gb.Array[gb.i64]
Links = gb.Array[gb.i32]


@gb.kernel
def build(left: Links, right: Links, places: Links, first: int, end: int) -> int:
    """Link the nodes of a range below a random one of it; -1 if there are none."""
    if first >= end:
        return -1
    middle = first + (first * 2654435761 ^ end * 40503) % (end - first)
    root = places[middle]
    left[root] = build(left, right, places, first, middle)
    right[root] = build(left, right, places, middle + 1, end)
    return root


@gb.kernel
def serial(values: Numbers, left: Links, right: Links, node: int) -> int:
    if node < 0:
        return 0
    return values[node] + serial(values, left, right, left[node]) + serial(values, left, right, right[node])


@gb.kernel
def parallel(values: Numbers, left: Links, right: Links, node: int) -> int:
    if node < 0:
        return 0
    x, y = gb.par(parallel(values, left, right, left[node]), parallel(values, left, right, right[node]))
    return values[node] + x + y


def prepare(size: int) -> Inputs:
    random = numpy.random.default_rng(1)
    values = random.integers(0, 1000, size)
    places = random.permutation(size).astype(numpy.int32)
    left, right = numpy.empty_like(places), numpy.empty_like(places)
    return values, left, right, build(left, right, places, 0, size)


def check(inputs: Inputs, found: Any) -> None:
    assert found == inputs[0].sum()


def by_openmp(library: Any, values: Any, left: Any, right: Any, root: int) -> Any:
    return library.treesum(address(values), address(left), address(right), root)


WORKLOAD = Workload(
    about="the sum of an unbalanced tree in arrays",
    sizes=(2_000_000, 20_000_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
    openmp=by_openmp,
)
