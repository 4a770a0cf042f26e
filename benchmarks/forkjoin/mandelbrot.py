"""Mandelbrot's set: pixels that take from one step to hundreds, by floating-point arithmetic alone."""

import itertools
from typing import Any, Literal

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Picture = gb.Array[gb.i32, Literal[2]]
MOST = 300


@gb.kernel
def steps(x: float, y: float) -> int:
    a = b = 0.0
    for i in range(MOST):
        a, b = a * a - b * b + x, 2 * a * b + y
        if a * a + b * b > 4:
            return i
    return MOST


@gb.kernel
def serial(out: Picture) -> None:
    height, width = out.shape
    for i in range(height):
        for j in range(width):
            out[i, j] = steps(j * 3 / width - 2, i * 2 / height - 1)


@gb.kernel
def parallel(out: Picture) -> None:
    height, width = out.shape
    for i in gb.prange(height):
        for j in gb.prange(width):
            out[i, j] = steps(j * 3 / width - 2, i * 2 / height - 1)


def check(inputs: Inputs, found: Any) -> None:
    """Some of the pixels, in Python."""
    out = inputs[0]
    height, width = out.shape
    for i in range(0, height, max(height // 20, 1)):
        for j in range(0, width, max(width // 20, 1)):
            assert out[i, j] == steps.python(j * 3 / width - 2, i * 2 / height - 1)


def numba() -> Any:
    from numba import njit, prange

    one = njit(steps.__wrapped__)

    @njit(parallel=True)
    def run(out: Any) -> None:
        height, width = out.shape
        for i in prange(height):
            for j in range(width):
                out[i, j] = one(j * 3 / width - 2, i * 2 / height - 1)

    return run


@gb.kernel
def strip(width: int, height: int, first: int, end: int) -> int:
    """The steps of some rows, added up: processes send little back."""
    total = 0
    for i in range(first, end):
        for j in range(width):
            total += steps(j * 3 / width - 2, i * 2 / height - 1)
    return total


def pieces(out: Any) -> list[tuple[Any, Inputs]]:
    height, width = out.shape
    bounds = numpy.linspace(0, height, 17).astype(int).tolist()
    return [(strip, (width, height, a, b)) for a, b in itertools.pairwise(bounds)]


WORKLOAD = Workload(
    about="Mandelbrot's set: floating-point arithmetic, uneven",
    sizes=(600, 2_400),
    prepare=lambda size: (numpy.zeros((size, size * 3 // 2), dtype=numpy.int32),),
    serial=serial,
    parallel=parallel,
    check=check,
    numba=numba,
    openmp=lambda library, out: library.mandelbrot(address(out), *out.shape),
    pieces=pieces,
    go="mandelbrot",
)
