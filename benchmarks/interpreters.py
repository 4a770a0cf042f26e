"""WebAssembly engines beside each other: every guest program on every peer, in one run.

    python -m benchmarks.interpreters
    python -m benchmarks.interpreters --only fib,sieve --peers greenbeat,pywasm3 --rounds 5
    python -m benchmarks.interpreters --json results.json --chart results.svg

The peers take turns (A B C A B C …), so that whatever else the machine does falls on all of them. A figure is processor
time of the call alone; the table shows the best of all rounds, as a ratio to Greenbeat, or to the fastest interpreter
where Greenbeat is not among the peers. A peer marked * is too slow for the full amount of work: it is asked for less,
and compared at that amount. Every answer is compared with the others'; a difference ends the run with status 1.

`GREENBEAT_COREMARK` may name a build of the real CoreMark for WebAssembly: a module that imports
`env.clock_ms: () -> i64` and exports `run: () -> f32`, the score. `GREENBEAT_IWASM` may name WAMR's `iwasm`.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import report
from benchmarks.guests import GUESTS, Guest, guest
from benchmarks.isolation import Worker, WorkerError
from benchmarks.peers import PEERS, Bench, Measurement, Peer, peer


@dataclass
class Series:
    """All rounds of one guest on one peer, at the full amount of work and at the small one."""

    full: list[Measurement] = field(default_factory=list)
    small: list[Measurement] = field(default_factory=list)
    obstacle: str | None = None

    def answers(self) -> set[tuple[str, float]]:
        """Every answer given, with the amount of work it belongs to."""
        return {("n", m.answer) for m in self.full} | {("slow_n", m.answer) for m in self.small}


@dataclass
class Contestant:
    """A peer with the worker process it lives in, once it is known to run here."""

    peer: Peer
    obstacle: str | None = None
    worker: Worker | None = None

    @property
    def name(self) -> str:
        return self.peer.name

    @property
    def heading(self) -> str:
        return self.name + "*" * self.peer.slow


Results = dict[str, dict[str, Series]]


def start(contestant: Contestant, open_workers: ExitStack) -> None:
    """Starts the peer's worker, or notes why there is none."""
    worker = open_workers.enter_context(Worker(partial(Bench, contestant.name)))
    try:
        contestant.obstacle = worker.call("obstacle")
    except WorkerError as error:
        contestant.obstacle = str(error)
    if contestant.obstacle is None:
        contestant.worker = worker
    else:
        worker.close()


def measure(
    program: Guest, contestants: Sequence[Contestant], rounds: int, open_workers: ExitStack
) -> dict[str, Series]:
    """One line of the table."""
    line: dict[str, Series] = {}
    module = program.wasm.read_bytes()
    somebody_slow = any(c.peer.slow for c in contestants)
    for contestant in contestants:
        line[contestant.name] = series = Series()
        if contestant.worker is None and contestant.obstacle is None:
            # Its process ended on an earlier line.
            start(contestant, open_workers)
        try:
            if contestant.worker is None:
                raise WorkerError(contestant.obstacle)
            contestant.worker.call("load", module)
        except WorkerError as error:
            series.obstacle = str(error)
    for _ in range(rounds):
        for contestant in contestants:
            series = line[contestant.name]
            if contestant.worker is None or series.obstacle:
                continue
            try:
                if somebody_slow:
                    series.small.append(contestant.worker.call("measure", program.slow_n))
                if not contestant.peer.slow:
                    series.full.append(contestant.worker.call("measure", program.n))
            except WorkerError as error:
                series.obstacle = str(error)
                contestant.worker.close()
                contestant.worker = None
    return line


def disagreements(results: Results) -> list[str]:
    """The lines on which the peers' answers differ, in words."""
    found = []
    for name, line in results.items():
        for amount in ("n", "slow_n"):
            given = {p: {a for kind, a in s.answers() if kind == amount} for p, s in line.items()}
            if len(set().union(*given.values())) > 1:
                said = ", ".join(f"{p} {'/'.join(map(str, sorted(a)))}" for p, a in given.items() if a)
                found.append(f"{name}({amount}): answers differ: {said}")
    return found


