"""Parallel programs on one processor and on several, beside numba, OpenMP, processes and Go.

    python -m benchmarks.forkjoin
    python -m benchmarks.forkjoin fib nqueens --full --workers 2 --json FILE

For each program: the serial kernel's time, how much longer the parallel one takes on one processor, how much faster
than the serial one, and than itself on one, it is on several, and the time of each peer there, relative to Greenbeat's.
Where the speed-up is not near the number of processors, serial kernels are run at once: what they lose, no scheduler
can win. A trace of one run says how parallel what was forked is, and how busy the workers were.
"""

import argparse
import importlib
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import greenbeat as gb
from benchmarks import report
from benchmarks.forkjoin.rivals import RIVALS, Rival
from benchmarks.forkjoin.workload import Inputs, Workload, seconds

NAMES = (
    "fib",
    "treesum",
    "nqueens",
    "mergesort",
    "primes",
    "mcss",
    "quickhull",
    "spmv",
    "mandelbrot",
    "raytracer",
    "bfs",
    "histogram",
)
# A speed-up below so much of the number of processors is looked into.
WANTED = 0.9


def workload(name: str) -> Workload:
    """A program by its name."""
    found: Workload = importlib.import_module(f"benchmarks.forkjoin.{name}").WORKLOAD
    return found


def program(name: str) -> str:
    """The name of a program, for argparse.

    Raises:
        argparse.ArgumentTypeError: there is none of that name.
    """
    if name not in NAMES:
        raise argparse.ArgumentTypeError(f"there is no program {name!r}: it is one of {', '.join(NAMES)}")
    return name


def copies_at_once(made: Workload, copies: list[Inputs], rounds: int) -> float:
    """The time of several serial kernels at once, each with inputs of its own: a thread each, without the GIL."""
    best = float("inf")
    for _ in range(rounds):
        threads = [threading.Thread(target=made.serial, args=inputs) for inputs in copies]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = min(best, time.perf_counter() - start)
    return best


def measured(made: Workload, size: int, workers: int, rounds: int, rivals: list[Rival]) -> dict[str, Any]:
    """All times of a program, in seconds."""
    inputs = made.prepare(size)
    made.check(inputs, made.serial(*inputs))
    found: dict[str, Any] = {"size": size, "serial": seconds(made.serial, inputs, rounds)}
    for count in (1, workers):
        with gb.Runtime(workers=count):
            made.check(inputs, made.parallel(*inputs))
            found[f"on {count}"] = seconds(made.parallel, inputs, rounds)
    if found["serial"] / found[f"on {workers}"] < WANTED * workers:
        copies = [made.prepare(size) for _ in range(workers)]
        found["copies"] = workers * found["serial"] / copies_at_once(made, copies, rounds)
        with gb.Runtime(workers=workers):
            made.parallel(*inputs)
            with gb.trace() as trace:
                made.parallel(*inputs)
        assert trace.timeline is not None
        traced = trace.timeline.summary()
        found["parallelism"], found["busy"] = traced.parallelism, traced.work / traced.duration
    for rival in rivals:
        if (taken := rival.measure(made, size, inputs, workers, rounds)) is not None:
            found[rival.name] = taken
    return found


def reason(name: str, found: dict[str, Any], workers: int) -> str:
    """Why a program is not as much faster as there are processors, as far as that was measured."""
    speed, alone, copies = found["serial"] / found[f"on {workers}"], found["on 1"] / found["serial"], found["copies"]
    parts = [f"{workers} serial copies at once get {copies:.2f} times as much done as one"]
    parts.append(f"the forks take {alone:.2f} times as long on one processor")
    parts.append(f"both leave {copies / alone:.2f}")
    traced = f"work / span is {found['parallelism']:.1f}, and {found['busy']:.2f} workers were busy"
    return f"{name}: {speed:.2f}. {', '.join(parts)}. In a trace, {traced}."


def main(words: Sequence[str] | None = None) -> None:
    """Run a command line, by default the process's own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forkjoin", description="Measure parallel programs.")
    parser.add_argument(
        "names", metavar="NAME", nargs="*", type=program, help=f"any of {', '.join(NAMES)}; default: all"
    )
    parser.add_argument("--full", action="store_true", help="sizes that take about a second")
    parser.add_argument("--workers", type=int, default=2, help="processors for the second column (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="times everything is run (default 5)")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all times")
    options = parser.parse_args(words)
    if options.rounds < 1 or options.workers < 2:
        parser.error("--rounds must be at least 1, and --workers at least 2")
    rivals = [] if options.alone else [made() for made in RIVALS]
    obstacles = {rival.name: rival.obstacle() for rival in rivals}
    rivals = [rival for rival in rivals if obstacles[rival.name] is None]
    print(report.machine())
    for name, obstacle in obstacles.items():
        if obstacle is not None:
            print(f"without {name}: {obstacle}")
    rows, reasons, times = [], [], {}
    for name in options.names or NAMES:
        made = workload(name)
        found = measured(made, made.sizes[options.full], options.workers, options.rounds, rivals)
        times[name] = found
        own = found[f"on {options.workers}"]
        cells = [f"{found[rival.name] / own:.2f}" if rival.name in found else "–" for rival in rivals]
        alone, together = found["on 1"] / found["serial"], found["serial"] / own
        both = f"{found['on 1'] / own:.2f}"
        rows.append([name, f"{found['serial'] * 1e3:.1f}", f"{alone:.2f}", f"{together:.2f}", both, *cells])
        if "copies" in found:
            reasons.append(reason(name, found, options.workers))
    count = options.workers
    print(f"\nserial in ms; on 1 as a multiple of it; on {count} the speed-up over it, and over the same program on 1;")
    print(f"peers on {options.workers}, their time relative to Greenbeat's (more than 1: they are slower)\n")
    heads = ["", "serial", "on 1", f"on {count}", "over 1", *(rival.name for rival in rivals)]
    print(report.table(heads, rows))
    print("\ngeometric mean of the speed-ups:", end=" ")
    own_times = [each["serial"] / each[f"on {options.workers}"] for each in times.values()]
    print(f"{report.geometric_mean(own_times):.2f}")
    if reasons:
        print("\n" + "\n".join(reasons))
    if options.json:
        options.json.write_text(json.dumps({"machine": report.machine(), "seconds": times}, indent=2) + "\n")


if __name__ == "__main__":
    main()
