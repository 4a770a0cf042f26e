"""What validation of a function's body keeps: operand types, open blocks, locals; and the rules that use them.

    types     │ types of operands ...                    │ height
    controls  │ function │ block │ ... │ innermost block │ depth
    locals    │ types of parameters and locals           │

The algorithm is the specification's, https://webassembly.github.io/spec/core/appendix/algorithm.html. The rest is in
`body.py`, which runs over a body twice: once to validate, and once, when the function is first called, with the
interpreter's translator looking on.
"""

from greenbeat.native import cast, extern, inline, native, ptr, sizeof, struct, u8, u32, u64, unlikely, void
from greenbeat.runtime.layout import Function, Module, SignatureType
from greenbeat.wasm import limits
from greenbeat.wasm.reader import INVALID, OUT_OF_MEMORY, Reader, fail, failed, read_u32
from greenbeat.wasm.types import has_default, read_value_type
from greenbeat.wasm.valuetypes import BOTTOM, REFERENCE, matches

FUNCTION_BODY, BLOCK, LOOP, IF, ELSE = 0, 2, 3, 4, 5


@extern
def realloc(memory: ptr[void], size: u64) -> ptr[void]:
    """C's realloc."""


@struct
class Control:
    """An open block. Its type is a signature, or at most one result (`single`)."""

    kind: u32
    height: u32
    signature: ptr[SignatureType]
    single: u32
    # Locals set inside are unset again at its end, back to this length of `set_locals`.
    set_height: u32
    reachable: bool
    entered: bool
    # Behind an instruction that never goes on: what is not on the stack has any type. A block opened there has a
    # stack of its own again, though it is not reachable.
    polymorphic: bool
    # The translator's: where a loop starts, the chains of branches to its end and of its condition's branch to `else`.
    start: u32
    branches: u32
    otherwise: u32
    # The translator's, of a `try_table`: its clauses among those of the open blocks, and where its cells start.
    first_catch: u32
    catch_count: u32
    covered_from: u32


@struct
class Validator:
    """The state of one pass over one body; the buffers are kept from body to body."""

    module: ptr[Module]
    function: ptr[Function]
    reader: ptr[Reader]
    # The instruction being looked at, for messages.
    at: ptr[u8]
    types: ptr[u32]
    controls: ptr[Control]
    control: ptr[Control]
    locals: ptr[u32]
    # One byte a local: cannot be read yet, having no default and not been set.
    unset: ptr[u8]
    set_locals: ptr[u32]
    height: u32
    capacity: u32
    depth: u32
    control_capacity: u32
    local_count: u32
    local_capacity: u32
    set_height: u32
    # How high the operands came: the translator's frame size follows from it.
    highest: u32
    translation: ptr[void]


@inline
def broken(v, message, a, b):
    """The current instruction breaks a rule."""
    return fail(v.reader, INVALID, v.at, message, u64(a), u64(b))


@native(cold=True)
def no_memory(v: ptr[Validator]) -> bool:
    """Record that a buffer could not grow."""
    return fail(v.reader, OUT_OF_MEMORY, v.at, "not enough memory to validate the function", 0, 0)


# ---------------------------------------------------------------- operands


@native(cold=True)
def grow_types(v: ptr[Validator]) -> bool:
    """Make room for more operands."""
    if unlikely(v.capacity == limits.OPERANDS):
        return broken(v, limits.exceeded(limits.OPERANDS, "operands at a time"), 0, 0)
    capacity = v.capacity * 2 + 256
    if capacity > limits.OPERANDS:
        capacity = limits.OPERANDS
    grown = cast(ptr[u32], realloc(v.types, u64(capacity) * 4))
    if grown is None:
        return no_memory(v)
    v.types = grown
    v.capacity = capacity
    return True


@inline
def push(v: ptr[Validator], kind: u32) -> None:
    """Push an operand."""
    if unlikely(v.height == v.capacity):
        grow_types(v)
    if v.height < v.capacity:
        v.types[v.height] = kind
        v.height += 1


