"""The same random programs on real threads: a scheduler of its own, with real workers, a real pacemaker, and no luck.

The books are balanced as in the simulation: in the end every stack that was ever cut is in a cache again, and every
value that was sent was received or is in a buffer.
"""

import ctypes
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from greenbeat.forkjoin.promotion import prepare_forks
from greenbeat.native import addressof, build, cast, fill, i64, native, ptr, sizeof, stack, u8, u32, u64, void
from greenbeat.runtime.pacemaker import period
from greenbeat.tasks.bridges import (
    cancel_pending,
    finish_pending,
    new_bridge,
    pend_channel,
    pend_end,
    sleep_at_bridge,
    take_done,
)
from greenbeat.tasks.channels import OK, Channel, close_channel, drop_channel, new_channel
from greenbeat.tasks.layout import SPAWNED, STACK_SIZES, Fiber
from greenbeat.tasks.pool import pool, set_seats
from greenbeat.tasks.selecting import Case, thread_select
from greenbeat.tasks.stacks import SLAB, depots, slabs_mapped
from greenbeat.tasks.threads import (
    RAISED,
    cancel_task,
    forget_pool,
    forget_task,
    join_task,
    new_task,
    prepare_tasks,
    start_task,
    stop_pool,
    task_ended,
    thread_transfer,
    work_in_pool,
)
from greenbeat.tasks.timers import timers
from greenbeat.tasks.virtual import virtual
from tests.tasks.programs import (
    CHANNELS,
    World,
    body,
    count,
    features,
    note_received,
    note_sent,
    prepare_sites,
    world,
)

# A beat every so many nanoseconds: as often as the pacemaker's thread can.
BEAT = 50_000


@native
def begin_world(wanted: u32, budget: i64, dawdling: u32) -> None:
    """Books and channels for new programs."""
    virtual.random |= 1
    virtual.dawdling = dawdling
    period[0] = BEAT
    prepare_sites()
    fill(cast(ptr[u8], world), 0, sizeof(World))
    features[0] = wanted
    world.budget = budget
    for i in range(u32(CHANNELS)):
        world.channels[i] = new_channel(1, u32(0) if i < 2 else i - 1)


@native
def channel_address(number: u32) -> u64:
    """A channel of the world."""
    return cast(u64, world.channels[number])


@native
def new_root(seed: u64, depth: u64) -> ptr[Fiber]:
    """A body, held by the caller, to be started."""
    fiber = new_task(cast(ptr[void], body_address()), 2)
    fiber.words[0] = seed
    fiber.words[1] = depth
    world.spawned += 1
    return fiber


@native
def body_address() -> u64:
    """Where bodies begin."""
    return cast(u64, addressof(body))


@native
def visit(channel: ptr[Channel], words: ptr[u64], deadline: u64, sending: u32) -> u32:
    """Send or receive in a thread of Python's, with the GIL from the transfer to the entry in the books."""
    result = thread_transfer(channel, words, deadline, 1, sending)
    if result == OK and sending != 0:
        note_sent(words[0])
    elif result == OK:
        note_received(words[0])
    elif result == RAISED and sending != 0:
        count(addressof(world.doubtful), 1)
    return result


@native
def visit_two(first: ptr[Channel], second: ptr[Channel], words: ptr[u64], deadline: u64) -> u32:
    """Receive from one of two channels in a thread of Python's, as `visit`."""
    cases = stack(Case, 2)
    for i in range(2):
        cases[i].channel = first if i == 0 else second
        cases[i].words = words + i
        cases[i].sending = 0
    answer = thread_select(cases, 2, deadline, 1)
    if answer < 2:
        note_received(words[answer])
    return answer


@native
def close_world() -> None:
    """Close all channels."""
    for i in range(CHANNELS):
        close_channel(world.channels[i])


