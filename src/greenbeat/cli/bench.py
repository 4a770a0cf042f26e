"""`greenbeat bench`: the benchmarks by name. They are in the source tree; an installed package does not bring them."""

import argparse
import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from greenbeat.cli.arguments import Parser, text
from greenbeat.cli.failures import NOT_FOUND, USAGE, CommandError
from greenbeat.cli.terminal import Paint, safe

_PACKAGE = Path(__file__).resolve().parent.parent
# What is part of the package.
_OWN = {
    "handlers": "What a dispatch costs on four targets: instructions, stack operands, pushes and pops.",
    "par": "What a fork costs: a task at every fork, beside gb.par, on one processor and on two.",
}


def parser() -> Parser:
    """The command's options."""
    options = Parser(prog="greenbeat bench", description="Measure Greenbeat. Without a name, the benches are listed.")
    options.add_argument("name", metavar="NAME", nargs="?", type=text, help="handlers, par, or a module of benchmarks/")
    options.add_argument("rest", metavar="ARGS", nargs="*", default=[], type=text, help="for that module, behind --")
    options.add_argument("--json", action="store_true", help="for programs")
    return options


def source_tree() -> Path | None:
    """The source tree that this package is run from, or else the one that the current directory is in."""
    for tree in (_PACKAGE.parent.parent, Path.cwd(), *Path.cwd().parents):
        if (tree / "benchmarks" / "guests" / "coremark_like.wasm").is_file():
            return tree
    return None


def benches(tree: Path) -> dict[str, str]:
    """The modules of `benchmarks` that can be run, with the first line of what they say about themselves."""
    found = {}
    for path in sorted([*(tree / "benchmarks").glob("*.py"), *(tree / "benchmarks").glob("*/__main__.py")]):
        source = path.read_text()
        if "__main__" in source:
            about = ast.get_docstring(ast.parse(source)) or ""
            found[path.parent.name if path.stem == "__main__" else path.stem] = about.partition("\n")[0]
    return found


def main(options: argparse.Namespace) -> int:
    """Run it."""
    tree = source_tree()
    if tree is None:
        raise CommandError("the benchmarks are not in the package: run this in a clone of the repository", NOT_FOUND)
    known = {**_OWN, **benches(tree)}
    if options.name is None:
        listed = "\n".join(f"{name:14} {about}" for name, about in known.items())
        print(json.dumps(known, indent=2) if options.json else listed)
        return 0
    if options.name not in known:
        raise CommandError(f"there is no bench {safe(options.name)}: there are {', '.join(known)}", USAGE)
    if options.name not in _OWN:
        if options.json:
            raise CommandError(f"that bench writes a file: greenbeat bench {options.name} -- --json FILE", USAGE)
        paths = filter(None, [str(tree), str(_PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", f"benchmarks.{options.name}", *options.rest]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}).returncode
    if options.rest:
        raise CommandError(f"`bench {options.name}` takes no arguments", USAGE)
    from greenbeat.cli import forks
    from greenbeat.cli.handlers import report

    paint = Paint(sys.stdout)
    if options.name == "par":
        result = forks.measure(_progress)
        lines = forks.lines(result, paint)
    else:
        result = report.measure(tree, tell=_progress)
        lines = report.lines(result, paint)
    print(json.dumps(result, indent=2) if options.json else "\n".join(lines))
    return 0


def _progress(doing: str) -> None:
    """What is being done, for somebody who watches."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"greenbeat: {doing} ...", file=sys.stderr)
