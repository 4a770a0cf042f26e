"""Groups: instances that live and die together, and everything they keep alive.

References can flow between instances that share a table, a global of references or a function that takes or returns
one. Such instances are merged into one group; a module that only calls another's numeric functions, or shares its
memory, keeps the other's group alive instead. So groups that keep each other never form a circle.

    Function, Memory, Table ... (Python objects) ──owner──▶ Group ──parent──▶ Group (root)
                                                                               │
                     resources: Instance, Memory, Table, global, HostFunction ◀┤ freed with it
                     kept: host callables, other groups, modules             ◀─┤ Python objects
                     references: objects that guests may hold as externref   ◀─┘ a hash set, swept when it has doubled

A group is a Python object that the garbage collector can look into but not clear: circles through host functions are
broken at the Function, Memory or other object that leads into the group, so native code never runs with half of its
group gone.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    cast,
    export,
    function,
    i32,
    inline,
    native,
    ptr,
    sizeof,
    stack,
    static,
    struct,
    u32,
    u64,
    void,
)
from greenbeat.runtime.arena import calloc, free, malloc
from greenbeat.runtime.instantiate import destroy_instance
from greenbeat.runtime.layout import (
    GUEST,
    HOST,
    FunctionInstance,
    Instance,
    Memory,
    MemoryType,
    SignatureType,
    Table,
    TableType,
)
from greenbeat.runtime.memory import free_memory, grow_memory, new_memory
from greenbeat.runtime.pythonapi import (
    HAVE_GC,
    TP_DEALLOC,
    TP_TRAVERSE,
    Object,
    Py_DecRef,
    Py_IncRef,
    PyErr_NoMemory,
    PyObject_GC_UnTrack,
    PyType_GenericAlloc,
    Slot,
    drop,
    free_object,
    make_type,
    set_slot,
)
from greenbeat.runtime.references import (
    MARK,
    References,
    add_reference,
    drop_references,
    drop_unmarked,
    mark_range,
    mark_reference,
    reserve_references,
)
from greenbeat.runtime.system import realloc
from greenbeat.runtime.table import free_table, new_table
from greenbeat.runtime.tasks import tasks
from greenbeat.wasm.decoder import free_module
from greenbeat.wasm.valuetypes import holds_objects

# Resource.kind
INSTANCE, MEMORY, TABLE, GLOBAL, HOST_FUNCTION, MODULE = range(6)

FIRST_SWEEP = 64


@struct
class Resource:
    """Something native that a group owns."""

    next: ptr["Resource"]
    kind: u32
    pointer: ptr[void]


@struct
class HostFunction:
    """A host's function: what guests see of it, its group, and its Function object if there is one."""

    function: FunctionInstance
    group: ptr[void]
    wrapper: ptr[Object]


@struct
class HostGlobal:
    """A global that the host made: 16 bytes, as in an instance."""

    low: u64
    high: u64
    kind: u32


@struct
class Group:
    """See above. `visited` is the walk that saw it last, `queued` the next of the groups to be freed.

    `reachable` is False while nothing can refer to it yet.
    """

    head: Object
    parent: ptr["Group"]
    resources: ptr[Resource]
    kept: ptr[ptr[Object]]
    kept_count: u32
    kept_room: u32
    references: References
    reachable: bool
    visited: u64
    queued: ptr["Group"]


group_type = static(ptr[void], name="group_type")
dying_groups = static(ptr[Group], name="dying_groups")
freeing_groups = static(u32, name="freeing_groups")
last_walk = static(u64, name="last_walk")


@native(shared=True)
def root_of(group: ptr[Group]) -> ptr[Group]:
    """The group that this one has become part of."""
    while group.parent is not None:
        group = group.parent
    return group


@export
def new_group() -> ptr[Group]:
    """An empty group, owned by the caller; null with MemoryError."""
    return cast(ptr[Group], PyType_GenericAlloc(group_type[0], 0))


# ---------------------------------------------------------------- what a group owns


@native
def add_resource(group: ptr[Group], kind: u32, pointer: ptr[void]) -> bool:
    """Let a group own something native; False when there is no memory."""
    resource = cast(ptr[Resource], malloc(sizeof(Resource)))
    if resource is None:
        return False
    root = root_of(group)
    resource.next = root.resources
    resource.kind = kind
    resource.pointer = pointer
    root.resources = resource
    return True


