"""Where translated code comes to rest: a module's arena, where it can run, and records that outlive the process.

The translator writes cells without addresses: the first word of each has the handler's number and the cell's size, the
word for a linked call's handler a number, a type's word an index. `place` copies such code to where it runs and puts in
the addresses. A module that is being recorded keeps the code as the translator wrote it as well, as `Translated`:

    │ Translated │ cells ... │ clauses ... │      recorded: a list, newest first; kept: the same, one behind the other

`greenbeat.api.translations` writes those records to a file and gives them to the modules of later processes. Where they
would translate a function they put the addresses into its record, which then is where it runs. Records are believed:
whoever hands them over has seen that they are what this engine wrote for this very module.
"""

from greenbeat.interpreter.calls import CALL_ITSELF
from greenbeat.interpreter.handlers import (
    CALL,
    CALL_INDIRECT,
    CALL_UNLINKED,
    RETURN_NOTHING,
    TAIL_CALL_INDIRECT,
    UNREACHABLE,
    functions,
    handlers,
)
from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    copy,
    export,
    inline,
    load,
    native,
    offsetof,
    ptr,
    sizeof,
    store,
    u8,
    u32,
    u64,
)
from greenbeat.runtime.arena import allocate, allocate_array
from greenbeat.runtime.layout import VARIANTS, Catch, Function, Module, Translated

# xxHash64's.
MULTIPLIER_1, MULTIPLIER_2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
CHECKED_FROM = offsetof(Translated, "index")
# Where a call's cell has its function type: the families between these numbers are all dynamic calls.
SIGNATURE = 16


@native
def put_addresses(module: ptr[Module], cells: ptr[u8], size: u32) -> None:
    """Make cells that the translator wrote cells that run."""
    at: u32 = 0
    while at < size:
        cell = cells + at
        number, length = load(u32, cell), load(u32, cell, 4)
        assert number < len(functions) and length >= 8 and length <= size - at
        store(cell, handlers[number])
        if number >= CALL_UNLINKED and number < CALL:
            store(cell, handlers[load(u32, cell, CALL_ITSELF)], CALL_ITSELF)
        elif (number >= CALL_INDIRECT and number < RETURN_NOTHING) or (
            number >= TAIL_CALL_INDIRECT and number < UNREACHABLE
        ):
            store(cell, module.signatures[load(u32, cell, SIGNATURE)], SIGNATURE)
        at += length


@native
def place(
    module: ptr[Module],
    function: ptr[Function],
    variant: u32,
    cells: ptr[u8],
    size: u32,
    catches: ptr[Catch],
    count: u32,
) -> bool:
    """Give a function its code in a variant, in the module's arena; False without memory."""
    code = cast(ptr[u8], allocate(module.arena, u64(size)))
    if code is None:
        return False
    copy(code, cells, u64(size))
    put_addresses(module, code, size)
    clauses = cast(ptr[Catch], 0)
    if count != 0:
        bytes = u64(count) * sizeof(Catch)
        clauses = cast(ptr[Catch], allocate(module.arena, bytes))
        if clauses is None:
            return False
        copy(clauses, catches, bytes)
    run_from(module, function, variant, code, size, clauses, count)
    return True


@native
def run_from(
    module: ptr[Module],
    function: ptr[Function],
    variant: u32,
    code: ptr[u8],
    size: u32,
    catches: ptr[Catch],
    count: u32,
) -> None:
    """Let a function run from cells that have their addresses."""
    function.catches[variant] = catches
    function.catch_count[variant] = count
    function.code_size[variant] = size
    module.translated_bytes += u64(size)
    if u64(function.frame_size) > module.largest_frame:
        module.largest_frame = u64(function.frame_size)
    atomic_store(addressof(function.entry[variant]), code, "release")


# ---------------------------------------------------------------- records


@native
def record_size(record: ptr[Translated]) -> u64:
    """How many bytes a record has, with its cells and clauses."""
    return u64(sizeof(Translated)) + u64(record.size) + u64(record.catch_count) * sizeof(Catch)


@native
def cells_of(record: ptr[Translated]) -> ptr[u8]:
    """A record's cells."""
    return cast(ptr[u8], record + 1)


