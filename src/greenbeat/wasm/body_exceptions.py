"""Exceptions in a body: `throw`, `throw_ref` and `try_table`; and the types of blocks, which `try_table` has too.

    try_table │ block type │ count │ clause │ clause │ ... │ body │ end
    clause    │ kind │ tag, if any │ label │            catch, catch_ref, catch_all, catch_all_ref

https://webassembly.github.io/spec/core/valid/instructions.html#valid-try-table
"""

from types import SimpleNamespace

from greenbeat.native import cast, i64, inline, native, ptr, stack, u32, u64, unlikely
from greenbeat.runtime.layout import ANY_TAG, SignatureType
from greenbeat.wasm.reader import Reader, failed, malformed, read_byte, read_i33, read_u32
from greenbeat.wasm.types import read_value_type
from greenbeat.wasm.validator import (
    BLOCK,
    Control,
    Validator,
    broken,
    label,
    label_count,
    label_type,
    mismatch,
    open_block,
    pop,
    pop_params,
    set_unreachable,
)
from greenbeat.wasm.valuetypes import ABSTRACT, EXN, EXNREF, REFERENCE, matches


@native
def read_block_type(v: ptr[Validator], r: ptr[Reader], single: ptr[u32]) -> ptr[SignatureType]:
    """A block's type: a function type, or null with one result or none in `single`."""
    nothing = cast(ptr[SignatureType], 0)
    single[0] = 0
    at = r.position
    if at < r.end and at[0] == 0x40:
        r.position = at + 1
        return nothing
    if at < r.end and at[0] >= 0x40 and at[0] < 0x80:
        single[0] = read_value_type(v.module, r)
        return nothing
    index = read_i33(r)
    if failed(r):
        return nothing
    if index < 0 or index >= i64(v.module.signature_count):
        broken(v, "unknown type {number} of a block", index, 0)
        return nothing
    return v.module.signatures[index]


@native
def tag_signature(v: ptr[Validator], index: u32) -> ptr[SignatureType]:
    """A tag's type; null after a failure."""
    if unlikely(index >= v.module.tag_count):
        broken(v, "unknown tag {number}: the module has {number}", index, v.module.tag_count)
        return cast(ptr[SignatureType], 0)
    return v.module.tags[index]


@native
def check_clause(v: ptr[Validator], target: ptr[Control], signature: ptr[SignatureType], by_reference: bool) -> u32:
    """What a clause hands to its label fits there; returns how many values that are, without the reference."""
    count: u32 = 0
    if signature is not None:
        count = signature.param_count
    if label_count(target) != count + u32(by_reference):
        broken(v, "type mismatch: the clause has {number} values, its label takes {number}",
               count + u32(by_reference), label_count(target))  # fmt: skip
        return 0
    for i in range(count):
        if not matches(signature.params[i], label_type(target, i)):
            mismatch(v, label_type(target, i), signature.params[i])
            return 0
    if by_reference:
        if not matches(REFERENCE | ABSTRACT | EXN, label_type(target, count)):
            mismatch(v, label_type(target, count), REFERENCE | ABSTRACT | EXN)
    return count


def exception_pass(emit):
    """The part of the pass that is in this file."""

    @inline
    def emitting(v):
        return emit is not None and v.control.reachable

    @native
    def throw(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`throw`."""
        index = read_u32(r)
        signature = tag_signature(v, index)
        if failed(r):
            return
        pop_params(v, signature)
        if emitting(v):
            emit.throw(v, index, signature)
        set_unreachable(v)

    @native
    def throw_reference(v: ptr[Validator]) -> None:
        """`throw_ref`."""
        pop(v, EXNREF)
        if emitting(v):
            emit.throw_reference(v)
        set_unreachable(v)

    @native
    def clauses(v: ptr[Validator], r: ptr[Reader]) -> None:
        """The clauses, whose labels are those outside of the `try_table`."""
        count = read_u32(r)
        if u64(count) > u64(r.end - r.position):
            malformed(r, "unexpected end: there are more clauses than bytes")
            return
        for _ in range(count):
            kind = read_byte(r)
            if kind > 3:
                malformed(r, "malformed catch clause")
            tag = u32(ANY_TAG)
            signature = cast(ptr[SignatureType], 0)
            if kind < 2:
                tag = read_u32(r)
                signature = tag_signature(v, tag)
            target = label(v, read_u32(r))
            if failed(r):
                return
            values = check_clause(v, target, signature, kind & 1 != 0)
            if failed(r):
                return
            if v.height + values + 1 > v.highest:
                v.highest = v.height + values + 1
            if emitting(v):
                emit.catch_clause(v, target, tag, values, kind & 1)

    @native
    def try_table(v: ptr[Validator], r: ptr[Reader]) -> None:
        """`try_table`."""
        single = stack(u32)
        signature = read_block_type(v, r, single)
        if failed(r):
            return
        if signature is not None:
            pop_params(v, signature)
        if failed(r):
            return
        if emitting(v):
            emit.begin_try(v, u32(0) if signature is None else signature.param_count)
        clauses(v, r)
        if failed(r):
            return
        reachable = v.control.reachable
        open_block(v, BLOCK, signature, single[0])
        if emit is not None:
            if reachable:
                emit.opened_try(v)

    return SimpleNamespace(throw=throw, throw_reference=throw_reference, try_table=try_table)