@native
def reserve_kept(root: ptr[Group], count: u32) -> bool:
    """Make room to keep `count` objects in all; False when there is no memory."""
    if count <= root.kept_room:
        return True
    room = count + count // 2 + 2
    kept = cast(ptr[ptr[Object]], realloc(root.kept, u64(room) * sizeof(ptr[Object])))
    if kept is None:
        return False
    root.kept = kept
    root.kept_room = room
    return True


@export
def keep(group: ptr[Group], item: ptr[Object]) -> u32:
    """Keep a Python object, or another group, alive as long as the group. Returns 0 with MemoryError."""
    root = root_of(group)
    if item.type == group_type[0] and root.reachable:
        other = root_of(cast(ptr[Group], item))
        last_walk[0] += 2
        if leads_to(other, root, last_walk[0]):
            # To keep it would close a circle.
            return merge_groups(root, other)
    if not reserve_kept(root, root.kept_count + 1):
        PyErr_NoMemory()
        return 0
    Py_IncRef(item)
    root.kept[root.kept_count] = item
    root.kept_count += 1
    return 1


@export
def adopt_instance(group: ptr[Group], instance: ptr[Instance]) -> u32:
    """Let a group own an instance. Returns 0 with MemoryError."""
    if not add_resource(group, INSTANCE, instance):
        PyErr_NoMemory()
        return 0
    root = root_of(group)
    root.reachable = True
    instance.python = root
    return 1


@export
def adopt(group: ptr[Group], kind: u32, pointer: ptr[void]) -> u32:
    """Let a group own a module, or something that the host made. Returns 0 with MemoryError."""
    if not add_resource(group, kind, pointer):
        PyErr_NoMemory()
        return 0
    return 1


@export
def new_host_global(group: ptr[Group], kind: u32) -> ptr[HostGlobal]:
    """A global of zeros that the group owns; null with MemoryError."""
    made = cast(ptr[HostGlobal], calloc(1, sizeof(HostGlobal)))
    if made is None or not add_resource(group, GLOBAL, made):
        free(made)
        PyErr_NoMemory()
        return cast(ptr[HostGlobal], 0)
    made.kind = kind
    return made


@export
def new_host_memory(group: ptr[Group], type: ptr[MemoryType], limit: u64) -> ptr[Memory]:
    """A memory that the group owns; null if there is none to be had."""
    made = new_memory(type, limit)
    if made is not None and not add_resource(group, MEMORY, made):
        free_memory(made)
        return cast(ptr[Memory], 0)
    return made


@export
def new_host_table(group: ptr[Group], type: ptr[TableType], limit: u64) -> ptr[Table]:
    """A table of nulls that the group owns; null if there is none to be had."""
    made = new_table(type, limit, 0)
    if made is not None and not add_resource(group, TABLE, made):
        free_table(made)
        return cast(ptr[Table], 0)
    return made


@export
def grow_memory_by(memory: ptr[Memory], pages: u64) -> u64:
    """`grow_memory` for the host: only the memory's own limit counts."""
    return grow_memory(None, memory, pages)


@export
def new_host_function(group: ptr[Group], signature: ptr[SignatureType], callable: ptr[Object]) -> ptr[HostFunction]:
    """A function that calls a Python callable; the group owns both. Null with MemoryError."""
    made = cast(ptr[HostFunction], calloc(1, sizeof(HostFunction)))
    if made is None or not add_resource(group, HOST_FUNCTION, made):
        free(made)
        PyErr_NoMemory()
        return cast(ptr[HostFunction], 0)
    made.function.signature = signature
    made.function.kind = HOST
    made.function.python = callable
    made.group = root_of(group)
    Py_IncRef(callable)
    return made


@native
def group_of(target: ptr[FunctionInstance]) -> ptr[Group]:
    """The root of the group that a function belongs to."""
    if target.kind == GUEST:
        return root_of(cast(ptr[Group], target.instance.python))
    return root_of(cast(ptr[Group], cast(ptr[HostFunction], target).group))


# ---------------------------------------------------------------- merging


@inline
def kept_group(group: ptr[Group], position: u32) -> ptr[Group]:
    """The root of the group that is kept at a position; null if something else is kept there."""
    item = group.kept[position]
    if item.type == group_type[0]:
        return root_of(cast(ptr[Group], item))
    return cast(ptr[Group], 0)


