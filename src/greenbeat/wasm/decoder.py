"""Decoding and validating a module, in one pass over its bytes.

`decode_module` walks over the sections and hands each to the function that reads it (`sections.py`, `segments.py`,
`code.py`); what they find is kept in an arena that `free_module` frees as a whole.

    magic version │ id size contents │ id size contents │ ...
                    ▲ each kind at most once, in a fixed order; custom sections (id 0) anywhere

https://webassembly.github.io/spec/core/binary/modules.html#binary-module
"""

from greenbeat.native import cast, copy, export, load, native, ptr, sizeof, stack, table, u8, u32, u64
from greenbeat.runtime.arena import Arena, allocate, allocate_array, initialize_arena, release_arena
from greenbeat.runtime.layout import Module, Section
from greenbeat.wasm import limits
from greenbeat.wasm.code import read_code
from greenbeat.wasm.constants import reserve_declared
from greenbeat.wasm.names import read_name
from greenbeat.wasm.reader import (
    NO_FUNCTION,
    Failure,
    Reader,
    failed,
    invalid,
    malformed,
    malformed_at,
    read_byte,
    read_u32,
    remaining,
)
from greenbeat.wasm.sections import (
    read_exports,
    read_functions,
    read_globals,
    read_imports,
    read_memories,
    read_start,
    read_tables,
    read_tags,
    read_types,
)
from greenbeat.wasm.segments import read_data_count, read_datas, read_elements
from greenbeat.wasm.valuetypes import holds_objects
from greenbeat.wasm.vectors import out_of_memory

CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, START, ELEMENT, CODE, DATA, DATA_COUNT, TAG = range(14)
# Sections in the order in which they must come.
ORDER = (TYPE, IMPORT, FUNCTION, TABLE, MEMORY, TAG, GLOBAL, EXPORT, START, ELEMENT, DATA_COUNT, CODE, DATA)
rank = table(u8, [ORDER.index(number) + 1 if number in ORDER else 0 for number in range(14)], name="section_rank")

MAGIC = int.from_bytes(b"\0asm", "little")
VERSION = 1


@native
def read_header(r: ptr[Reader]) -> None:
    """The eight bytes every module starts with."""
    if remaining(r) < 4:
        malformed(r, "unexpected end: no WebAssembly module is this short")
        return
    if load(u32, r.position) != MAGIC:
        malformed(r, "magic header not detected: this is not a WebAssembly module")
        return
    r.position += 4
    if remaining(r) < 4:
        malformed(r, "unexpected end: no WebAssembly module is this short")
        return
    version = load(u32, r.position)
    if version != VERSION:
        # A component's version says so in its upper half.
        if version >> 16 == 1:
            malformed(r, "unknown binary version: this is a component, not a module")
        else:
            malformed_at(r, r.position, "unknown binary version {number}", version, 0)
        return
    r.position += 4


@native
def list_section(module: ptr[Module], r: ptr[Reader], number: u32) -> ptr[Section]:
    """The next place in the list, for what is between the reader's position and its end; null if the list is full."""
    if module.section_count == module.section_capacity:
        capacity = module.section_capacity * 2 if module.section_capacity != 0 else u32(16)
        if capacity > limits.LISTED_SECTIONS:
            return cast(ptr[Section], 0)
        made = cast(ptr[Section], allocate_array(module.arena, u64(capacity), sizeof(Section)))
        if made is None:
            out_of_memory(r)
            return cast(ptr[Section], 0)
        if module.section_count != 0:
            copy(made, module.sections, u64(module.section_count) * u64(sizeof(Section)))
        module.sections = made
        module.section_capacity = capacity
    section = module.sections + module.section_count
    section.id = number
    section.contents = r.position
    section.length = remaining(r)
    module.section_count += 1
    return section


@native
def read_custom(module: ptr[Module], r: ptr[Reader]) -> None:
    """A custom section: its name; what follows means nothing here, but where names are is kept."""
    section = list_section(module, r, CUSTOM)
    length = read_name(r)
    if failed(r):
        return
    name = r.position - length
    if section is not None:
        section.name = name
        section.name_length = length
        section.contents = r.position
        section.length = remaining(r)
    if length == 4 and load(u32, name) == int.from_bytes(b"name", "little"):
        module.names = r.position
        module.names_length = remaining(r)
    r.position = r.end


