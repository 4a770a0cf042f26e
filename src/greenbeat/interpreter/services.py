"""Handlers of operations that are too large to be worth variants: bulk memory, tables, growth, references.

Their operands are in slots in a row, from the one the cell names at 8; the result replaces the first. The work itself
is done by functions of the runtime that say which trap there was, or none.

    0          8              12        16        20           24
    │ handler  │ first slot   │ one     │ two     │ 64-bit?    │      one and two: indices of memories, tables, segments

Bits of `64-bit?` tell which operands are 64 bits wide: the others are 32-bit numbers.
"""

from functools import cache

from greenbeat.interpreter.calls import memory_of
from greenbeat.interpreter.convention import RESULT, cold_handler, handler, next_handler
from greenbeat.interpreter.poll import poll
from greenbeat.native import cast, i64, inline, load, ptr, stack, store, tail, trap, u8, u32, u64, unlikely, v128
from greenbeat.runtime.evaluate import function_reference
from greenbeat.runtime.layout import TRAP_MEMORY, Instance, Task
from greenbeat.runtime.memory import grow_memory, memory_copy, memory_fill, outside
from greenbeat.runtime.segments import data_drop, data_length, elem_drop, memory_init, table_init
from greenbeat.runtime.table import grow_table, table_copy, table_fill, table_get, table_set, table_size

SIZE = 24
# Bytes that are moved between two looks at the pulse.
LONGEST_PART = 1 << 20


@inline
def argument(ip, sp, position):
    """An operand as 64 bits, by the width that the cell tells."""
    value = load(u64, sp, load(u32, ip, RESULT) + 8 * position)
    if load(u32, ip, 20) & (1 << position) == 0:
        value = u64(u32(value))
    return value


@inline
def check(kind):
    """Stop with a trap, if there was one."""
    if unlikely(kind != 0):
        trap(kind)


@inline
def done(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator):
    """Go on with whatever length memory 0 has now."""
    base, size = memory_of(instance)
    following = next_handler(ip + SIZE)
    return tail(following(ip + SIZE, sp, base, size, task, instance, accumulator, fuel, float_accumulator))


