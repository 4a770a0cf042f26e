"""Exceptions: who catches them, what they bring along, and what is left behind when nobody does."""

import gc
from typing import Any

import pytest

import greenbeat as gb
from tests.support import Guest

# `$throw` throws, by its argument: 1 `$number` with 41, 2 `$pair` with 7 and 8, 3 `$nothing`; else it returns that.
THROWER = """
  (tag $number (export "number") (param i32))
  (tag $pair (export "pair") (param i64 i32))
  (tag $nothing)
  (func $throw (export "throw") (param i32) (result i32)
    (if (i32.eq (local.get 0) (i32.const 1)) (then (throw $number (i32.const 41))))
    (if (i32.eq (local.get 0) (i32.const 2)) (then (throw $pair (i64.const 7) (i32.const 8))))
    (if (i32.eq (local.get 0) (i32.const 3)) (then (throw $nothing)))
    (local.get 0))
  (func $deep (param i32 i32) (result i32)
    (if (result i32) (local.get 1)
      (then (i32.add (i32.const 1) (call $deep (local.get 0) (i32.sub (local.get 1) (i32.const 1)))))
      (else (call $throw (local.get 0)))))
"""

# What `(func (param i32) (result i32) BODY)` gives for 0, 1, 2 and 3; None where the exception gets out.
BODIES: dict[str, tuple[str, list[int | None]]] = {
    "one clause": (
        "(block $caught (result i32)"
        " (try_table (result i32) (catch $number $caught) (call $deep (local.get 0) (i32.const 5)))"
        " (return (i32.add (i32.const 1000))))",
        [1005, 41, None, None],
    ),
    "clauses in order, all of them": (
        "(local $b i32) (block $any (block $number (result i32) (block $pair (result i64 i32)"
        " (try_table (result i32) (catch $pair $pair) (catch $number $number) (catch_all $any)"
        " (call $deep (local.get 0) (i32.const 3))) return)"
        " (local.set $b) (i32.wrap_i64) (i32.add (local.get $b)) return) return) (i32.const -1)",
        [3, 41, 15, -1],
    ),
    "the first clause that fits": (
        "(block $first (result i32) (block $second (result i32)"
        " (try_table (result i32) (catch $number $first) (catch $number $second) (call $throw (local.get 0)))"
        " br $first)"
        " (i32.add (i32.const 100)))",
        [0, 41, None, None],
    ),
    "the inner one before the outer one": (
        "(block $outer (try_table (catch_all $outer)"
        " (block $inner (result i32) (try_table (result i32) (catch $number $inner) (call $throw (local.get 0))))"
        " (return (i32.add (i32.const 1))))) (i32.const -5)",
        [1, 42, -5, -5],
    ),
    "thrown in a landing": (
        "(block $outer (result i32) (try_table (result i32) (catch $number $outer)"
        " (block $inner (try_table (catch_all $inner) (return (call $throw (local.get 0)))))"
        " (throw $number (i32.const 9))))",
        [0, 9, 9, 9],
    ),
    "caught by reference and thrown again": (
        "(local $thrown exnref) (block $outer (result i32) (try_table (result i32) (catch $number $outer)"
        " (block $inner (result exnref)"
        " (try_table (catch_all_ref $inner) (return (call $throw (local.get 0)))) unreachable)"
        " (local.set $thrown) (throw_ref (local.get $thrown))))",
        [0, 41, None, None],
    ),
    "a label with the reference behind the values": (
        "(block $caught (result i32 exnref)"
        " (try_table (catch_ref $number $caught) (return (call $deep (local.get 0) (i32.const 2)))) unreachable) drop",
        [2, 41, None, None],
    ),
    "locals are as they were at the throw": (
        "(local $x i32) (block $caught (try_table (catch_all $caught) (local.set $x (i32.const 3))"
        " (drop (call $throw (local.get 0))) (local.set $x (i32.const 4)))) (local.get $x)",
        [4, 3, 3, 3],
    ),
    "operands below stay": (
        "(i32.const 500) (block $caught (result i32) (try_table (result i32) (catch $number $caught)"
        " (call $throw (local.get 0)))) i32.add",
        [500, 541, None, None],
    ),
    "the label is the function": (
        "(try_table (result i32) (catch $number 0) (call $throw (local.get 0))) (i32.add (i32.const 7))",
        [7, 41, None, None],
    ),
    "a loop's start": (
        "(local $n i32) (loop $again (local.set $n (i32.add (local.get $n) (i32.const 1)))"
        " (if (i32.lt_s (local.get $n) (i32.const 4))"
        " (then (try_table (catch_all $again) (drop (call $throw (local.get 0)))))))"
        " (local.get $n)",
        [1, 4, 4, 4],
    ),
    "what is called last is covered, what follows is not": (
        "(block $caught (try_table (catch_all $caught) (drop (call $throw (i32.const 0))))"
        " (return (call $throw (local.get 0))))"
        " (i32.const -1)",
        [0, None, None, None],
    ),
}


