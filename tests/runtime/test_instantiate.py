"""Instances: globals, tables and memories as they start, segments and their bounds, limits."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from greenbeat.native import ctypes_of
from greenbeat.runtime import layout
from greenbeat.runtime.instantiate import OWN_GLOBALS
from greenbeat.runtime.layout import TRAP_MEMORY, TRAP_NONE, TRAP_TABLE
from greenbeat.runtime.outcomes import MEMORY_LIMIT, NO_ERROR, SEGMENT_TRAP, TABLE_LIMIT
from greenbeat.runtime.segments import data_drop, elem_drop, memory_init, table_init
from greenbeat.wasm.text import assemble
from tests.wasm.modules import NO_LIMIT, Decoder, Made, instance_of


@contextlib.contextmanager
def made(
    decoder: Decoder,
    text: str,
    imports: Sequence[int] = (),
    *,
    memory_limit: int = NO_LIMIT,
    table_limit: int = NO_LIMIT,
) -> Iterator[Made]:
    with instance_of(decoder, assemble(text), imports, memory_limit, table_limit) as it:
        yield it


@pytest.fixture(params=[False, True], ids=["fast", "checked"])
def decoder(request: pytest.FixtureRequest) -> Decoder:
    return Decoder(request.param)


def test_empty(decoder: Decoder) -> None:
    with made(decoder, "(module)") as it:
        assert it.error.kind == NO_ERROR
        assert it.instance.memory is None


GLOBALS = [
    ("i32 (i32.const -1)", 0xFFFFFFFF),
    ("i64 (i64.const -1)", NO_LIMIT),
    ("f32 (f32.const 1.5)", int.from_bytes(struct.pack("<f", 1.5), "little")),
    ("f64 (f64.const -2.5)", int.from_bytes(struct.pack("<d", -2.5), "little")),
    ("funcref (ref.null func)", 0),
    ("i32 (i32.add (i32.const 0x7fffffff) (i32.const 0x7fffffff))", 0xFFFFFFFE),
    ("i32 (i32.sub (i32.const 1) (i32.const 2))", 0xFFFFFFFF),
    ("i32 (i32.mul (i32.const 0x10000) (i32.const 0x10001))", 0x10000),
    ("i64 (i64.sub (i64.const 1) (i64.mul (i64.const 3) (i64.add (i64.const 4) (i64.const 5))))", 1 - 27 + (1 << 64)),
]


@pytest.mark.parametrize(("text", "value"), GLOBALS)
def test_globals(decoder: Decoder, text: str, value: int) -> None:
    with made(decoder, f"(global {text})") as it:
        assert it.global_value(0) == value
        assert it.global_bytes(0)[8:] == bytes(8)
        assert it.pointer(it.instance.globals, 0) == (it.address or 0) + OWN_GLOBALS


def test_vector_global(decoder: Decoder) -> None:
    with made(decoder, "(global v128 (v128.const i32x4 1 2 3 4)) (global v128 (global.get 0))") as it:
        assert it.global_bytes(0) == it.global_bytes(1) == struct.pack("<4I", 1, 2, 3, 4)
        assert it.pointer(it.instance.globals, 1) % 16 == 0


def test_globals_of_globals(decoder: Decoder) -> None:
    storage = (ctypes.c_uint64 * 2)(41, 7)
    text = '(import "" "" (global i32)) (global i32 (i32.add (global.get 0) (i32.const 1))) (global i32 (global.get 1))'
    with made(decoder, text, [ctypes.addressof(storage)]) as it:
        assert it.pointer(it.instance.globals, 0) == ctypes.addressof(storage)
        assert [it.global_value(i) for i in range(3)] == [41, 42, 42]


def test_function_references(decoder: Decoder) -> None:
    """A function has one reference, filled in when it is asked for; an imported one is the import itself."""
    imported: Any = ctypes_of(layout.FunctionInstance)()
    text = """
      (import "" "" (func)) (func $a (param i32)) (func $b)
      (global funcref (ref.func $b)) (global funcref (ref.func 0))
    """
    with made(decoder, text, [ctypes.addressof(imported)]) as it:
        assert it.reference(0) == it.global_value(1) == ctypes.addressof(imported)
        assert it.reference(2) == it.global_value(0) != it.reference(1)
        found: Any = ctypes_of(layout.FunctionInstance).from_address(it.reference(1))
        assert (found.kind, found.index, found.instance) == (layout.GUEST, 1, it.address)
        function: Any = ctypes_of(layout.Function).from_address(found.function)
        assert function.index == 1
        assert function.signature == found.signature


def test_tables(decoder: Decoder) -> None:
    text = """
      (func $a) (func $b)
      (table 4 funcref) (table 3 (ref func) (ref.func $b)) (table 2 externref)
      (elem (i32.const 1) $a $b) (elem (table 1) (i32.const 2) (ref func) (ref.func $a))
      (elem funcref (ref.func $a)) (elem declare func $a)
    """
    with made(decoder, text) as it:
        a, b = it.reference(0), it.reference(1)
        assert it.elements(0) == [0, a, b, 0]
        assert it.elements(1) == [b, b, a]
        assert it.elements(2) == [0, 0]
        assert ctypes.string_at(it.instance.dropped_elements, 4) == b"\1\1\0\1"


def test_memories(decoder: Decoder) -> None:
    text = (
        '(memory 1) (memory i64 2) (data (i32.const 3) "abc") (data "passive") (data (memory 1) (i64.const 65536) "x")'
    )
    with made(decoder, text) as it:
        assert it.instance.memory == it.pointer(it.instance.memories, 0)
        assert it.bytes(0, 8) == b"\0\0\0abc\0\0"
        assert it.bytes(65535, 3, 1) == b"\0x\0"
        assert ctypes.string_at(it.instance.dropped_datas, 3) == b"\1\0\1"


def test_offset_of_a_global_with_anything_in_its_upper_half(decoder: Decoder) -> None:
    storage = (ctypes.c_uint64 * 2)(0xDEADBEEF00000002, 0)
    text = """
      (import "" "" (global i32)) (func)
      (memory 1) (data (global.get 0) "a") (table 3 funcref) (elem (global.get 0) 0)
    """
    with made(decoder, text, [ctypes.addressof(storage)]) as it:
        assert it.error.kind == NO_ERROR
        assert it.bytes(0, 4) == b"\0\0a\0"
        assert it.elements(0)[2] == it.reference(0)


TRAPS = [
    ("(table 2 funcref) (elem (i32.const 2) func)", None),
    ("(table 2 funcref) (elem (i32.const 3) func)", (TRAP_TABLE, 0, False)),
    ("(table 2 funcref) (func) (elem (i32.const 1) 0) (elem (i32.const 2) 0)", (TRAP_TABLE, 1, False)),
    ("(table 2 funcref) (func) (elem (i32.const -1) 0)", (TRAP_TABLE, 0, False)),
    ("(table i64 2 funcref) (func) (elem (i64.const -1) 0)", (TRAP_TABLE, 0, False)),
    ('(memory 1) (data (i32.const 65536) "")', None),
    ('(memory 1) (data (i32.const 65537) "")', (TRAP_MEMORY, 0, True)),
    ('(memory 1) (data (i32.const 65535) "a") (data (i32.const 65535) "ab")', (TRAP_MEMORY, 1, True)),
    ('(memory i64 1) (data (i64.const -1) "ab")', (TRAP_MEMORY, 0, True)),
    ('(memory 0) (data (i32.const 0) "")', None),
    ('(memory 0) (data (i32.const 0) "a")', (TRAP_MEMORY, 0, True)),
    ('(memory 0) (table 0 funcref) (func) (data (i32.const 0) "a") (elem (i32.const 0) 0)', (TRAP_TABLE, 0, False)),
]


@pytest.mark.parametrize(("text", "trap"), TRAPS)
def test_segments_out_of_bounds(decoder: Decoder, text: str, trap: tuple[int, int, bool] | None) -> None:
    with made(decoder, text) as it:
        if trap is None:
            assert it.error.kind == NO_ERROR
        else:
            assert it.error.kind == SEGMENT_TRAP
            assert (it.error.trap, it.error.index, it.error.is_data) == trap


def test_earlier_segments_stay(decoder: Decoder) -> None:
    text = (
        '(memory 1) (table 1 funcref) (func) (elem (i32.const 0) 0) (data (i32.const 1) "a") (data (i32.const -1) "b")'
    )
    with made(decoder, text) as it:
        assert it.error.kind == SEGMENT_TRAP
        assert it.elements(0) == [it.reference(0)]
        assert it.bytes(0, 3) == b"\0a\0"


LIMITS = [
    ("(memory 2)", 131072, 0, NO_ERROR, 0),
    ("(memory 2)", 131071, 0, MEMORY_LIMIT, 0),
    ("(memory 1) (memory 1) (memory 1)", 131072, 0, MEMORY_LIMIT, 2),
    ("(memory i64 0x1000000000000)", NO_LIMIT, 0, MEMORY_LIMIT, 0),
    ("(table 10 funcref)", 0, 10, NO_ERROR, 0),
    ("(table 1 funcref) (table 11 funcref)", 0, 10, TABLE_LIMIT, 1),
    ("(table 10000001 funcref)", 0, NO_LIMIT, TABLE_LIMIT, 0),
    ("(table i64 0xffffffffffffffff funcref)", 0, NO_LIMIT, TABLE_LIMIT, 0),
]


@pytest.mark.parametrize(("text", "memory", "table", "kind", "index"), LIMITS)
def test_limits(decoder: Decoder, text: str, memory: int, table: int, kind: int, index: int) -> None:
    with made(decoder, text, memory_limit=memory, table_limit=table) as it:
        assert (it.error.kind, it.error.index) == (kind, index)
        assert (it.address is None) == (kind != NO_ERROR)


NUMBERS = st.one_of(st.integers(0, 12), st.sampled_from([1 << 32, (1 << 63) - 1, 1 << 63, NO_LIMIT - 1, NO_LIMIT]))
SEGMENTS = '(memory 0) (memory 1) (table 7 funcref) (func) (func) (data "abcdefg") (elem func 0 1 0 1 1)'


@given(to=NUMBERS, start=NUMBERS, count=NUMBERS, drop=st.booleans(), checked=st.booleans())
def test_table_init(to: int, start: int, count: int, drop: bool, checked: bool) -> None:
    with made(Decoder(checked), SEGMENTS) as it:
        if drop:
            it.call(elem_drop, 0)
        items = [] if drop else [it.reference(i) for i in (0, 1, 0, 1, 1)]
        model = [0] * 7
        fits = start + count <= len(items) and to + count <= 7
        if fits:
            model[to : to + count] = items[start : start + count]
        assert it.call(table_init, 0, 0, to, start, count) == (TRAP_NONE if fits else TRAP_TABLE)
        assert it.elements(0) == model


@given(to=NUMBERS, start=NUMBERS, count=NUMBERS, drop=st.booleans(), checked=st.booleans(), near_end=st.booleans())
def test_memory_init(to: int, start: int, count: int, drop: bool, checked: bool, near_end: bool) -> None:
    with made(Decoder(checked), SEGMENTS) as it:
        if drop:
            it.call(data_drop, 0)
        data = b"" if drop else b"abcdefg"
        if near_end and to <= 12:
            to += 65536 - 6
        fits = start + count <= len(data) and to + count <= 65536
        assert it.call(memory_init, 1, 0, to, start, count) == (TRAP_NONE if fits else TRAP_MEMORY)
        model = bytearray(65536)
        if fits:
            model[to : to + count] = data[start : start + count]
        assert it.bytes(0, 65536, 1) == model
        empty = start <= len(data) and to == 0
        assert it.call(memory_init, 0, 0, to, start, 0) == (TRAP_NONE if empty else TRAP_MEMORY)


def test_imports_go_where_they_belong(decoder: Decoder) -> None:
    """A memory and a table of one instance, imported by another that fills them."""
    with made(decoder, "(memory 1) (table 2 funcref) (memory 1)") as owner:
        memory = owner.pointer(owner.instance.memories, 1)
        table = owner.pointer(owner.instance.tables, 0)
        text = """
          (import "" "" (memory 1)) (import "" "" (table 2 funcref)) (memory 3) (table 5 funcref) (func)
          (data (i32.const 0) "imported") (data (memory 1) (i32.const 0) "own") (elem (i32.const 1) 0)
        """
        with made(decoder, text, [memory, table]) as it:
            assert owner.bytes(0, 8, 1) == b"imported"
            assert owner.bytes(0, 8, 0) == bytes(8)
            assert it.bytes(0, 3, 1) == b"own"
            assert owner.elements(0) == [0, it.reference(0)]
            assert it.elements(1) == [0] * 5
        assert owner.bytes(0, 8, 1) == b"imported"


def test_many_functions_cost_nothing_until_referred_to(decoder: Decoder) -> None:
    with made(decoder, "(func)" * 20_000) as it:
        last: Any = ctypes_of(layout.FunctionInstance).from_address(it.reference(19_999))
        assert last.index == 19_999
        assert it.reference(0) + 19_999 * ctypes.sizeof(type(last)) == ctypes.addressof(last)
