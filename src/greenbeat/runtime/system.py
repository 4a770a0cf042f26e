"""What the engine asks of the operating system: mappings, threads, clocks, signals.

Linux and macOS differ in a few numbers only.
"""

# ruff: noqa: D103  The C functions are documented in their manual pages.

import platform
import sys

from greenbeat.native import (
    array,
    cast,
    extern,
    function,
    i32,
    i64,
    inline,
    native,
    ptr,
    stack,
    struct,
    u8,
    u32,
    u64,
    void,
)
from greenbeat.native.targets import target_triple

LINUX = sys.platform == "linux"
READ, WRITE, NONE = 1, 2, 0
PRIVATE = 2
ANONYMOUS = 0x20 if LINUX else 0x1000
NO_RESERVE = 0x4000 if LINUX else 0x40
DONT_NEED = 4 if LINUX else 5
CLOCK_MONOTONIC = 1 if LINUX else 6
# Whether threads can be asked where their native stacks are. Elsewhere than in glibc the answer for the main thread is
# what of it is in use.
KNOWS_STACKS = LINUX and platform.libc_ver()[0] == "glibc"
# The system call that makes every running thread of the process pass a memory barrier, and its commands.
MEMBARRIER = {"x86_64": 324, "aarch64": 283}.get(target_triple().split("-")[0], 0) if LINUX else 0
EXPEDITED, REGISTER = 8, 16
# Protection changes in these steps: a multiple of every page size in use.
GRANULE = 65536


@struct
class TimeSpec:
    """`struct timespec`."""

    seconds: i64
    nanoseconds: i64


@struct
class Action:
    """`struct sigaction` of glibc and musl on 64-bit Linux."""

    handler: u64
    mask: array[u64, 16]
    flags: i32
    restorer: ptr[void]


@extern
def mmap(address: ptr[void], size: u64, protection: i32, flags: i32, file: i32, offset: i64) -> ptr[u8]: ...


@extern
def munmap(address: ptr[void], size: u64) -> i32: ...


@extern
def mprotect(address: ptr[void], size: u64, protection: i32) -> i32: ...


@extern
def madvise(address: ptr[void], size: u64, advice: i32) -> i32: ...


@extern
def realloc(memory: ptr[void], size: u64) -> ptr[void]: ...


@extern
def clock_gettime(clock: i32, time: ptr[TimeSpec]) -> i32: ...


@extern
def usleep(microseconds: u32) -> i32: ...


@extern
def sigaction(signal: i32, action: ptr[Action], before: ptr[Action]) -> i32: ...


@extern
def pthread_self() -> u64: ...


@extern
def pthread_kill(thread: u64, signal: i32) -> i32: ...


@extern
def pthread_getattr_np(thread: u64, attributes: ptr[void]) -> i32: ...


@extern
def pthread_attr_getstack(attributes: ptr[void], base: ptr[u64], size: ptr[u64]) -> i32: ...


@extern
def pthread_attr_destroy(attributes: ptr[void]) -> i32: ...


@extern
def pthread_key_create(key: ptr[u32], destructor: function[[ptr[void]], None]) -> i32: ...


@extern
def pthread_getspecific(key: u32) -> ptr[void]: ...


@extern
def pthread_setspecific(key: u32, value: ptr[void]) -> i32: ...


@extern
def pthread_create(
    thread: ptr[u64], attributes: ptr[void], body: function[[ptr[void]], ptr[void]], argument: ptr[void]
) -> i32: ...


@extern
def pthread_detach(thread: u64) -> i32: ...


@extern
def pthread_sigmask(how: i32, set: ptr[void], before: ptr[void]) -> i32: ...


# What a faulting instruction raises: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
FAULTS = sum(1 << (number - 1) for number in (4, 5, 7 if LINUX else 10, 8, 11))
SIG_BLOCK, SIG_SETMASK = (0, 2) if LINUX else (1, 3)
# A set of signals has at most so many words.
SIGNAL_WORDS = 16


@native
def block_signals(before: ptr[u64]) -> None:
    """Leave signals to other threads, but for those of faults, which end the process unheard where they are blocked.

    Threads that this one begins inherit it. What was blocked is put at `before`, for `restore_signals`.
    """
    everything = stack(u64, SIGNAL_WORDS)
    for i in range(u32(SIGNAL_WORDS)):
        everything[i] = ~u64(0)
    everything[0] = ~u64(FAULTS)
    pthread_sigmask(SIG_BLOCK, everything, before)


@native
def restore_signals(before: ptr[u64]) -> None:
    """Block what was blocked before `block_signals`."""
    pthread_sigmask(SIG_SETMASK, before, None)


@extern(variadic=True)
def syscall(number: i64) -> i64: ...


@inline
def reserve(size: u64) -> ptr[u8]:
    """Address space without memory behind it; null when there is none."""
    found = mmap(None, size, NONE, PRIVATE | ANONYMOUS | NO_RESERVE, -1, 0)
    return cast(ptr[u8], 0) if cast(i64, found) == -1 else found


@native
def now() -> u64:
    """Nanoseconds of the monotonic clock."""
    time = stack(TimeSpec)
    clock_gettime(CLOCK_MONOTONIC, time)
    return u64(time.seconds) * 1_000_000_000 + u64(time.nanoseconds)
