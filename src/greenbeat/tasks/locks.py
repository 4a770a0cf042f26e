"""Locks that are held for a few instructions, and sleeping until a word changes.

A lock is a word, 1 while it is held. Whoever finds it held tries again, and after a while lets other threads run, since
the owner may have lost its processor.
"""

from greenbeat.native import (
    atomic_load,
    atomic_store,
    atomic_update,
    cast,
    compare_exchange,
    extern,
    i32,
    i64,
    inline,
    inline_assembly,
    native,
    ptr,
    stack,
    u32,
    u64,
    unlikely,
)
from greenbeat.native.targets import target_triple
from greenbeat.runtime.system import LINUX, TimeSpec, syscall, usleep

PROCESSOR = target_triple().split("-")[0]
PAUSE = "pause" if PROCESSOR == "x86_64" else "yield"
TRIES = 100
FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98}
FUTEX = FUTEX_NUMBERS.get(PROCESSOR, 0) if LINUX else 0
WAIT_PRIVATE, WAKE_PRIVATE = 128, 129
# How often a sleeper looks where there is no futex, in microseconds.
DOZE = 500


@extern
def sched_yield() -> i32:
    """Let other threads run."""


@inline
def pause() -> None:
    """Tell the processor that this is a loop that waits."""
    inline_assembly(PAUSE, "~{memory}", None)


@native(cold=True)
def wait_for_lock(lock: ptr[u32]) -> None:
    """Take a lock that somebody has."""
    tries = u32(0)
    while True:
        if atomic_load(lock, "relaxed") == 0 and atomic_update("xchg", lock, u32(1), "acquire") == 0:
            return
        tries += 1
        if tries < TRIES:
            pause()
        else:
            sched_yield()


@inline
def lock(word: ptr[u32]) -> None:
    """Take a lock."""
    if unlikely(atomic_update("xchg", word, u32(1), "acquire") != 0):
        wait_for_lock(word)


@inline
def unlock(word: ptr[u32]) -> None:
    """Give a lock back."""
    atomic_store(word, u32(0), "release")


@native
def sleep_while(word: ptr[u32], value: u32, nanoseconds: u64) -> None:
    """Sleep as long as the word has this value, at most so long (0: for ever); may return early."""
    if FUTEX != 0:
        if nanoseconds != 0:
            time = stack(TimeSpec)
            time.seconds = i64(nanoseconds // 1_000_000_000)
            time.nanoseconds = i64(nanoseconds % 1_000_000_000)
            syscall(FUTEX, cast(u64, word), u64(WAIT_PRIVATE), u64(value), cast(u64, time), u64(0), u64(0))
        else:
            syscall(FUTEX, cast(u64, word), u64(WAIT_PRIVATE), u64(value), u64(0), u64(0), u64(0))
    elif atomic_load(word, "acquire") == value:
        usleep(DOZE)


# A signal that somebody waits for: given, and that the waiting thread sleeps.
GIVEN, SLEPT_ON = 1, 2


@inline
def is_given(signal: ptr[u32]) -> bool:
    """Whether a signal was given."""
    return atomic_load(signal, "acquire") == GIVEN


@native
def give_signal(signal: ptr[u32]) -> None:
    """Give a signal, which may be gone as soon as it is: waking by an address that nobody sleeps on does no harm."""
    if atomic_update("xchg", signal, u32(GIVEN), "acq_rel") == SLEPT_ON:
        wake_sleepers(signal)


@native
def sleep_until_given(signal: ptr[u32], nanoseconds: u64) -> None:
    """Sleep until a signal is given, at most so long (0: for ever); may return early."""
    compare_exchange(signal, u32(0), u32(SLEPT_ON), "acq_rel")
    sleep_while(signal, SLEPT_ON, nanoseconds)


@native
def wake_sleepers(word: ptr[u32]) -> None:
    """Wake who sleeps on a word."""
    if FUTEX != 0:
        syscall(FUTEX, cast(u64, word), u64(WAKE_PRIVATE), u64(0x7FFF_FFFF), u64(0), u64(0), u64(0))
