"""What a dispatch costs on each target, by a measured mix, beside the figures of a good interpreter written in Rust."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greenbeat.cli.failures import FAILED, CommandError
from greenbeat.cli.terminal import Paint, safe

COLUMNS = ("instructions", "stack operands", "pushes and pops")


@dataclass(frozen=True)
class Target:
    """A target: LLVM's triple and processor, and tinywasm's figures for it, where they are published."""

    name: str
    triple: str
    processor: str
    theirs: tuple[float, float, float] | None = None


# tinywasm's figures after its series "keep the value stack's height in a register across tail-call handlers", weighted
# by its own benchmark xmrsplayer, counted in the same way: on the hot path of the compiled handlers.
TARGETS = (
    Target("x86-64 System V", "x86_64-unknown-linux-gnu", "x86-64-v3", (27.0, 0.38, 0.06)),
    Target("x86-64 Windows", "x86_64-pc-windows-msvc", "x86-64-v3", (27.2, 0.37, 0.05)),
    Target("AArch64", "aarch64-unknown-linux-gnu", "generic"),
    Target("arm64_32", "arm64_32-apple-watchos11", "apple-s4"),
)


@dataclass(frozen=True)
class Mix:
    """How often each handler ran in a program, and how many WebAssembly instructions that was."""

    name: str
    counts: list[int]
    instructions: int

    @property
    def dispatches(self) -> int:
        """All together."""
        return sum(self.counts)


def _child(module: str, *words: str, counting: bool = False) -> Any:
    """What a child process of ours prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("GREENBEAT_COUNTING", None)
    if counting:
        environment |= {"GREENBEAT_COUNTING": "1"}
    command = [sys.executable, "-m", f"greenbeat.cli.handlers.{module}", *words]
    done = subprocess.run(command, env=environment, capture_output=True)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1] if said else f"it ended with status {done.returncode}"
        raise CommandError(f"the child for {safe(' '.join(words))} failed: {safe(why)}", FAILED)
    return json.loads(done.stdout)


def measured_mix(name: str, program: str, file: Path) -> Mix:
    """The mix of a program of `profile.py`, run on a module."""
    found = _child("profile", program, str(file), counting=True)
    return Mix(name, found["counts"], found["instructions"])


def mixes(tree: Path) -> Iterator[Mix]:
    """The mixes that can be measured here; `tree` is the source tree."""
    yield measured_mix("coremark_like", "guest", tree / "benchmarks" / "guests" / "coremark_like.wasm")
    folders = [*(folder / "node_modules" for folder in (Path.cwd(), *Path.cwd().parents))]
    folders += [Path(entry) for entry in os.environ.get("NODE_PATH", "").split(os.pathsep) if entry]
    for folder in folders:
        file = folder / "source-map" / "lib" / "mappings.wasm"
        if file.is_file():
            yield measured_mix("source-map", "mappings", file)
            return


def weighted(costs: list[list[int] | None], mix: Mix) -> tuple[float, float, float]:
    """The cost of the mix's average dispatch; the few that end a run have none and are left out."""
    pairs = [(count, cost) for count, cost in zip(mix.counts, costs, strict=True) if cost is not None]
    total = sum(count for count, _ in pairs)
    one, two, three = (sum(count * cost[column] for count, cost in pairs) / total for column in range(3))
    return one, two, three


def measure(
    tree: Path, targets: Sequence[Target] = TARGETS, tell: Callable[[str], None] = lambda doing: None
) -> dict[str, Any]:
    """Everything, for programs; `tell` hears what is being done, since it takes a while."""
    tell("counting dispatches")
    found = list(mixes(tree))
    tell(f"compiling the handlers for {len(targets)} targets")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        every = list(pool.map(lambda target: _child("compile", target.triple, target.processor), targets))
    result: dict[str, Any] = {
        "mixes": [{"name": mix.name, "dispatches": mix.dispatches, "instructions": mix.instructions} for mix in found],
        "targets": [],
    }
    for target, costs in zip(targets, every, strict=True):
        dispatching = [cost for cost in costs if cost is not None]
        result["targets"].append(
            {
                "name": target.name,
                "triple": target.triple,
                "handlers": len(dispatching),
                "handlers that push": sum(cost[2] > 0 for cost in dispatching),
                "tinywasm": target.theirs,
                "weighted": {mix.name: weighted(costs, mix) for mix in found},
            }
        )
    return result


def lines(result: dict[str, Any], paint: Paint) -> Iterator[str]:
    """The table, for people."""
    yield paint("bold", "Per dispatch, on the hot path: instructions / stack operands / pushes and pops")
    yield ""
    names = [mix["name"] for mix in result["mixes"]]
    headings = ["", *names, "tinywasm", "handlers that push"]
    rows = []
    for target in result["targets"]:
        theirs = target["tinywasm"]
        rows.append(
            [
                target["name"],
                *(_figures(target["weighted"][name]) for name in names),
                _figures(theirs) if theirs else "not published",
                f"{target['handlers that push']} of {target['handlers']:,}",
            ]
        )
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    for number, row in enumerate((headings, *rows)):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield paint("heading", line) if number == 0 else line
    yield ""
    for mix in result["mixes"]:
        ratio = mix["dispatches"] / mix["instructions"]
        first = result["targets"][0]
        cost = ratio * first["weighted"][mix["name"]][0]
        yield (
            f"{mix['name']}: {mix['dispatches']:,} dispatches for {mix['instructions']:,} WebAssembly instructions: "
            f"{ratio:.2f} dispatches, {cost:.1f} instructions of {first['name']} each"
        )
    if "source-map" not in names:
        yield "For a mix of a published module: npm install source-map (here, or where NODE_PATH says)."


def _figures(values: tuple[float, float, float]) -> str:
    return f"{values[0]:.1f} / {values[1]:.2f} / {values[2]:.2f}"
