"""Accesses to memories of all kinds: their bounds, their growth, and addresses that overflow."""

from __future__ import annotations

import pytest

from tests.support import Guest, outcome

PAGE = 65536
OUTSIDE = "out of bounds memory access"
SIZES = {"i32.load8_u": 1, "i32.load16_u": 2, "i32.load": 4, "f32.load": 4, "i64.load": 8, "f64.load": 8}
STORES = {"i32.store8": 1, "i32.store16": 2, "i32.store": 4, "f32.store": 4, "i64.store": 8, "f64.store": 8}

# The memory that is accessed, other memories, the address type, and the name in front of a memory argument.
LAYOUTS = {
    "one": ("(memory $m 1 4)", "i32"),
    "wide": ("(memory $m i64 1 4)", "i64"),
    "second": ("(memory 3) (memory $m 1 4)", "i32"),
    "second wide": ("(memory 3) (memory $m i64 1 4)", "i64"),
    "first of two": ("(memory $m 1 4) (memory i64 3)", "i32"),
}


def module(layout: str) -> str:
    """Functions that access a memory at an address that is a parameter, or computed."""
    memories, address = LAYOUTS[layout]
    functions = []
    for offset in (0, 1, 1000, 0xFFFF_FFF0):
        for name in SIZES:
            kind = name[:3]
            where = f"{name} $m offset={offset}"
            functions += [
                f'(func (export "{name} {offset}") (param {address}) (result {kind}) ({where} (local.get 0)))',
                f'(func (export "{name} {offset} computed") (param {address}) (result {kind})'
                f" ({where} ({address}.add (local.get 0) ({address}.const 0))))",
            ]
        for name in STORES:
            where, value = f"{name} $m offset={offset}", f"({name[:3]}.const 0)"
            functions += [
                f'(func (export "{name} {offset}") (param {address}) ({where} (local.get 0) {value}))',
                f'(func (export "{name} {offset} computed") (param {address})'
                f" ({where} ({address}.add (local.get 0) ({address}.const 0)) {value}))",
            ]
    return f"""(module {memories} {" ".join(functions)}
      (func (export "grow") (param {address}) (result {address}) (memory.grow $m (local.get 0)))
      (func (export "size") (result {address}) (memory.size $m)))"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bounds(guest: Guest, layout: str) -> None:
    """The last place that is inside and the first that is not, for every access, before and after growth."""
    program = guest(module(layout))
    wide = LAYOUTS[layout][1] == "i64"
    for pages in (1, 2, 4):
        if pages > 1:
            assert program("grow", pages - program("size")) == pages // 2
        for name, size in (SIZES | STORES).items():
            for offset in (0, 1, 1000):
                last = pages * PAGE - size - offset
                for how in ("", " computed"):
                    call = f"{name} {offset}{how}"
                    assert outcome(program, call, last) in (0, None), call
                    assert outcome(program, call, last + 1) == OUTSIDE, call
                    assert outcome(program, call, -1) == OUTSIDE, call
                    assert outcome(program, call, -offset - 1) == OUTSIDE, call
            for address in (
                0,
                16,
                PAGE,
                -1,
                -17,
                *((1 << 62, -(1 << 32), -(1 << 63)) if wide else (1 << 30, -(1 << 31))),
            ):
                assert outcome(program, f"{name} {0xFFFF_FFF0}", address) == OUTSIDE, (name, address)
    assert program("grow", 1) == -1
    assert program("grow", 0) == 4


@pytest.mark.parametrize("offset", [0xFFFF_FFFF, 1 << 32, (1 << 63) + 5, (1 << 64) - 8, (1 << 64) - 1])
def test_offsets_of_64_bits(guest: Guest, offset: int) -> None:
    """The sum of address and offset must not come around: it would be inside again."""
    program = guest(f"""(module (memory i64 1)
      (func (export "load") (param i64) (result i64) (i64.load offset={offset} (local.get 0)))
      (func (export "constant") (result i32) (i32.load8_u offset={offset} (i64.const {(1 << 64) - offset})))
      (func (export "store") (param i64) (i32.store8 offset={offset} (local.get 0) (i32.const 1))))""")
    for address in (0, 8, -offset, -offset + 8, (1 << 63) - 1, -(1 << 63), -1):
        signed = (address + (1 << 63)) % (1 << 64) - (1 << 63)
        assert outcome(program, "load", signed) == OUTSIDE
        assert outcome(program, "store", signed) == OUTSIDE
    assert outcome(program, "constant") == OUTSIDE


def test_constant_addresses(guest: Guest) -> None:
    program = guest("""(module (memory 1)
      (func (export "last") (result i32) (i32.store (i32.const 65532) (i32.const 7)) (i32.load (i32.const 65532)))
      (func (export "beyond") (result i32) (i32.load (i32.const 65533)))
      (func (export "offset") (result i32) (i32.load offset=65532 (i32.const 1)))
      (func (export "negative") (result i32) (i32.load8_u offset=1 (i32.const -1)))
      (func (export "largest") (result i64) (i64.load offset=0xffffffff (i32.const -1)))
      (func (export "store") (i64.store offset=0xffffffff (i32.const -1) (i64.const 1))))""")
    assert program("last") == 7
    for name in ("beyond", "offset", "negative", "largest", "store"):
        assert outcome(program, name) == OUTSIDE


def test_a_store_that_traps_writes_nothing(guest: Guest) -> None:
    program = guest("""(module (memory 1)
      (func (export "store") (param i32) (i64.store (local.get 0) (i64.const -1)))
      (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0))))""")
    for address in range(PAGE - 7, PAGE):
        assert outcome(program, "store", address) == OUTSIDE
    assert [program("load", PAGE - 8 + index) for index in range(8)] == [0] * 8


def test_growth_within_one_function(guest: Guest) -> None:
    """Base and length are in registers: whatever grows a memory has to change them."""
    program = guest("""(module (memory 0 3)
      (func (export "f") (result i32 i32 i32 i32)
        (memory.grow (i32.const 1))
        (i32.store (i32.const 65532) (i32.const 11))
        (memory.grow (i32.const 1))
        (i32.store (i32.const 131068) (i32.const 22))
        (i32.load (i32.const 65532))
        (i32.load (i32.const 131068)))
      (func (export "empty") (result i32) (i32.load8_u (i32.const 0)))
      (func (export "beyond") (result i32) (drop (memory.grow (i32.const 1))) (i32.load (i32.const 196605))))""")
    assert outcome(program, "empty") == OUTSIDE
    assert program("f") == (0, 1, 11, 22)
    assert outcome(program, "beyond") == OUTSIDE
    assert program("empty") == 0


def test_growth_in_a_loop_over_two_memories(guest: Guest) -> None:
    program = guest("""(module (memory $a 1) (memory $b i64 1)
      (func (export "f") (param i32) (result i64) (local i32 i64)
        (loop $l
          (drop (memory.grow $b (i64.const 1))) (drop (memory.grow $a (i32.const 1)))
          (local.set 1 (i32.sub (i32.mul (memory.size $a) (i32.const 65536)) (i32.const 8)))
          (i64.store $a (local.get 1) (i64.const 3))
          (i64.store $b (i64.extend_i32_u (local.get 1)) (i64.load $a (local.get 1)))
          (local.set 2 (i64.add (local.get 2) (i64.load $b (i64.extend_i32_u (local.get 1)))))
          (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 2)))""")
    assert program("f", 20) == 60


def test_a_fault_leaves_the_guest_usable(guest: Guest) -> None:
    """Traps in deep frames, thousands of times: nothing of the abandoned frames is left."""
    program = guest("""(module (memory 1)
      (func $down (export "down") (param i32 i32) (result i32)
        (if (result i32) (local.get 0)
          (then (i32.add (i32.const 1) (call $down (i32.sub (local.get 0) (i32.const 1)) (local.get 1))))
          (else (i32.load (local.get 1))))))""")
    for _ in range(2000):
        assert outcome(program, "down", 50, -4) == OUTSIDE
    assert program("down", 50, 0) == 50
