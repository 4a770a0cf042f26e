"""What runs at beats, for `greenbeat.profile`.

    samples.words ─▶ │ kind, count │ time │ thread │ code │ count words │ kind, count │ ...      until it is full

A kernel's sample has the addresses that calls between kernels return to, innermost first: words on its stack that point
behind a call instruction in a kernel's code. A frame that is gone can have left one there, so now and then there is one
too many. A guest's has the module and the index of each function, see `guest_samples.py`.

Room in the buffer is taken by an atomic addition, and the first word is written last: where it is 0, nothing is.
"""

from greenbeat.native import (
    addressof,
    array,
    atomic_load,
    atomic_store,
    atomic_update,
    cast,
    export,
    frame_address,
    function,
    inline,
    load,
    native,
    ptr,
    stack,
    static,
    struct,
    u8,
    u32,
    u64,
    void,
)
from greenbeat.native.targets import target_triple
from greenbeat.runtime.arena import calloc
from greenbeat.runtime.layout import Task
from greenbeat.runtime.pacemaker import profiling
from greenbeat.runtime.system import now, pthread_self
from greenbeat.tasks.layout import Fiber
from greenbeat.tasks.tracing import code_of

# What a sample is of.
KERNEL, GUEST = 1, 2
HEAD_WORDS = 4
COUNT_BITS = 32
# At most so many frames of one sample are noted, and so many words of a stack looked at.
MOST_FRAMES = 128
MOST_WORDS = 1 << 14
X86 = target_triple().startswith("x86_64")


@struct
class Samples:
    """The buffer; `used` may be more than `capacity` when samples were dropped."""

    words: ptr[u64]
    capacity: u64
    used: u64
    dropped: u64


@struct
class CodeMap:
    """Where kernels' code is: `count` pairs of start and end follow, in order."""

    count: u64
    ranges: array[u64, 2]


samples = static(Samples, name="samples")
# The current map; maps are never freed.
code_map = static(ptr[CodeMap], name="code_map")
# Takes the sample of a guest.
guest_sampler = static(function[[ptr[Task]], void], name="guest_sampler")


@export
def start_profiling(capacity: u64) -> bool:
    """Let samples be taken, of so many words; False when there is no memory. All profiles have the same buffer."""
    if samples.words is None:
        samples.words = cast(ptr[u64], calloc(capacity, 8))
        if samples.words is None:
            return False
        samples.capacity = capacity
    for i in range(samples.used if samples.used < samples.capacity else samples.capacity):
        samples.words[i] = 0
    samples.dropped = 0
    atomic_store(addressof(samples.used), u64(0), "seq_cst")
    atomic_store(profiling, u32(1), "seq_cst")
    return True


@export
def stop_profiling() -> ptr[Samples]:
    """Take no more samples; those that were taken."""
    atomic_store(profiling, u32(0), "seq_cst")
    return samples


@export
def set_code_map(map: ptr[CodeMap]) -> None:
    """Tell where kernels' code is."""
    atomic_store(code_map, map, "release")


@native
def record(kind: u32, code: u64, frames: ptr[u64], count: u64) -> None:
    """Put a sample into the buffer, if there is room."""
    at = atomic_update("add", addressof(samples.used), HEAD_WORDS + count, "relaxed")
    if at + HEAD_WORDS + count > samples.capacity:
        atomic_update("add", addressof(samples.dropped), u64(1), "relaxed")
        return
    place = samples.words + at
    place[1] = now()
    place[2] = pthread_self()
    place[3] = code
    for i in range(count):
        place[HEAD_WORDS + i] = frames[i]
    atomic_store(place, u64(kind) << COUNT_BITS | count, "release")


@native
def in_code(map: ptr[CodeMap], address: u64) -> bool:
    """Whether an address is inside of a kernel's code, and a little behind its start."""
    low: u64 = 0
    high = map.count
    ranges = cast(ptr[u64], addressof(map.ranges))
    while low < high:
        middle = (low + high) // 2
        if ranges[2 * middle + 1] <= address:
            low = middle + 1
        else:
            high = middle
    return low < map.count and ranges[2 * low] + 8 <= address


@inline
def follows_call(address: u64) -> bool:
    """Whether the instruction before is a call."""
    before = cast(ptr[u8], address)
    if X86:
        # E8 and four bytes, or FF with one to six more.
        return (
            load(u8, before - 5) == 0xE8
            or (load(u8, before - 2) == 0xFF and load(u8, before - 1) & 0x38 == 0x10)
            or (load(u8, before - 3) == 0xFF and load(u8, before - 2) & 0x38 == 0x10)
            or (load(u8, before - 6) == 0xFF and load(u8, before - 5) & 0x38 == 0x10)
        )
    word = load(u32, before - 4)
    return word & 0xFC00_0000 == 0x9400_0000 or word & 0xFFFF_FC1F == 0xD63F_0000


@native(cold=True)
def sample_fiber(fiber: ptr[Fiber]) -> None:
    """Note which kernels a fiber is in, which this is called on."""
    frames = stack(u64, MOST_FRAMES)
    count: u64 = 0
    map = atomic_load(code_map, "acquire")
    at = cast(ptr[u64], frame_address())
    end = fiber.words
    if end - at > MOST_WORDS:
        end = at + MOST_WORDS
    if map is not None and map.count != 0:
        ranges = cast(ptr[u64], addressof(map.ranges))
        lowest = ranges[0]
        highest = ranges[2 * map.count - 1]
        while at < end and count < MOST_FRAMES:
            word = at[0]
            if word > lowest and word < highest and in_code(map, word) and follows_call(word):
                frames[count] = word
                count += 1
            at = at + 1
    record(KERNEL, code_of(fiber), frames, count)
