"""A worker's own fibers that are ready: pushed and popped by the owner at the bottom, stolen at the top.

    top ─▶ │ oldest │ ... │ newest │ ◀─ bottom

The algorithm is Chase and Lev's, "Dynamic circular work-stealing deque" (2005), with the orderings of Lê, Pop, Cohen
and Zappa Nardelli, "Correct and efficient work-stealing for weak memory models" (2013), and a buffer that does not
grow: what does not fit goes to the shared queue.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    compare_exchange,
    fence,
    i64,
    inline,
    native,
    ptr,
)
from greenbeat.tasks.layout import DEQUE_SIZE, Fiber, Worker
from greenbeat.tasks.virtual import dawdle

MASK = DEQUE_SIZE - 1


@inline
def push(worker: ptr[Worker], fiber: ptr[Fiber]) -> bool:
    """The owner adds a fiber at the bottom; False if there is no room."""
    bottom = worker.bottom
    if bottom - atomic_load(addressof(worker.top), "acquire") >= DEQUE_SIZE:
        return False
    atomic_store(addressof(worker.deque[bottom & MASK]), fiber, "relaxed")
    atomic_store(addressof(worker.bottom), bottom + 1, "release")
    return True


@native
def pop(worker: ptr[Worker]) -> ptr[Fiber]:
    """The owner takes the newest fiber; null if there is none."""
    if worker.bottom == atomic_load(addressof(worker.top), "relaxed"):
        return cast(ptr[Fiber], 0)
    bottom = worker.bottom - 1
    atomic_store(addressof(worker.bottom), bottom, "relaxed")
    assert dawdle()
    fence("seq_cst")
    top = atomic_load(addressof(worker.top), "relaxed")
    left = i64(bottom - top)
    if left < 0:
        atomic_store(addressof(worker.bottom), bottom + 1, "relaxed")
        return cast(ptr[Fiber], 0)
    fiber = atomic_load(addressof(worker.deque[bottom & MASK]), "relaxed")
    if left == 0:
        if compare_exchange(addressof(worker.top), top, top + 1, "seq_cst") != top:
            fiber = cast(ptr[Fiber], 0)
        atomic_store(addressof(worker.bottom), bottom + 1, "relaxed")
    return fiber


@native
def steal(worker: ptr[Worker]) -> ptr[Fiber]:
    """Anybody takes the oldest fiber; null if there is none, or if somebody else was faster."""
    top = atomic_load(addressof(worker.top), "acquire")
    fence("seq_cst")
    bottom = atomic_load(addressof(worker.bottom), "acquire")
    if i64(bottom - top) <= 0:
        return cast(ptr[Fiber], 0)
    fiber = atomic_load(addressof(worker.deque[top & MASK]), "relaxed")
    assert dawdle()
    if compare_exchange(addressof(worker.top), top, top + 1, "seq_cst") != top:
        return cast(ptr[Fiber], 0)
    return fiber


@inline
def has_fibers(worker: ptr[Worker]) -> bool:
    """Whether there is something to steal."""
    bottom = atomic_load(addressof(worker.bottom), "acquire")
    return i64(bottom - atomic_load(addressof(worker.top), "acquire")) > 0