@pytest.mark.parametrize("what", BODIES)
def test_clauses(guest: Guest, what: str) -> None:
    body, expected = BODIES[what]
    program = guest(f'(module {THROWER} (func (export "f") (param i32) (result i32) {body}))')
    for argument, wanted in enumerate(expected):
        try:
            found: Any = program("f", argument)
        except gb.UncaughtException:
            found = None
        assert found == wanted, argument


def test_an_uncaught_exception_says_what_and_where() -> None:
    exports = gb.Module.from_wat(f"(module {THROWER})").instantiate().exports
    with pytest.raises(gb.UncaughtException) as caught:
        exports.throw(2)
    assert caught.value.values == (7, 8)
    assert [frame.function for frame in caught.value.backtrace] == ["throw"]
    assert str(caught.value).startswith("uncaught exception(7, 8)")
    assert exports.throw(5) == 5


def test_tags_of_another_instance() -> None:
    first = gb.Module.from_wat(f"(module {THROWER})").instantiate()
    second = gb.Module.from_wat("""
      (module
        (import "first" "throw" (func $throw (param i32) (result i32)))
        (import "first" "number" (tag $number (param i32)))
        (tag $same_type (param i32))
        (func (export "f") (param i32) (result i32)
          (block $other (result i32) (block $mine (result i32)
            (try_table (result i32) (catch $same_type $other) (catch $number $mine) (call $throw (local.get 0)))
            return)
          (return (i32.add (i32.const 1)))))
      )""").instantiate({"first": first.exports})
    assert [second.exports.f(n) for n in (0, 1, 4)] == [0, 42, 4]
    with pytest.raises(gb.UncaughtException):
        second.exports.f(2)
    with pytest.raises(gb.LinkError, match=r"\(tag \(param i32\)\)"):
        gb.Module.from_wat('(module (import "m" "t" (tag (param i32))))').instantiate({"m": {"t": first.exports.pair}})


def test_values_that_are_python_objects_live_as_long_as_the_exception() -> None:
    class Thing:
        pass

    exports = (
        gb.Module.from_wat("""
      (module
        (tag $object (param externref))
        (global $kept (mut exnref) (ref.null exn))
        (func (export "keep") (param externref)
          (block $caught (result exnref)
            (try_table (catch_all_ref $caught) (throw $object (local.get 0)))
            unreachable)
          (global.set $kept))
        (func (export "forget") (global.set $kept (ref.null exn)))
        (func (export "touch") (param externref))
        (func (export "take") (result externref)
          (block $caught (result externref)
            (try_table (catch $object $caught) (throw_ref (global.get $kept)))
            unreachable)))""")
        .instantiate()
        .exports
    )
    thing = Thing()
    exports.keep(thing)
    for _ in range(10_000):
        exports.touch(object())
    assert exports.take() is thing
    exports.forget()
    with pytest.raises(gb.Trap, match="null reference"):
        exports.take()


def test_exceptions_are_not_kept() -> None:
    instance = gb.Module.from_wat("""
      (module
        (tag $t (param i64))
        (func (export "run") (param i32)
          (loop $again
            (block $caught (result exnref)
              (try_table (catch_all_ref $caught) (throw $t (i64.const 1)))
              unreachable)
            drop
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))""").instantiate()
    instance.exports.run(1)
    gc.collect()
    before = len(gc.get_objects())
    instance.exports.run(200_000)
    gc.collect()
    assert len(gc.get_objects()) <= before + 100
