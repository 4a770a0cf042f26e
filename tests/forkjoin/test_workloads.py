"""The parallel programs of `benchmarks.forkjoin` are right, at sizes of a few beats."""

from collections.abc import Iterator

import pytest

import greenbeat as gb

pytest.importorskip("numpy")

from benchmarks.forkjoin.__main__ import NAMES, workload

SMALL = {"fib": 3, "nqueens": 4, "mandelbrot": 7, "raytracer": 9}
LARGE = {"fib": 27, "nqueens": 10, "mandelbrot": 160, "raytracer": 90}


@pytest.fixture(params=[1, 3], scope="module", autouse=True)
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    """Everything here is run with one worker and with several."""
    with gb.Runtime(request.param):
        yield request.param


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("large", [False, True])
def test_a_program(name: str, large: bool) -> None:
    made = workload(name)
    size = LARGE.get(name, 200_000) if large else SMALL.get(name, 10)
    inputs = made.prepare(size)
    made.check(inputs, made.serial(*inputs))
    for _ in range(5 if large else 1):
        made.check(inputs, made.parallel(*inputs))
