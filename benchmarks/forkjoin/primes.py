"""The sieve of Eratosthenes, block by block: each block is sieved by all small primes while it is in the cache."""

from typing import Any

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Flags = gb.Array[gb.u8]
Primes = gb.Array[gb.i64]
BLOCK = 1 << 16


@gb.kernel
def sieve(flags: Flags, primes: Primes, block: int) -> int:
    """Sieve one block; how many of its numbers are prime."""
    first = block * BLOCK
    end = min(first + BLOCK, len(flags))
    for i in range(first, end):
        flags[i] = 1
    for k in range(len(primes)):
        p = primes[k]
        if p * p >= end:
            break
        for i in range(max(p * p, (first + p - 1) // p * p), end, p):
            flags[i] = 0
    count = 0
    for i in range(max(first, 2), end):
        count += flags[i]
    return count


@gb.kernel
def serial(flags: Flags, primes: Primes) -> int:
    count = 0
    for block in range((len(flags) + BLOCK - 1) // BLOCK):
        count += sieve(flags, primes, block)
    return count


@gb.kernel
def parallel(flags: Flags, primes: Primes) -> int:
    count = 0
    for block in gb.prange((len(flags) + BLOCK - 1) // BLOCK):
        count += sieve(flags, primes, block)
    return count


def primes_below(n: int) -> Any:
    """In numpy."""
    flags = numpy.ones(n, dtype=bool)
    flags[:2] = False
    for p in range(2, int(n**0.5) + 1):
        if flags[p]:
            flags[p * p :: p] = False
    return numpy.flatnonzero(flags)


def prepare(size: int) -> Inputs:
    return numpy.zeros(size, dtype=numpy.uint8), primes_below(int(size**0.5) + 2)


def check(inputs: Inputs, found: Any) -> None:
    assert found == len(primes_below(len(inputs[0])))


def numba() -> Any:
    from numba import njit, prange

    one = njit(sieve.__wrapped__)

    @njit(parallel=True)
    def run(flags: Any, primes: Any) -> Any:
        count = 0
        for block in prange((len(flags) + BLOCK - 1) // BLOCK):
            count += one(flags, primes, block)
        return count

    return run


def by_openmp(library: Any, flags: Any, primes: Any) -> Any:
    return library.primes(address(flags), len(flags), address(primes), len(primes))


WORKLOAD = Workload(
    about="a sieve, block by block",
    sizes=(30_000_000, 500_000_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
    numba=numba,
    openmp=by_openmp,
)
