"""`greenbeat run`: call one function of a module that imports nothing, and print its results."""

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from greenbeat.cli.arguments import Parser, fuel, guest_value, seconds, shown, size, text
from greenbeat.cli.failures import FAILED, NOT_RUNNABLE, TIMED_OUT, USAGE, CommandError
from greenbeat.cli.files import load, shown_name
from greenbeat.cli.terminal import Paint, safe

if TYPE_CHECKING:
    from greenbeat import Frame, Function, Instance, Module

_WASI = ("wasi_snapshot_preview1", "wasi_unstable")
_FRAMES_SHOWN = 12
_NAMES_SHOWN = 20


def parser() -> Parser:
    """The command's options."""
    options = Parser(
        prog="greenbeat run",
        description="Call a function of a WebAssembly module and print its results, one a line.",
        epilog="Integers may be hexadecimal and negative, floats may be inf, nan or hexadecimal: -0x2A, 0x1.8p3. "
        "Exit status: 0; 1 if the guest trapped or ran out of something; 2 for a wrong command line; 124 after the "
        "time limit; 126 and 127 if the file cannot be run or is not there; 130 after Ctrl-C.",
    )
    options.add_argument("file", metavar="FILE", help="a module, binary (.wasm) or text (.wat); - is stdin")
    options.add_argument("arguments", metavar="ARGS", nargs="*", default=[], type=text, help="the function's arguments")
    options.add_argument(
        "--invoke", metavar="NAME", help="the exported function to call; by default `_start`, or the only one there is"
    )
    options.add_argument("--fuel", metavar="N", type=fuel, help="stop after about N instructions")
    options.add_argument("--timeout", metavar="S", type=seconds, help="stop after S seconds")
    options.add_argument("--memory", metavar="SIZE", type=size, help='the most linear memory, such as "64MiB"')
    return options


def main(options: argparse.Namespace) -> int:
    """Run it."""
    from greenbeat import Exhausted, Trap

    module = load(options.file)
    where = shown_name(options.file)
    _refuse_imports(module, where)
    name = _function_name(module, options.invoke, where)
    try:
        instance = _instantiate(module, options)
        function: Function = instance.exports[name]
        results = _call(function, _values(function, options.arguments))
    except Trap as trap:
        raise CommandError(f"{where}: trap: {safe(trap.kind)}{_backtrace(trap.backtrace)}", FAILED) from None
    except Exhausted as end:
        status = TIMED_OUT if end.resource == "time" else FAILED
        given = {"time": f" (--timeout {options.timeout})", "fuel": f" (--fuel {options.fuel})"}.get(end.resource, "")
        message = f"{safe(str(end.args[1]))}{given}"
        raise CommandError(f"{where}: {message}{_backtrace(end.backtrace)}", status) from None
    for value, kind in zip(results, function.type.results, strict=True):
        print(shown(value, str(kind)))
    return 0


def _refuse_imports(module: "Module", where: str) -> None:
    """There is nothing to import here."""
    if not module.imports:
        return
    first, more = module.imports[0], len(module.imports) - 1
    wasi = next((i for i in module.imports if i.module in _WASI), None)
    if wasi is not None:
        imported = f"{safe(wasi.module)}.{safe(wasi.name)}"
        message = f"this is a WASI program (it imports {imported}), and Greenbeat has no WASI yet"
        raise CommandError(f"{where}: {message}", NOT_RUNNABLE)
    others = f" and {more} more" if more else ""
    raise CommandError(
        f"{where}: the module needs {first}{others}, and `greenbeat run` has nothing to give it: "
        "instantiate it from Python, with Module.instantiate",
        NOT_RUNNABLE,
    )


def _function_name(module: "Module", wanted: str | None, where: str) -> str:
    """The name of the export to call."""
    from greenbeat import FunctionType

    names = [e.name for e in module.exports if isinstance(e.type, FunctionType)]
    if wanted is None:
        if "_start" in names:
            return "_start"
        if len(names) == 1:
            return names[0]
        if not names:
            raise CommandError(f"{where}: the module exports no function that could be called", NOT_RUNNABLE)
        raise CommandError(f"{where}: choose a function with --invoke: {_listed(names)}", USAGE)
    if wanted in names:
        return wanted
    other = next((e for e in module.exports if e.name == wanted), None)
    if other is not None:
        raise CommandError(f"{where}: the export {safe(wanted)} is no function but {other.type}", USAGE)
    close = difflib.get_close_matches(wanted, names, 1)
    hint = f"did you mean {safe(close[0])}?" if close else f"it exports {_listed(names) or 'no functions'}"
    raise CommandError(f"{where}: the module exports no function {safe(wanted)}: {hint}", USAGE)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(map(safe, names[:_NAMES_SHOWN])) + more


def _instantiate(module: "Module", options: argparse.Namespace) -> "Instance":
    from greenbeat import Limits

    memory = options.memory
    if memory is not None and memory.isdecimal():
        memory = int(memory)
    return module.instantiate(limits=Limits(memory=memory, seconds=options.timeout, fuel=options.fuel))


def _values(function: "Function", words: Sequence[str]) -> list[int | float]:
    """The arguments, by the function's type."""
    kinds = list(map(str, function.type.params))
    if len(words) != len(kinds):
        takes = f"{len(kinds)} argument{'s' * (len(kinds) != 1)}"
        types = f" ({', '.join(kinds)})" if kinds else ""
        raise CommandError(f"{safe(function.name)} takes {takes}{types}, not {len(words)}", USAGE)
    values = []
    for position, (word, kind) in enumerate(zip(words, kinds, strict=True), 1):
        try:
            values.append(guest_value(word, kind))
        except ValueError as error:
            raise CommandError(f"argument {position} of {safe(function.name)}: {error}", USAGE) from None
    return values


def _call(function: "Function", values: list[int | float]) -> tuple[Any, ...]:
    """The results, however many there are."""
    results = function(*values)
    count = len(function.type.results)
    return () if count == 0 else (results,) if count == 1 else tuple(results)


def _backtrace(frames: "Sequence[Frame]") -> str:
    """The guest's frames, innermost first; of a deep stack the middle is left out."""
    paint = Paint(sys.stderr)
    half = _FRAMES_SHOWN // 2
    left_out = len(frames) - 2 * half
    lines = [paint("dim", "  in ") + safe(str(frame)) for frame in frames]
    if left_out > 0:
        lines[half : len(lines) - half] = [paint("dim", f"  ... {left_out} more ...")]
    return "".join(f"\n{line}" for line in lines)
