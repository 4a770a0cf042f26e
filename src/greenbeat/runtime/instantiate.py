"""Making an instance of a module, and taking it apart.

    ┌ Instance ┬ own globals, 16 bytes each ┬ globals[] ┬ memories[] ┬ tables[] ┬ imports[] ┬ dropped flags ┐
    └──────────┴────────────────────────────┴───────────┴────────────┴──────────┴───────────┴───────────────┘
    FunctionInstance × own functions, a block of its own: pages of it that nobody asks for stay untouched

The two blocks come zeroed from the C library. Memories and tables are blocks of their own, since other instances may
import them. Types of imports were compared before, in Python, where the error messages are made.
https://webassembly.github.io/spec/core/exec/modules.html#instantiation
"""

from greenbeat.native import addressof, cast, export, native, ptr, sizeof, u8, u32, u64, void
from greenbeat.runtime.arena import calloc, free
from greenbeat.runtime.evaluate import evaluate_constant, evaluate_into
from greenbeat.runtime.layout import (
    EXPLICIT,
    TRAP_NONE,
    FunctionInstance,
    Instance,
    Memory,
    Module,
    Table,
    Tag,
)
from greenbeat.runtime.memory import free_memory, new_memory
from greenbeat.runtime.outcomes import (
    MEMORY_LIMIT,
    NO_ERROR,
    NO_MEMORY,
    SEGMENT_TRAP,
    TABLE_LIMIT,
    InstanceError,
)
from greenbeat.runtime.segments import initialize_datas, initialize_elements
from greenbeat.runtime.table import free_table, new_table
from greenbeat.wasm import limits

GLOBAL_SIZE = 16
OWN_GLOBALS = (sizeof(Instance) + GLOBAL_SIZE - 1) & -GLOBAL_SIZE


@native
def stopped(error: ptr[InstanceError], kind: u32, index: u32) -> bool:
    """Record why instantiation stopped; returns False."""
    error.kind = kind
    error.index = index
    return False


@native
def make_tables(instance: ptr[Instance], error: ptr[InstanceError]) -> bool:
    """The module's own tables."""
    module = instance.module
    for i in range(module.imported_tables, module.table_count):
        kind = module.tables + i
        if kind.minimum > instance.table_limit:
            return stopped(error, TABLE_LIMIT, i)
        initial: u64 = 0
        if kind.initial is not None:
            initial = evaluate_constant(instance, kind.initial)
        instance.tables[i] = new_table(kind, instance.table_limit, initial)
        if instance.tables[i] is None:
            return stopped(error, NO_MEMORY, i)
    return True


@native
def make_memories(instance: ptr[Instance], error: ptr[InstanceError]) -> bool:
    """The module's own memories, which together start within the instance's limit."""
    module = instance.module
    left = instance.memory_limit
    for i in range(module.imported_memories, module.memory_count):
        kind = module.memories + i
        if kind.minimum > left >> u64(kind.page_bits):
            return stopped(error, MEMORY_LIMIT, i)
        left -= kind.minimum << u64(kind.page_bits)
        instance.memories[i] = new_memory(kind, instance.memory_limit)
        if instance.memories[i] is None:
            return stopped(error, NO_MEMORY, i)
    return True


