"""Handlers of two operations in one: what one *maker* computes goes straight into a *user*.

    0          8         12       16                   20
    │ handler  │ result  │ first  │ second             │ third  │      the words of the maker's own cell, plus the third

`first` and `second` are the maker's operands, as in its own cell; `third` is the user's other operand, a slot or a
32-bit immediate, or a load's or store's offset. A store has its value's slot for the result, one of what was made has
its address's, a fused branch its target. Immediates of 64-bit operations take part if they fit 32 bits, so that the
cell has the size of the maker's: the translator writes the user over the maker it has just emitted.

Which pairs exist is a matter of frequency, measured over programs compiled by LLVM; accesses take part where guard
pages check them. A pair that does not exist costs one dispatch more, nothing else.
"""

from functools import cache

from greenbeat.interpreter.arithmetic import INVERSE, slots_at
from greenbeat.interpreter.calls import CALL_SIZE, call_slow, enter, own_header
from greenbeat.interpreter.convention import (
    ACCUMULATOR,
    FIRST,
    IMMEDIATE,
    RESULT,
    SECOND,
    SLOT,
    finish,
    handler,
    is_float,
    proceed,
    read,
    widen,
)
from greenbeat.interpreter.poll import branch_to
from greenbeat.native import (
    i32,
    i64,
    inline,
    load,
    parameters_of_caller,
    ptr,
    store,
    tail,
    u8,
    u32,
    u64,
    unlikely,
    v128,
    vector_of,
)
from greenbeat.runtime.layout import NEAR, Instance, Task
from greenbeat.wasm.ops import LOADS, OPERATIONS, STORES
from greenbeat.wasm.valuetypes import I32

THIRD = 20

LEFT, RIGHT, CONSTANT = "left", "right", "constant"

BY_NAME = {o.name: o.opcode for o in [*OPERATIONS.values()]} | {
    a.name: a.opcode for a in [*LOADS.values(), *STORES.values()]
}

_SI, _SS, _AS, _AI = (SLOT, IMMEDIATE), (SLOT, SLOT), (ACCUMULATOR, SLOT), (ACCUMULATOR, IMMEDIATE)
_any, _constant, _slots = (_SI, _SS, _AS, _AI), (_SI, _AI), (_SS, _AS)


def _operations(names, variants):
    return [(BY_NAME[name], *variant) for name in names.split() for variant in variants]


def _loads(names):
    return [(BY_NAME[name], address, None) for name in names.split() for address in (SLOT, ACCUMULATOR)]


# A global of the instance's own, of type i32: the pointer of the stack in linear memory.
OWN_GLOBAL = (0x23, None, None)

# (opcode, operand, operand or None)
MAKERS = [
    *_operations("i32.add i32.mul i32.and", _any),
    *_operations("i32.sub i32.xor i32.or", _slots),
    *_operations("i32.shl i32.shr_u i32.shr_s i32.rotl", _constant),
    *_operations("i64.add i64.and", _any),
    *_operations("i64.xor i64.mul", _slots),
    *_operations("i64.shl i64.shr_u i64.rotl", _constant),
    *_operations("f32.mul f32.add f64.mul f64.add", _slots),
    *_operations("f32.sub f64.sub", [_SS]),
    *_loads("i32.load i32.load8_u i32.load16_u i32.load16_s i64.load f32.load f64.load"),
    (BY_NAME["i32.wrap_i64"], SLOT, None),
    OWN_GLOBAL,
]

# (opcode, side the maker's value is on)
USERS = [
    *(
        (BY_NAME[n], s)
        for n in ["i32.add", "i32.mul", "i32.and", "i32.or", "i32.xor", "i64.add", "i64.and"]
        for s in (LEFT, CONSTANT)
    ),
    *((BY_NAME[n], s) for n in ["i32.sub", "i64.sub", "f32.sub", "f64.sub"] for s in (LEFT, RIGHT)),
    *((BY_NAME[n], LEFT) for n in ["i64.mul", "i64.or", "i64.xor", "f32.add", "f32.mul", "f64.add", "f64.mul"]),
    *((BY_NAME[n], CONSTANT) for n in ["i32.shl", "i32.shr_u", "i32.shr_s", "i64.shl", "i64.shr_u"]),
]
LOAD_USERS = [
    BY_NAME[n]
    for n in [
        "i32.load",
        "i32.load8_u",
        "i32.load8_s",
        "i32.load16_u",
        "i32.load16_s",
        "i64.load",
        "f32.load",
        "f64.load",
    ]
]
# (opcode, where the value is)
STORE_USERS = [
    *((BY_NAME[n], SLOT) for n in ["i32.store", "i32.store8", "i32.store16", "i64.store", "f32.store", "f64.store"]),
    *((BY_NAME[n], ACCUMULATOR) for n in ["f32.store", "f64.store"]),
]
BRANCH_USERS = [
    *(
        (BY_NAME[f"i32.{n}"], s)
        for n in ["eq", "ne", "lt_u", "lt_s", "gt_u", "gt_s", "ge_u", "ge_s", "le_u", "le_s"]
        for s in (LEFT, CONSTANT)
    ),
    (BY_NAME["i32.eqz"], None),
]

