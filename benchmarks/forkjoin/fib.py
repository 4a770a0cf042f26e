"""Fibonacci numbers by the definition: nothing but calls and forks."""

from typing import Any

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload


@gb.kernel
def serial(n: int) -> int:
    if n < 2:
        return n
    return serial(n - 1) + serial(n - 2)


@gb.kernel
def parallel(n: int) -> int:
    if n < 2:
        return n
    x, y = gb.par(parallel(n - 1), parallel(n - 2))
    return x + y


def check(inputs: Inputs, found: Any) -> None:
    a, b = 0, 1
    for _ in range(inputs[0]):
        a, b = b, a + b
    assert found == a


def pieces(n: int) -> list[tuple[Any, Inputs]]:
    """The 16 calls four levels below."""
    levels = [n]
    for _ in range(4):
        levels = [each - step for each in levels for step in (1, 2)]
    return [(serial, (each,)) for each in levels]


WORKLOAD = Workload(
    about="fib by the definition: a fork for each call",
    sizes=(35, 40),
    prepare=lambda size: (size,),
    serial=serial,
    parallel=parallel,
    check=check,
    openmp=lambda library, n: library.fib(n),
    pieces=pieces,
    go="fib",
)
