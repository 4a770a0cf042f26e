"""Greenbeat: WebAssembly in Python, sandboxed, metered, and a piece at a time.

    import greenbeat as gb

    module = gb.Module.from_file("app.wasm")
    with module.instantiate({"env": {"log": print}}, limits=gb.Limits(memory="64MiB", seconds=1.0)) as app:
        app.exports.add(2, 40)

The engine is loaded when something of it is first used, not by the import.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from greenbeat.api.call import Call
    from greenbeat.api.channels import Channel, aselect, select
    from greenbeat.api.function import Function, Function as Func
    from greenbeat.api.globals import Global
    from greenbeat.api.instance import Instance
    from greenbeat.api.limits import Limits
    from greenbeat.api.memory import Memory
    from greenbeat.api.module import Module
    from greenbeat.api.runtime import Runtime
    from greenbeat.api.table import Table
    from greenbeat.api.tags import Tag
    from greenbeat.api.tasks import Task, TaskGroup, gather
    from greenbeat.disassembly.kernels import Inspection, inspect
    from greenbeat.errors import (
        Cancelled,
        ChannelClosed,
        CompileError,
        Exhausted,
        Frame,
        GreenbeatError,
        KernelError,
        LinkError,
        Trap,
        UncaughtException,
    )
    from greenbeat.forkjoin.words import par, pmap, prange, preduce, pscan, psort, spawn
    from greenbeat.kernels.objects import Kernel, kernel
    from greenbeat.kernels.types import Array
    from greenbeat.native.types import f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
    from greenbeat.tracing.profiling import Profile, profile
    from greenbeat.tracing.recording import Trace, trace
    from greenbeat.wasi.clocks import Clock, VirtualClock
    from greenbeat.wasi.config import Wasi
    from greenbeat.wasi.memoryfiles import Files
    from greenbeat.wasi.process import Exit
    from greenbeat.wasi.running import Result, run
    from greenbeat.wasi.streams import INHERIT
    from greenbeat.wasm.description import (
        ExportType,
        FunctionType,
        GlobalType,
        ImportType,
        MemoryType,
        TableType,
        TagType,
        ValueType,
    )

# Where each public name is, as (module, name there).
_WHERE = {
    "Array": ("greenbeat.kernels.types", "Array"),
    "Call": ("greenbeat.api.call", "Call"),
    "Cancelled": ("greenbeat.errors", "Cancelled"),
    "Channel": ("greenbeat.api.channels", "Channel"),
    "ChannelClosed": ("greenbeat.errors", "ChannelClosed"),
    "Clock": ("greenbeat.wasi.clocks", "Clock"),
    "CompileError": ("greenbeat.errors", "CompileError"),
    "Exhausted": ("greenbeat.errors", "Exhausted"),
    "Exit": ("greenbeat.wasi.process", "Exit"),
    "ExportType": ("greenbeat.wasm.description", "ExportType"),
    "Files": ("greenbeat.wasi.memoryfiles", "Files"),
    "Frame": ("greenbeat.errors", "Frame"),
    "Func": ("greenbeat.api.function", "Function"),
    "Function": ("greenbeat.api.function", "Function"),
    "FunctionType": ("greenbeat.wasm.description", "FunctionType"),
    "Global": ("greenbeat.api.globals", "Global"),
    "GlobalType": ("greenbeat.wasm.description", "GlobalType"),
    "GreenbeatError": ("greenbeat.errors", "GreenbeatError"),
    "INHERIT": ("greenbeat.wasi.streams", "INHERIT"),
    "ImportType": ("greenbeat.wasm.description", "ImportType"),
    "Inspection": ("greenbeat.disassembly.kernels", "Inspection"),
    "Instance": ("greenbeat.api.instance", "Instance"),
    "Limits": ("greenbeat.api.limits", "Limits"),
    "Kernel": ("greenbeat.kernels.objects", "Kernel"),
    "KernelError": ("greenbeat.errors", "KernelError"),
    "LinkError": ("greenbeat.errors", "LinkError"),
    "Memory": ("greenbeat.api.memory", "Memory"),
    "MemoryType": ("greenbeat.wasm.description", "MemoryType"),
    "Module": ("greenbeat.api.module", "Module"),
    "Profile": ("greenbeat.tracing.profiling", "Profile"),
    "Result": ("greenbeat.wasi.running", "Result"),
    "Runtime": ("greenbeat.api.runtime", "Runtime"),
    "Table": ("greenbeat.api.table", "Table"),
    "TableType": ("greenbeat.wasm.description", "TableType"),
    "Tag": ("greenbeat.api.tags", "Tag"),
    "TagType": ("greenbeat.wasm.description", "TagType"),
    "Task": ("greenbeat.api.tasks", "Task"),
    "TaskGroup": ("greenbeat.api.tasks", "TaskGroup"),
    "Trace": ("greenbeat.tracing.recording", "Trace"),
    "Trap": ("greenbeat.errors", "Trap"),
    "UncaughtException": ("greenbeat.errors", "UncaughtException"),
    "ValueType": ("greenbeat.wasm.description", "ValueType"),
    "VirtualClock": ("greenbeat.wasi.clocks", "VirtualClock"),
    "Wasi": ("greenbeat.wasi.config", "Wasi"),
    "aselect": ("greenbeat.api.channels", "aselect"),
    "f32": ("greenbeat.native.types", "f32"),
    "f64": ("greenbeat.native.types", "f64"),
    "i16": ("greenbeat.native.types", "i16"),
    "gather": ("greenbeat.api.tasks", "gather"),
    "i32": ("greenbeat.native.types", "i32"),
    "i64": ("greenbeat.native.types", "i64"),
    "i8": ("greenbeat.native.types", "i8"),
    "kernel": ("greenbeat.kernels.objects", "kernel"),
    "inspect": ("greenbeat.disassembly.kernels", "inspect"),
    "par": ("greenbeat.forkjoin.words", "par"),
    "pmap": ("greenbeat.forkjoin.words", "pmap"),
    "prange": ("greenbeat.forkjoin.words", "prange"),
    "preduce": ("greenbeat.forkjoin.words", "preduce"),
    "profile": ("greenbeat.tracing.profiling", "profile"),
    "pscan": ("greenbeat.forkjoin.words", "pscan"),
    "psort": ("greenbeat.forkjoin.words", "psort"),
    "run": ("greenbeat.wasi.running", "run"),
    "u16": ("greenbeat.native.types", "u16"),
    "u32": ("greenbeat.native.types", "u32"),
    "u64": ("greenbeat.native.types", "u64"),
    "u8": ("greenbeat.native.types", "u8"),
    "select": ("greenbeat.api.channels", "select"),
    "spawn": ("greenbeat.forkjoin.words", "spawn"),
    "trace": ("greenbeat.tracing.recording", "trace"),
}
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'greenbeat' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(where[0]), where[1])
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


__all__ = [
    "INHERIT",
    "Array",
    "Call",
    "Cancelled",
    "Channel",
    "ChannelClosed",
    "Clock",
    "CompileError",
    "Exhausted",
    "Exit",
    "ExportType",
    "Files",
    "Frame",
    "Func",
    "Function",
    "FunctionType",
    "Global",
    "GlobalType",
    "GreenbeatError",
    "ImportType",
    "Inspection",
    "Instance",
    "Kernel",
    "KernelError",
    "Limits",
    "LinkError",
    "Memory",
    "MemoryType",
    "Module",
    "Profile",
    "Result",
    "Runtime",
    "Table",
    "TableType",
    "Tag",
    "TagType",
    "Task",
    "TaskGroup",
    "Trace",
    "Trap",
    "UncaughtException",
    "ValueType",
    "VirtualClock",
    "Wasi",
    "aselect",
    "f32",
    "f64",
    "gather",
    "i8",
    "i16",
    "i32",
    "i64",
    "inspect",
    "kernel",
    "par",
    "pmap",
    "prange",
    "preduce",
    "profile",
    "pscan",
    "psort",
    "run",
    "select",
    "spawn",
    "trace",
    "u8",
    "u16",
    "u32",
    "u64",
]
