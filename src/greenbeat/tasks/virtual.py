"""Time and beats as a simulation wants them: schedules become a function of a seed.

While `virtual.on` is set, a fiber that looks at its pulse is paused, for the simulation to let others go on; it then
has a beat once in `period` times. Clocks stand still until the simulation moves `virtual.time`. The fast paths know
nothing of it: the simulation raises the pulse before it lets a fiber go on, and the fiber after it has looked at it.
"""

from greenbeat.native import native, static, struct, u32, u64
from greenbeat.runtime.system import now


@struct
class Virtual:
    """The simulation's wishes."""

    on: u32
    period: u32
    random: u64
    time: u64
    # Whether there is no memory for new stacks and timers.
    failing: u32


virtual = static(Virtual, name="virtual")


@native
def draw(limit: u32) -> u32:
    """A pseudo-random number below a limit."""
    random = virtual.random
    random ^= random << 13
    random ^= random >> 7
    random ^= random << 17
    virtual.random = random
    return u32(random >> 32) % limit


@native
def clock() -> u64:
    """Nanoseconds of the monotonic clock, or of the simulation's."""
    return virtual.time if virtual.on != 0 else now()
