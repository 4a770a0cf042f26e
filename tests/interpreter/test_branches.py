"""Branches: conditions that become part of them, operands they take along, and where those have to be moved."""

from typing import Any

import pytest

from tests.support import Guest, outcome

# Functions of (a: i32, b: i32), and their results by arguments.
SCRIPTS: dict[str, tuple[str, str, dict[tuple[int, int], Any]]] = {
    "a value lives over br_if and is used from the accumulator": (
        "i32",
        "(block (result i32) (i32.add (local.get 0) (i32.const 1)) (br_if 0 (local.get 1)) (i32.const 10) i32.mul)",
        {(4, 1): 5, (4, 0): 50},
    ),
    "the condition is computed over a live value": (
        "i32",
        "(block (result i32) (i32.mul (local.get 0) (local.get 0)) (br_if 0 (i32.gt_s (local.get 0) (local.get 1)))"
        " (i32.sub (i32.const 1)))",
        {(4, 1): 16, (4, 9): 15},
    ),
    "br_if out of two blocks with a value below": (
        "i32",
        "(block $out (result i32) (i32.const 1000) (block (result i32) (i32.const 7) (br_if $out (local.get 0)) drop"
        " (br_if 0 (i32.const 20) (local.get 1)) drop (i32.const 30)) i32.add)",
        {(1, 0): 7, (0, 1): 1020, (0, 0): 1030},
    ),
    "br takes its value from above others": (
        "i32",
        "(block (result i32) (i32.const 1) (i32.const 2) (i32.add (local.get 0) (i32.const 3)) (br 0))",
        {(4, 0): 7},
    ),
    "br_if takes a value from above others and leaves them": (
        "i32",
        "(block (result i32) (i32.const 100) (i32.add (local.get 0) (i32.const 3)) (br_if 0 (local.get 1)) i32.sub)",
        {(4, 1): 7, (4, 0): 93},
    ),
    "br_if to the function's body": (
        "i32",
        "(i32.const 5) (i32.add (local.get 0) (i32.const 3)) (br_if 0 (local.get 1)) i32.mul",
        {(4, 1): 7, (4, 0): 35},
    ),
    "br_if with a constant to the function's body": (
        "i32",
        "(i32.const 5) (br_if 0 (i32.eq (local.get 0) (local.get 1))) (i32.add (local.get 0))",
        {(4, 4): 5, (4, 0): 9},
    ),
    "br_if with a local to the function's body": (
        "i32",
        "(local.get 0) (br_if 0 (i32.lt_s (local.get 0) (local.get 1))) (i32.add (local.get 1))",
        {(1, 4): 1, (4, 1): 5},
    ),
    "br_if with two values to the function's body, swapped": (
        "i32 i32",
        "(local.get 1) (local.get 0) (br_if 0 (local.get 1)) (i32.add (i32.const 1))",
        {(3, 4): (4, 3), (3, 0): (0, 4)},
    ),
    "return above live values": (
        "i32",
        "(i32.const 1) (i32.const 2) (if (local.get 0) (then (return (i32.mul (local.get 1) (i32.const 3))))) i32.add",
        {(1, 5): 15, (0, 5): 3},
    ),
    "return of several values, swapped": (
        "i32 i32 i32",
        "(i32.const 9) (return (local.get 1) (local.get 0) (i32.const 8))",
        {(1, 2): (2, 1, 8)},
    ),
    "end of the body with several values, swapped": (
        "i32 i32 i32",
        "(i32.add (local.get 1) (i32.const 1)) (local.get 0) (i32.const 8)",
        {(1, 2): (3, 1, 8)},
    ),
    "a block hands over two values, swapped": (
        "i32 i32",
        "(block (result i32 i32) (local.get 1) (local.get 0))",
        {(1, 2): (2, 1)},
    ),
    "br moves two values that overlap": (
        "i32",
        "(block (result i32 i32) (i32.add (local.get 0) (i32.const 10)) (i32.add (local.get 0) (i32.const 20))"
        " (i32.add (local.get 0) (i32.const 30)) (br 0)) i32.sub",
        {(1, 0): -10},
    ),
    "br_if moves two values that overlap": (
        "i32",
        "(block (result i32 i32) (i32.add (local.get 0) (i32.const 10)) (i32.add (local.get 0) (i32.const 20))"
        " (i32.add (local.get 0) (i32.const 30)) (br_if 0 (local.get 1)) (drop) (i32.const 1) (br 0)) i32.sub",
        {(1, 1): -10, (1, 0): 20},
    ),
    "a loop with parameters counts and sums": (
        "i32",
        "(i32.const 0) (local.get 0) (loop (param i32 i32) (result i32) (local.set 0) (i32.add (local.get 0))"
        " (i32.sub (local.get 0) (i32.const 1)) (br_if 0 (i32.gt_s (local.get 0) (i32.const 1))) drop)",
        {(10, 0): 55, (1, 0): 1},
    ),
    "a loop swaps its parameters": (
        "i32 i32",
        "(local.get 0) (local.get 1) (loop (param i32 i32) (result i32 i32) (local.set 0) (local.set 1) (local.get 0)"
        " (local.get 1) (local.tee 2 (i32.add (local.get 2) (i32.const 1))) (br_if 0 (i32.lt_u (i32.const 3))))",
        {(1, 2): (2, 1)},
    ),
    "a loop swaps its parameters without locals": (
        "i32 i32",
        "(local.get 0) (local.get 1) (loop $l (param i32 i32) (result i32 i32)"
        " (local.set 2) (local.get 2) (br_if 1 (i32.ge_u (local.tee 3 (i32.add (local.get 3)"
        " (i32.const 1))) (i32.const 4)))"
        " (drop) (local.set 1) (local.get 2) (local.get 1) (br $l))",
        {(1, 2): (2, 1)},
    ),
    "an if with parameters": (
        "i32",
        "(i32.const 3) (local.get 0) (local.get 1) (if (param i32 i32) (result i32) (then i32.add) (else i32.sub))",
        {(1, 1): 4, (1, 0): 2},
    ),
    "an if without else passes its parameters on": (
        "i32",
        "(local.get 0) (local.get 1) (if (param i32) (result i32) (then (i32.add (i32.const 5))))",
        {(1, 1): 6, (1, 0): 1},
    ),
    "an if whose sides both branch": (
        "i32",
        "(block (result i32) (i32.const 4) (local.get 0) (if (then (i32.const 7) (br 1)) (else (local.get 1) (br 1)))"
        " (i32.const 1) i32.add)",
        {(1, 9): 7, (0, 9): 9},
    ),
    "an if of which one side never ends": (
        "i32",
        "(if (result i32) (local.get 0) (then unreachable) (else (local.get 1)))",
        {(0, 3): 3, (1, 3): "unreachable"},
    ),
    "dead code behind a branch": (
        "i32",
        "(block (result i32) (br 0 (local.get 0)) (block (loop (br_if 1 (i32.const 1)) (br 0) drop)) i32.add)",
        {(3, 0): 3},
    ),
    "br_table with values that are in place": (
        "i32",
        "(block $a (result i32) (block $b (result i32) (i32.add (local.get 0) (i32.const 1)) (br_table $b $a $b"
        " (local.get 1))) (i32.add (i32.const 100)))",
        {(1, 0): 102, (1, 1): 2, (1, 2): 102, (1, -1): 102},
    ),
    "br_table with values that are not": (
        "i32",
        "(block $a (result i32) (i32.const 50) (block $b (result i32) (i32.const 60) (i32.add"
        " (local.get 0) (i32.const 1))"
        " (br_table $b $a 2 $b (local.get 1))) (i32.add (i32.const 100)) (i32.add))",
        {(1, 0): 152, (1, 1): 2, (1, 2): 2, (1, 3): 152},
    ),
    "br_table with two values": (
        "i32 i32",
        "(block $a (result i32 i32) (i32.const 50) (block $b (result i32 i32) (local.get 1) (local.get 0)"
        " (br_table $b $a 2 (local.get 1))) (return))",
        {(5, 0): (0, 5), (5, 1): (1, 5), (5, 2): (2, 5)},
    ),
    "br_table to loops": (
        "i32",
        "(block $end (loop $again (local.set 2 (i32.add (local.get 2) (local.get 1)))"
        " (local.set 0 (i32.sub (local.get 0) (i32.const 1)))"
        " (br_table $end $again (i32.gt_s (local.get 0) (i32.const 0))))) (local.get 2)",
        {(6, 7): 42, (0, 7): 7},
    ),
    "br_table to a loop with parameters": (
        "i32",
        "(i32.const 1) (local.get 0) (loop $l (param i32 i32) (result i32) (local.set 0) (local.set 1)"
        " (i32.const 77) (i32.mul (local.get 1) (local.get 0)) (i32.sub (local.get 0) (i32.const 1))"
        " (br_if 1 (i32.eqz (local.tee 2 (i32.gt_s (local.get 0) (i32.const 1)))) ) (br_table $l $l (local.get 2)))",
        {(5, 0): 0},
    ),
    "br_table with a constant index": (
        "i32",
        "(block $a (block $b (br_table $a $b (i32.const 1))) (return (i32.const 5))) (i32.const 6)",
        {(0, 0): 5},
    ),
    "br_table with an empty table": ("i32", "(block (br_table 0 (local.get 0))) (local.get 1)", {(9, 3): 3}),
    "select with constants on both sides": (
        "i32",
        "(select (i32.const 1) (i32.const 2) (i32.lt_s (local.get 0) (local.get 1)))",
        {(0, 1): 1, (1, 0): 2},
    ),
    "select with a constant condition": ("i32", "(select (local.get 0) (local.get 1) (i32.const 0))", {(8, 9): 9}),
    "select from the accumulator": (
        "i32",
        "(i32.add (local.get 0) (i32.const 1)) (i32.add (local.get 1) (i32.const 1)) (local.get 0) select",
        {(3, 4): 4, (0, 4): 5},
    ),
    "nested selects": (
        "i32",
        "(select (select (i32.const 1) (local.get 0) (local.get 1)) (select (local.get 1) (i32.const 4)"
        " (local.get 0))"
        " (i32.and (local.get 0) (i32.const 1)))",
        {(1, 0): 1, (1, 1): 1, (2, 5): 5, (0, 5): 4},
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_branches(guest: Guest, name: str) -> None:
    results, body, cases = SCRIPTS[name]
    program = guest(f'(module (func (export "f") (param i32 i32) (result {results}) (local i32 i32) {body}))')
    for arguments, expected in cases.items():
        assert outcome(program, "f", *arguments) == expected, arguments


def test_fibonacci_by_loop_parameters(guest: Guest) -> None:
    """Parameters rotate: each round's values are moved over those they are made of."""
    program = guest("""(module
      (func (export "fib") (param i32) (result i64)
        (i64.const 0) (i64.const 1)
        (loop $l (param i64 i64) (result i64)
          (call $step)
          (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
          (br_if $l (i32.gt_s (local.get 0) (i32.const 0)))
          drop))
      (func $step (param i64 i64) (result i64 i64) (local.get 1) (i64.add (local.get 0) (local.get 1))))""")
    assert [program("fib", n) for n in (1, 2, 3, 10, 50)] == [1, 1, 2, 55, 12586269025]


def test_floats_along_branches(guest: Guest) -> None:
    """The float accumulator is another one: values of both kinds go along at once."""
    program = guest("""(module
      (func (export "f") (param i32 f64 f32) (result f64 i32 f32)
        (block (result f64 i32 f32)
          (f64.const 1.5)
          (f64.mul (local.get 1) (f64.const 2)) (i32.add (local.get 0) (i32.const 1))
          (f32.add (local.get 2) (f32.const 0.5))
          (br_if 0 (f64.gt (local.get 1) (f64.const 10)))
          (f32.neg) (br 0))))""")
    assert program("f", 1, 20.0, 0.25) == (40.0, 2, 0.75)
    assert program("f", 1, 2.0, 0.25) == (4.0, 2, -0.75)


def test_blocks_nest_deeply(guest: Guest) -> None:
    depth = 5000
    body = "(block " * depth + f"(br_if {depth - 1} (local.get 0))" + ")" * depth
    program = guest(f'(module (func (export "f") (param i32) (result i32) {body} (i32.const 3)))')
    assert program("f", 0) == program("f", 1) == 3
