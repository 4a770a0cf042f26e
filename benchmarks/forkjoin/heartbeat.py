"""A simulation of the heartbeat scheduler, event by event, on any number of processors.

A program is what it would do on one processor, with its forks:

    Work(ns)                work without forks
    Sequence(parts)         one after the other
    Fork(left, right)       `par`
    Loop(costs)             `prange`: the time of each iteration

Processors run fibers. A fiber keeps what it has to do next on a stack, among it the records of its forks, as in
`greenbeat/forkjoin/promotion.py`; beats come to all at once, and give tokens; promoted records go to the processor's
queue, whose other end is stolen from. What is not simulated: that processors share memory and caches.
"""

import bisect
import heapq
import itertools
import random
from collections import deque
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from typing import Any

BEAT = 500_000.0
TOKENS = 30


@dataclass(frozen=True)
class Costs:
    """What the scheduler's steps take, in nanoseconds.

    Attributes:
        promote: to make a task of a record.
        join: to take the result of a task that another processor ran.
        steal: to take a task of another processor.
        wake: until a processor that sleeps has begun to look for work.
    """

    promote: float = 150.0
    join: float = 150.0
    steal: float = 300.0
    wake: float = 20_000.0


@dataclass(frozen=True)
class Work:
    """So many nanoseconds."""

    time: float


@dataclass(frozen=True)
class Sequence:
    """One after the other."""

    parts: "Items[Program]"


@dataclass(frozen=True)
class Fork:
    """Two branches that may run at the same time."""

    left: "Program"
    right: "Program"


@dataclass(frozen=True)
class Loop:
    """Iterations that may; `sums[i]` is the time of those before the i-th."""

    sums: Items[float]


Program = Work | Sequence | Fork | Loop


def loop(costs: Items[float]) -> Loop:
    """A loop whose iterations take so long."""
    return Loop([0.0, *itertools.accumulate(costs)])


def work_of(program: Program) -> float:
    """The time on one processor without any scheduling."""
    total, waiting = 0.0, [program]
    while waiting:
        match waiting.pop():
            case Work(time):
                total += time
            case Sequence(parts):
                waiting += parts
            case Fork(left, right):
                waiting += (left, right)
            case Loop(sums):
                total += sums[-1]
    return total


def span_of(program: Program) -> float:
    """The time of the critical path: on as many processors as one likes, if scheduling cost nothing."""
    results: list[float] = []
    waiting: list[tuple[Program, bool]] = [(program, False)]
    while waiting:
        each, ready = waiting.pop()
        match each:
            case Work(time):
                results.append(time)
            case Loop(sums):
                results.append(max((b - a for a, b in itertools.pairwise(sums)), default=0.0))
            case Sequence(parts) if not ready:
                waiting += [(each, True), *((part, False) for part in parts)]
            case Fork(left, right) if not ready:
                waiting += [(each, True), (left, False), (right, False)]
            case Sequence(parts):
                several = [results.pop() for _ in parts]
                results.append(sum(several))
            case Fork():
                results.append(max(results.pop(), results.pop()))
    return results[0]


@dataclass(eq=False)
class Record:
    """A fork that is not joined; `task` once it is promoted."""

    right: Program
    task: "Fiber | None" = None


@dataclass(eq=False)
class LoopRecord:
    """A loop: what is left are iterations from `next` to `end`; `parts` were split off.

    If it is `running`, the next one begins at `since`.
    """

    sums: Items[float]
    next: int
    end: int
    since: float = 0.0
    running: bool = False
    parts: "list[Fiber]" = field(default_factory=list)


@dataclass(eq=False)
class Fiber:
    """A task: what it has to do next is on top of its stack."""

    stack: list[Any]
    tokens: int = 0
    begun: bool = False
    ended: bool = False
    waiter: "Fiber | None" = None
    records: "deque[Record | LoopRecord]" = field(default_factory=deque)


@dataclass(eq=False)
class Processor:
    """Somebody who runs fibers; `version` tells events that are out of date."""

    number: int
    fiber: Fiber | None = None
    queue: deque[Fiber] = field(default_factory=deque)
    version: int = 0
    until: float = 0.0
    asleep: bool = True


@dataclass
class Result:
    """What came out: nanoseconds, and how often things happened."""

    time: float
    promotions: int
    steals: int


