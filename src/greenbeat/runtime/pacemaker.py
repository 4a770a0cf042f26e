"""The pacemaker: a native thread that raises `task.pulse` every few milliseconds while a guest runs.

It never touches Python, takes no lock while it ticks, and sleeps when nothing runs. A call stores `running` and `calls`
in its thread's record, both plain stores, and then looks whether the pacemaker is asleep; it is only after a pause, so
a call pays one load. What keeps the two from missing each other is on this side: before it sleeps, the pacemaker says
so, makes every other thread pass a memory barrier (`membarrier`), and looks at all records once more.

    asleep    ── a call finds it asleep, wakes it ──▶    ticking: every PERIOD, each thread that is
       ▲                                                 still in the call of the last tick gets a pulse
       └────── no call for IDLE_TICKS ───────────────────────┘

Where there is no `membarrier`, it only dozes: it looks again after DOZE.
"""

from greenbeat.native import (
    addressof,
    array,
    atomic_load,
    atomic_store,
    cast,
    export,
    inline,
    native,
    ptr,
    stack,
    static,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.system import (
    EXPEDITED,
    LINUX,
    MEMBARRIER,
    REGISTER,
    TimeSpec,
    clock_gettime,
    pthread_cond_init,
    pthread_cond_signal,
    pthread_cond_timedwait,
    pthread_cond_wait,
    pthread_create,
    pthread_detach,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
    pthread_sigmask,
    syscall,
    usleep,
)
from greenbeat.runtime.tasks import Thread, threads

PERIOD = 5_000  # microseconds
IDLE_TICKS = 20
DOZE = 100_000_000  # nanoseconds
# A floor that every stack is below.
EVERYWHERE = (1 << 64) - 1
CLOCK_REALTIME = 0
SIG_SETMASK = 2 if LINUX else 3

# pthread_mutex_t and pthread_cond_t are at most 64 bytes on the systems at hand; zeros are their static initialisers on
# Linux.
mutex = static(array[u64, 16], name="pacemaker_mutex")
condition = static(array[u64, 16], name="pacemaker_condition")
NOT_STARTED, TICKING, ASLEEP = 0, 1, 2
state = static(u32, name="pacemaker_state")
has_barrier = static(u32, name="pacemaker_has_barrier")


@native
def tick() -> bool:
    """Raise the pulse where a call has been running since the last tick; whether any thread called a guest since."""
    busy = False
    thread = atomic_load(threads, "acquire")
    while thread is not None:
        calls = atomic_load(addressof(thread.calls), "relaxed")
        running = atomic_load(addressof(thread.running), "relaxed") != 0
        if running and calls == thread.seen:
            fiber = atomic_load(addressof(thread.fiber), "relaxed")
            if fiber is not None:
                atomic_store(addressof(fiber.floor), cast(ptr[u8], EVERYWHERE), "relaxed")
                atomic_store(addressof(fiber.pulse), u32(1), "relaxed")
            task = atomic_load(addressof(thread.task), "relaxed")
            if task is not None:
                atomic_store(addressof(task.limit), cast(ptr[u8], 0), "relaxed")
                atomic_store(addressof(task.pulse), u32(1), "relaxed")
        if running or calls != thread.seen:
            busy = True
        thread.seen = calls
        thread = thread.next
    return busy


@native
def anyone_running() -> bool:
    """Whether a guest runs in any thread."""
    thread = atomic_load(threads, "acquire")
    while thread is not None:
        if atomic_load(addressof(thread.running), "relaxed") != 0:
            return True
        thread = thread.next
    return False


@native
def sleep_until_called() -> None:
    """Sleep until a call wakes us."""
    pthread_mutex_lock(mutex)
    atomic_store(state, u32(ASLEEP), "seq_cst")
    if has_barrier[0] != 0:
        syscall(MEMBARRIER, EXPEDITED, 0, 0)
    if anyone_running():
        atomic_store(state, u32(TICKING), "seq_cst")
    while atomic_load(state, "acquire") == ASLEEP:
        if has_barrier[0] != 0:
            pthread_cond_wait(condition, mutex)
        else:
            until = stack(TimeSpec)
            clock_gettime(CLOCK_REALTIME, until)
            until.nanoseconds += DOZE
            if until.nanoseconds >= 1_000_000_000:
                until.nanoseconds -= 1_000_000_000
                until.seconds += 1
            pthread_cond_timedwait(condition, mutex, until)
            if anyone_running():
                atomic_store(state, u32(TICKING), "seq_cst")
    pthread_mutex_unlock(mutex)


@native
def pace(argument: ptr[void]) -> ptr[void]:
    """The pacemaker's thread."""
    idle = 0
    while True:
        usleep(PERIOD)
        if tick():
            idle = 0
        else:
            idle += 1
            if idle >= IDLE_TICKS:
                sleep_until_called()
                idle = 0


@native(noinline=True)
def wake() -> None:
    """Start the pacemaker, or wake it. Without one, guests run on without a beat."""
    if state[0] == ASLEEP:
        pthread_mutex_lock(mutex)
        atomic_store(state, u32(TICKING), "seq_cst")
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
        return
    pthread_mutex_init(mutex, None)
    pthread_cond_init(condition, None)
    if MEMBARRIER != 0:
        has_barrier[0] = 1 if syscall(MEMBARRIER, REGISTER, 0, 0) == 0 else u32(0)
    # The thread gets no signals: they are for Python's threads. All bits set is a full signal set everywhere.
    everything = stack(u64, 16)
    before = stack(u64, 16)
    for i in range(16):
        everything[i] = ~u64(0)
    pthread_sigmask(SIG_SETMASK, everything, before)
    thread = stack(u64, 1)
    state[0] = TICKING
    if pthread_create(thread, None, pace, None) == 0:
        pthread_detach(thread[0])
    pthread_sigmask(SIG_SETMASK, before, None)


@inline
def begin_running(thread: ptr[Thread]) -> None:
    """A call from Python begins: let the pacemaker know."""
    thread.calls += 1
    atomic_store(addressof(thread.running), u32(1), "relaxed")
    if unlikely(atomic_load(state, "relaxed") != TICKING):
        wake()


@inline
def end_running(thread: ptr[Thread]) -> None:
    """The call is over."""
    atomic_store(addressof(thread.running), u32(0), "relaxed")


@export
def forget_pacemaker() -> None:
    """In a forked child, which has no pacemaker: the next call starts one."""
    state[0] = NOT_STARTED
