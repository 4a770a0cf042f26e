"""From WebAssembly to cells: a function is translated when it is first called, by the pass that validated it before.

Or its cells are taken from what an earlier process kept (`placement.py`).

The pass in `wasm/body.py` says what it meets to the functions named here. Code belongs to the module and is shared by
its instances; there are up to four variants of a function's code, made when they are first needed.
"""

from types import SimpleNamespace

from greenbeat.interpreter import catching, control, returns, values
from greenbeat.interpreter.control import end_run, start_run
from greenbeat.interpreter.handlers import CHECK_FRAME, SERVICE, ZERO, ZERO_MANY, ZERO_SPLIT
from greenbeat.interpreter.linear_frames import set_at_once
from greenbeat.interpreter.placement import place, record, restore
from greenbeat.interpreter.translation import (
    KEPT_ENTRIES,
    NONE,
    Translation,
    barrier,
    drop_large_buffers,
    emit,
    grow_code,
    realloc,
    reserve_entries,
    state,
)
from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    atomic_update,
    cast,
    export,
    extern,
    fill,
    i32,
    i64,
    inline,
    native,
    ptr,
    sizeof,
    stack,
    static,
    store,
    u8,
    u32,
    u64,
)
from greenbeat.runtime.arena import free
from greenbeat.runtime.layout import HEADER_SLOTS, SLOT, STACK_MARGIN, VARIANTS, Function, Module, header_slot
from greenbeat.runtime.memory import growing
from greenbeat.tasks.locks import lock, unlock
from greenbeat.wasm.body import function_pass
from greenbeat.wasm.code import validate_body
from greenbeat.wasm.reader import Failure, Reader, failed
from greenbeat.wasm.validator import Validator, no_memory

# Frames up to this size fit above a task's limit, together with what a call out of the instance needs.
UNCHECKED_FRAME = STACK_MARGIN // 2

scratch = static(Validator, name="translator")
written = static(Translation, name="translation")
busy = static(u32, name="translating")


@extern
def sched_yield() -> i32:
    """POSIX: let another thread run."""


@native
def begin(v: ptr[Validator]) -> bool:
    """What a function does on entry: see that a large frame fits, zero its locals."""
    t = state(v)
    params = v.function.signature.param_count
    t.size = 0
    t.flushed = 0
    near = header_slot(params)
    t.header = near * SLOT
    t.operands = ((v.local_count if v.local_count > near else near) + HEADER_SLOTS) * SLOT
    t.charge = NONE
    t.open_catches = 0
    t.closed_catches = 0
    if t.capacity == 0:
        if not grow_code(v, 0):
            return False
    if v.local_count > t.local_capacity:
        grown = cast(ptr[u32], realloc(t.local_uses, u64(v.local_count) * 4))
        if grown is None:
            return no_memory(v)
        t.local_uses = grown
        t.local_capacity = v.local_count
    if v.local_count != 0:
        fill(t.local_uses, 0, u64(v.local_count) * 4)
    if not reserve_entries(v):
        return False
    barrier(v)
    if v.function.frame_size > UNCHECKED_FRAME:
        cell = emit(v, CHECK_FRAME, 16)
        store(cell, v.function.frame_size + UNCHECKED_FRAME, 8)
    zero_locals(v, params, near)
    start_run(v)
    return not failed(v.reader)


@native
def zero_locals(v: ptr[Validator], params: u32, near: u32) -> None:
    """Zero the locals in front of the header and those behind it."""
    t = state(v)
    total = v.local_count
    front = (total if total < near else near) - params
    behind = total - near if total > near else u32(0)
    first, after = params * SLOT, t.header + HEADER_SLOTS * SLOT
    known = set_at_once(v)
    if front != 0 and known == params:
        front -= 1
        first += SLOT
    elif front == 0 and behind != 0 and known == near:
        behind -= 1
        after += SLOT
    elif behind != 0 and known == total - 1:
        behind -= 1
    elif front != 0 and known == total - 1:
        front -= 1
    many = behind if behind < ZERO_MANY else u32(0)
    if front != 0 and behind != 0:
        cell = emit(v, ZERO_SPLIT + (front - 1) * ZERO_MANY + many, 24)
        store(cell, first, 8)
        store(cell, behind, 12)
        store(cell, u64(0), 16)
    elif front != 0:
        cell = emit(v, ZERO + front, 16)
        store(cell, first, 8)
        store(cell, front, 12)
    elif behind != 0:
        cell = emit(v, ZERO + many, 16)
        store(cell, after, 8)
        store(cell, behind, 12)


@inline
def instruction(v):
    """Before each instruction."""
    t = state(v)
    if v.control.reachable:
        t.charged += 1
    return reserve_entries(v)


@inline
def nop(v):
    """Nothing is written for `nop`."""


@native
def finish(v: ptr[Validator]) -> bool:
    """The function is translated: its code gets its place in the module."""
    t = state(v)
    end_run(v)
    if failed(v.reader):
        return False
    if t.watched >= 0:
        return True
    module, function = v.module, v.function
    if not place(module, function, t.variant, t.code, t.size, t.closed, t.closed_catches):
        return no_memory(v)
    module.translated += 1
    if module.recording != 0:
        record(module, function, t.variant, t.code, t.size, t.closed, t.closed_catches)
    return True


