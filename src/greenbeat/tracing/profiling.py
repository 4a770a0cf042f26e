"""`greenbeat.profile`: where time goes, sampled at beats.

    with gb.profile() as profile:
        fib(35)
    print(profile.top())
    profile.save_speedscope("run.speedscope.json")

Native code takes the samples (see `tasks/sampling.py`); here addresses become names.
"""

import bisect
import ctypes
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from greenbeat.api.bridge import at, native
from greenbeat.api.checks import described, shown
from greenbeat.engine import engine
from greenbeat.kernels import linked
from greenbeat.tasks.sampling import COUNT_BITS, GUEST, HEAD_WORDS, KERNEL, MOST_FRAMES, Samples
from greenbeat.tracing.names import Names, thread_names

# Words that samples have room for; one takes about twenty.
CAPACITY = 1 << 20
LONGEST_INTERVAL = 1.0
# Functions that every kernel's code has; by the first of these a kernel looks at the beat.
SUPPORT = "kernels.support."
POLLS = frozenset(SUPPORT + name for name in ("poll", "overflow", "fork"))

_guard = threading.Lock()
_current: "Profile | None" = None
# Code maps that native code was told of: it may be looking at any of them.
_maps: list[Any] = []


@dataclass(frozen=True)
class Sample:
    """What a thread did at a beat: functions, outermost first; and when, in nanoseconds of `time.monotonic_ns()`."""

    thread: str
    time: int
    stack: tuple[str, ...]


class Profile:
    """Samples of what kernels and guests do, from `start` to `stop`, or in a `with` block. There is one at a time.

    Attributes:
        interval: seconds between two beats, unless they come more often anyway.
        samples: what was seen, when it has stopped.
        dropped: how many samples there was no room for.
    """

    def __init__(self, interval: float = 0.001) -> None:
        if not isinstance(interval, int | float) or isinstance(interval, bool):
            raise TypeError(f"interval is a number of seconds, not {described(interval)}")
        if not 0.0001 <= interval <= LONGEST_INTERVAL:
            raise ValueError(f"interval must be from 0.0001 to {LONGEST_INTERVAL:g} seconds: {shown(interval)}")
        self.interval = float(interval)
        self.samples: list[Sample] = []
        self.dropped = 0
        self._before = self._set = 0
        self._threads: dict[int, str] = {}

    def start(self) -> "Profile":
        """Begin; what was sampled before is forgotten.

        Raises:
            RuntimeError: a profile is being taken.
            MemoryError: no memory for samples.
        """
        global _current
        with _guard:
            if _current is not None:
                raise RuntimeError("a profile is being taken already: stop it first")
            native.prepare_samples()
            _tell_code()
            if not native.start_profiling(CAPACITY):
                raise MemoryError("no memory for samples")
            _current, self.samples, self.dropped = self, [], 0
            linked.watch(_tell_code)
            self._threads = thread_names()
            period = _period()
            self._before = period.value
            self._set = period.value = min(self._before, int(self.interval * 1e9))
            self.interval = self._set / 1e9
        return self

    def stop(self) -> "Profile":
        """End.

        Raises:
            RuntimeError: this one is not being taken.
        """
        global _current
        with _guard:
            if _current is not self:
                raise RuntimeError("this profile is not being taken")
            _current = None
            found = at(Samples, native.stop_profiling())
            linked.forget(_tell_code)
            period = _period()
            if period.value == self._set:
                period.value = self._before
            used = min(found.used, found.capacity)
            words = memoryview(ctypes.string_at(found.words, used * 8)).cast("Q")
            self.dropped = found.dropped
            self.samples = list(_samples(words, {**thread_names(), **self._threads}))
        return self

    def __enter__(self) -> "Profile":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # ---------------------------------------------------------------- results

    def top(self, count: int = 20) -> str:
        """The functions that most samples were taken in, as text: by themselves, and with what they called."""
        own = Counter(sample.stack[-1] for sample in self.samples)
        whole = Counter(name for sample in self.samples for name in set(sample.stack))
        total = len(self.samples)
        lines = [f"{total} samples, one in {self.interval * 1000:g} ms of a thread; {self.dropped} dropped"]
        if total:
            lines.append("   self  total  function")
        for name, number in sorted(whole.items(), key=lambda item: (-own[item[0]], -item[1], item[0]))[:count]:
            lines.append(f"{own[name] / total:>7.1%}{number / total:>7.1%}  {name}")
        return "\n".join(lines)

    def save_collapsed(self, path: str | os.PathLike[str]) -> None:
        """Write a line for each stack, with how often it was seen: what flame graph programs read."""
        stacks = Counter(";".join((sample.thread, *sample.stack)) for sample in self.samples)
        Path(path).write_text("".join(f"{stack} {number}\n" for stack, number in sorted(stacks.items())))

    def save_speedscope(self, path: str | os.PathLike[str]) -> None:
        """Write a file for https://www.speedscope.app, with a profile for each thread."""
        frames: dict[str, int] = {}
        profiles = []
        weight = self.interval * 1000
        for thread in dict.fromkeys(sample.thread for sample in self.samples):
            stacks = [sample.stack for sample in self.samples if sample.thread == thread]
            profiles.append(
                {
                    "type": "sampled",
                    "name": thread,
                    "unit": "milliseconds",
                    "startValue": 0,
                    "endValue": weight * len(stacks),
                    "samples": [[frames.setdefault(name, len(frames)) for name in stack] for stack in stacks],
                    "weights": [weight] * len(stacks),
                }
            )
        data = {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": "greenbeat",
            "name": "greenbeat",
            "shared": {"frames": [{"name": name} for name in frames]},
            "profiles": profiles,
        }
        Path(path).write_text(json.dumps(data))

    def __repr__(self) -> str:
        return f"<greenbeat.profile, {'running' if _current is self else f'{len(self.samples)} samples'}>"


