"""Kernels as tasks that Python spawns: arguments into a fiber's words, and what is lent to it until it has ended.

    Lent ── arguments: the tuple, which keeps channels and buffers' owners
         └─ views: of arrays, held until the end

A task ends in a thread without the GIL. What it was lent goes to a list, and is given back by the next thread that
spawns or forgets a task with the GIL.
"""

from greenbeat.kernels.calling import bad_argument, bound_arguments, compiled_now, raise_failure
from greenbeat.kernels.packing import (
    MISFIT,
    KernelObject,
    Packing,
    View,
    pack_arguments,
    release_views,
    unpack_results,
)
from greenbeat.kernels.types import MOST_ARRAYS
from greenbeat.native import (
    array,
    atomic_load,
    atomic_update,
    cast,
    compare_exchange,
    export,
    i64,
    native,
    offsetof,
    ptr,
    sizeof,
    stack,
    static,
    struct,
    u32,
    u64,
    void,
)
from greenbeat.runtime.arena import calloc, free
from greenbeat.runtime.pythonapi import Object, Py_DecRef, PyErr_NoMemory, PyTuple_GetItem
from greenbeat.tasks.layout import FINISHED, SPAWNED, Fiber
from greenbeat.tasks.stacks import new_fiber, release_fiber
from greenbeat.tasks.threads import this_worker


@struct
class Lent:
    """What a task was given that must be given back with the GIL; there are no more views than it has arguments."""

    next: ptr["Lent"]
    arguments: ptr[Object]
    held: u32
    views: array[View, MOST_ARRAYS]


# What tasks that have ended give back.
returned = static(ptr[Lent], name="returned")


@native
def give_back(lent: ptr[void]) -> None:
    """A task has ended; without the GIL."""
    mine = cast(ptr[Lent], lent)
    while True:
        first = atomic_load(returned, "acquire")
        mine.next = first
        if compare_exchange(returned, first, mine, "acq_rel") == first:
            return


@export
def collect_returned() -> None:
    """Give back what tasks that have ended were lent; with the GIL."""
    if atomic_load(returned, "relaxed") is None:
        return
    lent = cast(ptr[Lent], atomic_update("xchg", cast(ptr[u64], returned), u64(0), "acq_rel"))
    while lent is not None:
        following = lent.next
        release_views(lent.views, lent.held)
        Py_DecRef(lent.arguments)
        free(cast(ptr[void], lent))
        lent = following


@export
def new_kernel_task(kernel: ptr[KernelObject], given: ptr[Object]) -> ptr[Fiber]:
    """A fiber that is to run a kernel with a tuple of arguments, held by the caller; null with an exception set."""
    collect_returned()
    nothing = cast(ptr[Fiber], 0)
    if cast(u64, kernel.thunk) == 0 and not compiled_now(kernel):
        return nothing
    arguments = bound_arguments(kernel, given)
    if arguments is None:
        return nothing
    most = kernel.count if kernel.count < MOST_ARRAYS else u32(MOST_ARRAYS)
    lent = cast(ptr[Lent], calloc(1, offsetof(Lent, "views") + u64(most) * sizeof(View)))
    worker = this_worker()
    fiber = nothing
    if worker is not None and lent is not None:
        fiber = new_fiber(worker, SPAWNED, kernel.thunk, kernel.words, 2)
    if fiber is None:
        free(cast(ptr[void], lent))
        Py_DecRef(arguments)
        PyErr_NoMemory()
        return nothing
    items = stack(ptr[Object], 128)
    for index in range(kernel.count):
        items[index] = PyTuple_GetItem(arguments, i64(index))
    packing = stack(Packing)
    packing.held = 0
    held = pack_arguments(kernel, items, fiber.words, lent.views, packing)
    if held >= MISFIT:
        position = held - MISFIT
        release_fiber(worker, fiber)
        free(cast(ptr[void], lent))
        bad_argument(kernel, position, items[position])
        Py_DecRef(arguments)
        return nothing
    lent.arguments = arguments
    lent.held = held
    fiber.keeping = cast(ptr[void], lent)
    fiber.dismiss = give_back
    return fiber


@export
def kernel_task_result(kernel: ptr[KernelObject], fiber: ptr[Fiber]) -> ptr[Object]:
    """What a task that has ended returned, owned by the caller; null with the exception set that ended it."""
    collect_returned()
    if fiber.status != FINISHED:
        raise_failure(fiber, fiber.status)
        return cast(ptr[Object], 0)
    packing = stack(Packing)
    return unpack_results(kernel, fiber.words, packing)
