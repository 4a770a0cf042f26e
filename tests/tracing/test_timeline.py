"""Timelines and summaries of traces that were made up: every number can be told in advance."""

from typing import Any

import pytest

from greenbeat.tasks.layout import CALLING, DONE, PARKED, YIELDED
from greenbeat.tasks.tracing import BEAT, JOIN, PROMOTE, REST, RISE, RUN, SPAWN, STEAL, STOP, UNFORK, WAKE
from greenbeat.tracing.summary import Summary
from greenbeat.tracing.timeline import Happening, Timeline, Track

A, B, C = 0x1000, 0x2000, 0x3000
KERNEL = 7


def happening(time: int, kind: int, subject: int = 0, other: int = 0, number: int = 0) -> Happening:
    return Happening(time * 1000, subject, other, kind, number)


def timeline(*tracks: list[Happening], end: int = 1000, dropped: int = 0) -> Timeline:
    made = [Track(f"worker {number}", number, events, dropped) for number, events in enumerate(tracks)]
    return Timeline(0, end * 1000, made, lambda code, number: f"code {code}")


def shown(found: Timeline, phase: str) -> list[tuple[Any, ...]]:
    chosen = [event for event in found.events if event["ph"] == phase]
    return [(event["name"], event["tid"], event["ts"], event.get("dur"), event.get("args")) for event in chosen]


FORKED = (
    [
        happening(0, RUN, A, KERNEL),
        happening(10, BEAT, A),
        happening(20, PROMOTE, A, B, 15),
        happening(100, STOP, A, number=PARKED),
        happening(100, REST),
        happening(190, RISE),
        happening(190, RUN, A, KERNEL),
        happening(190, JOIN, A, B),
        happening(200, STOP, A, number=DONE),
    ],
    [
        happening(5, REST),
        happening(30, RISE),
        happening(30, STEAL, B),
        happening(30, RUN, B, KERNEL),
        happening(180, STOP, B, number=DONE),
        happening(181, WAKE, other=A),
    ],
)


def test_slices_and_arrows() -> None:
    found = timeline(*FORKED, end=200)
    assert shown(found, "X") == [
        ("asleep", 1, 5.0, 25.0, {"end": "woken"}),
        ("code 7", 0, 0.0, 100.0, {"task": 1, "end": "parked"}),
        ("code 7", 1, 30.0, 150.0, {"task": 2, "end": "done"}),
        ("asleep", 0, 100.0, 90.0, {"end": "woken"}),
        ("code 7", 0, 190.0, 10.0, {"task": 1, "end": "done"}),
    ]
    assert [(n, tid, ts) for n, tid, ts, _, _ in shown(found, "s")] == [("promotion", 0, 20.0), ("join", 1, 179.999)]
    assert [(n, tid, ts) for n, tid, ts, _, _ in shown(found, "f")] == [("promotion", 1, 30.0), ("join", 0, 190.0)]
    assert [(n, args) for n, _, _, _, args in shown(found, "i")] == [
        ("beat", {"task": 1}),
        ("promotion", {"task": 1, "child": 2, "tokens": 15}),
        ("steal", {"task": 2, "from": 0}),
        ("wake", {"woken": 1}),
        ("join", {"task": 1, "child": 2}),
    ]


def test_work_and_span() -> None:
    found = timeline(*FORKED, end=200).summary()
    # The child goes on from the 20 that its parent had run, for 150; then the parent runs 10 more.
    assert (found.duration, found.work, found.span) == (200.0, 260.0, 180.0)
    assert found.parallelism == pytest.approx(260 / 180)
    assert (found.tasks, found.beats, found.promotions, found.most_promotions, found.joins) == (2, 1, 1, 1, 1)
    assert (found.steals, found.wakes, found.ends) == (1, 1, {"parked": 1, "done": 2})
    assert [(worker.busy, worker.asleep, worker.steals) for worker in found.workers] == [(110, 90, 0), (150, 25, 1)]


