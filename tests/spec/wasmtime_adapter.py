"""wasmtime behind the runner's `Adapter`: to check the runner and the text format, not Greenbeat.

Values go through wasmtime's C structures rather than its Python conversions, which send f32 through a Python float
and so turn signalling NaNs into quiet ones.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import wasmtime
from wasmtime import _ffi as ffi

from tests.spec.runner import Outcome
from tests.spec.script import Number, RefExtern, RefFunc, RefKind, RefNull, Value, Vector

_NUMBER_KINDS = {"i32": ffi.WASMTIME_I32, "i64": ffi.WASMTIME_I64, "f32": ffi.WASMTIME_F32, "f64": ffi.WASMTIME_F64}
_NUMBER_TYPES = {kind.value: type_ for type_, kind in _NUMBER_KINDS.items()}
_ANYREF_KIND = 7
# The last test says yes to structures and arrays too, so it must come last.
_ANYREF_TESTS = {
    "struct": ffi.wasmtime_anyref_is_struct,
    "array": ffi.wasmtime_anyref_is_array,
    "i31": ffi.wasmtime_anyref_is_i31,
}
_STACK_OVERFLOW = wasmtime.TrapCode.STACK_OVERFLOW


class _LinkError(Exception):
    """An import is missing or has the wrong type."""


def make_engine(**features: bool) -> wasmtime.Engine:
    """An engine for the features we implement now; more, or fewer, by keyword."""
    config = wasmtime.Config()
    ours = {"tail_call": True, "function_references": True, "multi_memory": True, "memory64": True}
    later = {"gc": False, "relaxed_simd": False, "simd": False, "threads": False}
    for feature, enabled in (ours | later | features).items():
        setattr(config, f"wasm_{feature}", enabled)
    return wasmtime.Engine(config)


class WasmtimeAdapter:
    """One store of an engine."""

    def __init__(self, engine: wasmtime.Engine) -> None:
        self.engine = engine
        self.store = wasmtime.Store(engine)

    def compile(self, binary: bytes) -> wasmtime.Module:
        return wasmtime.Module(self.engine, binary)

    def instantiate(self, module: wasmtime.Module, imports: Mapping[str, Mapping[str, object]]) -> wasmtime.Instance:
        externs: list[Any] = []
        for each in module.imports:
            try:
                externs.append(imports[each.module][each.name or ""])
            except KeyError:
                raise _LinkError(f"unknown import {each.module}.{each.name}") from None
        try:
            return wasmtime.Instance(self.store, module, externs)
        except wasmtime.WasmtimeError as error:
            raise _LinkError(str(error)) from error

    def exports(self, instance: wasmtime.Instance) -> Mapping[str, object]:
        return dict(instance.exports(self.store).items())

    def invoke(self, instance: wasmtime.Instance, name: str, arguments: Sequence[Value]) -> Sequence[Value | RefKind]:
        function = instance.exports(self.store)[name]
        assert isinstance(function, wasmtime.Func), "scripts invoke functions only"
        parameters = (ffi.wasmtime_val_t * len(arguments))(*map(self._to_raw, arguments))
        count = len(function.type(self.store).results)
        results = (ffi.wasmtime_val_t * count)()
        trap = ctypes.POINTER(ffi.wasm_trap_t)()
        error = ffi.wasmtime_func_call(
            self.store._context(),
            ctypes.byref(function._func),
            parameters,
            len(arguments),
            results,
            count,
            ctypes.byref(trap),
        )
        if error:
            raise wasmtime.WasmtimeError._from_ptr(error)
        if trap:
            raise wasmtime.Trap._from_ptr(trap)
        return [self._from_raw(result) for result in results]

    def get_global(self, instance: wasmtime.Instance, name: str) -> Value | RefKind:
        global_ = instance.exports(self.store)[name]
        assert isinstance(global_, wasmtime.Global), "scripts get globals only"
        raw = ffi.wasmtime_val_t()
        ffi.wasmtime_global_get(self.store._context(), ctypes.byref(global_._global), ctypes.byref(raw))
        return self._from_raw(raw)

    def classify(self, error: Exception) -> Outcome | None:
        match error:
            case _LinkError():
                return Outcome.UNLINKABLE
            case wasmtime.Trap() if error.trap_code is _STACK_OVERFLOW:
                return Outcome.EXHAUSTION
            case wasmtime.Trap():
                return Outcome.EXCEPTION if "thrown Wasm exception" in error.message else Outcome.TRAP
            case wasmtime.WasmtimeError():
                return Outcome.REFUSED
        return None

    def trap_message(self, error: Exception) -> str | None:
        return None

    def _to_raw(self, value: Value) -> Any:
        raw: Any
        match value:
            case Number():
                raw = ffi.wasmtime_val_t(kind=_NUMBER_KINDS[value.type])
                # The members of the union overlap: this stores the bits of floats too.
                raw.of.i64 = value.bits
                return raw
            case Vector():
                raw = ffi.wasmtime_val_t(kind=ffi.WASMTIME_V128)
                raw.of.v128[:] = value.to_bytes()
                return raw
            case RefExtern():
                return wasmtime.Val.externref(value)._new_raw(self.store)
            case RefNull(heap_type="extern"):
                return wasmtime.Val.externref(None)._new_raw(self.store)
            case RefNull(heap_type="func"):
                return wasmtime.Val.funcref(None)._new_raw(self.store)
        raise NotImplementedError(f"wasmtime's Python interface has no {value}")

    def _from_raw(self, raw: Any) -> Value | RefKind:
        type_ = _NUMBER_TYPES.get(raw.kind)
        if type_ is not None:
            width = int(type_[1:])
            return Number(type_, raw.of.i64 & ((1 << width) - 1))
        if raw.kind == ffi.WASMTIME_V128.value:
            return Vector.from_bytes(bytes(raw.of.v128), "i8x16")
        if raw.kind >= _ANYREF_KIND:
            return self._internal_reference(raw)
        value = wasmtime.Val._from_raw(self.store, raw).value
        if value is None:
            return RefNull(None)
        if isinstance(value, wasmtime.Func):
            return RefFunc(None)
        assert isinstance(value, RefExtern), "the only external references are the ones scripts pass"
        return value

    def _internal_reference(self, raw: Any) -> RefNull | RefKind:
        """The kinds of references that wasmtime's Python interface does not know."""
        if raw.of.anyref.store_id == 0:
            return RefNull(None)
        for kind, test in _ANYREF_TESTS.items():
            if raw.kind == _ANYREF_KIND and test(self.store._context(), ctypes.byref(raw.of.anyref)):
                return RefKind(kind)
        return RefKind("any")
