"""What both engines give a module: imports and arguments, derived from nothing but the case and what the guest did.

A host function's results follow from its arguments; now and then it raises, or calls an export of the module. Each
engine has a `World` of its own, so that both count the same calls. Values are compared as `seen` sees them: floats by
their bits, except that all NaNs are one, and references by whether they are null (objects of the host by what they
are).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

NAN = "nan"
FUNCTION = "function"
MOST_HOST_CALLS = 2000
DEEPEST_REENTRY = 2
# Raised as a trap by wasmtime's side and as an exception by ours.
RAISED = "raised by the host"
STACK = "stack"

INTERESTING = (0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 255, 256, 65535, 65536, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 32)
WIDE = (*INTERESTING, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0xFFFF_FFFF_0000_0000)
FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    3.0e9,
    -3.0e9,
    2147483648.0,
    4294967296.0,
    9223372036854775808.0,
    1e30,
    -1e30,
    1e-42,
    float("inf"),
    float("-inf"),
    float("nan"),
)


class HostError(Exception):
    """What our host functions raise."""


def as_signed(value: int, bits: int) -> int:
    """The lower bits of a number, with their sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def as_single(value: float) -> float:
    """The nearest f32."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def seen(value: Any) -> Any:
    """A value as it is compared."""
    if value.__class__ is float:
        return NAN if value != value else struct.pack("<d", value)
    return FUNCTION if callable(value) else value


def _integer(chance: random.Random, choices: Sequence[int], bits: int) -> int:
    """A number at the edge of something, or any."""
    return (
        chance.choice(choices) + chance.choice((-1, 0, 0, 0, 1)) if chance.random() < 0.7 else chance.getrandbits(bits)
    )


def value_of(kind: str, chance: random.Random) -> Any:
    """A value of a type; references are null, or small numbers as objects."""
    if kind == "i32":
        return as_signed(_integer(chance, INTERESTING, 32), 32)
    if kind == "i64":
        return as_signed(_integer(chance, WIDE, 64), 64)
    if kind == "f32":
        return as_single(chance.choice(FLOATS) if chance.random() < 0.7 else chance.uniform(-1e6, 1e6))
    if kind == "f64":
        return chance.choice(FLOATS) if chance.random() < 0.7 else chance.uniform(-1e12, 1e12)
    if kind == "externref" and chance.random() < 0.7:
        return chance.randrange(1000)
    return None


class World:
    """The state that one engine's host functions share.

    Attributes:
        exports: the functions of the module that host functions may call, as `(params, call)`; `call` returns a value
            that can be compared, traps included.
        overflowed: whether the stack was full in such a call: from then on the engines may differ.
    """

    def __init__(self) -> None:
        self.exports: list[tuple[Sequence[str], Callable[[Sequence[Any]], Any]]] = []
        self.calls = 0
        self.depth = 0
        self.overflowed = False

    def host(self, index: int, results: Sequence[str], arguments: Sequence[Any]) -> list[Any]:
        """Run the host function of an import.

        Raises:
            HostError: now and then.
        """
        self.calls += 1
        number = crc32(repr((index, [seen(argument) for argument in arguments])).encode())
        if number % 61 == 7 or self.calls > MOST_HOST_CALLS:
            raise HostError(RAISED)
        if number % 13 == 4 and self.exports and self.depth < DEEPEST_REENTRY:
            params, call = self.exports[number // 13 % len(self.exports)]
            chance = random.Random(number)
            self.depth += 1
            try:
                outcome = call([value_of(kind, chance) for kind in params])
            finally:
                self.depth -= 1
            self.overflowed |= outcome == STACK
            number = crc32(repr(outcome).encode(), number)
        chance = random.Random(number)
        functions = [argument for argument in arguments if callable(argument)]
        return [
            functions[0] if kind == "funcref" and functions and number % 3 else value_of(kind, chance)
            for kind in results
        ]
