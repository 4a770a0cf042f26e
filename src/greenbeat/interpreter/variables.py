"""Handlers that move values: copies, constants, globals, select, and what a function does on entry.

The *plain* moves leave both accumulators alone, so that a value can be put into its slot between two cells that hand
something to each other in an accumulator.
"""

from functools import cache

from greenbeat.interpreter.convention import (
    FIRST,
    RESULT,
    SECOND,
    SLOT,
    cold_handler,
    finish,
    handler,
    proceed,
    read,
    remember,
)
from greenbeat.native import (
    f32,
    f64,
    fill,
    i64,
    load,
    move,
    ptr,
    store,
    tail,
    trap,
    u8,
    u32,
    u64,
    unlikely,
    v128,
)
from greenbeat.runtime.layout import HEADER_SLOTS, NEAR, STACK_MARGIN, SUSPENDED, TRAP_STACK, Instance, Task

# The four classes of value that are moved differently: by which accumulator holds them, and how wide.
CLASSES = (u32, u64, f32, f64)


@handler
def copy_plain(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """A slot to another."""
    store(sp, load(u64, sp, load(u32, ip, FIRST)), load(u32, ip, RESULT))
    proceed(ip + 16, accumulator, float_accumulator)


@handler
def copy_two_plain(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Two copies, one after the other: the second's words follow the first's."""
    store(sp, load(u64, sp, load(u32, ip, FIRST)), load(u32, ip, RESULT))
    store(sp, load(u64, sp, load(u32, ip, 20)), load(u32, ip, SECOND))
    proceed(ip + 24, accumulator, float_accumulator)


@handler
def copy_many_plain(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Slots that follow each other to others, which may overlap with them: how many bytes is the word at 16."""
    move(sp + load(u32, ip, RESULT), sp + load(u32, ip, FIRST), u64(load(u32, ip, SECOND)))
    proceed(ip + 24, accumulator, float_accumulator)


@handler
def constant_plain(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """A constant to a slot."""
    store(sp, load(u64, ip, SECOND), load(u32, ip, RESULT))
    proceed(ip + 24, accumulator, float_accumulator)


@cache
def copy(kind, to_slot):
    """A slot to an accumulator, and to another slot."""

    @handler
    def run_copy(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = read(SLOT, kind, FIRST, ip, sp, accumulator, float_accumulator)
        finish(kind, value, to_slot, 16, ip, sp, accumulator, float_accumulator)

    return run_copy


@cache
def constant(kind, to_slot):
    """A constant to an accumulator, and to a slot."""

    @handler
    def run_constant(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        finish(kind, load(kind, ip, SECOND), to_slot, 24, ip, sp, accumulator, float_accumulator)

    return run_constant


@cache
def global_get(kind, imported, to_slot):
    """A global: an own one at a byte offset from the instance, an imported one through its address."""

    @handler
    def run_global_get(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        if imported:
            value = load(kind, instance.globals[load(u32, ip, FIRST)])
        else:
            value = load(kind, instance, load(u32, ip, FIRST))
        finish(kind, value, to_slot, 16, ip, sp, accumulator, float_accumulator)

    return run_global_get


@cache
def global_set(kind, imported, value):
    """Set a global, from a slot or an accumulator."""

    @handler
    def run_global_set(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        new = read(value, kind, RESULT, ip, sp, accumulator, float_accumulator)
        if imported:
            store(instance.globals[load(u32, ip, FIRST)], new)
        else:
            store(instance, new, load(u32, ip, FIRST))
        proceed(ip + 16, accumulator, float_accumulator)

    return run_global_set


@cache
def select(kind, condition, to_slot):
    """`select`: result, condition, and the two values' slots at 16 and 20."""

    @handler
    def run_select(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        chosen = load(u32, ip, 20)
        if read(condition, u32, FIRST, ip, sp, accumulator, float_accumulator) != 0:
            chosen = load(u32, ip, 16)
        finish(kind, load(kind, sp, chosen), to_slot, 24, ip, sp, accumulator, float_accumulator)

    return run_select


# ---------------------------------------------------------------- on entry


@cache
def zero(count):
    """Zero `count` slots, or as many as the cell says."""

    @handler
    def run_zero(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        if count is None:
            fill(sp + load(u32, ip, RESULT), 0, 8 * load(u32, ip, FIRST))
        else:
            fill(sp + load(u32, ip, RESULT), 0, 8 * count)
        proceed(ip + 16, accumulator, float_accumulator)

    return run_zero


@cache
def zero_split(front, behind):
    """Zero `front` slots, which end at a near header, and `behind` slots after it, or as many as the cell says."""

    @handler
    def run_zero_split(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        fill(sp + 8 * (NEAR - front), 0, 8 * front)
        if behind is None:
            fill(sp + 8 * (NEAR + HEADER_SLOTS), 0, 8 * load(u32, ip, FIRST))
        else:
            fill(sp + 8 * (NEAR + HEADER_SLOTS), 0, 8 * behind)
        proceed(ip + 24, accumulator, float_accumulator)

    return run_zero_split


@handler
def check_frame(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """A frame larger than the margin: see that it ends within the margin above the call's limit."""
    if unlikely(u64(load(u32, ip, RESULT)) > u64(task.ceiling + STACK_MARGIN - sp)):
        trap(TRAP_STACK)
    task.deep = 1
    proceed(ip + 16, accumulator, float_accumulator)


@handler
def charge(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Pay for the straight-line run that follows, or stop in front of it."""
    left = fuel - i64(load(u32, ip, RESULT))
    if unlikely(left < 0):
        return tail(suspend(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    return tail(after_charge(ip, sp, memory, length, task, instance, accumulator, left, float_accumulator))


@handler
def after_charge(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Go on with what is left of the fuel."""
    proceed(ip + 16, accumulator, float_accumulator)


@cold_handler
def suspend(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """The fuel is out: leave; `resume` comes back to this very cell.

    The accumulators are kept, a run may begin with one.
    """
    remember(ip, sp, task, instance, fuel)
    task.accumulator = accumulator
    task.float_accumulator = float_accumulator
    task.status = SUSPENDED
