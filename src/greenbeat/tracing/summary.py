"""What a trace comes to: work and span, how busy each worker was, promotions, steals, parks.

*Work* is the time that tasks ran. The *span* is the longest chain of it: a task's chain goes on from that of the task
that spawned or forked it, and whoever joins a task, or is woken by one, waits for its chain. No number of workers could
have run what was forked faster than the span.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The order of what happens at one time.
END, BEGIN, END_AT_ONCE = range(3)


@dataclass
class Worker:
    """One track: how long it ran tasks, and how long it slept. Times are microseconds."""

    name: str
    busy: float = 0.0
    asleep: float = 0.0
    steals: int = 0


@dataclass
class Summary:
    """The numbers of a trace; times are microseconds."""

    duration: float
    dropped: int
    workers: list[Worker]
    work: float = 0.0
    span: float = 0.0
    tasks: int = 0
    beats: int = 0
    promotions: int = 0
    most_promotions: int = 0
    unforked: int = 0
    spawned: int = 0
    joins: int = 0
    wakes: int = 0
    host_calls: int = 0
    ends: dict[str, int] = field(default_factory=dict)

    @property
    def parallelism(self) -> float:
        """Work over span: how many workers could have been kept busy."""
        return self.work / self.span if self.span else 0.0

    @property
    def steals(self) -> int:
        """How often a worker took something from another one."""
        return sum(worker.steals for worker in self.workers)

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"duration      {_time(self.duration)}"
        yield f"work          {_time(self.work)}  the time that {_many(self.tasks, 'task')} ran"
        yield f"span          {_time(self.span)}  the longest chain of it"
        yield f"parallelism   {self.parallelism:>9.2f}     work / span"
        busy = sum(worker.busy for worker in self.workers)
        if self.duration:
            yield f"utilisation   {busy / self.duration:>9.2f}     workers busy on average"
        per_beat = f", {self.promotions / self.beats:.1f} a beat" if self.beats else ""
        yield f"beats         {self.beats:>9}"
        most = f", at most {self.most_promotions} between two beats of a task" if self.promotions else ""
        yield f"promotions    {self.promotions:>9}{per_beat}{most}, {self.unforked} taken back"
        yield f"spawned       {self.spawned:>9}"
        yield f"joins         {self.joins:>9}"
        yield f"steals        {self.steals:>9}"
        yield f"parks         {self.ends.get('parked', 0):>9}"
        yield f"yields        {self.ends.get('yielded', 0):>9}"
        yield f"wakes         {self.wakes:>9}"
        yield f"host calls    {self.host_calls:>9}"
        advice = "  events: record less, or keep more (events=...)" if self.dropped else ""
        yield f"dropped       {self.dropped:>9}{advice}"
        yield ""
        width = max([len("worker"), *(len(worker.name) for worker in self.workers)])
        yield f"{'worker':{width}}       busy              asleep              steals"
        for worker in self.workers:
            shares = [f"{_time(part)} {_share(part, self.duration)}" for part in (worker.busy, worker.asleep)]
            yield f"{worker.name:{width}}  {'  '.join(shares)}  {worker.steals:>6}"


def _time(micro: float) -> str:
    return f"{micro / 1000:>9.3f} ms"


def _share(part: float, whole: float) -> str:
    return f"{part / whole if whole else 0:>6.1%}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def read(path: str | os.PathLike[str]) -> Summary:
    """The summary of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no trace of Greenbeat's.
    """
    try:
        data = json.loads(Path(path).read_bytes())
        return summary(data["traceEvents"], data["otherData"]["duration"], data["otherData"]["dropped"])
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise ValueError("this is no trace that was recorded by greenbeat.trace") from problem


def summary(events: list[dict[str, Any]], duration: float, dropped: int) -> Summary:
    """The summary of a timeline's events."""
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    found = Summary(duration, dropped, [])
    workers = {track: Worker(name) for track, name in names.items()}
    for event in events:
        if event["ph"] == "X":
            _count_slice(found, workers[event["tid"]], event)
    _Chains(found, workers).follow(events)
    found.workers = [worker for worker in workers.values() if worker.busy or worker.asleep]
    return found


def _count_slice(found: Summary, worker: Worker, event: dict[str, Any]) -> None:
    category, name = event["cat"], event["name"]
    if category == "worker":
        worker.asleep += event["dur"]
    elif category == "host":
        found.host_calls += name != "signals"
    else:
        end = event["args"]["end"]
        found.ends[end] = found.ends.get(end, 0) + 1


class _Chains:
    """Follows the tasks in order of time. On a track, one slice may be inside of another, whose time stands still."""

    def __init__(self, found: Summary, workers: dict[int, Worker]) -> None:
        self.found, self.workers = found, workers
        self.length: defaultdict[int, float] = defaultdict(float)
        self.running: defaultdict[int, list[int]] = defaultdict(list)
        self.since: dict[int, float] = {}
        self.promoted: defaultdict[int, int] = defaultdict(int)
        self.ran: set[int] = set()

    def follow(self, events: list[dict[str, Any]]) -> None:
        """Take what has to do with tasks, in order. At one time ends come first, then what encloses others."""
        steps: list[tuple[float, int, float, dict[str, Any]]] = []
        for event in events:
            if event["ph"] == "X" and event["cat"] == "task":
                length = event["dur"]
                steps.append((event["ts"], BEGIN, -length, event))
                steps.append((round(event["ts"] + length, 3), END if length else END_AT_ONCE, 0, event))
            elif event["ph"] == "i":
                steps.append((event["ts"], BEGIN, 0, event))
        for time, kind, _, event in sorted(steps, key=lambda step: step[:3]):
            track = event["tid"]
            self._advance(track, time)
            if event["ph"] == "i":
                self._instant(track, event["name"], event["args"])
            elif kind == BEGIN:
                self.running[track].append(event["args"]["task"])
                self.ran.add(event["args"]["task"])
            else:
                self.running[track].remove(event["args"]["task"])
        self.found.tasks = len(self.ran)
        self.found.span = max(self.length.values(), default=0.0)

    def _advance(self, track: int, time: float) -> None:
        """What runs on a track has run until now."""
        if self.running[track]:
            passed = time - self.since[track]
            self.length[self.running[track][-1]] += passed
            self.found.work += passed
            self.workers[track].busy += passed
        self.since[track] = time

    def _instant(self, track: int, name: str, arguments: dict[str, Any]) -> None:
        found, task = self.found, arguments.get("task")
        if name == "beat":
            found.beats += 1
            self.promoted[arguments["task"]] = 0
        elif name == "promotion":
            found.promotions += 1
            self.promoted[arguments["task"]] += 1
            found.most_promotions = max(found.most_promotions, self.promoted[arguments["task"]])
            self._depend(arguments["child"], task)
        elif name == "spawn":
            found.spawned += 1
            self._depend(arguments["child"], task)
        elif name == "unfork":
            found.unforked += 1
        elif name == "join":
            found.joins += 1
            self._depend(arguments["task"], arguments["child"])
        elif name == "wake":
            found.wakes += 1
            self._depend(arguments["woken"], task)
        elif name == "steal":
            self.workers[track].steals += 1

    def _depend(self, later: int, earlier: int | None) -> None:
        """A task goes on after another one, so far."""
        if earlier is not None and earlier in self.length:
            self.length[later] = max(self.length[later], self.length[earlier])
