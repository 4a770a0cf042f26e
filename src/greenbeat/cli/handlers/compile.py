"""A child process that compiles the handlers for one target and says what each costs, as JSON on stdout.

    python -m greenbeat.cli.handlers.compile TRIPLE PROCESSOR

The handlers are compiled as the engine compiles them, with the calling convention of that target.
"""

import json
import sys
from dataclasses import astuple

import llvmlite.binding as llvm

from greenbeat.disassembly.machine import Assembly, Cost
from greenbeat.native.build import compile_text
from greenbeat.native.language import NativeFunction
from greenbeat.native.targets import Machine, compile_for
from greenbeat.native.unit import Unit


def costs(machine: Machine) -> list[Cost | None]:
    """The cost of every handler on a machine, by number; None for those that do not dispatch."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    compile_for(machine.triple)
    # Not before: the handlers get their calling convention when they are imported.
    from greenbeat.interpreter import calls, handlers

    # The unit of the engine that the handlers are in, without what else is in it.
    owned = (handlers.__name__, calls.__name__)
    unit = Unit("handlers", [handlers.handlers], owns=lambda module: module in owned)
    text = unit.text()
    prefix = "_" if "apple" in machine.triple else ""
    cold = [prefix + f.symbol for f in unit.kept if isinstance(f, NativeFunction) and f.cold]
    assembly = Assembly(compile_text(text, machine, assembly=True).decode(), machine.triple.startswith("x86_64"), cold)
    known = {f.symbol: assembly.cost(prefix + f.symbol) for f in set(handlers.functions) if f is not None}
    return [known[f.symbol] if f is not None else None for f in handlers.functions]


def main() -> None:
    """Print the costs."""
    found = costs(Machine(sys.argv[1], sys.argv[2]))
    print(json.dumps([astuple(cost) if cost is not None else None for cost in found]))


if __name__ == "__main__":
    main()