def profile(interval: float = 0.001) -> Profile:
    """Sample what kernels and guests do while a `with` block runs, or from `start()` to `stop()`.

    Args:
        interval: seconds between two beats. Kernels that fork have one in half a millisecond anyway.

    Raises:
        RuntimeError: when it begins: another profile is being taken.
    """
    return Profile(interval)


# ---------------------------------------------------------------- native code


def _period() -> ctypes.c_uint64:
    """Nanoseconds between two beats, as the pacemaker has them."""
    return ctypes.c_uint64.from_address(engine.address("runtime.pacemaker.pacemaker_period"))


def _tell_code() -> None:
    """Tell native code where kernels' code is now."""
    functions = linked.functions()
    ranges = [place for start, size, _ in functions for place in (start, start + size)]
    _maps.append((ctypes.c_uint64 * (len(ranges) + 1))(len(functions), *ranges))
    native.set_code_map(ctypes.addressof(_maps[-1]))


# ---------------------------------------------------------------- names


def _samples(words: memoryview, threads: dict[int, str]) -> Iterator[Sample]:
    """The samples in a buffer."""
    known, functions = Names(), linked.functions()
    starts = [start for start, _, _ in functions]
    place = 0
    while place + HEAD_WORDS <= len(words):
        kind, count = divmod(words[place], 1 << COUNT_BITS)
        end = place + HEAD_WORDS + count
        if kind not in (KERNEL, GUEST) or count > MOST_FRAMES or end > len(words):
            return
        time, thread, code, *frames = words[place + 1 : end]
        if kind == KERNEL:
            names = [functions[bisect.bisect_right(starts, frame - 1) - 1][2] for frame in frames]
            stack = _kernel_stack(known.code(code), names)
        else:
            stack = tuple(known.guest(*frames[i : i + 2]) for i in range(len(frames) - 2, -1, -2))
        if stack:
            yield Sample(threads.get(thread, f"thread {thread:#x}"), time, stack)
        place = end


def _kernel_stack(entry: str, names: list[str]) -> tuple[str, ...]:
    """The kernels on a fiber's stack, given functions from the innermost on: without what was there before the poll."""
    poll = next((position for position, name in enumerate(names) if name in POLLS), 0)
    found = [
        name.removesuffix(".chunk").removesuffix(".body")
        for name in names[poll:]
        if not name.startswith(SUPPORT) and name != "thunk" and not name.endswith(".thunk")
    ]
    if not found or found[-1] != entry:
        found.append(entry)
    return tuple(reversed(found))


def _forget() -> None:
    global _current, _guard
    if _current is not None:
        native.stop_profiling()
        linked.forget(_tell_code)
    _current, _guard = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
