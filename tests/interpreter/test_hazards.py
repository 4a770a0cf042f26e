"""Functions that were once translated wrongly; random code found them (see `tests/fuzz`)."""

from __future__ import annotations

from tests.support import Guest


def test_a_copied_value_is_in_its_slot(guest: Guest) -> None:
    """A copy reads the slot of a value that its next reader takes from the accumulator: it must have been written."""
    program = guest("""(module
      (func (export "f") (param i32) (result i32) (local i32)
        (loop (result i32 i32) (i32.add (local.get 0) (i32.const 1)) (i32.const 105))
        drop local.tee 1 i32.const 2 i32.mul local.get 1 i32.add)
      (func (export "g") (param f64) (result f64) (local f64)
        (block (result f64 f64) (f64.add (local.get 0) (f64.const 1)) (f64.const 105))
        drop local.tee 1 f64.const 2 f64.mul local.get 1 f64.add))""")
    assert program("f", 5) == 18
    assert program("g", 5.0) == 18.0


def test_a_constant_compared_with_what_was_just_made(guest: Guest) -> None:
    """The constant is on the left: in the branch that does both it would have been looked for in a slot."""
    program = guest("""(module
      (func (export "i32") (param i32 i32) (result i32)
        (if (result i32) (i32.lt_s (i32.const 5) (i32.add (local.get 0) (local.get 1)))
          (then (i32.const 1)) (else (i32.const 2))))
      (func (export "i64") (param i64 i64) (result i32)
        (if (result i32) (i64.eq (i64.const 5) (i64.sub (local.get 0) (local.get 1)))
          (then (i32.const 1)) (else (i32.const 2)))))""")
    assert [program("i32", 1, each) for each in (3, 4, 5)] == [2, 2, 1]
    assert [program("i64", 9, each) for each in (3, 4, 5)] == [2, 1, 2]


def test_a_stepped_local_compared_with_itself(guest: Guest) -> None:
    """Both sides are the new value: the branch that does step and comparison must not read the old one."""
    program = guest("""(module
      (func (export "ne") (param i32) (result i32)
        (if (result i32) (i32.ne (local.tee 0 (i32.add (local.get 0) (i32.const -1))) (local.get 0))
          (then (i32.const 1)) (else (i32.const 2))))
      (func (export "le") (param i64) (result i32)
        (block (br_if 0 (i64.lt_u (local.tee 0 (i64.add (local.get 0) (i64.const 1))) (local.get 0)))
          (return (i32.const 2)))
        (i32.const 1)))""")
    assert program("ne", 5) == 2
    assert program("le", -1) == 2
