"""Random programs of fibers, for the simulation and for stress tests: what a fiber does follows from its seed.

A *body* interprets operations that its own generator draws: it spawns, joins and cancels other bodies, sends, receives
and selects on the world's channels, sleeps, gives way, fails, recurses deeply, and evaluates fork trees, whose values a
sequential reference knows. Whatever it does is counted in the world, for the books to be balanced at the end.
"""

from greenbeat.forkjoin.promotion import record_size
from greenbeat.native import (
    addressof,
    array,
    atomic_update,
    cast,
    frame_address,
    i64,
    load,
    native,
    ptr,
    stack,
    static,
    store,
    struct,
    u8,
    u32,
    u64,
    void,
)
from greenbeat.tasks.channels import OK, Channel, close_channel
from greenbeat.tasks.layout import Fiber, ForkSite
from greenbeat.tasks.selecting import Case, fiber_select
from greenbeat.tasks.virtual import clock

CHANNELS = 6
HANDLES = 4
# What is wrong, in `World.problem`.
WRONG_TREE, FAILED_TREE_FINISHED, WRONG_RECURSION, WRONG_CASE, WRONG_LOOP = 1, 2, 3, 4, 5


@struct
class World:
    """What all bodies share, and their books."""

    channels: array[ptr[Channel], CHANNELS]
    # Bodies that may still be spawned; how many were, and how many of them began.
    budget: i64
    spawned: u64
    begun: u64
    finished: u64
    # Values that were sent and received, and their sums.
    sent: u64
    sent_sum: u64
    received: u64
    received_sum: u64
    # Sends of zeros whose thread does not know whether anybody has received them.
    doubtful: u64
    joined: u64
    trees: u64
    loops: u64
    cancels: u64
    problem: u64


world = static(World, name="test_world")
# Bits of `features`: what bodies of a world do besides computing.
FAILING, CLOSING, SLEEPING, CANCELLING = 1, 2, 4, 8
features = static(u32, name="test_features")
# Fork trees alone, for tests of those.
sites = static(array[ForkSite, 4], name="test_sites")
loop_site = static(ForkSite, name="test_loop_site")


@native
def count(place: ptr[u64], amount: u64) -> None:
    """Add to the books, from any thread."""
    atomic_update("add", place, amount, "relaxed")


@native
def complain(problem: u64) -> None:
    """Note what is wrong."""
    world.problem = problem


@native
def mix(a: u64, b: u64) -> u64:
    """A number that depends on both."""
    mixed = (a ^ (b + 0x9E37_79B9_7F4A_7C15 + (a << 6) + (a >> 2))) * 0xFF51_AFD7_ED55_8CCD
    return mixed ^ (mixed >> 32)


@native
def following(state: ptr[u64], limit: u64) -> u64:
    """The next number below a limit from a body's generator."""
    state[0] = mix(state[0], 0x1234_5677)
    return (state[0] >> 20) % limit


# ---------------------------------------------------------------- forks


