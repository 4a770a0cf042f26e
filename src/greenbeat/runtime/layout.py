"""Everything native code shares in memory: modules, instances, and the state of a running task.

The structs are laid out as C does and can be read from Python through ctypes. A module and its translated code are
shared by all of its instances; nothing in a module points to an instance.

    Module ── functions[] ── Function ── entry ──▶ cells (one array per function and per mode)
      ▲
    Instance ── memory ──▶ Memory ──▶ bytes (reserved once, never move)
      │     ├── tables[] ─▶ Table ──▶ elements
      │     ├── globals[] ▶ 16 bytes each, own ones right behind the Instance
      │     └── functions[] FunctionInstance: what a funcref points to, and what an import is
    Task ── stack of slots, 8 bytes each, grows upward

A frame on a task's stack (`sp` is the frame base, kept in a register):

    sp ─▶ │ parameters ...            │  the caller put them here; results replace them
          │ some locals, or nothing   │  up to slot 4
          │ return ip │ caller's sp   │  header: at slot 4, or right after the parameters if there are more
          │ other locals ...          │
          │ operands ...              │  a callee's frame starts at its first argument here

Nearly every function's header is at the same distance from its frame's base. A processor forwards what a call stores to
the return that loads it without going through memory when both name it by the same base and distance, which halves the
time of a call.
"""

from greenbeat.native import array, i64, inline, ptr, select, struct, u8, u32, u64, v128, void
from greenbeat.tasks.layout import Fiber

SLOT = 8
HEADER_SLOTS = 2
NEAR = 4
PAGE = 65536
# Room above `Task.limit` that frames need not check for; a function with a larger frame checks it itself.
STACK_MARGIN = 32768

# The variants of a function's code: without and with fuel, plus EXPLICIT where memory 0 has no guard pages.
UNMETERED, METERED, EXPLICIT = 0, 1, 2
VARIANTS = 4

# Task.status
FINISHED, TRAPPED, SUSPENDED, RAISED = 0, 1, 2, 3

# FunctionInstance.kind
GUEST, HOST = 0, 1

# Import.kind and Export.kind
FUNCTION, TABLE, MEMORY, GLOBAL, TAG = 0, 1, 2, 3, 4


@inline
def header_slot(param_count: u32) -> u32:
    """The slot of a frame's header."""
    return select(param_count > NEAR, param_count, u32(NEAR))


@struct
class SignatureType:
    """A function type; there is one per distinct type in the process, `number` is its place in the registry."""

    number: u32
    param_count: u32
    result_count: u32
    hash: u32
    params: ptr[u32]
    results: ptr[u32]


@struct
class Catch:
    """A clause of a `try_table`: an exception thrown by the cells from `start` to `end` goes on at `landing`.

    All three are byte offsets from the function's entry. The exception's values go to slots from `slot` on (a byte
    offset from the frame's base), followed by the exception itself if the clause wants it. `tag` may be ANY_TAG.
    """

    start: u32
    end: u32
    landing: u32
    slot: u32
    tag: u32
    by_reference: u32


ANY_TAG = 0xFFFF_FFFF


@struct
class Tag:
    """A tag: two are the same if they are at the same place. There are no results."""

    signature: ptr[SignatureType]


@struct
class Function:
    """A function of a module; imported ones have no body. `entry` has its code by variant, zero until translated."""

    signature: ptr[SignatureType]
    body: ptr[u8]
    body_length: u32
    type_index: u32
    index: u32
    frame_size: u32
    entry: array[ptr[u8], VARIANTS]
    code_size: array[u32, VARIANTS]
    # Innermost first, by variant.
    catches: array[ptr[Catch], VARIANTS]
    catch_count: array[u32, VARIANTS]


@struct
class Translated:
    """A function's cells in a variant, as the translator wrote them; they follow, and its clauses follow them."""

    next: ptr["Translated"]
    # Of everything that follows, in a file.
    checksum: u64
    index: u32
    variant: u32
    frame_size: u32
    size: u32
    catch_count: u32
    unused: u32


@struct
class TableType:
    """A table's type; `initial` is a constant expression (0: null)."""

    kind: u32
    is_64: bool
    has_maximum: bool
    minimum: u64
    maximum: u64
    initial: ptr[u8]


@struct
class MemoryType:
    """A memory's type, in pages."""

    is_64: bool
    has_maximum: bool
    shared: bool
    page_bits: u32
    minimum: u64
    maximum: u64


@struct
class GlobalType:
    """A global's type; `initial` is a constant expression (0 for imports)."""

    kind: u32
    mutable: bool
    initial: ptr[u8]


