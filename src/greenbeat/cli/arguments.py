"""The command line's own words: a parser whose errors are one line, and values of the types that guests take.

argparse takes `-0x10` and `-inf` for options. So whatever looks like a negative number gets a NUL in front, which no
argument can hold, before argparse sees it; the `type` functions here take it off.
"""

import argparse
import re
import struct
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from greenbeat.cli.failures import USAGE, CommandError
from greenbeat.cli.terminal import safe

T = TypeVar("T")

_NEGATIVE = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)
_SHIELD = "\0"


class Parser(argparse.ArgumentParser):
    """A parser of one command. Options may stand between the positional arguments; behind `--` there are none."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{safe(message.replace(_SHIELD, ''))} (see `{self.prog} --help`)", USAGE)

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The options in some words of a command line."""
        return self.parse_intermixed_args([_SHIELD + w if _NEGATIVE.match(w) else w for w in words])


def text(word: str) -> str:
    """An argument as it was written."""
    return word.removeprefix(_SHIELD)


def checked(convert: Callable[[str], T]) -> Callable[[str], T]:
    """A `type` for argparse whose ValueError is shown."""

    def read(word: str) -> T:
        try:
            return convert(text(word))
        except ValueError as error:
            raise argparse.ArgumentTypeError(safe(str(error))) from None

    return read


def _fuel(word: str) -> int:
    fuel = parse_count(word)
    if fuel >= 1 << 63:
        raise ValueError(f"{word} is too much: at most 2**63 - 1")
    return fuel


def parse_count(word: str) -> int:
    """A number that is not negative; digits may be grouped by underscores."""
    if not re.fullmatch(r"\d+(_\d+)*", word):
        raise ValueError(f"expected a whole number such as 1_000_000, not {word!r}")
    return int(word)


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise ValueError(f"expected seconds above 0, such as 0.5, not {word!r}")
    return seconds


def _size(word: str) -> str:
    from greenbeat.api.limits import parse_size

    parse_size(int(word) if word.isdecimal() else word, "the size")
    return word


fuel, seconds, size = checked(_fuel), checked(_seconds), checked(_size)


def guest_value(word: str, kind: str) -> int | float:
    """A number of the type `kind`, as the text format writes it: decimal or hexadecimal, `inf`, `nan:0x200`.

    Raises:
        ValueError: it is no number, or out of range, or numbers of that type cannot be written.
    """
    from greenbeat.wasm.text.numbers import F32, F64, parse_float, parse_signless

    try:
        if kind in ("i32", "i64"):
            bits = int(kind[1:])
            value = parse_signless(word, bits)
            return value - (1 << bits) if value >> (bits - 1) else value
        if kind in ("f32", "f64"):
            form, whole, code = (F32, "<I", "<f") if kind == "f32" else (F64, "<Q", "<d")
            lower = word.lower().replace("infinity", "inf")
            found: float = struct.unpack(code, struct.pack(whole, parse_float(lower, form)))[0]
            return found
    except ValueError as error:
        raise ValueError(f"{safe(word)!r} is no {kind}: {safe(str(error))}") from None
    raise ValueError(f"a value of type {kind} cannot be written on a command line")


def shown(value: object, kind: str) -> str:
    """A result as `guest_value` would read it."""
    if isinstance(value, float):
        return shortest_f32(value) if kind == "f32" else repr(value)
    if isinstance(value, int):
        return str(value)
    return "null" if value is None else f"<{safe(repr(value)).strip('<>')}>"


def shortest_f32(value: float) -> str:
    """The fewest digits that are read back as the same f32."""
    packed = struct.pack("<f", value)
    for digits in range(1, 9):
        found = f"{value:.{digits}g}"
        if struct.pack("<f", float(found)) == packed:
            return repr(float(found))
    return repr(float(f"{value:.9g}"))
