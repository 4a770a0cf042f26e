"""What a guest runs on: the slot of a slab that its fiber has, with a value stack, a Task and a Guest.

    slot of a slab
    ┌───────────────────────────┬────────────────────────────────┬───────┬───────┐
    │ value stack ──▶           │                 ◀── native     │ Guest │ Fiber │
    └───────────────────────────┴────────────────────────────────┴───────┴───────┘
    ▲ task.stack                ▲ task.stack_end: NATIVE_ROOM below the Guest

A parked guest keeps a page at each end. Native frames are few and small, since handlers call each other by tail calls
and everything of Python runs on the thread's own stack. The Task in the Guest is entered into the list of all tasks
when the slot is first used; slots of these classes are used for guests only.

A resumable call has a Task and a value stack of its own, which outlive its fiber: while it runs, only its native frames
are in the slot.
"""

from greenbeat.native import addressof, atomic_store, cast, inline, native, ptr, sizeof, u8, u32, u64, unlikely, void
from greenbeat.runtime.layout import FRESH, GUEST as GUEST_FUNCTION, SLOT, STACK_MARGIN, FunctionInstance, Guest, Task
from greenbeat.runtime.system import DONT_NEED, madvise
from greenbeat.runtime.tasks import tasks
from greenbeat.tasks.layout import GUEST, LARGE_GUEST, STACK_SIZES, Fiber, Worker
from greenbeat.tasks.stacks import HEAD, new_fiber, release_fiber

GUEST_WORDS = (sizeof(Guest) + 15) // 16 * 2
# For native frames, and below them for signal handlers.
NATIVE_ROOM = 1 << 17
# What a slot keeps of its value stack's memory.
KEPT_VALUES = 1 << 15
# A slot keeps the memory of a deep call from Python until so many have used less.
SHALLOW_CALLS = 64
# The largest value stack that fits the smaller class.
COMMON_ROOM = STACK_SIZES[GUEST] - HEAD - GUEST_WORDS * 8 - NATIVE_ROOM - STACK_MARGIN


@inline
def guest_of(fiber) -> ptr[Guest]:
    """The Guest of a guest's fiber."""
    return cast(ptr[Guest], fiber.words)


@inline
def task_of(fiber) -> ptr[Task]:
    """The Task of a guest's fiber."""
    return cast(ptr[Task], fiber.task)


@native(noinline=True)
def prepare_slot(fiber: ptr[Fiber], guest: ptr[Guest]) -> None:
    """Lay out a slot that serves a guest for the first time."""
    guest.listed = 1
    guest.fiber = fiber
    task = guest.task
    fiber.task = cast(ptr[void], task)
    task.fiber = fiber
    task.top = fiber.stack
    task.stack_end = cast(ptr[u8], fiber.words) - NATIVE_ROOM
    atomic_store(addressof(task.stack), fiber.stack, "release")
    task.link = tasks[0]
    atomic_store(tasks, task, "release")


@inline
def new_slot(worker: ptr[Worker], room: u64, entry, references) -> ptr[Fiber]:
    """A fiber for a guest whose value stack needs so many bytes; null when there is no memory.

    With the GIL, as whoever uses these classes.
    """
    fiber = new_fiber(worker, GUEST if room <= COMMON_ROOM else u32(LARGE_GUEST), entry, GUEST_WORDS, references)
    if fiber is not None:
        guest = guest_of(fiber)
        if unlikely(guest.listed == 0):
            prepare_slot(fiber, guest)
        task = guest.task
        task.pulse = 0
        task.deep = 0
        task.soft = task.stack
    return fiber


@inline
def room_for(target: ptr[FunctionInstance]) -> u64:
    """Bytes that a function's arguments and results need, one behind the other."""
    signature = target.signature
    return (u64(signature.param_count) + u64(signature.result_count)) * SLOT


@inline
def stack_room(target: ptr[FunctionInstance]) -> u64:
    """Bytes of value stack that a call of a function may need."""
    room = room_for(target)
    if target.kind == GUEST_FUNCTION:
        room += target.instance.stack_limit
    return room


@inline
def was_deep(task: ptr[Task]) -> bool:
    """Whether more of the value stack was used than is kept."""
    return unlikely(task.deep != 0) or unlikely(task.soft > task.stack + KEPT_VALUES)


@inline
def depth_of(task: ptr[Task]) -> ptr[u8]:
    """Up to where the value stack may have been used."""
    return task.stack_end if task.deep != 0 else task.soft + STACK_MARGIN


@native(noinline=True)
def trim_values(task: ptr[Task], highest: ptr[u8]) -> None:
    """Give back what a deep use of the value stack has touched."""
    lowest = task.stack + KEPT_VALUES
    madvise(lowest, u64(highest - lowest) & ~u64(4095), DONT_NEED)


@native(noinline=True)
def settle_values(guest: ptr[Guest]) -> None:
    """A call from Python was deep, or an earlier one: the next may be as deep, so the memory is kept for a while."""
    task = guest.task
    if was_deep(task):
        highest = depth_of(task)
        if highest > guest.touched:
            guest.touched = highest
        guest.shallow = 0
        return
    guest.shallow += 1
    if guest.shallow == SHALLOW_CALLS:
        trim_values(task, guest.touched)
        guest.touched = None


@inline
def clear_values(task: ptr[Task]) -> None:
    """What was on the value stack is needed no more."""
    task.top = task.stack
    task.instance = None
    task.payer = None


@inline
def release_slot(worker: ptr[Worker], fiber: ptr[Fiber]) -> None:
    """Put a slot that a call from Python has used into the worker's cache."""
    guest = guest_of(fiber)
    if was_deep(guest.task) or unlikely(guest.touched is not None):
        settle_values(guest)
    clear_values(guest.task)
    release_fiber(worker, fiber)


@native
def clear_slot(guest: ptr[Guest]) -> None:
    """What a guest had on its value stack is needed no more; what it has touched is given back."""
    task = guest.task
    if was_deep(task) or guest.touched is not None:
        highest = depth_of(task)
        trim_values(task, highest if highest > guest.touched else guest.touched)
        guest.touched = None
    clear_values(task)


@native
def lend_task(fiber: ptr[Fiber], task: ptr[Task]) -> None:
    """A resumable call runs on the fiber, with its own Task."""
    task.pulse = 0
    fiber.task = cast(ptr[void], task)
    task.fiber = fiber


@native
def give_back_task(fiber: ptr[Fiber], guest: ptr[Guest]) -> None:
    """A resumable call's own Task is the fiber's no more."""
    task_of(fiber).fiber = None
    fiber.task = cast(ptr[void], guest.task)
    guest.entrance = FRESH