@struct
class Import:
    """An import: names as spans of the module's bytes, `index` in the index space of its kind."""

    module: ptr[u8]
    name: ptr[u8]
    module_length: u32
    name_length: u32
    kind: u32
    index: u32


@struct
class Export:
    """An export."""

    name: ptr[u8]
    name_length: u32
    kind: u32
    index: u32


PASSIVE, ACTIVE, DECLARATIVE = 0, 1, 2


@struct
class ElementSegment:
    """References to put into a table.

    `items` are function indices, or with `expressions` where in the module's bytes each constant expression is.
    """

    mode: u32
    table: u32
    kind: u32
    count: u32
    expressions: bool
    offset: ptr[u8]
    items: ptr[u32]


@struct
class DataSegment:
    """Bytes to put into a memory."""

    mode: u32
    memory: u32
    offset: ptr[u8]
    data: ptr[u8]
    length: u64


@struct
class Section:
    """A section as it stands in the module's bytes; `name` is a custom section's, and `contents` start behind it."""

    id: u32
    name_length: u32
    name: ptr[u8]
    contents: ptr[u8]
    length: u64


@struct
class Module:
    """A decoded and validated module. Arrays are owned; `bytes` is the caller's and outlives it."""

    bytes: ptr[u8]
    length: u64
    signatures: ptr[ptr[SignatureType]]
    signature_count: u32
    function_count: u32
    functions: ptr[Function]
    imported_functions: u32
    table_count: u32
    tables: ptr[TableType]
    imported_tables: u32
    memory_count: u32
    memories: ptr[MemoryType]
    imported_memories: u32
    tags: ptr[ptr[SignatureType]]
    tag_count: u32
    imported_tags: u32
    global_count: u32
    globals: ptr[GlobalType]
    imported_globals: u32
    import_count: u32
    imports: ptr[Import]
    exports: ptr[Export]
    export_count: u32
    element_count: u32
    elements: ptr[ElementSegment]
    datas: ptr[DataSegment]
    data_count: u32
    has_data_count: bool
    has_start: bool
    start: u32
    # One bit a function: mentioned outside bodies, so that `ref.func` may name it.
    declared: ptr[u8]
    names: ptr[u8]
    names_length: u64
    arena: ptr[void]
    code: ptr[void]
    code_end: ptr[u8]
    translated_bytes: u64
    # Whether Python objects may be among its values.
    holds_objects: bool
    # Bytes of the largest frame of any translated function.
    largest_frame: u64
    # In the order of the bytes; `section_capacity` is how many `sections` has room for.
    sections: ptr[Section]
    section_count: u32
    section_capacity: u32
    # Translations of an earlier process that no function runs from yet, by function and variant; null without.
    kept_places: ptr[ptr[Translated]]
    # With `recording`, those of this process, newest first; and the newest of those that were written to a file.
    recorded: ptr[Translated]
    collected: ptr[Translated]
    recording: u32
    # An earlier process validated the bodies: they are not looked at before they are called.
    bodies_are_valid: u32
    # How many bodies were validated, and how many translations were made and taken from an earlier process.
    validated: u32
    translated: u32
    restored: u32


@struct
class Memory:
    """A linear memory. `base` never changes. With `guarded`, `reserved` covers every 32-bit address plus offset.

    Sizes are in bytes, except `maximum`, which is in pages. `limit` is what the host allows.
    """

    base: ptr[u8]
    length: u64
    maximum: u64
    reserved: u64
    limit: u64
    committed: u64
    is_64: bool
    guarded: bool
    page_bits: u32


@struct
class Table:
    """A table. An element is a FunctionInstance's or a Python object's address, or 0.

    In front of the elements is their number, and before that the array that they replaced: so whoever loads `elements`
    once has both as they belong together, whatever other threads do. `limit` is what the host allows.
    """

    elements: ptr[u64]
    length: u64
    maximum: u64
    limit: u64
    capacity: u64
    kind: u32
    is_64: bool


@struct
class FunctionInstance:
    """What a funcref points to. `python` is the host's callable (HOST) or nothing yet (GUEST)."""

    signature: ptr[SignatureType]
    kind: u32
    index: u32
    function: ptr[Function]
    instance: ptr["Instance"]
    python: ptr[void]


