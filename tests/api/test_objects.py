"""Memories, tables and globals as Python objects."""

import gc
import inspect
import math
from array import array
from typing import Any

import pytest

import greenbeat as gb
from tests.api.conftest import Make

PAGE = 65536
GROWER = """(module (memory (export "memory") 1 10)
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "size") (result i32) (memory.size))
  (func (export "store") (param i32 i32) (i32.store8 (local.get 0) (local.get 1)))
  (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0))))"""


def test_memory(make: Make) -> None:
    exports = make(GROWER).exports
    memory = exports.memory
    assert len(memory) == PAGE and memory.pages == 1 and str(memory.type) == "(memory 1 10)"
    memory.write(10, b"hello")
    assert memory.read(10, 5) == b"hello" and exports.load(10) == ord("h")
    exports.store(11, 0xFF)
    assert memory[11] == 0xFF and bytes(memory[10:12]) == b"h\xff"
    memory[0:2] = b"ab"
    memory.write(PAGE - 2, memoryview(b"xy"))
    assert memory.view[-2:] == b"xy"
    assert memory.read(PAGE, 0) == b""
    for bad in ((PAGE, 1), (-1, 1), (0, -1), (0, PAGE + 1), (2**70, 1)):
        with pytest.raises(IndexError):
            memory.read(*bad)
    for offset in (PAGE - 1, -1, 2**63, 2**64):
        with pytest.raises(IndexError):
            memory.write(offset, b"zz")
    memory.write(0, memory.view[10:15])
    memory.write(1, memory.view[0:5])
    assert memory.read(0, 6) == b"hhellh"[:1] + b"h\xffllo"
    memory.write(8, array("I", [1, 2]))
    assert memory.read(8, 8) == bytes(array("I", [1, 2]))
    for bad_read in ((), (1,), ("a", 1), (1, "a"), (1.0, 1), (None, None)):
        with pytest.raises(TypeError):
            memory.read(*bad_read)
    for bad_write in ((), (1,), ("a", b"a"), (1, "a"), (1, 3)):
        with pytest.raises(TypeError):
            memory.write(*bad_write)
    with pytest.raises(BufferError):
        memory.write(0, memoryview(b"abcd")[::2])
    assert str(inspect.signature(memory.read)) == "(offset, size, /)" and memory.write.__doc__
    assert repr(memory) == "<greenbeat.Memory of 65536 bytes>"


def test_memory_as_a_buffer(make: Make) -> None:
    numpy: Any = pytest.importorskip("numpy")
    exports = make(GROWER).exports
    array = numpy.frombuffer(exports.memory, dtype="<u4")
    array[5] = 0x01020304
    assert exports.load(20) == 4


def test_growth(make: Make) -> None:
    exports = make(GROWER).exports
    old = exports.memory.view
    old[0] = 1
    assert exports.grow(2) == 1 and exports.size() == 3
    assert exports.memory.grow(1) == 3 and exports.size() == 4
    assert len(old) == PAGE and len(exports.memory.view) == 4 * PAGE
    old[1] = 2
    assert exports.memory.read(0, 2) == b"\1\2"
    assert exports.grow(7) == -1 and exports.grow(-1) == -1 and exports.size() == 4
    with pytest.raises(gb.Exhausted) as caught:
        exports.memory.grow(7)
    assert caught.value.resource == "memory"
    with pytest.raises(gb.Exhausted):
        exports.memory.grow(2**80)
    with pytest.raises(ValueError, match="cannot shrink"):
        exports.memory.grow(-1)
    exports.store(4 * PAGE - 1, 3)
    with pytest.raises(gb.Trap, match="out of bounds memory access"):
        exports.store(4 * PAGE, 3)


def test_growth_stops_at_the_limit(make: Make) -> None:
    exports = make(GROWER, memory=3 * PAGE + 100).exports
    assert exports.grow(3) == -1
    assert exports.grow(2) == 1
    assert exports.grow(0) == 3
    assert exports.grow(1) == -1
    text = """(module (memory 1) (memory $b 1)
      (func (export "a") (param i32) (result i32) (memory.grow 0 (local.get 0)))
      (func (export "b") (param i32) (result i32) (memory.grow $b (local.get 0))))"""
    exports = make(text, memory=4 * PAGE).exports
    assert exports.a(1) == 1 and exports.b(2) == -1 and exports.b(1) == 1 and exports.a(1) == -1