@native
def catches_of(record: ptr[Translated]) -> ptr[Catch]:
    """A record's clauses."""
    return cast(ptr[Catch], cells_of(record) + record.size)


@native
def record(
    module: ptr[Module],
    function: ptr[Function],
    variant: u32,
    cells: ptr[u8],
    size: u32,
    catches: ptr[Catch],
    count: u32,
) -> None:
    """Keep what the translator wrote; without memory it is not kept."""
    clauses = u64(count) * sizeof(Catch)
    made = cast(ptr[Translated], allocate(module.arena, u64(sizeof(Translated)) + u64(size) + clauses))
    if made is None:
        return
    made.index = function.index
    made.variant = variant
    made.frame_size = function.frame_size
    made.size = size
    made.catch_count = count
    copy(cells_of(made), cells, u64(size))
    if count != 0:
        copy(catches_of(made), catches, clauses)
    made.next = module.recorded
    atomic_store(addressof(module.recorded), made, "release")


@inline
def mixed(lane, word):
    """A lane of the checksum with another word; the round of xxHash64."""
    sum = lane + word * MULTIPLIER_2
    return ((sum << u64(31)) | (sum >> u64(33))) * MULTIPLIER_1


@native
def checksum_of(record: ptr[Translated]) -> u64:
    """What tells a damaged record. It is no protection against malice."""
    at = cast(ptr[u8], record) + CHECKED_FROM
    end = cast(ptr[u8], record) + record_size(record)
    a, b, c, d = u64(MULTIPLIER_1), u64(MULTIPLIER_2), u64(0), ~u64(MULTIPLIER_1)
    while u64(end - at) >= 32:
        a = mixed(a, load(u64, at))
        b = mixed(b, load(u64, at, 8))
        c = mixed(c, load(u64, at, 16))
        d = mixed(d, load(u64, at, 24))
        at += 32
    while at < end:
        a = mixed(a, load(u64, at))
        at += 8
    return mixed(mixed(mixed(a, b), c), d)


@native
def restore(module: ptr[Module], function: ptr[Function], variant: u32) -> bool:
    """Let a function run from its kept code in a variant, which gets its addresses in place; False if there is none."""
    if module.kept_places is None:
        return False
    found = module.kept_places[function.index * VARIANTS + variant]
    if found is None:
        return False
    module.kept_places[function.index * VARIANTS + variant] = None
    if found.index != function.index or found.variant != variant or checksum_of(found) != found.checksum:
        return False
    function.frame_size = found.frame_size
    put_addresses(module, cells_of(found), found.size)
    run_from(module, function, variant, cells_of(found), found.size, catches_of(found), found.catch_count)
    module.restored += 1
    return True


@export
def use_translations(module: ptr[Module], records: ptr[u8], length: u64) -> None:
    """Let a module use the records of an earlier process, before any of its functions is called.

    They are the module's to change, and outlive it. Behind a damaged one there is none.
    """
    count = u64(module.function_count) * VARIANTS
    places = cast(ptr[ptr[Translated]], allocate_array(module.arena, count, sizeof(ptr[Translated])))
    if places is None:
        return
    at: u64 = 0
    while length - at >= sizeof(Translated):
        found = cast(ptr[Translated], records + at)
        size = record_size(found)
        if size > length - at or size % 8 != 0 or found.index >= module.function_count or found.variant >= VARIANTS:
            break
        places[found.index * VARIANTS + found.variant] = found
        at += size
    module.kept_places = places


@export
def collect_translations(module: ptr[Module], to: ptr[u8], room: u64) -> u64:
    """Write the new records of a module to `to` if there is room; returns how many bytes they have.

    New is what was not written before. Other threads may translate meanwhile.
    """
    first = atomic_load(addressof(module.recorded), "acquire")
    size: u64 = 0
    made = first
    while made != module.collected:
        size += record_size(made)
        made = made.next
    if size > room:
        return size
    at: u64 = 0
    made = first
    while made != module.collected:
        length = record_size(made)
        copy(to + at, made, length)
        written = cast(ptr[Translated], to + at)
        written.next = None
        written.checksum = checksum_of(written)
        at += length
        made = made.next
    module.collected = first
    return size
