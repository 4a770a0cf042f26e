"""What a fault in a guarded memory becomes in the interpreter: the trap of an access out of bounds."""

from greenbeat.interpreter.convention import cold_handler, leave_trapped
from greenbeat.interpreter.handlers import functions, handlers
from greenbeat.native import addressof, cast, export, i64, load, native, ptr, tail, u8, u64, v128
from greenbeat.runtime.faults import fault_target, handlers_end, handlers_start
from greenbeat.runtime.layout import TRAP_MEMORY, Instance, Task

# More than any handler's code: the end of the last one is not known, only where it starts.
LONGEST_HANDLER = 4096


@native
def handler_at(counter: u64) -> u64:
    """The handler whose code a program counter is in: the last one that starts before it."""
    best: u64 = 0
    for number in range(len(functions)):
        address = cast(u64, handlers[number])
        if address <= counter and address > best:
            best = address
    return best


@cold_handler
def memory_fault(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Entered by the signal handler in place of the load or store that faulted; `ip` is at its cell or just behind.

    The signal handler left the program counter in the task's accumulator, which tells which of the two it is.
    """
    task.trap = TRAP_MEMORY
    at = ip
    if load(u64, ip) != handler_at(task.accumulator):
        at = ip - 1
    return tail(leave_trapped(at, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))


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
