"""Handlers of calls and returns: frames are built in place, in the caller's operands.

    0          8         12          16             24       28
    │ handler  │ frame   │ header    │ entry          │ call itself │     call of a translated function of this module
    │ handler  │ frame   │ header    │ index * 2 + 1  │ call itself │     call_unlinked: becomes the above
    │ handler  │ frame   │ index     │      │ frame   │                   call_import
    │ handler  │ frame   │ index's slot │ signature   │ table  │ header │ 64-bit? │ frame    call_indirect
    │ ...                                              │ own header │     │ frame             the ends of tail calls
    │ handler  │ header  │ result's slot or count     │ first result's slot │       return

`frame` is where the callee's frame starts, `header` where its header is, both from the caller's `sp` (in a return,
the header from its own); `call_ref` is a `call_indirect` with the reference's slot. A call that leaves the instance
gets a frame of its own, behind the words it needs to come back:

    frame ─▶ │ arguments, later results │ ip │ sp │ instance │ signature │ copied arguments │ header ...
                                                                         └─ the callee's sp

A tail call that leaves the instance takes its frame away first: those words say how to come back to the caller's
caller, unless that is in another instance already and they are there.
"""

from functools import cache

from greenbeat.interpreter.convention import (
    FIRST,
    HANDLER,
    HANDLERS,
    RESULT,
    SLOT,
    cold_handler,
    handler,
    is_float,
    leave_raised,
    leave_trapped,
    next_handler,
    read,
    remember,
    widen,
)
from greenbeat.interpreter.poll import poll
from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    copy,
    extern,
    f64,
    i64,
    inline,
    load,
    move,
    native,
    parameters_of_caller,
    ptr,
    select,
    store,
    table,
    tail,
    trap,
    u8,
    u32,
    u64,
    unlikely,
    v128,
    vector_of,
)
from greenbeat.runtime.hostcalls import HOST_DONE, HOST_STOPPED
from greenbeat.runtime.layout import (
    HOST,
    NEAR,
    STACK_MARGIN,
    TRAP_INDIRECT_NULL,
    TRAP_INDIRECT_TYPE,
    TRAP_NO_MEMORY,
    TRAP_NULL_REFERENCE,
    TRAP_STACK,
    TRAP_TABLE_ELEMENT,
    Function,
    FunctionInstance,
    Instance,
    Module,
    SignatureType,
    Task,
    header_slot,
)
from greenbeat.tasks.crossing import become_bound, call_out


@extern
def ensure_translated(module: ptr[Module], function: ptr[Function], variant: u32) -> ptr[u8]:
    """`translator.py`: a function's cells, made now if need be; null without memory."""


# Where a call's cell holds the handler it has once the callee is translated, and its size.
CALL_ITSELF, CALL_SIZE = 24, 32
# Where an entry will be, an unlinked call has twice the function's index and this, which no entry has.
UNLINKED = 1
SAVED = 32  # bytes of the words behind the arguments of a call that leaves the instance


@inline
def enter(ip, sp, memory, length, instance, accumulator, float_accumulator):
    """Go on at `ip` in another frame, perhaps of another instance."""
    state = parameters_of_caller()
    following = next_handler(ip)
    return tail(following(ip, sp, memory, length, state[4], instance, accumulator, state[7], float_accumulator))


