"""`greenbeat inspect`: what is in a module, a function's instructions, its cells; or the machine code of a kernel."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from greenbeat.cli.arguments import Parser
from greenbeat.cli.failures import USAGE, CommandError
from greenbeat.cli.files import load, shown_name
from greenbeat.cli.kernels import inspect_kernel, named_kernel
from greenbeat.cli.terminal import Paint, safe
from greenbeat.wasm.printable import printable

if TYPE_CHECKING:
    from greenbeat.disassembly.instructions import Line
    from greenbeat.wasm.description import Description

_LARGEST_SHOWN = 10
_EXAMPLES = """\
examples:
  greenbeat inspect app.wasm
  greenbeat inspect app.wasm --function main
  greenbeat inspect app.wasm --cells 12
  greenbeat inspect app.wasm --json
  greenbeat inspect program.py:kernel"""


def parser() -> Parser:
    """The command's options."""
    options = Parser(
        prog="greenbeat inspect",
        description="Show what is in a WebAssembly module: types, imports, exports, sections, functions; or what a "
        "kernel was compiled to.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("file", metavar="FILE", help="a module (.wasm or .wat; - is stdin), or FILE.py:KERNEL")
    what = options.add_mutually_exclusive_group()
    what.add_argument("--function", metavar="NAME|INDEX", help="show the instructions of one function instead")
    what.add_argument("--cells", metavar="NAME|INDEX", help="show what the interpreter makes of one function instead")
    options.add_argument("--json", action="store_true", help="for programs")
    return options


def main(options: argparse.Namespace) -> int:
    """Run it."""
    if (kernel := named_kernel(options.file)) is not None:
        if options.function is not None or options.cells is not None:
            raise CommandError("--function and --cells are for WebAssembly modules", USAGE)
        return inspect_kernel(*kernel, as_json=options.json)
    module = load(options.file)
    description = module.description
    if options.function is not None:
        shown: _Function | _Module | _Cells = _Function(description, _find(description, options.function))
    elif options.cells is not None:
        shown = _Cells(description, _find(description, options.cells))
    else:
        shown = _Module(description, shown_name(options.file))
    if options.json:
        print(json.dumps(shown.data(), indent=2))
    else:
        for line in shown.lines(Paint(sys.stdout)):
            print(line)
    return 0


def _find(description: "Description", wanted: str) -> int:
    """The index of the function with a body that the user named."""
    count = description.function_count
    if wanted.isdecimal():
        matches = [int(wanted)] if int(wanted) < count else []
    else:
        name = wanted.removeprefix("$")
        matches = [i for i in range(count) if description.function_name(i) in (wanted, name)]
        exported = [e.index for e in description.exports if e.name == wanted and str(e.type).startswith("(func")]
        matches = matches or exported
    if not matches:
        raise CommandError(f"the module has no function {safe(wanted)}: it has {count}, numbered from 0", USAGE)
    if len(matches) > 1:
        numbers = ", ".join(map(str, matches))
        raise CommandError(f"several functions are called {safe(wanted)}: choose by number: {numbers}", USAGE)
    if description.body(matches[0]) is None:
        raise CommandError(f"function {safe(wanted)} is imported: there is no code of it in the module", USAGE)
    return matches[0]


class _Module:
    """The whole module."""

    def __init__(self, description: "Description", file: str) -> None:
        self.description, self.file = description, file

    def bodies(self) -> list[tuple[int, int]]:
        """Indices and sizes of the functions with a body."""
        found = [(i, self.description.body(i)) for i in range(self.description.function_count)]
        return [(i, body[1] - body[0]) for i, body in found if body is not None]

    def data(self) -> dict[str, Any]:
        """For programs: names as they are."""
        d = self.description
        sizes = dict(self.bodies())
        return {
            "name": d.names.module,
            "size": len(d.data),
            "types": list(map(str, d.types)),
            "imports": [{"module": i.module, "name": i.name, "type": str(i.type)} for i in d.imports],
            "exports": [{"name": e.name, "type": str(e.type), "index": e.index} for e in d.exports],
            "functions": [
                {"index": i, "name": d.function_name(i), "type": str(d.function_type(i)), "size": sizes.get(i)}
                for i in range(d.function_count)
            ],
            "tables": list(map(str, d.tables)),
            "memories": list(map(str, d.memories)),
            "globals": list(map(str, d.globals)),
            "start": d.start,
            "sections": [{"kind": s.kind, "name": s.name, "offset": s.offset, "size": s.size} for s in d.sections],
        }

    def lines(self, paint: Paint) -> Iterator[str]:
        """For people."""
        d = self.description
        name = f' "{printable(d.names.module)}"' if d.names.module is not None else ""
        yield f"{paint('bold', self.file)}: WebAssembly module{name}, {_bytes(len(d.data))}"
        for heading, rows in (
            ("types", list(map(str, d.types))),
            ("imports", list(map(str, d.imports))),
            ("exports", list(map(str, d.exports))),
            ("tables", list(map(str, d.tables))),
            ("memories", list(map(str, d.memories))),
            ("globals", list(map(str, d.globals))),
        ):
            if rows:
                yield ""
                yield paint("heading", f"{heading} ({len(rows)})")
                for index, row in enumerate(rows):
                    yield f"  {paint('dim', f'{index:>5}')}  {row}"
        yield from self._function_lines(paint)
        yield ""
        yield paint("heading", f"sections ({len(d.sections)})")
        yield paint("dim", "    offset        size")
        for section in d.sections:
            called = f' "{printable(section.name)}"' if section.name is not None else ""
            yield f"  {paint('dim', f'0x{section.offset:06x}')}  {section.size:>10,}  {section.kind}{called}"

    def _function_lines(self, paint: Paint) -> Iterator[str]:
        d, bodies = self.description, self.bodies()
        if not d.function_count:
            return
        yield ""
        imported = d.function_count - len(bodies)
        total = sum(size for _, size in bodies)
        what = f"{d.function_count}: {imported} imported, {len(bodies)} with {_bytes(total)} of code"
        yield paint("heading", f"functions ({what})")
        for index, size in sorted(bodies, key=lambda body: (-body[1], body[0]))[:_LARGEST_SHOWN]:
            name = d.function_name(index)
            called = f" {paint('name', _identifier(name))}" if name is not None else ""
            yield f"  {paint('dim', f'{index:>5}')}  {_bytes(size):>14} {called} {d.function_type(index)}"
        if len(bodies) > _LARGEST_SHOWN:
            yield paint("dim", f"         these are the largest; --json lists all {d.function_count}")
        if d.start is not None:
            yield f"  function {d.start} is the start function"


class _Function:
    """The instructions of one function."""

    def __init__(self, description: "Description", index: int) -> None:
        from greenbeat.disassembly.instructions import Decoder, identifier

        body = description.body(index)
        assert body is not None
        self.description, self.index = description, index
        self.local_names = description.names.locals.get(index, {})
        decoder = Decoder(bytes(description.data), description.names, self.local_names, description.function_name)
        groups, start = decoder.locals(body[0])
        self.identifier = identifier
        self.locals = [kind for count, kind in groups for _ in range(count)]
        self.instructions = list(decoder.lines(start, body[1]))

    def _declared(self, word: str, kind: object, index: int) -> str:
        name = self.local_names.get(index)
        return f"({word}{f' {self.identifier(name)}' if name is not None else ''} {kind})"

    def header(self) -> str:
        """The function's name, number, exports and type."""
        kind, name = self.description.function_type(self.index), self.description.function_name(self.index)
        words = ["(func", *([self.identifier(name)] if name is not None else []), f"(;{self.index};)"]
        words += [
            f'(export "{printable(e.name)}")'
            for e in self.description.exports
            if e.index == self.index and str(e.type).startswith("(func")
        ]
        words += [self._declared("param", param, index) for index, param in enumerate(kind.params)]
        words += [f"(result {' '.join(map(str, kind.results))})"] if kind.results else []
        return " ".join(words)

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "index": self.index,
            "name": self.description.function_name(self.index),
            "type": str(self.description.function_type(self.index)),
            "locals": self.locals,
            "instructions": [
                {"offset": line.offset, "size": line.end - line.offset, "depth": line.depth, "text": _text(line)}
                for line in self.instructions
            ],
        }

    def lines(self, paint: Paint) -> Iterator[str]:
        """For people."""
        yield self.header()
        first = len(self.description.function_type(self.index).params)
        for number, kind in enumerate(self.locals, first):
            yield f"          {self._declared('local', kind, number)}"
        for line in self.instructions[:-1]:
            words = [paint("keyword", line.name), *([line.operands] if line.operands else [])]
            words += [paint("dim", f" ;; {line.remark}")] if line.remark else []
            yield f"{paint('dim', f'0x{line.offset:06x}')}  {'  ' * (line.depth + 1)}{' '.join(words)}"
        # The last `end` is the function's own.
        yield f"{paint('dim', f'0x{self.instructions[-1].offset:06x}')}  )"


