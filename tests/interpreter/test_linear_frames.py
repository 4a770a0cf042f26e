"""Frames in linear memory, as compilers write them, and values that go from memory to memory, calls and returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import product

import pytest

from tests.support import Guest, outcome

TOP, SIZE = 4096, 48


@dataclass(frozen=True)
class Shape:
    """A function with a frame: how many parameters, zeroed locals around the frame's, and spills it has."""

    params: int
    before: int
    after: int
    spills: int
    sets: bool
    down: str
    assign: str
    result: str

    @property
    def name(self) -> str:
        return " ".join(map(str, astuple(self)))

    def text(self) -> str:
        frame = self.params + self.before
        others = [i for i in range(self.params, frame + 1 + self.after) if i != frame]
        moved = SIZE if self.down == "sub" else -SIZE
        pointer = f"(i32.{self.down} (global.get $sp) (i32.const {moved}))"
        start = f"{pointer} local.{self.assign} {frame}"
        if self.sets:
            start += f" {'' if self.assign == 'tee' else f'local.get {frame}'} global.set $sp"
        elif self.assign == "tee":
            start += " drop"
        stores = [f"(i32.store offset={4 * i} (local.get {frame}) (local.get {i}))" for i in range(self.spills)]
        # All that should be zero is seen in the result.
        zeros = [f"(i32.store offset=32 (local.get {frame}) (i32.const 0))"] + [
            f"(i32.store offset=32 (local.get {frame})"
            f" (i32.or (i32.load offset=32 (local.get {frame})) (local.get {i})))"
            for i in others
        ]
        end = f"(global.set $sp (i32.add (local.get {frame}) (i32.const {SIZE})))" if self.sets else ""
        sums = [f"(i32.load offset={4 * i} (local.get {frame})) i32.add" for i in range(self.spills)]
        seen = f"(i32.load offset=32 (local.get {frame})) {' '.join(sums)}"
        body = {
            "load": f"{seen} local.set {frame + 1} (i32.store offset=36 (local.get {frame}) (local.get {frame + 1}))"
            f" (i32.load offset=36 (local.get {frame})) {end}",
            "local": f"{seen} local.set {frame + 1} {end} local.get {frame + 1}",
            "loaded local": f"{seen} local.set {frame + 1} (i32.store offset=36 (local.get {frame})"
            f" (local.get {frame + 1})) (local.set {frame + 1} (i32.load offset=36 (local.get {frame}))) {end}"
            f" local.get {frame + 1}",
            "i64": f"{seen} i64.extend_i32_s {end}",
            "f64": f"{seen} f64.convert_i32_s {end}",
            "nothing": f"{seen} local.set {frame + 1} (i32.store (i32.const 8) (local.get {frame + 1})) {end}",
        }[self.result]
        kind = {"nothing": "", "i64": "(result i64)", "f64": "(result f64)"}.get(self.result, "(result i32)")
        return (
            f'(func (export "{self.name}") {"(param i32)" * self.params} {kind}'
            f" {'(local i32)' * (self.before + 1 + self.after)} {start} {' '.join(stores)} {' '.join(zeros)} {body})"
        )


def shapes() -> Iterator[Shape]:
    """Every start with one end, every end with one start."""
    for params, before, after, sets, (down, assign) in product(
        (1, 2, 4, 6), (0, 2, 5), (1, 2, 9), (False, True), (("sub", "tee"), ("add", "set"))
    ):
        yield Shape(params, before, after, min(params, 3), sets, down, assign, "load")
    for result, params, sets in product(
        ("load", "local", "loaded local", "i64", "f64", "nothing"), (2, 5), (False, True)
    ):
        yield Shape(params, 0, 1, 1, sets, "sub", "tee", result)


def test_frames(guest: Guest) -> None:
    each = list({shape.name: shape for shape in shapes()}.values())
    program = guest(f"""(module (memory (export "memory") 1) (global $sp (mut i32) (i32.const {TOP}))
      {" ".join(shape.text() for shape in each)}
      (func (export "sp") (result i32) (global.get $sp))
      (func (export "result") (result i32) (i32.load (i32.const 8)))
      (func (export "dirty") (result i32) {"(local i32)" * 16}
        {" ".join(f"(local.set {i} (i32.const -1))" for i in range(16))} (i32.add (local.get 0) (local.get 15))))""")
    for shape in each:
        assert program("dirty") == -2
        arguments = [10**i for i in range(shape.params)]
        found = program(shape.name, *arguments)
        if shape.result == "nothing":
            found = program("result")
        assert found == sum(arguments[: shape.spills]), shape
        assert program("sp") == TOP, shape


MAKERS = {
    "i32": [
        *(f"i32.{n}" for n in ("add", "sub", "mul", "and", "or", "xor", "shl", "shr_u", "shr_s", "rotl")),
    ],
    "i64": [*(f"i64.{n}" for n in ("add", "sub", "mul", "and", "or", "xor", "shl", "shr_u", "rotl"))],
    "f32": ["f32.add", "f32.sub", "f32.mul"],
    "f64": ["f64.add", "f64.sub", "f64.mul"],
}
PLAIN = {"i32": "i32.popcnt", "i64": "i64.popcnt", "f32": "f32.neg", "f64": "f64.neg"}
STORES = {
    "i32": ["i32.store", "i32.store8", "i32.store16"],
    "i64": ["i64.store", "i64.store8", "i64.store32"],
    "f32": ["f32.store"],
    "f64": ["f64.store"],
}
LOADS = {
    "i32": ["i32.load", "i32.load8_u", "i32.load8_s", "i32.load16_u", "i32.load16_s"],
    "i64": ["i64.load", "i64.load32_u"],
    "f32": ["f32.load"],
    "f64": ["f64.load"],
}


