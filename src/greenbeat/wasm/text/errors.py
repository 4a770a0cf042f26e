"""The one error of the text format.

Everything that can be wrong with a source text, from a stray byte to an unknown name, is reported through
`TextError`, which carries the place as a line and a column, both counted from one, and says what was found and
what was expected there.
"""

from __future__ import annotations


def short(token: str) -> str:
    """A token for a message, cut if it is long."""
    return token if len(token) <= 40 else f"{token[:37]}..."


class TextError(ValueError):
    """A module in the text format is malformed."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.message = message
        self.line = line
        self.column = column
