"""Walking a guest's frames, from the innermost outward, to the call that Python made.

    ip ─▶ cells of a function ─▶ its index, its number of parameters
    sp ─▶ │ parameters, perhaps locals │ caller's ip │ caller's sp │ ...             the next frame

A caller's ip of `leave_cells` tells that Python called the function; `foreign_cells`, that another instance did, whose
ip, sp and instance are in the words before `sp`.
"""

from greenbeat.interpreter.calls import SAVED, foreign_cells, leave_cells
from greenbeat.native import addressof, atomic_load, cast, export, load, native, ptr, u8, u32, u64
from greenbeat.runtime.layout import SLOT, VARIANTS, FrameRecord, Function, Instance, Module, Task, header_slot


@native
def has_cells(function: ptr[Function], ip: ptr[u8]) -> bool:
    """Whether `ip` points into the cells of a function."""
    for variant in range(u32(VARIANTS)):
        entry = atomic_load(addressof(function.entry[variant]), "acquire")
        if entry is not None and ip >= entry and ip < entry + function.code_size[variant]:
            return True
    return False


@native
def function_at(module: ptr[Module], ip: ptr[u8]) -> ptr[Function]:
    """The function whose cells `ip` points into, or null."""
    for i in range(module.imported_functions, module.function_count):
        function = module.functions + i
        if has_cells(function, ip):
            return function
    return cast(ptr[Function], 0)


@native
def known_function(instance: ptr[Instance], ip: ptr[u8], records: ptr[FrameRecord], count: u32) -> ptr[Function]:
    """As `function_at`, looking first at the functions of the frames that were noted: recursion ends there."""
    for i in range(count):
        record = records + i
        if record.instance == instance and has_cells(instance.module.functions + record.index, ip):
            return instance.module.functions + record.index
    return function_at(instance.module, ip)


@export
def walk_frames(task: ptr[Task], records: ptr[FrameRecord], room: u32) -> u32:
    """Note the frames of the innermost call from Python of a task that has stopped or waits for the host.

    Returns:
        How many frames were noted: at most `room`, the innermost ones.
    """
    instance = task.instance
    ip = task.ip
    sp = task.sp
    count = u32(0)
    while count < room and ip is not None and instance is not None:
        function = known_function(instance, ip, records, count)
        if function is None:
            return count
        record = records + count
        record.instance = instance
        record.ip = ip
        record.index = function.index
        count += 1
        header = sp + u64(header_slot(function.signature.param_count)) * SLOT
        ip = load(ptr[u8], header)
        sp = load(ptr[u8], header, 8)
        if cast(u64, ip) == cast(u64, leave_cells):
            return count
        if cast(u64, ip) == cast(u64, foreign_cells):
            saved = sp - SAVED
            ip = load(ptr[u8], saved)
            sp = load(ptr[u8], saved, 8)
            instance = load(ptr[Instance], saved, 16)
    return count
