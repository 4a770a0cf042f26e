"""Handlers of unconditional branches and of `br_table`.

    0          8         12               16
    │ handler  │ target  │                                          br: target as a distance from where it stands
    │ handler  │ count   │ index's slot   │ target 0 │ target 1 │ … │ default         br_table

Backward branches poll; a `br_table` reaches a loop's start through a `br` of its own.
"""

from functools import cache

from greenbeat.interpreter.convention import FIRST, RESULT, handler, proceed, read
from greenbeat.interpreter.poll import branch_to
from greenbeat.native import i32, i64, load, ptr, select, u8, u32, u64, v128
from greenbeat.runtime.layout import Instance, Task


@cache
def branch(backward):
    """`br`."""

    @handler
    def run_branch(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        target = ip + RESULT + load(i32, ip, RESULT)
        branch_to(target, backward, accumulator, float_accumulator)

    return run_branch


@cache
def branch_table(index):
    """`br_table`: the default's target stands behind the others."""

    @handler
    def run_branch_table(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        count = load(u32, ip, RESULT)
        wanted = read(index, u32, FIRST, ip, sp, accumulator, float_accumulator)
        chosen = select(wanted < count, wanted, count)
        place = ip + 16 + 4 * u64(chosen)
        proceed(place + load(i32, place), accumulator, float_accumulator)

    return run_branch_table
