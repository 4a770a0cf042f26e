"""Handlers of loads and stores.

Addresses of a 32-bit memory 0 are 32-bit numbers plus a 32-bit offset. Where its guard pages cover all of those,
nothing is checked here; else, in code of the EXPLICIT variant, the access is compared with the memory's length. Other
memories go through the general handlers, which take every operand from a slot:

    0          8         12        16        24         28
    │ handler  │ result  │ address │ offset  │ memory   │ 64-bit? │

A store's cell names its value's slot where a load's names its result; an immediate value follows the offset.
"""

from functools import cache

from greenbeat.interpreter.convention import (
    ACCUMULATOR,
    FIRST,
    IMMEDIATE,
    RESULT,
    SECOND,
    SLOT,
    finish,
    handler,
    proceed,
    read,
)
from greenbeat.native import i64, inline, load, ptr, sizeof, store, trap, u8, u32, u64, unlikely, v128
from greenbeat.runtime.layout import TRAP_MEMORY, Instance, Task
from greenbeat.wasm.ops import LOADS, STORES

LOAD_VARIANTS = (SLOT, ACCUMULATOR, IMMEDIATE)
# (value, address)
STORE_VARIANTS = tuple((v, a) for v in (SLOT, ACCUMULATOR, IMMEDIATE) for a in (SLOT, ACCUMULATOR, IMMEDIATE))


def store_variant_exists(opcode, value, address):
    """An integer and its address cannot both be in the one integer accumulator; two constants are left to a slot."""
    both = value == ACCUMULATOR and address == ACCUMULATOR
    return (value, address) != (IMMEDIATE, IMMEDIATE) and not (both and STORES[opcode].name.startswith("i"))


def store_size(value):
    """Bytes of a store's cell."""
    return 32 if value == IMMEDIATE else 24


@inline
def place(address, explicit, size, ip, sp, memory, length, accumulator, float_accumulator):
    """Where in the process an access goes, after the check that the variant needs."""
    offset = load(u64, ip, SECOND)
    if address == IMMEDIATE:
        effective = offset
    else:
        effective = u64(read(address, u32, FIRST, ip, sp, accumulator, float_accumulator)) + offset
    if explicit:
        if unlikely(effective + size > length):
            trap(TRAP_MEMORY)
    return memory + effective


@cache
def load_handler(opcode, address, explicit, to_slot):
    """A load from memory 0."""
    access = LOADS[opcode]
    value_type, stored = access.value, access.stored

    @handler
    def run_load(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        at = place(address, explicit, sizeof(stored), ip, sp, memory, length, accumulator, float_accumulator)
        value = value_type(load(stored, at))
        finish(value_type, value, to_slot, 24, ip, sp, accumulator, float_accumulator)

    return run_load


@cache
def store_handler(opcode, value, address, explicit):
    """A store to memory 0."""
    if not store_variant_exists(opcode, value, address):
        return None
    access = STORES[opcode]
    value_type, stored = access.value, access.stored
    value_at, cell_size = 24 if value == IMMEDIATE else RESULT, store_size(value)

    @handler
    def run_store(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        at = place(address, explicit, sizeof(stored), ip, sp, memory, length, accumulator, float_accumulator)
        store(at, stored(read(value, value_type, value_at, ip, sp, accumulator, float_accumulator)))
        proceed(ip + cell_size, accumulator, float_accumulator)

    return run_store


@inline
def general_place(size, ip, sp, instance):
    """Where an access to any memory goes: 64-bit addresses may overflow, so the sum is compared with care."""
    memory = instance.memories[load(u32, ip, 24)]
    address: u64 = 0
    if load(u32, ip, 28) != 0:
        address = load(u64, sp, load(u32, ip, FIRST))
    else:
        address = u64(load(u32, sp, load(u32, ip, FIRST)))
    effective = address + load(u64, ip, SECOND)
    if unlikely(effective < address or memory.length < size or effective > memory.length - size):
        trap(TRAP_MEMORY)
    return memory.base + effective


@cache
def general_load(opcode, to_slot):
    """A load from any memory."""
    access = LOADS[opcode]
    value_type, stored = access.value, access.stored

    @handler
    def run_general_load(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = value_type(load(stored, general_place(sizeof(stored), ip, sp, instance)))
        finish(value_type, value, to_slot, 32, ip, sp, accumulator, float_accumulator)

    return run_general_load


@cache
def general_store(opcode):
    """A store to any memory."""
    access = STORES[opcode]
    value_type, stored = access.value, access.stored

    @handler
    def run_general_store(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        at = general_place(sizeof(stored), ip, sp, instance)
        store(at, stored(load(value_type, sp, load(u32, ip, RESULT))))
        proceed(ip + 32, accumulator, float_accumulator)

    return run_general_store
