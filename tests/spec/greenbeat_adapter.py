"""The official suite's adapter for Greenbeat.

Calls go by words (see `greenbeat.runtime.wordcalls`), because scripts pass signalling NaNs as arguments and look at the
payloads of results. With `fuel_slice` they are resumable calls that get so much fuel at a time; those take Python
values, so functions with an f32 among their values are called by words all the same.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import greenbeat as gb
from greenbeat.api import bridge
from greenbeat.wasm import valuetypes
from tests.spec.runner import Outcome
from tests.spec.script import Number, RefExtern, RefFunc, RefKind, RefNull, Value, Vector

NUMBERS = {valuetypes.I32: "i32", valuetypes.I64: "i64", valuetypes.F32: "f32", valuetypes.F64: "f64"}
PLENTY = 1 << 60


class GreenbeatAdapter:
    """Greenbeat with or without fuel, calls whole or in slices; with `kept`, translations may come from before."""

    def __init__(self, *, metered: bool = False, fuel_slice: int | None = None, kept: bool = False) -> None:
        self.limits = gb.Limits(fuel=PLENTY if metered else None)
        self.fuel_slice = fuel_slice
        self.kept = kept
        self.modules: list[gb.Module] = []

    def compile(self, binary: bytes) -> gb.Module:
        module = gb.Module(binary, cache=self.kept)
        if self.kept:
            self.modules.append(module)
        return module

    def save(self) -> None:
        """Keep what was translated."""
        for module in self.modules:
            module._save_translations()

    def count(self, counter: str) -> int:
        """The sum of a counter of all modules."""
        return sum(getattr(bridge.at(bridge.layout.Module, bridge.address_of(m)), counter) for m in self.modules)

    def instantiate(self, module: gb.Module, imports: Mapping[str, Mapping[str, object]]) -> gb.Instance:
        return module.instantiate(imports, limits=self.limits)

    def exports(self, instance: gb.Instance) -> Mapping[str, object]:
        return instance.exports

    def invoke(self, instance: gb.Instance, name: str, arguments: Sequence[Value]) -> Sequence[Value | RefKind]:
        function = instance.exports[name]
        kind = function.type
        assert len(arguments) == len(kind.params), "scripts pass as many arguments as the function takes"
        if self.fuel_slice is not None and valuetypes.F32 not in (*kind.params, *kind.results):
            return self._in_slices(function, arguments)
        words = (ctypes.c_uint64 * (len(kind.params) + len(kind.results) + 1))()
        group = bridge.group_of(function)
        for position, (type_, value) in enumerate(zip(kind.params, arguments, strict=True)):
            if isinstance(value, Number):
                words[position] = value.bits
            else:
                place = ctypes.addressof(words) + 8 * position
                assert bridge.native.write_value(type_, _to_python(value), place, group), f"{value} is no {type_}"
        bridge.native.call_with_words(function, words)
        return [_from_word(type_, ctypes.addressof(words) + 8 * place) for place, type_ in enumerate(kind.results)]

    def _in_slices(self, function: gb.Function, arguments: Sequence[Value]) -> Sequence[Value | RefKind]:
        call = function.start(*map(_to_python, arguments))
        while not call.resume(fuel=self.fuel_slice):
            pass
        kinds = function.type.results
        results = (call.result,) if len(kinds) == 1 else call.result or ()
        return [_from_python(kind, result) for kind, result in zip(kinds, results, strict=True)]

    def get_global(self, instance: gb.Instance, name: str) -> Value | RefKind:
        found = instance.exports[name]
        return _from_word(found.type.value, bridge.address_of(found))

    def classify(self, error: Exception) -> Outcome | None:
        match error:
            case gb.CompileError():
                return Outcome.MALFORMED if error.malformed else Outcome.INVALID
            case gb.LinkError():
                return Outcome.UNLINKABLE
            case gb.Trap():
                return Outcome.TRAP
            case gb.UncaughtException():
                return Outcome.EXCEPTION
            case gb.Exhausted(resource="stack"):
                return Outcome.EXHAUSTION
        return None

    def trap_message(self, error: Exception) -> str | None:
        return error.kind if isinstance(error, gb.Trap) else None


def _to_python(value: Value) -> Any:
    """A value as the Python API takes it: external references are the script's own objects."""
    match value:
        case Number(type="f64"):
            return struct.unpack("<d", value.bits.to_bytes(8, "little"))[0]
        case Number():
            return value.bits
        case RefNull():
            return None
        case RefExtern():
            return value
    raise NotImplementedError(f"scripts do not pass {value}")


def _from_python(kind: int, value: Any) -> Value | RefKind:
    match kind:
        case valuetypes.I32:
            return Number("i32", value & 0xFFFF_FFFF)
        case valuetypes.I64:
            return Number("i64", value & 0xFFFF_FFFF_FFFF_FFFF)
        case valuetypes.F64:
            return Number("f64", int.from_bytes(struct.pack("<d", value), "little"))
    if value is None:
        return RefNull(None)
    if isinstance(value, gb.Function):
        return RefFunc(None)
    assert isinstance(value, RefExtern), "the only external references are the ones scripts pass"
    return value


def _from_word(kind: int, place: int) -> Value | RefKind:
    """The value of a slot or global at an address."""
    if kind == valuetypes.V128:
        return Vector.from_bytes(ctypes.string_at(place, 16), "i8x16")
    if kind in NUMBERS:
        size = 4 if NUMBERS[kind].endswith("32") else 8
        return Number(NUMBERS[kind], int.from_bytes(ctypes.string_at(place, size), "little"))
    return _from_python(kind, bridge.native.read_value(kind, place))
