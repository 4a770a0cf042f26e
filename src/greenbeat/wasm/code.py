"""The code section: bodies are measured, their locals counted and their instructions validated, nothing is translated.

    body │ size │ groups │ count type │ ... │ instructions ... end │
                ▲ Function.body

https://webassembly.github.io/spec/core/binary/modules.html#code-section
"""

from greenbeat.native import native, ptr, u64
from greenbeat.runtime.layout import Function, Module
from greenbeat.wasm import limits
from greenbeat.wasm.constants import reserve_declared
from greenbeat.wasm.reader import Reader, failed, invalid, malformed_at, read_u32, remaining
from greenbeat.wasm.types import read_value_type


@native
def read_code(module: ptr[Module], r: ptr[Reader]) -> None:
    """The code section."""
    at = r.position
    count = read_u32(r)
    if failed(r):
        return
    if count != module.function_count - module.imported_functions:
        malformed_at(r, at, "function and code section have inconsistent lengths", 0, 0)
        return
    if not reserve_declared(module, r):
        return
    section_end = r.end
    for i in range(module.imported_functions, module.function_count):
        function = module.functions + i
        at = r.position
        size = read_u32(r)
        if not failed(r) and size > limits.BODY_SIZE:
            invalid(r, at, limits.exceeded(limits.BODY_SIZE, "bytes in a function's body"), 0, 0)
        if not failed(r) and u64(size) > remaining(r):
            malformed_at(r, at, "unexpected end: the function is longer than its section", 0, 0)
        if not failed(r):
            function.body = r.position
            function.body_length = size
            r.end = r.position + size
            read_body(module, function, r)
            r.end = section_end
        if failed(r):
            r.failure.function = i
            r.position = r.end
            return


@native
def read_body(module: ptr[Module], function: ptr[Function], r: ptr[Reader]) -> None:
    """One body, between the reader's position and its end."""
    count_locals(module, function, r)
    if failed(r):
        return
    r.position = r.end


@native
def count_locals(module: ptr[Module], function: ptr[Function], r: ptr[Reader]) -> None:
    """Step over the declarations of locals, within the limit on how many there are."""
    start = r.position
    total = u64(function.signature.param_count)
    for _ in range(read_u32(r)):
        at = r.position
        total += u64(read_u32(r))
        if failed(r):
            return
        if total > 0xFFFF_FFFF:
            malformed_at(r, at, "too many locals", 0, 0)
            return
        read_value_type(module, r)
    if total > limits.LOCALS:
        invalid(r, start, limits.exceeded(limits.LOCALS, "locals in a function, with its parameters"), 0, 0)
