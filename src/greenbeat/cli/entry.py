"""`greenbeat COMMAND ...`: finds the command, runs it, and ends the process the way a shell expects."""

import argparse
import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from greenbeat.cli.arguments import Parser
from greenbeat.cli.failures import FAILED, INTERRUPTED, PIPE_CLOSED, USAGE, CommandError
from greenbeat.cli.terminal import tell

COMMANDS = {
    "run": "run a function of a WebAssembly module",
    "inspect": "show what is in a module: types, sections, code",
    "wat": "assemble the text format into the binary format",
    "trace": "summarise a recording of what the workers did",
    "bench": "measure Greenbeat",
}


def parser() -> Parser:
    """The parser of what comes before the command's own options."""
    from greenbeat import __version__

    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:{width}}  {about}" for name, about in COMMANDS.items())
    top = Parser(
        prog="greenbeat",
        usage="%(prog)s [--help] [--version] COMMAND ...",
        description="Run WebAssembly, and look into it.",
        epilog=f"commands:\n{listed}\n\n`greenbeat COMMAND --help` tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"greenbeat {__version__}")
    top.add_argument("command", metavar="COMMAND", choices=COMMANDS, help=argparse.SUPPRESS)
    top.add_argument("rest", metavar="...", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return top


def run(words: Sequence[str]) -> int:
    """Run a command line."""
    if not words:
        parser().print_help(sys.stderr)
        return USAGE
    # No parser is made for what needs none.
    name = words[0] if words[0] in COMMANDS else parser().parse_args(words[:1]).command
    command = import_module(f"greenbeat.cli.{name}")
    status: int = command.main(command.parser().read(words[1:]))
    return status


def main(words: Sequence[str] | None = None) -> int:
    """The entry point: an exit status for a command line (by default the process's own)."""
    try:
        status = run(sys.argv[1:] if words is None else words)
    except SystemExit as end:
        # argparse ends the process after --help and --version.
        status = end.code if isinstance(end.code, int) else 0
    except CommandError as error:
        # What was printed already comes first.
        status = _flushed(error.status)
        tell(str(error))
        return status
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = PIPE_CLOSED
    except OSError as error:
        tell(f"the output cannot be written: {error.strerror or error}")
        status = FAILED
    return _flushed(status)


def process() -> NoReturn:
    """The whole process of a command line.

    It ends without taking Python and what was imported apart: what has to be done at the end is done, what was printed
    is written out, and the rest goes with the process.
    """
    # What is imported for a command stays until the end: the collector need not look at it again and again.
    gc.set_threshold(100_000, *gc.get_threshold()[1:])
    status = main()
    atexit._run_exitfuncs()
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(status & 0xFF)


def _flushed(status: int) -> int:
    """Write out what is still buffered; returns the status, or another one if that fails."""
    if sys.stdout is None:
        return status
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try again at the very end, and complain: the rest goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return PIPE_CLOSED
        if not status:
            tell(f"the output cannot be written: {error.strerror or error}")
            return FAILED
    return status
