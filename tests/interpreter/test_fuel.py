"""Fuel: what a call costs and gives does not depend on how it is cut into slices, nor on guard pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import greenbeat as gb
from tests.support import PLENTY, guard_pages

OTHER = """(module (memory 1)
  (func (export "square") (param i32) (result i32) (i32.store (i32.const 0) (local.get 0))
    (i32.mul (local.get 0) (i32.load (i32.const 0))))
  (func $down (export "down") (param i32 f64) (result f64)
    (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
    (return_call $down (i32.sub (local.get 0) (i32.const 1)) (f64.add (local.get 1) (f64.const 0.5)))))"""
GUEST = """(module
  (import "other" "square" (func $square (param i32) (result i32)))
  (import "other" "down" (func $down (param i32 f64) (result f64)))
  (import "host" "add" (func $add (param i32 i32) (result i32)))
  (memory (export "memory") 1 20)
  (table funcref (elem $fib $mix $square)) (type $i (func (param i32) (result i32)))
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_u (local.get 0) (i32.const 2)) (then (local.get 0))
      (else (i32.add
        (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func $mix (export "mix") (param i32) (result i32) (local i32 i64 f64)
    (loop $l
      (block $c (block $b (block $a
        (br_table $a $b $c (i32.rem_u (local.get 0) (i32.const 3))))
        (local.set 1 (i32.xor (local.get 1) (i32.rotl (local.get 0) (local.get 1)))) (br $c))
        (local.set 2 (i64.add (local.get 2) (i64.load8_u (i32.wrap_i64 (local.get 2))))))
      (i32.store8 (local.get 0) (local.get 1))
      (local.set 3 (f64.add (local.get 3) (f64.convert_i32_u (local.get 0))))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (i32.add (local.get 1) (i32.add (i32.wrap_i64 (local.get 2)) (i32.trunc_f64_u (local.get 3)))))
  (func (export "foreign") (param i32) (result i32) (local i32)
    (loop $l
      (local.set 1 (i32.add (local.get 1) (call $square (local.get 0))))
      (local.set 1 (i32.add (local.get 1) (call_indirect (type $i) (local.get 0)
        (i32.mul (i32.and (local.get 0) (i32.const 1)) (i32.const 2)))))
      (local.set 1 (call $add (local.get 1) (local.get 0)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func (export "tail") (param i32) (result f64) (return_call $down (local.get 0) (f64.const 1)))
  (func (export "grow") (param i32) (result i32)
    (loop $l (result i32)
      (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (local.get 0))
      (memory.grow (i32.const 1)) (local.tee 0 (i32.sub (local.get 0) (i32.const 1))) (br_if $l) ))
  (func (export "values") (param i32) (result i32 i64 f64 f32)
    (i32.const 1) (i64.const 2) (f64.const 3) (f32.const 4)
    (loop $l (param i32 i64 f64 f32) (result i32 i64 f64 f32)
      (call $rotate) (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if $l (local.get 0))))
  (func $rotate (param i32 i64 f64 f32) (result i32 i64 f64 f32)
    (i32.trunc_f32_s (local.get 3)) (i64.extend_i32_s (local.get 0)) (f64.convert_i64_s (local.get 1))
    (f32.demote_f64 (local.get 2)))
  (func (export "trap") (param i32) (result i32)
    (loop $l (i32.store8 (i32.mul (local.get 0) (local.get 0)) (i32.const 1))
      (local.set 0 (i32.add (local.get 0) (i32.const 1))) (br $l)) (i32.const 0)))"""
CALLS = {"fib": 9, "mix": 100, "foreign": 9, "tail": 60, "grow": 12, "values": 25, "trap": 200}


def make(fuel: int) -> gb.Instance:
    """An instance, and in the same fuel another one that it calls."""
    other = gb.Module.from_wat(OTHER).instantiate(limits=gb.Limits(fuel=PLENTY))
    imports: dict[str, Any] = {"other": other, "host": {"add": lambda a, b: (a + b) & 0xFFFF}}
    return gb.Module.from_wat(GUEST).instantiate(imports, limits=gb.Limits(fuel=fuel))


def whole(name: str) -> tuple[Any, int]:
    """The result of a call, and what it costs."""
    instance = make(PLENTY)
    return ended(lambda: instance.exports[name](CALLS[name])), PLENTY - (instance.fuel or 0)


def ended(act: Any) -> Any:
    try:
        return act()
    except gb.Trap as trap:
        return trap.kind


def sliced(name: str, slices: Iterator[int]) -> tuple[Any, int]:
    """The same, in slices."""
    instance = make(PLENTY)
    call = instance.exports[name].start(CALLS[name])

    def run() -> Any:
        while not call.resume(fuel=next(slices)):
            pass
        return call.result

    return ended(run), PLENTY - (instance.fuel or 0)


def forever(slices: list[int]) -> Iterator[int]:
    while True:
        yield from slices


@pytest.mark.parametrize("name", CALLS)
def test_slices_change_nothing(name: str) -> None:
    expected = whole(name)

    @settings(deadline=None, max_examples=25)
    @given(st.lists(st.integers(1, 40) | st.integers(1, 2000), min_size=1, max_size=20), st.booleans())
    def check(slices: list[int], guarded: bool) -> None:
        with guard_pages(guarded):
            assert sliced(name, forever(slices)) == expected

    check()


@pytest.mark.parametrize("name", CALLS)
def test_cost_is_the_same_without_guard_pages_and_when_translated_before(name: str) -> None:
    expected = whole(name)
    with guard_pages(False):
        assert whole(name) == expected
    if name in ("grow", "trap"):
        return
    instance = make(PLENTY)
    for _ in range(3):
        before = instance.fuel or 0
        assert ended(lambda: instance.exports[name](CALLS[name])) == expected[0]
        assert before - (instance.fuel or 0) == expected[1]


@pytest.mark.parametrize("name", [name for name in CALLS if name != "trap"])
def test_a_call_needs_exactly_what_it_costs(name: str) -> None:
    result, cost = whole(name)
    instance = make(cost)
    assert instance.exports[name](CALLS[name]) == result
    assert instance.fuel == 0
    for short in (cost - 1, cost // 2, 1, 0):
        instance = make(short)
        with pytest.raises(gb.Exhausted) as caught:
            instance.exports[name](CALLS[name])
        assert caught.value.resource == "fuel"


def test_fuel_costs_an_instruction_each() -> None:
    """About one unit an instruction, so that costs can be foreseen."""
    instance = gb.Module.from_wat("""(module (func (export "f") (param i32) (result i32) (local i32)
      (loop $l (local.set 1 (i32.add (local.get 1) (i32.mul (local.get 0) (local.get 0))))
        (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (local.get 1)))""").instantiate(limits=gb.Limits(fuel=PLENTY))
    instance.exports.f(1000)
    assert PLENTY - (instance.fuel or 0) == pytest.approx(11 * 1000, abs=20)
