"""Simulated workers: random programs run on several workers in one thread, by a schedule that follows from a seed.

Each fiber is paused whenever it looks at its pulse. In each step a random worker goes on with what it has paused, or
finds something to run. When nothing can run, time moves to the next timer; when there is none either, whatever waits
must wait for a channel, since only that may be: no channel may have somebody waiting who could go on. Then the channels
are closed, and everything has to end.
"""

import ctypes
from functools import cache
from typing import Any

from greenbeat.forkjoin.promotion import most_promotions, prepare_forks, promotions, raise_again
from greenbeat.native import (
    addressof,
    array,
    build,
    cast,
    ctypes_of,
    fill,
    i64,
    native,
    ptr,
    sizeof,
    static,
    struct,
    u8,
    u32,
    u64,
)
from greenbeat.runtime.arena import calloc
from greenbeat.runtime.pacemaker import TICKING, state as pacemaker_state
from greenbeat.tasks.channels import close_channel, drop_channel, new_channel
from greenbeat.tasks.deque import has_fibers
from greenbeat.tasks.layout import DONE, PAUSED, SPAWNED, STACK_SIZES, Fiber, Worker
from greenbeat.tasks.pool import pool, push_shared, register_worker
from greenbeat.tasks.scheduler import cancel, drop_reference, find, has_ended, run_fiber
from greenbeat.tasks.selecting import has_others, rotation
from greenbeat.tasks.spawning import prepare_services
from greenbeat.tasks.stacks import SLAB, depots, new_fiber, slabs_mapped
from greenbeat.tasks.timers import fire_timers, timers
from greenbeat.tasks.virtual import draw, virtual
from tests.tasks.programs import CHANNELS, World, body, features, mix, prepare_sites, world

MOST_SIMULATED = 8
ROOTS = 6
MOST_STEPS = 1_000_000
# What is wrong, in `World.problem`, besides what programs notice.
(
    STUCK,
    ENDED_TWICE,
    LOST_FIBER,
    LOST_VALUE,
    MISSED_PARTNER,
    LEFT_TIMER,
    LEFT_READY,
    TOO_MANY_PROMOTIONS,
    ENDLESS,
) = range(11, 20)
# Bits of what goes wrong from outside.
NO_MEMORY, INTERRUPTIONS = 1, 2


@struct
class Simulation:
    """The simulated workers and what came of them."""

    workers: array[ptr[Worker], MOST_SIMULATED]
    paused: array[ptr[Fiber], MOST_SIMULATED]
    count: u32
    roots: array[ptr[Fiber], ROOTS]
    root_count: u32
    ended: u64
    trace: u64
    steps: u64
    faults: u32


simulation = static(Simulation, name="simulation")


@struct
class Report:
    """What Python wants to know."""

    problem: u64
    trace: u64
    steps: u64
    spawned: u64
    finished: u64
    trees: u64
    loops: u64
    promotions: u64
    sent: u64
    joined: u64


@native
def prepare_simulation() -> None:
    """Make the workers."""
    prepare_services()
    prepare_forks()
    prepare_sites()
    # A real pacemaker is not to be woken.
    pacemaker_state[0] = TICKING
    for i in range(MOST_SIMULATED):
        simulation.workers[i] = cast(ptr[Worker], calloc(1, sizeof(Worker)))
        register_worker(simulation.workers[i])


@native
def step() -> bool:
    """Let a random worker do something; False if it has nothing to do."""
    number = draw(simulation.count)
    worker = simulation.workers[number]
    fiber = simulation.paused[number]
    if fiber is not None:
        simulation.paused[number] = None
    else:
        fiber = find(worker)
    if fiber is None:
        return False
    if has_ended(fiber):
        world.problem = ENDED_TWICE
        return False
    is_body = cast(u64, fiber.entry) == cast(u64, addressof(body))
    raise_again(fiber)
    run_fiber(worker, fiber)
    if worker.action == PAUSED:
        simulation.paused[number] = fiber
    elif worker.action == DONE and is_body:
        simulation.ended += 1
    simulation.trace = mix(simulation.trace, u64(number) * 8 + u64(worker.action) + u64(is_body) * 64)
    simulation.steps += 1
    return True


@native
def anything_to_do() -> bool:
    """Whether any worker has something to do."""
    for i in range(simulation.count):
        worker = simulation.workers[i]
        if simulation.paused[i] is not None or worker.following is not None or has_fibers(worker):
            return True
    return pool.count != 0


@native
def check_channels() -> None:
    """Nothing can run: so nobody may wait who could go on."""
    for i in range(CHANNELS):
        channel = world.channels[i]
        sender = channel.senders.first
        receiver = channel.receivers.first
        if sender is not None and (channel.closed != 0 or channel.count < channel.capacity):
            world.problem = MISSED_PARTNER
        if receiver is not None and (channel.closed != 0 or channel.count != 0):
            world.problem = MISSED_PARTNER
        if sender is not None and receiver is not None:
            if has_others(channel.receivers, sender.wait) or has_others(channel.senders, receiver.wait):
                world.problem = MISSED_PARTNER


@native
def make_roots(count: u32) -> None:
    """Make the bodies that a program begins with; the simulation holds them, as a task of Python's is held."""
    simulation.root_count = count
    for i in range(count):
        fiber = new_fiber(simulation.workers[0], SPAWNED, body, 2, 2)
        fiber.words[0] = (u64(draw(1 << 30)) << 10) + u64(i)
        fiber.words[1] = 3
        simulation.roots[i] = fiber
        world.spawned += 1
        push_shared(fiber)


