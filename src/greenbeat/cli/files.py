"""Modules from files: the binary format, or the text format assembled; `-` is stdin."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from greenbeat.api.content import Content
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


def open_contents(file: str, *, kept: bool = False) -> Content:
    """The contents of a file, which is being read; with `kept`, what is kept of a module between processes is used."""
    with _told(file):
        if file == "-":
            return Content(sys.stdin.buffer.read(), kept=kept)
        return Content(file=os.open(file, os.O_RDONLY | os.O_CLOEXEC), kept=kept)


def read_bytes(file: str) -> bytes:
    """The contents of a file."""
    content = open_contents(file)
    with _told(file):
        return bytes(content.data)


@contextmanager
def _told(file: str) -> Iterator[None]:
    """What is wrong with a file, as an error of the command."""
    try:
        yield
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


def is_binary(content: Content, file: str) -> bool:
    """Whether a module is in the binary format: what does not begin as a binary and is not called `.wasm` is text."""
    with _told(file):
        data = content.data
    if data[:4] == MAGIC or file.endswith(".wasm"):
        return True
    if b"\0" in data[:1024]:
        beginning = data[:4].hex(" ")
        message = f"this is neither a WebAssembly binary (it begins with {beginning}, not 00 61 73 6d) nor text"
        raise CommandError(f"{shown_name(file)}: {message}", NOT_RUNNABLE)
    return False


def load(file: str, content: Content | None = None) -> "Module":
    """The module of a file, in either format."""
    if content is None:
        content = open_contents(file, kept=True)
    # Imported while a large file is read.
    from greenbeat import CompileError, Module

    if not is_binary(content, file):
        content = Content(assemble_text(bytes(content.data), file), kept=False)
    try:
        return Module._from_content(content)
    except CompileError as error:
        raise CommandError(f"{shown_name(file)}: {safe(str(error))}", NOT_RUNNABLE) from None