def values(kind: str) -> Iterator[str]:
    """Expressions of a type, of a local 1 of that type and an address in local 0."""
    for name in MAKERS[kind]:
        for left, right in product(
            ("(local.get 1)", f"({PLAIN[kind]} (local.get 1))"), ("(local.get 1)", f"({kind}.const 77)")
        ):
            yield f"({name} {left} {right})"
    for name, address in product(LOADS[kind], ("(local.get 0)", "(i32.and (i32.popcnt (local.get 0)) (i32.const 1))")):
        yield f"({name} offset=64 {address})"
        if kind == "i32":
            for user in ("add", "or", "and", "shl", "shr_u", "sub"):
                yield f"(i32.{user} ({name} offset=64 {address}) (i32.const 3))"
            yield f"(i32.add ({name} offset=64 {address}) (local.get 1))"
            yield f"(i32.load offset=64 ({name} offset=128 {address}))"
    if kind == "i32":
        yield "(global.get $g)"
        yield "(i32.add (global.get $g) (i32.const 5))"
        yield "(i32.wrap_i64 (i64.extend_i32_u (local.get 1)))"


@pytest.mark.parametrize("kind", MAKERS)
def test_values_are_stored_returned_and_passed_as_when_they_take_a_detour(guest: Guest, kind: str) -> None:
    """A call between what makes a value and what uses it keeps them apart."""
    functions, names = [], []
    as_i64 = {
        "i32": "(i64.extend_i32_u",
        "i64": "",
        "f32": "(i64.extend_i32_u (i32.reinterpret_f32",
        "f64": "(i64.reinterpret_f64",
    }
    closed = ")" * as_i64[kind].count("(")
    for number, value in enumerate(values(kind)):
        kept = f"(call $same {value})"
        signature = f"(param i32 {kind})"
        for store in STORES[kind]:
            whole = "i64.load offset=256 (local.get 0)"
            clear = "(i64.store offset=256 (local.get 0) (i64.const 0))"
            for label, given in (("direct", value), ("detour", kept)):
                functions.append(
                    f'(func (export "{store} {number} {label}") {signature} (result i64) {clear}'
                    f" ({store} offset=256 (local.get 0) {given}) ({whole}))"
                )
            names.append(f"{store} {number}")
        for label, given in (("direct", value), ("detour", kept)):
            functions += [
                f"(func $value{number}{label} {signature} (result {kind}) {given})",
                f'(func (export "return {number} {label}") {signature} (result i64)'
                f" {as_i64[kind]} (call $value{number}{label} (local.get 0) (local.get 1)){closed})",
                f'(func (export "call {number} {label}") {signature} (result i64)'
                f" {as_i64[kind]} (call $same {given}){closed})",
            ]
        names += [f"return {number}", f"call {number}"]
    program = guest(f"""(module (memory 1) (global $g (mut i32) (i32.const 1234))
      (data (i32.const 64) "\\11\\22\\33\\c4\\05\\66\\77\\88\\99\\aa\\bb\\cc")
      (data (i32.const 128) "\\04\\00\\00\\00\\08")
      (func $same (param {kind}) (result {kind}) (local.get 0)) {" ".join(functions)})""")
    argument = 0x7E57 if kind[0] == "i" else 1.5
    for name in names:
        assert program(f"{name} direct", 0, argument) == program(f"{name} detour", 0, argument), name


def test_a_constant_is_the_last_argument(guest: Guest) -> None:
    program = guest("""(module
      (func $i32 (param i32 i32) (result i32) (i32.sub (local.get 0) (local.get 1)))
      (func $i64 (param i64) (result i64) (i64.rotl (local.get 0) (i64.const 4)))
      (func $f64 (param i32 f64) (result f64) (f64.mul (local.get 1) (f64.convert_i32_s (local.get 0))))
      (func $many (param i32 i32 i32 i32 i32 i32) (result i32) (i32.add (local.get 0) (local.get 5)))
      (func (export "i32") (result i32) (call $i32 (i32.const 5) (i32.const -7)))
      (func (export "i64") (result i64) (call $i64 (i64.const 0x1234567812345678)))
      (func (export "f64") (param i32) (result f64) (call $f64 (local.get 0) (f64.const 1.25)))
      (func (export "many") (param i32) (result i32)
        (call $many (local.get 0) (i32.const 2) (i32.const 3) (i32.const 4) (i32.const 5) (i32.const -6))))""")
    assert program("i32") == 12
    assert program("i64") == 0x2345678123456781
    assert program("f64", 4) == 5.0
    assert program("many", 8) == 2


def test_nothing_is_changed_by_a_frame_that_is_outside(guest: Guest) -> None:
    """The trap of the first store comes after the global was set, that of the second after the first store."""
    program = guest("""(module (memory 1) (global $sp (mut i32) (i32.const 16))
      (func (export "first") (param i32) (local i32)
        (global.set $sp (local.tee 1 (i32.sub (global.get $sp) (i32.const 32))))
        (i32.store offset=12 (local.get 1) (local.get 0)))
      (func (export "second") (param i32) (local i32)
        (global.set $sp (local.tee 1 (i32.sub (global.get $sp) (i32.const 32))))
        (i32.store offset=12 (local.get 1) (local.get 0)) (i32.store offset=65535 (local.get 1) (local.get 0)))
      (func (export "sp") (result i32) (global.get $sp))
      (func (export "reset") (param i32) (global.set $sp (local.get 0)))
      (func (export "at") (param i32) (result i32) (i32.load (local.get 0))))""")
    assert outcome(program, "first", 7) == "out of bounds memory access"
    assert program("sp") == -16
    program("reset", 64)
    assert outcome(program, "second", 9) == "out of bounds memory access"
    assert (program("sp"), program("at", 44)) == (32, 9)
