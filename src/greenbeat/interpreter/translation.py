"""The translator's state: the cells written so far, what each operand is, and what the accumulators hold.

The operand stack of WebAssembly does not exist at run time. While translating, each operand is an `Entry`: a value in
its own slot, a local that has not been copied anywhere, or a constant. An entry has a slot reserved at a fixed place
of the frame whether it uses it or not:

    sp ─▶ │ parameters, locals up to slot 4 │ header (2) │ other locals │ operand 0 │ operand 1 │ ...
                                                         operands ──────┘

Every value is written to a slot and to an accumulator by the same cell. The translator remembers which slot each
accumulator mirrors, so that the next reader can take the value from there; if that reader is the only one, the cell
that made the value is turned into its variant that leaves the slot alone.

Nothing that is written here holds an address, so that it can be kept beyond the process: `placement.py` has the form.
"""

from greenbeat.interpreter.handlers import CONSTANT_PLAIN, COPY_PLAIN, COPY_TWO_PLAIN
from greenbeat.native import (
    cast,
    extern,
    i64,
    inline,
    native,
    ptr,
    sizeof,
    store,
    struct,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.arena import free
from greenbeat.runtime.layout import HEADER_SLOTS, SLOT, Catch
from greenbeat.wasm.validator import Validator, no_memory
from greenbeat.wasm.valuetypes import F32, F64, I32

IN_SLOT, LOCAL, CONSTANT = 0, 1, 2
NONE = 0xFFFF_FFFF

# More operands than one instruction pushes: results are limited to 1,000.
MOST_PUSHED = 1024

# Branches count their distances in 32 bits.
LARGEST_CODE = 0x7FFF_FFFF
# What is kept of the buffers from function to function.
KEPT_CODE, KEPT_ENTRIES = 1 << 20, 1 << 16

# Where an operand is read from; the digits that handlers are numbered by.
FROM_SLOT, FROM_ACCUMULATOR, FROM_IMMEDIATE = 0, 1, 2


@extern
def realloc(memory: ptr[void], size: u64) -> ptr[void]:
    """C's realloc."""


@struct
class Entry:
    """An operand: in its slot, a local (`index`), or a constant (`bits`)."""

    kind: u32
    index: u32
    bits: u64


@struct
class Mirror:
    """What an accumulator holds: the value of `slot`.

    `cell` made it and can be turned into `number - 1`, unless NONE.
    """

    slot: u32
    cell: u32
    number: u32


@struct
class Condition:
    """A comparison taken back out of the code, to become part of a branch; or a plain test of a value against zero."""

    opcode: u32
    arity: u32
    variant: u32
    negated: bool
    first: u32
    second: u64
    # The number of the handlers of a pair that the comparison's maker is part of too, or 0; its third word.
    fused: u32
    third: u32
    # A local that the branch steps first, plus 1, or 0.
    step: u32


@struct
class Translation:
    """The state of translating one function; the buffers are kept from function to function."""

    code: ptr[u8]
    size: u32
    capacity: u32
    entries: ptr[Entry]
    entry_capacity: u32
    # Entries below this height are in their slots.
    flushed: u32
    # How many entries are each local; a set of the local puts them into their slots first.
    local_uses: ptr[u32]
    local_capacity: u32
    # UNMETERED or METERED, plus EXPLICIT.
    variant: u32
    # Byte offsets from the frame's base.
    header: u32
    operands: u32
    # The last cell, if it made a value and nothing can jump to behind it.
    last: u32
    # If that was a comparison: its opcode, operand count and variant.
    last_opcode: u32
    last_arity: u32
    last_variant: u32
    # If it can be the first half of a pair: its number as a maker. If it is a pair: its number as a handler.
    last_maker: u32
    last_pair: u32
    # The instruction it is reported as.
    made_at: ptr[u8]
    # The last cell, if what it made is a local's now.
    assigned: u32
    # The cell right before the last one, if that made a value too: the cell, its number as a maker, its instruction.
    previous: u32
    previous_maker: u32
    previous_at: ptr[u8]
    # If it is a comparison of what the cell right before it made: that cell, its number as a maker, and the side it
    # is on.
    compared: u32
    compared_maker: u32
    compared_side: u32
    # The last cell, if it adds a constant to a local; for a comparison of that local with no cell between: the local
    # plus 1.
    stepped: u32
    stepped_local: u32
    compared_step: u32
    # The last cell, if it is a plain copy that a second one can join.
    copied: u32
    # The last cell, if it is a linear frame's prologue; if it is an epilogue.
    prologue: u32
    epilogue: u32
    # One for integers and references, one for floats.
    integer: Mirror
    real: Mirror
    condition: Condition
    # A branch whose target word waits for `else`.
    pending: u32
    # When a cell's instruction is looked for: the offset of a byte of the cell (else -1), and what was found so far.
    watched: i64
    found: ptr[u8]
    # Clauses of the open `try_table`s, and of the closed ones from the innermost outward; where the newest one's begin.
    open: ptr[Catch]
    closed: ptr[Catch]
    open_catches: u32
    closed_catches: u32
    catch_capacity: u32
    first_catch: u32
    # The cell that pays for the current run, and what it has to pay.
    charge: u32
    charged: u32


@inline
def state(v: ptr[Validator]) -> ptr[Translation]:
    """The translation a pass writes."""
    return cast(ptr[Translation], v.translation)


# ---------------------------------------------------------------- cells


@native(cold=True)
def grow_code(v: ptr[Validator], size: u32) -> bool:
    """Make room for more cells."""
    t = state(v)
    capacity = u64(t.capacity) * 2 + u64(size) + 4096
    if capacity > LARGEST_CODE:
        return no_memory(v)
    grown = cast(ptr[u8], realloc(t.code, capacity))
    if grown is None:
        return no_memory(v)
    t.code = grown
    t.capacity = u32(capacity)
    return True


@native(shared=True)
def drop_large_buffers(t: ptr[Translation]) -> None:
    """Give back what only a huge function needed."""
    if t.capacity > KEPT_CODE:
        free(t.code)
        t.code = None
        t.capacity = 0
    if t.entry_capacity > KEPT_ENTRIES:
        free(t.entries)
        t.entries = None
        t.entry_capacity = 0


@native
def emit(v: ptr[Validator], number: u32, size: u32) -> ptr[u8]:
    """Append a cell; the caller writes its operands. Out of memory, the cell is a place never run."""
    t = state(v)
    if unlikely(t.size + size > t.capacity):
        if not grow_code(v, size):
            t.size = 0
    cell = t.code + t.size
    store(cell, number)
    store(cell, size, 4)
    if unlikely(i64(t.size) <= t.watched):
        t.found = v.at
    t.size += size
    t.last = NONE
    t.last_opcode = 0
    t.last_maker = 0
    t.last_pair = 0
    t.assigned = NONE
    t.copied = NONE
    t.stepped = NONE
    t.prologue = NONE
    t.epilogue = NONE
    return cell


@inline
def barrier(v: ptr[Validator]) -> None:
    """Something can jump here: nothing is known of the accumulators, and no cell before is the last one."""
    t = state(v)
    t.integer.slot = NONE
    t.integer.cell = NONE
    t.real.slot = NONE
    t.real.cell = NONE
    t.last = NONE
    t.last_opcode = 0
    t.last_maker = 0
    t.last_pair = 0
    t.assigned = NONE
    t.copied = NONE
    t.stepped = NONE
    t.prologue = NONE
    t.epilogue = NONE


# ---------------------------------------------------------------- slots and entries


@inline
def operand_slot(t: ptr[Translation], height: u32) -> u32:
    """The slot of the operand at a height."""
    return t.operands + height * SLOT


@inline
def local_slot(v: ptr[Validator], index: u32) -> u32:
    """The slot of a local: the header is behind the parameters and the first locals."""
    slot = index * SLOT
    if slot >= state(v).header:
        slot += HEADER_SLOTS * SLOT
    return slot


@native(cold=True)
def grow_entries(v: ptr[Validator], height: u32) -> bool:
    """Make room for entries up to a height."""
    t = state(v)
    capacity = t.entry_capacity * 2 + height
    grown = cast(ptr[Entry], realloc(t.entries, u64(capacity) * sizeof(Entry)))
    if grown is None:
        return no_memory(v)
    t.entries = grown
    t.entry_capacity = capacity
    return True


@inline
def reserve_entries(v: ptr[Validator]) -> bool:
    """Before each instruction: room for whatever it may push, so that no entry has to be checked afterwards."""
    ready = True
    if unlikely(v.height + MOST_PUSHED > state(v).entry_capacity):
        ready = grow_entries(v, v.height + MOST_PUSHED)
    return ready


@inline
def set_in_slot(v: ptr[Validator], height: u32) -> None:
    """The operand at a height is in its slot."""
    (state(v).entries + height).kind = IN_SLOT


@native
def slot_of(v: ptr[Validator], height: u32) -> u32:
    """Where the operand at a height is, if it is no constant."""
    t = state(v)
    entry = t.entries + height
    return local_slot(v, entry.index) if entry.kind == LOCAL else operand_slot(t, height)


@inline
def is_real(kind: u32) -> bool:
    """Whether values of a type live in the float accumulator."""
    return kind == F32 or kind == F64


@inline
def class_of(kind: u32) -> u32:
    """The digit of a type where handlers are numbered by it: i32, i64 and references, f32, f64."""
    digit: u32 = 1
    if kind == I32:
        digit = 0
    elif kind == F32:
        digit = 2
    elif kind == F64:
        digit = 3
    return digit


@native
def mirror_of(t: ptr[Translation], real: bool) -> ptr[Mirror]:
    """The accumulator for a class of values."""
    if real:
        return t.real
    return t.integer


@native
def overwritten(t: ptr[Translation], slot: u32) -> None:
    """A slot gets another value: no accumulator mirrors it any more."""
    if t.integer.slot == slot:
        t.integer.slot = NONE
        t.integer.cell = NONE
    if t.real.slot == slot:
        t.real.slot = NONE
        t.real.cell = NONE


@native
def forget_use(v: ptr[Validator], height: u32) -> None:
    """The operand at a height is popped: if it was a local, there is one use less."""
    t = state(v)
    entry = t.entries + height
    if entry.kind == LOCAL:
        t.local_uses[entry.index] -= 1


@native
def move_plain(v: ptr[Validator], height: u32, slot: u32) -> None:
    """Write a cell that puts the operand at a height into any slot, leaving the accumulators and its entry alone."""
    t = state(v)
    entry = t.entries + height
    if entry.kind == CONSTANT:
        bits = entry.bits
        cell = emit(v, CONSTANT_PLAIN, 24)
        store(cell, slot, 8)
        store(cell, bits, 16)
    else:
        source = slot_of(v, height)
        if source != slot:
            copy_plain(v, source, slot)
            # A cell reads the slot from now on: whoever takes the value from the accumulator later, it must be written.
            if t.integer.slot == source:
                t.integer.cell = NONE
            if t.real.slot == source:
                t.real.cell = NONE


@native
def copy_plain(v: ptr[Validator], source: u32, slot: u32) -> None:
    """Write a cell that copies a slot to another, or let the last cell do it."""
    t = state(v)
    if t.copied != NONE:
        at = t.copied
        t.size = at
        cell = emit(v, COPY_TWO_PLAIN, 24)
        store(cell, slot, 16)
        store(cell, source, 20)
    else:
        at = t.size
        cell = emit(v, COPY_PLAIN, 16)
        store(cell, slot, 8)
        store(cell, source, 12)
        t.copied = at


@native
def settle(v: ptr[Validator], first: u32, last: u32) -> None:
    """Put the operands at these heights into their slots."""
    t = state(v)
    for height in range(first, last):
        entry = t.entries + height
        if entry.kind != IN_SLOT:
            slot = operand_slot(t, height)
            move_plain(v, height, slot)
            overwritten(t, slot)
            forget_use(v, height)
            (t.entries + height).kind = IN_SLOT


@native
def flush(v: ptr[Validator], height: u32) -> None:
    """Put all operands below a height into their slots."""
    t = state(v)
    if t.flushed < height:
        settle(v, t.flushed, height)
        t.flushed = height


@native
def set_symbolic(v: ptr[Validator], height: u32, kind: u32, index: u32, bits: u64) -> None:
    """The operand at a height is a local or a constant."""
    t = state(v)
    entry = t.entries + height
    entry.kind = kind
    entry.index = index
    entry.bits = bits
    if t.flushed > height:
        t.flushed = height


# ---------------------------------------------------------------- values


@native
def source_of(v: ptr[Validator], height: u32, real: bool) -> u32:
    """From where a cell can read the operand at a height."""
    t = state(v)
    entry = t.entries + height
    if entry.kind == CONSTANT:
        return FROM_IMMEDIATE
    mirror = mirror_of(t, real)
    if mirror.slot == slot_of(v, height):
        return FROM_ACCUMULATOR
    return FROM_SLOT


@native
def take(v: ptr[Validator], height: u32, source: u32, real: bool) -> None:
    """The operand at a height is read for the last time.

    If from the accumulator, its slot need not have been written.
    """
    t = state(v)
    entry = t.entries + height
    if source == FROM_ACCUMULATOR and entry.kind == IN_SLOT:
        mirror = mirror_of(t, real)
        if mirror.cell != NONE:
            store(t.code + mirror.cell, mirror.number - 1)
            mirror.cell = NONE
            mirror.slot = NONE
    forget_use(v, height)


@native
def produce(v: ptr[Validator], height: u32, number: u32, size: u32, real: bool) -> ptr[u8]:
    """Append a cell whose result is the operand at a height; `number` is the variant without a slot."""
    t = state(v)
    slot = operand_slot(t, height)
    set_in_slot(v, height)
    overwritten(t, slot)
    t.previous = t.last if t.last != NONE else t.assigned
    t.previous_maker = t.last_maker
    t.previous_at = t.made_at
    t.made_at = v.at
    at = t.size
    cell = emit(v, number + 1, size)
    store(cell, slot, 8)
    mirror = mirror_of(t, real)
    mirror.slot = slot
    mirror.cell = at
    mirror.number = number + 1
    t.last = at
    return cell
