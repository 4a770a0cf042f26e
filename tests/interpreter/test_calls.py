"""Calls: arguments from everywhere, across instances, tail calls, recursion, and frames of unusual sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import greenbeat as gb
from tests.support import Guest, Mode, outcome

MILLION = 1_000_000


def deep(guest: Guest) -> int:
    """How deep to go: far beyond any stack, and less far where a call is made of many slices."""
    mode: Mode | None = getattr(guest, "mode", None)
    return MILLION // 20 if mode is not None and mode.sliced else MILLION


def test_arguments_from_everywhere(guest: Guest) -> None:
    program = guest("""(module
      (func $three (param i32 i32 i32) (result i32)
        (i32.mul (local.get 0) (i32.const 100))
        (i32.add (i32.mul (local.get 1) (i32.const 10)) (local.get 2)) i32.add)
      (func (export "locals") (param i32 i32) (result i32) (call $three (local.get 1) (local.get 0) (local.get 1)))
      (func (export "constants") (result i32) (call $three (i32.const 1) (i32.const 2) (i32.const 3)))
      (func (export "last is computed") (param i32 i32) (result i32)
        (call $three (local.get 0) (i32.const 2) (i32.add (local.get 0) (local.get 1))))
      (func (export "last is loaded") (param i32) (result i32)
        (call $three (local.get 0) (i32.const 2) (i32.load (local.get 0))))
      (func (export "first is computed") (param i32 i32) (result i32)
        (call $three (i32.add (local.get 0) (local.get 1)) (local.get 1) (i32.const 3)))
      (func (export "all are computed") (param i32 i32) (result i32)
        (call $three (i32.sub (local.get 0) (local.get 1)) (i32.add (local.get 0) (i32.const 0))
          (i32.mul (local.get 1) (local.get 1))))
      (func (export "calls in arguments") (param i32) (result i32)
        (call $three (call $inc (local.get 0)) (call $inc (call $inc (local.get 0))) (call $inc (i32.const 6))))
      (func (export "values wait below") (param i32) (result i32)
        (i32.add (local.get 0) (i32.const 1)) local.get 0 (local.set 0 (i32.const 5))
        (call $three (local.get 0) (i32.const 0) (local.get 0)) i32.add i32.add)
      (func (export "last argument changed by a tee") (param i32) (result i32)
        (call $three (local.get 0) (local.tee 0 (i32.const 7)) (local.get 0)))
      (func (export "result is an argument") (param i32) (result i32)
        (call $three (local.get 0) (local.get 0) (call $inc (local.get 0))))
      (func $inc (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
      (memory 1) (data (i32.const 0) "\\04\\00\\00\\00\\09"))""")
    assert program("locals", 1, 2) == 212
    assert program("constants") == 123
    assert program("last is computed", 1, 2) == 123
    assert program("last is loaded", 4) == 429
    assert program("first is computed", 1, 2) == 323
    assert program("all are computed", 3, 2) == 134
    assert program("calls in arguments", 0) == 127
    assert program("values wait below", 1) == 2 + 1 + 505
    assert program("last argument changed by a tee", 1) == 177
    assert program("result is an argument", 1) == 112


def test_arguments_of_all_types(guest: Guest) -> None:
    program = guest("""(module
      (func $f (param f32 i64 f64 i32) (result i32 f64 i64 f32)
        (i32.add (local.get 3) (i32.const 1)) (f64.neg (local.get 2))
        (i64.sub (local.get 1) (i64.const 1)) (local.get 0))
      (func (export "f") (param f32 i64 f64 i32) (result i32 f64 i64 f32)
        (call $f (f32.add (local.get 0) (f32.const 1)) (local.get 1) (f64.const 2.5) (i32.wrap_i64 (local.get 1)))))""")
    assert program("f", 0.5, 41, 9.0, 7) == (42, -2.5, 40, 1.5)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 1000])
def test_many_parameters_and_results(guest: Guest, count: int) -> None:
    """Results may be more than parameters, and the other way round: they share the frame's first slots."""
    gets = " ".join(f"(local.get {index})" for index in range(count))
    constants = " ".join(f"(i32.const {index})" for index in range(count))
    program = guest(f"""(module
      (func $widen (param i32) (result {"i32 " * count}) {constants})
      (func $narrow (param {"i32 " * count}) (result i32) {gets} {"i32.add " * (count - 1)})
      (func $echo (param {"i32 " * count}) (result {"i32 " * count}) {gets})
      (func (export "f") (param i32) (result i32)
        (i32.add (local.get 0) (call $narrow (call $echo (call $widen (i32.const 0)))))))""")
    assert program("f", 5) == 5 + count * (count - 1) // 2


# ---------------------------------------------------------------- other instances and the host

LIBRARY = """(module
  (memory 1) (global $calls (mut i32) (i32.const 0))
  (table (export "table") 4 4 funcref) (elem (i32.const 0) $add $swap)
  (type $binary (func (param i32 i32) (result i32))) (type $pair (func (param i32 i64) (result i64 i32)))
  (func $add (export "add") (param i32 i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.store (i32.const 0) (global.get $calls))
    (i32.add (local.get 0) (local.get 1)))
  (func $swap (export "swap") (param i32 i64) (result i64 i32) (local.get 1) (local.get 0))
  (func (export "fail") (param i32) unreachable)
  (func (export "calls") (result i32) (i32.load (i32.const 0))))"""
USER = """(module
  (import "library" "table" (table 4 funcref))
  (import "library" "add" (func $add (param i32 i32) (result i32)))
  (import "library" "swap" (func $swap (param i32 i64) (result i64 i32)))
  (import "library" "fail" (func $fail (param i32)))
  (import "host" "twice" (func $twice (param i32) (result i32)))
  (type $binary (func (param i32 i32) (result i32))) (type $pair (func (param i32 i64) (result i64 i32)))
  (memory 1) (data (i32.const 0) "\\63")
  (elem (i32.const 2) $own) (func $own (param i32 i32) (result i32) (i32.sub (local.get 0) (local.get 1)))
  (func (export "direct") (param i32) (result i32)
    (i32.add (i32.load (i32.const 0)) (call $add (local.get 0) (i32.add (local.get 0) (i32.const 1)))))
  (func (export "pair") (param i32) (result i64 i32) (call $swap (local.get 0) (i64.extend_i32_u (local.get 0))))
  (func (export "indirect") (param i32 i32) (result i32)
    (i32.mul (i32.load8_u (i32.const 0))
      (call_indirect (type $binary) (local.get 1) (i32.const 1) (local.get 0))))
  (func (export "indirect from the accumulator") (param i32 i32) (result i32)
    (call_indirect (type $binary) (local.get 1) (i32.const 1) (i32.add (local.get 0) (i32.const 0))))
  (func (export "indirect constant") (param i32) (result i32)
    (call_indirect (type $binary) (local.get 0) (i32.const 1) (i32.const 2)))
  (func (export "host") (param i32) (result i32) (i32.add (call $twice (local.get 0)) (i32.load (i32.const 0))))
  (func (export "tail to the host") (param i32) (result i32) (return_call $twice (i32.add (local.get 0) (i32.const 1))))
  (func (export "tail") (param i64 i32) (result i32) (return_call $add (local.get 1) (i32.wrap_i64 (local.get 0))))
  (func (export "fail") (call $fail (i32.const 1)))
  (func (export "tail into failure") (return_call $fail (i32.const 1))))"""


def test_calls_across_instances(guest: Guest) -> None:
    library = guest(LIBRARY)
    program = guest(USER, {"library": library, "host": {"twice": lambda value: 2 * value}})
    assert program("direct", 5) == 99 + 11
    assert program("pair", 6) == (6, 6)
    assert program("indirect", 0, 4) == 99 * 5
    assert program("indirect", 2, 4) == 99 * 3
    assert program("indirect from the accumulator", 0, 4) == 5
    assert program("indirect constant", 9) == 8
    assert outcome(program, "indirect", 1, 4) == "indirect call type mismatch"
    assert outcome(program, "indirect", 3, 4) == "uninitialized element"
    assert outcome(program, "indirect", 4, 4) in ("undefined element", "out of bounds table access")
    assert outcome(program, "indirect", -1, 4) in ("undefined element", "out of bounds table access")
    assert program("host", 4) == 107
    assert program("tail to the host", 4) == 10
    assert program("tail", 30, 4) == 34
    assert outcome(program, "fail") == outcome(program, "tail into failure") == "unreachable"
    assert library("calls") == 4


def test_references_to_functions_of_other_instances(guest: Guest) -> None:
    library = guest("""(module (memory 1) (data (i32.const 0) "\\07")
      (func (export "get") (param i32) (result i32) (i32.add (local.get 0) (i32.load (i32.const 0)))))""")
    program = guest(
        """(module (import "library" "get" (func $get (param i32) (result i32))) (memory 1)
          (type $t (func (param i32) (result i32))) (elem declare func $get $own)
          (func $own (param i32) (result i32) (i32.load (i32.const 0)))
          (func (export "call") (param i32 i32) (result i32)
            (call_ref $t (local.get 1)
              (if (result (ref $t)) (local.get 0) (then (ref.func $get)) (else (ref.func $own)))))
          (func (export "tail") (param i32 i32) (result i32)
            (return_call_ref $t (local.get 1)
              (if (result (ref $t)) (local.get 0) (then (ref.func $get)) (else (ref.func $own)))))
          (func (export "null") (result i32) (call_ref $t (i32.const 0) (ref.null $t))))""",
        {"library": library},
    )
    assert [program("call", which, 5) for which in (0, 1)] == [0, 12]
    assert [program("tail", which, 5) for which in (0, 1)] == [0, 12]
    assert outcome(program, "null") == "null reference"


def test_a_grown_memory_is_seen_behind_a_call(guest: Guest) -> None:
    """Whoever grew it: a function of the module, or another instance that shares the memory."""
    owner = guest("""(module (memory (export "memory") 1 10)
      (func (export "grow") (result i32) (memory.grow (i32.const 1))))""")
    program = guest(
        """(module (import "owner" "memory" (memory 1)) (import "owner" "grow" (func $theirs (result i32)))
          (func $own (result i32) (memory.grow (i32.const 1)))
          (func (export "own") (result i32)
            (i32.store8 (i32.mul (i32.add (call $own) (i32.const 1)) (i32.const 65535)) (i32.const 5)) (memory.size))
          (func (export "theirs") (result i32)
            (i32.store8 (i32.mul (i32.add (call $theirs) (i32.const 1)) (i32.const 65535)) (i32.const 5)) (memory.size))
          (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0))))""",
        {"owner": owner},
    )
    assert outcome(program, "load", 65536) == "out of bounds memory access"
    assert program("theirs") == 2
    assert program("own") == 3
    assert program("load", 3 * 65536 - 1) == 0
    assert outcome(program, "load", 3 * 65536) == "out of bounds memory access"


# ---------------------------------------------------------------- tail calls

TAIL = """(module
  (table 3 funcref) (elem (i32.const 0) $odd $even $wide)
  (type $t (func (param i32) (result i32))) (type $w (func (param i64 i64 i64 i64 i64 i32) (result i32)))
  (func $even (export "even") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 1))
      (else (return_call $odd (i32.sub (local.get 0) (i32.const 1))))))
  (func $odd (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 0))
      (else (return_call $even (i32.sub (local.get 0) (i32.const 1))))))
  (func $wide (export "wide") (param i64 i64 i64 i64 i64 i32) (result i32) (local i32 i32)
    (if (i32.eqz (local.get 5)) (then (return (i32.wrap_i64 (i64.add (local.get 0) (local.get 4))))))
    (return_call $narrow (i32.sub (local.get 5) (i32.const 1)) (local.get 4)))
  (func $narrow (param i32 i64) (result i32) (local i64)
    (return_call $wide (i64.add (local.get 1) (i64.const 1)) (local.get 2) (local.get 2) (local.get 2)
      (i64.add (local.get 1) (i64.const 2)) (local.get 0)))
  (func $indirect (export "indirect") (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 77))))
    (return_call_indirect (type $w) (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5)
      (i32.sub (local.get 0) (i32.const 1)) (i32.const 2)))
  (func (export "non-tail around it") (param i32) (result i32)
    (i32.add (call $even (local.get 0)) (i32.mul (i32.const 10) (call $odd (local.get 0)))))
  (func $void (export "void") (param i32)
    (if (local.get 0) (then (return_call $void (i32.sub (local.get 0) (i32.const 1)))))))
"""


def test_tail_calls_take_no_stack(guest: Guest) -> None:
    program, count = guest(TAIL), deep(guest)
    assert program("even", count) == 1
    assert program("even", count + 1) == 0
    assert program("void", count) is None
    assert program("non-tail around it", count + 1) == 10


def test_tail_calls_change_the_number_of_parameters(guest: Guest) -> None:
    program, count = guest(TAIL), deep(guest)
    assert program("wide", 1, 2, 3, 4, 5, 0) == 6
    assert program("wide", 1, 2, 3, 4, 5, 1) == 6 + 7
    assert program("wide", 0, 0, 0, 0, 0, count) == 4 * count - 1
    assert program("indirect", 1) == 6


EVEN = """(module (import "odd" "odd" (func $odd (param i64) (result i64 i64))) (memory 1)
  (func $even (export "even") (param i64) (result i64 i64)
    (if (i64.eqz (local.get 0)) (then (return (i64.const 1) (i64.load (i32.const 0)))))
    (return_call $odd (i64.sub (local.get 0) (i64.const 1))))
  (func (export "from within") (param i32 i64 i64) (result i64)
    (i64.store (i32.const 0) (i64.const 30))
    (call $even (local.get 1)) i64.add (i64.load (i32.const 0)) i64.add)
)"""
ODD = """(module (table (export "table") 1 funcref) (memory 1) (data (i32.const 0) "\\05")
  (type $even (func (param i64) (result i64 i64)))
  (func $odd (export "odd") (param i64) (result i64 i64) (local i64 i64 i64)
    (if (i64.eqz (local.get 0)) (then (return (i64.const 0) (i64.load (i32.const 0)))))
    (return_call_indirect (type $even) (i64.sub (local.get 0) (i64.const 1)) (i32.const 0))))"""
PUT = """(module
  (import "odd" "table" (table 1 funcref)) (import "even" "even" (func $even (param i64) (result i64 i64)))
  (elem (i32.const 0) $even))"""


def test_tail_calls_across_instances_take_no_stack(guest: Guest) -> None:
    odd = guest(ODD)
    even = guest(EVEN, {"odd": odd})
    guest(PUT, {"odd": odd, "even": even})
    count = deep(guest)
    assert even("even", count) == (1, 0)
    assert even("even", count + 1) == (0, 5)
    assert odd("odd", count) == (0, 5)
    assert even("from within", 1, count, 2) == 1 + 30 + 30
    assert even("from within", 1, count + 1, 2) == 0 + 5 + 30


# ---------------------------------------------------------------- stacks

RECURSIONS = {
    "direct": "(func $f (export \"f\") (call $f))",
    "with a result": '(func $f (export "f") (result i32) (i32.add (call $f) (i32.const 1)))',
    "mutual": '(func $f (export "f") (call $g (i32.const 1))) (func $g (param i32) (call $f))',
    "indirect": '(table 1 funcref) (elem (i32.const 0) $f) (func $f (export "f") (call_indirect (i32.const 0)))',
    "by reference": '(type $t (func)) (elem declare func $f) (func $f (export "f") (call_ref $t (ref.func $f)))',
    "large frames": f'(func $f (export "f") (local {"i64 " * 5000}) (call $f))',
}  # fmt: skip


@pytest.mark.parametrize("name", RECURSIONS)
def test_endless_recursion_exhausts_the_stack(guest: Guest, name: str) -> None:
    program = guest(f'(module {RECURSIONS[name]} (func (export "fine") (result i32) (i32.const 3)))')
    for _ in range(3):
        assert outcome(program, "f") == "exhausted: stack"
    assert program("fine") == 3


def test_endless_recursion_across_instances(guest: Guest) -> None:
    first = guest("""(module (table (export "table") 1 funcref) (type $t (func (param i32) (result i32)))
      (func (export "f") (param i32) (result i32)
        (i32.add (i32.const 1) (call_indirect (type $t) (local.get 0) (i32.const 0)))))""")
    second = guest(
        """(module (import "first" "table" (table 1 funcref)) (import "first" "f" (func $f (param i32) (result i32)))
          (elem (i32.const 0) $g)
          (func $g (export "g") (param i32) (result i32)
            (if (result i32) (local.get 0)
              (then (i32.add (i32.const 1) (call $f (i32.sub (local.get 0) (i32.const 1)))))
              (else (i32.const 0)))))""",
        {"first": first},
    )
    assert second("g", 1000) == 2000
    assert outcome(second, "g", -1) == "exhausted: stack"
    assert second("g", 1000) == 2000


@pytest.mark.parametrize("locals_", [1000, 2046, 2047, 2048, 2100, 4000, 20_000, 50_000])
def test_frames_of_any_size(guest: Guest, locals_: int) -> None:
    """A frame beyond the margin looks for itself whether it fits."""
    if locals_ == 50_000 and not guest.is_greenbeat:
        locals_ = 49_999
    last = locals_ - 1
    program = guest(f"""(module
      (func $f (export "f") (param i32) (result i32) (local {"i32 " * (locals_ - 1)})
        (local.set {last} (i32.add (local.get {last}) (local.get 0)))
        (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
        (i32.add (local.get {last}) (call $f (i32.sub (local.get 0) (i32.const 1))))))""")
    assert program("f", 1) == 1
    assert outcome(program, "f", 1_000_000) == "exhausted: stack"
    assert program("f", 1) == 1


@pytest.mark.parametrize("count", [100, 3000, 30_000])
@pytest.mark.parametrize(
    "operand",
    ["(i32.const {0})", "(local.get 0)", "(i32.add (local.get 0) (i32.const {0}))", "(call $id (local.get 0))"],
)
def test_deep_operand_stacks(guest: Guest, count: int, operand: str) -> None:
    """Constants and locals wait on the operand stack without a slot until a call needs them in place."""
    operands = " ".join(operand.format(number) for number in range(count))
    program = guest(f"""(module
      (func $id (param i32) (result i32) (local.get 0))
      (func (export "f") (param i32) (result i32)
        {operands} (call $id (i32.const 1)) (local.set 0 (i32.const 9)) {"i32.add " * count}))""")
    total = {"(i": count * (count - 1) // 2, "(l": 3 * count, "(c": 3 * count}[operand[:2]]
    if operand.startswith("(i32.add"):
        total += 3 * count
    assert program("f", 3) == total + 1


def test_large_frames_keep_to_the_limit() -> None:
    """A frame counts for the stack's limit, however large it is and however it was called."""
    for count in (100, 1000, 8000, 30_000):
        operands = " ".join(f"(i32.add (local.get 0) (i32.const {number}))" for number in range(count))
        module = gb.Module.from_wat(f"""(module (func $id (param i32) (result i32) (local.get 0))
          (func (export "f") (param i32) (result i32) {operands} (call $id (i32.const 1)) {"i32.add " * count}))""")
        for stack in (4096, 65536, 1 << 20):
            function = module.instantiate(limits=gb.Limits(stack=stack)).exports.f
            for call in (function, resumed(function)):
                if 8 * count > stack:
                    with pytest.raises(gb.Exhausted, match="call stack exhausted"):
                        call(0)
                else:
                    assert call(0) == count * (count - 1) // 2 + 1


def resumed(function: gb.Function) -> Callable[[int], Any]:
    """The function, called by a resumable call."""

    def run(argument: int) -> Any:
        call = function.start(argument)
        call.resume()
        return call.result

    return run
