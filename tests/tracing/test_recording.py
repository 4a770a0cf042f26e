"""`greenbeat.trace`: what workers do becomes slices, instants and arrows."""

import json
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.tracing.summary import read
from greenbeat.tracing.timeline import Timeline

from .kernels import GUEST, echo, fib, leaf, spawns, waves

Event = dict[str, Any]


def named(timeline: Timeline, phase: str, name: str) -> list[Event]:
    return [event for event in timeline.events if event["ph"] == phase and event["name"] == name]


def slices(timeline: Timeline, suffix: str) -> list[Event]:
    """The slices of tasks whose name ends so."""
    return [e for e in timeline.events if e["ph"] == "X" and e["cat"] == "task" and e["name"].endswith(suffix)]


def traced_until(call: Any, found: Any) -> Timeline:
    """Trace a call, again and again with more work, until something was seen: beats come when they come."""
    for size in range(20):
        with gb.trace() as trace:
            call(size)
        assert trace.timeline is not None
        if found(trace.timeline):
            return trace.timeline
    raise AssertionError("it was never seen")


def test_a_file_that_viewers_read(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with gb.trace(path) as trace:
        assert fib(12) == 144
    data = json.loads(path.read_text())
    assert data["otherData"]["dropped"] == 0 and data["otherData"]["duration"] > 0
    assert trace.timeline is not None and data["traceEvents"] == trace.timeline.events
    for event in data["traceEvents"]:
        assert event["ph"] in "MXisf" and event["pid"] == 1
        if event["ph"] != "M":
            assert 0 <= event["ts"] <= data["otherData"]["duration"] and isinstance(event["tid"], int)
    (whole,) = slices(trace.timeline, ".fib")
    assert whole["args"]["end"] == "done"
    names = {e["tid"]: e["args"]["name"] for e in named(trace.timeline, "M", "thread_name")}
    assert names[whole["tid"]] == threading.current_thread().name
    assert read(path) == trace.timeline.summary()


def test_promotions_have_arrows_and_are_joined() -> None:
    fib(5)
    with gb.Runtime(workers=2):
        timeline = traced_until(lambda size: fib(24 + size), lambda found: named(found, "f", "join"))
    promotions = named(timeline, "i", "promotion")
    assert promotions and named(timeline, "i", "beat")
    children = {event["args"]["child"] for event in promotions}
    assert len(children) == len(promotions)
    begun = {event["args"]["task"] for event in slices(timeline, ".fib")}
    taken_back = {event["args"]["child"] for event in named(timeline, "i", "unfork")}
    joined = {event["args"]["child"] for event in named(timeline, "i", "join")}
    assert not begun & taken_back
    assert taken_back | joined == children
    assert joined <= begun
    # Each arrow has both of its ends, and the later one is in a slice of the child.
    for name in ("promotion", "join"):
        starts, ends = named(timeline, "s", name), named(timeline, "f", name)
        assert Counter(e["id"] for e in starts) == Counter(e["id"] for e in ends)
    for arrow in named(timeline, "f", "promotion"):
        (child,) = [e for e in slices(timeline, ".fib") if e["args"]["task"] == arrow["id"] // 2][:1]
        assert (arrow["ts"], arrow["tid"]) == (child["ts"], child["tid"])


def test_parts_of_loops_have_names() -> None:
    waves(5)
    with gb.Runtime(workers=2):
        timeline = traced_until(lambda size: waves(1_000_000 << size), lambda found: slices(found, ".waves.loop.1"))
    assert slices(timeline, ".waves")


def test_spawned_tasks() -> None:
    assert spawns(3) == 3
    with gb.trace() as trace:
        assert spawns(5) == 10
    timeline = trace.timeline
    assert timeline is not None
    assert len(named(timeline, "i", "spawn")) == len(named(timeline, "i", "join")) == 5
    leaves = slices(timeline, ".leaf")
    assert len({event["args"]["task"] for event in leaves}) == len(leaves) == 5
    assert {event["args"]["end"] for event in leaves} == {"done"}
    ends = Counter(event["args"]["end"] for event in slices(timeline, ".spawns"))
    assert ends["done"] == 1 and set(ends) <= {"done", "parked", "yielded"}
    wakes = named(timeline, "i", "wake")
    assert len(wakes) == ends["parked"]


def test_tasks_of_python() -> None:
    requests, answers = gb.Channel(gb.i64), gb.Channel(gb.i64)
    with gb.Runtime(workers=1), gb.trace() as trace:
        task = gb.spawn(echo, requests, answers)
        for value in range(3):
            requests.send(value)
            assert answers.recv() == value + 1
        requests.close()
        task.join()
    timeline = trace.timeline
    assert timeline is not None
    (spawn,) = named(timeline, "i", "spawn")
    parts = slices(timeline, ".echo")
    assert {event["args"]["task"] for event in parts} == {spawn["args"]["child"]}
    names = {e["tid"]: e["args"]["name"] for e in named(timeline, "M", "thread_name")}
    assert {names[event["tid"]] for event in parts} == {"greenbeat worker 0"}
    assert Counter(event["args"]["end"] for event in parts)["done"] == 1
    # This thread, which runs no tasks, wakes the one that waits.
    assert any(names[event["tid"]] == "threads that run no tasks" for event in named(timeline, "i", "wake"))


def test_workers_sleep() -> None:
    with gb.Runtime(workers=1):
        gb.spawn(leaf, 1).join()
        with gb.trace() as trace:
            for value in range(3):
                gb.spawn(leaf, value).join()
    assert trace.timeline is not None
    assert named(trace.timeline, "X", "asleep")


def test_guests_have_their_functions_names() -> None:
    instance = gb.Module.from_wat(GUEST).instantiate()
    with gb.trace() as trace:
        assert gb.spawn(instance.exports.fib, 10).join() == 55
    assert trace.timeline is not None
    assert slices(trace.timeline, "$fib")


def test_host_functions_are_slices_inside() -> None:
    seen: list[int] = []
    text = '(module (import "m" "f" (func $f (param i32))) (func $g (export "g") (call $f (i32.const 7))))'
    instance = gb.Module.from_wat(text).instantiate({"m": {"f": seen.append}})
    with gb.trace() as trace:
        gb.spawn(instance.exports.g).join()
    assert trace.timeline is not None and seen == [7]
    (outer,) = slices(trace.timeline, "$g")
    calls = named(trace.timeline, "X", "host call")
    assert any(outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= outer["ts"] + outer["dur"] + 0.001 for e in calls)


def test_the_latest_events_are_kept() -> None:
    spawns(1)
    with gb.trace(events=64) as trace:
        spawns(500)
    timeline = trace.timeline
    assert timeline is not None and timeline.dropped > 0
    assert timeline.summary().dropped == timeline.dropped
    assert all(0 <= event["ts"] <= timeline.duration for event in timeline.events if event["ph"] != "M")
    # The end is there, the beginning is not.
    assert slices(timeline, ".spawns")[-1]["args"]["end"] == "done"
    assert len(slices(timeline, ".leaf")) < 64


def test_one_after_the_other() -> None:
    for size in (64, 1000, 64):
        trace = gb.trace(events=size).start()
        spawns(2)
        timeline = trace.stop()
        assert len(slices(timeline, ".leaf")) == 2
    with pytest.raises(RuntimeError, match="this trace is not being recorded"):
        trace.stop()


def test_nothing_is_noted_without_a_trace() -> None:
    with gb.trace() as trace:
        pass
    spawns(3)
    with gb.trace() as trace:
        pass
    assert trace.timeline is not None and not slices(trace.timeline, "")


def test_mistakes() -> None:
    with gb.trace(), pytest.raises(RuntimeError, match="a trace is being recorded already: stop it first"):
        gb.trace().start()
    with pytest.raises(ValueError, match="events must be from 64 to 16777216: 1"):
        gb.trace(events=1)
    with pytest.raises(TypeError, match="events is a number of events, not str 'many'"):
        gb.trace(events="many")  # type: ignore[arg-type]


def test_what_it_is_called() -> None:
    trace = gb.trace("run.json")
    assert repr(trace) == "<greenbeat.trace run.json, not started>"
    trace = gb.trace().start()
    assert repr(trace) == "<greenbeat.trace without a file, recording>"
    trace.stop()
    assert repr(trace) == "<greenbeat.trace without a file, stopped>"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_not_traced() -> None:
    spawns(1)
    with gb.trace():
        child = os.fork()
        if child == 0:
            good = False
            try:
                good = spawns(10) == 45
                with gb.trace() as mine:
                    spawns(2)
                good = good and mine.timeline is not None and len(slices(mine.timeline, ".leaf")) == 2
            finally:
                os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("events", [64, 1 << 16])
def test_what_holds_of_every_trace(events: int) -> None:
    """Slices of a track are beside or inside of each other; no chain is longer than the trace, or than all work."""
    assert (spawns(2), fib(5)) == (1, 5) and waves(2)
    with gb.Runtime(workers=2), gb.trace(events=events) as trace:
        spawns(300)
        fib(24)
        gb.gather(*[gb.spawn(fib, 15) for _ in range(4)])
        waves(100_000)
    timeline = trace.timeline
    assert timeline is not None
    found = timeline.summary()
    assert 0 < found.span <= min(found.duration, found.work) + 0.01
    assert found.work <= found.duration * len(found.workers) + 0.01
    for track in {event["tid"] for event in timeline.events if event["ph"] == "X"}:
        parts = [(e["ts"], -e["dur"]) for e in timeline.events if e["ph"] == "X" and e["tid"] == track]
        ends: list[float] = []
        for start, length in sorted(parts):
            while ends and ends[-1] <= start + 0.0005:
                ends.pop()
            assert not ends or start - length <= ends[-1] + 0.0005
            ends.append(start - length)


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        gb.trace(tmp_path / "nowhere" / "run.json").start()
    with gb.trace(tmp_path / "run.json"):
        pass
