"""Operands that are locals: `local.get` writes no code, so a local that changes is copied first for those who wait."""

import pytest

from tests.support import Guest

# Each function's body, parameters a and b (i32), and its results for a = 5, b = 7.
BODIES = {
    "old value under a set": ("local.get 0 (local.set 0 (i32.const 100)) local.get 0 i32.sub", -95),
    "old value under a tee": ("local.get 0 (local.tee 0 (i32.const 100)) i32.sub", -95),
    "two old values under a set": (
        "local.get 0 local.get 0 (local.set 0 (i32.const 1)) i32.add local.get 0 i32.sub",
        9,
    ),
    "old value under a computed set": ("local.get 0 (local.set 0 (i32.add (local.get 0)"
        " (local.get 1))) local.get 0 i32.sub", -7),
    "old value in the middle of a sum": (
        "(i32.mul (local.get 0) (i32.const 10)) local.get 0 (local.set 0 (i32.const 3)) i32.add local.get 0 i32.add",
        58,
    ),
    "swap": ("local.get 0 local.get 1 local.set 0 local.set 1 (i32.sub (local.get 0) (local.get 1))", 2),
    "rotation of three": (
        "(local.set 2 (i32.const 9)) local.get 0 local.get 1 local.get 2 local.set 0 local.set 2 local.set 1"
        " (i32.add (i32.mul (local.get 0) (i32.const 100)) (i32.add (i32.mul (local.get 1) (i32.const 10))"
            " (local.get 2)))",
        957,
    ),
    "set to itself": ("local.get 0 local.get 0 local.set 0 local.get 0 i32.add", 10),
    "tee to itself": ("(local.tee 0 (local.get 0)) local.get 0 i32.add", 10),
    "tee of another local": ("(local.tee 0 (local.get 1)) (local.set 1"
        " (i32.const 1)) local.get 0 i32.add local.get 1 i32.add", 15),
    "tee chain": ("(local.tee 2 (local.tee 1 (local.tee 0"
        " (i32.const 4)))) local.get 0 local.get 1 i32.add i32.add", 12),
    "tee of a sum, then both": (
        "(local.tee 2 (i32.add (local.get 0) (local.get 1))) local.get 2 i32.mul local.get 0 i32.sub",
        139,
    ),
    "tee while the local waits": ("local.get 2 (local.tee 2 (i32.add (local.get 0)"
        " (local.get 1))) local.get 2 i32.add i32.add", 24),
    "set from the accumulator while a value waits": (
        "(i32.add (local.get 0) (i32.const 1)) (i32.add (local.get 1) (i32.const 1)) local.set 0 local.get 0 i32.sub",
        -2,
    ),
    "tee of a constant, the constant used again": ("(local.tee 0 (i32.const 8)) (local.tee 1"
        " (i32.const 8)) i32.mul", 64),
    "dropped local": ("local.get 0 local.get 1 drop (local.set 0 (i32.const 2)) local.get 0 i32.mul", 10),
    "old value over a block": (
        "local.get 0 (block (local.set 0 (i32.const 50)) (br_if 0 (local.get 1)) (local.set 0 (i32.const 60)))"
        " local.get 0 i32.sub",
        -45,
    ),
    "old value over an if": (
        "local.get 0 (if (local.get 1) (then (local.set 0 (i32.const 50))) (else (local.set 0 (i32.const 60))))"
        " local.get 0 i32.sub",
        -45,
    ),
    "old value over a loop": (
        "local.get 0 (loop (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if 0 (local.get 0)))"
        " local.get 0 i32.add",
        5,
    ),
    "block's result is a local that changed inside": (
        "(block (result i32) local.get 0 (local.set 0 (i32.const 9))) local.get 0 i32.sub",
        -4,
    ),
    "local in both operands of a branch's comparison": (
        "(block (br_if 0 (i32.eq (local.get 0) (local.get 0))) (local.set 0 (i32.const 1))) local.get 0",
        5,
    ),
    "comparison kept, then used as a condition": (
        "(local.tee 2 (i32.lt_u (local.get 0) (local.get 1))) (if (result i32) (then (i32.const 10)) (else"
            " (i32.const 20)))"
        " local.get 2 i32.add",
        11,
    ),
    "comparison with a set before the branch": (
        "(block (i32.lt_u (local.get 0) (local.get 1)) (local.set 0 (i32.const 30)) (br_if 0) (local.set 0"
            " (i32.const 1)))"
        " local.get 0",
        30,
    ),
    "comparison twice negated": (
        "(if (result i32) (i32.eqz (i32.eqz (i32.lt_u (local.get 0) (local.get 1)))) (then (i32.const 1))"
            " (else (i32.const 2)))",
        1,
    ),
    "select of locals that change": (
        "local.get 0 local.get 1 (local.set 0 (i32.const 70)) (local.set 1 (i32.const 80)) local.get 0 select"
        " local.get 1 i32.add",
        85,
    ),
    "many uses of one local": (f"{'local.get 0 ' * 40} (local.set 0 (i32.const 1)) {'i32.add ' * 39}", 200),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_operands_that_are_locals(guest: Guest, name: str) -> None:
    body, expected = BODIES[name]
    program = guest(f'(module (func (export "f") (param i32 i32) (result i32) (local i32 i32) {body}))')
    assert program("f", 5, 7) == expected


@pytest.mark.parametrize("kind", ["i32", "i64", "f32", "f64"])
def test_operands_of_every_type(guest: Guest, kind: str) -> None:
    """Old values of all types wait while their locals change; floats and integers in turn use both accumulators."""
    program = guest(f"""(module
      (func (export "f") (param {kind} i32 f64) (result {kind} i32 f64)
        local.get 0 local.get 1 local.get 2
        (local.set 0 ({kind}.add (local.get 0) ({kind}.const 1)))
        (local.set 1 (i32.add (local.get 1) (i32.const 1)))
        (local.set 2 (f64.add (local.get 2) (f64.const 1)))
        local.set 2 local.set 1 local.get 0 {kind}.mul
        local.get 1 local.get 2))""")
    three = 3.0 if kind.startswith("f") else 3
    assert program("f", three, 4, 5.0) == (12, 4, 5.0)


def test_locals_begin_as_zero(guest: Guest) -> None:
    """However many there are, and though the stack was used before."""
    many = " ".join(f"(i32.add (local.get {index}))" for index in range(1, 60))
    program = guest(f"""(module
      (func $dirty (param i32) (result i32) (local i64 i64 i64 i64)
        (local.set 1 (i64.const -1)) (local.set 4 (i64.const -1))
        (if (result i32) (local.get 0) (then (call $dirty (i32.sub (local.get 0) (i32.const 1)))) (else (i32.const 7))))
      (func $clean (local {"i32 " * 60}) (local.set 0 (i32.const 0)))
      (func (export "few") (result i64) (local i64 f64 i32)
        (drop (call $dirty (i32.const 20)))
        (i64.add (local.get 0) (i64.add (i64.reinterpret_f64 (local.get 1)) (i64.extend_i32_u (local.get 2)))))
      (func $many (result i32) (local {"i32 " * 60}) local.get 0 {many})
      (func (export "many") (result i32) (drop (call $dirty (i32.const 20))) (call $many)))""")
    assert program("few") == 0
    assert program("many") == 0