@native
def hide_memory() -> None:
    """Let allocations fail: what workers keep goes to the depot, and timers have no room left."""
    for i in range(simulation.count):
        worker = simulation.workers[i]
        while worker.free[SPAWNED] is not None:
            fiber = worker.free[SPAWNED]
            worker.free[SPAWNED] = fiber.next
            worker.free_count[SPAWNED] -= 1
            fiber.next = depots[SPAWNED].fibers
            depots[SPAWNED].fibers = fiber
            depots[SPAWNED].count += 1
    timers.capacity = timers.count
    virtual.failing = 1


@native
def interfere() -> None:
    """What happens from outside, now and then."""
    if simulation.faults & NO_MEMORY != 0 and draw(40) == 0:
        if virtual.failing != 0:
            virtual.failing = 0
        else:
            hide_memory()
    if simulation.faults & INTERRUPTIONS != 0 and draw(60) == 0:
        cancel(simulation.roots[draw(simulation.root_count)])
    if draw(8) == 0:
        virtual.time += u64(draw(500))
    if timers.count != 0 and timers.entries[0].deadline <= virtual.time:
        fire_timers(virtual.time)


@native
def run_all() -> None:
    """Go on until all bodies have ended, or something is wrong."""
    closed = False
    while world.problem == 0 and (simulation.ended != world.spawned or anything_to_do()):
        if simulation.steps > MOST_STEPS:
            world.problem = ENDLESS
        interfere()
        if step() or anything_to_do():
            continue
        if timers.count != 0:
            if virtual.time < timers.entries[0].deadline:
                virtual.time = timers.entries[0].deadline
            fire_timers(virtual.time)
            continue
        check_channels()
        if closed:
            world.problem = STUCK
        closed = True
        for i in range(CHANNELS):
            close_channel(world.channels[i])


@native
def free_fibers() -> u64:
    """Fibers that are in a cache or the depot."""
    found = u64(depots[SPAWNED].bare_count)
    for i in range(MOST_SIMULATED):
        fiber = simulation.workers[i].free[SPAWNED]
        while fiber is not None:
            found += 1
            fiber = fiber.next
    fiber = depots[SPAWNED].fibers
    while fiber is not None:
        found += 1
        fiber = fiber.next
    return found


@native
def cut_fibers() -> u64:
    """Fibers that were ever made."""
    fresh = u64(depots[SPAWNED].fresh_end - depots[SPAWNED].fresh) // STACK_SIZES[SPAWNED]
    return slabs_mapped[0] * (SLAB // STACK_SIZES[SPAWNED]) - fresh


@native
def balance() -> None:
    """All is over: nothing may be left."""
    left: u64 = 0
    left_sum: u64 = 0
    for i in range(CHANNELS):
        channel = world.channels[i]
        if channel.senders.first is not None or channel.receivers.first is not None:
            world.problem = LEFT_READY
        for at in range(channel.count):
            position = channel.head + at
            if position >= channel.capacity:
                position -= channel.capacity
            left += 1
            left_sum += channel.buffer[position]
        drop_channel(channel)
    if world.sent != world.received + left or world.sent_sum != world.received_sum + left_sum:
        world.problem = LOST_VALUE
    if timers.count != 0:
        world.problem = LEFT_TIMER
    if free_fibers() != cut_fibers():
        world.problem = LOST_FIBER
    if most_promotions[0] > 5:
        world.problem = TOO_MANY_PROMOTIONS


@native
def simulate(seed: u64, workers: u32, wanted: u32, faults: u32, report: ptr[Report]) -> None:
    """Run the random program of a seed."""
    fill(cast(ptr[u8], world), 0, sizeof(World))
    virtual.on = 1
    virtual.failing = 0
    virtual.random = mix(seed, 99) | 1
    virtual.period = 1 + draw(12)
    virtual.time = 1_000_000
    rotation[0] = 0
    promotions[0] = 0
    simulation.count = workers
    simulation.ended = 0
    simulation.trace = seed
    simulation.steps = 0
    simulation.faults = faults
    for i in range(workers):
        simulation.workers[i].ticks = 0
        simulation.workers[i].random = mix(seed, u64(i)) | 1
    features[0] = wanted
    for i in range(u32(CHANNELS)):
        world.channels[i] = new_channel(1, u32(0) if i < 2 else i - 1)
    world.budget = i64(10 + draw(50))
    make_roots(1 + draw(ROOTS))
    run_all()
    virtual.failing = 0
    for i in range(simulation.root_count):
        if world.problem == 0:
            drop_reference(simulation.workers[0], simulation.roots[i])
    if world.problem == 0:
        balance()
    report.problem = world.problem
    report.trace = simulation.trace
    report.steps = simulation.steps
    report.spawned = world.spawned
    report.finished = world.finished
    report.trees = world.trees
    report.loops = world.loops
    report.promotions = promotions[0]
    report.sent = world.sent
    report.joined = world.joined


@cache
def simulator() -> Any:
    """The compiled simulation, with scheduler and statics of its own."""
    library = build([prepare_simulation, simulate])
    library.function(prepare_simulation)()
    return library.function(simulate)


def run_seed(seed: int, workers: int, wanted: int, faults: int) -> Any:
    """Simulate the program of a seed; the report."""
    report = ctypes_of(Report)()
    simulator()(seed, workers, wanted, faults, ctypes.byref(report))
    return report
