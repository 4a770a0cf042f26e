"""Programs that are limited by their critical path, under several policies of promoting forks.

    python -m benchmarks.span
    python -m benchmarks.span --full --workers 2

How soon a fork becomes a task matters where there is little to do at a time: a sequence of small forks, a tree with one
long arm, a scan with its narrow top. The policies: at a beat, one promotion, or as many as 30 tokens allow; and whether
tokens that are left are spent by the next forks at once (*eager*), whose records are then the youngest and the oldest.
In *every fork* tokens never end, so that each fork becomes a task: what that costs shows where forks are many.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import greenbeat as gb
from benchmarks import report
from greenbeat.api.bridge import native


@gb.kernel
def work(steps: int) -> int:
    """Takes a nanosecond or two per step, and nothing of it can be left out."""
    x = steps
    for _ in range(steps):
        x = (x * 6364136223846793005 + 1442695040888963407) ^ x >> 29
    return x & 1


@gb.kernel
def chain(length: int, steps: int) -> int:
    """Two branches at a time, one pair after the other."""
    total = 0
    for _ in range(length):
        x, y = gb.par(work(steps), work(steps))
        total += x + y
    return total


@gb.kernel
def long_arm(length: int, steps: int) -> int:
    """A tree whose left branch is nearly all of it."""
    if length == 0:
        return 0
    x, y = gb.par(long_arm(length - 1, steps), work(steps))
    return x + y


@gb.kernel
def late_arm(length: int, steps: int) -> int:
    """A tree whose right branch is nearly all of it."""
    if length == 0:
        return 0
    x, y = gb.par(work(steps), late_arm(length - 1, steps))
    return x + y


@gb.kernel
def tree(depth: int, steps: int) -> int:
    """A small full tree."""
    if depth == 0:
        return work(steps)
    x, y = gb.par(tree(depth - 1, steps), tree(depth - 1, steps))
    return x + y


@gb.kernel
def trees(length: int, steps: int) -> int:
    """Full trees of 64 leaves, one after the other."""
    total = 0
    for _ in range(length // 64):
        total += tree(6, steps)
    return total


@gb.kernel
def loops(length: int, steps: int) -> int:
    """Loops of 64 iterations, one after the other."""
    total = 0
    for _ in range(length // 64):
        for _ in gb.prange(64):
            total += work(steps)
    return total


@gb.kernel
def up(first: int, end: int, steps: int) -> int:
    """The first half of a scan by recursion: sums of all parts."""
    if end - first == 1:
        return work(steps)
    middle = (first + end) // 2
    x, y = gb.par(up(first, middle, steps), up(middle, end, steps))
    return x + y


@gb.kernel
def scan(length: int, steps: int) -> int:
    """Blelloch's scan, both ways, over parts of 64."""
    total = 0
    for part in range(length // 128):
        total += up(0, 64, steps)
        total += up(part, part + 64, steps)
    return total


class Policy(NamedTuple):
    """Tokens of a beat, and whether forks spend what is left of them."""

    name: str
    tokens: int
    eager: bool


POLICIES = (
    Policy("no tokens", 0, False),
    Policy("1 a beat", 1, False),
    Policy("30", 30, False),
    Policy("30, eager", 30, True),
    Policy("every fork", 1 << 30, True),
)
PROGRAMS: tuple[Callable[[int, int], int], ...] = (chain, long_arm, late_arm, trees, loops, scan)
# How long a branch is, in steps.
SIZES = (300, 3_000, 30_000)
TOTAL_STEPS = 10_000_000


def timed(function: Callable[..., Any], arguments: tuple[int, int], rounds: int) -> tuple[float, float]:
    """The best time of several calls in seconds, and the promotions of each call on average."""
    function(*arguments)
    best, before = float("inf"), native.promotion_count()
    for _ in range(rounds):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best, (native.promotion_count() - before) / rounds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.span", description="Compare policies of promotion.")
    parser.add_argument("--full", action="store_true", help="ten times the work")
    parser.add_argument("--workers", type=int, default=2, help="processors (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="times everything is run (default 5)")
    options = parser.parse_args()
    total = TOTAL_STEPS * (10 if options.full else 1)
    print(report.machine())
    print(f"the speed-up on {options.workers} over no promotions on 1; in brackets promotions per millisecond\n")
    rows = []
    for function in PROGRAMS:
        for steps in SIZES:
            arguments = (total // steps, steps)
            if function in (long_arm, late_arm):
                # Its depth is its length: more would need more stack than there is.
                arguments = (min(arguments[0], 4_000), steps)
            native.set_fork_policy(0, 0)
            with gb.Runtime(workers=1):
                alone, _ = timed(function, arguments, options.rounds)
            cells = []
            for policy in POLICIES:
                native.set_fork_policy(policy.tokens, policy.eager)
                with gb.Runtime(workers=options.workers):
                    taken, promotions = timed(function, arguments, options.rounds)
                cells.append(f"{alone / taken:.2f} ({promotions / taken / 1e3:.1f})")
            rows.append([f"{getattr(function, '__name__', '')}, {steps} steps", *cells])
    native.prepare_forks()
    print(report.table(["", *(policy.name for policy in POLICIES)], rows))


if __name__ == "__main__":
    main()
