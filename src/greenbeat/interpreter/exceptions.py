"""Throwing: an exception is made, and the frames are walked outward to the first clause that takes it.

A `try_table` costs nothing until something is thrown: its clauses are a table beside the function's cells (`Catch` in
the layout). An exception is a Python `bytes` object, so that references to it live as those to other objects do:

    │ tag │ value 0 │ value 1 │ ...         8 bytes each

https://webassembly.github.io/spec/core/exec/instructions.html#exec-throw-ref
"""

from greenbeat.interpreter.calls import SAVED, enter, foreign_cells, leave_cells, memory_of
from greenbeat.interpreter.convention import FIRST, RESULT, handler, leave_raised, remember
from greenbeat.native import (
    addressof,
    atomic_load,
    cast,
    copy,
    extern,
    i64,
    load,
    native,
    ptr,
    stack,
    store,
    struct,
    tail,
    trap,
    u8,
    u32,
    u64,
    v128,
    void,
)
from greenbeat.runtime.frames import function_at
from greenbeat.runtime.groups import Group, retain
from greenbeat.runtime.layout import (
    ANY_TAG,
    SLOT,
    TRAP_EXCEPTION,
    TRAP_NULL_REFERENCE,
    VARIANTS,
    Catch,
    Function,
    Instance,
    Tag,
    Task,
    header_slot,
)
from greenbeat.runtime.pythonapi import Object, Py_DecRef, Py_IncRef
from greenbeat.tasks.beat import call_on_thread
from greenbeat.tasks.crossing import keep_exception
from greenbeat.tasks.layout import Fiber


@extern
def PyBytes_FromStringAndSize(text: ptr[u8], size: i64) -> ptr[Object]:
    """CPython's."""


@extern
def PyBytes_AsString(item: ptr[Object]) -> ptr[u8]:
    """CPython's."""


@struct
class Throw:
    """What is done for a throw on the thread's own stack, and what came of it."""

    tag: ptr[Tag]
    values: ptr[u8]
    exception: ptr[Object]
    found: u32


@native
def make_exception(tag: ptr[Tag], values: ptr[u8]) -> ptr[Object]:
    """An exception with a tag and the values in slots; null with MemoryError."""
    size = u64(tag.signature.param_count) * SLOT
    made = PyBytes_FromStringAndSize(None, i64(size) + SLOT)
    if made is not None:
        contents = PyBytes_AsString(made)
        store(contents, tag)
        copy(contents + SLOT, values, size)
    return made


