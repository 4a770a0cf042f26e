"""The code section: bodies are measured, their locals counted and their instructions validated, nothing is translated.

    body │ size │ groups │ count type │ ... │ instructions ... end │
                ▲ Function.body

https://webassembly.github.io/spec/core/binary/modules.html#code-section
"""

from greenbeat.native import fill, native, ptr, sizeof, stack, u64
from greenbeat.runtime.arena import free
from greenbeat.runtime.layout import Function, Module
from greenbeat.wasm import limits
from greenbeat.wasm.body import function_pass
from greenbeat.wasm.constants import reserve_declared
from greenbeat.wasm.reader import Reader, failed, invalid, malformed_at, read_u32, remaining
from greenbeat.wasm.types import read_value_type
from greenbeat.wasm.validator import Validator

validate_body = function_pass(None)


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
    v = stack(Validator)
    fill(v, 0, sizeof(Validator))
    v.module = module
    v.reader = r
    read_bodies(v, r)
    free(v.types)
    free(v.controls)
    free(v.locals)
    free(v.unset)
    free(v.set_locals)


@native
def read_bodies(v: ptr[Validator], r: ptr[Reader]) -> None:
    """The bodies of all functions that are not imported, in order; a failure says in which it is."""
    module = v.module
    section_end = r.end
    for i in range(module.imported_functions, module.function_count):
        function = module.functions + i
        if read_body_size(function, r):
            r.end = function.body + function.body_length
            if count_locals(module, function, r):
                if module.bodies_are_valid != 0:
                    r.position = function.body + function.body_length
                else:
                    r.position = function.body
                    v.function = function
                    module.validated += 1
                    validate_body(v, r)
            r.end = section_end
        if failed(r):
            r.failure.function = i
            return


@native
def read_body_size(function: ptr[Function], r: ptr[Reader]) -> bool:
    """Where a body is: from the declarations of its locals to its end."""
    at = r.position
    size = read_u32(r)
    if failed(r):
        return False
    if size > limits.BODY_SIZE:
        return invalid(r, at, limits.exceeded(limits.BODY_SIZE, "bytes in a function's body"), 0, 0)
    if u64(size) > remaining(r):
        return malformed_at(r, at, "unexpected end: the function is longer than its section", 0, 0)
    function.body = r.position
    function.body_length = size
    return True


@native
def count_locals(module: ptr[Module], function: ptr[Function], r: ptr[Reader]) -> bool:
    """Step over the declarations of locals, within the limit on how many there are."""
    start = r.position
    total = u64(function.signature.param_count)
    for _ in range(read_u32(r)):
        at = r.position
        total += u64(read_u32(r))
        if failed(r):
            return False
        if total > 0xFFFF_FFFF:
            return malformed_at(r, at, "too many locals", 0, 0)
        read_value_type(module, r)
    if total > limits.LOCALS:
        return invalid(r, start, limits.exceeded(limits.LOCALS, "locals in a function, with its parameters"), 0, 0)
    return not failed(r)