@native
def leads_to(group: ptr[Group], goal: ptr[Group], walk: u64) -> bool:
    """Whether a root keeps `goal` alive, itself or through others; `visited` becomes the walk's number, odd if so."""
    if group == goal:
        return True
    if group.visited & ~u64(1) == walk:
        return group.visited != walk
    group.visited = walk
    for i in range(group.kept_count):
        other = kept_group(group, i)
        if other is not None and leads_to(other, goal, walk):
            group.visited = walk + 1
    return group.visited != walk


@native
def move_into(root: ptr[Group], other: ptr[Group]) -> bool:
    """Make another root part of this one; False when there is no memory, and then nothing has changed."""
    if not reserve_kept(root, root.kept_count + other.kept_count):
        return False
    if other.references.count != 0:
        if not reserve_references(root.references, root.references.count + other.references.count):
            return False
        for at in range(other.references.mask + 1):
            if other.references.slots[at] != 0:
                add_reference(root.references, cast(ptr[Object], other.references.slots[at]))
    for i in range(other.kept_count):
        root.kept[root.kept_count + i] = other.kept[i]
    root.kept_count += other.kept_count
    other.kept_count = 0
    while other.resources is not None:
        resource = other.resources
        other.resources = resource.next
        resource.next = root.resources
        root.resources = resource
        if resource.kind == INSTANCE:
            cast(ptr[Instance], resource.pointer).python = root
        elif resource.kind == HOST_FUNCTION:
            cast(ptr[HostFunction], resource.pointer).group = root
    Py_IncRef(cast(ptr[Object], root))
    other.parent = root
    root.reachable = True
    drop_references(other.references)
    return True


@native
def merge_way(group: ptr[Group], goal: ptr[Group], walk: u64) -> bool:
    """Merge into `goal` every root that the walk found on a way to it, `group` last."""
    if group == goal or group.visited != walk + 1:
        return True
    group.visited = walk
    for i in range(group.kept_count):
        other = kept_group(group, i)
        if other is not None and not merge_way(other, goal, walk):
            return False
    return move_into(goal, group)


@native
def forget_itself(root: ptr[Group]) -> None:
    """Drop what a root keeps of groups that are now part of it."""
    i = u32(0)
    while i < root.kept_count:
        item = root.kept[i]
        if kept_group(root, i) == root:
            root.kept_count -= 1
            root.kept[i] = root.kept[root.kept_count]
            Py_DecRef(item)
        else:
            i += 1


@export
def merge_groups(left: ptr[Group], right: ptr[Group]) -> u32:
    """Make two groups one, with all groups that one keeps and that keep the other. Returns 0 with MemoryError."""
    a = root_of(left)
    b = root_of(right)
    if a == b:
        return 1
    last_walk[0] += 4
    walk = last_walk[0] - 2
    good = False
    if leads_to(a, b, walk):
        good = merge_way(a, b, walk)
    elif leads_to(b, a, walk + 2):
        good = merge_way(b, a, walk + 2)
    else:
        good = move_into(b, a)
    if not good:
        PyErr_NoMemory()
        return 0
    forget_itself(root_of(a))
    return 1


# ---------------------------------------------------------------- objects that guests hold


@native
def mark_table(set: ptr[References], table: ptr[Table]) -> None:
    """Note what a table holds."""
    if holds_objects(table.kind):
        mark_range(set, table.elements, table.elements + table.length)


@native
def mark_instance(set: ptr[References], instance: ptr[Instance]) -> None:
    """Note what an instance's tables and globals hold."""
    module = instance.module
    for i in range(module.table_count):
        if instance.tables[i] is not None:
            mark_table(set, instance.tables[i])
    for i in range(module.global_count):
        if holds_objects(module.globals[i].kind):
            mark_reference(set, instance.globals[i][0])


@native(noinline=True)
def sweep(root: ptr[Group], newest: ptr[Object]) -> None:
    """Let go of the objects that no guest can reach any more; `newest` is on its way to one."""
    set = root.references
    mark_reference(set, cast(u64, newest))
    resource = root.resources
    while resource is not None:
        if resource.kind == INSTANCE:
            mark_instance(set, resource.pointer)
        elif resource.kind == TABLE:
            mark_table(set, resource.pointer)
        elif resource.kind == GLOBAL:
            mark_reference(set, cast(ptr[HostGlobal], resource.pointer).low)
        resource = resource.next
    task = tasks[0]
    while task is not None:
        start = atomic_load(addressof(task.stack), "acquire")
        end = atomic_load(addressof(task.top), "acquire")
        # A task that stopped inside of a function notes its top by the module's largest frame, which may not fit.
        if end > task.stack_end:
            end = task.stack_end
        mark_range(set, cast(ptr[u64], start), cast(ptr[u64], end))
        mark_reference(set, task.accumulator)
        task = task.link
    drop_unmarked(set)
    set.sweep_at = set.count * 2 + FIRST_SWEEP