@native
def make_on_thread(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """`make_exception`, called from a fiber."""
    throw = cast(ptr[Throw], argument)
    throw.exception = make_exception(throw.tag, throw.values)
    if throw.exception is None:
        keep_exception(fiber)


@native(shared=True, noinline=True)
def new_exception(task: ptr[Task], tag: ptr[Tag], values: ptr[u8]) -> ptr[Object]:
    """An exception with a tag and the values in slots; null with MemoryError."""
    throw = stack(Throw)
    throw.tag = tag
    throw.values = values
    call_on_thread(task.fiber, make_on_thread, throw)
    return throw.exception


@native
def catch_at(function: ptr[Function], ip: ptr[u8], instance: ptr[Instance], tag: ptr[Tag]) -> ptr[Catch]:
    """The innermost clause around the cell that `ip` points into and that takes a tag; null if there is none."""
    for variant in range(u32(VARIANTS)):
        entry = atomic_load(addressof(function.entry[variant]), "acquire")
        if entry is not None and ip >= entry and ip < entry + function.code_size[variant]:
            offset = u32(ip - entry)
            for i in range(function.catch_count[variant]):
                clause = function.catches[variant] + i
                if offset >= clause.start and offset < clause.end:
                    if clause.tag == ANY_TAG or instance.tags[clause.tag] == tag:
                        return clause
            return cast(ptr[Catch], 0)
    return cast(ptr[Catch], 0)


@native
def find_catch(task: ptr[Task], exception: ptr[Object]) -> u32:
    """Find who catches an exception, which is owned and thrown where the task is.

    Returns:
        1 if somebody does; the task is there then. 0 if nobody does up to the call that Python made; the task has the
        exception then. 2 with MemoryError.
    """
    contents = PyBytes_AsString(exception)
    tag = load(ptr[Tag], contents)
    instance, ip, sp = task.instance, task.ip, task.sp
    task.top = sp + instance.module.largest_frame
    while True:
        function = function_at(instance.module, ip)
        if function is None:
            break
        clause = catch_at(function, ip, instance, tag)
        if clause is not None:
            count: u32 = 0
            if clause.tag != ANY_TAG:
                count = tag.signature.param_count
            place = sp + clause.slot
            copy(place, contents + SLOT, u64(count) * SLOT)
            if clause.by_reference != 0:
                store(place + u64(count) * SLOT, exception)
                if not retain(cast(ptr[Group], instance.python), exception):
                    Py_DecRef(exception)
                    return 2
            Py_DecRef(exception)
            for variant in range(u32(VARIANTS)):
                entry = function.entry[variant]
                if entry is not None and ip >= entry and ip < entry + function.code_size[variant]:
                    task.ip = entry + clause.landing
            task.sp = sp
            task.instance = instance
            return 1
        header = sp + u64(header_slot(function.signature.param_count)) * SLOT
        ip = load(ptr[u8], header)
        sp = load(ptr[u8], header, 8)
        if cast(u64, ip) == cast(u64, leave_cells):
            break
        if cast(u64, ip) == cast(u64, foreign_cells):
            saved = sp - SAVED
            ip = load(ptr[u8], saved)
            sp = load(ptr[u8], saved, 8)
            instance = load(ptr[Instance], saved, 16)
        # A return address is behind its call, which may be the last cell that a clause covers.
        ip = ip - 1
    task.exception = exception
    return 0


@native
def find_on_thread(fiber: ptr[Fiber], argument: ptr[void]) -> None:
    """`find_catch`, called from a fiber."""
    throw = cast(ptr[Throw], argument)
    throw.found = find_catch(cast(ptr[Task], fiber.task), throw.exception)
    if throw.found == 2:
        keep_exception(fiber)


@native(shared=True, noinline=True)
def unwind(task: ptr[Task], exception: ptr[Object]) -> u32:
    """`find_catch`, on the thread's own stack: an object that nobody needs any more may run Python code."""
    throw = stack(Throw)
    throw.exception = exception
    call_on_thread(task.fiber, find_on_thread, throw)
    return throw.found


@handler
def throw(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """`throw`: the values are in slots in a row."""
    remember(ip, sp, task, instance, fuel)
    task.top = sp + instance.module.largest_frame
    made = new_exception(task, instance.tags[load(u32, ip, FIRST)], sp + load(u32, ip, RESULT))
    if made is None:
        return tail(leave_raised(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    return tail(raise_exception(ip, sp, memory, length, task, instance, cast(u64, made), fuel, float_accumulator))


@handler
def throw_reference(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """`throw_ref`."""
    exception = load(u64, sp, load(u32, ip, RESULT))
    if exception == 0:
        trap(TRAP_NULL_REFERENCE)
    Py_IncRef(cast(ptr[Object], exception))
    return tail(raise_exception(ip, sp, memory, length, task, instance, exception, fuel, float_accumulator))


@handler
def raise_exception(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """The exception is in the accumulator: go on where it is caught, or stop."""
    remember(ip, sp, task, instance, fuel)
    found = unwind(task, cast(ptr[Object], accumulator))
    if found == 2:
        return tail(leave_raised(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
    if found == 0:
        trap(TRAP_EXCEPTION)
    there = task.instance
    base, size = memory_of(there)
    enter(task.ip, task.sp, base, size, there, accumulator, float_accumulator)
