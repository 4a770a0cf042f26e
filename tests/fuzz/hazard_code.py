"""The lower half of the generator of hazards: what a module has, and code for its memories and tables.

See `hazards.py`, which has everything about expressions, calls and blocks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.fuzz.binary import unsigned
from tests.fuzz.instructions import (
    CANONICAL_NAN,
    DROP,
    END,
    EXTERNREF,
    F32,
    F64,
    FLOAT_EQUAL,
    FUNCREF,
    GET,
    GLOBAL_GET,
    GLOBAL_SET,
    I32,
    I32_AND,
    I32_EQZ,
    I32_SUB,
    I64,
    I64_AND,
    I64_EXTEND,
    IF,
    LOADS,
    NUMBERS,
    REF_AS_NON_NULL,
    REF_FUNC,
    REF_NULL,
    SELECT,
    SET,
    STORES,
    TABLE_SET,
    TEE,
    UNREACHABLE,
    constant,
    i32_const,
    i64_const,
)
from tests.fuzz.world import FLOATS, INTERESTING, WIDE, as_single

DIRTY, CLEAN, FINITE = range(3)
DEEPEST_LOOP = 3


@dataclass(frozen=True)
class Signature:
    """A function type and its index."""

    index: int
    params: tuple[bytes, ...]
    results: tuple[bytes, ...]


@dataclass
class Shape:
    """What the functions of a module can refer to; indices count imports first.

    Attributes:
        functions: the type of each function.
        globals: type and mutability of each global; `fuel` is the index of the one that bounds everything.
        memories: whether each has 64-bit addresses.
        tables: element type, whether indices are 64 bits wide, and what each element is at first.
    """

    signatures: list[Signature]
    functions: list[Signature]
    globals: list[tuple[bytes, bool]]
    fuel: int
    memories: list[bool]
    tables: list[tuple[bytes, bool, list[int | None]]]
    element_segments: list[int] = field(default_factory=list)
    data_segments: list[int] = field(default_factory=list)


@dataclass
class Label:
    """A block that is open: the types a branch to it takes, and whether code may branch to it."""

    types: tuple[bytes, ...]
    usable: bool = True


class Code:
    """One function's code as far as it has been written.

    Args:
        shape: the module.
        signature: the function's type.
        chance: where all decisions come from.
        budget: about how many instructions.
    """

    def __init__(self, shape: Shape, signature: Signature, chance: random.Random, budget: int) -> None:
        self.shape, self.signature, self.chance, self.budget = shape, signature, chance, budget
        self.out = bytearray()
        self.labels: list[Label] = []
        self.loops = 0
        self.depth = 0
        params = list(signature.params)
        declared = [I32, I64, F32, F64] * chance.choice((1, 1, 2)) + [F32, F64, F32, F64] + [I32] * DEEPEST_LOOP
        declared += [FUNCREF, EXTERNREF] * chance.randrange(2)
        if chance.random() < 0.02:
            declared += [I64] * chance.choice((30, 300, 2500))
        chance.shuffle(declared)
        self.locals = params + declared
        own = range(len(params), len(self.locals))
        # The last ones of a type have a purpose: loop counters, and floats that are always clean or are scratch.
        by_type = {kind: [i for i in own if self.locals[i] == kind] for kind in NUMBERS}
        self.counters = [by_type[I32].pop() for _ in range(DEEPEST_LOOP)]
        self.scratch = {kind: by_type[kind].pop() for kind in (F32, F64)}
        self.always_clean = {by_type[kind].pop() for kind in (F32, F64)}
        reserved = {*self.counters, *self.scratch.values()}
        self.usable: dict[bytes, list[int]] = {}
        for index, kind in enumerate(self.locals):
            if index not in reserved and len(self.usable.setdefault(kind, [])) < 6:
                self.usable[kind].append(index)

    def expression(self, kind: bytes) -> int:
        """Push a value of a type; returns how certain its bits are."""
        raise NotImplementedError

    def statement(self) -> None:
        """Do something that leaves the stack as it is."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ pieces

    def _emit(self, *parts: bytes) -> None:
        for part in parts:
            self.out += part
        self.budget -= 1

    def _likely(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _burn(self) -> None:
        """Count the fuel down, or stop."""
        fuel = unsigned(self.shape.fuel)
        self._emit(GLOBAL_GET, fuel, I32_EQZ, IF, b"\x40", UNREACHABLE, END)
        self._emit(GLOBAL_GET, fuel, i32_const(1), I32_SUB, GLOBAL_SET, fuel)

    def _constant(self, kind: bytes) -> int:
        """Push a constant."""
        chance = self.chance
        if kind == I32:
            self._emit(i32_const(chance.choice(INTERESTING) if self._likely(0.4) else chance.randrange(-9, 300)))
        elif kind == I64:
            self._emit(i64_const(chance.choice(WIDE) if self._likely(0.4) else chance.randrange(-9, 300)))
        elif kind in (F32, F64):
            value = chance.choice(FLOATS) if self._likely(0.5) else float(chance.randrange(-20, 100)) / 4
            value = as_single(value) if kind == F32 else value
            self._emit(constant(kind, value))
            return FINITE if abs(value) < 1e15 else CLEAN
        elif kind == FUNCREF and self._likely(0.6):
            self._emit(REF_FUNC, unsigned(chance.randrange(len(self.shape.functions))))
        elif kind[0] in (0x63, 0x64) and (kind[0] == 0x64 or self._likely(0.7)):
            self._function_of(int(kind[1]))
        else:
            heap = kind[1:] if len(kind) > 1 else kind
            self._emit(REF_NULL, heap)
        return CLEAN

    def _function_of(self, signature: int) -> None:
        """Push a reference to a function of a type; a trap where the module has none."""
        found = [i for i, s in enumerate(self.shape.functions) if s.index == signature]
        if found:
            self._emit(REF_FUNC, unsigned(self.chance.choice(found)))
        else:
            self._emit(REF_NULL, unsigned(signature), REF_AS_NON_NULL)

    def _canonical(self, kind: bytes) -> None:
        """Make the float on the stack clean."""
        scratch = unsigned(self.scratch[kind])
        self._emit(TEE, scratch, CANONICAL_NAN[kind], GET, scratch, GET, scratch, FLOAT_EQUAL[kind], SELECT)

    def _local(self, kind: bytes) -> int | None:
        known = self.usable.get(kind)
        return self.chance.choice(known) if known else None

    def clean(self, kind: bytes) -> int:
        """Push a value whose bits are certain."""
        quality = self.expression(kind)
        if quality == DIRTY:
            self._canonical(kind)
            return CLEAN
        return quality

    def _between(self) -> None:
        """Perhaps something else, while operands wait."""
        if self.budget > 0 and self._likely(0.16):
            self.statement()

    def _consume(self, kind: bytes) -> None:
        """Pop a value whose bits may be uncertain."""
        local = self._local(kind)
        if local is not None and local not in self.always_clean and self._likely(0.6):
            self._emit(SET, unsigned(local))
        else:
            self._emit(DROP)

    # ------------------------------------------------------------------------------------------ memories and tables

    def _address(self, memory: int) -> bytes:
        """Push an address; returns the memory argument's offset."""
        wide = self.shape.memories[memory]
        choice = self.chance.random()
        if choice < 0.25:
            value = self.chance.choice((0, 1, 8, 65528, 65535, self.chance.randrange(65536)))
            self._emit(i64_const(value) if wide else i32_const(value))
        elif choice < 0.98:
            mask = self.chance.choice((0xFF, 0xFFF8, 0x7FFF))
            self.expression(I64 if wide else I32)
            self._emit(i64_const(mask) if wide else i32_const(mask), I64_AND if wide else I32_AND)
        else:
            self.expression(I64 if wide else I32)
        choice = self.chance.random()
        if choice < 0.5:
            return unsigned(0)
        if choice < 0.98:
            return unsigned(self.chance.randrange(200))
        return unsigned(self.chance.choice((65536, 0x7FFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFF8)))

    def _memory(self) -> int | None:
        count = len(self.shape.memories)
        if not count:
            return None
        return 0 if self._likely(0.7) else self.chance.randrange(count)

    def _argument(self, memory: int, offset: bytes) -> bytes:
        return (b"\x00" if memory == 0 else b"\x40" + unsigned(memory)) + offset

    def _load(self, kind: bytes) -> int:
        memory = self._memory()
        if memory is None:
            return self._constant(kind)
        offset = self._address(memory)
        self._emit(bytes([self.chance.choice(LOADS[kind])]), self._argument(memory, offset))
        return CLEAN

    def _store(self) -> None:
        memory = self._memory()
        if memory is None:
            return
        offset = self._address(memory)
        self._between()
        kind = self.chance.choice(NUMBERS)
        self.clean(kind)
        self._emit(bytes([self.chance.choice(STORES[kind])]), self._argument(memory, offset))

    def _index(self, table: int) -> None:
        """Push an index that is nearly always in the table."""
        _, wide, elements = self.shape.tables[table]
        most = len(elements)
        if self._likely(0.5):
            self.expression(I32)
            self._emit(i32_const(7), I32_AND)
        else:
            self._emit(i32_const(self.chance.randrange(max(most, 1)) + (200 if self._likely(0.01) else 0)))
        if wide:
            self._emit(I64_EXTEND)

    def _extent(self, memory: int, *, amount: bool) -> None:
        """Push a memory's address, or a number of bytes, small enough to fit nearly always."""
        wide = self.shape.memories[memory]
        if self._likely(0.1):
            self.expression(I64 if wide else I32)
            self._emit(i64_const(0xFF) if wide else i32_const(0xFF), I64_AND if wide else I32_AND)
            return
        value = self.chance.randrange(300) if amount or self._likely(0.97) else 0xFFFF_FFF0
        self._emit(i64_const(value) if wide else i32_const(value))

    def _bulk(self) -> None:
        """Growth, copies and fills of memories."""
        memory = self._memory()
        if memory is None:
            return
        which = unsigned(memory)
        match self.chance.randrange(6):
            case 0:
                self._extent(memory, amount=False)
                self.expression(I32)
                self._extent(memory, amount=True)
                self._emit(b"\xfc\x0b", which)
            case 1:
                other = self.chance.randrange(len(self.shape.memories))
                self._extent(memory, amount=False)
                self._between()
                self._extent(other, amount=False)
                # The count has the narrower of the two types.
                self._extent(memory if not self.shape.memories[memory] else other, amount=True)
                self._emit(b"\xfc\x0a", which, unsigned(other))
            case 2 if self.shape.data_segments:
                segment = self.chance.randrange(len(self.shape.data_segments))
                self._extent(memory, amount=False)
                self._emit(i32_const(self.chance.randrange(4)), i32_const(self.chance.randrange(6)))
                self._emit(b"\xfc\x08", unsigned(segment), which)
            case 3 if self.shape.data_segments and self._likely(0.2):
                self._emit(b"\xfc\x09", unsigned(self.chance.randrange(len(self.shape.data_segments))))
            case 4:
                wide = self.shape.memories[memory]
                amount = self.chance.choice((0, 0, 1, 1, 2, 70000))
                self._emit(i64_const(amount) if wide else i32_const(amount), b"\x40", which)
                self._consume(I64 if wide else I32)
            case _:
                self._emit(b"\x3f", which)
                self._consume(I64 if self.shape.memories[memory] else I32)

    def _table_statement(self) -> None:
        """Everything that changes tables."""
        if not self.shape.tables:
            return
        table = self.chance.randrange(len(self.shape.tables))
        kind, wide, _ = self.shape.tables[table]
        which = unsigned(table)

        def number(value: int, is_wide: bool = wide) -> None:
            self._emit(i64_const(value) if is_wide else i32_const(value))

        same = [i for i, (k, _, _) in enumerate(self.shape.tables) if k == kind]
        segments = [i for i, k in enumerate(self.shape.element_segments) if k == table]
        match self.chance.randrange(7):
            case 0:
                other = self.chance.choice(same)
                other_wide = self.shape.tables[other][1]
                number(self.chance.randrange(4))
                number(self.chance.randrange(4), other_wide)
                number(self.chance.randrange(4), wide and other_wide)
                self._emit(b"\xfc\x0e", which, unsigned(other))
            case 1:
                self.expression(kind)
                number(self.chance.choice((0, 1, 3, 400)))
                self._emit(b"\xfc\x0f", which)
                self._consume(I64 if wide else I32)
            case 2:
                number(self.chance.randrange(4))
                self._between()
                self.expression(kind)
                number(self.chance.randrange(4))
                self._emit(b"\xfc\x11", which)
            case 3:
                self._emit(b"\xfc\x10", which)
                self._consume(I64 if wide else I32)
            case 4 if segments:
                number(self.chance.randrange(4))
                self._emit(i32_const(self.chance.randrange(2)), i32_const(self.chance.randrange(3)))
                self._emit(b"\xfc\x0c", unsigned(self.chance.choice(segments)), which)
            case 5 if segments and self._likely(0.2):
                self._emit(b"\xfc\x0d", unsigned(self.chance.choice(segments)))
            case _:
                self._index(table)
                self._between()
                self.expression(kind)
                self._emit(TABLE_SET, which)
