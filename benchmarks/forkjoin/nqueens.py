"""How many ways there are to put n queens on a board so that none attacks another: an irregular search."""

from typing import Any

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload

KNOWN = {4: 2, 8: 92, 10: 724, 11: 2680, 12: 14_200, 13: 73_712, 14: 365_596, 15: 2_279_184, 16: 14_772_512}


@gb.kernel
def serial(board: int, columns: int, rising: int, falling: int) -> int:
    """The ways to go on; the arguments are sets of columns: all, taken, and attacked along the diagonals."""
    if columns == board:
        return 1
    free = board & ~(columns | rising | falling)
    ways = 0
    while free != 0:
        queen = free & -free
        free ^= queen
        ways += serial(board, columns | queen, (rising | queen) << 1, (falling | queen) >> 1)
    return ways


@gb.kernel
def placed(board: int, columns: int, rising: int, falling: int) -> int:
    """The ways to go on from here."""
    if columns == board:
        return 1
    return chosen(board, columns, rising, falling, board & ~(columns | rising | falling))


@gb.kernel
def chosen(board: int, columns: int, rising: int, falling: int, free: int) -> int:
    """The ways with a queen in one of these columns: in the first of them, or in another one."""
    if free == 0:
        return 0
    queen = free & -free
    x, y = gb.par(
        placed(board, columns | queen, (rising | queen) << 1, (falling | queen) >> 1),
        chosen(board, columns, rising, falling, free ^ queen),
    )
    return x + y


def check(inputs: Inputs, found: Any) -> None:
    assert found == KNOWN[inputs[0].bit_length()]


def numba() -> Any:
    """A loop over the first two queens."""
    from numba import njit, prange

    names: dict[str, Any] = {}
    exec(SEARCH, names)
    search = names["search"] = njit(names["search"])

    @njit(parallel=True)
    def run(board: Any, columns: Any, rising: Any, falling: Any, n: Any) -> Any:
        ways = 0
        for pair in prange(n * n):
            a, b = 1 << pair // n, 1 << pair % n
            if b & (a | a << 1 | a >> 1) == 0:
                ways += search(board, a | b, (a << 1 | b) << 1, (a >> 1 | b) >> 1)
        return ways

    return lambda board, columns, rising, falling: run(board, columns, rising, falling, board.bit_length())


SEARCH = """
def search(board, columns, rising, falling):
    if columns == board:
        return 1
    free = board & ~(columns | rising | falling)
    ways = 0
    while free != 0:
        queen = free & -free
        free ^= queen
        ways += search(board, columns | queen, (rising | queen) << 1, (falling | queen) >> 1)
    return ways
"""


def pieces(board: int, columns: int, rising: int, falling: int) -> list[tuple[Any, Inputs]]:
    """A call for each place of the first queen."""
    queens = [1 << place for place in range(board.bit_length())]
    return [(serial, (board, queen, queen << 1, queen >> 1)) for queen in queens]


WORKLOAD = Workload(
    about="n queens: an irregular search",
    sizes=(13, 15),
    prepare=lambda size: ((1 << size) - 1, 0, 0, 0),
    serial=serial,
    parallel=placed,
    check=check,
    numba=numba,
    openmp=lambda library, *inputs: library.nqueens(*inputs),
    pieces=pieces,
    go="nqueens",
)
