"""What green tasks are made of.

A *fiber* is a stack and whoever runs on it. Its struct is at the top of its own stack, so that a parked fiber keeps one
page of memory; fibers are recycled and never freed, so anybody may look at one without a lock.

    slot of a slab, a power of two
    ┌────────────────────────┬────────┬──────────────────────────────────┬───────┬───────┐
    │ records of forks ──▶   │ margin │               ◀── native frames  │ words │ Fiber │
    └────────────────────────┴────────┴──────────────────────────────────┴───────┴───────┘
    ▲ stack                  ▲ quarter ▲ hard floor      ▲ floor (soft)  ▲ words          ▲ stack + size

Compiled functions compare their stack pointer with `floor` when they begin. It starts a little below the top and is
lowered by those who reach it, down to the hard floor, so how deep a stack was used is known without touching it.
The pacemaker raises it above every address, so that the next function that begins looks at the pulse.

A *worker* is what a thread has that runs fibers. All fibers come back to the loop on the thread's own stack (the
scheduler) and say in `worker.action` why.
"""

from greenbeat.native import array, function, i32, i64, ptr, struct, u8, u32, u64, void

# Fiber.status
FINISHED, FAILED, CANCELLED, OVERFLOWED, NO_ROOM, BAD_HANDLE = range(6)

# Worker.action: why a fiber came back to the scheduler.
DONE, YIELDED, PARKED, CALLING, PAUSED = 0, 1, 2, 3, 4

# Wait.state in its low bits; the rest is the reason.
IDLE, PREPARING, WAITING, FIRED = 0, 1, 2, 3

# Why a wait ended, besides the number of the place that was served.
BY_CANCEL, BY_TIME, BY_CLOSE = 0x1000_0000, 0x1000_0001, 0x1000_0002

# In the first word of a fork's record, once it is promoted: with this bit, it is the child's address.
PROMOTED = 1

# Channels that a kernel can give to a task.
MOST_CHANNELS = 4

STACK_SIZES = (1 << 16, 1 << 18, 1 << 20, 1 << 23, 1 << 21, 1 << 27)
CLASSES = len(STACK_SIZES)
# Classes by what they are for. Those of guests are used by nobody else, since their Task stays where it is.
SPAWNED, DIRECT, GUEST, LARGE_GUEST = 1, 3, 4, 5


@struct
class KernelServices:
    """What compiled kernels call when something out of the ordinary is up; reached through their fiber.

    `poll`: a loop saw the pulse. `overflow`: a function began below the floor; returns if it was for the pulse, or if
    there is more stack. `fail`: abandons the fiber's frames, with the place of the failure; does not return.
    """

    poll: function[[ptr["Fiber"], ptr[u8]], None]
    overflow: function[[ptr["Fiber"], ptr[u8]], None]
    fail: function[[ptr["Fiber"], ptr[void]], None]
    # spawn(fiber, thunk, words) gives a fiber whose words are to be filled in; start(fiber, made, detached) gives a
    # handle.
    spawn: function[[ptr["Fiber"], ptr[void], u64], ptr["Fiber"]]
    start: function[[ptr["Fiber"], ptr["Fiber"], u64], u64]
    # hold(fiber, made, channel): the channel lives as long as what was made runs.
    hold: function[[ptr["Fiber"], ptr["Fiber"], ptr[void]], None]
    # join(fiber, handle) waits and gives the fiber, whose words are the result; then forget(fiber, joined).
    join: function[[ptr["Fiber"], u64], ptr["Fiber"]]
    forget: function[[ptr["Fiber"], ptr["Fiber"]], None]
    cancel: function[[ptr["Fiber"], u64], None]
    # Of channels, by address: 0, or 1 if the channel is closed, or 2 at the deadline.
    send: function[[ptr["Fiber"], ptr[void], ptr[u64], u64], u32]
    receive: function[[ptr["Fiber"], ptr[void], ptr[u64], u64], u32]
    close: function[[ptr["Fiber"], ptr[void]], None]
    # fork(fiber, top): a fork whose record ends at `top` is below its floor. join_fork(fiber, record): the record was
    # promoted; gives the result's words, or null if the caller is to run the branch itself.
    fork: function[[ptr["Fiber"], ptr[u8]], None]
    join_fork: function[[ptr["Fiber"], ptr[u8]], ptr[u64]]
    # loop(fiber, record): run a parallel loop, whose record is complete.
    loop: function[[ptr["Fiber"], ptr[u8]], None]
    # Wait for so many nanoseconds; let others run.
    sleep: function[[ptr["Fiber"], u64], None]
    give_way: function[[ptr["Fiber"]], None]


@struct
class ForkSite:
    """What a fork's record begins with: how to run the branch, and how many words it has and needs.

    A parallel loop has no thunk. Its record's words are the next iteration and the end, `results` words of a neutral
    result and as many of the result so far, and what else `chunk` needs. `chunk(fiber, top, words, first, end)` runs
    iterations; `combine(fiber, top, words, later)` adds the result of later iterations to the one so far.
    """

    thunk: function[[ptr["Fiber"]], None]
    # Words of arguments, and the larger of that and the words of the result.
    arguments: u32
    words: u32
    chunk: function[[ptr["Fiber"], ptr[u8], ptr[u64], i64, i64], None]
    combine: function[[ptr["Fiber"], ptr[u8], ptr[u64], ptr[u64]], None]
    results: u32


