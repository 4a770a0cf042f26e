"""Memories and tables in native code: bounds of bulk operations and growth, compared with Python's exact arithmetic."""

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from greenbeat.native import build, ctypes_of
from greenbeat.runtime import layout, memory, table

FUNCTIONS = [
    memory.new_memory,
    memory.free_memory,
    memory.grow_memory,
    memory.memory_fill,
    memory.memory_copy,
    table.new_table,
    table.free_table,
    table.grow_table,
    table.table_get,
    table.table_set,
    table.table_size,
    table.table_fill,
    table.table_copy,
]
library = build(FUNCTIONS)
native: Any = {f.python.__name__: library.function(f) for f in FUNCTIONS}  # type: ignore[attr-defined]
PAGE = 65536
FAILED = 2**64 - 1
LENGTH = 2 * PAGE
# Numbers near every edge that a bounds check could get wrong.
numbers = st.one_of(
    st.integers(0, LENGTH + 2),
    st.integers(2**32 - LENGTH, 2**32 + 2),
    st.integers(2**63 - 2, 2**63 + 2),
    st.integers(2**64 - LENGTH, 2**64 - 1),
)


def memory_type(minimum: int, maximum: int, *, is_64: bool = False, page_bits: int = 16) -> Any:
    return ctypes_of(layout.MemoryType)(is_64, True, False, page_bits, minimum, maximum)


def make_memory(limit: int = 2**64 - 1, **kind: Any) -> int:
    described = memory_type(**kind)
    address: int = native["new_memory"](ctypes.addressof(described), limit)
    return address


def fields(kind: Any, address: int) -> Any:
    return ctypes_of(kind).from_address(address)


@pytest.fixture(scope="module")
def two_pages() -> Iterator[int]:
    address = make_memory(minimum=2, maximum=4)
    yield address
    native["free_memory"](address)


@pytest.mark.parametrize("is_64", [False, True])
def test_growth(is_64: bool) -> None:
    address = make_memory(minimum=1, maximum=5, is_64=is_64)
    seen = fields(layout.Memory, address)
    grow = native["grow_memory"]
    base = seen.base
    assert grow(None, address, 2) == 1 and seen.length == 3 * PAGE and seen.base == base
    for pages in (3, 2**32, 2**48, 2**63, 2**64 - 1, 2**64 - 3):
        assert grow(None, address, pages) == FAILED
    assert grow(None, address, 0) == 3 and grow(None, address, 2) == 3 and grow(None, address, 1) == FAILED
    ctypes.memset(base, 7, seen.length)
    native["free_memory"](address)


def test_limits() -> None:
    assert make_memory(minimum=3, maximum=5, limit=2 * PAGE) is None
    address = make_memory(minimum=1, maximum=5, limit=3 * PAGE - 1)
    assert native["grow_memory"](None, address, 2) == FAILED and native["grow_memory"](None, address, 1) == 1
    native["free_memory"](address)
    assert make_memory(minimum=2**48, maximum=2**48, is_64=True) is None
    address = make_memory(minimum=0, maximum=2**48, is_64=True)
    assert native["grow_memory"](None, address, 2**48) == FAILED
    native["free_memory"](address)


def test_small_pages() -> None:
    address = make_memory(minimum=3, maximum=70_000, page_bits=0)
    seen = fields(layout.Memory, address)
    assert seen.length == 3 and not seen.guarded
    assert native["memory_fill"](address, 3, 1, 1) == layout.TRAP_MEMORY
    assert native["grow_memory"](None, address, 69_997) == 3 and seen.length == 70_000
    ctypes.memset(seen.base, 7, 70_000)
    native["free_memory"](address)


@settings(deadline=None, max_examples=300)
@given(start=numbers, count=numbers)
def test_fill(two_pages: int, start: int, count: int) -> None:
    trap = native["memory_fill"](two_pages, start, 0xAB, count)
    assert trap == (layout.TRAP_MEMORY if start + count > LENGTH else layout.TRAP_NONE)


@settings(deadline=None, max_examples=300)
@given(target=numbers, source=numbers, count=numbers)
def test_copy(two_pages: int, target: int, source: int, count: int) -> None:
    trap = native["memory_copy"](two_pages, two_pages, target, source, count)
    assert trap == (layout.TRAP_MEMORY if max(target, source) + count > LENGTH else layout.TRAP_NONE)


def test_copies_may_overlap(two_pages: int) -> None:
    base = fields(layout.Memory, two_pages).base
    ctypes.memmove(base, bytes(range(200)), 200)
    native["memory_copy"](two_pages, two_pages, 10, 0, 190)
    assert ctypes.string_at(base, 200) == bytes(range(10)) + bytes(range(190))


def make_table(minimum: int, maximum: int, limit: int = 2**64 - 1, value: int = 0) -> int:
    kind = ctypes_of(layout.TableType)(0, False, True, minimum, maximum, None)
    address: int = native["new_table"](ctypes.addressof(kind), limit, value)
    return address


def elements(address: int) -> list[int]:
    seen = fields(layout.Table, address)
    return list((ctypes.c_uint64 * seen.length).from_address(seen.elements)) if seen.length else []


@settings(deadline=None, max_examples=200)
@given(
    start=st.integers(0, 12) | st.integers(2**64 - 12, 2**64 - 1),
    source=st.integers(0, 12) | st.integers(2**64 - 12, 2**64 - 1),
    count=st.integers(0, 12) | st.integers(2**64 - 12, 2**64 - 1),
)
def test_tables(start: int, source: int, count: int) -> None:
    address = make_table(8, 20, value=5)
    model = list(range(100, 108))
    for index, value in enumerate(model):
        assert native["table_set"](address, index, value) == layout.TRAP_NONE
    fits = max(start, source) + count <= 8
    assert native["table_copy"](address, address, start, source, count) == (
        layout.TRAP_NONE if fits else layout.TRAP_TABLE
    )
    if fits:
        model[start : start + count] = model[source : source + count]
    assert elements(address) == model
    fits = start + count <= 8
    assert native["table_fill"](address, start, 9, count) == (layout.TRAP_NONE if fits else layout.TRAP_TABLE)
    if fits:
        model[start : start + count] = [9] * count
    room = ctypes.c_uint64()
    trap = native["table_get"](address, start, ctypes.addressof(room))
    assert trap == (layout.TRAP_NONE if start < 8 else layout.TRAP_TABLE)
    assert elements(address) == model and (trap or room.value == model[start])
    fits = 8 + count <= 20
    assert native["grow_table"](address, count, 77) == (8 if fits else FAILED)
    assert elements(address) == model + [77] * (count if fits else 0)
    native["free_table"](address)


def test_limits_of_tables() -> None:
    assert make_table(11, 20, limit=10) is None
    address = make_table(9, 20, limit=10)
    assert native["grow_table"](address, 2, 0) == FAILED and native["grow_table"](address, 1, 3) == 9
    assert native["table_size"](address) == 10 and native["table_set"](address, 10, 1) == layout.TRAP_TABLE
    native["free_table"](address)
