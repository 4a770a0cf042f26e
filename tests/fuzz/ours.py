"""Greenbeat's side of a differential case: one instance, run in one of the ways that Greenbeat has.

    fast        guard pages, no fuel
    unguarded   every access is compared with the memory's length
    metered     resumable calls that get a little fuel at a time; with guard pages or without, by turns

Where a host function is called, the pulse of the task that waits for it is raised, as the pacemaker does every few
milliseconds: so all the places that look at it are reached, at moments that are the same every time.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import greenbeat as gb
from greenbeat.api import bridge
from greenbeat.api.table import wrap_table
from greenbeat.runtime import layout
from greenbeat.runtime.resumable import CallObject
from tests.fuzz.binary import FUEL
from tests.fuzz.world import RAISED, HostError, World, seen, value_of

FAST, UNGUARDED, METERED, METERED_UNGUARDED = MODES = ("fast", "unguarded", "metered", "metered unguarded")
# What a resumable call gets: often less than the next stretch costs, sometimes enough for many.
SLICES = (1, 2, 5, 11, 20, 60, 150, 1000, 10_000)
_KINDS = {"undefined element": "out of bounds table access"}
_MOST_ELEMENTS, _LARGEST = 10_000, (1 << 64) - 1
LIMITS = gb.Limits(memory="64MiB", seconds=20, stack="4MiB")


class Unsupported(Exception):
    """The module imports one name twice: hosts give both the same, wasmtime's C interface does not."""


def _wide_table(kind: gb.TableType) -> gb.Table:
    """A table with 64-bit indices, which hosts have no way to make."""
    described = bridge.structure(layout.TableType)(
        kind.element,
        True,
        kind.maximum is not None,
        kind.minimum,
        _LARGEST if kind.maximum is None else kind.maximum,
        None,
    )
    group = bridge.native.new_group()
    address = bridge.native.new_host_table(group, ctypes.addressof(described), _MOST_ELEMENTS)
    return wrap_table(group, address)


def outcome_of(run: Callable[[], Any], results: int) -> Any:
    """What a call returned, as it is compared, or how it trapped."""
    try:
        value = run()
    except gb.Trap as trap:
        return _KINDS.get(trap.kind, trap.kind)
    except gb.Exhausted as error:
        return error.resource
    except HostError:
        return RAISED
    if results == 1:
        return [seen(value)]
    return [seen(one) for one in value] if results else []


class Ours:
    """An instance in Greenbeat.

    Raises:
        gb.Trap, gb.Exhausted, HostError: there is none, as instantiation says.
        Unsupported: the module cannot be given what it imports.
    """

    def __init__(self, module: gb.Module, imports_seed: str, mode: str) -> None:
        self.world = World()
        self.mode = mode
        self._slices = random.Random(imports_seed)
        self._call: Any = None
        self._native: Any = None
        imports: dict[str, dict[str, Any]] = {}
        before = bridge.native.set_guard_pages(int(mode in (FAST, METERED)))
        try:
            for index, entry in enumerate(module.imports):
                names = imports.setdefault(entry.module, {})
                if entry.name in names:
                    raise Unsupported
                names[entry.name] = self._import(index, entry.type, imports_seed)
            self._instance = module.instantiate(imports, limits=LIMITS)
        finally:
            bridge.native.set_guard_pages(before)
        self._native = self._instance._native
        self.functions: list[tuple[list[str], Any, int]] = []
        self.memories: list[Any] = []
        self.tables: list[Any] = []
        self.globals: list[Any] = []
        self._fuel: Any = None
        for export in module.exports:
            self._export(export)
        self.world.exports = [(function[0], partial(self.call, function)) for function in self.functions]

    def _import(self, index: int, kind: Any, seed: str) -> Any:
        """What the module gets for an import."""
        chance = random.Random(f"{seed}:{index}")
        if isinstance(kind, gb.FunctionType):
            results = [str(k) for k in kind.results]

            def host(*arguments: Any) -> Any:
                self._raise_pulse()
                values = self.world.host(index, results, arguments)
                return values[0] if len(values) == 1 else tuple(values) if values else None

            return gb.Function(host, kind.params, kind.results)
        if isinstance(kind, gb.MemoryType):
            return gb.Memory(kind.minimum, kind.maximum, is_64=kind.is_64)
        if isinstance(kind, gb.TableType):
            return gb.Table(str(kind.element), kind.minimum, kind.maximum) if not kind.is_64 else _wide_table(kind)
        return gb.Global(kind.value, value_of(str(kind.value), chance), mutable=kind.mutable)

    def _export(self, export: gb.ExportType) -> None:
        found = self._instance.exports[export.name]
        kind = export.type
        if isinstance(kind, gb.FunctionType):
            self.functions.append(([str(k) for k in kind.params], found, len(kind.results)))
        elif isinstance(kind, gb.MemoryType):
            self.memories.append(found)
        elif isinstance(kind, gb.TableType):
            self.tables.append(found)
        elif export.name == FUEL:
            self._fuel = found
        else:
            self.globals.append(found)

    def _raise_pulse(self) -> None:
        """Do to the running task what the pacemaker does."""
        if self._call is not None:
            task = bridge.at(CallObject, id(self._call)).task
        else:
            task = self._native.task if self._native is not None else None
        if task:
            running = bridge.at(layout.Task, task)
            running.limit = None
            running.pulse = 1

    def call(self, function: tuple[list[str], Any, int], arguments: Sequence[Any]) -> Any:
        """Call an export; returns its results as they are compared, or how it trapped."""
        _, target, results = function
        if self.mode in (FAST, UNGUARDED) or self.world.depth:
            return outcome_of(lambda: target(*arguments), results)
        return outcome_of(lambda: self._resumed(target, arguments), results)

    def _resumed(self, target: Any, arguments: Sequence[Any]) -> Any:
        """Run a resumable call to its end, a little at a time."""
        try:
            call = self._call = target.start(*arguments)
        except TypeError:
            # A host function that the module exports again.
            return target(*arguments)
        try:
            while not call.resume(self._slices.choice(SLICES)):
                pass
            return call.result
        finally:
            self._call = None

    def refuel(self, amount: int) -> None:
        """Let the guest run on, if it counts what it does."""
        if self._fuel is not None:
            self._fuel.value = amount

    def memory(self, index: int) -> tuple[int, int]:
        """Address and size of an exported memory."""
        found = self.memories[index]._native
        return found.base or 0, found.length

    def table(self, index: int) -> list[Any]:
        """The elements of an exported table, as they are compared."""
        return [seen(element) for element in self.tables[index]]

    def global_values(self) -> list[Any]:
        """The values of all exported globals, as they are compared."""
        return [seen(found.value) for found in self.globals]

    def close(self) -> None:
        """Let go of everything."""
        self.world.exports = []
        self._instance.close()
