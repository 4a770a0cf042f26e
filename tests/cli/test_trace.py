"""`greenbeat trace`: the summary of a recording."""

import json
from pathlib import Path

import pytest

from greenbeat.tasks.layout import DONE
from greenbeat.tasks.tracing import BEAT, JOIN, PROMOTE, RUN, STOP
from greenbeat.tracing.timeline import Happening, Timeline, Track

from .command import Command

SUMMARY = """\
duration          2.000 ms
work              2.700 ms  the time that 2 tasks ran
span              1.700 ms  the longest chain of it
parallelism        1.59     work / span
utilisation        1.35     workers busy on average
beats                 1
promotions            1, 1.0 a beat, at most 1 between two beats of a task, 0 taken back
spawned               0
joins                 1
steals                0
parks                 0
yields                0
wakes                 0
host calls            0
dropped               0

worker         busy              asleep              steals
worker 0      1.700 ms  85.0%      0.000 ms   0.0%       0
worker\\u{a}1      1.000 ms  50.0%      0.000 ms   0.0%       0
"""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two workers, of which the second one runs a branch that the first one has promoted."""
    first = [
        Happening(0, 1, 7, RUN, 0),
        Happening(200_000, 1, 0, BEAT, 0),
        Happening(300_000, 1, 2, PROMOTE, 15),
        Happening(1_600_000, 1, 2, JOIN, 0),
        Happening(1_700_000, 1, 0, STOP, DONE),
    ]
    second = [Happening(400_000, 2, 7, RUN, 0), Happening(1_400_000, 2, 0, STOP, DONE)]
    tracks = [Track("worker 0", 0, first, 0), Track("worker\n1", 1, second, 0)]
    path = tmp_path / "run.json"
    Timeline(0, 2_000_000, tracks, lambda code, number: "fib").save(path)
    return path


def test_for_people(greenbeat: Command, recording: Path) -> None:
    outcome = greenbeat("trace", recording)
    assert (outcome.status, outcome.err) == (0, "")
    # A trace may come from elsewhere: its names do not command the terminal.
    assert outcome.out == SUMMARY


def test_for_programs(greenbeat: Command, recording: Path) -> None:
    found = json.loads(greenbeat("trace", recording, "--json").out)
    assert (found["work"], found["span"], found["steals"]) == (2700.0, 1700.0, 0)
    assert found["workers"][1] == {"name": "worker\n1", "busy": 1000.0, "asleep": 0.0, "steals": 0}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": []}', '{"traceEvents": [{}], "otherData": {}}'])
def test_no_trace(greenbeat: Command, tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    outcome = greenbeat("trace", path)
    assert outcome.status == 126
    assert outcome.err == f"greenbeat: {path}: this is no trace that was recorded by greenbeat.trace\n"


def test_no_file(greenbeat: Command, tmp_path: Path) -> None:
    assert greenbeat("trace", tmp_path / "none.json").err.endswith("none.json: there is no such file\n")
    assert greenbeat("trace", tmp_path / "none.json").status == 127
    assert greenbeat("trace", tmp_path).status == 126
