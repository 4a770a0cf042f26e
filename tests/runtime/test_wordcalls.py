"""Calls by words: the bits of NaNs come and go as they are, and what arithmetic makes of signalling ones is quiet."""

from __future__ import annotations

import ctypes
from itertools import product

import pytest

import greenbeat as gb
from greenbeat.api import bridge
from tests.support import MODES, Mode, guard_pages

SIGNALLING = {"f32": 0x7FA0_0001, "f64": 0x7FF4_0000_0000_0001}
QUIET = {"f32": 0x40_0000, "f64": 0x8_0000_0000_0000}
ONE = {"f32": 0x3F80_0000, "f64": 0x3FF0_0000_0000_0000}


def call(function: gb.Function, *words: int) -> list[int]:
    kind = function.type
    room = (ctypes.c_uint64 * (len(kind.params) + len(kind.results)))(*words)
    assert bridge.native.call_with_words(function, room) == 1
    return list(room[: len(kind.results)])


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_signalling_nans_pass_through(kind: str, mode: Mode) -> None:
    """Through locals, globals, memory, blocks, select, calls and several results: moving a float is no arithmetic."""
    with guard_pages(mode.guarded):
        limits = gb.Limits(fuel=10**6 if mode.metered else None)
        exports = (
            gb.Module.from_wat(f"""(module (memory 1) (global $g (mut {kind}) ({kind}.const 0))
          (func $id (param {kind}) (result {kind}) (local.get 0))
          (func (export "f") (param {kind}) (result {kind} i32 {kind} {kind} {kind} {kind}) (local {kind})
            (global.set $g (local.get 0)) ({kind}.store (i32.const 8) (global.get $g))
            ({kind}.load (i32.const 8))
            (i32.const -1)
            (block (result {kind}) (local.tee 1 (local.get 0)) (br_if 0 (i32.const 1)))
            (call $id (local.get 1))
            (select (local.get 1) ({kind}.const 0) (i32.const 1))
            ({kind}.neg ({kind}.neg (local.get 0)))))""")
            .instantiate(limits=limits)
            .exports
        )
        nan = SIGNALLING[kind]
        assert call(exports.f, nan) == [nan, 0xFFFF_FFFF, nan, nan, nan, nan]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_arithmetic_makes_nans_quiet(kind: str) -> None:
    binary = [f"{kind}.{name}" for name in ("add", "sub", "mul", "div", "min", "max")]
    unary = [f"{kind}.{name}" for name in ("ceil", "floor", "trunc", "nearest", "sqrt")]
    two, one = "(local.get 0) (local.get 1)", "(local.get 0)"
    functions = [
        f'(func (export "{name}") (param {kind} {kind}) (result {kind}) ({name} {operands}))'
        for names, operands in ((binary, two), (unary, one))
        for name in names
    ]
    exports = gb.Module.from_wat(f"(module {' '.join(functions)})").instantiate().exports
    nan, quiet, one_bits = SIGNALLING[kind], QUIET[kind], ONE[kind]
    for name, arguments in product(binary, ((nan, one_bits), (one_bits, nan), (nan, nan), (nan | quiet, nan))):
        (result,) = call(exports[name], *arguments)
        assert result & (nan | quiet) & ~1 >= quiet and result & quiet, name
    for name in unary:
        assert call(exports[name], nan, 0) == [nan | quiet], name


def test_minimum_and_maximum_of_zeros() -> None:
    exports = (
        gb.Module.from_wat("""(module
      (func (export "min") (param f32 f32) (result f32) (f32.min (local.get 0) (local.get 1)))
      (func (export "max") (param f32 f32) (result f32) (f32.max (local.get 0) (local.get 1))))""")
        .instantiate()
        .exports
    )
    plus, minus = 0, 1 << 31
    for arguments in ((plus, minus), (minus, plus)):
        assert call(exports.min, *arguments) == [minus]
        assert call(exports.max, *arguments) == [plus]


def test_what_goes_wrong_is_raised() -> None:
    exports = (
        gb.Module.from_wat("""(module (func (export "f") (param i32) unreachable)
      (func $g (export "g") (result i32) (call $g)))""")
        .instantiate()
        .exports
    )
    with pytest.raises(gb.Trap, match="unreachable"):
        call(exports.f, 1)
    with pytest.raises(gb.Exhausted):
        call(exports.g)


def test_malformed_and_invalid_modules_are_told_apart() -> None:
    for text in ("(module (func (i32.foo)))", "(modul"):
        with pytest.raises(gb.CompileError) as caught:
            gb.Module.from_wat(text)
        assert caught.value.malformed
    with pytest.raises(gb.CompileError) as caught:
        gb.Module(b"\0asm\1\0\0\0\1\1")
    assert caught.value.malformed
    with pytest.raises(gb.CompileError) as caught:
        gb.Module.from_wat("(module (func (result i32)))")
    assert not caught.value.malformed