@native
def new_instance(module: ptr[Module]) -> ptr[Instance]:
    """An instance with room for everything and nothing in it; null when there is no memory."""
    own_globals = u64(module.global_count - module.imported_globals)
    pointers = u64(module.global_count) + u64(module.memory_count) + u64(module.table_count)
    pointers += u64(module.imported_functions) + u64(module.tag_count)
    own_tags = u64(module.tag_count - module.imported_tags)
    size = OWN_GLOBALS + own_globals * GLOBAL_SIZE + pointers * sizeof(ptr[void])
    size += own_tags * sizeof(Tag) + u64(module.element_count) + u64(module.data_count)
    instance = cast(ptr[Instance], calloc(1, size))
    if instance is None:
        return cast(ptr[Instance], 0)
    instance.module = module
    instance.bound = u32(module.holds_objects)
    instance.globals = cast(ptr[ptr[u64]], cast(ptr[u8], instance) + (OWN_GLOBALS + own_globals * GLOBAL_SIZE))
    instance.memories = cast(ptr[ptr[Memory]], instance.globals + module.global_count)
    instance.tables = cast(ptr[ptr[Table]], instance.memories + module.memory_count)
    instance.imports = cast(ptr[ptr[FunctionInstance]], instance.tables + module.table_count)
    instance.tags = cast(ptr[ptr[Tag]], instance.imports + module.imported_functions)
    tags = cast(ptr[Tag], instance.tags + module.tag_count)
    for number in range(own_tags):
        (tags + number).signature = module.tags[u64(module.imported_tags) + number]
        instance.tags[u64(module.imported_tags) + number] = tags + number
    instance.dropped_elements = cast(ptr[u8], tags + own_tags)
    instance.dropped_datas = instance.dropped_elements + module.element_count
    for i in range(module.imported_globals, module.global_count):
        offset = OWN_GLOBALS + u64(i - module.imported_globals) * GLOBAL_SIZE
        instance.globals[i] = cast(ptr[u64], cast(ptr[u8], instance) + offset)
    instance.functions = calloc(u64(module.function_count - module.imported_functions) + 1, sizeof(FunctionInstance))
    if instance.functions is None:
        free(instance)
        return cast(ptr[Instance], 0)
    return instance


@native
def take_imports(instance: ptr[Instance], imports: ptr[ptr[void]]) -> None:
    """Put imports into the index spaces, which begin with them."""
    module = instance.module
    for i in range(module.import_count):
        entry = module.imports + i
        match entry.kind:
            case 0:
                instance.imports[entry.index] = imports[i]
            case 1:
                instance.tables[entry.index] = imports[i]
            case 2:
                instance.memories[entry.index] = imports[i]
            case 3:
                instance.globals[entry.index] = imports[i]
            case _:
                instance.tags[entry.index] = imports[i]


@native
def initialize(instance: ptr[Instance], error: ptr[InstanceError]) -> bool:
    """Everything an instance has before its segments are looked at, in the order of the specification."""
    module = instance.module
    for i in range(module.imported_globals, module.global_count):
        held = module.globals + i
        evaluate_into(instance, held.initial, instance.globals[i])
    if not make_tables(instance, error) or not make_memories(instance, error):
        return False
    if module.memory_count != 0:
        instance.memory = instance.memories[0]
        if not instance.memory.guarded:
            instance.bounds = EXPLICIT
    return True


@export
def create_instance(
    module: ptr[Module], imports: ptr[ptr[void]], memory_limit: u64, table_limit: u64, error: ptr[InstanceError]
) -> ptr[Instance]:
    """Instantiate a module up to its start function, which the caller runs.

    Args:
        module: outlives the instance.
        imports: one address for each import in order: of a FunctionInstance, a Table, a Memory or a global's 16 bytes.
        memory_limit: bytes that one memory may have.
        table_limit: elements that one table may have.
        error: says what stopped it, if anything.

    Returns:
        Null when nothing was made. When a segment did not fit, the instance: earlier segments may have put references
        to its functions into imported tables, so it must live as long as those.
    """
    error.kind = NO_ERROR
    error.trap = TRAP_NONE
    error.index = 0
    instance = new_instance(module)
    if instance is None:
        stopped(error, NO_MEMORY, 0)
        return cast(ptr[Instance], 0)
    instance.memory_limit = memory_limit
    instance.table_limit = table_limit if table_limit < limits.TABLE_SIZE else u64(limits.TABLE_SIZE)
    take_imports(instance, imports)
    if not initialize(instance, error):
        destroy_instance(instance)
        return cast(ptr[Instance], 0)
    error.is_data = False
    problem = initialize_elements(instance, addressof(error.index))
    if problem == TRAP_NONE:
        error.is_data = True
        problem = initialize_datas(instance, addressof(error.index))
    if problem != TRAP_NONE:
        error.kind = SEGMENT_TRAP
        error.trap = problem
    return instance


@export
def destroy_instance(instance: ptr[Instance]) -> None:
    """Free an instance with its own memories and tables, once nothing refers to any of them."""
    module = instance.module
    for i in range(module.imported_tables, module.table_count):
        if instance.tables[i] is not None:
            free_table(instance.tables[i])
    for i in range(module.imported_memories, module.memory_count):
        if instance.memories[i] is not None:
            free_memory(instance.memories[i])
    free(instance.functions)
    free(instance)