@native(shared=True)
def retain(group: ptr[Group], item: ptr[Object]) -> bool:
    """Keep an object alive for as long as a guest may hold it; False with MemoryError."""
    root = root_of(group)
    set = root.references
    if not reserve_references(set, set.count + 1):
        PyErr_NoMemory()
        return False
    if set.sweep_at == 0:
        set.sweep_at = FIRST_SWEEP
    if not add_reference(set, item) or set.count < set.sweep_at:
        return True
    Py_IncRef(cast(ptr[Object], root))
    sweep(root, item)
    # Finalisers have run: there may have been another sweep, which did not know of the item, or the group was merged.
    set = root_of(root).references
    good = reserve_references(set, set.count + 1)
    if good:
        add_reference(set, item)
    else:
        PyErr_NoMemory()
    Py_DecRef(cast(ptr[Object], root))
    return good


@export
def retained_count(group: ptr[Group]) -> u64:
    """How many objects a group keeps for its guests."""
    return root_of(group).references.count


# ---------------------------------------------------------------- the Python type


@native
def group_traverse(group: ptr[Group], visit: function[[ptr[Object], ptr[void]], i32], argument: ptr[void]) -> i32:
    """`tp_traverse`."""
    found = visit(cast(ptr[Object], group.head.type), argument)
    if found == 0 and group.parent is not None:
        found = visit(cast(ptr[Object], group.parent), argument)
    for i in range(group.kept_count):
        if found != 0:
            return found
        found = visit(group.kept[i], argument)
    if group.references.slots is not None:
        for at in range(group.references.mask + 1):
            if found != 0:
                return found
            if group.references.slots[at] != 0:
                found = visit(cast(ptr[Object], group.references.slots[at] & ~u64(MARK)), argument)
    resource = group.resources
    while resource is not None and found == 0:
        if resource.kind == HOST_FUNCTION:
            found = visit(cast(ptr[HostFunction], resource.pointer).function.python, argument)
        resource = resource.next
    return found


@native
def free_resource(resource: ptr[Resource]) -> None:
    """Free what a group owned. Nobody can reach it any more."""
    if resource.kind == INSTANCE:
        destroy_instance(resource.pointer)
    elif resource.kind == MEMORY:
        free_memory(resource.pointer)
    elif resource.kind == TABLE:
        free_table(resource.pointer)
    elif resource.kind == MODULE:
        free_module(resource.pointer)
    else:
        if resource.kind == HOST_FUNCTION:
            Py_DecRef(cast(ptr[HostFunction], resource.pointer).function.python)
        free(resource.pointer)
    free(resource)


@native
def free_group(group: ptr[Group]) -> None:
    """Free a group. Native things go first: they were needed by nobody but Python objects that are gone."""
    while group.resources is not None:
        resource = group.resources
        group.resources = resource.next
        free_resource(resource)
    drop_references(group.references)
    for i in range(group.kept_count):
        Py_DecRef(group.kept[i])
    free(group.kept)
    drop(cast(ptr[Object], group.parent))
    free_object(cast(ptr[Object], group))


@native
def group_dealloc(group: ptr[Group]) -> None:
    """`tp_dealloc`. Groups in a long chain are freed one after the other, not one inside the other."""
    PyObject_GC_UnTrack(cast(ptr[Object], group))
    group.queued = dying_groups[0]
    dying_groups[0] = group
    if freeing_groups[0] != 0:
        return
    freeing_groups[0] = 1
    while dying_groups[0] is not None:
        next = dying_groups[0]
        dying_groups[0] = next.queued
        free_group(next)
    freeing_groups[0] = 0


@native(shared=True)
def create_group_type() -> bool:
    """Make the type; False with an exception set."""
    slots = stack(Slot, 3)
    set_slot(slots, TP_TRAVERSE, group_traverse)
    set_slot(slots + 1, TP_DEALLOC, group_dealloc)
    set_slot(slots + 2, 0, None)
    group_type[0] = make_type("greenbeat.runtime.Group", sizeof(Group), HAVE_GC, slots)
    return group_type[0] is not None
