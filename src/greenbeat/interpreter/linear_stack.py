"""Handlers of what compiled functions do to their stack in linear memory when they begin and when they end.

Compilers keep what has an address in a frame there, and its pointer in a global. A prologue moves the pointer down,
into a local, and often spills the first parameter; an epilogue moves it up again and returns:

    global.get, i32.const, i32.sub, local.tee, global.set, local.get, local.get, i32.store
    local.get, i32.load, local.get, i32.const, i32.add, global.set, return

    0          8         12        16        20          24         28      32
    │ handler  │ local   │ global  │ value   │ constant  │ offset   │ value │ offset │     prologue that stores values
    │ handler  │ global  │ local   │ constant│ result    │                               epilogue: what it returns
    │ handler  │ global  │ address │ offset  │ local     │ constant │                    epilogue that loads that

The global is the instance's own. Epilogues that return are those of functions whose header is at its usual place.
"""

from functools import cache

from greenbeat.interpreter.calls import enter
from greenbeat.interpreter.convention import FIRST, RESULT, SECOND, handler, proceed
from greenbeat.native import i64, load, ptr, store, u8, u32, u64, v128
from greenbeat.runtime.layout import NEAR, Instance, Task

THIRD, FOURTH = 20, 24


@cache
def prologue(sets, stores):
    """Put the pointer's new value into a local; set the global, and store up to two slots into the new frame."""

    @handler
    def run_prologue(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        place = load(u32, ip, FIRST)
        pointer = load(u32, instance, place) + load(u32, ip, THIRD)
        store(sp, u64(pointer), load(u32, ip, RESULT))
        if sets:
            store(instance, pointer, place)
        if stores:
            value = load(u32, sp, load(u32, ip, SECOND))
            store(memory + (u64(pointer) + u64(load(u32, ip, FOURTH))), value)
        if stores == 2:
            second = load(u32, sp, load(u32, ip, 28))
            store(memory + (u64(pointer) + u64(load(u32, ip, 32))), second)
        proceed(ip + (24 + 8 * stores), u64(pointer), float_accumulator)

    return run_prologue


@cache
def epilogue(result):
    """Set the global to a local plus a constant; return the value of a slot of type `result`, unless that is None."""

    @handler
    def run_epilogue(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        pointer = load(u32, sp, load(u32, ip, FIRST)) + load(u32, ip, SECOND)
        store(instance, pointer, load(u32, ip, RESULT))
        if result is None:
            return proceed(ip + 24, accumulator, float_accumulator)
        value = u64(load(result, sp, load(u32, ip, THIRD)))
        store(sp, value)
        following, caller = load(ptr[u8], sp, NEAR * 8), load(ptr[u8], sp, NEAR * 8 + 8)
        return enter(following, caller, memory, length, instance, value, float_accumulator)

    return run_epilogue


@handler
def epilogue_of_nothing(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Set the global and return without a result."""
    pointer = load(u32, sp, load(u32, ip, FIRST)) + load(u32, ip, SECOND)
    store(instance, pointer, load(u32, ip, RESULT))
    following, caller = load(ptr[u8], sp, NEAR * 8), load(ptr[u8], sp, NEAR * 8 + 8)
    enter(following, caller, memory, length, instance, accumulator, float_accumulator)


@handler
def epilogue_of_load(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Load the result, set the global and return."""
    address = u64(load(u32, sp, load(u32, ip, FIRST)))
    value = u64(load(u32, memory + (address + u64(load(u32, ip, SECOND)))))
    pointer = load(u32, sp, load(u32, ip, THIRD)) + load(u32, ip, FOURTH)
    store(instance, pointer, load(u32, ip, RESULT))
    store(sp, value)
    following, caller = load(ptr[u8], sp, NEAR * 8), load(ptr[u8], sp, NEAR * 8 + 8)
    enter(following, caller, memory, length, instance, value, float_accumulator)
