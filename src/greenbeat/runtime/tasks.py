"""Tasks of guests, and the records of the threads that call them.

    Thread ── task ──▶ Task ── outer ──▶ Task        the tasks whose host functions the thread is in, innermost first
      ├── fiber, worker           what it runs
      ├── running, calls          for the pacemaker
      └── next ─▶ ...

Most tasks are in the slots of fibers (see `tasks/slots.py`); a resumable call has one of its own, with a stack:

    stack                          top       ceiling     stack_end
     │ frames, oldest first         │          │ margin    │ guard
     ├──────────────────────────────┴──────────┼───────────┼──────┤

Records and tasks are recycled, never freed, so others may look at them without a lock.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    compare_exchange,
    export,
    inline,
    native,
    ptr,
    return_address_place,
    sizeof,
    stack,
    static,
    struct,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.arena import calloc
from greenbeat.runtime.layout import (
    STACK_MARGIN,
    Instance,
    Task,
)
from greenbeat.runtime.system import (
    DONT_NEED,
    GRANULE,
    KNOWS_STACKS,
    READ,
    WRITE,
    madvise,
    mprotect,
    munmap,
    pthread_attr_destroy,
    pthread_attr_getstack,
    pthread_getattr_np,
    pthread_getspecific,
    pthread_key_create,
    pthread_self,
    pthread_setspecific,
    reserve,
)
from greenbeat.tasks.layout import Fiber, Worker
from greenbeat.tasks.stacks import empty_cache

DEFAULT_STACK = 1 << 20
# A recycled stack keeps this much of its memory.
KEPT_STACK = 1 << 16
CACHED_TASKS = 64
# No call begins below a call that waits when less than this is left of the native stack, or less than half of it.
NATIVE_MARGIN = 1 << 17


@struct
class Thread:
    """A thread that has called a guest. `running` and `calls` are read by the pacemaker."""

    # The task whose host function the thread is in; null if it is in none.
    task: ptr[Task]
    running: u32
    used: u32
    # Calls begun, and how many there were at the pacemaker's last tick.
    calls: u64
    seen: u64
    # Ticks that found a call, but not the one of the tick before.
    spared: u32
    next: ptr["Thread"]
    # The lowest address of the thread's native stack, and how much above it is left to Python.
    native_stack: u64
    native_margin: u64
    # The fiber that the thread runs, read by the pacemaker, and its part in running fibers.
    fiber: ptr[Fiber]
    worker: ptr[Worker]


thread_key = static(u32, name="thread_key")
threads = static(ptr[Thread], name="threads")
# Every task there ever was, by `link`; and those not in use, by `cached`.
tasks = static(ptr[Task], name="tasks")
cached_tasks = static(ptr[Task], name="cached_tasks")
cached_count = static(u32, name="cached_count")


# ---------------------------------------------------------------- stacks


@native
def make_stack(task: ptr[Task], size: u64) -> bool:
    """Give a task a stack of `size` bytes besides the margin; False when there is no room."""
    size = (size + STACK_MARGIN + (GRANULE - 1)) & ~u64(GRANULE - 1)
    base = reserve(size + GRANULE)
    if base is None:
        return False
    if mprotect(base, size, READ | WRITE) != 0:
        munmap(base, size + GRANULE)
        return False
    task.stack_end = base + size
    task.ceiling = task.stack_end - STACK_MARGIN
    task.soft = task.ceiling
    task.limit = task.ceiling
    atomic_store(addressof(task.stack), base, "release")
    atomic_store(addressof(task.top), base, "release")
    return True


@native
def drop_stack(task: ptr[Task]) -> None:
    """Give a task's stack back to the system."""
    base = task.stack
    if base is not None:
        # A sweep in another thread reads `stack`, then `top`: it must find nothing between them.
        atomic_store(addressof(task.top), cast(ptr[u8], 0), "release")
        atomic_store(addressof(task.stack), cast(ptr[u8], 0), "release")
        munmap(base, u64(task.stack_end - base) + GRANULE)


@inline
def stack_size(task: ptr[Task]) -> u64:
    """Bytes that frames may use."""
    return u64(task.stack_end - task.stack) - STACK_MARGIN


@native(shared=True)
def new_task(size: u64) -> ptr[Task]:
    """A task with a stack of at least `size` bytes, from the cache if possible; null when there is no memory."""
    task = cached_tasks[0]
    if task is not None:
        cached_tasks[0] = task.cached
        cached_count[0] -= 1
        if task.stack is not None and stack_size(task) < size:
            drop_stack(task)
    else:
        task = cast(ptr[Task], calloc(1, sizeof(Task)))
        if task is None:
            return cast(ptr[Task], 0)
        task.link = tasks[0]
        atomic_store(tasks, task, "release")
    task.cached = None
    if task.stack is None and not make_stack(task, size if size > DEFAULT_STACK else u64(DEFAULT_STACK)):
        recycle_task(task)
        return cast(ptr[Task], 0)
    task.top = task.stack
    task.depth = 0
    task.pulse = 0
    return task


@native(shared=True)
def recycle_task(task: ptr[Task]) -> None:
    """Take a task out of use."""
    if task.stack is not None:
        if cached_count[0] >= CACHED_TASKS or stack_size(task) > 4 * DEFAULT_STACK:
            drop_stack(task)
        else:
            madvise(task.stack + KEPT_STACK, u64(task.stack_end - task.stack) - KEPT_STACK, DONT_NEED)
            task.top = task.stack
    task.instance = None
    task.payer = None
    task.cached = cached_tasks[0]
    cached_tasks[0] = task
    cached_count[0] += 1


# ---------------------------------------------------------------- threads


