"""wasmtime's side of a differential case, through its C interface: its Python one takes 30 µs a call."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence
from ctypes import POINTER, byref
from functools import partial
from typing import Any

import wasmtime
from wasmtime import _ffi as ffi

import greenbeat as gb
from tests.fuzz.binary import FUEL
from tests.fuzz.world import FUNCTION, RAISED, HostError, World, seen, value_of

_I32, _I64, _F32, _F64 = (
    kind.value for kind in (ffi.WASMTIME_I32, ffi.WASMTIME_I64, ffi.WASMTIME_F32, ffi.WASMTIME_F64)
)
_EXTERNREF, _FUNCREF = ffi.WASMTIME_EXTERNREF.value, ffi.WASMTIME_FUNCREF.value
_NUMBERS = {"i32": _I32, "i64": _I64, "f32": _F32, "f64": _F64}
_CODES = {
    0: "stack",
    1: "out of bounds memory access",
    3: "out of bounds table access",
    4: "uninitialized element",
    5: "indirect call type mismatch",
    6: "integer overflow",
    7: "integer divide by zero",
    8: "invalid conversion to integer",
    9: "unreachable",
}
_NULL_REFERENCE = wasmtime.TrapCode.NULL_REFERENCE.value
_RAISED = ctypes.create_string_buffer(RAISED.encode())
_NO_FINALIZER = ctypes.cast(ctypes.c_void_p(), ctypes.CFUNCTYPE(None, ctypes.c_void_p))
FEATURES = {
    "tail_call": True,
    "function_references": True,
    "multi_memory": True,
    "memory64": True,
    "gc": False,
    "exceptions": False,
    "relaxed_simd": False,
    "simd": False,
    "threads": False,
}


def make_engine() -> wasmtime.Engine:
    """An engine with the features that Greenbeat has, which compiles fast."""
    config = wasmtime.Config()
    for feature, enabled in FEATURES.items():
        setattr(config, f"wasm_{feature}", enabled)
    config.cranelift_opt_level = "none"
    config.parallel_compilation = False
    config.cranelift_debug_verifier = False
    config.cranelift_flag_set("regalloc_algorithm", "single_pass")
    config.max_wasm_stack = 1 << 20
    return wasmtime.Engine(config)


def refusal(engine: wasmtime.Engine, data: bytes) -> str | None:
    """Why a module is refused; None if it is not."""
    try:
        wasmtime.Module.validate(engine, data)
    except wasmtime.WasmtimeError as error:
        return str(error)
    return None


class Trapped(Exception):
    """The guest trapped; the argument says how."""


def _trap_kind(trap: Any) -> str:
    code = ffi.wasmtime_trap_code_t()
    kind = RAISED
    if ffi.wasmtime_trap_code(trap, byref(code)):
        kind = "null reference" if code.value == _NULL_REFERENCE else _CODES.get(code.value, f"code {code.value}")
    ffi.wasm_trap_delete(trap)
    return kind


def _describe(error: Any) -> str:
    return str(wasmtime.WasmtimeError._from_ptr(error))


class Theirs:
    """An instance in wasmtime.

    What the module imports and exports is taken from Greenbeat's description of it: the names that wasmtime's Python
    package gives to reference types are wrong.

    Raises:
        Trapped: a segment does not fit, or the start function trapped.
        wasmtime.WasmtimeError: anything else.
    """

    def __init__(self, engine: wasmtime.Engine, data: bytes, described: gb.Module, imports_seed: str) -> None:
        self.world = World()
        self.store = wasmtime.Store(engine)
        self.context = self.store._context()
        self._contexts = [self.context]
        self._hosts: dict[int, tuple[int, list[str]]] = {}
        self._callback = ffi.wasmtime_func_callback_t(self._called)
        module = wasmtime.Module(engine, data)
        externs: list[Any] = []
        for index, (entry, known) in enumerate(zip(module.imports, described.imports, strict=True)):
            externs.append(self._import(index, entry.type, known.type, imports_seed))
        array = (ffi.wasmtime_extern_t * len(externs))(*externs)
        instance = ffi.wasmtime_instance_t()
        trap = POINTER(ffi.wasm_trap_t)()
        error = ffi.wasmtime_instance_new(self.context, module.ptr(), array, len(externs), byref(instance), byref(trap))
        if error:
            message = _describe(error)
            raise Trapped(RAISED) if RAISED in message else wasmtime.WasmtimeError(message)
        if trap:
            raise Trapped(_trap_kind(trap))
        self.functions: list[tuple[Sequence[str], Any, int]] = []
        self.memories: list[Any] = []
        self.tables: list[Any] = []
        self.globals: list[Any] = []
        self._fuel: Any = None
        for index, export in enumerate(described.exports):
            self._export(instance, index, export)
        self.world.exports = [(function[0], partial(self.call, function)) for function in self.functions]

    def _import(self, index: int, kind: Any, known: Any, seed: str) -> Any:
        """What the module gets for an import."""
        if isinstance(known, gb.FunctionType):
            function = ffi.wasmtime_func_t()
            self._hosts[index + 1] = index, [str(k) for k in known.results]
            ffi.wasmtime_func_new(self.context, kind.ptr(), self._callback, index + 1, _NO_FINALIZER, byref(function))
            return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_FUNC, ffi.wasmtime_extern_union(func=function))
        if isinstance(known, gb.MemoryType):
            made: Any = wasmtime.Memory(self.store, kind)
        elif isinstance(known, gb.TableType):
            made = wasmtime.Table(self.store, kind, self._val(str(known.element), None))
        else:
            name = str(known.value)
            value = value_of(name, random.Random(f"{seed}:{index}"))
            made = wasmtime.Global(self.store, kind, self._val(name, value))
        return made._as_extern()

    @staticmethod
    def _val(kind: str, value: Any) -> wasmtime.Val:
        return getattr(wasmtime.Val, kind)(value)  # type: ignore[no-any-return]

    def _export(self, instance: Any, index: int, export: Any) -> None:
        name, length, item = POINTER(ctypes.c_char)(), ctypes.c_size_t(), ffi.wasmtime_extern_t()
        ffi.wasmtime_instance_export_nth(self.context, byref(instance), index, byref(name), byref(length), byref(item))
        kind = export.type
        if isinstance(kind, gb.FunctionType):
            self.functions.append(([str(k) for k in kind.params], item.of.func, len(kind.results)))
        elif isinstance(kind, gb.MemoryType):
            self.memories.append(item.of.memory)
        elif isinstance(kind, gb.TableType):
            self.tables.append(item.of.table)
        elif export.name == FUEL:
            self._fuel = item.of.global_
        else:
            self.globals.append(item.of.global_)

    # ------------------------------------------------------------------------------------------ values

    def _to_raw(self, kind: str, value: Any, raw: Any) -> None:
        number = _NUMBERS.get(kind)
        if number is not None:
            raw.kind = number
            setattr(raw.of, kind, value)
        elif kind == "externref":
            raw.kind = _EXTERNREF
            raw.of.externref.store_id = 0
            if value is not None:
                made = wasmtime.Val.externref(value)._new_raw(self)  # type: ignore[arg-type]
                ctypes.memmove(byref(raw), byref(made), ctypes.sizeof(raw))
        else:
            raw.kind = _FUNCREF
            raw.of.funcref.store_id = 0
            if value is not None:
                raw.of.funcref = value._func

    def _from_raw(self, raw: Any) -> Any:
        kind = raw.kind
        if kind == _I32:
            return raw.of.i32
        if kind == _I64:
            return raw.of.i64
        if kind == _F32:
            return raw.of.f32
        if kind == _F64:
            return raw.of.f64
        return wasmtime.Val._from_raw(self, raw, owned=False).value  # type: ignore[arg-type]

    def _context(self) -> Any:
        """For wasmtime's own conversions: the context of the innermost call."""
        return self._contexts[-1]

    # ------------------------------------------------------------------------------------------ calls

    def _called(self, env: int, caller: Any, arguments: Any, count: int, results: Any, result_count: int) -> Any:
        """A host function is called."""
        index, kinds = self._hosts[env]
        self._contexts.append(ffi.wasmtime_caller_context(caller))
        try:
            given = [self._from_raw(arguments[i]) for i in range(count)]
            for i, value in enumerate(self.world.host(index, kinds, given)):
                self._to_raw(kinds[i], value, results[i])
        except HostError:
            return ctypes.cast(ffi.wasmtime_trap_new(_RAISED, len(RAISED)), ctypes.c_void_p).value
        finally:
            self._contexts.pop()
        return 0

    def call(self, function: tuple[Sequence[str], Any, int], arguments: Sequence[Any]) -> Any:
        """Call an export; returns its results as they are compared, or how it trapped."""
        kinds, address, result_count = function
        params = (ffi.wasmtime_val_t * len(kinds))()
        for i, value in enumerate(arguments):
            self._to_raw(kinds[i], value, params[i])
        results = (ffi.wasmtime_val_t * result_count)()
        trap = POINTER(ffi.wasm_trap_t)()
        error = ffi.wasmtime_func_call(
            self._contexts[-1], byref(address), params, len(kinds), results, result_count, byref(trap)
        )
        if error:
            message = _describe(error)
            return RAISED if RAISED in message else f"error: {message}"
        if trap:
            return _trap_kind(trap)
        return [seen(self._from_raw(result)) for result in results]

    def refuel(self, amount: int) -> None:
        """Let the guest run on, if it counts what it does."""
        if self._fuel is not None:
            raw = ffi.wasmtime_val_t(kind=_I32)
            raw.of.i32 = amount
            ffi.wasmtime_global_set(self.context, byref(self._fuel), byref(raw))

    # ------------------------------------------------------------------------------------------ state

    def memory(self, index: int) -> tuple[int, int]:
        """Address and size of an exported memory."""
        found = self.memories[index]
        size = ffi.wasmtime_memory_data_size(self.context, byref(found))
        address = ctypes.cast(ffi.wasmtime_memory_data(self.context, byref(found)), ctypes.c_void_p).value
        return address or 0, size

    def table(self, index: int) -> list[Any]:
        """The elements of an exported table, as they are compared."""
        found, raw, elements = self.tables[index], ffi.wasmtime_val_t(), []
        for position in range(ffi.wasmtime_table_size(self.context, byref(found))):
            ffi.wasmtime_table_get(self.context, byref(found), position, byref(raw))
            if int(raw.kind) == _FUNCREF:
                elements.append(FUNCTION if raw.of.funcref.store_id else None)
            else:
                elements.append(seen(self._from_raw(raw)))
                ffi.wasmtime_val_unroot(byref(raw))
        return elements

    def global_values(self) -> list[Any]:
        """The values of all exported globals, as they are compared."""
        raw, values = ffi.wasmtime_val_t(), []
        for found in self.globals:
            ffi.wasmtime_global_get(self.context, byref(found), byref(raw))
            values.append(seen(self._from_raw(raw)))
        return values

    def close(self) -> None:
        """Give everything back."""
        self.world.exports = []
        self.store.close()


__all__ = ["Theirs", "Trapped", "make_engine", "refusal"]
