"""From units to machine code: optimise, emit objects, link them into the process, and hand out functions by name."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from greenbeat.native.language import NativeFunction
from greenbeat.native.linker import Library, flag
from greenbeat.native.targets import Machine, host_machine


def compile_text(
    text: str,
    machine: Machine,
    *,
    assembly: bool = False,
    speed: int = 2,
    vectorize: bool = False,
    examine: Callable[[str], None] | None = None,
) -> bytes:
    """Compile LLVM IR to an object file (or, with `assembly`, to assembly text).

    `examine` is called with the assembly text of what becomes an object, and may refuse it.
    """
    with _optimised(text, machine, speed, vectorize) as (target, module):
        if examine is not None:
            examine(str(target.emit_assembly(module)))
        if assembly:
            return str(target.emit_assembly(module)).encode()
        return bytes(target.emit_object(module))


def explain_text(text: str, machine: Machine, *, speed: int = 2, vectorize: bool = False) -> tuple[str, str]:
    """What LLVM IR becomes: optimised IR, and assembly text."""
    with _optimised(text, machine, speed, vectorize) as (target, module):
        return str(module), str(target.emit_assembly(module))


@contextlib.contextmanager
def _optimised(text: str, machine: Machine, speed: int, vectorize: bool) -> Iterator[tuple[Any, Any]]:
    """A machine, and a module of optimised code for it."""
    import llvmlite.binding as llvm  # here, since a start from an image does without

    tuning = llvm.create_pipeline_tuning_options(speed_level=speed)
    tuning.loop_vectorization = tuning.slp_vectorization = vectorize
    # Closed in this order: left to the garbage collector, a context may go before its module, which ends the process.
    with machine.create() as target, llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.triple, module.data_layout = machine.triple, str(target.target_data)
        module.verify()
        with llvm.create_pass_builder(target, tuning) as builder, builder.getModulePassManager() as passes:
            passes.run(module, builder)
        yield target, module


def build(functions: Iterable[Any], statics: Iterable[Any] = (), *, checked: bool | None = None) -> Library:
    """Compile and link native functions at once, without a cache.

    To a type checker native functions are what they were written as, hence `Any`.

    Raises:
        NativeError: one of them, or what it calls, cannot be compiled.
    """
    from greenbeat.native.unit import Unit  # here, since a warm start does without

    roots = [_exported(f) for f in functions]
    kept = list(statics)
    if checked is None:
        checked = flag("GREENBEAT_CHECKED")
    unit = Unit("build", [*roots, *kept], checked=checked, debug=flag("GREENBEAT_DEBUG"))
    data = compile_text(unit.text(), host_machine())
    return Library([data], [f.symbol for f in roots] + [s.symbol for s in kept])


def _exported(function: NativeFunction) -> NativeFunction:
    function.shared = True
    return function