def test_a_chain_goes_through_wakes() -> None:
    found = timeline(
        [
            happening(0, RUN, A, KERNEL),
            happening(10, STOP, A, number=PARKED),
            happening(10, RUN, B, KERNEL),
            happening(50, WAKE, other=A),
            happening(60, STOP, B, number=DONE),
            happening(60, RUN, A, KERNEL),
            happening(65, STOP, A, number=DONE),
        ]
    ).summary()
    assert (found.work, found.span) == (65.0, 50.0)


def test_what_was_taken_back_is_no_task() -> None:
    found = timeline(
        [
            happening(0, RUN, A, KERNEL),
            happening(1, PROMOTE, A, B),
            happening(2, PROMOTE, A, C),
            happening(3, UNFORK, A, C),
            happening(4, UNFORK, A, B),
            happening(5, BEAT, A),
            happening(6, PROMOTE, A, B),
            happening(7, UNFORK, A, B),
            happening(8, STOP, A, number=DONE),
        ]
    )
    assert shown(found, "s") == []
    assert [args["child"] for name, *_, args in shown(found, "i") if name == "promotion"] == [2, 3, 4]
    summary = found.summary()
    assert (summary.tasks, summary.promotions, summary.unforked, summary.most_promotions) == (1, 3, 3, 2)
    assert summary.span == summary.work == 8.0


def test_a_fiber_serves_one_task_after_another() -> None:
    spawned = [happening(time, SPAWN, C, A) for time in (1, 5)]
    runs = [happening(2, RUN, A, KERNEL), happening(3, STOP, A, number=DONE), happening(6, RUN, A, KERNEL)]
    found = timeline([happening(0, RUN, C, KERNEL), *spawned], runs, end=7)
    assert [args for _, tid, _, _, args in shown(found, "X") if tid == 1] == [
        {"task": 2, "end": "done"},
        {"task": 3, "end": "running"},
    ]


def test_calls_of_the_host_are_inside_of_their_task() -> None:
    found = timeline(
        [
            happening(0, RUN, A, KERNEL),
            happening(10, STOP, A, number=CALLING),
            # It calls a kernel, which runs on the same thread.
            happening(12, RUN, B, 8),
            happening(17, STOP, B, number=DONE),
            happening(20, RUN, A, KERNEL),
            happening(25, BEAT, A),
            happening(25, STOP, A, number=CALLING),
            happening(26, RUN, A, KERNEL),
            happening(30, STOP, A, number=YIELDED),
        ]
    )
    assert [(name, ts, dur) for name, _, ts, dur, _ in shown(found, "X")] == [
        ("code 8", 12.0, 5.0),
        ("host call", 10.0, 10.0),
        ("signals", 25.0, 1.0),
        ("code 7", 0.0, 30.0),
    ]
    summary = found.summary()
    assert (summary.work, summary.span, summary.host_calls, summary.workers[0].busy) == (30.0, 25.0, 1, 30.0)


def test_what_went_on_before_the_trace_began() -> None:
    found = timeline([happening(10, STOP, A, number=DONE), happening(20, RISE)], end=30)
    assert [(name, ts, dur) for name, _, ts, dur, _ in shown(found, "X")] == [
        ("task", 0.0, 10.0),
        ("asleep", 10.0, 10.0),
    ]


def test_all_tracks_begin_where_one_is_whole() -> None:
    early, late = [happening(1, RUN, A, KERNEL)], [happening(50, RUN, B, KERNEL)]
    found = timeline([*early, happening(60, STOP, A, number=DONE)], [*late, happening(70, STOP, B)], dropped=3)
    assert found.dropped == 6 and found.start == 50_000
    assert [(name, tid, ts, dur) for name, tid, ts, dur, _ in shown(found, "X")] == [
        ("task", 0, 0.0, 10.0),
        ("code 7", 1, 0.0, 20.0),
    ]


def test_nothing() -> None:
    found = timeline().summary()
    assert found == Summary(1000.0, 0, []) and found.parallelism == 0.0
    assert "duration          1.000 ms" in list(found.lines())