def service(work):
    """A handler around `work(ip, sp, task, instance)`, which stops or returns its result (None if it has none)."""

    @handler
    def run_service(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        result = work(ip, sp, instance)
        store(sp, result, load(u32, ip, RESULT))
        done(ip, sp, memory, length, task, instance, result, fuel, float_accumulator)

    return run_service


def action(work):
    """A handler around `work(ip, sp, instance)`, which stops or is done; it has no result."""

    @handler
    def run_action(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        work(ip, sp, instance)
        done(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator)

    return run_action


def long_action(work):
    """An action that may take long: `work` does a part of it, and returns what is left of the count.

    It has put the operands of the rest into their slots: the cell runs again, after a look at the pulse.
    """

    @handler
    def run_long_action(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        if unlikely(work(ip, sp, instance) != 0):
            if unlikely(task.pulse != 0):
                return tail(poll(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
            again = next_handler(ip)
            return tail(again(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
        done(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator)

    return run_long_action


@inline
def part(count):
    """How much of a count is done before the next look at the pulse."""
    return count if count < LONGEST_PART else u64(LONGEST_PART)


@inline
def add(ip, sp, position, amount):
    """Add to an operand."""
    place = load(u32, ip, RESULT) + 8 * position
    store(sp, load(u64, sp, place) + amount, place)


@inline
def check_range(memory, start, count):
    """Stop with a trap unless all of a range is in a memory."""
    if unlikely(outside(start, count, memory.length)):
        trap(TRAP_MEMORY)


@inline
def one(ip):
    """The cell's first index."""
    return load(u32, ip, 12)


@inline
def two(ip):
    """The cell's second index."""
    return load(u32, ip, 16)


@inline
def memory_size_work(ip, sp, instance):
    """`memory.size`."""
    memory = instance.memories[one(ip)]
    return memory.length >> u64(memory.page_bits)


@inline
def memory_grow_work(ip, sp, instance):
    """`memory.grow`."""
    memory = instance.memories[one(ip)]
    old = grow_memory(instance, memory, argument(ip, sp, 0))
    if not memory.is_64:
        old = u64(u32(old))
    return old


@inline
def memory_fill_work(ip, sp, instance):
    """`memory.fill`."""
    memory = instance.memories[one(ip)]
    destination, value, count = argument(ip, sp, 0), argument(ip, sp, 1), argument(ip, sp, 2)
    check_range(memory, destination, count)
    now = part(count)
    check(memory_fill(memory, destination, u32(value), now))
    add(ip, sp, 0, now)
    add(ip, sp, 2, u64(0) - now)
    return count - now


@inline
def memory_copy_work(ip, sp, instance):
    """`memory.copy`."""
    to, origin = instance.memories[one(ip)], instance.memories[two(ip)]
    destination, source, count = argument(ip, sp, 0), argument(ip, sp, 1), argument(ip, sp, 2)
    check_range(to, destination, count)
    check_range(origin, source, count)
    now = part(count)
    if destination > source:
        # The last part first: it may lie where the others come from.
        check(memory_copy(to, origin, destination + (count - now), source + (count - now), now))
    else:
        check(memory_copy(to, origin, destination, source, now))
        add(ip, sp, 0, now)
        add(ip, sp, 1, now)
    add(ip, sp, 2, u64(0) - now)
    return count - now


@inline
def memory_init_work(ip, sp, instance):
    """`memory.init`."""
    destination, source, count = argument(ip, sp, 0), argument(ip, sp, 1), argument(ip, sp, 2)
    check_range(instance.memories[one(ip)], destination, count)
    if unlikely(outside(source, count, data_length(instance, two(ip)))):
        trap(TRAP_MEMORY)
    now = part(count)
    check(memory_init(instance, one(ip), two(ip), destination, source, now))
    add(ip, sp, 0, now)
    add(ip, sp, 1, now)
    add(ip, sp, 2, u64(0) - now)
    return count - now


@inline
def data_drop_work(ip, sp, instance):
    """`data.drop`."""
    data_drop(instance, one(ip))


@inline
def table_get_work(ip, sp, instance):
    """`table.get`."""
    found = stack(u64)
    check(table_get(instance.tables[one(ip)], argument(ip, sp, 0), found))
    return found[0]


@inline
def table_set_work(ip, sp, instance):
    """`table.set`."""
    value = load(u64, sp, load(u32, ip, RESULT) + 8)
    check(table_set(instance.tables[one(ip)], argument(ip, sp, 0), value))


@inline
def table_size_work(ip, sp, instance):
    """`table.size`."""
    return table_size(instance.tables[one(ip)])


@inline
def table_grow_work(ip, sp, instance):
    """`table.grow`."""
    table = instance.tables[one(ip)]
    old = grow_table(table, argument(ip, sp, 1), load(u64, sp, load(u32, ip, RESULT)))
    if not table.is_64:
        old = u64(u32(old))
    return old


@inline
def table_fill_work(ip, sp, instance):
    """`table.fill`."""
    value = load(u64, sp, load(u32, ip, RESULT) + 8)
    check(table_fill(instance.tables[one(ip)], argument(ip, sp, 0), value, argument(ip, sp, 2)))


@inline
def table_copy_work(ip, sp, instance):
    """`table.copy`."""
    destination, source, count = argument(ip, sp, 0), argument(ip, sp, 1), argument(ip, sp, 2)
    check(table_copy(instance.tables[one(ip)], instance.tables[two(ip)], destination, source, count))


@inline
def table_init_work(ip, sp, instance):
    """`table.init`."""
    destination, source, count = argument(ip, sp, 0), argument(ip, sp, 1), argument(ip, sp, 2)
    check(table_init(instance, one(ip), two(ip), destination, source, count))


@inline
def elem_drop_work(ip, sp, instance):
    """`elem.drop`."""
    elem_drop(instance, one(ip))


@inline
def ref_func_work(ip, sp, instance):
    """`ref.func`."""
    return cast(u64, function_reference(instance, one(ip)))


# By name; the order is their numbering.
SERVICES = {
    "memory.size": service(memory_size_work),
    "memory.grow": service(memory_grow_work),
    "memory.fill": long_action(memory_fill_work),
    "memory.copy": long_action(memory_copy_work),
    "memory.init": long_action(memory_init_work),
    "data.drop": action(data_drop_work),
    "table.get": service(table_get_work),
    "table.set": action(table_set_work),
    "table.size": service(table_size_work),
    "table.grow": service(table_grow_work),
    "table.fill": action(table_fill_work),
    "table.copy": action(table_copy_work),
    "table.init": action(table_init_work),
    "elem.drop": action(elem_drop_work),
    "ref.func": service(ref_func_work),
}


@cache
def stop_with(kind):
    """A cell that does nothing but trap: `unreachable`, and `ref.as_non_null`'s failing side."""

    @cold_handler
    def run_stop(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        trap(kind)

    return run_stop
