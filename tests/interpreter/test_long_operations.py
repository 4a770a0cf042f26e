"""Operations that move megabytes: done in parts, so that they can be interrupted, and as if they were not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import greenbeat as gb
from tests.support import Guest

MIB = 1 << 20
MODULE = """(module (memory (export "memory") 80) (memory $other 80)
  (data $seed "{seed}")
  (func (export "fill") (param i32 i32 i32) (memory.fill (local.get 0) (local.get 1) (local.get 2)))
  (func (export "copy") (param i32 i32 i32) (memory.copy (local.get 0) (local.get 1) (local.get 2)))
  (func (export "across") (param i32 i32 i32)
    (memory.copy $other 0 (local.get 0) (local.get 1) (local.get 2))
    (memory.copy 0 $other (local.get 1) (local.get 0) (local.get 2)))
  (func (export "init") (param i32 i32 i32) (memory.init $seed (local.get 0) (local.get 1) (local.get 2)))
  (func (export "at") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func (export "sum") (param $from i32) (param $count i32) (result i64) (local $sum i64)
    (loop $next
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load8_u (local.get $from))))
      (local.set $from (i32.add (local.get $from) (i32.const 4093)))
      (local.set $count (i32.sub (local.get $count) (i32.const 4093)))
      (br_if $next (i32.gt_s (local.get $count) (i32.const 0))))
    (local.get $sum)))"""
SEED = bytes(48 + (i * 7 + i // 251) % 10 for i in range(MIB + 5000))
TEXT = MODULE.replace("{seed}", SEED.decode())


def checksum(memory: bytearray) -> int:
    total = 0
    for byte in memory[::4093]:
        total = (total * 31 + byte) % (1 << 64)
    return total - (1 << 64) if total >> 63 else total


def test_results(guest: Guest) -> None:
    program = guest(TEXT)
    memory = bytearray(80 << 16)

    def agrees() -> None:
        assert program("sum", 0, len(memory)) == checksum(memory)

    program("init", 100, 3, len(SEED) - 3)
    memory[100 : 100 + len(SEED) - 3] = SEED[3:]
    agrees()
    for to, start, count in (
        (5000, 10, 3 * MIB + 1),
        (10, 5000, 3 * MIB + 1),
        (MIB + 1, MIB, MIB + 9),
        (0, 2 * MIB, MIB),
    ):
        program("copy", to, start, count)
        memory[to : to + count] = memory[start : start + count]
        agrees()
    program("across", 77, 9, 2 * MIB + 3)
    agrees()
    program("fill", 9, 200, 4 * MIB + 1)
    memory[9 : 10 + 4 * MIB] = b"\xc8" * (4 * MIB + 1)
    agrees()


@pytest.mark.parametrize("name", ["fill", "copy", "across", "init"])
def test_nothing_is_done_when_the_end_is_outside(guest: Guest, name: str) -> None:
    program = guest(MODULE.replace("{seed}", "little"))
    program("fill", 0, 3, 10)
    with pytest.raises(gb.Trap, match="out of bounds memory access"):
        program(name, 2 * MIB, 1, 4 * MIB)
    with pytest.raises(gb.Trap, match="out of bounds memory access"):
        program(name, 20, 7, 6 * MIB)
    assert program("at", 2 * MIB) == 0 and program("at", 20) == 0 and program("at", 0) == 3


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


HUGE = """(module (memory (export "memory") 16384 65536)
  (func (export "fill") (param i32) (memory.fill (i32.const 0) (i32.const 1) (local.get 0)))
  (func (export "copy") (param i32) (memory.copy (i32.const 1) (i32.const 0) (local.get 0))))"""


@pytest.mark.parametrize("name", ["fill", "copy"])
def test_interruption(name: str) -> None:
    size = (1 << 30) - 1
    limited = gb.Module.from_wat(HUGE).instantiate(limits=gb.Limits(seconds=0.02)).exports
    with pytest.raises(gb.Exhausted, match=f"out of time\n  in {name}"):
        limited[name](size)
    exports = gb.Module.from_wat(HUGE).instantiate().exports
    with alarm(0.02), pytest.raises(InterruptedError):
        exports[name](size)
    if name == "fill":
        assert exports.memory.read(0, 1) == b"\x01" and exports.memory.read(size - 1, 1) == b"\0"
    exports[name](3)
