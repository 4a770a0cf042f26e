"""A child process that compiles one unit of an engine: the plan comes in on stdin as JSON, manifest and object go out.

It is run by its path. The package's own `__init__` is the users' front door and may ask for the very engine that is
being built, so here an empty package stands in its place.
"""

import json
import sys
from importlib import import_module
from types import ModuleType
from typing import Any


def main() -> int:
    """Compile; the exit status is 3 for a mistake in a native function, described on stdout."""
    plan = json.loads(sys.stdin.buffer.readline())
    for name, directory in plan["packages"].items():
        package = ModuleType(name)
        package.__path__ = [directory]
        sys.modules[name] = package
    from greenbeat.native.errors import NativeError

    out, sys.stdout = sys.stdout.buffer, sys.stderr
    try:
        manifest, data = compile_unit(plan)
    except NativeError as error:
        described = {"message": error.message, "file": error.file, "line": error.line, "column": error.column}
        out.write(json.dumps(described).encode())
        return 3
    out.write(json.dumps(manifest).encode() + b"\n" + data)
    out.flush()
    return 0


def compile_unit(plan: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Import the engine and compile the part of it that belongs to one unit."""
    from greenbeat.native.build import compile_text
    from greenbeat.native.engine import BuildError, UnitPlan, owner
    from greenbeat.native.language import NativeFunction, Static, shared_functions, statics
    from greenbeat.native.targets import Machine, compile_for
    from greenbeat.native.unit import Unit

    name: str = plan["unit"]
    machine = Machine(**plan["machine"])
    compile_for(machine.triple)
    for module in plan["modules"]:
        import_module(module)
    packages = tuple(f"{p}." for p in plan["packages"])
    unseen = {m for m in sys.modules if m.startswith(packages)} - set(plan["seen"])
    if unseen:
        raise BuildError(f"imported in a way the engine's key cannot know of: {', '.join(sorted(unseen))}")
    units = [UnitPlan(u["name"], tuple(u["modules"])) for u in plan["units"]]

    def owns(module: str) -> bool:
        return owner(units, module) == name

    functions = [f for f in shared_functions if f.module.startswith(packages)]
    variables = [s for s in statics if s.module.startswith(packages)]
    items: list[NativeFunction | Static] = [*functions, *variables]
    symbols: dict[str, str] = {}
    for item in items:
        if item.symbol in symbols:
            raise BuildError(f"{item.symbol} is defined both in {symbols[item.symbol]} and in {item.module}")
        symbols[item.symbol] = item.module
    own = [f for f in functions if owns(f.module)]
    places = [s for s in variables if owns(s.module)]
    unit = Unit(name, [*own, *places], owns=owns, checked=plan["checked"], debug=plan["debug"])
    data = compile_text(unit.text(), machine)
    exported = {f.symbol: [_name(p) for p in (f.type.returns, *f.type.params)] for f in own if f.exported}
    return {"functions": exported, "addresses": [s.symbol for s in places]}, data


def _name(kind: Any) -> str:
    """The name of a type's ctypes counterpart."""
    return "None" if kind.ir == "void" else str(kind.ctype.__name__)


if __name__ == "__main__":
    sys.exit(main())