class _Cells:
    """What one function is translated to."""

    def __init__(self, description: "Description", index: int) -> None:
        from greenbeat.disassembly.cells import cells, translated

        self.description, self.index = description, index
        self.code = translated(description.address, index)
        self.cells = list(cells(self.code))

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "index": self.index,
            "name": self.description.function_name(self.index),
            "size": len(self.code),
            "cells": [{"offset": c.offset, "handler": c.handler, "operands": list(c.operands)} for c in self.cells],
        }

    def lines(self, paint: Paint) -> Iterator[str]:
        """For people."""
        name = self.description.function_name(self.index)
        called = f" {_identifier(name)}" if name is not None else ""
        yield f"function {self.index}{called}: {len(self.cells)} cells, {_bytes(len(self.code))}"
        width = max((len(cell.handler) for cell in self.cells), default=0)
        for cell in self.cells:
            operands = " ".join(map(str, cell.operands))
            yield f"{paint('dim', f'0x{cell.offset:06x}')}  {paint('keyword', f'{cell.handler:{width}}')}  {operands}"


def _identifier(name: str) -> str:
    from greenbeat.disassembly.instructions import identifier

    return identifier(name)


def _bytes(count: int) -> str:
    return f"{count:,} byte{'s' * (count != 1)}"


def _text(line: "Line") -> str:
    return f"{line.name} {line.operands}".strip()
