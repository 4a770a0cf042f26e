"""Feeds the decoder with broken modules, in a process of its own: it may only ever accept or refuse.

    python -m tests.wasm.fuzz {fast,checked} {prefixes,flips,starved}
    python -m tests.wasm.fuzz {fast,checked} mutations SEED COUNT MODULES
    python -m tests.wasm.fuzz {fast,checked} instances SEED MODULES

Bytes are placed right before a page that cannot be read, so that reading too far ends the process.
"""

from __future__ import annotations

import contextlib
import random
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator

import wasmtime

from greenbeat.runtime.outcomes import NO_ERROR
from greenbeat.wasm.text import assemble
from tests.spec.wasmtime_adapter import make_engine
from tests.wasm.modules import Decoder, GuardedBytes, Made, Refusal, instance_of, leb, module, section

# Every section and every form of segment, in a module that is small enough to break in every place.
EVERYTHING = assemble("""
    (module $everything
      (type $t (func (param i32 (ref null $t)) (result i64)))
      (type $u (func (param (ref func) externref f32 f64)))
      (import "env" "f" (func $f (type $t)))
      (import "env" "g" (global $g i32))
      (import "env" "t" (table $it 1 10 funcref))
      (import "env" "m" (memory $im 1))
      (func $a (type $t) (local i32 i64 f32) i64.const 1)
      (func $b nop)
      (table $own 4 8 funcref)
      (table $filled 3 (ref func) (ref.func $a))
      (table $wide i64 2 externref)
      (memory $own i64 1 2)
      (global $x (mut i64) (i64.add (i64.const 3) (i64.mul (i64.const 4) (i64.const 5))))
      (global $y funcref (ref.func $b))
      (global $z i32 (i32.sub (global.get $g) (i32.const 1)))
      (global $v f64 (f64.const 1.5))
      (export "a" (func $a)) (export "m" (memory $own)) (export "t" (table $own)) (export "x" (global $x))
      (start $b)
      (elem (table $own) (i32.const 1) func $a $b)
      (elem (table $filled) (i32.const 0) (ref func) (ref.func $a))
      (elem func $a)
      (elem declare func $b)
      (elem funcref (ref.null func) (ref.func $f))
      (elem (table $wide) (i64.const 1) externref (ref.null extern))
      (data (memory $im) (global.get $g) "hello")
      (data "passive")
      (data (memory $own) (i64.const 7) "wide"))
""")


def prefixes(decoder: Decoder) -> int:
    """Every proper prefix is refused, unless it ends between sections."""
    with decoder.decoded(EVERYTHING) as description:
        ends = {8, *(s.offset + s.size for s in description.sections)}
    room = GuardedBytes(len(EVERYTHING))
    accepted = 0
    for size in range(len(EVERYTHING) + 1):
        found = decoder.decode_at(room.put(EVERYTHING[:size]), size)
        if isinstance(found, int):
            decoder.free_module(found)
            assert size in ends
            accepted += 1
        else:
            assert found.offset <= size
    return accepted


def broken(data: bytes) -> Iterator[bytes]:
    """A module with each byte changed, in eight ways."""
    for position in range(len(data)):
        for change in (0x01, 0x02, 0x40, 0x80, 0xFF):
            yield data[:position] + bytes([data[position] ^ change]) + data[position + 1 :]
        for byte in (0x00, 0x7F, 0x80):
            yield data[:position] + bytes([byte]) + data[position + 1 :]


def flips(decoder: Decoder) -> int:
    """Every byte changed."""
    room = GuardedBytes(len(EVERYTHING))
    accepted = 0
    for data in broken(EVERYTHING):
        found = decoder.decode_at(room.put(data), len(data))
        if not isinstance(found, Refusal):
            decoder.free_module(found)
            accepted += 1
    return accepted


INTERESTING = (0, 1, 2, 0x0B, 0x3F, 0x40, 0x41, 0x60, 0x63, 0x64, 0x6F, 0x70, 0x7B, 0x7F, 0x80, 0xD0, 0xD2, 0xFD, 0xFF)


def mutate(data: bytes, chance: random.Random) -> bytes:
    """A module with a few bytes changed, inserted, removed or moved; half of the time before its code."""
    result = bytearray(data)
    end = len(result)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        position = chance.randrange(8, end)
        match chance.randrange(6):
            case 0:
                result[position] = chance.choice(INTERESTING)
            case 1:
                result[position] ^= 1 << chance.randrange(8)
            case 2:
                result[position] = (result[position] + chance.choice((1, -1))) & 0xFF
            case 3:
                result.insert(position, chance.choice(INTERESTING))
            case 4:
                del result[position]
            case _:
                length = chance.randrange(1, 12)
                source = chance.randrange(8, end)
                result[position : position + length] = result[source : source + length]
        end = len(result)
    return bytes(result)