emission = SimpleNamespace(
    begin=begin,
    instruction=instruction,
    finish=finish,
    nop=nop,
    constant=values.constant,
    local_get=values.local_get,
    local_set=values.local_set,
    local_tee=values.local_tee,
    binary=values.binary,
    unary=values.unary,
    select=values.select,
    drop=values.drop,
    load=values.load,
    store=values.store_,
    global_get=values.global_get,
    global_set=values.global_set,
    service=values.service,
    begin_block=control.begin_block,
    begin_if=control.begin_if,
    opened=control.opened,
    begin_else=control.begin_else,
    end_block=control.end_block,
    branch=control.branch,
    branch_if=control.branch_if,
    branch_table=control.branch_table,
    branch_on_null=control.branch_on_null,
    branch_on_non_null=control.branch_on_non_null,
    as_non_null=control.as_non_null,
    unreachable=control.unreachable,
    throw=catching.throw,
    throw_reference=catching.throw_reference,
    begin_try=catching.begin_try,
    catch_clause=catching.catch_clause,
    opened_try=catching.opened_try,
    return_=control.return_,
    call=returns.call,
    call_indirect=returns.call_indirect,
    call_ref=returns.call_ref,
    tail_call=returns.tail_call,
    tail_call_indirect=returns.tail_call_indirect,
    tail_call_ref=returns.tail_call_ref,
    MEMORY_SIZE=SERVICE["memory.size"],
    MEMORY_GROW=SERVICE["memory.grow"],
    MEMORY_FILL=SERVICE["memory.fill"],
    MEMORY_COPY=SERVICE["memory.copy"],
    MEMORY_INIT=SERVICE["memory.init"],
    DATA_DROP=SERVICE["data.drop"],
    TABLE_GET=SERVICE["table.get"],
    TABLE_SET=SERVICE["table.set"],
    TABLE_SIZE=SERVICE["table.size"],
    TABLE_GROW=SERVICE["table.grow"],
    TABLE_FILL=SERVICE["table.fill"],
    TABLE_COPY=SERVICE["table.copy"],
    TABLE_INIT=SERVICE["table.init"],
    ELEM_DROP=SERVICE["elem.drop"],
    REF_FUNC=SERVICE["ref.func"],
)

translate_body = function_pass(emission)


@native
def translate(module: ptr[Module], function: ptr[Function], variant: u32, watched: i64, found: ptr[ptr[u8]]) -> bool:
    """Run the pass over a function; only one thread does at a time, with the buffers of this file.

    With `watched` not below 0, `found` becomes the place of the instruction whose cell is there, and nothing else is
    made.
    """
    while atomic_update("xchg", busy, 1, "acquire") != 0:
        sched_yield()
    failure = stack(Failure)
    fill(failure, 0, sizeof(Failure))
    r = stack(Reader)
    r.position = function.body
    r.end = function.body + function.body_length
    r.start = module.bytes
    r.failure = failure
    v = scratch
    v.module = module
    v.function = function
    v.reader = r
    v.at = function.body
    v.translation = written
    written.variant = variant
    written.watched = watched
    written.found = function.body
    done = watched < 0 and (function.entry[variant] is not None or restore(module, function, variant))
    if not done:
        if function.frame_size == 0:
            # An earlier process validated the body, but did not translate it: the frame's size is not known here.
            module.validated += 1
            validate_body(v, r)
            r.position = function.body
        if not failed(r):
            done = translate_body(v, r)
        drop_large_buffers(written)
        if v.capacity > KEPT_ENTRIES:
            free(v.types)
            v.types = None
            v.capacity = 0
        if v.control_capacity > KEPT_ENTRIES:
            free(v.controls)
            v.controls = None
            v.control_capacity = 0
    if found is not None:
        found[0] = written.found
    atomic_store(busy, 0, "release")
    return done


@export
def begin_fork() -> None:
    """Before a fork: no other thread is in the middle of a translation, or of a growth."""
    while atomic_update("xchg", busy, 1, "acquire") != 0:
        sched_yield()
    lock(growing)


@export
def end_fork() -> None:
    """After a fork, in parent and child."""
    unlock(growing)
    atomic_store(busy, 0, "release")


@export
def ensure_translated(module: ptr[Module], function: ptr[Function], variant: u32) -> ptr[u8]:
    """The function's cells in a variant, made now if need be; null when there is no memory for them."""
    entry = atomic_load(addressof(function.entry[variant]), "acquire")
    if entry is None and translate(module, function, variant, -1, cast(ptr[ptr[u8]], 0)):
        entry = atomic_load(addressof(function.entry[variant]), "acquire")
    return entry


@export
def instruction_offset(module: ptr[Module], index: u32, ip: ptr[u8]) -> u64:
    """Where in the module's bytes the instruction is whose cell `ip` points into, by translating once more; else 0."""
    function = module.functions + index
    for variant in range(u32(VARIANTS)):
        entry = function.entry[variant]
        if entry is not None and ip >= entry and ip < entry + function.code_size[variant]:
            found = stack(ptr[u8], 1)
            if translate(module, function, variant, ip - entry, found):
                return u64(found[0] - module.bytes)
    return 0
