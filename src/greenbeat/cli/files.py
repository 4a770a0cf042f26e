"""Modules from files: the binary format, or the text format assembled; `-` is stdin."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from greenbeat.cli.failures import NOT_FOUND, NOT_RUNNABLE, CommandError
from greenbeat.cli.terminal import Paint, safe

if TYPE_CHECKING:
    from greenbeat import Module
    from greenbeat.wasm.text import TextError

MAGIC = b"\0asm"
WIDEST_LINE = 100  # columns of a source line that are shown


def shown_name(file: str) -> str:
    """A file's name for messages."""
    return "stdin" if file == "-" else safe(file)


def read_bytes(file: str) -> bytes:
    """The contents of a file."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except FileNotFoundError:
        raise CommandError(f"{shown_name(file)}: there is no such file", NOT_FOUND) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CommandError(f"{shown_name(file)}: it cannot be read: {reason}", NOT_RUNNABLE) from None


def assemble_text(source: bytes, file: str, status: int = NOT_RUNNABLE) -> bytes:
    """The binary of a module in the text format; `status` is the exit status if it is none."""
    from greenbeat.wasm.text import TextError, assemble

    try:
        return assemble(source)
    except TextError as error:
        raise CommandError(f"{shown_name(file)}:{safe(str(error))}{_excerpt(source, error)}", status) from None


def _excerpt(source: bytes, error: "TextError") -> str:
    """The line with the error, with a caret under the place."""
    lines = source.decode("utf-8", "replace").splitlines()
    if error.line > len(lines):
        return ""
    line, column = lines[error.line - 1].replace("\t", " "), error.column - 1
    start = max(0, column - WIDEST_LINE * 3 // 4)
    before, after = safe(line[start:column]), safe(line[column : start + WIDEST_LINE])
    number = f"{error.line:>5} | "
    paint = Paint(sys.stderr)
    return f"\n{paint('dim', number)}{before}{after}\n{' ' * (len(number) + len(before))}{paint('error', '^')}"


def load_binary(file: str) -> bytes:
    """The binary of a module in either format: what does not begin as a binary and is not called `.wasm` is text."""
    data = read_bytes(file)
    if data.startswith(MAGIC) or file.endswith(".wasm"):
        return data
    if b"\0" in data[:1024]:
        beginning = data[:4].hex(" ")
        message = f"this is neither a WebAssembly binary (it begins with {beginning}, not 00 61 73 6d) nor text"
        raise CommandError(f"{shown_name(file)}: {message}", NOT_RUNNABLE)
    return assemble_text(data, file)


def load(file: str) -> "Module":
    """The module of a file."""
    from greenbeat import CompileError, Module

    data = load_binary(file)
    try:
        return Module(data)
    except CompileError as error:
        raise CommandError(f"{shown_name(file)}: {safe(str(error))}", NOT_RUNNABLE) from None
