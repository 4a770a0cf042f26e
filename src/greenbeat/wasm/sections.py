"""The sections that declare what a module has: types, imports, functions, tables, memories, globals, exports, start.

Each function here reads the contents of one section, between the reader's position and its end, into the module. Index
spaces start with imports, so an array that imports have begun is made anew when its own section is read.

    import section        functions ──▶ [ i0 i1 ]
    function section      functions ──▶ [ i0 i1 f2 f3 f4 ]      (the old array stays in the arena)

https://webassembly.github.io/spec/core/binary/modules.html
"""

from greenbeat.native import cast, copy, load, native, ptr, sizeof, u8, u32, u64, unlikely, void
from greenbeat.runtime.arena import calloc, free
from greenbeat.runtime.layout import (
    TAG,
    Export,
    Function,
    GlobalType,
    Import,
    MemoryType,
    Module,
    SignatureType,
    TableType,
)
from greenbeat.wasm import limits
from greenbeat.wasm.constants import declare_function, read_constant
from greenbeat.wasm.names import read_name
from greenbeat.wasm.reader import Reader, failed, invalid, malformed_at, read_byte, read_u32
from greenbeat.wasm.types import (
    has_default,
    read_function_type,
    read_global_type,
    read_memory_type,
    read_table_type,
)
from greenbeat.wasm.vectors import new_array, out_of_memory, read_count, read_more_count

FUNCTION_TYPE = 0x60
WITH_INITIALIZER = 0x40


@native
def extend(module: ptr[Module], r: ptr[Reader], old: ptr[void], old_count: u32, count: u32, size: u64) -> ptr[void]:
    """Room for the items of an old array and `count` more, or null and a failure."""
    made = new_array(module, r, u64(old_count) + u64(count), size)
    if made is not None and old_count != 0:
        copy(made, old, u64(old_count) * size)
    return made


@native
def read_types(module: ptr[Module], r: ptr[Reader]) -> None:
    """The type section."""
    count = read_count(r, limits.TYPES, "types")
    module.signatures = new_array(module, r, u64(count), sizeof(ptr[SignatureType]))
    for i in range(count):
        if failed(r):
            return
        at = r.position
        form = read_byte(r)
        if form != FUNCTION_TYPE:
            if form == 0x4E or form == 0x4F or form == 0x50 or form == 0x5E or form == 0x5F:
                invalid(r, at, "type form {hex} is not supported yet: it needs garbage collection", form, 0)
            malformed_at(r, at, "malformed type form: a function type starts with 0x60", 0, 0)
            return
        signature = read_function_type(module, r, i)
        module.signatures[i] = signature
        module.signature_count = i + 1


@native
def read_type_index(module: ptr[Module], r: ptr[Reader], function: ptr[Function]) -> bool:
    """A function's type, by its index."""
    at = r.position
    index = read_u32(r)
    if failed(r):
        return False
    if unlikely(index >= module.signature_count):
        return invalid(r, at, "unknown type {number}", index, 0)
    function.type_index = index
    function.signature = module.signatures[index]
    return True


# ------------------------------------------------------------------------------------------------------ imports


@native
def read_imports(module: ptr[Module], r: ptr[Reader]) -> None:
    """The import section."""
    count = read_count(r, limits.IMPORTS, "imports")
    module.imports = new_array(module, r, u64(count), sizeof(Import))
    for i in range(count):
        if failed(r):
            return
        entry = module.imports + i
        entry.module_length = read_name(r)
        entry.module = r.position - entry.module_length
        entry.name_length = read_name(r)
        entry.name = r.position - entry.name_length
        at = r.position
        entry.kind = read_byte(r)
        if failed(r):
            return
        module.import_count = i + 1
        if entry.kind > TAG:
            malformed_at(r, at, "malformed import kind", 0, 0)
        else:
            read_import_type(module, r, entry, count)


