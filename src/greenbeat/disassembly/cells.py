"""The interpreter's cells of a function: what it is translated to when it is first called.

    0x0010  br_loop.i32.lt_s.sa       -24 8 16

A cell is a handler's address and 32-bit operands. Its length is not written down: it goes on until the next word that
is the address of a handler. Offsets count bytes from the function's first cell. Operands are slots (bytes from the
frame's base), immediates, or distances to where a branch goes; `greenbeat.interpreter` says at each handler what its
operands are. A word that a handler has no use for is whatever it happens to be.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from greenbeat.engine import engine
from greenbeat.native import ctypes_of
from greenbeat.runtime import layout

WORD = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its offset in the function's code, its handler's name, its operands as signed numbers."""

    offset: int
    handler: str
    operands: tuple[int, ...]


@lru_cache(maxsize=1)
def handler_names() -> dict[int, str]:
    """The name of each handler by address; equal handlers have the first one's name."""
    from greenbeat.interpreter.handlers import functions, names

    addresses = (ctypes.c_uint64 * len(functions)).from_address(engine.address("interpreter.handlers.handlers"))
    found: dict[int, str] = {}
    for name, address in zip(names, addresses, strict=True):
        if address:
            found.setdefault(address, name)
    return found


def translated(module: int, index: int, variant: int = layout.UNMETERED) -> bytes:
    """The cells of a function, which is translated now if it has not been.

    Args:
        module: the address of the native Module.
        index: a function with a body.
        variant: UNMETERED or METERED, plus EXPLICIT.

    Raises:
        MemoryError: there is no memory for the cells.
    """
    native = ctypes_of(layout.Module).from_address(module)
    kind = ctypes_of(layout.Function)
    address = native.functions + index * ctypes.sizeof(kind)
    entry = engine.function("ensure_translated")(module, address, variant)
    if not entry:
        raise MemoryError("no memory to translate the function")
    return ctypes.string_at(entry, kind.from_address(address).code_size[variant])


def cells(code: bytes) -> Iterator[Cell]:
    """The cells in a function's code."""
    names = handler_names()
    words = memoryview(code).cast("Q")
    start = 0
    while start < len(words):
        end = start + 1
        while end < len(words) and words[end] not in names:
            end += 1
        operands = memoryview(code[(start + 1) * WORD : end * WORD]).cast("i")
        yield Cell(start * WORD, names.get(words[start], "?"), tuple(operands))
        start = end
