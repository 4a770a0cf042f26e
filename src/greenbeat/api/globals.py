"""`greenbeat.Global`: a global variable, `g.value` to read and write it."""

from typing import Any
from weakref import WeakValueDictionary

from greenbeat.api import bridge
from greenbeat.api.bridge import native
from greenbeat.api.values import value_type, write
from greenbeat.wasm.description import GlobalType


class Global(bridge.Handle):
    """A global for guests to import. Those of guests come from `instance.exports`.

    Args:
        kind: what it holds, such as `gb.i32` (see `greenbeat.api.values`).
        value: what it holds at first.
        mutable: whether it may change.

    Raises:
        TypeError, ValueError: the value does not fit.
    """

    __slots__ = ("_type",)
    _type: GlobalType

    def __new__(cls, kind: Any, value: Any, *, mutable: bool = False) -> "Global":
        held = value_type(kind)
        group = native.new_group()
        address = native.new_host_global(group, held)
        made = wrap_global(group, address, GlobalType(held, bool(mutable)))
        made._set(value)
        return made

    @property
    def type(self) -> GlobalType:
        """Its type."""
        bridge.address_of(self)
        return self._type

    def _set(self, value: Any) -> None:
        write(self.type.value, value, bridge.address_of(self), bridge.group_of(self), "a global's value")

    @property
    def value(self) -> Any:
        """What it holds."""
        return native.read_value(self.type.value, bridge.address_of(self))

    @value.setter
    def value(self, value: Any) -> None:
        if not self.type.mutable:
            raise AttributeError("this global is a constant")
        self._set(value)

    def __repr__(self) -> str:
        if not self._address:
            return "<greenbeat.Global, gone>"
        return f"<greenbeat.Global {'mutable ' if self.type.mutable else ''}{self.type.value} {self.value!r}>"


_known: "WeakValueDictionary[int, Global]" = WeakValueDictionary()


def wrap_global(group: Any, address: int, kind: GlobalType) -> Global:
    """The Global object of a native global; there is one at a time."""
    found = _known.get(address)
    if found is None or not found._address:
        found = native.new_handle(Global, group, address)
        found._type = kind
        _known[address] = found
    return found
