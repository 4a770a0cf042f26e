"""What to expect of more processors than there are: the heartbeat scheduler, simulated on recorded programs.

    python -m benchmarks.simulate
    python -m benchmarks.simulate fib mandelbrot --processors 1 2 8 32 72 --save FILE
    python -m benchmarks.simulate --load FILE

A program of `benchmarks.forkjoin` is recorded by running its recursion in Python down to pieces of some microseconds,
which are timed as they run on one processor. What the simulation says for one processor and for two is compared with
the programs themselves. It knows nothing of memory: what is bound by its bandwidth will be slower than it says.

A recording is JSON: a number is work in nanoseconds; {"sequence": [...]} are parts one after the other; {"fork":
[left, right]} are branches; {"loop": [...]} has the nanoseconds of each iteration.
"""

import argparse
import importlib
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

import greenbeat as gb
from benchmarks import report
from benchmarks.forkjoin import fib, mandelbrot, mcss, mergesort, nqueens, spmv
from benchmarks.forkjoin.heartbeat import Costs, Fork, Loop, Program, Sequence, Work, loop, simulate, span_of, work_of
from benchmarks.forkjoin.workload import Inputs, seconds
from greenbeat.api.bridge import native
from greenbeat.cli import forks
from greenbeat.kernels import sorting

ROUNDS = 5
# Pieces of a recording are about so long.
PIECE = 5_000.0


def nanoseconds(function: Callable[..., Any], *inputs: Any, rounds: int = ROUNDS) -> float:
    """The best time of several calls."""
    return seconds(function, inputs, rounds) * 1e9


# ---------------------------------------------------------------- recordings


def record_fib(n: int) -> Program:
    """Calls below a size are pieces; all calls take the same."""
    calls = [1, 1]
    while len(calls) <= n:
        calls.append(1 + calls[-1] + calls[-2])
    each = nanoseconds(fib.parallel, 27) / calls[27]
    made: list[Program] = [Work(each * count) for count in calls if each * count < PIECE]
    # Both branches of a call are calls that were made before: a program may be a part of several.
    while len(made) <= n:
        made.append(Sequence([Fork(made[-1], made[-2]), Work(each)]))
    return made[n]


def record_nqueens(board: int, *state: int) -> Program:
    """Every piece is a call of the kernel with some queens placed.

    Pieces are timed by themselves, and as they are faster when they come again at once, scaled to the time of all.
    """
    whole = nanoseconds(nqueens.placed, board, *state)
    call = nanoseconds(nqueens.placed, board, board, 0, 0)
    depth = max(board.bit_length() - 9, 1)
    pieces: dict[tuple[int, int, int], float] = {}

    def queens(columns: int, rising: int, falling: int) -> list[tuple[int, int, int]]:
        free = board & ~(columns | rising | falling)
        found = [1 << place for place in range(board.bit_length()) if 1 << place & free]
        return [(columns | queen, (rising | queen) << 1, (falling | queen) >> 1) for queen in found]

    def measure(columns: int, rising: int, falling: int) -> None:
        if columns.bit_count() == depth:
            taken = nanoseconds(nqueens.placed, board, columns, rising, falling, rounds=2)
            pieces[columns, rising, falling] = max(taken - call, 1.0)
        else:
            for each in queens(columns, rising, falling):
                measure(*each)

    def placed(columns: int, rising: int, falling: int) -> Program:
        if (taken := pieces.get((columns, rising, falling))) is not None:
            return Work(taken * scale)
        found: Program = Work(0.0)
        # `chosen` forks at each queen, from the first one on; it is built from the last one.
        for each in reversed(queens(columns, rising, falling)):
            found = Fork(placed(*each), found)
        return found

    measure(*state)
    scale = whole / sum(pieces.values())
    return placed(*state)


