"""`greenbeat run`: call one function of a module and print its results, or run a WASI program.

A module may import WASI's functions, nothing else. If it does, it gets the process's own standard streams, and the
directories and variables that the command line names; `_start` then takes the arguments as texts.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from greenbeat.cli.arguments import Parser, checked, fuel, guest_value, seconds, shown, size, text
from greenbeat.cli.failures import FAILED, NOT_RUNNABLE, TIMED_OUT, USAGE, CommandError
from greenbeat.cli.files import load, open_contents, shown_name
from greenbeat.cli.terminal import Paint, safe

if TYPE_CHECKING:
    from greenbeat import Frame, Function, Limits, Module, Wasi

_FRAMES_SHOWN = 12
_NAMES_SHOWN = 20
# Of longer names only the beginning is shown, and none is guessed; nor is any beyond the first so many.
_LONGEST_NAME, _NAMES_COMPARED = 100, 1000
_MORE = """\
examples:
  greenbeat run fib.wasm 30
  greenbeat run numbers.wat --invoke divide 0x54 -2 --timeout 1 --fuel 1_000_000
  greenbeat run app.wasm --dir data::/data:ro --env LANG=C -- --verbose

Integers may be hexadecimal and negative, floats may be inf, nan or hexadecimal:
-0x2A, 0x1.8p3. Exit status: 0; 1 if the guest trapped or ran out of something;
2 for a wrong command line; 124 after the time limit; 126 and 127 if the file
cannot be run or is not there; 130 after Ctrl-C. A WASI program has its own."""
_READ_ONLY = ":ro"


def parser() -> Parser:
    """The command's options."""
    options = Parser(
        prog="greenbeat run",
        description="Call a function of a WebAssembly module and print its results, one a line; or run a WASI program.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("file", metavar="FILE", help="a module, binary (.wasm) or text (.wat); - is stdin")
    options.add_argument("arguments", metavar="ARGS", nargs="*", default=[], type=text, help="the function's arguments")
    options.add_argument(
        "--invoke", metavar="NAME", help="the exported function to call; by default `_start`, or the only one there is"
    )
    options.add_argument("--fuel", metavar="N", type=fuel, help="stop after about N instructions")
    options.add_argument("--timeout", metavar="S", type=seconds, help="stop after S seconds")
    options.add_argument("--memory", metavar="SIZE", type=size, help='the most linear memory, such as "64MiB"')
    options.add_argument(
        "--dir",
        metavar="HOST[::GUEST][:ro]",
        type=_directory,
        action="append",
        default=[],
        help="for WASI: a directory that the program may use (only read, with :ro), and what it is called there",
    )
    options.add_argument(
        "--env", metavar="NAME=VALUE", type=_variable, action="append", default=[], help="for WASI: a variable"
    )
    options.add_argument(
        "--stdin", metavar="FILE", type=_input, help="for WASI: what the program reads, in place of the standard input"
    )
    return options


def _split(word: str, separator: str) -> tuple[str, str]:
    first, found, second = word.partition(separator)
    return first, second if found else first


@checked
def _directory(word: str) -> tuple[str, tuple[str, str]]:
    place = word.removesuffix(_READ_ONLY)
    host, guest = _split(place, "::")
    if not Path(host).is_dir():
        raise ValueError(f"{host} is no directory")
    return guest, (host, "rw" if place == word else "ro")


@checked
def _input(word: str) -> BinaryIO:
    try:
        return open(word, "rb")
    except OSError as error:
        raise ValueError(f"{word} cannot be read: {error.strerror}") from None


@checked
def _variable(word: str) -> tuple[str, str]:
    if "=" not in word[1:]:
        raise ValueError(f"expected NAME=VALUE, not {word!r}")
    return _split(word, "=")


def main(options: argparse.Namespace) -> int:
    """Run it."""
    content = open_contents(options.file, kept=True)
    if content.is_prepared_ahead:
        # A module that large hardly does without WASI, and now there is the time to import it.
        import_module("greenbeat.wasi.config")
    from greenbeat import Exhausted, Exit, LinkError, Trap, UncaughtException

    module = load(options.file, content)
    where = shown_name(options.file)
    wasi = _wasi(module, options, where)
    name = _function_name(module, options.invoke, where)
    try:
        instance = module.instantiate(wasi=wasi, limits=_limits(options))
        if wasi is not None and name == "_start":
            return wasi.start(instance)
        function: Function = instance.exports[name]
        results = _call(function, _values(function, options.arguments))
    except Exit as end:
        return end.code
    except LinkError as error:
        raise CommandError(f"{where}: {safe(str(error))}", NOT_RUNNABLE) from None
    except Trap as trap:
        raise CommandError(f"{where}: trap: {safe(trap.kind)}{_backtrace(trap.backtrace)}", FAILED) from None
    except UncaughtException as thrown:
        message = safe(str(thrown).partition("\n")[0])
        raise CommandError(f"{where}: {message}{_backtrace(thrown.backtrace)}", FAILED) from None
    except Exhausted as end:
        status = TIMED_OUT if end.resource == "time" else FAILED
        given = {"time": f" (--timeout {options.timeout})", "fuel": f" (--fuel {options.fuel})"}.get(end.resource, "")
        message = f"{safe(str(end.args[1]))}{given}"
        raise CommandError(f"{where}: {message}{_backtrace(end.backtrace)}", status) from None
    for value, kind in zip(results, function.type.results, strict=True):
        print(shown(value, str(kind)))
    return 0


def _wasi(module: "Module", options: argparse.Namespace, where: str) -> "Wasi | None":
    """What a module that imports WASI gets; there is nothing else to import here."""
    from greenbeat import INHERIT, Wasi
    from greenbeat.wasi.unstable import MODULES

    others = [entry for entry in module.imports if entry.module not in MODULES]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        message = f"the module needs {others[0]}{more}, and `greenbeat run` has nothing to give it"
        raise CommandError(f"{where}: {message}: instantiate it from Python, with Module.instantiate", NOT_RUNNABLE)
    if not module.imports:
        return None
    program = module.name or "program" if options.file == "-" else PurePath(options.file).name
    return Wasi(
        [program, *options.arguments],
        env=dict(options.env),
        stdin=INHERIT if options.stdin is None else options.stdin,
        stdout=INHERIT,
        stderr=INHERIT,
        dirs=dict(options.dir),
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
    import difflib  # here, since it is large

    close = difflib.get_close_matches(wanted, [n for n in names[:_NAMES_COMPARED] if len(n) <= _LONGEST_NAME], 1)
    hint = f"did you mean {safe(close[0])}?" if close else f"it exports {_listed(names) or 'no functions'}"
    raise CommandError(f"{where}: the module exports no function {safe(wanted)}: {hint}", USAGE)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(safe(name, _LONGEST_NAME) for name in names[:_NAMES_SHOWN]) + more


def _limits(options: argparse.Namespace) -> "Limits":
    from greenbeat import Limits

    memory = options.memory
    if memory is not None and memory.isdecimal():
        memory = int(memory)
    return Limits(memory=memory, seconds=options.timeout, fuel=options.fuel)


def _values(function: "Function", words: Sequence[str]) -> list[int | float]:
    """The arguments, by the function's type."""
    kinds = list(map(str, function.type.params))
    if len(words) != len(kinds):
        takes = f"{len(kinds)} argument{'s' * (len(kinds) != 1)}"
        types = f" ({', '.join(kinds)})" if kinds else ""
        raise CommandError(f"{safe(function.name, _LONGEST_NAME)} takes {takes}{types}, not {len(words)}", USAGE)
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
