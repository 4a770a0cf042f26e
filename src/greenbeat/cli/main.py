"""`greenbeat COMMAND ...`: finds the command, runs it, and ends the process the way a shell expects."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from greenbeat.cli.arguments import Parser
from greenbeat.cli.failures import INTERRUPTED, PIPE_CLOSED, USAGE, CommandError
from greenbeat.cli.terminal import tell

COMMANDS = {
    "run": "run a function of a WebAssembly module",
    "inspect": "show what is in a module: types, sections, code",
    "wat": "assemble the text format into the binary format",
    "bench": "measure Greenbeat",
}


def parser() -> Parser:
    """The parser of what comes before the command's own options."""
    from greenbeat import __version__

    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:{width}}  {about}" for name, about in COMMANDS.items())
    top = Parser(
        prog="greenbeat",
        description="WebAssembly at native speed.",
        epilog=f"commands:\n{listed}\n\n`greenbeat COMMAND --help` tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"greenbeat {__version__}")
    top.add_argument("command", metavar="COMMAND", choices=COMMANDS, help="one of the commands below")
    top.add_argument("rest", metavar="...", nargs=argparse.REMAINDER, help="its options and arguments")
    return top


def run(words: Sequence[str]) -> int:
    """Run a command line."""
    if not words:
        parser().print_help(sys.stderr)
        return USAGE
    chosen = parser().parse_args(words[:1])
    command = import_module(f"greenbeat.cli.{chosen.command}")
    status: int = command.main(command.parser().read(words[1:]))
    return status


def main(words: Sequence[str] | None = None) -> int:
    """The entry point: an exit status for a command line (by default the process's own)."""
    try:
        try:
            status = run(sys.argv[1:] if words is None else words)
        except SystemExit as end:
            # argparse ends the process after --help and --version.
            status = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()
    except CommandError as error:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
        tell(str(error))
        status = error.status
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = PIPE_CLOSED
    _abandon_closed_pipes()
    return status


def _abandon_closed_pipes() -> None:
    """Python flushes stdout when it ends and complains if nobody reads it: then it gets the null device instead."""
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
