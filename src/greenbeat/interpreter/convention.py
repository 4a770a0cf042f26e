"""What every handler shares: its arguments, how it reads operands and leaves a result, and how it goes on.

A handler runs one cell and leaves by a tail call of the next cell's handler. Its nine arguments are the interpreter's
whole state and stay in registers from handler to handler:

    ip  sp  memory  length  task  instance  accumulator  fuel  float_accumulator

A cell is the handler's address and its operands. The three shapes that most cells have:

    0          8            12           16             24
    │ handler  │ result     │ slot       │ slot or immediate │      binary; a fused branch has its target for the result
    │ handler  │ result     │ slot       │                          unary
    │ handler  │ result     │ slot       │ memory offset     │      load; a store has its value's slot for the result

Slots are byte offsets from `sp`. An operand is in a SLOT, an IMMEDIATE, or the ACCUMULATOR, which holds the latest
integer (or, the other one, float) result. A result always goes to the accumulator, and to a slot unless the very next
reader is its only one.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from greenbeat.native import (
    array,
    atomic_load,
    cast,
    extract_lane,
    function,
    i64,
    inline,
    load,
    parameters_of_caller,
    ptr,
    static,
    store,
    tail,
    u8,
    u32,
    u64,
    v128,
    vector_of,
    void,
)
from greenbeat.native.language import NativeFunction
from greenbeat.native.linker import flag
from greenbeat.native.targets import handler_convention, target_triple
from greenbeat.native.types import BoolType, FloatType, FunctionType, PointerType, as_type
from greenbeat.runtime.layout import RAISED, TRAPPED, Instance, Task

CONVENTION = handler_convention(target_triple())
_plain = function[[ptr[u8], ptr[u8], ptr[u8], u64, ptr[Task], ptr[Instance], u64, i64, v128], void]
HANDLER = FunctionType(_plain.params, _plain.returns, CONVENTION)
HANDLERS = PointerType(HANDLER)

SLOT, IMMEDIATE, ACCUMULATOR = "slot", "immediate", "accumulator"

RESULT, FIRST, SECOND = 8, 12, 16

# Where loads are not reordered, a handler that another thread has just put into a cell comes with the operands that
# were written before it. Elsewhere the load of the handler has to say so.
ORDERED = target_triple().split("-")[0] == "x86_64"

# In the counting build each dispatch adds one at its handler's place: bits 4 to 19 of the address. All handlers are
# in one object, smaller than 1 MiB, and begin at multiples of 16.
COUNTING = flag("GREENBEAT_COUNTING")
PLACES = 1 << 16
dispatch_counts = static(array[u64, PLACES if COUNTING else 1], name="dispatch_counts")


@inline
def next_handler(ip):
    """The handler of the cell at `ip`, which is about to run."""
    if ORDERED:
        following = load(HANDLER, ip)
    else:
        following = atomic_load(cast(HANDLERS, ip), "acquire")
    if COUNTING:
        dispatch_counts[cast(u64, following) // 16 % PLACES] += 1
    return following


@inline
def proceed(ip, accumulator, float_accumulator):
    """Go on at `ip` with these accumulators; everything else as it was."""
    state = parameters_of_caller()
    following = next_handler(ip)
    return tail(
        following(ip, state[1], state[2], state[3], state[4], state[5], accumulator, state[7], float_accumulator)
    )


@inline
def stop(kind, ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator):
    """What `trap(kind)` is inside a handler."""
    task.trap = kind
    return tail(leave_trapped(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))


# To a type checker, an inline function is the function as written.
_stop: Any = stop
F = TypeVar("F", bound=Callable[..., Any])


def _make(python: Any, **options: Any) -> Any:
    return NativeFunction(python, convention=CONVENTION, trap=_stop, **options)


def handler(python: F) -> F:
    """Make a function a handler.

    It begins at a cache line. Most are no longer than one, and none becomes slower because another one was added.
    """
    return _make(python, attributes="align 64")


def cold_handler(python: F) -> F:
    """Make a function a handler that is off the path."""
    return _make(python, cold=True)


def entry_handler(python: F) -> F:
    """Make a function the handler that a run begins with: called, never expanded, so that it has a return address."""
    return _make(python, noinline=True)


@inline
def remember(ip, sp, task, instance, fuel):
    """Write the registers that describe where the guest is into the task."""
    task.ip = ip
    task.sp = sp
    task.instance = instance
    task.fuel = fuel


@cold_handler
def leave_trapped(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """End the run with the trap that is in the task."""
    remember(ip, sp, task, instance, fuel)
    task.status = TRAPPED


@cold_handler
def leave_raised(
    ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
    accumulator: u64, fuel: i64, float_accumulator: v128,
) -> None:  # fmt: skip
    """End the run because a Python exception is set."""
    remember(ip, sp, task, instance, fuel)
    task.status = RAISED


@inline
def read(kind, native_type, position, ip, sp, accumulator, float_accumulator):
    """An operand: in the slot that the cell names at `position`, in the cell itself, or in an accumulator."""
    if kind == SLOT:
        return load(native_type, sp, load(u32, ip, position))
    if kind == IMMEDIATE:
        return load(native_type, ip, position)
    if is_float(native_type):
        return extract_lane(float_accumulator, native_type, 0)
    return native_type(accumulator)


def is_float(native_type):
    """Whether values of the type live in the float accumulator."""
    return isinstance(native_type, FloatType)


def unsigned(native_type):
    """The unsigned type of the same width; for bool, u32."""
    kind = as_type(native_type)
    return u32 if isinstance(kind, BoolType) or kind.size <= 4 else u64


@inline
def widen(native_type, value):
    """An integer or bool result as the 64 bits that a slot and the accumulator hold."""
    return u64(unsigned(native_type)(value))


@inline
def finish(native_type, value, to_slot, size, ip, sp, accumulator, float_accumulator):
    """Leave a result in its accumulator (and its slot), and go on `size` bytes further."""
    if is_float(native_type):
        if to_slot:
            store(sp, value, load(u32, ip, RESULT))
        return proceed(ip + size, accumulator, vector_of(value))
    wide = widen(native_type, value)
    if to_slot:
        store(sp, wide, load(u32, ip, RESULT))
    return proceed(ip + size, wide, float_accumulator)