@native
def read_section(module: ptr[Module], r: ptr[Reader], number: u32) -> None:
    """The contents of a section, between the reader's position and its end."""
    list_section(module, r, number)
    match number:
        case 1:
            read_types(module, r)
        case 2:
            read_imports(module, r)
        case 3:
            read_functions(module, r)
        case 4:
            read_tables(module, r)
        case 5:
            read_memories(module, r)
        case 6:
            read_globals(module, r)
        case 7:
            read_exports(module, r)
        case 8:
            read_start(module, r)
        case 9:
            read_elements(module, r)
        case 10:
            read_code(module, r)
        case 11:
            read_datas(module, r)
        case 12:
            read_data_count(module, r)
        case _:
            read_tags(module, r)


@native
def read_sections(module: ptr[Module], r: ptr[Reader]) -> None:
    """All sections, each within its own size."""
    last: u32 = 0
    end = r.end
    seen_code = False
    seen_data = False
    while r.position < end:
        at = r.position
        number = read_byte(r)
        if number > TAG:
            malformed_at(r, at, "malformed section id", 0, 0)
            return
        size_at = r.position
        size = read_u32(r)
        if failed(r):
            return
        if u64(size) > remaining(r):
            malformed_at(r, size_at, "length out of bounds: the section is longer than the module", 0, 0)
            return
        r.end = r.position + size
        if number == CUSTOM:
            read_custom(module, r)
        else:
            if u32(rank[number]) <= last:
                malformed_at(r, at, "unexpected content after last section", 0, 0)
                return
            last = u32(rank[number])
            seen_code = seen_code or number == CODE
            seen_data = seen_data or number == DATA
            read_section(module, r, number)
        if failed(r):
            return
        if r.position != r.end:
            malformed(r, "section size mismatch")
            return
        r.end = end
    if not seen_code and module.function_count != module.imported_functions:
        malformed(r, "function and code section have inconsistent lengths")
    if not seen_data and module.has_data_count and module.data_count != 0:
        malformed(r, "data count and data section have inconsistent lengths")
    reserve_declared(module, r)


@native
def any_holds_objects(kinds: ptr[u32], count: u32) -> bool:
    """Whether one of some value types is of Python objects."""
    for i in range(count):
        if holds_objects(kinds[i]):
            return True
    return False


@native
def module_holds_objects(module: ptr[Module]) -> bool:
    """Whether Python objects may be among a module's values: where no type of it says so, there is only null."""
    if module.tag_count != 0:
        return True
    for i in range(module.signature_count):
        signature = module.signatures[i]
        if any_holds_objects(signature.params, signature.param_count):
            return True
        if any_holds_objects(signature.results, signature.result_count):
            return True
    for i in range(module.table_count):
        if holds_objects((module.tables + i).kind):
            return True
    for i in range(module.global_count):
        if holds_objects((module.globals + i).kind):
            return True
    return False


@export
def decode_module(bytes: ptr[u8], length: u64, failure: ptr[Failure], bodies_are_valid: u32) -> ptr[Module]:
    """Decode and validate a module; null if `failure` says why it was refused. The bytes must outlive the module.

    With `bodies_are_valid` functions' bodies are not looked at: the same bytes were validated before.
    """
    failure.kind = 0
    failure.function = NO_FUNCTION
    reader = stack(Reader)
    reader.position = bytes
    reader.start = bytes
    reader.end = bytes + length
    reader.failure = failure
    if length > limits.MODULE_SIZE:
        invalid(reader, bytes, limits.exceeded(limits.MODULE_SIZE, "bytes in a module"), 0, 0)
        return cast(ptr[Module], 0)
    read_header(reader)
    if failed(reader):
        return cast(ptr[Module], 0)
    # The arena is made on the stack and moves into itself: then everything of a module is one list of blocks.
    first = stack(Arena)
    initialize_arena(first)
    arena = cast(ptr[Arena], allocate(first, sizeof(Arena)))
    module = cast(ptr[Module], allocate(first, sizeof(Module)))
    if arena is None or module is None:
        out_of_memory(reader)
        release_arena(first)
        return cast(ptr[Module], 0)
    copy(arena, first, sizeof(Arena))
    module.arena = arena
    module.bytes = bytes
    module.length = length
    module.bodies_are_valid = bodies_are_valid
    read_sections(module, reader)
    if failed(reader):
        release_arena(arena)
        return cast(ptr[Module], 0)
    module.holds_objects = module_holds_objects(module)
    return module


@export
def free_module(module: ptr[Module]) -> None:
    """Free a module that no instance uses any more; null is no module."""
    if module is not None:
        release_arena(module.arena)