@cold_handler
def call_slow(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """A call found its frame beyond the limit.

    The stack is full, or was not used so far yet, or the pacemaker took the limit away to be noticed here.
    """
    if task.limit is None:
        task.limit = task.soft
        return tail(poll(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    if not raise_limit(task, sp + load(u32, ip, RESULT)):
        # Behind the cell's first byte it is the call, not what makes the last argument.
        task.trap = TRAP_STACK
        return tail(leave_trapped(ip + 1, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    again = next_handler(ip)
    return tail(again(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))


@inline
def raise_limit(task, frame):
    """Let frames begin up to `frame` and some way further; False if that is beyond the stack's end."""
    good = frame <= task.ceiling
    if good:
        further = frame + STACK_MARGIN
        task.soft = further if further < task.ceiling else task.ceiling
        task.limit = task.soft
    return good


@cache
def call(near):
    """Call a translated function of this instance's module; `near` tells that its header is at its usual place."""

    @handler
    def run_call(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        frame = sp + load(u32, ip, RESULT)
        header = frame + NEAR * 8 if near else sp + load(u32, ip, FIRST)
        if unlikely(frame > task.limit):
            return tail(call_slow(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
        store(header, ip + CALL_SIZE)
        store(header, sp, 8)
        enter(load(ptr[u8], ip, 16), frame, memory, length, instance, accumulator, float_accumulator)

    return run_call


@cache
def call_unlinked(variant):
    """The first run of a call: translate the callee if need be, turn this cell into the call it is, and run it."""

    @cold_handler
    def run_call_unlinked(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        place = cast(ptr[u64], ip + 16)
        word = atomic_load(place, "acquire")
        # Another thread may have linked the cell since we took this handler from it.
        if word & UNLINKED != 0:
            entry = ensure_translated(instance.module, instance.module.functions + u32(word >> 1), variant)
            if entry is None:
                trap(TRAP_NO_MEMORY)
            atomic_store(place, cast(u64, entry), "release")
        linked = load(HANDLER, ip, CALL_ITSELF)
        atomic_store(cast(HANDLERS, ip), linked, "release")
        return tail(linked(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))

    return run_call_unlinked


# ---------------------------------------------------------------- returns


@inline
def own_header(near, ip, sp):
    """The header of the frame that returns."""
    return sp + NEAR * 8 if near else sp + load(u32, ip, RESULT)


@cache
def return_nothing(near):
    """Return without a result."""

    @handler
    def run_return_nothing(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        header = own_header(near, ip, sp)
        enter(load(ptr[u8], header), load(ptr[u8], header, 8), memory, length, instance, accumulator, float_accumulator)

    return run_return_nothing


@cache
def return_value(kind, operand, near):
    """Return one result: into the frame's first slot and an accumulator."""

    @handler
    def run_return_value(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        header = own_header(near, ip, sp)
        following, caller = load(ptr[u8], header), load(ptr[u8], header, 8)
        value = read(operand, kind, FIRST, ip, sp, accumulator, float_accumulator)
        if is_float(kind):
            store(sp, value)
            enter(following, caller, memory, length, instance, accumulator, vector_of(value))
        else:
            store(sp, widen(kind, value))
            enter(following, caller, memory, length, instance, widen(kind, value), float_accumulator)

    return run_return_value


@handler
def return_values(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Return several results, which are in slots in a row."""
    header = sp + load(u32, ip, RESULT)
    following, caller = load(ptr[u8], header), load(ptr[u8], header, 8)
    move(sp, sp + load(u32, ip, 16), u64(load(u32, ip, FIRST)) * 8)
    enter(following, caller, memory, length, instance, accumulator, float_accumulator)


# ---------------------------------------------------------------- calls that leave the instance


@native
def wider(signature: ptr[SignatureType]) -> u64:
    """Bytes that a call's arguments and results take in the caller's frame."""
    return (
        u64(select(signature.param_count > signature.result_count, signature.param_count, signature.result_count)) * 8
    )


@native(shared=True, noinline=True)
def prepare_foreign(
    ip: ptr[u8], sp: ptr[u8], frame: ptr[u8], task: ptr[Task], instance: ptr[Instance], target: ptr[FunctionInstance]
) -> ptr[u8]:
    """Lay out a guest call into another instance; returns the callee's frame. `ip` is where the caller goes on."""
    signature = target.signature
    saved = frame + wider(signature)
    store(saved, ip)
    store(saved, sp, 8)
    store(saved, instance, 16)
    store(saved, signature, 24)
    inner = saved + SAVED
    size = u64(signature.param_count) * 8
    copy(inner, frame, size)
    header = inner + u64(header_slot(signature.param_count)) * 8
    store(header, cast(ptr[u8], foreign_cells))
    store(header, inner, 8)
    return inner


@handler
def call_target(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Call the host or another instance.

    The accumulator has the FunctionInstance, `task.top` the frame, `ip` goes on after.
    """
    target = cast(ptr[FunctionInstance], accumulator)
    frame = task.top
    remember(ip, sp, task, instance, fuel)
    if target.kind == HOST:
        task.top = frame + wider(target.signature)
        outcome = call_out(task, target, frame)
        if unlikely(outcome != HOST_DONE):
            if outcome == HOST_STOPPED:
                return tail(
                    leave_trapped(ip, sp, memory, length, task, instance, accumulator, task.fuel, float_accumulator)
                )
            return tail(leave_raised(ip, sp, memory, length, task, instance, accumulator, task.fuel, float_accumulator))
        return tail(after_call(ip, sp, memory, length, task, instance, accumulator, task.fuel, float_accumulator))
    if unlikely(frame > task.soft) and not raise_limit(task, frame):
        trap(TRAP_STACK)
    other = target.instance
    if unlikely(other.bound > task.bound):
        become_bound(task)
    entry = ensure_translated(other.module, target.function, task.mode | other.bounds)
    if entry is None:
        trap(TRAP_NO_MEMORY)
    inner = prepare_foreign(ip, sp, frame, task, instance, target)
    task.instance = other
    following = next_handler(entry)
    base, size = memory_of(other)
    return tail(following(entry, inner, base, size, task, other, accumulator, fuel, float_accumulator))


@inline
def memory_of(instance):
    """Base and length of an instance's memory 0, as handlers pass them on."""
    base = cast(ptr[u8], 0)
    size: u64 = 0
    if instance.memory is not None:
        base = instance.memory.base
        size = instance.memory.length
    return base, size


@handler
def after_call(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Back in the caller: memory may have grown, the first result goes to both accumulators."""
    base, size = memory_of(instance)
    frame = sp + load(u32, ip - 4)
    enter(ip, sp, base, size, instance, load(u64, frame), vector_of(load(f64, frame)))


@handler
def return_foreign(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """The cell a callee in another instance returns to: put things back as they were at the call."""
    saved = sp - SAVED
    signature = load(ptr[SignatureType], saved, 24)
    caller = load(ptr[Instance], saved, 16)
    results = saved - wider(signature)
    copy(results, sp, u64(signature.result_count) * 8)
    task.instance = caller
    base, size = memory_of(caller)
    back, frame = load(ptr[u8], saved), load(ptr[u8], saved, 8)
    enter(back, frame, base, size, caller, load(u64, results), vector_of(load(f64, results)))


@handler
def leave(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """The cell that the outermost function returns to."""
    task.fuel = fuel
    task.status = 0


foreign_cells = table(HANDLER, [return_foreign], name="foreign_cells")
leave_cells = table(HANDLER, [leave], name="leave_cells")


@handler
def call_import(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """Call an imported function."""
    task.top = sp + load(u32, ip, RESULT)
    target = cast(u64, instance.imports[load(u32, ip, FIRST)])
    return tail(call_target(ip + 24, sp, memory, length, task, instance, target, fuel, float_accumulator))


@cache
def call_dynamic(operand, by_reference, variant, near):
    """`call_indirect` and `call_ref`: a function of this instance is called at once, any other by `call_target`."""

    @handler
    def run_call_dynamic(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        target = dynamic_target(operand, by_reference, ip, sp, instance, accumulator, float_accumulator)
        frame = sp + load(u32, ip, RESULT)
        if unlikely(target.instance != instance):
            task.top = frame
            return tail(
                call_target(ip + 40, sp, memory, length, task, instance, cast(u64, target), fuel, float_accumulator)
            )
        if unlikely(frame > task.limit):
            return tail(call_slow(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
        entry = target.function.entry[variant]
        if unlikely(entry is None):
            return tail(translate_first(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
        header = frame + NEAR * 8 if near else sp + load(u32, ip, 28)
        store(header, ip + 40)
        store(header, sp, 8)
        enter(entry, frame, memory, length, instance, accumulator, float_accumulator)

    @cold_handler
    def translate_first(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        target = dynamic_target(operand, by_reference, ip, sp, instance, accumulator, float_accumulator)
        if ensure_translated(instance.module, target.function, variant) is None:
            trap(TRAP_NO_MEMORY)
        return tail(run_call_dynamic(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))

    return run_call_dynamic


@inline
def dynamic_target(operand, by_reference, ip, sp, instance, accumulator, float_accumulator):
    """The function that a reference, or a table's element, names, after the checks of its kind."""
    if by_reference:
        reference = read(operand, u64, FIRST, ip, sp, accumulator, float_accumulator)
        if unlikely(reference == 0):
            trap(TRAP_NULL_REFERENCE)
        return cast(ptr[FunctionInstance], reference)
    from_table = instance.tables[load(u32, ip, 24)]
    index: u64 = 0
    if operand == SLOT and load(u32, ip, 32) != 0:
        index = read(operand, u64, FIRST, ip, sp, accumulator, float_accumulator)
    else:
        index = u64(read(operand, u32, FIRST, ip, sp, accumulator, float_accumulator))
    # Loaded once: see Table.
    elements = atomic_load(addressof(from_table.elements), "relaxed")
    if unlikely(index >= elements[-1]):
        trap(TRAP_TABLE_ELEMENT)
    element = elements[index]
    if unlikely(element == 0):
        trap(TRAP_INDIRECT_NULL)
    target = cast(ptr[FunctionInstance], element)
    if unlikely(target.signature != load(ptr[SignatureType], ip, 16)):
        trap(TRAP_INDIRECT_TYPE)
    return target


# ---------------------------------------------------------------- tail calls


@inline
def replace_frame(sp, own, target, arguments):
    """Move the arguments over the frame's own parameters and the header behind them: the frame is the callee's now."""
    following, caller = load(ptr[u8], own), load(ptr[u8], own, 8)
    move(sp, arguments, u64(target.signature.param_count) * 8)
    header = sp + u64(header_slot(target.signature.param_count)) * 8
    store(header, following)
    store(header, caller, 8)


@cache
def tail_call(variant):
    """`return_call` of a function of this module: header, first argument's slot, function index at 16."""

    @handler
    def run_tail_call(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        function = instance.module.functions + load(u32, ip, 16)
        if unlikely(task.pulse != 0):
            return tail(poll(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
        entry = function.entry[variant]
        if unlikely(entry is None):
            return tail(translate_first(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
        replace_frame(sp, sp + load(u32, ip, RESULT), function, sp + load(u32, ip, FIRST))
        enter(entry, sp, memory, length, instance, accumulator, float_accumulator)

    @cold_handler
    def translate_first(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        function = instance.module.functions + load(u32, ip, 16)
        if ensure_translated(instance.module, function, variant) is None:
            trap(TRAP_NO_MEMORY)
        return tail(run_tail_call(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))

    return run_tail_call


@native(shared=True, noinline=True)
def replace_foreign(
    ip: ptr[u8], sp: ptr[u8], task: ptr[Task], instance: ptr[Instance], target: ptr[FunctionInstance]
) -> ptr[u8]:
    """Lay out a tail call of a guest in another instance, whose arguments are at `task.top`.

    Returns the callee's frame.
    """
    own = sp + load(u32, ip - 12)
    following, caller = load(ptr[u8], own), load(ptr[u8], own, 8)
    signature = target.signature
    size = u64(signature.param_count) * 8
    inner = sp
    if cast(u64, following) == cast(u64, foreign_cells):
        move(inner, task.top, size)
    else:
        saved = sp + wider(signature)
        inner = saved + SAVED
        # First the arguments: they may be where the words go.
        move(inner, task.top, size)
        store(saved, following)
        store(saved, caller, 8)
        store(saved, instance, 16)
        store(saved, signature, 24)
    header = inner + u64(header_slot(signature.param_count)) * 8
    store(header, cast(ptr[u8], foreign_cells))
    store(header, inner, 8)
    return inner


@handler
def tail_call_target(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """The tail call that `call_target` is a call of. The host's results are returned by the cells that follow."""
    target = cast(ptr[FunctionInstance], accumulator)
    if target.kind == HOST:
        return tail(call_target(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    other = target.instance
    if unlikely(other.bound > task.bound):
        become_bound(task)
    entry = ensure_translated(other.module, target.function, task.mode | other.bounds)
    if entry is None:
        trap(TRAP_NO_MEMORY)
    inner = replace_foreign(ip, sp, task, instance, target)
    task.instance = other
    following = next_handler(entry)
    base, size = memory_of(other)
    return tail(following(entry, inner, base, size, task, other, accumulator, fuel, float_accumulator))


@handler
def tail_call_import(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """`return_call` of an imported function; the cell is that of the call, longer by the own header."""
    if unlikely(task.pulse != 0):
        return tail(poll(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    task.top = sp + load(u32, ip, RESULT)
    target = cast(u64, instance.imports[load(u32, ip, FIRST)])
    return tail(tail_call_target(ip + 32, sp, memory, length, task, instance, target, fuel, float_accumulator))


@cache
def tail_call_dynamic(by_reference, variant):
    """`return_call_indirect` and `return_call_ref`. The cell is that of the call, longer by the own header."""

    @handler
    def run_tail_call_dynamic(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        if unlikely(task.pulse != 0):
            return tail(poll(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
        target = dynamic_target(SLOT, by_reference, ip, sp, instance, accumulator, float_accumulator)
        arguments = sp + load(u32, ip, RESULT)
        if unlikely(target.instance != instance):
            task.top = arguments
            return tail(
                tail_call_target(
                    ip + 48, sp, memory, length, task, instance, cast(u64, target), fuel, float_accumulator
                )
            )
        entry = ensure_translated(instance.module, target.function, variant)
        if unlikely(entry is None):
            trap(TRAP_NO_MEMORY)
        replace_frame(sp, sp + load(u32, ip, 36), target, arguments)
        enter(entry, sp, memory, length, instance, accumulator, float_accumulator)

    return run_tail_call_dynamic
