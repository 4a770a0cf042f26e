"""Fibers that run on the thread's own stack.

take_fiber ─▶ │ Fiber │ saved registers │ words │ ─▶ run_on_fiber ─▶ entry(fiber) ─▶ release_fiber
"""

# ruff: noqa: D103  The C functions are documented in their manual pages.

from greenbeat.native import (
    addressof,
    array,
    atomic_store,
    cast,
    extern,
    i32,
    inline,
    native,
    ptr,
    return_address_place,
    sizeof,
    static,
    struct,
    u8,
    u32,
    u64,
    void,
)
from greenbeat.runtime.system import realloc
from greenbeat.tasks.layout import FAILED, FINISHED, Fiber, KernelServices

MOST_WORDS = 128
STACK_SIZE = 512 * 1024


@struct
class Place:
    """A fiber and what belongs to it."""

    fiber: Fiber
    next: ptr["Place"]
    registers: array[u64, 64]
    words: array[u64, MOST_WORDS]


free_places = static(ptr[Place], name="free_places")
services = static(KernelServices, name="kernel_services")


@extern(attributes="returns_twice")
def _setjmp(registers: ptr[void]) -> i32: ...


@extern(attributes="noreturn")
def longjmp(registers: ptr[void], result: i32) -> None: ...


@native
def fail(fiber: ptr[Fiber], site: ptr[void]) -> None:
    """Abandon the frames of a fiber."""
    fiber.failure = site
    fiber.status = FAILED
    longjmp(addressof(cast(ptr[Place], fiber).registers), 1)


@native
def poll(fiber: ptr[Fiber], fork_top: ptr[u8]) -> None:
    """Attention was asked for."""
    atomic_store(addressof(fiber.pulse), 0, "relaxed")


@native
def overflow(fiber: ptr[Fiber], fork_top: ptr[u8]) -> None:
    """The stack is used up."""
    fail(fiber, None)


@native
def take_fiber(size_class: u32) -> ptr[Fiber]:
    """A fiber; null if there is no memory."""
    place = free_places[0]
    if place is None:
        place = cast(ptr[Place], realloc(None, sizeof(Place)))
        if place is None:
            return cast(ptr[Fiber], 0)
        services.poll = poll
        services.overflow = overflow
        services.fail = fail
    else:
        free_places[0] = place.next
    fiber = cast(ptr[Fiber], place)
    fiber.pulse = 0
    fiber.services = services
    fiber.words = addressof(place.words)
    return fiber


@inline
def release_fiber(fiber) -> None:
    """Give a fiber back."""
    place = cast(ptr[Place], fiber)
    place.next = free_places[0]
    free_places[0] = place


@native(noinline=True)
def run_on_fiber(fiber: ptr[Fiber]) -> None:
    """Run `fiber.entry`; comes back when it is finished or failed."""
    fiber.floor = return_address_place() - STACK_SIZE
    fiber.status = FINISHED
    if _setjmp(addressof(cast(ptr[Place], fiber).registers)) == 0:
        entry = fiber.entry
        entry(fiber)