@struct
class Wait:
    """Somebody who waits: a fiber, else with `bridge` an event loop, else a thread asleep on `signal`.

    `state` goes from WAITING (or PREPARING, as long as a fiber's registers are not saved yet) to FIRED once, by who
    wakes it, together with the reason. The owner leaves a wait only after it has taken all of its places out of their
    queues, under their locks: so whoever finds a place in a queue, under the lock, may use what it points to.
    """

    state: u64
    signal: u32
    # One more than the place in the heap of timers; 0: none.
    timer: u32
    deadline: u64
    fiber: ptr["Fiber"]
    bridge: ptr["Bridge"]
    # In a bridge's list of waits that are over.
    next: ptr["Wait"]


@struct
class Waiter:
    """A wait's place in one queue; `number` becomes the reason when this place is served."""

    next: ptr["Waiter"]
    previous: ptr["Waiter"]
    wait: ptr[Wait]
    words: ptr[u64]
    number: u32


@struct
class Queue:
    """Places, oldest first."""

    first: ptr[Waiter]
    last: ptr[Waiter]


@struct
class Bridge:
    """How somebody hears of many waits that are over: they are listed in `done`, and a byte is written to `file`.

    With a `file` of -1 it is a thread, which sleeps on `signal`.
    """

    guard: u32
    file: i32
    signal: u32
    done: ptr[Wait]


@struct
class Fiber:
    """A green task's stack and state."""

    floor: ptr[u8]
    pulse: u32
    status: u32
    # The floor for functions that fork, who look at it when they do; a spare token raises it too.
    fork_floor: ptr[u8]
    services: ptr[KernelServices]
    # Arguments on entry, results on return.
    words: ptr[u64]
    entry: function[[ptr["Fiber"]], None]
    # What the failure is about, when status is FAILED.
    failure: ptr[void]
    # Where it goes on, and who runs it.
    stack_pointer: ptr[u8]
    worker: ptr["Worker"]
    # In a queue, or in a list of fibers out of use.
    next: ptr["Fiber"]
    stack: ptr[u8]
    deepest: ptr[u8]
    size_class: u32
    # Whoever may still look at it; the last one gives it back.
    references: u32
    cancelled: u32
    # Who waits for its end, and whether it has come; under `guard`.
    guard: u32
    ended: u32
    joiners: Queue
    wait: Wait
    # Whose thread waits for its end inside of a call from Python; null if it was spawned.
    driver: ptr["Worker"]
    # Records of forks are between `stack` and the current top; those below `unpromoted` are tasks by now.
    unpromoted: ptr[u8]
    tokens: u32
    # Promotions since the last beat, and the most there ever were between two.
    promotions: u32
    # What a promoted branch is; of a part of a loop, the record of the loop that it was split from.
    site: ptr["ForkSite"]
    loop: ptr[u8]
    # What `dismiss` is to be called with when the fiber has ended: what it was given that somebody must give back.
    keeping: ptr[void]
    dismiss: function[[ptr[void]], None]
    # Channels that it was given by a kernel, and that are kept for it.
    channels: array[ptr[void], MOST_CHANNELS]
    channel_count: u32
    # Tells uses of the same stack apart, in handles.
    generation: u32
    # Tasks that its code has spawned and not joined yet; its place in such a list.
    children: ptr["Fiber"]
    sibling: ptr["Fiber"]
    elder: ptr["Fiber"]
    parent: ptr["Fiber"]
    # Of a guest: its Task (see `runtime/layout.py`), and what lets go of the Python objects that it holds.
    task: ptr[void]
    let_go: function[[ptr["Fiber"]], None]


DEQUE_SIZE = 1 << 12
MOST_WORKERS = 256


@struct
class Worker:
    """A thread's part in running fibers. A driver's thread is one of Python's that waits for `root`."""

    # The thread's own stack, while a fiber runs; the fiber; what the fiber wants when it comes back.
    scheduler: ptr[u8]
    current: ptr[Fiber]
    action: u32
    # A lock that is to be released when the fiber's registers are saved; null: none.
    unlock: ptr[u32]
    # With CALLING: what to call on the thread's stack.
    call: function[[ptr[Fiber], ptr[void]], None]
    argument: ptr[void]
    # The fiber to run next, which nobody steals until a beat.
    following: ptr[Fiber]
    free: array[ptr[Fiber], CLASSES]
    free_count: array[u32, CLASSES]
    # Fibers run since the shared queue was looked at.
    ticks: u32
    number: u32
    random: u64
    # The thread sleeps on this word when it is 1; the next in the list of those that sleep.
    asleep: u32
    next: ptr["Worker"]
    # Whether it counts among those that run fibers, and whether its thread does nothing else.
    is_seated: u32
    is_pool: u32
    # A channel, and how many more tasks hold it than its references say; see `channels.py`.
    kept: ptr[void]
    kept_count: i64
    # What the pacemaker knows of the thread.
    thread: ptr[void]
    root: ptr[Fiber]
    # Python's state of the thread while the GIL is given up, when a signal was looked for, and an exception that its
    # handler raised.
    python: ptr[void]
    looked: u64
    exception: ptr[void]
    # Where its events are written, see `tracing.py`.
    trace: ptr[void]
    # Other workers steal at `top`; the owner pushes and pops at `bottom`.
    before: array[u64, 8]
    top: u64
    between: array[u64, 7]
    bottom: u64
    deque: array[ptr[Fiber], DEQUE_SIZE]