def record_mergesort(numbers: Any, *_: Any) -> Program:
    """Sorting a piece, and merging an element, take what they do on average."""
    count = len(numbers)
    size = 2048
    few, many = (nanoseconds(mergesort.parallel, *mergesort.prepare(each)) for each in (size, 64 * size))
    # Six levels of merging are between them.
    merging = (many - 64 * few) / (6 * 64 * size)

    def merge(items: int) -> Program:
        if items <= sorting.MERGED:
            return Work(items * merging)
        half = merge(items // 2)
        return Fork(half, half)

    def sort(items: int) -> Program:
        if items <= size:
            return Work(few * items / size)
        half = sort(items // 2)
        return Sequence([Fork(half, half), merge(items)])

    return sort(count)


def record_mandelbrot(out: Any) -> Program:
    """A pixel's time is that of its steps."""
    mandelbrot.serial(out)
    steps = out.ravel() + 4.0
    return loop((steps * (nanoseconds(mandelbrot.parallel, out) / steps.sum())).tolist())


def record_mcss(a: Any) -> Program:
    """All terms take the same; they are taken by the hundred."""
    each = nanoseconds(mcss.parallel, a) / len(a)
    return loop([100 * each] * (len(a) // 100))


def record_spmv(starts: Any, columns: Any, values: Any, vector: Any, out: Any) -> Program:
    """A row's time is that of its elements."""
    lengths = numpy.diff(starts) + 2.0
    total = nanoseconds(spmv.parallel, starts, columns, values, vector, out)
    return loop((lengths * (total / lengths.sum())).tolist())


RECORDERS: dict[str, Callable[..., Program]] = {
    "fib": record_fib,
    "nqueens": record_nqueens,
    "mergesort": record_mergesort,
    "mandelbrot": record_mandelbrot,
    "mcss": record_mcss,
    "spmv": record_spmv,
}


def to_json(program: Program) -> Any:
    """A recording as it is written."""
    match program:
        case Work(taken):
            return round(taken)
        case Sequence(parts):
            return {"sequence": [to_json(part) for part in parts]}
        case Fork(left, right):
            return {"fork": [to_json(left), to_json(right)]}
        case Loop(sums):
            return {"loop": [round(b - a) for a, b in itertools.pairwise(sums)]}


def from_json(value: Any) -> Program:
    """A recording that was written."""
    match value:
        case {"sequence": parts}:
            return Sequence([from_json(part) for part in parts])
        case {"fork": [left, right]}:
            return Fork(from_json(left), from_json(right))
        case {"loop": costs}:
            return loop(costs)
    return Work(float(value))


# ---------------------------------------------------------------- what things cost, and the table


def measured_costs() -> Costs:
    """What the scheduler's steps take here: a task at every fork, against none, says what making and joining one takes.

    What stealing takes, and waking a processor, depends on the system, and is assumed.
    """
    native.set_fork_policy(0, 0)
    with gb.Runtime(workers=1):
        none = nanoseconds(forks.fib_by_par, 25)
        every = nanoseconds(forks.fib_by_tasks, 25)
    native.prepare_forks()
    task = (every - none) / 242_784
    return Costs(promote=task / 2, join=task / 2)


def real(name: str, inputs: Inputs, processors: int) -> float:
    """What the program takes in reality, in nanoseconds."""
    parallel = importlib.import_module(f"benchmarks.forkjoin.{name}").WORKLOAD.parallel
    with gb.Runtime(workers=processors):
        return nanoseconds(parallel, *inputs)


def recorded(names: list[str], full: bool) -> dict[str, tuple[Program, dict[int, float]]]:
    """Programs, and what they take in reality."""
    found = {}
    for name in names:
        workload = importlib.import_module(f"benchmarks.forkjoin.{name}").WORKLOAD
        inputs = workload.prepare(workload.sizes[full])
        native.set_fork_policy(0, 0)
        with gb.Runtime(workers=1):
            program = RECORDERS[name](*inputs)
        native.prepare_forks()
        found[name] = program, {count: real(name, inputs, count) for count in (1, 2)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulate", description="Simulate more processors.")
    parser.add_argument("names", nargs="*", choices=[*RECORDERS, []], help="programs; all of them by default")
    parser.add_argument("--full", action="store_true", help="sizes that take about a second")
    parser.add_argument("--processors", type=int, nargs="+", default=[1, 2, 8, 32, 72], metavar="N")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the recordings")
    parser.add_argument("--load", type=Path, metavar="FILE", help="simulate recordings, and measure nothing")
    options = parser.parse_args()
    programs: dict[str, tuple[Program, dict[int, float]]]
    if options.load:
        programs = {name: (from_json(each), {}) for name, each in json.loads(options.load.read_text()).items()}
        costs = Costs()
    else:
        programs = recorded(options.names or list(RECORDERS), options.full)
        costs = measured_costs()
    if options.save:
        options.save.write_text(json.dumps({name: to_json(program) for name, (program, _) in programs.items()}))
    print(report.machine())
    told = {"promoting": costs.promote, "joining": costs.join, "stealing": costs.steal, "waking": costs.wake}
    print("nanoseconds: " + ", ".join(f"{name} {taken:.0f}" for name, taken in told.items()))
    rows, errors = [], []
    for name, (program, times) in programs.items():
        start = time.perf_counter()
        work, span = work_of(program), span_of(program)
        cells = [name, f"{work / 1e6:.1f}", f"{work / span:.0f}"]
        found = {count: simulate(program, count, costs) for count in {*options.processors, *times}}
        cells += [f"{work / found[count].time:.2f}" for count in options.processors]
        for count, taken in times.items():
            error = found[count].time / taken - 1
            errors.append(abs(error))
            cells.append(f"{error * 100:+.0f} %")
        rows.append([*cells, f"{time.perf_counter() - start:.1f}"])
    headings = ["", "work, ms", "work / span", *(f"on {count}" for count in options.processors)]
    if errors:
        headings += ["error on 1", "on 2"]
    print("\nthe speed-up over the work; and how much longer the simulation takes than the program itself\n")
    print(report.table([*headings, "s"], rows))
    if errors:
        print(f"\nmean error: {sum(errors) / len(errors) * 100:.0f} %")


if __name__ == "__main__":
    main()
