"""Loads and stores of every kind, bulk operations, vectors, atomics under threads, the checked build's assertions."""

import ctypes
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    atomic_update,
    build,
    cast,
    compare_exchange,
    copy,
    extract_lane,
    f32,
    f64,
    fence,
    fill,
    frame_address,
    i8,
    i16,
    i32,
    i64,
    insert_lane,
    load,
    move,
    native,
    ptr,
    store,
    u8,
    u16,
    u32,
    u64,
    v128,
    vector_of,
    void,
    volatile_load,
    volatile_store,
)

KINDS: dict[Any, str] = {
    i8: "b",
    i16: "h",
    i32: "i",
    i64: "q",
    u8: "B",
    u16: "H",
    u32: "I",
    u64: "Q",
    f32: "f",
    f64: "d",
}


def accesses(kind: Any) -> tuple[Any, Any, Any]:
    @native
    def unaligned(p: ptr[u8], value: kind, at: u32) -> kind:
        store(p, value, at)
        store(p, value, 1)
        return load(kind, p, 1)

    @native
    def elements(p: ptr[kind], n: i64) -> kind:
        p[n] = p[0]
        p[n + 1] = volatile_load(p + n)
        volatile_store(p + 1, p[n + 1])
        q = p + n
        q -= n
        return q[1]

    @native
    def distance(p: ptr[kind], q: ptr[kind]) -> i64:
        return q - p

    return unaligned, elements, distance


ACCESSES = {kind: accesses(kind) for kind in KINDS}


@native
def bulk(p: ptr[u8], n: u64) -> None:
    fill(p, 0xAB, n)
    p[0] = 1
    move(p + 1, p, n - 1)
    copy(p + n, p, n)


@native
def booleans(p: ptr[bool], n: u32) -> bool:
    p[n] = not p[0]
    return p[n] and load(bool, p, n)


@native
def vectors(p: ptr[v128], x: f32) -> i32:
    v = p[0]
    v = insert_lane(v, x, 2)
    v = v ^ p[1] | p[1] & v
    p[1] = v
    w = vector_of(i32(7))
    return extract_lane(v, i32, 0) + i32(extract_lane(v, i8, 15)) + extract_lane(w, i32, 0)


@native
def void_pointers(p: ptr[void], q: ptr[u16]) -> u64:
    a: ptr[void] = q
    b: ptr[u16] = p
    return u64(a - p) * 10 + u64(b == p) + cast(u64, q) - cast(u64, p)


@native
def address_in_frame(p: ptr[u64]) -> bool:
    p[0] = cast(u64, frame_address())
    return p[0] != 0


@native
def locked_additions(lock: ptr[u32], total: ptr[u64], count: u64) -> None:
    for _ in range(count):
        while compare_exchange(lock, 0, 1, "acquire") != 0:
            pass
        total[0] += 1
        atomic_store(lock, 0, "release")


@native
def atomic_additions(total: ptr[u64], count: u64) -> None:
    for _ in range(count):
        atomic_update("add", total, 1, "relaxed")


@native
def hand_over(turn: ptr[u32], data: ptr[u64], me: u32, rounds: u32) -> u64:
    seen: u64 = 0
    for _ in range(rounds):
        while atomic_load(turn, "acquire") != me:
            pass
        seen += data[0]
        data[0] += 1
        atomic_store(turn, 1 - me, "release")
    return seen


@native
def updates(p: ptr[i32], u: ptr[u32], q: ptr[ptr[u32]]) -> i32:
    fence("seq_cst")
    a = atomic_update("sub", p, 3, "acq_rel") + atomic_update("xchg", p, -5, "seq_cst")
    b = atomic_update("max", p, 2, "relaxed") + atomic_update("min", p, -2, "relaxed")
    atomic_update("max", u, 0xFFFFFFFF, "relaxed")
    atomic_update("and", u, 0xF0, "release")
    atomic_update("or", u, 0x0F, "acquire")
    atomic_update("xor", u, 0xFF, "relaxed")
    atomic_store(q, addressof(u[0]), "seq_cst")
    old = compare_exchange(q, u, None, "seq_cst")
    return a * 100 + b + i32(old == u)


LIBRARY = build(
    [
        *[f for functions in ACCESSES.values() for f in functions],
        *[bulk, booleans, vectors, void_pointers, address_in_frame],
        *[locked_additions, atomic_additions, hand_over, updates],
    ]
)