@struct
class Instance:
    """A module's instance. Own globals follow it, 16 bytes each.

    `bounds` is EXPLICIT if memory 0 has no guard pages, else 0.
    """

    memory: ptr[Memory]
    module: ptr[Module]
    memories: ptr[ptr[Memory]]
    tables: ptr[ptr[Table]]
    globals: ptr[ptr[u64]]
    tags: ptr[ptr[Tag]]
    functions: ptr[FunctionInstance]
    imports: ptr[ptr[FunctionInstance]]
    # One byte a segment: dropped.
    dropped_elements: ptr[u8]
    dropped_datas: ptr[u8]
    python: ptr[void]
    task: ptr["Task"]
    memory_limit: u64
    table_limit: u64
    bounds: u32
    # The limits of a call from Python: fuel left (if `metered`), bytes of stack, nanoseconds (0: no limit), nested
    # calls.
    metered: u32
    fuel: i64
    stack_limit: u64
    time_limit: u64
    depth_limit: u32
    # No calls from Python any more.
    closed: u32
    # Python objects may be among its values: it runs only with the GIL.
    bound: u32


@struct
class Task:
    """A running, suspended or finished call chain, on its own stack of slots."""

    # Frames that begin above take the slow path. The pacemaker makes it 0, so that the next call looks at the pulse;
    # `soft` is what it is otherwise, which rises to `ceiling`, the true limit, as the stack is used.
    limit: ptr[u8]
    pulse: u32
    # UNMETERED or METERED.
    mode: u32
    status: u32
    trap: u32
    fuel: i64
    # Where the task stopped: at a trap, at a suspension, around a host call.
    ip: ptr[u8]
    sp: ptr[u8]
    instance: ptr[Instance]
    # Above what is live, while others may look for references.
    top: ptr[u8]
    stack: ptr[u8]
    stack_end: ptr[u8]
    soft: ptr[u8]
    ceiling: ptr[u8]
    # The fiber that it runs on; null for a resumable call that does not run.
    fiber: ptr[Fiber]
    # The task whose host function has made this call; null if none has. The outermost of these tasks, perhaps itself.
    outer: ptr["Task"]
    chain: ptr["Task"]
    # Python objects may be among its values: it runs only with the GIL.
    bound: u32
    # Frames may have been anywhere up to the stack's end.
    deep: u32
    # What the payer's fuel was when it was last written or read.
    shown: i64
    # Whose fuel is used (null: only this call's own) and what of that fuel this call may not use.
    payer: ptr[Instance]
    reserve: i64
    # How many calls from Python are one inside the other, this one included; its native stack, for faults.
    depth: u32
    native_stack: ptr[u8]
    # When the call must be over, in nanoseconds of the monotonic clock; 0: never.
    deadline: u64
    # The next in the list of all tasks, and in that of tasks out of use.
    link: ptr["Task"]
    cached: ptr["Task"]
    accumulator: u64
    # An exception that no guest caught: a Python object, owned.
    exception: ptr[void]
    float_accumulator: v128


# Guest.state, two bits: its run is over; nobody asks for its result any more.
RUN_OVER, FORGOTTEN = 1, 2
# Guest.entrance: of a Function; of a Call that begins, or goes on.
FRESH, BEGINS, GOES_ON = range(3)


@struct
class Guest:
    """What a guest that runs as a green task has, in its stack's slot below the Fiber; see `tasks/guests.py`.

    `callable` (a Function or a Call), `exception` (what a host function raised) and `waiter` are Python objects, owned.
    `waiter` is null, or called with an awaitable that a host function returned, or with None when nobody waits for it
    any more. A Call runs with its own Task, else it is the one here.
    """

    task: Task
    callable: ptr[void]
    exception: ptr[void]
    waiter: ptr[void]
    fiber: ptr[Fiber]
    target: ptr[FunctionInstance]
    # The host function whose awaitable the guest waits for, where its results belong, and what became of it.
    awaited: ptr[FunctionInstance]
    slots: ptr[u64]
    answer: u32
    status: u32
    state: u32
    # Whether the task is in the list of all tasks.
    listed: u32
    # Up to where the value stack keeps memory of deep calls from Python, null if it has none; calls since the last one.
    touched: ptr[u8]
    shallow: u32
    # With a Call: where it goes on. Else FRESH.
    entrance: u32


@struct
class FrameRecord:
    """A frame: whose function, and where in its cells."""

    instance: ptr[Instance]
    ip: ptr[u8]
    index: u32


# Task.trap: what ended the guest. The texts are in greenbeat.runtime.traps.
(
    TRAP_NONE,
    TRAP_UNREACHABLE,
    TRAP_MEMORY,
    TRAP_TABLE,
    TRAP_INDIRECT_NULL,
    TRAP_INDIRECT_TYPE,
    TRAP_DIVIDE_BY_ZERO,
    TRAP_OVERFLOW,
    TRAP_CONVERSION,
    TRAP_NULL_REFERENCE,
    TRAP_STACK,
    TRAP_DEPTH,
    TRAP_TABLE_ELEMENT,
    TRAP_EXCEPTION,
    TRAP_NO_MEMORY,
    TRAP_CANCELLED,
    TRAP_TIME,
) = range(17)
