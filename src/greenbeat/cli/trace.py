"""`greenbeat trace`: what a recording of `greenbeat.trace` comes to."""

import argparse
import json
from dataclasses import asdict

from greenbeat.cli.arguments import Parser, text
from greenbeat.cli.failures import NOT_FOUND, NOT_RUNNABLE, CommandError
from greenbeat.cli.terminal import safe


def parser() -> Parser:
    """The command's options."""
    options = Parser(
        prog="greenbeat trace",
        description="Summarise a recording of greenbeat.trace: work, span, workers, promotions, steals, parks.",
    )
    options.add_argument("file", metavar="FILE", type=text, help="what was recorded, as JSON")
    options.add_argument("--json", action="store_true", help="for programs")
    return options


def main(options: argparse.Namespace) -> int:
    """Run it."""
    from greenbeat.tracing.summary import read

    name = safe(options.file)
    try:
        found = read(options.file)
    except FileNotFoundError:
        raise CommandError(f"{name}: there is no such file", NOT_FOUND) from None
    except OSError as problem:
        raise CommandError(f"{name}: it cannot be read: {problem.strerror or problem}", NOT_RUNNABLE) from None
    except ValueError as problem:
        raise CommandError(f"{name}: {problem}", NOT_RUNNABLE) from None
    if options.json:
        print(json.dumps({**asdict(found), "parallelism": found.parallelism, "steals": found.steals}, indent=2))
        return 0
    for line in found.lines():
        print(safe(line))
    return 0
