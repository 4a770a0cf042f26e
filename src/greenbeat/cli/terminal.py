"""What is written to the terminal: colours where they are wanted, and no character that could do harm.

Names in a module are chosen by whoever made it. `greenbeat.wasm.printable` escapes what is invisible
or commands a terminal; whatever comes from a module or from the command line goes through it, or through `safe` here.
"""

import os
import sys
from typing import TextIO

from greenbeat.wasm.printable import printable

_STYLES = {"bold": "1", "dim": "2", "error": "1;31", "keyword": "36", "number": "33", "name": "32", "heading": "1;34"}


def wants_colour(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal whose user has not asked for plain text (https://no-color.org)."""
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Paint:
    """Colours text for a stream, or leaves it as it is.

    Args:
        stream: where the text will go; Python has None for one that was closed before it began.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.enabled = wants_colour(stream)

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.enabled and text else text


def safe(text: str, limit: int | None = None) -> str:
    """Text from the command line or the system, such as a file's name: harmless, and as readable as it can be."""
    return printable(text, limit).replace('\\"', '"').replace("\\\\", "\\")


def tell(message: str) -> None:
    """A message to the user on stderr, the first line marked as ours."""
    if sys.stderr is None:
        return
    first, *others = message.split("\n")
    lines = [f"{Paint(sys.stderr)('error', 'greenbeat:')} {first}", *others]
    print("\n".join(lines), file=sys.stderr)