@native(cold=True)
def missing(v: ptr[Validator], wanted: u32) -> u32:
    """An operand is taken from an empty block: anything, behind a branch or trap, else a failure."""
    if v.control.polymorphic:
        return BOTTOM
    if wanted == BOTTOM:
        broken(v, "type mismatch: a value is needed, but the block has none left", 0, 0)
    else:
        broken(v, "type mismatch: {type} is needed, but the block has no value left", wanted, 0)
    return BOTTOM


@native(cold=True)
def mismatch(v: ptr[Validator], wanted: u32, found: u32) -> bool:
    """Record a type mismatch."""
    return broken(v, "type mismatch: {type} is needed, {type} is there", wanted, found)


@inline
def pop_any(v: ptr[Validator]) -> u32:
    """Pop an operand of any type."""
    if unlikely(v.height == v.control.height):
        return missing(v, BOTTOM)
    v.height -= 1
    return v.types[v.height]


@inline
def pop(v: ptr[Validator], wanted: u32) -> None:
    """Pop an operand of a type."""
    if unlikely(v.height == v.control.height):
        missing(v, wanted)
    else:
        v.height -= 1
        found = v.types[v.height]
        if unlikely(found != wanted):
            if not matches(found, wanted):
                mismatch(v, wanted, found)


@native
def pop_reference(v: ptr[Validator]) -> u32:
    """Pop a reference of any type."""
    found = pop_any(v)
    if found != BOTTOM and found < REFERENCE:
        broken(v, "type mismatch: a reference is needed, {type} is there", found, 0)
        return BOTTOM
    return found


@native
def pop_params(v: ptr[Validator], signature: ptr[SignatureType]) -> None:
    """Pop a signature's parameters."""
    for i in range(signature.param_count):
        pop(v, signature.params[signature.param_count - 1 - i])


@native
def push_results(v: ptr[Validator], signature: ptr[SignatureType]) -> None:
    """Push a signature's results."""
    for i in range(signature.result_count):
        push(v, signature.results[i])


# ---------------------------------------------------------------- blocks


@inline
def param_count(control: ptr[Control]) -> u32:
    """How many operands a block takes."""
    return 0 if control.signature is None else control.signature.param_count


@inline
def result_count(control: ptr[Control]) -> u32:
    """How many results a block leaves."""
    if control.signature is None:
        return u32(control.single != 0)
    return control.signature.result_count


@inline
def result_type(control: ptr[Control], position: u32) -> u32:
    """The type of one of a block's results."""
    return control.single if control.signature is None else control.signature.results[position]


@inline
def label_count(control: ptr[Control]) -> u32:
    """How many operands a branch to the block takes along: a loop's parameters, else the results."""
    return param_count(control) if control.kind == LOOP else result_count(control)


@inline
def label_type(control: ptr[Control], position: u32) -> u32:
    """The type of one of them."""
    if control.kind == LOOP:
        return control.signature.params[position]
    return result_type(control, position)


@native(cold=True)
def grow_controls(v: ptr[Validator]) -> bool:
    """Make room for more open blocks."""
    capacity = v.control_capacity * 2 + 32
    grown = cast(ptr[Control], realloc(v.controls, u64(capacity) * sizeof(Control)))
    if grown is None:
        return no_memory(v)
    v.controls = grown
    v.control_capacity = capacity
    return True


@native
def open_block(v: ptr[Validator], kind: u32, signature: ptr[SignatureType], single: u32) -> bool:
    """Open a block whose parameters are popped already, and push them again inside it."""
    if unlikely(v.depth == v.control_capacity):
        if not grow_controls(v):
            return False
    reachable = True
    if v.depth != 0:
        reachable = v.controls[v.depth - 1].reachable
    control = v.controls + v.depth
    v.depth += 1
    v.control = control
    control.kind = kind
    control.height = v.height
    control.signature = signature
    control.single = single
    control.set_height = v.set_height
    control.reachable = reachable
    control.entered = reachable
    control.polymorphic = False
    control.start = 0
    control.branches = 0
    control.otherwise = 0
    control.catch_count = 0
    if signature is not None and kind != FUNCTION_BODY:
        for i in range(signature.param_count):
            push(v, signature.params[i])
    return True