# Stores of what was made; the address is in a slot.
VALUE_USERS = [BY_NAME[n] for n in ("i32.store", "i32.store8", "i32.store16", "i64.store", "f32.store", "f64.store")]

# Makers of a call's last argument; besides there are COPY, a local's, and LITERAL, a constant, whatever its type.
COPY, LITERAL = "copy", "constant"
STEP = (BY_NAME["i32.add"], *_SI)
LOADED = [*_loads("i32.load")]
CALL_MAKERS = [STEP, *LOADED]

# Pairs whose result is stored: variables in memory are changed, or copied from where a pointer in memory points.
STORED_PAIRS = [
    (maker, user)
    for maker in LOADED
    for user in [
        *((BY_NAME[f"i32.{n}"], CONSTANT) for n in ("add", "or", "and", "shl", "shr_u")),
        (BY_NAME["i32.add"], LEFT),
        (BY_NAME["i32.load"], SLOT),
    ]
]
# Pairs whose result is returned.
RETURNED_PAIRS = [(maker, (BY_NAME["i32.load"], SLOT)) for maker in LOADED]

_ADDRESSES = {BY_NAME[n] for n in ["i32.add", "i32.shl", "i32.and", "i32.load", "i32.wrap_i64"]}
_TESTED = {BY_NAME[n] for n in ["i32.and", "i32.load", "i32.load8_u", "i32.load16_u", "i32.add", "i32.shr_u"]}


def made_type(maker):
    """The WebAssembly type that a maker makes."""
    if maker == OWN_GLOBAL:
        return I32
    opcode = maker[0]
    return LOADS[opcode].value_type if opcode in LOADS else OPERATIONS[opcode].result_type


def made_as(maker):
    """The native type that a maker makes."""
    if maker == OWN_GLOBAL:
        return i32
    opcode = maker[0]
    return LOADS[opcode].value if opcode in LOADS else OPERATIONS[opcode].result


def fits(maker, user):
    """Whether a pair of operations exists."""
    opcode, _ = user
    if maker == OWN_GLOBAL:
        return user == (BY_NAME["i32.add"], CONSTANT)
    if opcode in LOADS or opcode in STORES:
        return maker[0] in _ADDRESSES
    if OPERATIONS[opcode].compares:
        return maker[0] in _TESTED
    return made_type(maker) == OPERATIONS[opcode].operand_type


def fits_store(maker, opcode):
    """Whether a store of what a maker made exists: the narrow ones of what was loaded."""
    narrow = STORES[opcode].name in ("i32.store8", "i32.store16")
    return made_type(maker) == STORES[opcode].value_type and (not narrow or maker[0] in LOADS)


@inline
def made(maker, ip, sp, memory, accumulator, float_accumulator):
    """The maker's value."""
    if maker == OWN_GLOBAL:
        value = load(i32, parameters_of_caller()[5], load(u32, ip, FIRST))
    elif maker[0] in LOADS:
        address = u64(read(maker[1], u32, FIRST, ip, sp, accumulator, float_accumulator))
        access = LOADS[maker[0]]
        value = access.value(load(access.stored, memory + (address + u64(load(u32, ip, SECOND)))))
    elif maker[2] is None:
        operation = OPERATIONS[maker[0]]
        value = operation.meaning(read(maker[1], operation.params[0], FIRST, ip, sp, accumulator, float_accumulator))
    else:
        operation = OPERATIONS[maker[0]]
        places = slots_at(maker[1], maker[2])
        a = operand(maker[1], operation.params[0], places[0], ip, sp, accumulator, float_accumulator)
        b = operand(maker[2], operation.params[1], places[1], ip, sp, accumulator, float_accumulator)
        value = operation.meaning(a, b)
    return value


