"""Random programs on simulated workers: same seed, same schedule; and the books are balanced after each."""

import pytest

from tests.tasks.simulation import INTERRUPTIONS, NO_MEMORY, run_seed

SEEDS = 10_000
CHUNK = 1_000
QUIET, EVERYTHING = 0, 15


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_random_programs(start: int) -> None:
    for seed in range(start, start + CHUNK):
        wanted = (QUIET, EVERYTHING, 7, EVERYTHING)[seed % 4]
        faults = (0, 0, INTERRUPTIONS, INTERRUPTIONS | NO_MEMORY)[seed // 4 % 4]
        report = run_seed(seed, 1 + seed % 5, wanted, faults)
        assert report.problem == 0, f"seed {seed}"
        if wanted == QUIET and faults == 0:
            # Nothing fails here, and who waits at the end is told that the channel is closed.
            assert report.finished == report.spawned, f"seed {seed}"


@pytest.mark.parametrize("seed", [1, 7, 1529, 4711])
def test_a_seed_is_a_schedule(seed: int) -> None:
    first = run_seed(seed, 3, EVERYTHING, INTERRUPTIONS | NO_MEMORY)
    for other in range(20):
        run_seed(other, 4, EVERYTHING, 0)
    again = run_seed(seed, 3, EVERYTHING, INTERRUPTIONS | NO_MEMORY)
    assert bytes(first) == bytes(again)
    assert first.trace != run_seed(seed, 2, EVERYTHING, INTERRUPTIONS | NO_MEMORY).trace


def test_programs_do_what_they_are_for() -> None:
    totals = dict.fromkeys(("spawned", "finished", "trees", "loops", "promotions", "sent", "joined"), 0)
    for seed in range(300):
        report = run_seed(seed, 4, EVERYTHING, 0)
        for name in totals:
            totals[name] += getattr(report, name)
    assert min(totals.values()) > 200, totals
