"""The simulation of the scheduler, `benchmarks/forkjoin/heartbeat.py`: what no schedule can be better or worse than."""

import importlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.forkjoin.heartbeat import BEAT, Costs, Fork, Program, Sequence, Work, loop, simulate, span_of, work_of

FREE = Costs(promote=0, join=0, steal=0, wake=0)
WORKS = st.floats(0, 3 * BEAT).map(Work)
LOOPS = st.lists(st.floats(0, BEAT), max_size=30).map(loop)
PROGRAMS: st.SearchStrategy[Program] = st.recursive(
    WORKS | LOOPS,
    lambda inner: st.builds(Fork, inner, inner) | st.lists(inner, max_size=4).map(Sequence),
    max_leaves=60,
)


@given(PROGRAMS, st.sampled_from([1, 2, 3, 8]), st.sampled_from([0, 1, 30]))
@settings(max_examples=300, deadline=None)
def test_no_schedule_beats_the_work_and_the_span(program: Program, processors: int, tokens: int) -> None:
    found = simulate(program, processors, FREE, tokens=tokens)
    work, span = work_of(program), span_of(program)
    slack = 1 + work * 1e-9
    assert max(work / processors, span) - slack <= found.time <= work + slack
    if processors == 1 or tokens == 0:
        assert found.time == pytest.approx(work, abs=slack)


def test_a_long_loop_and_a_large_tree_use_every_processor() -> None:
    tree: Program = Work(BEAT / 20)
    for _ in range(12):
        tree = Fork(tree, tree)
    for program in (loop([BEAT / 100] * 40_000), tree):
        for processors in (2, 8, 32):
            found = simulate(program, processors)
            assert work_of(program) / found.time > 0.75 * processors


def test_the_critical_path() -> None:
    assert span_of(Sequence([Work(1), Fork(Work(2), Sequence([Work(3), Work(4)])), loop([5, 6])])) == 14
    assert simulate(Sequence([]), 2).time == 0


def test_more_processors_than_work_is_no_help() -> None:
    chain = Sequence([Fork(Work(10_000), Work(10_000))] * 50)
    assert simulate(chain, 8, FREE).time == pytest.approx(simulate(chain, 72, FREE).time)


def test_a_trace_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulate_command = pytest.importorskip("benchmarks.simulate").main
    running = {"ph": "X", "cat": "task", "ts": 0, "dur": 3000.0, "tid": 1, "args": {"task": 1, "end": "done"}}
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"traceEvents": [running]}))
    simulate_command(["--trace", str(path), "--processors", "1", "4"])
    told = capsys.readouterr().out
    assert "on 4" in told and "3.0" in told
    assert told.rstrip().endswith("So processors beyond those that it was recorded on show little.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "this is no trace that was recorded by greenbeat.trace"),
        ("[1]", "this is no trace that was recorded by greenbeat.trace"),
        ('{"traceEvents": [{}]}', "this is no trace that was recorded by greenbeat.trace"),
        ('{"traceEvents": []}', "no task ran while this was recorded, so there is nothing to simulate"),
        (None, "it cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_trace_is_told_in_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    simulate_command = pytest.importorskip("benchmarks.simulate").main
    path = tmp_path / "run.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit) as caught:
        simulate_command(["--trace", str(path)])
    # Python prints a message, and ends with 1.
    assert caught.value.code == f"simulate: {path}: {message}"


@pytest.mark.parametrize("module", ["benchmarks.simulate", "benchmarks.forkjoin.__main__"])
def test_names_are_checked_and_every_option_has_a_help(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numpy")
    command = importlib.import_module(module).main
    with pytest.raises(SystemExit):
        command(["--help"])
    shown = capsys.readouterr().out
    assert "[NAME ...]" in shown and "any of fib, treesum, " in shown and "{" not in shown
    with pytest.raises(SystemExit) as caught:
        command(["fib", "fob"])
    assert caught.value.code == 2
    assert "there is no program 'fob': it is one of fib, treesum, " in capsys.readouterr().err