# What is refused on purpose, and has no counterpart in wasmtime.
LATER = ("not supported", "implementation limit")


def generated(chance: random.Random, count: int, *wishes: str) -> Iterator[bytes]:
    """Valid modules out of random bytes, small enough to be mutated often."""
    later = ("gc", "exceptions", "relaxed-simd", "threads", "compact-imports", "custom-descriptors", "wide-arithmetic")
    options = ["--max-instructions=20", "--max-memories=4", "--max-tables=4"]
    command = ["wasm-tools", "smith", *options, *wishes, *(f"--{feature}-enabled=false" for feature in later)]
    while count:
        seed = chance.randbytes(chance.randrange(200, 3000))
        made = subprocess.run(command, input=seed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if made.returncode == 0 and 40 < len(made.stdout) < 20_000:
            count -= 1
            yield made.stdout


def mutations(decoder: Decoder, seed: int, count: int, modules: int) -> int:
    """Mutated modules are accepted exactly when wasmtime accepts them."""
    engine = make_engine(simd=True, gc=True)
    chance = random.Random(seed)
    bases = [EVERYTHING] * (modules // 2 + 1) + list(generated(chance, modules) if shutil.which("wasm-tools") else ())
    room = GuardedBytes(max(map(len, bases)) + 200)
    accepted = 0
    for number in range(count):
        base = bases[number] if number < len(bases) else chance.choice(bases)
        data = base if number < len(bases) else mutate(base, chance)
        found = decoder.decode_at(room.put(data), len(data))
        if isinstance(found, int):
            decoder.free_module(found)
        elif any(word in found.message for word in LATER):
            continue
        try:
            wasmtime.Module.validate(engine, data)
            problem = None
        except wasmtime.WasmtimeError as error:
            problem = str(error)
        if (problem is None) != isinstance(found, int):
            print(f"{data.hex()}\n  greenbeat: {found}\n  wasmtime: {problem}")
            raise SystemExit(1)
        accepted += problem is None
    return accepted


def starved(decoder: Decoder) -> int:
    """Arrays that there is no memory for are a failure, not the end."""
    segments = module(section(9, leb(10_000_000) + bytes(10_000_000)))
    room = GuardedBytes(len(segments))
    place = room.put(segments)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    found = decoder.decode_at(place, len(segments))
    assert isinstance(found, Refusal)
    assert found.kind == "out of memory"
    return 1


def instances(decoder: Decoder, seed: int, modules: int) -> int:
    """Instances start with the memories and globals that they have in wasmtime, or trap as there."""
    engine = make_engine(simd=True, gc=True)
    chance = random.Random(seed)
    wishes = ["--max-imports=0", "--export-everything=true", "--allow-start-export=false", "--simd-enabled=false"]
    sizes = [
        "--max-memory32-bytes=1000000",
        "--max-memory64-bytes=1000000",
        "--max-table-elements=1000",
        "--min-memories=1",
    ]
    compared = 0
    for data in generated(
        chance, modules, *wishes, *sizes, "--min-data-segments=2", "--min-globals=3", "--min-tables=1"
    ):
        store = wasmtime.Store(engine)
        theirs: wasmtime.Instance | None = None
        with contextlib.suppress(wasmtime.Trap):
            theirs = wasmtime.Instance(store, wasmtime.Module(engine, data), [])
        with instance_of(decoder, data) as ours:
            assert (theirs is not None) == (ours.error.kind == NO_ERROR), data.hex()
            if theirs is not None:
                compare(ours, theirs, store)
                compared += 1
    return compared


def compare(ours: Made, theirs: wasmtime.Instance, store: wasmtime.Store) -> None:
    """All exported memories and globals that are numbers."""
    exports = theirs.exports(store)
    for export in ours.description.exports:
        found = exports[export.name]
        if isinstance(found, wasmtime.Memory):
            length = found.data_len(store)
            assert ours.memory(export.index).length == length
            assert ours.bytes(0, length, export.index) == bytes(found.read(store, 0, length))
        elif isinstance(found, wasmtime.Global):
            kind = str(found.type(store).content)
            if kind in FORMATS:
                wanted = struct.pack(FORMATS[kind], found.value(store))
                assert ours.global_bytes(export.index)[: len(wanted)] == wanted
        elif isinstance(found, wasmtime.Table):
            assert len(ours.elements(export.index)) == found.size(store)


# NaNs lose their payload on the way through Python's floats: floats are not compared.
FORMATS = {"i32": "<i", "i64": "<q"}


def main() -> None:
    build, what, *rest = sys.argv[1:]
    decoder = Decoder(build == "checked")
    if what == "mutations":
        print(mutations(decoder, *map(int, rest)))
    elif what == "instances":
        print(instances(decoder, *map(int, rest)))
    else:
        print({"prefixes": prefixes, "flips": flips, "starved": starved}[what](decoder))


if __name__ == "__main__":
    main()
