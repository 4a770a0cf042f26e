"""Random bytes: the system's, those of a seed, or those a callable gives."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from greenbeat.wasi.constants import Errno, Failure
from greenbeat.wasi.functions import function

if TYPE_CHECKING:
    from greenbeat.wasi.process import Process

RandomBytes = Callable[[int], bytes]
# Random bytes are made and put into memory in pieces of this size.
_PIECE = 1 << 20


def random_bytes(given: int | RandomBytes | None) -> RandomBytes:
    """What makes random bytes: None is the system, a number is a seed.

    Raises:
        TypeError: it is none of these.
    """
    if given is None:
        return os.urandom
    if isinstance(given, int):
        import random  # here, since most guests get the system's

        return random.Random(given).randbytes
    if callable(given):
        return given
    raise TypeError(f"random must be None, a seed or a callable, not {given!r}")


@function("ii")
def random_get(process: "Process", address: int, length: int) -> None:
    """Fill memory with random bytes."""
    room = process.memory.slice(address, length)
    for start in range(0, len(room), _PIECE):
        piece = room[start : start + _PIECE]
        made = process.random(len(piece))
        if len(made) != len(piece):
            raise Failure(Errno.IO)
        piece[:] = made