def call(function: Any, *arguments: Any) -> Any:
    return LIBRARY.function(function)(*arguments)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_loads_and_stores(kind: Any) -> None:
    unaligned, elements, distance = ACCESSES[kind]
    value = -5 if KINDS[kind] in "bhiq" else 1.5 if KINDS[kind] in "fd" else 200
    room = ctypes.create_string_buffer(64)
    assert call(unaligned, room, value, 13) == value
    expected = struct.pack("<" + KINDS[kind], value)
    assert room.raw[1 : 1 + kind.size] == room.raw[13 : 13 + kind.size] == expected
    numbers = (kind.ctype * 8)(value)
    assert call(elements, numbers, 4) == value
    assert list(numbers) == [value, value, 0, 0, value, value, 0, 0]
    start = ctypes.addressof(numbers)
    assert call(distance, start + 7 * kind.size, start) == -7


def test_bulk() -> None:
    room = ctypes.create_string_buffer(40)
    call(bulk, room, 16)
    assert room.raw == (b"\x01\x01" + b"\xab" * 14) * 2 + bytes(8)


def test_booleans_are_bytes() -> None:
    flags = (ctypes.c_bool * 4)()
    assert call(booleans, flags, 2)
    assert bytes(flags) == b"\0\0\1\0"


def test_vectors() -> None:
    data = bytearray(32)
    aligned: Any = (ctypes.c_char * 48)()
    start = (ctypes.addressof(aligned) + 15) & -16
    data[0:4] = struct.pack("<i", 1000)
    data[15] = 0x7F
    ctypes.memmove(start, bytes(data), 32)
    assert call(vectors, start, 1.5) == 1000 + 0x7F + 7
    assert ctypes.string_at(start + 24, 4) == struct.pack("<f", 1.5)


def test_void_pointers() -> None:
    room = ctypes.create_string_buffer(8)
    start = ctypes.addressof(room)
    assert call(void_pointers, start, start + 3) == 3 * 10 + 1 + 3


def test_frame_address_is_on_the_stack() -> None:
    address = ctypes.c_uint64()
    assert call(address_in_frame, ctypes.byref(address))


def run_together(*calls: Any) -> list[Any]:
    """Run calls in threads at once, without the GIL."""
    results: list[Any] = [None] * len(calls)

    def run(position: int) -> None:
        function, *arguments = calls[position]
        types: list[Any] = [p.ctype if p.ir != "void" else None for p in (function.type.returns, *function.type.params)]
        released = ctypes.CFUNCTYPE(*types)
        results[position] = released(LIBRARY.addresses[function.symbol])(*arguments)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_atomics_under_two_threads() -> None:
    lock, total = ctypes.c_uint32(), ctypes.c_uint64()
    run_together(*[(locked_additions, ctypes.byref(lock), ctypes.byref(total), 20_000)] * 2)
    assert total.value == 40_000
    run_together(*[(atomic_additions, ctypes.byref(total), 1_000_000)] * 2)
    assert total.value == 2_040_000


def test_acquire_and_release_order_other_memory() -> None:
    turn, data = ctypes.c_uint32(), ctypes.c_uint64()
    rounds = 300
    seen = run_together(*[(hand_over, ctypes.byref(turn), ctypes.byref(data), me, rounds) for me in (0, 1)])
    assert seen == [sum(range(0, 2 * rounds, 2)), sum(range(1, 2 * rounds, 2))]


def test_every_atomic_update() -> None:
    p, u, q = ctypes.c_int32(10), ctypes.c_uint32(1), ctypes.c_void_p()
    assert call(updates, ctypes.byref(p), ctypes.byref(u), ctypes.byref(q)) == (10 + 7) * 100 + (-5 + 2) + 1
    assert (p.value, u.value, q.value) == (-2, 0, None)


CHECKED = """
import ctypes
from greenbeat.native import build, i32, native

@native
def positive(x: i32) -> i32:
    assert x > 0, "a message"
    return x

for checked in (False, True):
    f = build([positive], checked=checked).function(positive)
    print(f(1), end=" ", flush=True)
    print(f(-1), flush=True)
"""


def test_assertions_of_the_checked_build_end_the_process(tmp_path: Path) -> None:
    script = tmp_path / "checked.py"
    script.write_text(CHECKED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "-1", "1"]
    assert done.returncode < 0
    assert f"{script}:7: assertion failed: x > 0" in done.stderr
