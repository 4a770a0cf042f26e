"""What to expect of more processors than there are: the heartbeat scheduler, simulated on what traces tell.

    python -m benchmarks.simulate
    python -m benchmarks.simulate fib mandelbrot --processors 1 2 8 32 72 --save FOLDER
    python -m benchmarks.simulate --trace run.json

A program of `benchmarks.forkjoin` is traced by `greenbeat.trace` while it runs on one processor, with so many beats
that everything longer than a fraction of a millisecond is a task. What the simulation says for one processor and for
two is compared with the programs themselves. It knows nothing of memory: what is bound by its bandwidth will be slower
than it says. A trace of a program of one's own has what the usual beats have promoted, and what was not taken back.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import greenbeat as gb
from benchmarks import report
from benchmarks.forkjoin.__main__ import NAMES, program, workload
from benchmarks.forkjoin.heartbeat import Costs, Program, simulate, span_of, work_of
from benchmarks.forkjoin.recorded import program_of
from benchmarks.forkjoin.workload import Inputs, seconds
from greenbeat.api.bridge import native
from greenbeat.cli import forks

ROUNDS = 5
# Nanoseconds between the beats of a recording; the system makes them a little longer.
BEAT = 20_000
EVENTS = 1 << 22
PROCESSORS = (1, 2, 8, 32, 72)
OWN_TRACE = (
    "A trace of your own has only what was promoted while it was recorded: what was not, counts as one piece of work.\n"
    "So processors beyond those that it was recorded on show little."
)


def nanoseconds(function: Callable[..., Any], *inputs: Any, rounds: int = ROUNDS) -> float:
    """The best time of several calls."""
    return seconds(function, inputs, rounds) * 1e9


# ---------------------------------------------------------------- recordings


@contextmanager
def finely() -> Iterator[None]:
    """Beats come often, and no promotion is taken back: a trace has all that is worth a task, and where it ended."""
    native.keep_promoted(1)
    native.set_beat(BEAT)
    try:
        yield
    finally:
        native.keep_promoted(0)
        native.beat_faster()


def recorded(name: str, inputs: Inputs, folder: Path | None) -> Program:
    """The program that a run on one processor was, with the time that it takes when it is not recorded."""
    parallel = workload(name).parallel
    native.set_fork_policy(0, 0)
    with gb.Runtime(workers=1):
        whole = nanoseconds(parallel, *inputs)
        native.prepare_forks()
        with finely(), gb.trace(folder / f"{name}.json" if folder else None, events=EVENTS) as trace:
            parallel(*inputs)
    assert trace.timeline is not None
    if trace.timeline.dropped:
        print(f"{name}: {trace.timeline.dropped} events were dropped, so its beginning is missing", file=sys.stderr)
    return program_of(trace.timeline.events, whole)


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
    with gb.Runtime(workers=processors):
        return nanoseconds(workload(name).parallel, *inputs)


def traced(path: Path) -> Program:
    """The program of a file that `greenbeat.trace` has written.

    Raises:
        SystemExit: it cannot be read, or is none; the message says so.
    """
    try:
        found = program_of(json.loads(path.read_bytes())["traceEvents"])
    except OSError as problem:
        raise SystemExit(f"simulate: {path}: it cannot be read: {problem.strerror or problem}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise SystemExit(f"simulate: {path}: this is no trace that was recorded by greenbeat.trace") from None
    if not work_of(found):
        raise SystemExit(f"simulate: {path}: no task ran while this was recorded, so there is nothing to simulate")
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Run a command line, by default the process's own."""
    counts = f"processors to simulate (default {' '.join(map(str, PROCESSORS))})"
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulate", description="Simulate more processors.")
    parser.add_argument(
        "names", metavar="NAME", nargs="*", type=program, help=f"any of {', '.join(NAMES)}; default: all"
    )
    parser.add_argument("--full", action="store_true", help="sizes that take about a second")
    parser.add_argument("--processors", type=int, nargs="+", default=PROCESSORS, metavar="N", help=counts)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the traces")
    parser.add_argument("--trace", type=Path, nargs="+", metavar="FILE", help="simulate traces, and measure nothing")
    options = parser.parse_args(words)
    if min(options.processors) < 1:
        parser.error("--processors must be at least 1")
    if options.trace and (options.names or options.full or options.save):
        parser.error("--trace simulates what was recorded before: it goes without names, --full and --save")
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
    programs: dict[str, tuple[Program, dict[int, float]]] = {}
    if options.trace:
        costs = Costs()
        for path in options.trace:
            programs[str(path)] = traced(path), {}
    else:
        costs = measured_costs()
        for name in options.names or NAMES:
            inputs = workload(name).prepare(workload(name).sizes[options.full])
            programs[name] = (
                recorded(name, inputs, options.save),
                {count: real(name, inputs, count) for count in (1, 2)},
            )
    print(report.machine())
    told = {"promoting": costs.promote, "joining": costs.join, "stealing": costs.steal, "waking": costs.wake}
    print("nanoseconds: " + ", ".join(f"{name} {taken:.0f}" for name, taken in told.items()))
    rows, errors = [], []
    for name, (made, times) in programs.items():
        start = time.perf_counter()
        work, span = work_of(made), span_of(made)
        cells = [name, f"{work / 1e6:.1f}", f"{work / span:.0f}"]
        found = {count: simulate(made, count, costs) for count in {*options.processors, *times}}
        cells += [f"{work / found[count].time:.2f}" for count in options.processors]
        for count, taken in times.items():
            error = found[count].time / taken - 1
            errors.append(abs(error))
            cells.append(f"{error * 100:+.0f} %")
        rows.append([*cells, f"{time.perf_counter() - start:.1f}"])
    headings = ["", "work, ms", "work / span", *(f"on {count}" for count in options.processors)]
    if errors:
        headings += ["error on 1", "on 2"]
    compared = "; and how much longer the simulation takes than the program itself" if errors else ""
    print(f"\nthe speed-up over the work{compared}\n")
    print(report.table([*headings, "s"], rows))
    if options.trace:
        print(f"\n{OWN_TRACE}")
    if errors:
        print(f"\nmean error: {sum(errors) / len(errors) * 100:.0f} %")


if __name__ == "__main__":
    main()
