"""Sorting floats: `gb.psort`, which merges in parallel too, beside the same recursion without forks."""

from typing import Any

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Numbers = gb.Array[gb.f64]
RUN = 24


@gb.kernel
def sort(a: Numbers, scratch: Numbers, first: int, end: int, elsewhere: bool) -> None:
    """Sort a part in place, or into `scratch`."""
    if end - first <= RUN:
        for i in range(first + 1, end):
            x = a[i]
            k = i
            while k > first and x < a[k - 1]:
                a[k] = a[k - 1]
                k -= 1
            a[k] = x
        if elsewhere:
            for i in range(first, end):
                scratch[i] = a[i]
        return
    middle = (first + end) // 2
    sort(a, scratch, first, middle, not elsewhere)
    sort(a, scratch, middle, end, not elsewhere)
    if elsewhere:
        merge(a, first, middle, end, scratch)
    else:
        merge(scratch, first, middle, end, a)


@gb.kernel
def merge(source: Numbers, first: int, middle: int, end: int, target: Numbers) -> None:
    """Merge two neighbours."""
    second = middle
    at = first
    while first < middle and second < end:
        if source[second] < source[first]:
            target[at] = source[second]
            second += 1
        else:
            target[at] = source[first]
            first += 1
        at += 1
    for i in range(middle - first):
        target[at + i] = source[first + i]
    for i in range(end - second):
        target[at + middle - first + i] = source[second + i]


@gb.kernel
def serial(numbers: Numbers, a: Numbers, scratch: Numbers) -> None:
    for i in range(len(a)):
        a[i] = numbers[i]
    sort(a, scratch, 0, len(a), False)


@gb.kernel
def parallel(numbers: Numbers, a: Numbers, scratch: Numbers) -> None:
    for i in gb.prange(len(a)):
        a[i] = numbers[i]
    gb.psort(a, scratch)


def prepare(size: int) -> Inputs:
    numbers = numpy.random.default_rng(2).random(size)
    return numbers, numpy.empty(size), numpy.empty(size)


def check(inputs: Inputs, found: Any) -> None:
    assert (inputs[1] == numpy.sort(inputs[0])).all()


def by_openmp(library: Any, numbers: Any, a: Any, scratch: Any) -> Any:
    return library.mergesort(address(numbers), address(a), address(scratch), len(a))


WORKLOAD = Workload(
    about="a stable merge sort of floats",
    sizes=(1_000_000, 20_000_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
    openmp=by_openmp,
    go="mergesort",
)
