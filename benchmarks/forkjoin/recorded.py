"""A program as a trace tells it: what ran one after the other, and what was forked.

    task 1   ── work ── promotion of 2 ── work ── promotion of 3 ── work ── join 3 ── work ── join 2 ── work ──

            = Sequence(work, Fork(Sequence(work, Fork(work, task 3), work), task 2), work)

Between a promotion and its join is the left branch, since joins come in the opposite order. A promotion that was taken
back is no fork: nothing tells where its branch ended. So is what was never joined, whose end nobody waited for. Time is
counted while the task runs; what it waits for, or is asleep for, is not in it.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from benchmarks.forkjoin.heartbeat import Fork, Program, Sequence, Work

BEGIN, INSTANT, END = 0, 1, 2


@dataclass
class Task:
    """A task's steps: nanoseconds of work, and the names and children of what happened between."""

    steps: list[float | tuple[str, int]] = field(default_factory=list)


def tasks_of(events: list[dict[str, Any]]) -> tuple[dict[int, Task], list[int]]:
    """Every task's steps, and the tasks that nobody has forked, in the order in which they began."""
    points: list[tuple[float, int, float, dict[str, Any]]] = []
    for event in events:
        if event["ph"] == "X" and event["cat"] == "task":
            points.append((event["ts"], BEGIN, -event["dur"], event))
            points.append((round(event["ts"] + event["dur"], 3), END, 0.0, event))
        elif event["ph"] == "i" and event["name"] in ("promotion", "join"):
            points.append((event["ts"], INSTANT, 0.0, event))
    tasks: defaultdict[int, Task] = defaultdict(Task)
    running: defaultdict[int, list[int]] = defaultdict(list)
    since: dict[int, float] = {}
    forked: set[int] = set()
    for time, kind, _, event in sorted(points, key=lambda point: point[:3]):
        track = event["tid"]
        if running[track]:
            tasks[running[track][-1]].steps.append((time - since[track]) * 1e3)
        since[track] = time
        arguments = event["args"]
        if kind == BEGIN:
            tasks[arguments["task"]]
            running[track].append(arguments["task"])
        elif kind == END:
            running[track].remove(arguments["task"])
        else:
            if event["name"] == "promotion":
                forked.add(arguments["child"])
            tasks[arguments["task"]].steps.append((event["name"], arguments["child"]))
    return tasks, [task for task in tasks if task not in forked]


def program_of(events: list[dict[str, Any]], whole: float | None = None) -> Program:
    """The program that a trace's events are of; what several tasks did that nobody forked was one after the other.

    Args:
        events: of a timeline.
        whole: the time in nanoseconds that its work takes altogether, when it is not recorded.
    """
    tasks, roots = tasks_of(events)
    made: dict[int, Program] = {}
    total = sum(step for task in tasks.values() for step in task.steps if isinstance(step, float))
    scale = whole / total if whole is not None else 1.0
    waiting = list(roots)
    while waiting:
        number = waiting[-1]
        joined = [step[1] for step in tasks[number].steps if isinstance(step, tuple) and step[0] == "join"]
        missing = [child for child in joined if child not in made and child in tasks]
        if missing:
            waiting += missing
        else:
            made[number] = built(tasks[number], made, scale)
            waiting.pop()
    return Sequence([made[number] for number in roots])


def built(task: Task, made: dict[int, Program], scale: float) -> Program:
    """A task's program, when those of its children are made."""
    open_forks: list[tuple[int, list[Program]]] = []
    parts: list[Program] = []

    def work(time: float) -> None:
        if parts and isinstance(parts[-1], Work):
            parts[-1] = Work(parts[-1].time + time)
        else:
            parts.append(Work(time))

    for step in task.steps:
        if isinstance(step, float):
            work(step * scale)
        elif step[0] == "promotion":
            open_forks.append((step[1], parts))
            parts = []
        elif any(child == step[1] for child, _ in open_forks):
            while True:
                child, outer = open_forks.pop()
                if child == step[1]:
                    break
                parts = [*outer, *parts]
            outer.append(Fork(Sequence(parts), made.get(child, Work(0.0))))
            parts = outer
    while open_forks:
        _, outer = open_forks.pop()
        parts = [*outer, *parts]
    return Sequence(parts)