@native
def read_import_type(module: ptr[Module], r: ptr[Reader], entry: ptr[Import], most: u32) -> None:
    """What an import is: the next item of its index space, which has room for `most` imports."""
    match entry.kind:
        case 0:
            if module.functions is None:
                module.functions = new_array(module, r, u64(most), sizeof(Function))
            if module.functions is None:
                return
            entry.index = module.function_count
            function = module.functions + entry.index
            function.index = entry.index
            read_type_index(module, r, function)
            module.function_count += 1
            module.imported_functions = module.function_count
        case 1:
            if module.tables is None:
                module.tables = new_array(module, r, u64(most), sizeof(TableType))
            if module.tables is None:
                return
            entry.index = module.table_count
            read_table_type(module, r, module.tables + entry.index)
            module.table_count += 1
            module.imported_tables = module.table_count
        case 2:
            if module.memories is None:
                module.memories = new_array(module, r, u64(most), sizeof(MemoryType))
            if module.memories is None:
                return
            entry.index = module.memory_count
            read_memory_type(r, module.memories + entry.index)
            module.memory_count += 1
            module.imported_memories = module.memory_count
        case 4:
            if module.tags is None:
                module.tags = new_array(module, r, u64(most), sizeof(ptr[SignatureType]))
            if module.tags is None:
                return
            entry.index = module.tag_count
            module.tags[entry.index] = read_tag_type(module, r)
            module.tag_count += 1
            module.imported_tags = module.tag_count
        case _:
            if module.globals is None:
                module.globals = new_array(module, r, u64(most), sizeof(GlobalType))
            if module.globals is None:
                return
            entry.index = module.global_count
            read_global_type(module, r, module.globals + entry.index)
            module.global_count += 1
            module.imported_globals = module.global_count


# ------------------------------------------------------------------------------------------------------ own items


@native
def read_functions(module: ptr[Module], r: ptr[Reader]) -> None:
    """The function section: the types of the bodies that the code section brings."""
    count = read_more_count(r, module.imported_functions, limits.FUNCTIONS, "functions")
    first = module.function_count
    functions = cast(ptr[Function], extend(module, r, module.functions, first, count, sizeof(Function)))
    if functions is None:
        return
    module.functions = functions
    for i in range(count):
        function = functions + (first + i)
        function.index = first + i
        if not read_type_index(module, r, function):
            return
    module.function_count = first + count


@native
def read_tables(module: ptr[Module], r: ptr[Reader]) -> None:
    """The table section. A table may give its elements' first value, and must if they cannot be null."""
    count = read_more_count(r, module.imported_tables, limits.TABLES, "tables")
    first = module.table_count
    tables = cast(ptr[TableType], extend(module, r, module.tables, first, count, sizeof(TableType)))
    if tables is None:
        return
    module.tables = tables
    for i in range(count):
        if failed(r):
            return
        entry = tables + (first + i)
        at = r.position
        initialized = at < r.end and at[0] == WITH_INITIALIZER
        if initialized:
            r.position = at + 1
            at = r.position
            if read_byte(r) != 0:
                malformed_at(r, at, "malformed table: 0x40 is followed by 0x00", 0, 0)
        if not read_table_type(module, r, entry):
            return
        if initialized:
            entry.initial = read_constant(module, r, entry.kind)
        elif not has_default(entry.kind):
            invalid(r, at, "type mismatch: a table of {type} needs a first value for its elements", entry.kind, 0)
        module.table_count = first + i + 1


@native
def read_memories(module: ptr[Module], r: ptr[Reader]) -> None:
    """The memory section."""
    count = read_more_count(r, module.imported_memories, limits.MEMORIES, "memories")
    first = module.memory_count
    memories = cast(ptr[MemoryType], extend(module, r, module.memories, first, count, sizeof(MemoryType)))
    if memories is None:
        return
    module.memories = memories
    for i in range(count):
        if not read_memory_type(r, memories + (first + i)):
            return
        module.memory_count = first + i + 1


@native
def read_globals(module: ptr[Module], r: ptr[Reader]) -> None:
    """The global section. A global's first value may use the globals before it."""
    count = read_more_count(r, module.imported_globals, limits.GLOBALS, "globals")
    first = module.global_count
    held = cast(ptr[GlobalType], extend(module, r, module.globals, first, count, sizeof(GlobalType)))
    if held is None:
        return
    module.globals = held
    for i in range(count):
        entry = held + (first + i)
        if not read_global_type(module, r, entry):
            return
        entry.initial = read_constant(module, r, entry.kind)
        if failed(r):
            return
        module.global_count = first + i + 1


# ------------------------------------------------------------------------------------------------------ exports