def seconds(series: Series, small: bool, middle: bool) -> float | None:
    """The best or the median of a series, if it is complete."""
    measured = [m.seconds for m in (series.small if small else series.full)]
    if series.obstacle or not measured:
        return None
    return statistics.median(measured) if middle else min(measured)


def ratio(line: dict[str, Series], contestant: Contestant, baseline: str, middle: bool = False) -> float | None:
    """How much longer a peer took than the baseline for the same amount of work."""
    mine = seconds(line[contestant.name], contestant.peer.slow, middle)
    theirs = seconds(line[baseline], contestant.peer.slow, middle)
    return mine / theirs if mine and theirs else None


def ratios(results: Results, contestant: Contestant, baseline: str, middle: bool = False) -> dict[str, float]:
    """The ratios of one peer on all the lines it ran."""
    each = {name: ratio(line, contestant, baseline, middle) for name, line in results.items()}
    return {name: value for name, value in each.items() if value is not None}


def choose_baseline(results: Results, contestants: Sequence[Contestant]) -> str:
    """Greenbeat where it ran every line, otherwise the interpreter fastest on average over the lines all ran."""

    def lines_run(contestant: Contestant) -> set[str]:
        return {name for name, line in results.items() if seconds(line[contestant.name], False, False)}

    ran = {c.name: lines_run(c) for c in contestants if not c.peer.slow and c.peer.interprets}
    ran = ran or {c.name: lines_run(c) for c in contestants if not c.peer.slow}
    longest = max((len(lines) for lines in ran.values()), default=0)
    if not longest:
        raise SystemExit("no peer ran anything to compare with")
    candidates = [name for name, lines in ran.items() if len(lines) == longest]
    if "greenbeat" in candidates:
        return "greenbeat"
    shared = set.intersection(*(ran[name] for name in candidates)) or ran[candidates[0]]

    def average(name: str) -> float:
        return report.geometric_mean([min(m.seconds for m in results[line][name].full) for line in shared])

    return min(candidates, key=average)


def print_table(results: Results, contestants: Sequence[Contestant], baseline: str, rounds: int) -> None:
    """The ratios, the means beneath them, and the reasons for every gap."""
    rows = []
    for name, line in results.items():
        own = seconds(line[baseline], False, False)
        cells = [ratio(line, contestant, baseline) for contestant in contestants]
        rows.append([name, f"{own * 1000:.1f}" if own else "-", *map(shown, cells)])
    notes = []
    for label, middle in (("geomean of the best", False), ("geomean of the medians", True)):
        means: list[float | None] = []
        for contestant in contestants:
            values = ratios(results, contestant, baseline, middle)
            means.append(report.geometric_mean(list(values.values())) if values else None)
            if not middle and 0 < len(values) < len(results):
                notes.append(f"{contestant.name}: the mean is over {len(values)} of {len(results)} lines")
        rows.append([label, "", *map(shown, means)])
    print(f"time relative to {baseline}, best of {rounds}; above 1 is slower\n")
    print(report.table(["", f"{baseline}, ms", *(c.heading for c in contestants)], rows))
    if any(contestant.peer.slow for contestant in contestants):
        print("* given less work, and compared at that amount")
    for contestant in contestants:
        if contestant.obstacle:
            notes.append(f"{contestant.name} did not run: {contestant.obstacle}")
        else:
            failed = {name: line[contestant.name].obstacle for name, line in results.items()}
            notes += [f"{contestant.name} did not run {name}: {why}" for name, why in failed.items() if why]
    if notes:
        print("\n" + "\n".join(notes))


