"""The guest's memory, as functions of WASI use it: every address and length is checked, nothing is copied.

A memory never moves, so a view of it stays good; it is only taken anew when something lies beyond its end, because the
memory may have grown meanwhile.
"""

import struct
from typing import TYPE_CHECKING, Any

from greenbeat.wasi.constants import Errno, Failure

if TYPE_CHECKING:
    from greenbeat.api.memory import Memory

MASK = 0xFFFFFFFF
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
_VECTOR = struct.Struct("<II")
# What the host's readv and writev take at once, in pieces and in bytes: a guest is content with less than it asked for.
MOST_VECTORS = 1024
MOST_BYTES = 0x7FFF_F000


class GuestMemory:
    """The memory of one instance. Addresses and lengths may come signed, as guests pass them."""

    def __init__(self) -> None:
        self._memory: Memory | None = None
        self._view = memoryview(b"")

    def bind(self, memory: "Memory") -> None:
        """Tell which memory it is; before, every address is bad."""
        self._memory = memory
        self._view = memory.view

    def slice(self, address: int, length: int) -> memoryview:
        """Some bytes of the memory, to be read or written.

        Raises:
            Failure: FAULT, they are not all in the memory.
        """
        start = address & MASK
        end = start + (length & MASK)
        view = self._view
        if end > len(view):
            if self._memory is not None:
                self._view = view = self._memory.view
            if end > len(view):
                raise Failure(Errno.FAULT)
        return view[start:end]

    def vectors(self, address: int, count: int) -> list[memoryview]:
        """The pieces of a scattered buffer that are not empty, as many as the host takes at once.

        Raises:
            Failure: FAULT, the table or a piece is not in the memory.
        """
        table = self.slice(address, 8 * (count & MASK)) if count & MASK < 1 << 29 else self.slice(MASK, MASK)
        pieces: list[memoryview] = []
        total = 0
        for start, length in _VECTOR.iter_unpack(table):
            if length:
                piece = self.slice(start, length)
                if len(pieces) < MOST_VECTORS and total < MOST_BYTES:
                    pieces.append(piece[: MOST_BYTES - total])
                    total += length
        return pieces

    def text(self, address: int, length: int) -> str:
        """A string.

        Raises:
            Failure: FAULT, it is not in the memory; ILSEQ, it is not UTF-8.
        """
        try:
            return str(self.slice(address, length), "utf-8")
        except UnicodeDecodeError:
            raise Failure(Errno.ILSEQ) from None

    def unpack(self, layout: struct.Struct, address: int) -> tuple[Any, ...]:
        """The fields of a structure."""
        return layout.unpack(self.slice(address, layout.size))

    def pack(self, layout: struct.Struct, address: int, *values: Any) -> None:
        """Put the fields of a structure."""
        layout.pack_into(self.slice(address, layout.size), 0, *values)
