"""What tests of guest code share: the ways in which a guest can run, and one interface for all of them.

    def test_addition(guest):
        program = guest('(module (func (export "add") ...))')
        assert program("add", 2, 40) == 42

The fixture `guest` (in `conftest.py`) runs such a test in each of `MODES`, and on wasmtime, where that is installed, to
show that the test asks for the right thing. Which build of the engine is used, fast or checked, is the process's
affair: whoever wants both runs pytest twice.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import greenbeat as gb

PLENTY = 1 << 60
SLICE = 20


@dataclass(frozen=True)
class Mode:
    """A way to run guests: with or without guard pages around memories, with or without fuel, whole or in slices."""

    guarded: bool = True
    metered: bool = False
    sliced: bool = False

    def __str__(self) -> str:
        fuel = "sliced" if self.sliced else "metered" if self.metered else "unmetered"
        return f"{'guarded' if self.guarded else 'explicit'}-{fuel}"


MODES = (
    Mode(),
    Mode(guarded=False),
    Mode(metered=True),
    Mode(guarded=False, metered=True),
    Mode(sliced=True),
)


@contextmanager
def guard_pages(wanted: bool) -> Iterator[None]:
    """Let memories that are made meanwhile have guard pages, or not."""
    from greenbeat.api.bridge import native

    before = native.set_guard_pages(int(wanted))
    try:
        yield
    finally:
        native.set_guard_pages(before)


class Program(ABC):
    """A running instance; called with the name of an export and the arguments.

    What goes wrong is a `gb.Trap` or a `gb.Exhausted`, whatever the engine.
    """

    @abstractmethod
    def __call__(self, name: str, *arguments: Any) -> Any: ...


Imports = Mapping[str, "Program | Mapping[str, Callable[..., Any]]"]


class Guest(ABC):
    """An engine: makes programs of modules in the text format. Programs may import from each other."""

    is_greenbeat = True

    @abstractmethod
    def __call__(self, text: str, imports: Imports | None = None) -> Program: ...


class GreenbeatProgram(Program):
    """An instance and the mode it runs in."""

    def __init__(self, mode: Mode, instance: gb.Instance) -> None:
        self.mode, self.instance = mode, instance

    def __call__(self, name: str, *arguments: Any) -> Any:
        function = self.instance.exports[name]
        if not self.mode.sliced:
            return function(*arguments)
        call = function.start(*arguments)
        while not call.resume(fuel=SLICE):
            pass
        return call.result


class GreenbeatGuest(Guest):
    """Greenbeat in one of its modes."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode

    def __call__(self, text: str, imports: Imports | None = None) -> GreenbeatProgram:
        given: dict[str, Any] = {}
        for name, each in (imports or {}).items():
            given[name] = each.instance if isinstance(each, GreenbeatProgram) else each
        limits = gb.Limits(fuel=PLENTY if self.mode.metered else None)
        return GreenbeatProgram(self.mode, gb.Module.from_wat(text).instantiate(given, limits=limits))


# wasmtime's names for traps that have another text here, and the specification's.
_TRAPS = {
    "MEMORY_OUT_OF_BOUNDS": "out of bounds memory access",
    "TABLE_OUT_OF_BOUNDS": "out of bounds table access",
    "INDIRECT_CALL_TO_NULL": "uninitialized element",
    "BAD_SIGNATURE": "indirect call type mismatch",
    "INTEGER_OVERFLOW": "integer overflow",
    "INTEGER_DIVISION_BY_ZERO": "integer divide by zero",
    "BAD_CONVERSION_TO_INTEGER": "invalid conversion to integer",
    "UNREACHABLE": "unreachable",
    "NULL_REFERENCE": "null reference",
}


class WasmtimeProgram(Program):
    """An instance of wasmtime's."""

    def __init__(self, store: Any, instance: Any) -> None:
        self.store, self.exports = store, instance.exports(store)

    def __call__(self, name: str, *arguments: Any) -> Any:
        import wasmtime

        try:
            result = self.exports[name](self.store, *arguments)
        except wasmtime.Trap as trap:
            code = trap.trap_code.name if trap.trap_code is not None else ""
            if code == "STACK_OVERFLOW":
                raise gb.Exhausted("stack", "call stack exhausted") from None
            if not code:
                raise gb.UncaughtException from None
            raise gb.Trap(_TRAPS.get(code, code)) from None
        return tuple(result) if isinstance(result, list) else result


class WasmtimeGuest(Guest):
    """wasmtime, with the features that Greenbeat has."""

    is_greenbeat = False

    def __init__(self) -> None:
        import wasmtime

        from tests.spec.wasmtime_adapter import make_engine

        self.store = wasmtime.Store(make_engine())

    def __call__(self, text: str, imports: Imports | None = None) -> WasmtimeProgram:
        import wasmtime

        module = wasmtime.Module(self.store.engine, bytes(wasmtime.wat2wasm(text)))
        given = []
        for wanted in module.imports:
            source = (imports or {})[wanted.module]
            if isinstance(source, WasmtimeProgram):
                given.append(source.exports[wanted.name])
            else:
                assert isinstance(source, Mapping) and isinstance(wanted.type, wasmtime.FuncType)
                given.append(wasmtime.Func(self.store, wanted.type, source[wanted.name or ""]))
        return WasmtimeProgram(self.store, wasmtime.Instance(self.store, module, given))


def guests() -> dict[str, Callable[[], Guest]]:
    """Makers of all engines that there are here, by name."""
    found: dict[str, Callable[[], Guest]] = {str(mode): partial(GreenbeatGuest, mode) for mode in MODES}
    try:
        import wasmtime  # noqa: F401
    except ImportError:
        pass
    else:
        found["wasmtime"] = WasmtimeGuest
    return found


def same(left: Any, right: Any) -> bool:
    """Whether two results are equal; zeros by their sign, all NaNs alike."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return struct.pack("<d", left) == struct.pack("<d", right)
    return bool(left == right)


def outcome(program: Program, name: str, *arguments: Any) -> Any:
    """What a call does: its result, or in words what stopped it."""
    try:
        return program(name, *arguments)
    except gb.Trap as trap:
        return trap.kind
    except gb.Exhausted as exhausted:
        return f"exhausted: {exhausted.resource}"
