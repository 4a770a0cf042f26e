"""The command: see the package's docstring."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz import campaign, shrink
from tests.fuzz.cases import FINDINGS, KINDS, Case


def _replay(text: str) -> int:
    """Run one case here, and write its module."""
    case = Case.parse(text)
    data = case.module()
    if data is None:
        print("no module")
        return 0
    Path(f"{text.replace(':', '-')}.wasm").write_bytes(data)
    try:
        print(case.check(data))
    except FINDINGS as finding:
        print(finding)
        return 1
    return 0


def _shrink(path: Path, attempts: int) -> int:
    """Minimise a finding's module; its file's name tells the case."""
    case = Case.parse(path.stem.replace("-", ":"))
    smaller = shrink.shrink(path.read_bytes(), str(case), case.kind, attempts)
    if smaller is None:
        print("nothing is wrong with it")
        return 0
    path.with_suffix(".small.wasm").write_bytes(smaller)
    print(f"{len(smaller)} bytes in {path.with_suffix('.small.wasm')}")
    return 1


def main() -> int:
    """Parse the command line and do it; returns 1 if there were findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz Greenbeat.")
    parser.add_argument("--modules", type=int, default=1000, help="how many cases of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--kind", choices=KINDS, action="append", help="by default smith and hazards")
    parser.add_argument("--build", choices=("fast", "checked", "both"), default="both", help="which engine")
    parser.add_argument("--keep", type=Path, default=Path("findings"), help="where findings are written")
    parser.add_argument("--replay", metavar="CASE", help="run one case, such as hazards:1:17, in this process")
    parser.add_argument("--shrink", type=Path, metavar="FILE", help="make a finding's module smaller")
    parser.add_argument("--attempts", type=int, default=1000, help="how long to go on shrinking")
    options = parser.parse_args()
    if options.replay:
        return _replay(options.replay)
    if options.shrink:
        return _shrink(options.shrink, options.attempts)
    found = 0
    for checked in {"fast": (False,), "checked": (True,), "both": (False, True)}[options.build]:
        for kind in options.kind or ("smith", "hazards"):
            report = campaign.run(
                kind, options.seed, options.first, options.modules, checked=checked, keep=options.keep
            )
            print(f"{kind}, {'checked' if checked else 'fast'} build: {report}", flush=True)
            found += len(report.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
