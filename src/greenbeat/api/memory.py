"""`greenbeat.Memory`: a linear memory, which is also a buffer.

    memory.read(16, 4)          bytes, copied
    memory.write(16, b"abcd")
    memory.view[16:20]          a memoryview of the memory itself, of its size at that moment
    np.frombuffer(memory, dtype="<u4")

A memory never moves. A view taken before it grows shows the old part of it and stays valid, whatever becomes of the
instance.
"""

import ctypes
from typing import Any
from weakref import WeakValueDictionary

from greenbeat.api import bridge
from greenbeat.api.bridge import native
from greenbeat.api.checks import shown, whole
from greenbeat.api.limits import UNLIMITED
from greenbeat.errors import Exhausted
from greenbeat.runtime import layout
from greenbeat.wasm.description import MemoryType

_FAILED = (1 << 64) - 1
_LARGEST = {False: 1 << 16, True: 1 << 48}


class Memory(bridge.MemoryHandle):
    """A memory for guests to import. Those of guests come from `instance.exports`.

    Args:
        minimum, maximum: sizes in pages of 64 KiB.
        is_64: whether it is addressed by 64-bit numbers.

    Raises:
        ValueError: the sizes make no sense.
        Exhausted: the system does not give that much memory.
    """

    __slots__ = ("_native",)
    _native: Any

    def __new__(cls, minimum: int, maximum: int | None = None, *, is_64: bool = False) -> "Memory":
        most = _LARGEST[bool(is_64)]
        limited = maximum is not None
        start = whole(minimum, "the minimum")
        end = whole(maximum, "the maximum") if limited else most
        if not 0 <= start <= end <= most:
            upto = f"up to {shown(end)} " if limited else ""
            raise ValueError(f"no memory can have {shown(start)} {upto}pages: 0 <= minimum <= maximum <= {most}")
        kind = bridge.structure(layout.MemoryType)(bool(is_64), limited, False, 16, start, end)
        group = native.new_group()
        address = native.new_host_memory(group, ctypes.addressof(kind), UNLIMITED)
        if not address:
            raise Exhausted("memory", f"no memory of {start} pages is to be had")
        return wrap_memory(group, address)

    def _checked(self) -> Any:
        bridge.address_of(self)
        return self._native

    @property
    def type(self) -> MemoryType:
        """Its type. `minimum` is its present size."""
        found = self._checked()
        most = _LARGEST[bool(found.is_64)] << 16 >> found.page_bits
        maximum = found.maximum if found.maximum < most else None
        return MemoryType(self.pages, maximum, bool(found.is_64), 1 << found.page_bits)

    @property
    def pages(self) -> int:
        """Its size in pages."""
        found = self._checked()
        return int(found.length >> found.page_bits)

    def __len__(self) -> int:
        return int(self._checked().length)

    @property
    def view(self) -> memoryview:
        """The memory as it is now, writable and not copied."""
        bridge.address_of(self)
        return memoryview(self)

    def grow(self, pages: int) -> int:
        """Add pages of zeros; returns the number of pages before.

        Raises:
            Exhausted: its maximum, its limit or the system does not allow it.
        """
        address = bridge.address_of(self)
        pages = whole(pages, "a number of pages")
        if pages < 0:
            raise ValueError(f"a memory cannot shrink: {shown(pages)}")
        before: int = native.grow_memory_by(address, pages) if pages <= UNLIMITED else _FAILED
        if before == _FAILED:
            raise Exhausted("memory", f"a memory of {self.pages} pages cannot grow by {shown(pages)}")
        return before

    def __getitem__(self, key: Any) -> Any:
        return self.view[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.view[key] = value

    def __repr__(self) -> str:
        return f"<greenbeat.Memory of {len(self)} bytes>" if self._address else "<greenbeat.Memory, gone>"


_known: "WeakValueDictionary[int, Memory]" = WeakValueDictionary()


def wrap_memory(group: Any, address: int) -> Memory:
    """The Memory object of a native memory; there is one at a time."""
    found = _known.get(address)
    if found is None or not found._address:
        found = native.new_handle(Memory, group, address)
        found._native = bridge.at(layout.Memory, address)
        _known[address] = found
    return found
