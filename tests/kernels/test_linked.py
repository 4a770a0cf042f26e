"""What is at an address of kernels' code."""

import ctypes
import sys
from itertools import pairwise

import pytest

import greenbeat as gb
from greenbeat.kernels import linked


@gb.kernel
def branch(n: int) -> int:
    if n < 2:
        return n
    x, y = gb.par(branch(n - 1), branch(n - 2))
    return x + y


@gb.kernel
def loop(n: int) -> int:
    total = 0
    for i in gb.prange(n):
        total += i
    return total


def test_what_fibers_can_begin_with() -> None:
    assert branch(5) == 5 and loop(5) == 10
    names = [name for _, name in linked.entries()]
    # As a call of Python's, and as a branch.
    assert names.count(branch._function.symbol) == 2
    assert names.count(loop._function.symbol) == 1
    assert f"{loop._function.symbol}.loop.1" in names
    addresses = [address for address, _ in linked.entries()]
    assert len(set(addresses)) == len(addresses)


@pytest.mark.skipif(sys.platform != "linux", reason="only object files in ELF tell")
def test_every_function_is_found() -> None:
    assert branch(5) == 5
    functions = linked.functions()
    assert functions == sorted(functions)
    assert all(start + size <= following for (start, size, _), (following, _, _) in pairwise(functions))
    places = {start: name for start, _, name in functions}
    for address, name in linked.entries():
        assert places[address] in ("thunk", f"{name}.thunk", f"{name}.body.thunk", f"{name}.chunk")
    assert branch._function.symbol in places.values()
    # There is code, not something else.
    assert all(ctypes.string_at(start, size) for start, size, _ in functions)


def test_watchers_are_told() -> None:
    told = []

    def watcher() -> None:
        told.append(len(list(linked.entries())))

    linked.watch(watcher)
    try:

        @gb.kernel
        def fresh(n: int) -> int:
            return n + 1

        assert fresh(1) == 2
    finally:
        linked.forget(watcher)
    assert told == [len(list(linked.entries()))]

    @gb.kernel
    def later(n: int) -> int:
        return n + 2

    assert later(1) == 3
    assert len(told) == 1