def test_views_outlive_everything(make: Make) -> None:
    instance = make(GROWER)
    view = instance.exports.memory.view
    instance.exports.store(5, 99)
    instance.exports.grow(3)
    del instance
    gc.collect()
    assert view[5] == 99
    view[PAGE - 1] = 1


def test_memory_of_the_host() -> None:
    memory = gb.Memory(2, 4)
    assert len(memory) == 2 * PAGE
    assert memory.grow(2) == 2
    with pytest.raises(gb.Exhausted):
        memory.grow(1)
    for bad in ((5, 4), (-1, None), (65537, None)):
        with pytest.raises(ValueError, match="0 <= minimum <= maximum <= 65536"):
            gb.Memory(*bad)
    assert str(gb.Memory(0, is_64=True).type) == "(memory i64 0)"
    with pytest.raises(ReferenceError):
        object.__new__(gb.Memory).read(0, 0)


def test_full_memory() -> None:
    memory = gb.Memory(65536)
    assert len(memory) == 1 << 32
    memory.write((1 << 32) - 1, b"x")
    with pytest.raises(gb.Exhausted):
        memory.grow(1)


def test_table(make: Make) -> None:
    text = """(module (table (export "t") 3 6 funcref) (elem (i32.const 1) $f)
      (func $f (export "f") (result i32) (i32.const 4))
      (type $n (func (result i32)))
      (func (export "call") (param i32) (result i32) (call_indirect (type $n) (local.get 0))))"""
    exports = make(text).exports
    table = exports.t
    assert list(table) == [None, exports.f, None] and len(table) == 3
    table[2] = exports.f
    table[-3] = gb.Function(lambda: 8, [], ["i32"])
    assert [exports.call(i) for i in range(3)] == [8, 4, 4]
    assert table[0]() == 8
    assert table.grow(2, exports.f) == 3 and exports.call(4) == 4
    with pytest.raises(gb.Exhausted):
        table.grow(2)
    table[1] = None
    with pytest.raises(gb.Trap, match="uninitialized element"):
        exports.call(1)
    with pytest.raises(IndexError):
        table[5]
    with pytest.raises(IndexError):
        table[-6] = None
    for wrong in (3, print):
        with pytest.raises(TypeError, match="a greenbeat.Function or None"):
            table[0] = wrong
    assert repr(table) == "<greenbeat.Table of 5 funcref>"


def test_table_of_the_host() -> None:
    table = gb.Table("externref", 2, 3)
    item = object()
    table[1] = item
    assert table[1] is item and table[0] is None
    assert table.grow(1, "x") == 2 and table[2] == "x"
    with pytest.raises(TypeError):
        gb.Table("i32", 1)
    with pytest.raises(ValueError, match="4 up to 3 elements"):
        gb.Table("funcref", 4, 3)


def test_an_element_that_grows_its_table() -> None:
    table = gb.Table("externref", 1)

    class Grows:
        def __del__(self) -> None:
            table.grow(10_000)

    for _ in range(200):
        table[0] = Grows()
    assert isinstance(table[0], Grows)


def test_global() -> None:
    variable = gb.Global("i64", 2**64 - 1, mutable=True)
    assert variable.value == -1 and str(variable.type) == "(global (mut i64))"
    variable.value = 5
    assert repr(variable) == "<greenbeat.Global mutable i64 5>"
    with pytest.raises(ValueError, match="a global's value.* out of range for i64"):
        variable.value = 2**64
    with pytest.raises(TypeError):
        variable.value = "x"
    constant = gb.Global(gb.f32, math.pi)
    with pytest.raises(AttributeError, match="constant"):
        constant.value = 1.0
    item = object()
    assert gb.Global("externref", item).value is item
    assert gb.Global("funcref", None).value is None


def test_a_description_keeps_its_module() -> None:
    description = gb.Module.from_wat(
        '(module (func (export "f") (param i32 i64) (result f32) unreachable))'
    ).description
    gc.collect()
    others = [gb.Module.from_wat(f'(module (func (export "g{n}") (param f64)))') for n in range(50)]
    assert [str(t) for t in description.types] == ["(func (param i32 i64) (result f32))"]
    assert [e.name for e in description.exports] == ["f"]
    assert len(others) == 50
