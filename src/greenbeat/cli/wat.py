"""`greenbeat wat`: assemble the text format. It does not validate: what reads the binary does that."""

import argparse
import sys
from pathlib import Path

from greenbeat.cli.arguments import Parser
from greenbeat.cli.files import assemble_text, read_bytes, shown_name
from greenbeat.cli.problems import FAILED, USAGE, Problem


def parser() -> Parser:
    """The command's options."""
    options = Parser(prog="greenbeat wat", description="Turn a WebAssembly module from the text format into the binary format.")
    options.add_argument("file", metavar="FILE", help="the text; - is stdin")
    options.add_argument("-o", "--output", metavar="OUT", help="the binary; - is stdout. By default FILE with the ending .wasm")
    return options


def main(options: argparse.Namespace) -> int:
    """Run it."""
    output = options.output
    if output is None:
        if options.file == "-":
            raise Problem("say where the binary goes: -o OUT, or -o - for stdout", USAGE)
        output = str(Path(options.file).with_suffix(".wasm"))
        if output == options.file:
            raise Problem(f"{shown_name(output)} would be overwritten: say where the binary goes with -o", USAGE)
    if output == "-" and sys.stdout.isatty():
        raise Problem("the binary is not for a terminal: send it to a file or a pipe", USAGE)
    binary = assemble_text(read_bytes(options.file), options.file, FAILED)
    if output == "-":
        sys.stdout.buffer.write(binary)
        sys.stdout.buffer.flush()
        return 0
    try:
        Path(output).write_bytes(binary)
    except OSError as error:
        raise Problem(f"{shown_name(output)}: it cannot be written: {error.strerror or error}", FAILED) from None
    return 0