class Simulation:
    """One run of a program."""

    def __init__(self, program: Program, processors: int, costs: Costs, *, tokens: int = TOKENS, seed: int = 1) -> None:
        self.costs, self.tokens, self.random = costs, tokens, random.Random(seed)
        self.processors = [Processor(number) for number in range(processors)]
        self.events: list[tuple[float, int, str, Any, int]] = []
        self.count = itertools.count()
        self.promotions = self.steals = 0
        self.root = Fiber([program])
        first = self.processors[0]
        first.asleep = False
        self.post(0.0, "start", first, first.version)
        first.fiber = self.root
        self.post(BEAT, "beat", None, 0)

    def post(self, time: float, kind: str, processor: Processor | None, version: int) -> None:
        """Let something happen at a time."""
        heapq.heappush(self.events, (time, next(self.count), kind, processor, version))

    def run(self) -> Result:
        """Until the program has ended."""
        while True:
            time, _, kind, processor, version = heapq.heappop(self.events)
            if kind == "beat":
                for each in self.processors:
                    if each.fiber is not None:
                        each.fiber.tokens = self.tokens
                        self.spend(each, time)
                self.post(time + BEAT, "beat", None, 0)
            elif processor.version == version:
                if processor.fiber is None:
                    self.find(processor, time)
                else:
                    self.advance(processor, time)
            if self.root.ended:
                return Result(time, self.promotions, self.steals)

    # ---------------------------------------------------------------- a fiber

    def advance(self, processor: Processor, time: float) -> None:
        """Go on with a fiber until it works, waits or has ended."""
        fiber = processor.fiber
        assert fiber is not None
        fiber.begun = True
        while fiber.stack:
            item = fiber.stack.pop()
            match item:
                case Work(duration):
                    self.work(processor, time, duration)
                    return
                case Sequence(parts):
                    fiber.stack.extend(reversed(parts))
                case Fork(left, right):
                    record = Record(right)
                    fiber.records.append(record)
                    fiber.stack += (record, left)
                    if fiber.tokens:
                        time = self.spend(processor, time)
                case Loop(sums):
                    fiber.stack.append(LoopRecord(sums, 0, len(sums) - 1))
                case LoopRecord() if item.next < item.end and not item.running:
                    fiber.stack.append(item)
                    fiber.records.append(item)
                    item.since = time
                    if fiber.tokens:
                        item.since = time = self.spend(processor, time)
                    item.running = True
                    self.work(processor, time, item.sums[item.end] - item.sums[item.next])
                    return
                case LoopRecord():
                    item.running, item.next = False, item.end
                    if fiber.records and fiber.records[-1] is item:
                        fiber.records.pop()
                    if item.parts:
                        part = item.parts[-1]
                        if not self.join(processor, fiber, item, part, time):
                            return
                        item.parts.pop()
                        fiber.stack.append(item)
                        if part.ended:
                            time += self.costs.join
                        else:
                            item.next, item.end = part.stack[0].next, part.stack[0].end
                case Record():
                    if item.task is None:
                        fiber.records.pop()
                        fiber.stack.append(item.right)
                    elif not self.join(processor, fiber, item, item.task, time):
                        return
                    elif item.task.ended:
                        time += self.costs.join
                    else:
                        fiber.stack.append(item.right)
        fiber.ended = True
        processor.fiber = fiber.waiter
        processor.until = time
        processor.version += 1
        if processor.fiber is None:
            self.find(processor, time)
        else:
            self.post(time, "go on", processor, processor.version)

    def work(self, processor: Processor, time: float, duration: float) -> None:
        """Work until a time."""
        processor.version += 1
        processor.until = time + duration
        self.post(processor.until, "worked", processor, processor.version)

    def join(self, processor: Processor, fiber: Fiber, item: Any, task: Fiber, time: float) -> bool:
        """Whether a task has ended, or is taken back; else the fiber waits, and its processor looks for others."""
        if task.ended:
            return True
        if not task.begun and processor.queue and processor.queue[-1] is task:
            processor.queue.pop()
            return True
        fiber.stack.append(item)
        task.waiter = fiber
        processor.fiber = None
        processor.version += 1
        self.find(processor, time)
        return False

    # ---------------------------------------------------------------- promotion

    def spend(self, processor: Processor, time: float) -> float:
        """Promote as long as there are tokens and records, the oldest first; the time afterwards."""
        fiber = processor.fiber
        assert fiber is not None
        done = 0
        while fiber.tokens and fiber.records:
            record = fiber.records[0]
            if isinstance(record, LoopRecord):
                if record.running and time > record.since:
                    passed = record.sums[record.next] + time - record.since
                    # The iteration that is running ends before the next one begins.
                    record.next = min(bisect.bisect_left(record.sums, passed), record.end)
                    record.since = time + record.sums[record.next] - passed
                if record.end <= record.next:
                    fiber.records.popleft()
                    continue
                middle = record.next + (record.end - record.next) // 2
                task = Fiber([LoopRecord(record.sums, middle, record.end)])
                record.parts.append(task)
                record.end = middle
            else:
                fiber.records.popleft()
                task = record.task = Fiber([record.right])
            fiber.tokens -= 1
            task.tokens = fiber.tokens // 2
            fiber.tokens -= task.tokens
            processor.queue.append(task)
            done += 1
            self.wake_one(time)
        self.promotions += done
        extra = done * self.costs.promote
        if done and processor.until > time:
            top = fiber.stack[-1] if fiber.stack else None
            left = processor.until - time
            if isinstance(top, LoopRecord) and top.running:
                left = top.since - time + top.sums[top.end] - top.sums[top.next]
                top.since += extra
            self.work(processor, time + extra, left)
        return time + extra

    def wake_one(self, time: float) -> None:
        """Let one processor that sleeps look for work."""
        for each in self.processors:
            if each.asleep:
                each.asleep = False
                each.version += 1
                self.post(time + self.costs.wake, "awake", each, each.version)
                return

    def find(self, processor: Processor, time: float) -> None:
        """Take the newest task of the own queue, else the oldest of another's; else sleep."""
        if processor.queue:
            processor.fiber = processor.queue.pop()
        else:
            others = [each for each in self.processors if each.queue]
            if not others:
                processor.asleep = True
                return
            processor.fiber = self.random.choice(others).queue.popleft()
            self.steals += 1
            time += self.costs.steal
        processor.until = time
        processor.version += 1
        self.post(time, "begin", processor, processor.version)


def simulate(program: Program, processors: int, costs: Costs | None = None, **options: Any) -> Result:
    """What the program takes on so many processors."""
    return Simulation(program, processors, costs or Costs(), **options).run()
