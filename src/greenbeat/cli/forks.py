"""`greenbeat bench par`: a fork that makes a task each time, beside one that becomes a task only at a beat.

The programs are written twice: *before* spawns and joins a task at every fork, *after* is `gb.par`. The serial kernel
says what both cost on top. Every figure is the best of several runs, and every result is compared with a known one.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import greenbeat as gb
from greenbeat.cli.failures import FAILED, CommandError
from greenbeat.cli.terminal import Paint

# Of each program and version.
ROUNDS = 5


@gb.kernel
def fib(n: int) -> int:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@gb.kernel
def fib_by_tasks(n: int) -> int:
    if n < 2:
        return n
    right = gb.spawn(fib_by_tasks, n - 2)
    left = fib_by_tasks(n - 1)
    return left + right.join()


@gb.kernel
def fib_by_par(n: int) -> int:
    if n < 2:
        return n
    left, right = gb.par(fib_by_par(n - 1), fib_by_par(n - 2))
    return left + right


@gb.kernel
def smaller(size: int) -> int:
    """The size of a tree's left part: anything from nothing to all."""
    return (size * 2654435761 + 12345 ^ size >> 3) % size


@gb.kernel
def tree(size: int) -> int:
    """Count the nodes of a tree whose shape follows from its size alone."""
    if size == 0:
        return 0
    left = smaller(size)
    return 1 + tree(left) + tree(size - 1 - left)


@gb.kernel
def tree_by_tasks(size: int) -> int:
    if size == 0:
        return 0
    left = smaller(size)
    later = gb.spawn(tree_by_tasks, size - 1 - left)
    found = tree_by_tasks(left)
    return 1 + found + later.join()


@gb.kernel
def tree_by_par(size: int) -> int:
    if size == 0:
        return 0
    left = smaller(size)
    found, later = gb.par(tree_by_par(left), tree_by_par(size - 1 - left))
    return 1 + found + later


@gb.kernel
def queens(board: int, columns: int, rising: int, falling: int, free: int) -> int:
    """Ways to go on with a queen in one of the free columns; the rest are sets of columns taken and attacked."""
    if columns == board:
        return 1
    if free == 0:
        return 0
    queen = free & -free
    taken, up, down = columns | queen, (rising | queen) << 1, (falling | queen) >> 1
    here = queens(board, taken, up, down, board & ~(taken | up | down))
    return here + queens(board, columns, rising, falling, free ^ queen)


@gb.kernel
def queens_by_tasks(board: int, columns: int, rising: int, falling: int, free: int) -> int:
    if columns == board:
        return 1
    if free == 0:
        return 0
    queen = free & -free
    taken, up, down = columns | queen, (rising | queen) << 1, (falling | queen) >> 1
    later = gb.spawn(queens_by_tasks, board, columns, rising, falling, free ^ queen)
    here = queens_by_tasks(board, taken, up, down, board & ~(taken | up | down))
    return here + later.join()


@gb.kernel
def queens_by_par(board: int, columns: int, rising: int, falling: int, free: int) -> int:
    if columns == board:
        return 1
    if free == 0:
        return 0
    queen = free & -free
    taken, up, down = columns | queen, (rising | queen) << 1, (falling | queen) >> 1
    here, later = gb.par(
        queens_by_par(board, taken, up, down, board & ~(taken | up | down)),
        queens_by_par(board, columns, rising, falling, free ^ queen),
    )
    return here + later


Kernel = Callable[..., int]
# Name, arguments, what comes out, and the three versions.
PROGRAMS: tuple[tuple[str, tuple[int, ...], int, tuple[Kernel, Kernel, Kernel]], ...] = (
    ("fib 32", (32,), 2_178_309, (fib, fib_by_tasks, fib_by_par)),
    ("a tree of 3,000,000 nodes", (3_000_000,), 3_000_000, (tree, tree_by_tasks, tree_by_par)),
    ("12 queens", (4095, 0, 0, 0, 4095), 14_200, (queens, queens_by_tasks, queens_by_par)),
)


def best(function: Kernel, arguments: tuple[int, ...], expected: int) -> float:
    """The shortest time of several runs, in seconds."""
    found = float("inf")
    for _ in range(1 + ROUNDS):
        start = time.perf_counter()
        result = function(*arguments)
        found = min(found, time.perf_counter() - start)
        if result != expected:
            raise CommandError(f"{getattr(function, '__name__', '')} gave {result}, not {expected}", FAILED)
    return found


def measure(tell: Callable[[str], None]) -> dict[str, Any]:
    """The times of all programs and versions in seconds, by the number of processors."""
    programs = []
    for name, arguments, expected, (serial, before, after) in PROGRAMS:
        tell(name)
        found: dict[str, Any] = {"program": name, "serial": best(serial, arguments, expected), "processors": {}}
        for count in (1, 2):
            with gb.Runtime(workers=count):
                times = {"before": best(before, arguments, expected), "after": best(after, arguments, expected)}
                found["processors"][count] = times
        programs.append(found)
    return {"programs": programs}


def lines(result: dict[str, Any], paint: Paint) -> Iterator[str]:
    """The seed's table for each program: before and after, on one processor and on two."""
    yield "before: a task is spawned and joined at every fork.  after: gb.par, whose forks become tasks at beats."
    for each in result["programs"]:
        serial = each["serial"]
        yield ""
        yield paint("bold", f"{each['program']}: serial {serial:.4f} s")
        yield "  procs      before       after   before / after   after / serial"
        for count, times in each["processors"].items():
            before, after = times["before"], times["after"]
            yield f"  {count:5}  {before:8.4f} s  {after:8.4f} s  {before / after:15.1f}  {after / serial:15.2f}"
