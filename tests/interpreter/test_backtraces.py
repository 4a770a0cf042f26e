"""A trap says where it was: function, and byte offset of the instruction, for each frame."""

import pytest

import greenbeat as gb
from greenbeat.wasm.text import assemble

MODULE = """
(module
  (import "host" "raise" (func $raise))
  (memory 1)
  (func $load (param i32) (result i32)
    (i32.add (i32.const 5) (i32.load (i32.add (local.get 0) (i32.const 8)))))
  (func $store (param i32) (i32.store offset=4 (local.get 0) (i32.const 5)))
  (func $divide (param i32) (result i32) (i32.div_s (i32.const 4) (local.get 0)))
  (global $sp (mut i32) (i32.const 16))
  (func $prologue (param i32) (local i32)
    (global.set $sp (local.tee 1 (i32.sub (global.get $sp) (i32.const 32))))
    (i32.store offset=12 (local.get 1) (local.get 0)))
  (func $epilogue (param i32) (result i32)
    (i32.load (local.get 0)) (global.set $sp (i32.add (local.get 0) (i32.const 32))))
  (func $argument (param i32) (drop (call $divide (i32.load (local.get 0)))))
  (func $forever (param i32) (call $forever (i32.load (local.get 0))))
  (func (export "prologue") (param i32) (call $prologue (local.get 0)))
  (func (export "epilogue") (param i32) (result i32) (i32.add (call $epilogue (local.get 0)) (i32.const 1)))
  (func (export "argument") (param i32) (call $argument (local.get 0)))
  (func (export "forever") (param i32) (call $forever (local.get 0)))
  (func (export "load") (param i32) (result i32) (i32.mul (call $load (local.get 0)) (i32.const 3)))
  (func (export "store") (param i32) (call $store (local.get 0)))
  (func (export "divide") (param i32) (result i32) (call $divide (local.get 0)))
  (func (export "raise") (call $raise)))
"""
BINARY = assemble(MODULE)
LOAD, STORE, DIVIDE, CALL = 0x28, 0x36, 0x6D, 0x10


def instance() -> gb.Instance:
    def fail() -> None:
        raise ValueError("no")

    return gb.Module(BINARY).instantiate(imports={"host": {"raise": fail}})


@pytest.mark.parametrize(
    ("name", "argument", "opcode"),
    [
        ("load", 70_000, LOAD),
        ("load", -9, LOAD),
        ("store", 65_532, STORE),
        ("divide", 0, DIVIDE),
        ("prologue", 1, STORE),
        ("epilogue", 65_533, LOAD),
        ("argument", 65_536, LOAD),
    ],
)
@pytest.mark.parametrize("metered", [False, True])
def test_offsets_name_the_instructions(name: str, argument: int, opcode: int, *, metered: bool) -> None:
    function = instance().exports[name]
    with pytest.raises(gb.Trap) as caught:
        function.start(argument).resume(fuel=1000) if metered else function(argument)
    inner, outer = caught.value.backtrace
    assert inner.function == name
    assert inner.offset is not None
    assert BINARY[inner.offset] == opcode
    assert outer.function == name
    assert outer.offset is not None
    assert BINARY[outer.offset] == CALL


def test_a_call_is_where_the_stack_ends_and_what_a_caller_was_doing() -> None:
    """Also where its cell makes the last argument as well, in an instruction of its own."""
    exports = instance().exports
    with pytest.raises(gb.Trap) as caught:
        exports.argument(0)
    assert [BINARY[frame.offset or 0] for frame in caught.value.backtrace] == [DIVIDE, CALL, CALL]
    with pytest.raises(gb.Exhausted) as exhausted:
        exports.forever(0)
    assert {BINARY[frame.offset or 0] for frame in exhausted.value.backtrace} == {CALL}


def test_a_host_functions_exception_notes_where_it_was_called() -> None:
    with pytest.raises(ValueError, match="no") as caught:
        instance().exports["raise"]()
    (note,) = caught.value.__notes__
    offset = int(note.rsplit("0x", 1)[1], 16)
    assert BINARY[offset] == CALL