@native
def thread_ended(record: ptr[void]) -> None:
    """A thread is gone: what it has cached is for others. This runs without the GIL."""
    thread = cast(ptr[Thread], record)
    if thread.worker is not None:
        empty_cache(thread.worker)
    forget_thread(thread)


@native
def forget_thread(thread: ptr[Thread]) -> None:
    """Let a record be another thread's."""
    thread.task = None
    atomic_store(addressof(thread.fiber), cast(ptr[Fiber], 0), "relaxed")
    atomic_store(addressof(thread.running), u32(0), "release")
    atomic_store(addressof(thread.used), u32(0), "release")


@native
def take_record() -> ptr[Thread]:
    """A record that nobody uses, or a new one; null when there is no memory."""
    thread = threads[0]
    while thread is not None:
        if compare_exchange(addressof(thread.used), u32(0), u32(1), "acquire") == 0:
            return thread
        thread = thread.next
    thread = cast(ptr[Thread], calloc(1, sizeof(Thread)))
    if thread is not None:
        thread.used = 1
        thread.next = threads[0]
        atomic_store(threads, thread, "release")
    return thread


@native
def note_native_stack(thread: ptr[Thread]) -> None:
    """Note where the calling thread's native stack is, if the system tells."""
    thread.native_margin = 0
    if KNOWS_STACKS:
        # pthread_attr_t has at most 64 bytes.
        attributes = stack(u64, 16)
        size = stack(u64, 1)
        if pthread_getattr_np(pthread_self(), attributes) == 0:
            if pthread_attr_getstack(attributes, addressof(thread.native_stack), size) == 0:
                half = size[0] // 2
                thread.native_margin = half if half < NATIVE_MARGIN else u64(NATIVE_MARGIN)
            pthread_attr_destroy(attributes)


@native(noinline=True)
def native_stack_is_short(thread: ptr[Thread]) -> bool:
    """Whether the calling thread is near the end of its native stack. On a stack of somebody else's it never is."""
    return cast(u64, return_address_place()) - thread.native_stack < thread.native_margin


@native(noinline=True)
def new_thread() -> ptr[Thread]:
    """The record of a thread that has none yet; null when there is no memory."""
    if thread_key[0] == 0:
        if pthread_key_create(thread_key, thread_ended) != 0:
            return cast(ptr[Thread], 0)
        thread_key[0] += 1
    thread = take_record()
    if thread is None:
        return cast(ptr[Thread], 0)
    if pthread_setspecific(thread_key[0] - 1, thread) != 0:
        thread.used = 0
        return cast(ptr[Thread], 0)
    thread.task = None
    note_native_stack(thread)
    return thread


@inline
def this_thread() -> ptr[Thread]:
    """The calling thread's record; null when there is no memory for one."""
    thread = cast(ptr[Thread], pthread_getspecific(thread_key[0] - 1)) if thread_key[0] != 0 else cast(ptr[Thread], 0)
    if unlikely(thread is None):
        thread = new_thread()
    return thread


@export
def current_task() -> ptr[Task]:
    """The task whose host function the calling thread is in; null if it is in none."""
    thread = this_thread()
    return thread.task if thread is not None else cast(ptr[Task], 0)


@native
def is_cancelled(task: ptr[Task]) -> bool:
    """Whether a task is to end, or one that waits for it; null is nobody."""
    while task is not None:
        if atomic_load(addressof(task.fiber.cancelled), "relaxed") != 0:
            return True
        task = task.outer
    return False


# What `pthread_self` gives in the thread in which Python handles signals.
main_thread = static(u64, name="main_thread")


@export
def set_main_thread(thread: u64) -> None:
    """Tell which thread handles signals."""
    main_thread[0] = thread


@inline
def handles_signals() -> bool:
    """Whether Python handles signals in the calling thread."""
    return pthread_self() == main_thread[0]


@native
def waits_for(thread: ptr[Thread], task: ptr[Task]) -> bool:
    """Whether a thread is in a host function of a task."""
    waiting = thread.task
    while waiting is not None and waiting != task:
        waiting = waiting.outer
    return waiting is not None


@export
def forget_other_threads() -> None:
    """In a forked child: only this thread exists, and nothing of the others runs any more."""
    own = this_thread()
    thread = threads[0]
    while thread is not None:
        if thread != own and thread.used != 0:
            forget_thread(thread)
        thread = thread.next
    task = tasks[0]
    while task is not None:
        # Nobody runs it any more, unless this thread is in a host function of it. An instance that it ran is free.
        if task.fiber is not None and not waits_for(own, task):
            task.stack = None
            task.top = None
        task = task.link


# ---------------------------------------------------------------- what host functions see


@inline
def show_fuel(task: ptr[Task]) -> None:
    """Let the instance tell how much fuel is left; if others have set it since the last time, that is what is left."""
    payer = task.payer
    if payer is not None:
        if unlikely(payer.fuel != task.shown):
            task.fuel = payer.fuel - task.reserve
        payer.fuel = task.reserve + task.fuel
        task.shown = payer.fuel


@inline
def take_fuel(task: ptr[Task]) -> None:
    """Python code has run: it may have used fuel of the same instance, or given some."""
    payer = task.payer
    if payer is not None:
        task.fuel = payer.fuel - task.reserve
        task.shown = payer.fuel


@inline
def runs_elsewhere(instance: ptr[Instance], outer: ptr[Task]) -> bool:
    """Whether another thread or a task runs an instance: not `outer`, nor a task that waits for it.

    Instances are marked, and looked at, with the GIL.
    """
    busy = instance.task
    return unlikely(busy is not None) and (outer is None or busy != outer.chain) and busy.stack is not None
