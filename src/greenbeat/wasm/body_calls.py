"""Calls of a body: direct, through a table, through a reference, and each as a tail call.

https://webassembly.github.io/spec/core/valid/instructions.html#control-instructions
"""

from types import SimpleNamespace

from greenbeat.native import cast, inline, native, ptr, u32, unlikely
from greenbeat.runtime.layout import SignatureType
from greenbeat.wasm import valuetypes
from greenbeat.wasm.body_extended import address_type
from greenbeat.wasm.reader import Reader, failed, read_u32
from greenbeat.wasm.validator import (
    Validator,
    broken,
    mismatch,
    pop,
    pop_params,
    push_results,
    set_unreachable,
)
from greenbeat.wasm.valuetypes import NULLABLE, REFERENCE, matches


@native
def function_signature(v: ptr[Validator], index: u32) -> ptr[SignatureType]:
    """A function's type; null after a failure."""
    if unlikely(index >= v.module.function_count):
        broken(v, "unknown function {number}: the module has {number}", index, v.module.function_count)
        return cast(ptr[SignatureType], 0)
    return v.module.functions[index].signature


@native
def type_signature(v: ptr[Validator], index: u32) -> ptr[SignatureType]:
    """A type of the module; null after a failure."""
    if unlikely(index >= v.module.signature_count):
        broken(v, "unknown type {number}: the module has {number}", index, v.module.signature_count)
        return cast(ptr[SignatureType], 0)
    return v.module.signatures[index]


def call_pass(emit):
    """The part of the pass that is in this file."""

    @inline
    def emitting(v):
        return emit is not None and v.control.reachable

    @native
    def tail_results(v: ptr[Validator], signature: ptr[SignatureType]) -> None:
        """A tail call's results are the function's own."""
        own = v.function.signature
        if signature.result_count != own.result_count:
            broken(
                v,
                "type mismatch: the callee returns {number} values, the function {number}",
                signature.result_count,
                own.result_count,
            )
            return
        for i in range(own.result_count):
            if not matches(signature.results[i], own.results[i]):
                mismatch(v, own.results[i], signature.results[i])
                return

    @native
    def call_function(v: ptr[Validator], r: ptr[Reader], is_tail: bool) -> None:
        """`call` and `return_call`."""
        index = read_u32(r)
        signature = function_signature(v, index)
        if failed(r):
            return
        pop_params(v, signature)
        if is_tail:
            tail_results(v, signature)
            if emitting(v):
                emit.tail_call(v, index, signature)
            set_unreachable(v)
        else:
            push_results(v, signature)
            if emitting(v):
                emit.call(v, index, signature)

    @native
    def call_table(v: ptr[Validator], r: ptr[Reader], is_tail: bool) -> None:
        """`call_indirect` and `return_call_indirect`."""
        type_index = read_u32(r)
        signature = type_signature(v, type_index)
        table_index = read_u32(r)
        if failed(r):
            return
        if table_index >= v.module.table_count:
            broken(v, "unknown table {number}: the module has {number}", table_index, v.module.table_count)
            return
        held = v.module.tables + table_index
        if not matches(held.kind, valuetypes.FUNCREF):
            mismatch(v, valuetypes.FUNCREF, held.kind)
            return
        pop(v, address_type(held.is_64))
        pop_params(v, signature)
        if is_tail:
            tail_results(v, signature)
            if emitting(v):
                emit.tail_call_indirect(v, table_index, type_index, signature)
            set_unreachable(v)
        else:
            push_results(v, signature)
            if emitting(v):
                emit.call_indirect(v, table_index, type_index, signature)

    @native
    def call_reference(v: ptr[Validator], r: ptr[Reader], is_tail: bool) -> None:
        """`call_ref` and `return_call_ref`."""
        type_index = read_u32(r)
        signature = type_signature(v, type_index)
        if failed(r):
            return
        pop(v, REFERENCE | NULLABLE | signature.number)
        pop_params(v, signature)
        if is_tail:
            tail_results(v, signature)
            if emitting(v):
                emit.tail_call_ref(v, type_index, signature)
            set_unreachable(v)
        else:
            push_results(v, signature)
            if emitting(v):
                emit.call_ref(v, type_index, signature)

    return SimpleNamespace(call_function=call_function, call_table=call_table, call_reference=call_reference)
