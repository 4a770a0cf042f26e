"""`greenbeat wat`: assemble the text format. It does not validate: what reads the binary does that."""

import argparse
import sys
from pathlib import Path

from greenbeat.cli.arguments import Parser
from greenbeat.cli.failures import FAILED, USAGE, CommandError
from greenbeat.cli.files import assemble_text, read_bytes, shown_name


def parser() -> Parser:
    """The command's options."""
    options = Parser(prog="greenbeat wat", description="Turn WebAssembly text into the binary format.")
    options.add_argument("file", metavar="FILE", help="the text; - is stdin")
    options.add_argument("-o", "--output", metavar="OUT", help="the binary, by default FILE.wasm; - is stdout")
    return options


def main(options: argparse.Namespace) -> int:
    """Run it."""
    output = options.output
    if output is None:
        if options.file == "-":
            raise CommandError("say where the binary goes: -o OUT, or -o - for stdout", USAGE)
        output = str(Path(options.file).with_suffix(".wasm"))
        if output == options.file:
            raise CommandError(f"{shown_name(output)} would be overwritten: say where the binary goes with -o", USAGE)
    if output == "-" and sys.stdout.isatty():
        raise CommandError("the binary is not for a terminal: send it to a file or a pipe", USAGE)
    binary = assemble_text(read_bytes(options.file), options.file, FAILED)
    if output == "-":
        sys.stdout.buffer.write(binary)
        sys.stdout.buffer.flush()
        return 0
    try:
        Path(output).write_bytes(binary)
    except OSError as error:
        raise CommandError(f"{shown_name(output)}: it cannot be written: {error.strerror or error}", FAILED) from None
    return 0
