"""`greenbeat.Tag`: what kind of exception it is, to be handed from one instance's exports to another's imports."""

from typing import Any
from weakref import WeakValueDictionary

from greenbeat.api import bridge
from greenbeat.api.bridge import native
from greenbeat.wasm.description import TagType


class Tag(bridge.Handle):
    """A guest's tag, from `instance.exports`. Two are the same tag if they are the same object."""

    __slots__ = ("type",)
    type: TagType

    def __new__(cls, *arguments: Any, **named: Any) -> "Tag":
        raise TypeError("a Tag comes from an instance's exports: it cannot be made in Python")

    def __repr__(self) -> str:
        return f"<greenbeat.Tag {self.type}>"


_known: "WeakValueDictionary[int, Tag]" = WeakValueDictionary()


def wrap_tag(group: Any, address: int, kind: TagType) -> Tag:
    """The Tag object of a native tag; there is one at a time."""
    found = _known.get(address)
    if found is None or not found._address:
        found = native.new_handle(Tag, group, address)
        found.type = kind
        _known[address] = found
    return found
