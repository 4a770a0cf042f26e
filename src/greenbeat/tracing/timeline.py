"""From what workers noted to a timeline: slices, instants and arrows, in the format of Chrome's trace viewer.

    RUN fiber ... STOP ─▶ a slice, named after what the fiber runs; with how it ended: done, parked, yielded
    STOP to call ... RUN ─▶ a slice inside of that, of the host's function
    REST ... RISE ─▶ a slice in which the worker sleeps
    PROMOTE, SPAWN ─▶ an instant, and an arrow to the first slice of the child
    JOIN ─▶ an instant, and an arrow from the last slice of the child

Tasks are numbered in the order in which they were first seen. Times are microseconds, with three digits behind the
point. `summary.py` reads the same format.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from greenbeat.tasks.layout import CALLING, DONE, PARKED, PAUSED, YIELDED
from greenbeat.tasks.tracing import (
    BEAT,
    JOIN,
    PROMOTE,
    REST,
    RISE,
    RUN,
    SPAWN,
    STEAL,
    STOP,
    UNFORK,
    WAKE,
)
from greenbeat.tracing.summary import Summary, summary

ENDS = {DONE: "done", YIELDED: "yielded", PARKED: "parked", PAUSED: "paused"}
RUNNING = "running"
INSTANTS = {BEAT: "beat", SPAWN: "spawn", PROMOTE: "promotion", UNFORK: "unfork", JOIN: "join", WAKE: "wake"}
INSTANTS[STEAL] = "steal"
PROCESS = 1


class Happening(NamedTuple):
    """One event as it was noted, see `tasks/tracing.py`."""

    time: int
    subject: int
    other: int
    kind: int
    number: int


@dataclass
class Track:
    """What one worker noted, in order; `dropped` events were before."""

    name: str
    number: int
    happenings: list[Happening]
    dropped: int


@dataclass
class _Slice:
    """Something that goes on, on a track."""

    name: str
    category: str
    start: int
    task: int | None = None


class Timeline:
    """What happened between two times of the monotonic clock, in nanoseconds.

    Args:
        start, end: the times.
        tracks: what workers noted.
        name: gives the name of what a RUN says is run.

    Attributes:
        events: as Chrome's trace viewer has them.
        dropped: how many happenings there was no room for.
    """

    def __init__(self, start: int, end: int, tracks: list[Track], name: Callable[[int, int], str]) -> None:
        self.dropped = sum(track.dropped for track in tracks)
        # Where something was dropped, nothing is known before the first that was kept: all tracks begin there.
        self.start = max([start, *(track.happenings[0].time for track in tracks if track.dropped)])
        self.end = end
        self._name = name
        self._tasks: dict[int, int] = {}
        self._ended: set[int] = set()
        self._count = 0
        # Track, start and end of each task's latest slice.
        self._last_slices: dict[int, tuple[int, int, int]] = {}
        # Arrows to tasks that have not begun; a fork that was taken back never does.
        self._pending: dict[int, tuple[dict[str, Any], int, int]] = {}
        self.events: list[dict[str, Any]] = list(self._describe(tracks))
        self._convert(tracks)

    @property
    def duration(self) -> float:
        """How long it was, in microseconds."""
        return self._micro(self.end)

    def summary(self) -> Summary:
        """What it comes to."""
        return summary(self.events, self.duration, self.dropped)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON."""
        head = {"displayTimeUnit": "ns", "otherData": {"dropped": self.dropped, "duration": self.duration}}
        text = ",\n".join(json.dumps(event, separators=(",", ":")) for event in self.events)
        Path(path).write_text(f'{json.dumps(head)[:-1]}, "traceEvents": [\n{text}\n]}}\n')

    # ---------------------------------------------------------------- conversion

    def _describe(self, tracks: list[Track]) -> Iterator[dict[str, Any]]:
        yield {"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": "greenbeat"}}
        for place, track in enumerate(sorted(tracks, key=lambda track: track.number)):
            head = {"ph": "M", "pid": PROCESS, "tid": track.number}
            yield {**head, "name": "thread_name", "args": {"name": track.name}}
            yield {**head, "name": "thread_sort_index", "args": {"sort_index": place}}

    def _convert(self, tracks: list[Track]) -> None:
        merged = [(h.time, t.number, h) for t in tracks for h in t.happenings if h.time >= self.start]
        # Stable, so that what one worker noted stays in order.
        merged.sort(key=lambda each: each[0])
        open_slices: dict[int, list[_Slice]] = {track.number: [] for track in tracks}
        before: dict[int, Happening | None] = {}
        for _, number, happening in merged:
            self._take(number, open_slices[number], happening, before.get(number))
            before[number] = happening
        for number, slices in open_slices.items():
            while slices:
                self._close(number, slices, self.end, RUNNING)

    def _take(self, track: int, slices: list[_Slice], happening: Happening, before: Happening | None) -> None:
        kind, time = happening.kind, happening.time
        if kind == RUN:
            task = self._task_that_runs(happening.subject)
            if slices and slices[-1].category == "host" and slices[-1].task == task:
                self._close(track, slices, time, "done")
                return
            self._open(track, slices, _Slice(self._name(happening.other, happening.number), "task", time, task))
        elif kind == STOP:
            self._stop(track, slices, happening, before)
        elif kind == REST:
            slices.append(_Slice("asleep", "worker", time))
        elif kind == RISE:
            if not slices or slices[-1].category != "worker":
                # It fell asleep before the recording began, or before what was kept of it.
                slices.append(_Slice("asleep", "worker", before.time if before is not None else self.start))
            self._close(track, slices, time, "woken")
        else:
            self._instant(track, slices, happening)

    def _stop(self, track: int, slices: list[_Slice], happening: Happening, before: Happening | None) -> None:
        task = self._task(happening.subject)
        if not slices or slices[-1].task != task:
            # It was running when the recording began.
            self._open(track, slices, _Slice("task", "task", self.start, task))
        if happening.number == CALLING:
            # At a beat, a thread of Python's looks for signals.
            at_beat = before is not None and before.kind == BEAT and before.subject == happening.subject
            slices.append(_Slice("signals" if at_beat else "host call", "host", happening.time, task))
            return
        self._close(track, slices, happening.time, ENDS.get(happening.number, "done"))
        if happening.number == DONE:
            self._ended.add(task)

    def _instant(self, track: int, slices: list[_Slice], happening: Happening) -> None:
        kind, time = happening.kind, happening.time
        arguments: dict[str, Any] = {}
        if happening.subject:
            arguments["task"] = self._task(happening.subject)
        elif kind == WAKE and slices and slices[-1].task is not None:
            arguments["task"] = slices[-1].task
        if kind in (SPAWN, PROMOTE):
            child = arguments["child"] = self._begin(happening.other)
            if kind == PROMOTE:
                arguments["tokens"] = happening.number
            flow = self._flow(INSTANTS[kind], child)
            self._pending[child] = {"ph": "s", **flow}, track, time
        elif kind in (UNFORK, JOIN):
            child = arguments["child"] = self._task(happening.other)
            if kind == UNFORK:
                self._ended.add(child)
            elif child in self._last_slices:
                flow = self._flow("join", child)
                there, start, end = self._last_slices[child]
                # An arrow belongs to the slice that it begins in.
                self._emit({"ph": "s", **flow}, there, max(start, end - 1))
                self._emit({"ph": "f", "bp": "e", **flow}, track, time)
        elif kind == WAKE:
            arguments["woken"] = self._task(happening.other)
        elif kind == STEAL:
            arguments["from"] = happening.number
        self._emit({"ph": "i", "s": "t", "cat": "event", "name": INSTANTS[kind], "args": arguments}, track, time)

    def _open(self, track: int, slices: list[_Slice], made: _Slice) -> None:
        slices.append(made)
        assert made.task is not None
        if made.task in self._pending:
            arrow, there, time = self._pending.pop(made.task)
            self._emit(arrow, there, time)
            self._emit({**arrow, "ph": "f", "bp": "e"}, track, made.start)

    def _close(self, track: int, slices: list[_Slice], time: int, end: str) -> None:
        found = slices.pop()
        arguments = {"end": end} if found.task is None else {"task": found.task, "end": end}
        event = {"ph": "X", "cat": found.category, "name": found.name, "args": arguments}
        self._emit({**event, "dur": (time - found.start) / 1000}, track, found.start)
        if found.task is not None and found.category == "task":
            self._last_slices[found.task] = track, found.start, time

    def _emit(self, event: dict[str, Any], track: int, time: int) -> None:
        self.events.append({**event, "pid": PROCESS, "tid": track, "ts": self._micro(time)})

    def _flow(self, name: str, child: int) -> dict[str, Any]:
        return {"cat": "flow", "name": name, "id": 2 * child + (name == "join")}

    def _micro(self, time: int) -> float:
        return (time - self.start) / 1000

    # ---------------------------------------------------------------- tasks

    def _begin(self, fiber: int) -> int:
        """A new task on a fiber."""
        self._count += 1
        self._tasks[fiber] = self._count
        return self._count

    def _task(self, fiber: int) -> int:
        found = self._tasks.get(fiber)
        return self._begin(fiber) if found is None else found

    def _task_that_runs(self, fiber: int) -> int:
        """The task of a fiber that goes on: after an end it is another one."""
        found = self._task(fiber)
        return self._begin(fiber) if found in self._ended else found