@native
def fibers_in_use() -> i64:
    """Stacks that are in no cache, roughly while anything runs."""
    fresh = u64(depots[SPAWNED].fresh_end - depots[SPAWNED].fresh) // STACK_SIZES[SPAWNED]
    cut = slabs_mapped[0] * (SLAB // STACK_SIZES[SPAWNED]) - fresh
    free = u64(depots[SPAWNED].count + depots[SPAWNED].bare_count)
    for i in range(pool.worker_count):
        free += u64(pool.workers[i].free_count[SPAWNED])
    return i64(cut - free)


@native
def counted_problem() -> u64:
    """With everything at rest: whether what is counted is there."""
    found = u64(depots[SPAWNED].bare_count)
    for i in range(pool.worker_count):
        fiber = pool.workers[i].free[SPAWNED]
        while fiber is not None:
            found += 1
            fiber = fiber.next
    fiber = depots[SPAWNED].fibers
    while fiber is not None:
        found += 1
        fiber = fiber.next
    fresh = u64(depots[SPAWNED].fresh_end - depots[SPAWNED].fresh) // STACK_SIZES[SPAWNED]
    if slabs_mapped[0] * (SLAB // STACK_SIZES[SPAWNED]) - fresh != found:
        return 1
    return 2 if timers.count != 0 or pool.count != 0 else u64(0)


@native
def end_world() -> u64:
    """With everything at rest: 0, or what is wrong."""
    left: u64 = 0
    left_sum: u64 = 0
    problem = world.problem
    for i in range(CHANNELS):
        channel = world.channels[i]
        if channel.senders.first is not None or channel.receivers.first is not None:
            problem = 100
        for at in range(channel.count):
            position = channel.head + at
            if position >= channel.capacity:
                position -= channel.capacity
            left += 1
            left_sum += channel.buffer[position]
        returned = channel.returned
        while returned is not None:
            left += 1
            left_sum += returned.words[0]
            returned = returned.next
        drop_channel(channel)
    gone = world.received + left
    if gone < world.sent or gone > world.sent + world.doubtful or world.sent_sum != world.received_sum + left_sum:
        problem = 101
    counted = counted_problem()
    return problem if counted == 0 else 200 + counted


FUNCTIONS: list[Any] = [
    begin_world,
    channel_address,
    new_root,
    close_world,
    end_world,
    fibers_in_use,
    visit,
    visit_two,
    prepare_tasks,
    prepare_forks,
    work_in_pool,
    stop_pool,
    set_seats,
    start_task,
    forget_task,
    cancel_task,
    join_task,
    task_ended,
    close_channel,
    new_bridge,
    pend_end,
    pend_channel,
    take_done,
    cancel_pending,
    finish_pending,
    sleep_at_bridge,
    forget_pool,
]


class Real:
    """The compiled scheduler: its functions as attributes."""

    def __init__(self) -> None:
        library = build(FUNCTIONS)
        for function in FUNCTIONS:
            found = library.function(function)
            setattr(self, function.symbol.rpartition(".")[2], found)
        self.prepare_tasks()
        self.prepare_forks()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@cache
def real() -> Real:
    """The one of this process."""
    return Real()


@contextmanager
def workers(count: int, seats: int | None = None) -> Iterator[Real]:
    """A pool of real threads, of which so many may steal."""
    found = real()
    found.stop_pool(0)
    found.set_seats(count if seats is None else seats)
    threads = [threading.Thread(target=found.work_in_pool, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        found.stop_pool(1)
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a worker does not end"


class Visitor:
    """A thread of Python's that takes part: sends, receives, selects, with deadlines."""

    def __init__(self, lib: Real, seed: int) -> None:
        self._lib, self._random, self._over = lib, random.Random(seed), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        self._over.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "a thread's wait does not end"

    def _run(self) -> None:
        lib, draw = self._lib, self._random
        room = (ctypes.c_uint64 * 1)()
        while not self._over.is_set():
            channel = ctypes.cast(lib.channel_address(draw.randrange(CHANNELS)), ctypes.c_void_p)
            deadline = time.monotonic_ns() + draw.randrange(300_000)
            room[0] = draw.randrange(1000)
            lib.visit(channel, room, deadline, draw.randrange(2))


class Death(Exception):
    """Ends whatever the main thread waits for."""


def die(*_: object) -> None:
    """A signal's handler."""
    raise Death


def live_until_death(lib: Real, draw: random.Random, roots: list[Any]) -> None:
    """Wait in all the ways there are, in the main thread, until a timer ends that, wherever it is."""
    rooms = (ctypes.c_uint64 * 2)()
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + draw.random() ** 3 * 1e-3)
        while True:
            first, second = (lib.channel_address(draw.randrange(CHANNELS)) for _ in range(2))
            deadline = draw.choice((0, time.monotonic_ns() + draw.randrange(300_000)))
            rooms[0] = 0
            match draw.randrange(4):
                case 0 | 1 as sending:
                    lib.visit(first, rooms, deadline, sending)
                case 2:
                    lib.visit_two(first, second, rooms, deadline)
                case 3:
                    lib.join_task(draw.choice(roots), deadline)
    except Death:
        return


def run_world(
    lib: Real, seed: int, roots: int, wanted: int, *, cancelling: bool, visitors: int = 0, deaths: int = 0
) -> None:
    """Run the random programs of a seed on the workers that there are; fails if the books are not balanced.

    Args:
        lib: has the workers.
        seed: of all that is random, but for the threads' schedule.
        roots: how many programs there are.
        wanted: features, see `programs.py`.
        cancelling: whether some are cancelled.
        visitors: threads of Python's that take part.
        deaths: how often the main thread takes part until something ends it; its SIGALRM is `die`.
    """
    draw = random.Random(seed)
    lib.begin_world(wanted, 20 * roots, draw.choice((0, 5, 50, 500)))
    made = [lib.new_root(draw.getrandbits(40), 3) for _ in range(roots)]
    guests = [Visitor(lib, seed * 100 + i) for i in range(visitors)]
    for root in made:
        lib.start_task(root)
    if cancelling:
        for _ in range(roots):
            lib.cancel_task(draw.choice(made))
            time.sleep(draw.random() * 1e-4)
    for _ in range(deaths):
        live_until_death(lib, draw, made)
    limit = time.monotonic() + 60
    # Who waits for a partner that does not come is told so.
    time.sleep(draw.random() * 2e-3)
    for guest in guests:
        guest.leave()
    lib.close_world()
    for root in made:
        deadline = time.monotonic_ns() + 60_000_000_000
        assert lib.join_task(root, deadline) == 0, f"seed {seed}: a root does not end"
        lib.forget_task(root)
    while lib.fibers_in_use() != 0:
        assert time.monotonic() < limit, f"seed {seed}: {lib.fibers_in_use()} stacks are still in use"
        time.sleep(1e-4)
    problem = lib.end_world()
    assert problem == 0, f"seed {seed}: problem {problem}"
