"""The slow path of a poll: the pulse is up, so somebody wants something of this task."""

from greenbeat.interpreter.convention import HANDLER, cold_handler, leave_trapped, proceed, remember
from greenbeat.native import i64, inline, load, parameters_of_caller, ptr, tail, u8, u64, unlikely, v128
from greenbeat.runtime.layout import TRAP_NONE, Instance, Task
from greenbeat.tasks.crossing import beat_of_guest


@inline
def branch_to(target, backward, accumulator, float_accumulator):
    """Go on at a branch's target; a backward branch polls."""
    if backward:
        state = parameters_of_caller()
        if unlikely(state[4].pulse != 0):
            return tail(
                poll(target, state[1], state[2], state[3], state[4], state[5], accumulator, state[7], float_accumulator)
            )
    return proceed(target, accumulator, float_accumulator)


@cold_handler
def poll(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """See what is wanted, then go on at `ip`, or stop there."""
    remember(ip, sp, task, instance, fuel)
    task.top = sp + instance.module.largest_frame
    # It may be a reference, and other threads may look for those that are still needed.
    task.accumulator = accumulator
    why = beat_of_guest(task)
    fuel = task.fuel
    if why == TRAP_NONE:
        # Other threads had their turn: the memory may have grown, fuel may have been given.
        if instance.memory is not None:
            length = instance.memory.length
        following = load(HANDLER, ip)
        return tail(following(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    task.trap = why
    return tail(leave_trapped(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
