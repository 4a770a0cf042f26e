"""Translation of exceptions: what is thrown, and the clauses of a `try_table` with the places they land at.

br ──────────────────────────────┐
landing of the first clause: move the values, branch to its label
landing of the second clause ...  │
body of the try_table ◀───────────┘        covered by the clauses, up to its end
"""

from greenbeat.interpreter.control import bind_here, branch_from, end_run, start_run
from greenbeat.interpreter.handlers import BRANCH, THROW, THROW_REFERENCE
from greenbeat.interpreter.translation import barrier, emit, flush, operand_slot, realloc, set_in_slot, settle, state
from greenbeat.native import cast, native, ptr, sizeof, store, u32, u64
from greenbeat.runtime.layout import Catch, SignatureType
from greenbeat.wasm.validator import Control, Validator, no_memory


@native
def throw(v: ptr[Validator], tag: u32, signature: ptr[SignatureType]) -> None:
    """`throw`: the values were popped."""
    t = state(v)
    settle(v, v.height, v.height + signature.param_count)
    cell = emit(v, THROW, 16)
    store(cell, operand_slot(t, v.height), 8)
    store(cell, tag, 12)
    end_run(v)


@native
def throw_reference(v: ptr[Validator]) -> None:
    """`throw_ref`: the reference was popped."""
    t = state(v)
    settle(v, v.height, v.height + 1)
    cell = emit(v, THROW_REFERENCE, 16)
    store(cell, operand_slot(t, v.height), 8)
    end_run(v)


@native
def begin_try(v: ptr[Validator], params: u32) -> None:
    """The landings come first; the way into the body goes around them."""
    t = state(v)
    flush(v, v.height + params)
    t.pending = t.size + 8
    emit(v, BRANCH, 16)
    end_run(v)
    t.first_catch = t.open_catches


@native
def reserve_catch(v: ptr[Validator]) -> bool:
    """Room for one clause more, open or closed."""
    t = state(v)
    if t.open_catches + t.closed_catches < t.catch_capacity:
        return True
    capacity = t.catch_capacity * 2 + 32
    opened = cast(ptr[Catch], realloc(t.open, u64(capacity) * sizeof(Catch)))
    if opened is None:
        return no_memory(v)
    t.open = opened
    closed = cast(ptr[Catch], realloc(t.closed, u64(capacity) * sizeof(Catch)))
    if closed is None:
        return no_memory(v)
    t.closed = closed
    t.catch_capacity = capacity
    return True


@native
def catch_clause(v: ptr[Validator], target: ptr[Control], tag: u32, values: u32, by_reference: u32) -> None:
    """A clause: its landing moves the values, which the throw put into slots, and branches."""
    t = state(v)
    if not reserve_catch(v):
        return
    clause = t.open + t.open_catches
    t.open_catches += 1
    clause.landing = t.size
    clause.slot = operand_slot(t, v.height)
    clause.tag = tag
    clause.by_reference = by_reference
    barrier(v)
    for i in range(values + by_reference):
        set_in_slot(v, v.height + i)
    branch_from(v, target, v.height, False)


@native
def opened_try(v: ptr[Validator]) -> None:
    """The body begins here."""
    t = state(v)
    control = v.control
    bind_here(v, t.pending)
    barrier(v)
    control.first_catch = t.first_catch
    control.catch_count = t.open_catches - t.first_catch
    control.covered_from = t.size
    start_run(v)
