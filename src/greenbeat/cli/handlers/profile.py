"""A child process that counts how often each handler runs in a real program, as JSON on stdout.

    GREENBEAT_COUNTING=1 python -m greenbeat.cli.handlers.profile PROGRAM FILE

The engine it loads is the counting build: each dispatch adds one at its handler's place, see
`greenbeat.interpreter.convention`. The program then runs once more, metered: the fuel it uses is the number of
WebAssembly instructions it executed.
"""

import ctypes
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from greenbeat import Instance, Limits, Module
from greenbeat.engine import engine

_ENOUGH = 1 << 50
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _run_guest(instance: Instance) -> None:
    """A guest of the benchmarks."""
    instance.exports.run(20)


def _variable_length(value: int) -> str:
    """A number as source maps write it: groups of five bits, lowest first, the sign in the lowest bit."""
    rest = -value << 1 | 1 if value < 0 else value << 1
    text = ""
    while rest > 31:
        text += _BASE64[rest & 31 | 32]
        rest >>= 5
    return text + _BASE64[rest]


def _parse_mappings(instance: Instance) -> None:
    """The npm package source-map: parse the mappings of a program of 2,000 lines and ask for places in it."""
    chosen = random.Random(1)
    line = column = 0
    lines = []
    for _ in range(2000):
        segments = []
        for _ in range(chosen.randrange(1, 9)):
            to_line, to_column = line + chosen.randrange(3), chosen.randrange(100)
            fields = chosen.randrange(1, 20), 0, to_line - line, to_column - column
            segments.append("".join(map(_variable_length, fields)))
            line, column = to_line, to_column
        lines.append(",".join(segments))
    text = ";".join(lines).encode()
    exports = instance.exports
    address = exports.allocate_mappings(len(text))
    exports.memory.write(address, text)
    mappings = exports.parse_mappings(address)
    if not mappings:
        raise RuntimeError(f"source-map found error {exports.get_last_error()} in the mappings")
    exports.by_generated_location(mappings)
    for _ in range(200):
        exports.original_location_for(mappings, chosen.randrange(2000), chosen.randrange(80), 1)


PROGRAMS: dict[str, tuple[Callable[[Instance], None], dict[str, Any]]] = {
    "guest": (_run_guest, {}),
    "mappings": (_parse_mappings, {"env": {"mapping_callback": lambda *fields: None}}),
}


def _counts() -> list[int]:
    """Dispatches by handler number; equal handlers are one, under the first's number."""
    from greenbeat.interpreter.convention import PLACES
    from greenbeat.interpreter.handlers import functions

    places = (ctypes.c_uint64 * PLACES).from_address(engine.address("interpreter.convention.dispatch_counts"))
    addresses = (ctypes.c_uint64 * len(functions)).from_address(engine.address("interpreter.handlers.handlers"))
    distinct = set(filter(None, addresses))
    if max(distinct) - min(distinct) >= PLACES * 16:
        raise RuntimeError("the handlers take more room than they can be counted in: PLACES must grow")
    counts, known = [], set()
    for address in addresses:
        counts.append(0 if not address or address in known else places[address // 16 % PLACES])
        known.add(address)
    return counts


def main() -> None:
    """Print the profile."""
    program, imports = PROGRAMS[sys.argv[1]]
    module = Module(Path(sys.argv[2]).read_bytes())
    program(module.instantiate(imports))
    counts = _counts()
    metered = module.instantiate(imports, limits=Limits(fuel=_ENOUGH))
    program(metered)
    assert metered.fuel is not None
    print(json.dumps({"counts": counts, "instructions": _ENOUGH - metered.fuel}))


if __name__ == "__main__":
    main()
