"""The pacemaker: a native thread that raises the pulse of whatever runs, every few milliseconds, and rings alarms.

It never touches Python, takes no lock while it ticks, and sleeps when nothing runs and no alarm is set. A call stores
`running` and `calls` in its thread's record, both plain stores, and then looks whether the pacemaker is asleep; it is
only after a pause, so a call pays one load. What keeps the two from missing each other is on this side: before it
sleeps, the pacemaker says so, makes every other thread pass a memory barrier (`membarrier`), and looks at all records
once more.

    asleep    ── a call finds it asleep, wakes it ──▶    ticking: every `period`, each thread that is
       ▲                                                 still in the call of the last tick gets a pulse
       └────── no call for IDLE_TICKS ───────────────────────┘

Where there is no `membarrier`, it only dozes: it looks again after DOZE.
"""

from greenbeat.native import (
    addressof,
    atomic_load,
    atomic_store,
    cast,
    compare_exchange,
    export,
    function,
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
from greenbeat.runtime.layout import Task
from greenbeat.runtime.system import (
    EXPEDITED,
    MEMBARRIER,
    REGISTER,
    SIGNAL_WORDS,
    block_signals,
    now,
    pthread_create,
    pthread_detach,
    restore_signals,
    syscall,
    usleep,
)
from greenbeat.runtime.tasks import Thread, this_thread, threads
from greenbeat.tasks.locks import sleep_while, wake_sleepers

# Nanoseconds between two beats, at first and where branches are forked.
PERIOD = 5_000_000
SHORT_PERIOD = 500_000
IDLE_TICKS = 20
SPARED = 4
DOZE = 100_000_000  # nanoseconds
# A floor that every stack is below.
EVERYWHERE = (1 << 64) - 1

NOT_STARTED, TICKING, ASLEEP = 0, 1, 2
state = static(u32, name="pacemaker_state")
has_barrier = static(u32, name="pacemaker_has_barrier")
period = static(u64, PERIOD, name="pacemaker_period")
# Whether `greenbeat.profile` takes samples.
profiling = static(u32, name="profiling")
# When `alarm_hook` wants to be called, in nanoseconds of the monotonic clock; 0: never.
next_alarm = static(u64, name="next_alarm")
alarm_hook = static(function[[u64], void], name="alarm_hook")


@inline
def raise_pulse(task: ptr[Task]) -> None:
    """Let a guest look at the beat; null is nobody."""
    if task is not None:
        atomic_store(addressof(task.limit), cast(ptr[u8], 0), "relaxed")
        atomic_store(addressof(task.pulse), u32(1), "relaxed")


@native
def tick() -> bool:
    """Raise the pulse where a call has been running since the last tick; whether any thread called a guest since.

    Short calls are spared, but not for ever: fibers that switch all the time must be interruptible as well.
    """
    busy = False
    thread = atomic_load(threads, "acquire")
    while thread is not None:
        calls = atomic_load(addressof(thread.calls), "relaxed")
        running = atomic_load(addressof(thread.running), "relaxed") != 0
        if not running:
            thread.spared = 0
        elif calls != thread.seen and thread.spared < SPARED and profiling[0] == 0:
            thread.spared += 1
        else:
            thread.spared = 0
            fiber = atomic_load(addressof(thread.fiber), "relaxed")
            if fiber is not None:
                atomic_store(addressof(fiber.floor), cast(ptr[u8], EVERYWHERE), "relaxed")
                atomic_store(addressof(fiber.fork_floor), cast(ptr[u8], EVERYWHERE), "relaxed")
                atomic_store(addressof(fiber.pulse), u32(1), "relaxed")
                raise_pulse(cast(ptr[Task], fiber.task))
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
def ring(time: u64) -> None:
    """Call whom an alarm is due for."""
    due = atomic_load(next_alarm, "acquire")
    if due != 0 and due <= time:
        alarm_hook[0](time)


@native
def until(due: u64, most: u64) -> u64:
    """How long to sleep before something is due (0: nothing is), at most so long (0: for ever)."""
    if due == 0:
        return most
    time = now()
    left = due - time if due > time else u64(1)
    return left if most == 0 or left < most else most


@native
def sleep_until_called() -> None:
    """Sleep until a call wakes us; alarms are rung meanwhile."""
    atomic_store(state, u32(ASLEEP), "seq_cst")
    if has_barrier[0] != 0:
        syscall(MEMBARRIER, EXPEDITED, 0, 0)
    doze: u64 = 0
    if has_barrier[0] == 0:
        doze = DOZE
    while atomic_load(state, "acquire") == ASLEEP:
        if anyone_running():
            atomic_store(state, u32(TICKING), "seq_cst")
            return
        sleep_while(state, ASLEEP, until(atomic_load(next_alarm, "acquire"), doze))
        ring(now())


@native
def pace(argument: ptr[void]) -> ptr[void]:
    """The pacemaker's thread."""
    idle = 0
    while True:
        beat_at = now() + period[0]
        time = now()
        while time < beat_at:
            usleep(u32((until(atomic_load(next_alarm, "acquire"), beat_at - time) + 999) // 1000))
            time = now()
            ring(time)
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
        atomic_store(state, u32(TICKING), "seq_cst")
        wake_sleepers(state)
        return
    if compare_exchange(state, u32(NOT_STARTED), u32(TICKING), "acq_rel") != NOT_STARTED:
        return
    if MEMBARRIER != 0:
        has_barrier[0] = 1 if syscall(MEMBARRIER, REGISTER, 0, 0) == 0 else u32(0)
    # The thread gets no signals: they are for Python's threads.
    before = stack(u64, SIGNAL_WORDS)
    block_signals(before)
    thread = stack(u64, 1)
    if pthread_create(thread, None, pace, None) == 0:
        pthread_detach(thread[0])
    restore_signals(before)


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


@native
def set_alarm(time: u64) -> None:
    """Let `alarm_hook` be called at a time, at the latest one period later."""
    atomic_store(next_alarm, time, "seq_cst")
    if time != 0 and atomic_load(state, "seq_cst") != TICKING:
        wake()


@export
def beat_faster() -> None:
    """Branches are forked: let beats come more often."""
    period[0] = SHORT_PERIOD


@export
def set_beat(nanoseconds: u64) -> None:
    """Let beats come as often as a recording wants them."""
    period[0] = nanoseconds


@export
def forget_pacemaker() -> None:
    """In a forked child, which has no pacemaker: the next call starts one, or now what goes on here."""
    state[0] = NOT_STARTED
    thread = this_thread()
    if thread is not None and thread.running != 0:
        wake()
