"""A place among the tokens, and the small questions a parser asks there.

Both the module parser and the parser of test scripts read through a `Cursor`. Every `take_` method consumes what it
names or raises a `TextError` at the offending token; every `try_` method consumes it or leaves the cursor alone.
"""

from __future__ import annotations

from .errors import TextError, short
from .lexer import Annotation, Tokens, decode_string
from .numbers import parse_unsigned

_DIGITS = frozenset("0123456789")


class Cursor:
    """Reads the tokens of a source from left to right."""

    def __init__(self, tokens: Tokens, position: int = 0) -> None:
        self.tokens = tokens
        self.texts = tokens.texts
        self.position = position
        self.taken_annotations: set[int] = set()

    def error(self, message: str, position: int | None = None) -> TextError:
        """An error at a token: the next one unless another is given."""
        index = self.position if position is None else position
        return self.tokens.error(message, self.tokens.starts[index])

    def unexpected(self, expected: str) -> TextError:
        """The error that something else was expected here."""
        text = self.texts[self.position]
        found = f"`{short(text)}`" if text else "the end of the text"
        return self.error(f"unexpected token {found}: expected {expected}")

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self.tokens.line_and_column(self.tokens.starts[self.position])[0]

    def at_open(self, keyword: str) -> bool:
        """Whether `(keyword` is next."""
        position = self.position
        return self.texts[position] == "(" and self.texts[position + 1] == keyword

    def at_index(self, ahead: int = 0) -> bool:
        """Whether an index comes next, or some tokens ahead: an identifier or an unsigned number."""
        first = self.texts[self.position + ahead][:1]
        return first == "$" or first in _DIGITS

    def try_open(self, keyword: str) -> bool:
        """Consume `(keyword` if it is next."""
        if self.at_open(keyword):
            self.position += 2
            return True
        return False

    def take_open(self, keyword: str) -> None:
        """Consume `(keyword`."""
        if not self.try_open(keyword):
            raise self.unexpected(f"`({keyword}`")

    def take_close(self, expected: str = "`)`") -> None:
        """Consume a closing parenthesis."""
        if self.texts[self.position] != ")":
            raise self.unexpected(expected)
        self.position += 1

    def take_end(self) -> None:
        """Make sure that nothing follows."""
        if self.texts[self.position]:
            raise self.unexpected("nothing more")

    def try_close(self) -> bool:
        """Consume a closing parenthesis if it is next."""
        return self.try_keyword(")")

    def try_keyword(self, keyword: str) -> bool:
        """Consume a keyword if it is next."""
        if self.texts[self.position] == keyword:
            self.position += 1
            return True
        return False

    def take(self) -> str:
        """Consume any token and return it."""
        text = self.texts[self.position]
        if not text:
            raise self.unexpected("more")
        self.position += 1
        return text

    def skip(self) -> None:
        """Consume a token, and if it opens a parenthesis everything up to the one that closes it."""
        self.position = self.tokens.closing.get(self.position, self.position) + 1

    def try_identifier(self) -> str | None:
        """Consume an identifier if it is next and return it with its `$`."""
        text = self.texts[self.position]
        if not text.startswith("$"):
            return None
        if text == "$":
            raise self.error("empty identifier")
        self.position += 1
        return text

    def take_string(self, expected: str = "a string") -> bytes:
        """Consume a string and return its bytes."""
        text = self.texts[self.position]
        if not text.startswith('"'):
            raise self.unexpected(expected)
        value = decode_string(text)
        if value is None:
            raise self.error("malformed escape in string: not a Unicode scalar value")
        self.position += 1
        return value

    def take_strings(self) -> bytes:
        """Consume any number of strings and return them as one."""
        parts = []
        while self.texts[self.position].startswith('"'):
            parts.append(self.take_string())
        return b"".join(parts)

    def take_name(self, expected: str = "a name in quotation marks") -> bytes:
        """Consume a string that must be UTF-8 (Names)."""
        value = self.take_string(expected)
        try:
            value.decode()
        except UnicodeDecodeError:
            raise self.error("malformed UTF-8 encoding in name", self.position - 1) from None
        return value

    def take_unsigned(self, bits: int, expected: str) -> int:
        """Consume an unsigned number."""
        text = self.texts[self.position]
        if text[:1] not in _DIGITS:
            raise self.unexpected(expected)
        try:
            value = parse_unsigned(text, bits)
        except ValueError as error:
            raise self.error(str(error)) from None
        self.position += 1
        return value

    def take_annotations(self, name: str, position: int | None = None) -> list[Annotation]:
        """The annotations of one kind before a token, by default the next; they are now known to be well placed."""
        index = self.position if position is None else position
        found = [each for each in self.tokens.annotations.get(index, ()) if each.name == name]
        self.taken_annotations.update(each.start for each in found)
        return found

    def refuse_other_annotations(self, names: frozenset[str], first: int) -> None:
        """Refuse annotations of these kinds between token `first` and here that nobody has taken."""
        for position, found in self.tokens.annotations.items():
            if first <= position <= self.position:
                for each in found:
                    if each.name in names and each.start not in self.taken_annotations:
                        raise self.tokens.error(f"misplaced @{each.name} annotation", each.start)