@native
def check_results(v: ptr[Validator]) -> bool:
    """At the end of a block, or before `else`: exactly the results are there."""
    control = v.control
    count = result_count(control)
    for i in range(count):
        pop(v, result_type(control, count - 1 - i))
    if v.height != control.height:
        return broken(
            v, "type mismatch: the block leaves {number} values more than its type says", v.height - control.height, 0
        )
    return not failed(v.reader)


@native
def unset_locals(v: ptr[Validator], height: u32) -> None:
    """Forget which locals were set since."""
    while v.set_height > height:
        v.set_height -= 1
        v.unset[v.set_locals[v.set_height]] = 1


@inline
def set_unreachable(v: ptr[Validator]) -> None:
    """After a branch, a return or a trap: anything may be popped."""
    v.height = v.control.height
    v.control.reachable = False
    v.control.polymorphic = True


@inline
def label(v: ptr[Validator], index: u32) -> ptr[Control]:
    """The block that a branch goes to; the function's body after a failure."""
    if unlikely(index >= v.depth):
        broken(v, "unknown label {number}: only {number} blocks are open", index, v.depth)
        return v.controls
    return v.controls + (v.depth - 1 - index)


@native
def check_label(v: ptr[Validator], target: ptr[Control]) -> None:
    """The operands that a branch takes along are there and stay there."""
    count = label_count(target)
    for i in range(count):
        pop(v, label_type(target, count - 1 - i))
    for i in range(count):
        push(v, label_type(target, i))


@native
def check_table_label(v: ptr[Validator], target: ptr[Control]) -> None:
    """The same for one target of a `br_table`: in unreachable code the operands keep the types they have."""
    count = label_count(target)
    height = v.height
    lowest = v.control.height
    for i in range(count):
        wanted = label_type(target, count - 1 - i)
        if height - lowest > i:
            found = v.types[height - 1 - i]
            if not matches(found, wanted):
                mismatch(v, wanted, found)
        else:
            missing(v, wanted)


# ---------------------------------------------------------------- locals


@native
def read_locals(v: ptr[Validator]) -> bool:
    """Parameters and declared locals; there are not too many, which `code.py` saw to."""
    signature, r = v.function.signature, v.reader
    v.local_count = 0
    v.set_height = 0
    if not add_locals(v, signature.param_count, 0):
        return False
    for i in range(signature.param_count):
        v.locals[i] = signature.params[i]
    for _ in range(read_u32(r)):
        count = read_u32(r)
        kind = read_value_type(v.module, r)
        if failed(r) or not add_locals(v, count, kind):
            return False
    return not failed(r)


@native
def add_locals(v: ptr[Validator], count: u32, kind: u32) -> bool:
    """Append locals of one type."""
    if v.local_count + count > v.local_capacity:
        capacity = v.local_capacity * 2 + count + 64
        types = cast(ptr[u32], realloc(v.locals, u64(capacity) * 4))
        if types is None:
            return no_memory(v)
        v.locals = types
        unset = cast(ptr[u8], realloc(v.unset, u64(capacity)))
        if unset is None:
            return no_memory(v)
        v.unset = unset
        heights = cast(ptr[u32], realloc(v.set_locals, u64(capacity) * 4))
        if heights is None:
            return no_memory(v)
        v.set_locals = heights
        v.local_capacity = capacity
    without = u8(kind >= REFERENCE and not has_default(kind))
    for i in range(v.local_count, v.local_count + count):
        v.locals[i] = kind
        v.unset[i] = without
    v.local_count += count
    return True


@inline
def local_type(v: ptr[Validator], index: u32) -> u32:
    """A local's type; BOTTOM after a failure."""
    if unlikely(index >= v.local_count):
        broken(v, "unknown local {number}: the function has {number}", index, v.local_count)
        return BOTTOM
    return v.locals[index]


@inline
def note_set(v: ptr[Validator], index: u32) -> None:
    """The local has been set: it can be read until the block's end."""
    if index < v.local_count and unlikely(v.unset[index] != 0):
        v.unset[index] = 0
        v.set_locals[v.set_height] = index
        v.set_height += 1
