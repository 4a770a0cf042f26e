"""`greenbeat.trace`: what the workers did, as a file that https://ui.perfetto.dev shows.

    with gb.trace("run.json"):
        fib(35)

Native code notes events (see `tasks/tracing.py`); they become a timeline when the recording ends.
"""

import ctypes
import os
import struct
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from greenbeat.api.bridge import at, native
from greenbeat.api.checks import described, shown
from greenbeat.tasks.tracing import Event, Ring
from greenbeat.tracing.names import Names, thread_names
from greenbeat.tracing.timeline import Happening, Timeline, Track

_EVENT = struct.Struct("=QQQII")
SMALLEST, LARGEST = 1 << 6, 1 << 24

_guard = threading.Lock()
_current: "Trace | None" = None


class Trace:
    """A recording of what workers do, from `start` to `stop`, or in a `with` block. There is one at a time.

    Attributes:
        path: the file that is written when it stops; None for none.
        events: how many events are kept of each worker, the latest ones; a power of two.
        timeline: what happened, when it has stopped.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, events: int = 1 << 16) -> None:
        if not isinstance(events, int) or isinstance(events, bool):
            raise TypeError(f"events is a number of events, not {described(events)}")
        if not SMALLEST <= events <= LARGEST:
            raise ValueError(f"events must be from {SMALLEST} to {LARGEST}: {shown(events)}")
        self.path = Path(path) if path is not None else None
        self.events = 1 << (events - 1).bit_length()
        self.timeline: Timeline | None = None
        self._threads: dict[int, str] = {}
        self._start = 0

    def start(self) -> "Trace":
        """Begin; what was recorded before is forgotten.

        Raises:
            RuntimeError: a trace is being recorded.
            OSError: the file cannot be written.
        """
        global _current
        if self.path is not None and _current is None:
            # Now, not when everything has been recorded.
            self.path.open("w").close()
        with _guard:
            if _current is not None:
                raise RuntimeError("a trace is being recorded already: stop it first")
            _current, self.timeline = self, None
            self._threads = thread_names()
            self._start = time.monotonic_ns()
            native.start_tracing(self.events)
        return self

    def stop(self) -> Timeline:
        """End, and write the file, if there is a path; what happened.

        Raises:
            RuntimeError: this one is not being recorded.
            OSError: the file cannot be written.
        """
        global _current
        with _guard:
            if _current is not self:
                raise RuntimeError("this trace is not being recorded")
            epoch, end = native.stop_tracing(), time.monotonic_ns()
            threads = {**thread_names(), **self._threads}
            tracks = [track for ring in _rings(epoch) if (track := _track(ring, threads)) is not None]
            _current = None
        self.timeline = Timeline(self._start, end, tracks, Names().code)
        if self.path is not None:
            self.timeline.save(self.path)
        return self.timeline

    def __enter__(self) -> "Trace":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "recording" if _current is self else "stopped" if self.timeline is not None else "not started"
        return f"<greenbeat.trace {str(self.path) if self.path is not None else 'without a file'}, {state}>"


def trace(path: str | os.PathLike[str] | None = None, *, events: int = 1 << 16) -> Trace:
    """Record what the workers do while a `with` block runs, or from `start()` to `stop()`.

    Args:
        path: where the recording is written, as JSON for https://ui.perfetto.dev and for `greenbeat trace`.
        events: how many events are kept of each worker; the latest ones are, and what is dropped is counted.

    Raises:
        RuntimeError: when it begins: another trace is being recorded.
    """
    return Trace(path, events=events)


def _rings(epoch: int) -> list[Any]:
    """The rings that were written to in one trace."""
    found = [at(Ring, native.other_ring())]
    place = native.first_ring()
    while place:
        found.append(at(Ring, place))
        place = ctypes.cast(found[-1].next, ctypes.c_void_p).value
    return [ring for ring in found if ring.epoch == epoch and ring.written]


def _track(ring: Any, threads: dict[int, str]) -> Track | None:
    """What a ring holds. A worker that is about to write one more event may spoil the oldest: that is not read."""
    size, capacity = ctypes.sizeof(at(Event, 0)), ring.capacity
    written = ring.written
    data = ctypes.string_at(ring.events, size * capacity)
    kept = min(written, capacity - 1)
    first = (written - kept) & (capacity - 1)
    data = (data[first * size :] + data[: first * size])[: kept * size]
    happenings = [Happening(*fields) for fields in _EVENT.iter_unpack(data)]
    is_worker = ring.number != (1 << 32) - 1
    name = threads.get(ring.thread, f"thread {ring.thread:#x}") if is_worker else "threads that run no tasks"
    return Track(name, ring.number, happenings, written - kept)


def _forget() -> None:
    global _current, _guard
    _current, _guard = None, threading.Lock()
    native.forget_tracing()


os.register_at_fork(after_in_child=_forget)
