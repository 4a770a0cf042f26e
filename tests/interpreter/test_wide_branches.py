"""Branches that take many operands along: right in every mode, and short however often they are written."""

import pytest

import greenbeat as gb
from greenbeat.disassembly.cells import translated
from tests.support import Guest

COUNT = 20
KINDS = ("i32", "i64", "f32", "f64")
TYPES = [KINDS[i % 4] for i in range(COUNT)]
PARAMS = "(param " + " ".join(TYPES) + ")"
RESULTS = "(result " + " ".join(TYPES) + ")"
ARGUMENTS = tuple(100.0 + i if TYPES[i][0] == "f" else 100 + i for i in range(COUNT))


def pushed(*order: int) -> str:
    return " ".join(f"(local.get {i})" for i in order)


def constants() -> str:
    return " ".join(f"({TYPES[i]}.const {i})" for i in range(COUNT))


# Permutations that keep types: by steps of four.
TURNED = [(i + 4) % COUNT for i in range(COUNT)]
MODULE = f"""(module
  (func (export "if") {PARAMS} (param i32) {RESULTS}
    (block $out {RESULTS}
      {pushed(*TURNED)}
      (local.set 0 (i32.const -1))
      (br_if $out (local.get {COUNT}))
      {"drop " * COUNT}
      {constants()}))
  (func (export "below") {PARAMS} (param i32) {RESULTS}
    (block $out {RESULTS}
      (i32.const 7) (f64.const 8)
      {constants()}
      (br_if $out (i32.lt_s (local.get {COUNT}) (i32.const 5)))
      {"drop " * COUNT}
      drop drop
      {pushed(*range(COUNT))}
      (br $out)))
  (func (export "loop") {PARAMS} (param $n i32) {RESULTS}
    {pushed(*range(COUNT))}
    (loop $again {PARAMS} {RESULTS}
      {" ".join(f"(local.set {i})" for i in reversed(range(COUNT)))}
      (i64.const 3)
      {pushed(*TURNED)}
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))
      {" ".join(f"(local.set {i})" for i in reversed(range(COUNT)))}
      drop
      {pushed(*range(COUNT))}))
  (func (export "table") {PARAMS} (param $n i32) {RESULTS}
    (block $outer {RESULTS}
      (block $inner {RESULTS}
        (f32.const 2)
        {pushed(*TURNED)}
        (br_table $inner $outer $inner 2 (local.get $n)))
      {" ".join(f"(local.set {i})" for i in reversed(range(COUNT)))}
      {constants()})))"""


def turned(times: int) -> tuple[float, ...]:
    values = ARGUMENTS
    for _ in range(times):
        values = tuple(values[i] for i in TURNED)
    return values


def test_results(guest: Guest) -> None:
    program = guest(MODULE)
    numbers = tuple(float(i) if TYPES[i][0] == "f" else i for i in range(COUNT))
    assert program("if", *ARGUMENTS, 1) == turned(1)
    assert program("if", *ARGUMENTS, 0) == numbers
    assert program("below", *ARGUMENTS, 1) == numbers
    assert program("below", *ARGUMENTS, 9) == ARGUMENTS
    for times in (1, 2, 3):
        assert program("loop", *ARGUMENTS, times) == turned(times)
    for index, expected in ((0, numbers), (1, turned(1)), (2, numbers), (3, turned(1)), (99, turned(1))):
        assert program("table", *ARGUMENTS, index) == expected


@pytest.mark.parametrize("branch", ["(br_if 0 (local.get 0))", "(br_if 1 (local.get 0))"])
def test_code_is_short(branch: str) -> None:
    """A branch with a thousand operands costs as much code as one with a few."""
    types = "i32 " * 1000
    gets = "(local.get 0)" * 1000
    text = f"""(module (func (result {types}) (local i32)
      (block (result {types}) (f32.const 1) (block (result {types}) {gets} {branch * 2000} br 1) unreachable)))"""
    module = gb.Module.from_wat(text)
    assert len(translated(module._address, 0)) < 150_000


def test_operands_are_limited() -> None:
    """A function that no stack has room for is refused: its frame's size would not fit into 32 bits."""
    calls = "call 0 " * 9000
    text = f"(module (func (result {'i32 ' * 1000}) unreachable) (func {calls} unreachable))"
    with pytest.raises(gb.CompileError, match="at most 8,388,608 operands at a time"):
        gb.Module.from_wat(text)