@native
def hash_name(name: ptr[u8], length: u32, seed: u64) -> u32:
    """A hash of a name that a module's author cannot predict, since the seed is an address."""
    state = seed ^ u64(length)
    for i in range(length // 8):
        state = (state ^ load(u64, name, i * 8)) * 0x9E37_79B9_7F4A_7C15
        state = state ^ (state >> 31)
    for i in range(length & ~u32(7), length):
        state = (state ^ u64(name[i])) * 0x9E37_79B9_7F4A_7C15
    state = state ^ (state >> 31)
    return u32((state * 0x9E37_79B9_7F4A_7C15) >> 32)


@native
def same_name(a: ptr[Export], b: ptr[Export]) -> bool:
    """Whether two exports have one name."""
    if a.name_length != b.name_length:
        return False
    for i in range(a.name_length):
        if a.name[i] != b.name[i]:
            return False
    return True


@native
def check_names_differ(module: ptr[Module], r: ptr[Reader]) -> None:
    """Exports have unique names: each goes into a hash table that is thrown away afterwards."""
    count = module.export_count
    mask: u32 = 15
    while mask < count * 2:
        mask = mask * 2 + 1
    slots = cast(ptr[u32], calloc(u64(mask) + 1, 4))
    if slots is None:
        out_of_memory(r)
        return
    for i in range(count):
        entry = module.exports + i
        at = hash_name(entry.name, entry.name_length, cast(u64, slots)) & mask
        while slots[at] != 0:
            if same_name(module.exports + (slots[at] - 1), entry):
                free(slots)
                invalid(r, entry.name, "duplicate export name", 0, 0)
                return
            at = (at + 1) & mask
        slots[at] = i + 1
    free(slots)


@native
def read_exports(module: ptr[Module], r: ptr[Reader]) -> None:
    """The export section."""
    count = read_count(r, limits.EXPORTS, "exports")
    module.exports = new_array(module, r, u64(count), sizeof(Export))
    for i in range(count):
        if failed(r):
            return
        entry = module.exports + i
        entry.name_length = read_name(r)
        entry.name = r.position - entry.name_length
        at = r.position
        entry.kind = read_byte(r)
        if entry.kind > TAG:
            malformed_at(r, at, "malformed export kind", 0, 0)
        at = r.position
        entry.index = read_u32(r)
        if failed(r):
            return
        match entry.kind:
            case 0:
                if entry.index >= module.function_count:
                    invalid(r, at, "unknown function {number}", entry.index, 0)
                    return
                declare_function(module, r, entry.index)
            case 1:
                if entry.index >= module.table_count:
                    invalid(r, at, "unknown table {number}", entry.index, 0)
            case 2:
                if entry.index >= module.memory_count:
                    invalid(r, at, "unknown memory {number}", entry.index, 0)
            case 3:
                if entry.index >= module.global_count:
                    invalid(r, at, "unknown global {number}", entry.index, 0)
            case _:
                if entry.index >= module.tag_count:
                    invalid(r, at, "unknown tag {number}", entry.index, 0)
        module.export_count = i + 1
    if not failed(r):
        check_names_differ(module, r)


@native
def read_tag_type(module: ptr[Module], r: ptr[Reader]) -> ptr[SignatureType]:
    """A tag's type: of exceptions, the only kind there is, with the types of their values."""
    at = r.position
    if read_byte(r) != 0:
        malformed_at(r, at, "malformed tag attribute", 0, 0)
    at = r.position
    index = read_u32(r)
    if failed(r):
        return cast(ptr[SignatureType], 0)
    if index >= module.signature_count:
        invalid(r, at, "unknown type {number}", index, 0)
        return cast(ptr[SignatureType], 0)
    signature = module.signatures[index]
    if signature.result_count != 0:
        invalid(r, at, "non-empty tag result type: exceptions have values, and return nothing", 0, 0)
    return signature


@native
def read_tags(module: ptr[Module], r: ptr[Reader]) -> None:
    """The tag section."""
    count = read_more_count(r, module.imported_tags, limits.TAGS, "tags")
    first = module.tag_count
    tags = cast(ptr[ptr[SignatureType]], extend(module, r, module.tags, first, count, sizeof(ptr[SignatureType])))
    if tags is None:
        return
    module.tags = tags
    for i in range(count):
        if failed(r):
            return
        tags[first + i] = read_tag_type(module, r)
        module.tag_count = first + i + 1


@native
def read_start(module: ptr[Module], r: ptr[Reader]) -> None:
    """The start section: a function without parameters and results."""
    at = r.position
    index = read_u32(r)
    if failed(r):
        return
    if index >= module.function_count:
        invalid(r, at, "unknown function {number}", index, 0)
        return
    signature = module.functions[index].signature
    if signature.param_count != 0 or signature.result_count != 0:
        invalid(r, at, "start function: function {number} has parameters or results", index, 0)
        return
    module.has_start = True
    module.start = index