def shown(value: float | None) -> str:
    """A ratio, or a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"


def print_fib(results: Results, contestants: Sequence[Contestant]) -> None:
    """The recursive calls once more, relative to compiled code."""
    line = results.get("fib", {})
    if "wasmtime" not in line or seconds(line["wasmtime"], False, False) is None:
        return
    cells = [(c.name, ratio(line, c, "wasmtime")) for c in contestants if not c.peer.slow]
    told = ", ".join(f"{name} {value:.2f}" for name, value in cells if value is not None)
    print(f"\nfib({guest('fib').n}) relative to Cranelift: {told}")


def print_coremark(module: Path, contestants: Sequence[Contestant]) -> dict[str, float]:
    """The real CoreMark's scores, one run each: it takes its own ten seconds."""
    scores = {}
    print(f"\nCoreMark ({module.name}), higher is better")
    for contestant in contestants:
        if contestant.worker is None:
            continue
        try:
            contestant.worker.call("load_with_clock", module.read_bytes())
            scores[contestant.name] = contestant.worker.call("measure").answer
            print(f"  {contestant.name} {scores[contestant.name]:.0f}")
        except WorkerError as error:
            print(f"  {contestant.name}: {error}")
    return scores


def as_json(
    results: Results, contestants: Sequence[Contestant], baseline: str, versions: dict[str, str]
) -> dict[str, object]:
    """Everything measured, for a file."""
    return {
        "machine": report.machine(),
        "baseline": baseline,
        "versions": versions,
        "obstacles": {c.name: c.obstacle for c in contestants if c.obstacle},
        "ratios": {c.name: ratios(results, c, baseline) for c in contestants},
        "seconds": {
            name: {
                peer_name: {
                    "n": [m.seconds for m in series.full],
                    "slow_n": [m.seconds for m in series.small],
                    "obstacle": series.obstacle,
                }
                for peer_name, series in line.items()
            }
            for name, line in results.items()
        },
        "work": {name: {"n": guest(name).n, "slow_n": guest(name).slow_n} for name in results},
    }


def names(text: str) -> list[str]:
    """A list separated by commas, as an option takes it."""
    return [part for part in text.split(",") if part]


def parse_arguments() -> argparse.Namespace:
    every_peer = [each.name for each in PEERS]
    parser = argparse.ArgumentParser(description="Compare WebAssembly engines on the guest programs.")
    parser.add_argument(
        "--only", type=names, default=[g.name for g in GUESTS], help="guest programs, separated by commas"
    )
    parser.add_argument("--peers", type=names, default=every_peer, help=f"any of {','.join(every_peer)}")
    parser.add_argument("--rounds", type=int, default=3, help="how many times everything is run (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement to a file")
    parser.add_argument("--chart", type=Path, metavar="FILE.svg", help="draw the ratios (needs matplotlib)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        arguments.only = [guest(name) for name in arguments.only]
        arguments.peers = [peer(name) for name in arguments.peers]
    except KeyError as error:
        parser.error(error.args[0])
    return arguments


def main() -> None:
    arguments = parse_arguments()
    contestants = [Contestant(each) for each in arguments.peers]
    results: Results = {}
    with ExitStack() as open_workers:
        for contestant in contestants:
            start(contestant, open_workers)
        versions = {c.name: str(c.worker.call("version")) for c in contestants if c.worker}
        print(report.machine())
        print(", ".join(f"{name} {version}" for name, version in versions.items()), end="\n\n")
        for program in arguments.only:
            results[program.name] = measure(program, contestants, arguments.rounds, open_workers)
        baseline = choose_baseline(results, contestants)
        print_table(results, contestants, baseline, arguments.rounds)
        print_fib(results, contestants)
        document = as_json(results, contestants, baseline, versions)
        if coremark := os.environ.get("GREENBEAT_COREMARK"):
            document["coremark"] = print_coremark(Path(coremark), contestants)
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    if arguments.chart:
        columns = {c.name: ratios(results, c, baseline) for c in contestants}
        lines = {name: {p: column[name] for p, column in columns.items() if name in column} for name in results}
        report.chart(arguments.chart, f"time relative to {baseline}", lines)
    differing = disagreements(results)
    if differing:
        print("\n" + "\n".join(differing))
        sys.exit(1)
    print("\nall answers agree")


if __name__ == "__main__":
    main()
