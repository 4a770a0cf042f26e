"""The slow path of a poll: the pulse is up, so somebody wants something of this task."""

from greenbeat.interpreter.convention import cold_handler, leave_raised, leave_trapped, proceed, remember
from greenbeat.native import i64, ptr, tail, u8, u64, v128
from greenbeat.runtime.layout import TRAP_INTERRUPTED, TRAP_NONE, Instance, Task
from greenbeat.runtime.tasks import beat


@cold_handler
def poll(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance], accumulator: u64, fuel: i64,
    float_accumulator: v128,
) -> None:  # fmt: skip
    """See what is wanted, then go on at `ip`, or stop there."""
    remember(ip, sp, task, instance, fuel)
    task.top = sp + instance.module.largest_frame
    task.limit = task.ceiling
    why = beat(task)
    if why == TRAP_NONE:
        proceed(ip, accumulator, float_accumulator)
    if why == TRAP_INTERRUPTED:
        return tail(leave_raised(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    task.trap = why
    return tail(leave_trapped(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
