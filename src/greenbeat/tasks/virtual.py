"""Time and beats as a simulation wants them: schedules become a function of a seed.

While `virtual.on` is set, a fiber that looks at its pulse is paused, for the simulation to let others go on; it then
has a beat once in `period` times. Clocks stand still until the simulation moves `virtual.time`. The fast paths know
nothing of it: the simulation raises the pulse before it lets a fiber go on, and the fiber after it has looked at it.

Real threads are hard to catch at the wrong moment: `assert dawdle()` marks the moments, and makes them longer.
"""

from greenbeat.native import inline, native, static, struct, u32, u64
from greenbeat.runtime.system import now, usleep


@struct
class Virtual:
    """The simulation's wishes."""

    on: u32
    period: u32
    random: u64
    time: u64
    # Whether there is no memory for new stacks and timers.
    failing: u32
    # In the checked build, threads dawdle where it matters, once in so many times; 0: never.
    dawdling: u32


virtual = static(Virtual, name="virtual")


@inline
def following_random(random: u64) -> u64:
    """The pseudo-random number after another, which is not 0: Marsaglia's xorshift."""
    random ^= random << 13
    random ^= random >> 7
    return random ^ (random << 17)


@native
def draw(limit: u32) -> u32:
    """A pseudo-random number below a limit."""
    virtual.random = following_random(virtual.random)
    return u32(virtual.random >> 32) % limit


@native
def clock() -> u64:
    """Nanoseconds of the monotonic clock, or of the simulation's."""
    return virtual.time if virtual.on != 0 else now()


@native(noinline=True)
def dawdle() -> bool:
    """Let other threads overtake this one now and then, where that must do no harm. True, for assertions."""
    if virtual.dawdling != 0 and draw(virtual.dawdling) == 0:
        usleep(draw(60))
    return True
