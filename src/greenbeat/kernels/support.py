"""What compiled kernels call: arithmetic of more than a few instructions, and failures. Compiled into their objects.

Functions here are in the engine's language, so their operators are the machine's, not Python's.
"""

# ruff: noqa: D103  The C functions are documented in their manual pages.

from greenbeat.native import (
    bitcast,
    cast,
    copy_sign,
    count_leading_zeros,
    extern,
    f64,
    i64,
    likely,
    native,
    ptr,
    round_floor,
    stack,
    u8,
    u32,
    u64,
    void,
)
from greenbeat.runtime.system import CLOCK_MONOTONIC, TimeSpec, clock_gettime
from greenbeat.tasks.layout import Fiber, ForkSite

# Floats are exact integers up to here.
EXACT = 1 << 53


@extern(attributes="nobuiltin")
def fmod(left: f64, right: f64) -> f64: ...


# Not a builtin to LLVM, which would turn x ** 2 into x * x: that may differ from Python's in the last bit.
@extern(attributes="nobuiltin")
def pow(base: f64, exponent: f64) -> f64: ...


@native(cold=True, attributes="noreturn")
def fail_with(fiber: ptr[Fiber], site: ptr[void], first: i64, second: i64) -> None:
    """Leave the fiber; the two values are for the message."""
    fiber.words[0] = u64(first)
    fiber.words[1] = u64(second)
    fail = fiber.services.fail
    fail(fiber, site)


@native(cold=True, convention="preserve_mostcc")
def poll(fiber: ptr[Fiber], fork_top: ptr[u8]) -> None:
    """The pulse was set. Keeps the caller's registers, so that its loops need not care."""
    serve = fiber.services.poll
    serve(fiber, fork_top)


@native(cold=True, convention="preserve_mostcc")
def overflow(fiber: ptr[Fiber], fork_top: ptr[u8]) -> None:
    """The stack pointer is below the floor."""
    serve = fiber.services.overflow
    serve(fiber, fork_top)


@native(cold=True, convention="preserve_mostcc")
def fork(fiber: ptr[Fiber], top: ptr[u8]) -> None:
    """A fork found the stack pointer below the floor for forks."""
    serve = fiber.services.fork
    serve(fiber, top)


@native(cold=True)
def join_fork(fiber: ptr[Fiber], record: ptr[u8]) -> ptr[u64]:
    """A branch was promoted."""
    serve = fiber.services.join_fork
    return serve(fiber, record)


@native
def run_loop(fiber: ptr[Fiber], record: ptr[u8]) -> None:
    """Run a parallel loop."""
    serve = fiber.services.loop
    serve(fiber, record)


# ---------------------------------------------------------------- tasks


@native
def spawn(fiber: ptr[Fiber], site: ptr[ForkSite]) -> ptr[Fiber]:
    """A fiber for a task."""
    serve = fiber.services.spawn
    return serve(fiber, cast(ptr[void], site.thunk), u64(site.words))


@native
def words_of(fiber: ptr[Fiber], made: ptr[Fiber]) -> ptr[u64]:
    """Where a task's arguments and results are."""
    return made.words


@native
def hold(fiber: ptr[Fiber], made: ptr[Fiber], channel: u64) -> None:
    """Let a task keep a channel."""
    serve = fiber.services.hold
    serve(fiber, made, cast(ptr[void], channel))


@native
def start(fiber: ptr[Fiber], made: ptr[Fiber], detached: u64) -> u64:
    """Let a task begin."""
    serve = fiber.services.start
    return serve(fiber, made, detached)


@native
def join(fiber: ptr[Fiber], handle: u64) -> ptr[Fiber]:
    """Wait for a task."""
    serve = fiber.services.join
    return serve(fiber, handle)


@native
def forget(fiber: ptr[Fiber], made: ptr[Fiber]) -> None:
    """A task's result has been used."""
    serve = fiber.services.forget
    serve(fiber, made)


@native
def cancel(fiber: ptr[Fiber], handle: u64) -> None:
    """Cancel a task."""
    serve = fiber.services.cancel
    serve(fiber, handle)


@native
def send(fiber: ptr[Fiber], channel: u64, words: ptr[u64], until: u64) -> u32:
    """Send a value."""
    serve = fiber.services.send
    return serve(fiber, cast(ptr[void], channel), words, until)


@native
def receive(fiber: ptr[Fiber], channel: u64, words: ptr[u64], until: u64) -> u32:
    """Receive a value."""
    serve = fiber.services.receive
    return serve(fiber, cast(ptr[void], channel), words, until)


