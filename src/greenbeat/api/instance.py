"""`greenbeat.Instance`: a module come to life.

    with module.instantiate({"env": {"log": print}}) as instance:
        instance.exports.add(2, 40)
        instance.exports["memory"].view[:4]

At the end of the block it is closed, and takes no more calls.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from greenbeat.api import bridge, linking
from greenbeat.api.bridge import native
from greenbeat.api.checks import described, shown, whole
from greenbeat.api.errorhooks import segment_trap
from greenbeat.api.globals import wrap_global
from greenbeat.api.limits import Limits
from greenbeat.api.memory import wrap_memory
from greenbeat.api.table import wrap_table
from greenbeat.api.tags import wrap_tag
from greenbeat.errors import Exhausted
from greenbeat.runtime import layout
from greenbeat.runtime.outcomes import MEMORY_LIMIT, SEGMENT_TRAP, TABLE_LIMIT, InstanceError
from greenbeat.wasm.description import Description, ExportType, FunctionType, MemoryType, TableType, TagType
from greenbeat.wasm.printable import printable

if TYPE_CHECKING:
    from greenbeat.api.module import Module


class Exports(Mapping[str, Any]):
    """What an instance offers, by attribute and by name.

    A name that is no identifier is reached by `exports["name"]`. An export hides a mapping's method of the same name.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        vars(self).update(found)

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __eq__(self, other: object) -> bool:
        return vars(self) == (vars(other) if isinstance(other, Exports) else other)

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, name: object) -> bool:
        return name in vars(self)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    else:

        def __getattr__(self, name: str) -> Any:
            known = ", ".join(printable(n, 40) for n in list(vars(self))[:20])
            raise AttributeError(
                f"the instance exports no {name!r}; it exports: {known or 'nothing'}", name=name, obj=self
            )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"exports cannot be changed: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"exports cannot be changed: {name}")

    def __repr__(self) -> str:
        return f"<exports {', '.join(map(repr, vars(self).values()))}>"


class Instance(bridge.Handle):
    """An instance, made by `Module.instantiate`. As a context manager it is closed at the end.

    Attributes:
        exports: functions, memories, tables and globals by name.
        module: what it is an instance of.
        limits: what it may use.
    """

    exports: Exports
    module: "Module"
    limits: Limits
    _native: Any
    _closing: Callable[[], None] | None = None

    def __new__(cls, *arguments: Any, **named: Any) -> "Instance":
        raise TypeError("instances are made by Module.instantiate")

    @property
    def fuel(self) -> int | None:
        """What is left of its fuel; None when it is not metered. Setting it meters calls that begin later."""
        bridge.address_of(self)
        return int(self._native.fuel) if self._native.metered else None

    @fuel.setter
    def fuel(self, fuel: int | None) -> None:
        bridge.address_of(self)
        given = 0 if fuel is None else whole(fuel, "fuel")
        if not 0 <= given < 1 << 63:
            raise ValueError(f"fuel must be from 0 to 2**63 - 1: {shown(given)}")
        self._native.metered = fuel is not None
        self._native.fuel = given

    def close(self) -> None:
        """Refuse all calls from now on.

        What the instance shares with others stays as it is, and memory views stay valid.
        """
        if self._address:
            self._native.closed = 1
        if self._closing is not None:
            self._closing()
        self.module._save_translations()

    def on_close(self, closing: Callable[[], None]) -> None:
        """Have something called when the instance is closed: its host gives back what it keeps for it."""
        vars(self)["_closing"] = closing

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return not self._address or bool(self._native.closed)

    def __enter__(self) -> "Instance":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self.module.name
        what = f' "{printable(name, 60)}"' if name else ""
        return f"<greenbeat.Instance{what}: {', '.join(printable(n, 40) for n in self.exports) or 'no exports'}>"


def instantiate(module: "Module", imports: Mapping[str, Any], limits: Limits) -> Instance:
    """See `Module.instantiate`."""
    if not isinstance(imports, Mapping):
        raise TypeError(f"imports must be a mapping of mappings, not {described(imports)}")
    if not isinstance(limits, Limits):
        raise TypeError(f"limits must be greenbeat.Limits, not {described(limits)}")
    description = module._description
    module_address = bridge.address_of(module)
    group = native.new_group()
    native.keep(group, bridge.group_of(module))
    if module._users is not None:
        native.keep(group, module._users)
    addresses = linking.resolve(group, description.imports, imports)
    places = (ctypes.c_uint64 * (len(addresses) + 1))(*addresses)
    error = bridge.structure(InstanceError)()
    address = native.create_instance(
        module_address,
        ctypes.addressof(places),
        limits.memory_bytes,
        min(limits.table, (1 << 64) - 1),
        ctypes.addressof(error),
    )
    if not address:
        raise _not_made(description, error, limits)
    native.adopt_instance(group, address)
    _set_limits(bridge.at(layout.Instance, address), limits)
    if error.kind == SEGMENT_TRAP:
        raise segment_trap(error)
    instance: Instance = native.new_handle(Instance, group, address)
    vars(instance).update(
        module=module,
        limits=limits,
        _native=bridge.at(layout.Instance, address),
        exports=_exports(group, address, description),
    )
    if description.start is not None:
        native.exported_function(address, description.start, description.function_name(description.start) or "start")()
    return instance


def _set_limits(instance: Any, limits: Limits) -> None:
    instance.metered = limits.fuel is not None
    instance.fuel = limits.fuel or 0
    instance.stack_limit = limits.stack_bytes
    instance.time_limit = limits.nanoseconds
    instance.depth_limit = limits.depth


def _not_made(description: Description, error: Any, limits: Limits) -> Exhausted:
    """Why there is no instance."""
    if error.kind == MEMORY_LIMIT:
        return _too_much_memory(description, error.index, limits)
    if error.kind == TABLE_LIMIT:
        elements = description.tables[error.index].minimum
        return Exhausted("memory", f"table {error.index} starts with {elements} elements: the limit is {limits.table}")
    return Exhausted("memory", "the system has no memory for this instance")


def _too_much_memory(description: Description, index: int, limits: Limits) -> Exhausted:
    """A module's own memories, up to one of them, start with more than is allowed."""
    imported = sum(isinstance(entry.type, MemoryType) for entry in description.imports)
    own = description.memories[imported : index + 1]
    size = sum(kind.minimum * kind.page_size for kind in own)
    told = f"memory {index} starts" if len(own) == 1 else f"memories {imported} to {index} start"
    return Exhausted("memory", f"{told} with {size} bytes: the limit is {limits.memory_bytes} bytes")


def _exports(group: Any, address: int, description: Description) -> Exports:
    instance = bridge.at(layout.Instance, address)
    return Exports({export.name: _export(group, address, instance, export) for export in description.exports})


def _export(group: Any, address: int, instance: Any, export: ExportType) -> Any:
    """The Python object of an export."""
    kind = export.type
    if isinstance(kind, FunctionType):
        return native.exported_function(address, export.index, export.name)
    if isinstance(kind, MemoryType):
        return wrap_memory(group, _pointer(instance.memories, export.index))
    if isinstance(kind, TableType):
        return wrap_table(group, _pointer(instance.tables, export.index))
    if isinstance(kind, TagType):
        return wrap_tag(group, _pointer(instance.tags, export.index), kind)
    return wrap_global(group, _pointer(instance.globals, export.index), kind)


def _pointer(array: int, index: int) -> int:
    return ctypes.c_uint64.from_address(array + 8 * index).value
