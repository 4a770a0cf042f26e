"""What a fault in a guarded memory becomes in the interpreter: the trap of an access out of bounds."""

from greenbeat.interpreter.convention import cold_handler, leave_trapped
from greenbeat.interpreter.handlers import functions, handlers
from greenbeat.native import addressof, cast, export, i64, ptr, tail, u8, u64, v128
from greenbeat.runtime.faults import fault_target, handlers_end, handlers_start
from greenbeat.runtime.layout import TRAP_MEMORY, Instance, Task

# More than any handler's code: the end of the last one is not known, only where it starts.
LONGEST_HANDLER = 4096


@cold_handler
def memory_fault(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Entered by the signal handler in place of the load or store that faulted; `ip` is at its cell or just behind."""
    task.trap = TRAP_MEMORY
    return tail(leave_trapped(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))


@export
def start_interpreter() -> None:
    """Tell the fault handler where the interpreter's handlers are and what to do about a fault in them."""
    lowest = cast(u64, handlers[0])
    highest = lowest
    for number in range(len(functions)):
        address = cast(u64, handlers[number])
        if address != 0:
            lowest = address if address < lowest else lowest
            highest = address if address > highest else highest
    handlers_start[0] = lowest
    handlers_end[0] = highest + LONGEST_HANDLER
    fault_target[0] = cast(u64, addressof(memory_fault))
