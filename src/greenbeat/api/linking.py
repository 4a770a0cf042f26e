"""Imports: what is given for each, whether it fits, and which groups come to depend on each other.

    the import     what may be given                   the groups
    func           a Function of exactly that type     merged if references can flow through it, else kept
                   any other callable                  the callable belongs to the new instance's group
    memory         a Memory that is large enough       kept
    table          a Table of the same element type    merged
    tag            a Tag of the same type               kept
    global         a Global of the same type           merged if it holds references, else kept
                   a number (constants only)           a new global of the new group

What groups are is told in `greenbeat.runtime.groups`.
"""

from collections.abc import Mapping
from typing import Any

from greenbeat.api import bridge
from greenbeat.api.bridge import native
from greenbeat.api.checks import described
from greenbeat.api.function import Function
from greenbeat.api.globals import Global
from greenbeat.api.memory import Memory
from greenbeat.api.table import Table
from greenbeat.api.tags import Tag
from greenbeat.api.values import is_reference, is_subtype, passes_references, write
from greenbeat.errors import LinkError
from greenbeat.wasm.description import (
    ExternType,
    FunctionType,
    GlobalType,
    ImportType,
    MemoryType,
    TableType,
    TagType,
    signature_address,
)
from greenbeat.wasm.printable import printable

_MISSING = object()


def resolve(group: Any, wanted: tuple[ImportType, ...], imports: Mapping[str, Any]) -> list[int]:
    """The native addresses of the imports, in order.

    The group comes to own or keep what they are made of.

    Raises:
        LinkError: an import is missing or does not fit.
    """
    addresses = []
    for entry in wanted:
        given = _given(entry, imports)
        address = _address(group, entry, given)
        if address is None:
            raise _error(entry, _described(given, entry.type))
        addresses.append(address)
    return addresses


def _error(entry: ImportType, found: str) -> LinkError:
    return LinkError(printable(entry.module, 100), printable(entry.name, 100), str(entry.type), found)


def _given(entry: ImportType, imports: Mapping[str, Any]) -> Any:
    """What was given for an import."""
    namespace = imports.get(entry.module, _MISSING)
    if namespace is _MISSING:
        raise _error(entry, f'no module "{printable(entry.module, 100)}" among the imports')
    if isinstance(namespace, bridge.Handle):
        namespace = getattr(namespace, "exports", namespace)
    try:
        return namespace[entry.name]
    except KeyError:
        raise _error(entry, "nothing of that name") from None
    except TypeError:
        raise _error(entry, f"{described(namespace, 60)} in place of the module's names") from None


def _address(group: Any, entry: ImportType, given: Any) -> int | None:
    """The native address of what was given; None if it does not fit."""
    kind = entry.type
    if isinstance(kind, FunctionType):
        return _function(group, kind, given)
    if isinstance(kind, MemoryType):
        return _join(group, given, False) if isinstance(given, Memory) and _memory_fits(kind, given) else None
    if isinstance(kind, TableType):
        return _join(group, given, True) if isinstance(given, Table) and _table_fits(kind, given) else None
    if isinstance(kind, TagType):
        return _join(group, given, False) if isinstance(given, Tag) and given.type == kind else None
    return _global(group, entry, kind, given)


def _join(group: Any, given: Any, merge: bool) -> int:
    """Make the group depend on what was given; returns its address."""
    other = bridge.group_of(given)
    address: int = given._address
    if not address:
        raise ReferenceError(f"this {type(given).__name__} is gone")
    if merge:
        native.merge_groups(group, other)
    else:
        native.keep(group, other)
    return address


def _function(group: Any, kind: FunctionType, given: Any) -> int | None:
    if isinstance(given, Function):
        return _join(group, given, passes_references(kind)) if given.type == kind else None
    if not callable(given):
        return None
    address: int = native.new_host_function(group, signature_address(kind), given)
    return address


def _size_fits(wanted: TableType | MemoryType, size: int, maximum: int) -> bool:
    """Whether a size, and how far it may grow, are within the limits of a type."""
    return size >= wanted.minimum and (wanted.maximum is None or maximum <= wanted.maximum)


def _memory_fits(wanted: MemoryType, given: Memory) -> bool:
    found = given.type
    if (found.is_64, found.page_size) != (wanted.is_64, wanted.page_size):
        return False
    return _size_fits(wanted, given.pages, given._native.maximum)


def _table_fits(wanted: TableType, given: Table) -> bool:
    found = given.type
    if (found.is_64, found.element) != (wanted.is_64, wanted.element):
        return False
    return _size_fits(wanted, len(given), given._native.maximum)


def _global(group: Any, entry: ImportType, wanted: GlobalType, given: Any) -> int | None:
    if isinstance(given, Global):
        found = given.type
        if found.mutable != wanted.mutable:
            return None
        if found.value != wanted.value and (wanted.mutable or not is_subtype(found.value, wanted.value)):
            return None
        return _join(group, given, is_reference(wanted.value))
    if wanted.mutable or is_reference(wanted.value) or isinstance(given, bool) or not isinstance(given, int | float):
        return None
    address: int = native.new_host_global(group, wanted.value)
    try:
        write(wanted.value, given, address, group, "the value")
    except (TypeError, ValueError) as problem:
        raise _error(entry, str(problem)) from None
    return address


def _described(given: Any, wanted: ExternType) -> str:
    """What was given, for a message."""
    if isinstance(given, Function | Memory | Table | Global | Tag):
        size = ""
        if isinstance(given, Memory):
            size = f" of {given.pages} pages"
        elif isinstance(given, Table):
            size = f" of {len(given)} elements"
        return f"{given.type}{size}"
    mutable = isinstance(wanted, GlobalType) and wanted.mutable
    hint = ": a mutable global must be a greenbeat.Global" if mutable and isinstance(given, int | float) else ""
    return f"{described(given, 60)}{hint}"


__all__ = ["resolve"]
