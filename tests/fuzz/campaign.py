"""The parent: keeps a worker running until all cases have been tried, and keeps what was found.

A worker that dies is a finding of the case it was at, and so is one that is at the same case for too long; the next
worker goes on behind it. Every worker runs a limited number of cases, so that what one case spoils is not blamed on
another for long.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.cases import Case

ROOT = Path(__file__).parents[2]
PER_WORKER = 2500
SECONDS_PER_CASE = 60.0
STARTING = 180.0
MOST_FINDINGS = 200


@dataclass
class Report:
    """What came of a campaign."""

    cases: int = 0
    seconds: float = 0.0
    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    findings: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        rate = self.cases / self.seconds if self.seconds else 0.0
        outcomes = ", ".join(f"{count} {what}" for what, count in sorted(self.outcomes.items()))
        return f"{self.cases} cases in {self.seconds:.0f} s ({rate:.0f}/s): {outcomes}; {len(self.findings)} findings"


def environment(checked: bool | None) -> dict[str, str]:
    """What a worker inherits; freed memory is filled, so that using it shows."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    build = {} if checked is None else {"GREENBEAT_CHECKED": str(int(checked))}
    return {**os.environ, "PYTHONPATH": path, "MALLOC_PERTURB_": "165", **build}


class Worker:
    """A child process with some cases."""

    def __init__(self, kind: str, seed: int, first: int, count: int, checked: bool | None) -> None:
        self.kind, self.seed, self.first = kind, seed, first
        self.progress = tempfile.NamedTemporaryFile()  # noqa: SIM115
        self.progress.write(struct.pack("<q", -1))
        self.progress.flush()
        self.output = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.worker",
            kind,
            str(seed),
            str(first),
            str(count),
            self.progress.name,
        ]
        self.child = subprocess.Popen(
            command, env=environment(checked), cwd=ROOT, stdout=self.output, stderr=self.errors
        )

    def number(self) -> int:
        """The number of the case it is at; -1 before the first."""
        return int(struct.unpack("<q", Path(self.progress.name).read_bytes())[0])

    def wait(self) -> str | None:
        """Wait for its end; returns what was wrong with that."""
        last, since = self.number(), time.monotonic()
        while True:
            try:
                code = self.child.wait(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                now = self.number()
                if now != last:
                    last, since = now, time.monotonic()
                elif time.monotonic() - since > (STARTING if now == -1 else SECONDS_PER_CASE):
                    self.child.kill()
                    self.child.wait()
                    return "no end"
        if code == 0:
            return None
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        self.errors.seek(0)
        return f"the process ended with {how}\n{self.errors.read()[-3000:]}"

    def lines(self) -> list[dict[str, object]]:
        """What it said."""
        self.output.seek(0)
        return [json.loads(line) for line in self.output if line.startswith("{")]

    def close(self) -> None:
        """Remove its files."""
        for file in (self.progress, self.output, self.errors):
            file.close()


def run(
    kind: str, seed: int, first: int, count: int, *, checked: bool | None = None, keep: Path | None = None
) -> Report:
    """Try cases.

    Args:
        kind, seed: of the cases.
        first, count: their numbers.
        checked: which build; by default this process's own.
        keep: the directory that findings are written to.
    """
    report, begun, end = Report(), time.monotonic(), first + count
    while first < end and len(report.findings) < MOST_FINDINGS:
        worker = Worker(kind, seed, first, min(PER_WORKER, end - first), checked)
        wrong = worker.wait()
        for line in worker.lines():
            if "finding" in line:
                _keep(report, str(line["case"]), str(line["finding"]), keep)
            else:
                report.outcomes.update(line["outcomes"])  # type: ignore[call-overload]
        following = min(first + PER_WORKER, end)
        if wrong is not None:
            at = worker.number()
            if at == -1:
                raise RuntimeError(f"the worker does not start: {wrong}")
            _keep(report, str(Case(kind, seed, at)), wrong, keep)
            following = at + 1
        worker.close()
        report.cases += following - first
        first = following
    report.seconds = time.monotonic() - begun
    return report


def _keep(report: Report, case: str, finding: str, keep: Path | None) -> None:
    """Note a finding, and write its module and what was wrong into files."""
    report.findings[case] = finding
    print(f"{case}: {finding}", file=sys.stderr, flush=True)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        name = case.replace(":", "-")
        (keep / f"{name}.wasm").write_bytes(Case.parse(case).module() or b"")
        (keep / f"{name}.txt").write_text(finding)
