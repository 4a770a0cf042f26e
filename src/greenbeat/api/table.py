"""`greenbeat.Table`: a table of functions or of Python objects, as a sequence that can grow.

    table = gb.Table("externref", 10)
    table[0] = {"any": "object"}
    table[0]

An element that is null is None.
"""

import ctypes
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

from greenbeat.api import bridge
from greenbeat.api.bridge import native
from greenbeat.api.checks import shown, whole
from greenbeat.api.values import is_reference, mismatch, value_type
from greenbeat.errors import Exhausted
from greenbeat.runtime import layout
from greenbeat.runtime.outcomes import MISFIT
from greenbeat.wasm import valuetypes
from greenbeat.wasm.description import TableType, ValueType

_FAILED = (1 << 64) - 1
_LARGEST = {False: (1 << 32) - 1, True: (1 << 64) - 1}
_HOST_LIMIT = 10_000_000


class Table(bridge.Handle):
    """A table for guests to import. Those of guests come from `instance.exports`.

    Args:
        element: "funcref" or "externref".
        minimum, maximum: sizes in elements; all are null (None) at first.

    Raises:
        ValueError, TypeError: the sizes or the type make no sense.
        Exhausted: the system does not give that much memory.
    """

    __slots__ = ("_native",)
    _native: Any

    def __new__(cls, element: Any, minimum: int, maximum: int | None = None) -> "Table":
        kind = value_type(element)
        if not is_reference(kind) or not kind & valuetypes.NULLABLE:
            raise TypeError(f"a table holds references that may be null, not {kind}")
        most = _LARGEST[False]
        limited = maximum is not None
        start = whole(minimum, "the minimum")
        end = whole(maximum, "the maximum") if limited else most
        if not 0 <= start <= end <= most:
            upto = f"up to {shown(end)} " if limited else ""
            raise ValueError(f"no table can have {shown(start)} {upto}elements: 0 <= minimum <= maximum <= {most}")
        described = bridge.structure(layout.TableType)(kind, False, limited, start, end, None)
        group = native.new_group()
        address = native.new_host_table(group, ctypes.addressof(described), _HOST_LIMIT)
        if not address:
            raise Exhausted("memory", f"no table of {start} elements is to be had")
        return wrap_table(group, address)

    def _checked(self) -> Any:
        bridge.address_of(self)
        return self._native

    @property
    def type(self) -> TableType:
        """Its type. `minimum` is its present size."""
        found = self._checked()
        is_64 = bool(found.is_64)
        maximum = found.maximum if found.maximum < _LARGEST[is_64] else None
        return TableType(ValueType(found.kind), len(self), maximum, is_64)

    def __len__(self) -> int:
        return int(self._checked().length)

    def _index(self, index: int) -> int:
        index = whole(index, "an index")
        length = len(self)
        position = index + length if index < 0 else index
        if not 0 <= position < length:
            raise IndexError(f"element {shown(index)} of a table of {length}")
        return position

    def __getitem__(self, index: int) -> Any:
        position = self._index(index)
        return native.read_element(bridge.address_of(self), position)

    def __setitem__(self, index: int, value: Any) -> None:
        position = self._index(index)
        if not native.write_element(self._address, position, value, bridge.group_of(self)):
            raise mismatch("an element", self._native.kind, value)

    def __iter__(self) -> Iterator[Any]:
        position = 0
        while position < len(self):
            yield self[position]
            position += 1

    def grow(self, count: int, value: Any = None) -> int:
        """Add elements; returns the length before.

        Raises:
            Exhausted: its maximum, its limit or the system does not allow it.
            TypeError: the value does not fit.
        """
        address = bridge.address_of(self)
        count = whole(count, "a number of elements")
        if count < 0:
            raise ValueError(f"a table cannot shrink: {shown(count)}")
        before: int = native.grow_table_by(address, min(count, _FAILED), value, bridge.group_of(self))
        if before == MISFIT:
            raise mismatch("an element", self._native.kind, value)
        if before == _FAILED:
            raise Exhausted("memory", f"a table of {len(self)} elements cannot grow by {shown(count)}")
        return before

    def __repr__(self) -> str:
        return f"<greenbeat.Table of {len(self)} {self.type.element}>" if self._address else "<greenbeat.Table, gone>"


_known: "WeakValueDictionary[int, Table]" = WeakValueDictionary()


def wrap_table(group: Any, address: int) -> Table:
    """The Table object of a native table; there is one at a time."""
    found = _known.get(address)
    if found is None or not found._address:
        found = native.new_handle(Table, group, address)
        found._native = bridge.at(layout.Table, address)
        _known[address] = found
    return found
