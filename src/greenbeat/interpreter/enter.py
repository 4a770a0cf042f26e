"""Into the interpreter and out of it: a call from the host, and a suspended call that goes on."""

from greenbeat.interpreter.calls import leave_cells, memory_of
from greenbeat.interpreter.convention import entry_handler, proceed
from greenbeat.native import (
    cast,
    extern,
    i64,
    native,
    ptr,
    return_address_place,
    store,
    u8,
    u32,
    u64,
    v128,
    vector_of,
)
from greenbeat.runtime.layout import (
    FINISHED,
    SLOT,
    TRAP_NO_MEMORY,
    TRAP_STACK,
    TRAPPED,
    Function,
    FunctionInstance,
    Instance,
    Module,
    Task,
    header_slot,
)


@extern
def ensure_translated(module: ptr[Module], function: ptr[Function], variant: u32) -> ptr[u8]:
    """`translator.py`: a function's cells, made now if need be; null without memory."""


@entry_handler
def begin(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """The first handler: note where the way back is, for a fault that has to find it."""
    task.native_stack = return_address_place()
    proceed(ip, accumulator, float_accumulator)


@native(shared=True)
def run(task: ptr[Task], target: ptr[FunctionInstance], frame: ptr[u8]) -> u32:
    """Call a function: arguments are in the slots at `frame`, results replace them. Returns what became of the task."""
    instance = target.instance
    header = frame + u64(header_slot(target.signature.param_count)) * SLOT
    entry = cast(ptr[u8], 0)
    task.trap = TRAP_STACK
    if frame <= task.ceiling:
        task.trap = TRAP_NO_MEMORY
        entry = ensure_translated(instance.module, target.function, task.mode | instance.bounds)
    if entry is None:
        task.status = TRAPPED
        task.ip = cast(ptr[u8], 0)
        task.sp = frame
        task.instance = instance
        return TRAPPED
    store(header, cast(ptr[u8], leave_cells))
    store(header, frame, 8)
    base, size = memory_of(instance)
    task.status = FINISHED
    task.instance = instance
    begin(entry, frame, base, size, task, instance, 0, task.fuel, vector_of(u64(0)))
    return task.status


@native(shared=True)
def resume(task: ptr[Task]) -> u32:
    """Go on with a suspended task, from where its fuel ran out."""
    instance = task.instance
    base, size = memory_of(instance)
    task.status = FINISHED
    begin(task.ip, task.sp, base, size, task, instance, task.accumulator, task.fuel, task.float_accumulator)
    return task.status