@inline
def operand(kind, native_type, position, ip, sp, accumulator, float_accumulator):
    """An operand whose immediate is 32 bits wide, whatever its type."""
    if kind == IMMEDIATE:
        value = native_type(load(u32, ip, position))
    else:
        value = read(kind, native_type, position, ip, sp, accumulator, float_accumulator)
    return value


@inline
def used(opcode, side, value, ip, sp, accumulator, float_accumulator):
    """The user's value."""
    left_type, right_type = OPERATIONS[opcode].params
    if side == LEFT:
        result = OPERATIONS[opcode].meaning(left_type(value), load(right_type, sp, load(u32, ip, THIRD)))
    elif side == RIGHT:
        result = OPERATIONS[opcode].meaning(load(left_type, sp, load(u32, ip, THIRD)), right_type(value))
    else:
        result = OPERATIONS[opcode].meaning(left_type(value), right_type(load(u32, ip, THIRD)))
    return result


@cache
def fused_operation(maker, opcode, side, to_slot):
    """A maker and an operation."""
    result = OPERATIONS[opcode].result

    @handler
    def run_fused_operation(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = made(maker, ip, sp, memory, accumulator, float_accumulator)
        value_of_user = used(opcode, side, value, ip, sp, accumulator, float_accumulator)
        finish(result, value_of_user, to_slot, 24, ip, sp, accumulator, float_accumulator)

    return run_fused_operation


@cache
def fused_load(maker, opcode, to_slot):
    """A maker of an address and a load."""
    access = LOADS[opcode]

    @handler
    def run_fused_load(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        address = u64(u32(made(maker, ip, sp, memory, accumulator, float_accumulator)))
        value = access.value(load(access.stored, memory + (address + u64(load(u32, ip, THIRD)))))
        finish(access.value, value, to_slot, 24, ip, sp, accumulator, float_accumulator)

    return run_fused_load


@cache
def fused_store(maker, opcode, value_at):
    """A maker of an address and a store."""
    access = STORES[opcode]

    @handler
    def run_fused_store(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        address = u64(u32(made(maker, ip, sp, memory, accumulator, float_accumulator)))
        value = read(value_at, access.value, RESULT, ip, sp, accumulator, float_accumulator)
        store(memory + (address + u64(load(u32, ip, THIRD))), access.stored(value))
        proceed(ip + 24, accumulator, float_accumulator)

    return run_fused_store


@inline
def both(maker, user, ip, sp, memory, accumulator, float_accumulator):
    """The value of a pair of integer operations or loads."""
    value = made(maker, ip, sp, memory, accumulator, float_accumulator)
    if user[0] in LOADS:
        access = LOADS[user[0]]
        result = access.value(load(access.stored, memory + (u64(u32(value)) + u64(load(u32, ip, THIRD)))))
    else:
        result = used(user[0], user[1], value, ip, sp, accumulator, float_accumulator)
    return result


@cache
def fused_value_store(maker, opcode):
    """A maker of a value and its store; the address's slot stands where the result's would."""
    access = STORES[opcode]

    @handler
    def run_fused_value_store(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = made(maker, ip, sp, memory, accumulator, float_accumulator)
        address = u64(load(u32, sp, load(u32, ip, RESULT)))
        store(memory + (address + u64(load(u32, ip, THIRD))), access.stored(access.value(value)))
        proceed(ip + 24, accumulator, float_accumulator)

    return run_fused_value_store


@cache
def fused_pair_store(maker, user):
    """A pair and a store of its result: the offset follows the pair's words. The cell is 32 bytes."""

    @handler
    def run_fused_pair_store(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = both(maker, user, ip, sp, memory, accumulator, float_accumulator)
        address = u64(load(u32, sp, load(u32, ip, RESULT)))
        store(memory + (address + u64(load(u32, ip, 24))), u32(value))
        proceed(ip + 32, accumulator, float_accumulator)

    return run_fused_pair_store


def fused_branch(maker, opcode, side, negated, backward):
    """A maker, a comparison and a branch."""
    if negated and opcode in INVERSE:
        opcode, negated = INVERSE[opcode], False
    return _fused_branch(maker, opcode, side, negated, backward)


@cache
def _fused_branch(maker, opcode, side, negated, backward):
    @handler
    def run_fused_branch(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = made(maker, ip, sp, memory, accumulator, float_accumulator)
        if side is None:
            holds = OPERATIONS[opcode].meaning(OPERATIONS[opcode].params[0](value))
        else:
            holds = used(opcode, side, value, ip, sp, accumulator, float_accumulator)
        taken = holds if not negated else not holds
        if taken:
            target = ip + RESULT + load(i32, ip, RESULT)
            return branch_to(target, backward, accumulator, float_accumulator)
        return proceed(ip + 24, accumulator, float_accumulator)

    return run_fused_branch


@cache
def fused_step(opcode, side, negated, backward):
    """A loop's counter: add a constant to a local, compare it and branch. The local is at 24; the cell is 32 bytes.

    local.get, i32.const, i32.add, local.tee, ..., i32.ne, br_if
    """
    if negated and opcode in INVERSE:
        return fused_step(INVERSE[opcode], side, False, backward)

    @handler
    def run_fused_step(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = made(STEP, ip, sp, memory, accumulator, float_accumulator)
        wide = widen(i32, value)
        if side is None:
            holds = OPERATIONS[opcode].meaning(value)
        else:
            holds = used(opcode, side, value, ip, sp, accumulator, float_accumulator)
        store(sp, wide, load(u32, ip, 24))
        taken = holds if not negated else not holds
        if taken:
            target = ip + RESULT + load(i32, ip, RESULT)
            return branch_to(target, backward, wide, float_accumulator)
        return proceed(ip + 32, wide, float_accumulator)

    return run_fused_step


@cache
def fused_return(maker, near):
    """A maker and a return of what it makes; the header stands where the result's slot would."""
    native_type = made_as(maker)

    @handler
    def run_fused_return(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = made(maker, ip, sp, memory, accumulator, float_accumulator)
        header = own_header(near, ip, sp)
        following, caller = load(ptr[u8], header), load(ptr[u8], header, 8)
        if is_float(native_type):
            store(sp, value)
            enter(following, caller, memory, length, instance, accumulator, vector_of(value))
        else:
            store(sp, widen(native_type, value))
            enter(following, caller, memory, length, instance, widen(native_type, value), float_accumulator)

    return run_fused_return


@cache
def fused_pair_return(maker, user, near):
    """A pair and a return of its result; the header stands where the result's slot would."""

    @handler
    def run_fused_pair_return(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        value = u64(u32(both(maker, user, ip, sp, memory, accumulator, float_accumulator)))
        header = own_header(near, ip, sp)
        following, caller = load(ptr[u8], header), load(ptr[u8], header, 8)
        store(sp, value)
        enter(following, caller, memory, length, instance, value, float_accumulator)

    return run_fused_pair_return


@cache
def fused_call(maker, near):
    """A maker of the last argument and a call: the maker's words stand behind the call's, at the same distances.

    0          8         12          16       24            32      36       40
    │ handler  │ frame   │ header    │ entry  │ call itself │ slot  │ first  │ second or constant │
    """
    size = CALL_SIZE + 16

    @handler
    def run_fused_call(
        ip: ptr[u8], sp: ptr[u8], memory: ptr[u8], length: u64, task: ptr[Task], instance: ptr[Instance],
        accumulator: u64, fuel: i64, float_accumulator: v128,
    ) -> None:  # fmt: skip
        frame = sp + load(u32, ip, RESULT)
        if unlikely(frame > task.limit):
            return tail(call_slow(ip, sp, memory, length, task, instance, accumulator, fuel, float_accumulator))
        words = ip + (CALL_SIZE - RESULT)
        if maker is COPY:
            store(sp, load(u64, sp, load(u32, words, FIRST)), load(u32, words, RESULT))
        elif maker is LITERAL:
            store(sp, load(u64, words, SECOND), load(u32, words, RESULT))
        else:
            value = made(maker, words, sp, memory, accumulator, float_accumulator)
            store(sp, u64(u32(value)), load(u32, words, RESULT))
        header = frame + NEAR * 8 if near else sp + load(u32, ip, FIRST)
        store(header, ip + size)
        store(header, sp, 8)
        enter(load(ptr[u8], ip, 16), frame, memory, length, instance, accumulator, float_accumulator)

    return run_fused_call
