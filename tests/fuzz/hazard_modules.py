"""Whole modules around the functions of `hazards.py`: types, imports, memories, tables, globals, segments, exports."""

from __future__ import annotations

import random

from tests.fuzz import binary
from tests.fuzz.binary import HEADER, name, section, unsigned, vector
from tests.fuzz.hazard_code import Shape, Signature
from tests.fuzz.hazards import Body
from tests.fuzz.instructions import EXTERNREF, F32, F64, FUNCREF, I32, I64, NUMBERS, constant, i32_const, i64_const

_END = b"\x0b"
_NULLS = {FUNCREF: b"\xd0\x70", EXTERNREF: b"\xd0\x6f"}
FUEL = 150


def _limits(minimum: int, maximum: int, wide: bool) -> bytes:
    return bytes([1 | wide << 2]) + unsigned(minimum) + unsigned(maximum)


def _signatures(chance: random.Random) -> list[Signature]:
    """Types with few distinct results, so that calls, tail calls and blocks find something that fits."""
    kinds = [*NUMBERS, *NUMBERS, FUNCREF, EXTERNREF]
    made = [Signature(0, (), ()), Signature(1, (I32,), (I32,)), Signature(2, (I64, I64), (I64,))]
    for index in range(3, chance.randrange(6, 11)):
        params = tuple(chance.choice(kinds) for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 5))))
        if chance.random() < 0.15:
            params += (b"\x63" + unsigned(chance.randrange(index)),)
        results = tuple(chance.choice(kinds) for _ in range(chance.choice((0, 1, 1, 1, 2, 3))))
        if chance.random() < 0.3:
            results = params[:4]
        made.append(Signature(index, params, results))
    if chance.random() < 0.03:
        count = chance.choice((20, 20, 200))
        made.append(Signature(len(made), (I64, F32) * count, (F64, I32) * count))
    return made


def _shape(chance: random.Random) -> tuple[Shape, int]:
    """What a module has, and how many of its functions are imported."""
    signatures = _signatures(chance)
    small = [s for s in signatures if len(s.params) < 20]
    imported = chance.randrange(3)
    functions = [chance.choice(small) for _ in range(imported)]
    functions += [chance.choice(signatures) for _ in range(chance.randrange(2, 6))]
    held = [(kind, chance.random() < 0.8) for kind in (*NUMBERS, I32, F64, FUNCREF, EXTERNREF) if chance.random() < 0.7]
    globals_ = [(I32, True), *held]
    memories = [chance.random() < 0.15 for _ in range(chance.choice((0, 1, 1, 1, 1, 1, 2, 3)))]
    tables: list[tuple[bytes, bool, list[int | None]]] = []
    for _ in range(chance.randrange(3)):
        places = [chance.randrange(len(functions)) if chance.random() < 0.9 else None for _ in range(8)]
        tables.append((FUNCREF, chance.random() < 0.15, places))
    if chance.random() < 0.3:
        tables.append((EXTERNREF, chance.random() < 0.2, [None] * 8))
    return Shape(signatures, functions, globals_, 0, memories, tables), imported


def _initial(kind: bytes, chance: random.Random) -> bytes:
    """A constant expression."""
    if kind == I32:
        return i32_const(chance.randrange(-5, 100)) + _END
    if kind == I64:
        return i64_const(chance.randrange(-5, 1 << 40)) + _END
    if kind in (F32, F64):
        return constant(kind, chance.randrange(-8, 80) / 8) + _END
    return _NULLS[kind] + _END


def _kinds(kinds: tuple[bytes, ...]) -> bytes:
    return vector(kinds)


def generate(chance: random.Random) -> bytes:
    """A module."""
    shape, imported = _shape(chance)
    # Globals that are imported come first, and the fuel is the module's own.
    foreign = [g for g in shape.globals[1:] if chance.random() < 0.2]
    own = [g for g in shape.globals[1:] if g not in foreign]
    shape.globals = [*foreign, (I32, True), *own]
    shape.fuel = len(foreign)
    foreign_memory = bool(shape.memories) and chance.random() < 0.15
    imports = [name("m") + name(f"f{i}") + b"\x00" + unsigned(shape.functions[i].index) for i in range(imported)]
    imports += [
        name("m") + name(f"g{i}") + b"\x03" + kind + bytes([mutable]) for i, (kind, mutable) in enumerate(foreign)
    ]
    memories = [_limits(chance.choice((1, 1, 1, 0, 2)), chance.choice((2, 4)), wide) for wide in shape.memories]
    if foreign_memory:
        imports.append(name("m") + name("memory") + b"\x02" + memories[0])
    segments = []
    for index, (kind, wide, places) in enumerate(shape.tables):
        if kind == FUNCREF:
            items = vector((b"\xd2" + unsigned(f) if f is not None else b"\xd0\x70") + _END for f in places)
            shape.element_segments.append(index)
            offset = (i64_const(0) if wide else i32_const(0)) + _END
            segments.append(b"\x06" + unsigned(index) + offset + FUNCREF + items)
            if chance.random() < 0.5:
                shape.element_segments.append(index)
                segments.append(b"\x05" + FUNCREF + items)
    datas = []
    for index in range(len(shape.memories)):
        content = chance.randbytes(chance.randrange(40))
        if chance.random() < 0.5:
            offset = (i64_const if shape.memories[index] else i32_const)(chance.randrange(60000)) + _END
            datas.append(b"\x02" + unsigned(index) + offset + unsigned(len(content)) + content)
        else:
            datas.append(b"\x01" + unsigned(len(content)) + content)
        shape.data_segments.append(index)
    budget = chance.choice((30, 80, 80, 200, 400))
    bodies = [Body(shape, signature, chance, budget).encode() for signature in shape.functions[imported:]]
    exports = [name(f"f{i}") + b"\x00" + unsigned(i) for i in range(len(shape.functions))]
    exports += [name(f"t{i}") + b"\x01" + unsigned(i) for i in range(len(shape.tables))]
    exports += [name(f"m{i}") + b"\x02" + unsigned(i) for i in range(len(shape.memories))]
    exports += [name(f"g{i}") + b"\x03" + unsigned(i) for i in range(len(shape.globals)) if i != shape.fuel]
    exports.append(name(binary.FUEL) + b"\x03" + unsigned(shape.fuel))
    starts = [i for i, s in enumerate(shape.functions) if not s.params and not s.results and i >= imported]
    parts = {
        binary.TYPES: vector(b"\x60" + _kinds(s.params) + _kinds(s.results) for s in shape.signatures),
        binary.IMPORTS: vector(imports),
        binary.FUNCTIONS: vector(unsigned(s.index) for s in shape.functions[imported:]),
        binary.TABLES: vector(
            kind + _limits(len(places), len(places) + 5, wide) for kind, wide, places in shape.tables
        ),
        binary.MEMORIES: vector(memories[foreign_memory:]),
        binary.GLOBALS: vector(
            kind + bytes([mutable]) + (i32_const(FUEL) + _END if index == 0 else _initial(kind, chance))
            for index, (kind, mutable) in enumerate(shape.globals[shape.fuel :])
        ),
        binary.EXPORTS: vector(exports),
        binary.ELEMENTS: vector(segments),
        binary.DATA_COUNT: unsigned(len(datas)),
        binary.CODE: vector(bodies),
        binary.DATA: vector(datas),
    }
    if starts and chance.random() < 0.1:
        parts[binary.START] = unsigned(starts[0])
    return HEADER + b"".join(section(number, parts[number]) for number in binary.ORDER if number in parts)