@native
def close(fiber: ptr[Fiber], channel: u64) -> None:
    """Close a channel."""
    serve = fiber.services.close
    serve(fiber, cast(ptr[void], channel))


@native
def nanoseconds(seconds: f64) -> u64:
    """A time in whole nanoseconds, at least one."""
    many = seconds * 1e9
    return u64(many) if many >= 1.0 and many < 1e18 else u64(1) if many < 1.0 else u64(1_000_000_000_000_000_000)


@native
def sleep(fiber: ptr[Fiber], seconds: f64) -> None:
    """Let others run for a time."""
    serve = fiber.services.sleep
    serve(fiber, nanoseconds(seconds))


@native
def deadline(fiber: ptr[Fiber], seconds: f64) -> u64:
    """When so many seconds are over."""
    time = stack(TimeSpec)
    clock_gettime(CLOCK_MONOTONIC, time)
    return u64(time.seconds) * 1_000_000_000 + u64(time.nanoseconds) + nanoseconds(seconds)


# ---------------------------------------------------------------- integers


@native(cold=True)
def divide_magnitudes(left: u64, right: u64) -> f64:
    """The quotient of two numbers that are not 0, rounded once."""
    left_shift, right_shift = count_leading_zeros(left), count_leading_zeros(right)
    remainder, divisor = left << left_shift, right << right_shift
    # 56 bits of a quotient between a half and two, the last of which says whether there are more.
    quotient = u64(0)
    carry = False
    for _ in range(56):
        quotient = quotient << 1
        if carry or remainder >= divisor:
            remainder = remainder - divisor
            quotient = quotient | 1
        carry = i64(remainder) < 0
        remainder = remainder << 1
    if carry or remainder != 0:
        quotient = quotient | 1
    exponent = i64(right_shift) - i64(left_shift) - 55
    return f64(quotient) * bitcast(f64, u64(1023 + exponent) << 52)


@native
def true_divide(left: i64, right: i64) -> f64:
    """The quotient of two integers as Python has it. The divisor is not 0."""
    if likely(u64(left + EXACT) <= 2 * EXACT and u64(right + EXACT) <= 2 * EXACT) or left == 0:
        return f64(left) / f64(right)
    magnitude = divide_magnitudes(u64(-left if left < 0 else left), u64(-right if right < 0 else right))
    return -magnitude if (left < 0) != (right < 0) else magnitude


@native
def true_divide_unsigned(left: u64, right: u64) -> f64:
    """As `true_divide`."""
    if likely(left <= EXACT and right <= EXACT):
        return f64(left) / f64(right)
    return 0.0 if left == 0 else divide_magnitudes(left, right)


@native
def integer_power(base: i64, exponent: i64) -> i64:
    """`base ** exponent` modulo 2**64, of either sign's type; the exponent is not negative."""
    result = i64(1)
    while exponent != 0:
        if exponent & 1 != 0:
            result = result * base
        base = base * base
        exponent = i64(u64(exponent) >> 1)
    return result


@native
def greatest_divisor(left: u64, right: u64) -> u64:
    """The greatest common divisor."""
    while right != 0:
        left, right = right, left % right
    return left


@native
def integer_root(value: u64) -> u64:
    """The square root, rounded down."""
    root = u64(0)
    bit = u64(1) << 62
    while bit > value:
        bit = bit >> 2
    while bit != 0:
        if value >= root + bit:
            value = value - (root + bit)
            root = (root >> 1) + bit
        else:
            root = root >> 1
        bit = bit >> 2
    return root


@native
def range_count(start: i64, end: i64, step: i64) -> u64:
    """How many numbers a range has. The step is not 0."""
    if step > 0:
        return 0 if start >= end else (u64(end) - u64(start) - 1) // u64(step) + 1
    return 0 if start <= end else (u64(start) - u64(end) - 1) // (0 - u64(step)) + 1


# ---------------------------------------------------------------- floats


@native
def float_remainder(left: f64, right: f64) -> f64:
    """Python's `%`; the divisor is not 0."""
    remainder = fmod(left, right)
    if remainder == 0.0:
        return copy_sign(0.0, right)
    if (right < 0.0) != (remainder < 0.0):
        remainder = remainder + right
    return remainder


@native
def float_floor_divide(left: f64, right: f64) -> f64:
    """Python's `//`; the divisor is not 0."""
    remainder = fmod(left, right)
    quotient = (left - remainder) / right
    if remainder != 0.0 and (right < 0.0) != (remainder < 0.0):
        quotient = quotient - 1.0
    if quotient == 0.0:
        return copy_sign(0.0, left / right)
    floored = round_floor(quotient)
    if quotient - floored > 0.5:
        floored = floored + 1.0
    return floored