@native(noinline=True)
def look(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """What a loop does at its back edge."""
    if fiber.pulse != 0:
        fiber.services.poll(fiber, top)


@native
def leaf_fails(seed: u64) -> bool:
    """Whether the leaf of this seed fails."""
    return features[0] & FAILING != 0 and seed % 61 == 3


@native(noinline=True)
def leaf(fiber: ptr[Fiber], top: ptr[u8], seed: u64) -> u64:
    """A leaf of a tree: works, and may wait, or fail."""
    for _ in range(seed % 3):
        look(fiber, top)
    if leaf_fails(seed):
        fiber.services.fail(fiber, cast(ptr[void], seed))
    if seed % 29 == 1:
        fiber.services.give_way(fiber)
    if seed % 31 == 1 and features[0] & SLEEPING != 0:
        fiber.services.sleep(fiber, seed % 5000)
    return seed * 3 + 1


@native
def subtree(seed: u64, side: u64) -> u64:
    """The seed of a branch."""
    return mix(seed, side + 17)


@native(noinline=True)
def tree(fiber: ptr[Fiber], top: ptr[u8], seed: u64, depth: u64) -> u64:
    """The value of a tree, its right branches forked."""
    if cast(ptr[u8], frame_address()) < fiber.floor:
        fiber.services.overflow(fiber, top)
    if depth == 0 or seed % 7 == 0:
        return leaf(fiber, top, seed)
    site = sites + seed % 4
    store(top, site)
    store(top, subtree(seed, 1), 8)
    store(top, depth - 1, 16)
    size = record_size(site)
    if cast(ptr[u8], frame_address()) < fiber.fork_floor:
        fiber.services.fork(fiber, top + size)
    left = tree(fiber, top + size, subtree(seed, 0), depth - 1)
    if load(u64, top) == cast(u64, site):
        right = tree(fiber, top, subtree(seed, 1), depth - 1)
    else:
        words = fiber.services.join_fork(fiber, top)
        if words is None:
            right = tree(fiber, top, subtree(seed, 1), depth - 1)
        else:
            right = words[0]
    return mix(left, right)


@native
def tree_thunk(fiber: ptr[Fiber]) -> None:
    """A promoted branch."""
    fiber.words[0] = tree(fiber, fiber.stack, fiber.words[0], fiber.words[1])


@native
def reference(seed: u64, depth: u64, fails: ptr[u64]) -> u64:
    """The value of a tree, computed in order; counts leaves that fail."""
    if depth == 0 or seed % 7 == 0:
        if leaf_fails(seed):
            fails[0] += 1
        return seed * 3 + 1
    left = reference(subtree(seed, 0), depth - 1, fails)
    return mix(left, reference(subtree(seed, 1), depth - 1, fails))


# ---------------------------------------------------------------- parallel loops

FACTOR = 31


@native
def iteration(fiber: ptr[Fiber], top: ptr[u8], seed: u64) -> u64:
    """What an iteration gives: a leaf, or a tree."""
    if seed % 5 == 0:
        return tree(fiber, top, seed, seed % 3)
    return leaf(fiber, top, seed)


@native
def run_chunk(fiber: ptr[Fiber], top: ptr[u8], words: ptr[u64], first: i64, end: i64) -> None:
    """Some iterations; the result is a polynomial of their values, which depends on their order, and their number."""
    for i in range(first, end):
        value = iteration(fiber, top, subtree(words[6], u64(i)))
        words[4] = words[4] * FACTOR + value
        words[5] += 1


@native
def combine(fiber: ptr[Fiber], top: ptr[u8], words: ptr[u64], later: ptr[u64]) -> None:
    """Add the result of later iterations."""
    look(fiber, top)
    for _ in range(later[1]):
        words[4] *= FACTOR
    words[4] += later[0]
    words[5] += later[1]


@native(noinline=True)
def sweep(fiber: ptr[Fiber], seed: u64, number: u64) -> None:
    """Run a loop, and compare."""
    fails = stack(u64, 1)
    fails[0] = 0
    wanted: u64 = 0
    for i in range(number):
        inner = subtree(seed, i)
        value = reference(inner, inner % 3, fails) if inner % 5 == 0 else reference(inner, 0, fails)
        wanted = wanted * FACTOR + value
    record = fiber.stack
    words = cast(ptr[u64], record + 8)
    store(record, loop_site)
    for i in range(u64(6)):
        words[i] = 0
    words[1] = number
    words[6] = seed
    fiber.services.loop(fiber, record)
    count(addressof(world.loops), 1)
    if fails[0] != 0:
        complain(FAILED_TREE_FINISHED)
    elif words[4] != wanted or words[5] != number:
        complain(WRONG_LOOP)


@native
def prepare_sites() -> None:
    """Records of several sizes."""
    loop_site.arguments = 7
    loop_site.words = 7
    loop_site.results = 2
    loop_site.chunk = run_chunk
    loop_site.combine = combine
    for i in range(4):
        sites[i].thunk = tree_thunk
        sites[i].arguments = 2
        sites[i].words = u32(2 + i)


# ---------------------------------------------------------------- recursion


@native(noinline=True)
def dig(fiber: ptr[Fiber], depth: u64) -> u64:
    """Use `depth` frames of stack."""
    if cast(ptr[u8], frame_address()) < fiber.floor:
        fiber.services.overflow(fiber, fiber.stack)
    room = stack(u64, 8)
    room[depth % 8] = depth
    below: u64 = 0
    if depth != 0:
        below = dig(fiber, depth - 1)
    return below + room[depth % 8]


# ---------------------------------------------------------------- bodies


@native
def note_sent(value: u64) -> None:
    """A value was sent."""
    count(addressof(world.sent), 1)
    count(addressof(world.sent_sum), value)


@native
def note_received(value: u64) -> None:
    """A value was received."""
    count(addressof(world.received), 1)
    count(addressof(world.received_sum), value)


@native
def some_channel(state: ptr[u64]) -> ptr[Channel]:
    """A channel of the world."""
    return world.channels[following(state, CHANNELS)]


@native
def some_deadline(state: ptr[u64]) -> u64:
    """No deadline, or a near one."""
    if following(state, 2) == 0:
        return 0
    return clock() + following(state, 3000)


@native
def select_some(fiber: ptr[Fiber], state: ptr[u64]) -> None:
    """Select among some channels."""
    cases = stack(Case, 4)
    values = stack(u64, 4)
    number = u32(1 + following(state, 4))
    for i in range(number):
        cases[i].channel = some_channel(state)
        cases[i].words = values + i
        cases[i].sending = u32(following(state, 2))
        values[i] = following(state, 1000)
    found = fiber_select(fiber, cases, number, some_deadline(state))
    if found < 4:
        if found >= number:
            complain(WRONG_CASE)
        elif cases[found].sending != 0:
            note_sent(values[found])
        else:
            note_received(values[found])


@native
def spawn_some(fiber: ptr[Fiber], state: ptr[u64], depth: u64, detached: u64) -> u64:
    """Spawn a body, if there is any left; its handle, or 0."""
    if depth == 0 or atomic_update("sub", addressof(world.budget), i64(1), "relaxed") <= 0:
        return 0
    made = fiber.services.spawn(fiber, cast(ptr[void], addressof(body)), 2)
    made.words[0] = following(state, 1 << 40)
    made.words[1] = depth - 1
    count(addressof(world.spawned), 1)
    return fiber.services.start(fiber, made, detached)


@native(noinline=True)
def act(fiber: ptr[Fiber], state: ptr[u64], depth: u64, handles: ptr[u64]) -> None:
    """One operation of a body."""
    room = stack(u64, 1)
    place = handles + following(state, HANDLES)
    match following(state, 25):
        case 0 | 1 | 2:
            if place[0] != 0:
                place = handles
            if place[0] == 0:
                place[0] = spawn_some(fiber, state, depth, 0)
        case 3:
            spawn_some(fiber, state, depth, 1)
        case 4 | 5 | 6:
            if place[0] == 0:
                place = handles
            if place[0] != 0:
                made = fiber.services.join(fiber, place[0])
                count(addressof(world.joined), 1)
                place[0] = 0
                fiber.services.forget(fiber, made)
        case 7:
            if place[0] != 0 and features[0] & CANCELLING != 0:
                count(addressof(world.cancels), 1)
                fiber.services.cancel(fiber, place[0])
        case 8 | 9 | 10:
            room[0] = following(state, 1000)
            if fiber.services.send(fiber, cast(ptr[void], some_channel(state)), room, some_deadline(state)) == OK:
                note_sent(room[0])
        case 11 | 12 | 13:
            if fiber.services.receive(fiber, cast(ptr[void], some_channel(state)), room, some_deadline(state)) == OK:
                note_received(room[0])
        case 14 | 15 | 16:
            select_some(fiber, state)
        case 17:
            if features[0] & CLOSING != 0 and following(state, 8) == 0:
                close_channel(some_channel(state))
        case 18:
            if features[0] & SLEEPING != 0:
                fiber.services.sleep(fiber, following(state, 5000))
        case 19:
            fiber.services.give_way(fiber)
        case 20:
            if features[0] & FAILING != 0 and following(state, 4) == 0:
                fiber.services.fail(fiber, cast(ptr[void], addressof(world)))
        case 21:
            levels = following(state, 700)
            if dig(fiber, levels) != levels * (levels + 1) // 2:
                complain(WRONG_RECURSION)
        case 22:
            sweep(fiber, following(state, 1 << 40), following(state, 40))
        case _:
            grow(fiber, following(state, 1 << 40), following(state, 6))


@native(noinline=True)
def grow(fiber: ptr[Fiber], seed: u64, depth: u64) -> None:
    """Evaluate a tree, and compare."""
    fails = stack(u64, 1)
    fails[0] = 0
    wanted = reference(seed, depth, fails)
    found = tree(fiber, fiber.stack, seed, depth)
    count(addressof(world.trees), 1)
    if fails[0] != 0:
        complain(FAILED_TREE_FINISHED)
    elif found != wanted:
        complain(WRONG_TREE)


@native
def body(fiber: ptr[Fiber]) -> None:
    """What a fiber of a random program does."""
    count(addressof(world.begun), 1)
    state = stack(u64, 1)
    state[0] = fiber.words[0]
    depth = fiber.words[1]
    handles = stack(u64, HANDLES)
    for i in range(HANDLES):
        handles[i] = 0
    for _ in range(2 + following(state, 14)):
        look(fiber, fiber.stack)
        act(fiber, state, depth, handles)
    fiber.words[0] = state[0]
    count(addressof(world.finished), 1)
