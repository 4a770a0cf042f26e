"""Random programs on real threads, and what only those can break."""

import signal
import threading
from typing import Any

import pytest

from tests.tasks.real import die, run_world, workers

EVERYTHING = 15


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_random_programs(count: int) -> None:
    with workers(count) as lib:
        for seed in range(120):
            run_world(lib, count * 1000 + seed, 20, EVERYTHING, cancelling=seed % 2 == 1, visitors=seed % 3)


@pytest.mark.parametrize("seats", [0, 1, 3])
def test_fewer_seats_than_workers(seats: int) -> None:
    with workers(3, seats) as lib:
        for seed in range(60):
            run_world(lib, 9000 + seed, 10, EVERYTHING, cancelling=True, visitors=1)


def test_a_thread_that_waits_dies() -> None:
    before = signal.signal(signal.SIGALRM, die)
    try:
        with workers(2) as lib:
            for seed in range(40):
                run_world(lib, 20_000 + seed, 10, EVERYTHING, cancelling=seed % 2 == 1, visitors=1, deaths=25)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_more_than_a_deque_holds() -> None:
    with workers(2) as lib:
        lib.begin_world(0, 0, 0)
        roots = [lib.new_root(seed, 0) for seed in range(20_000)]
        for root in roots:
            lib.start_task(root)
        lib.close_world()
        for root in roots:
            assert lib.join_task(root, 0) == 0
            lib.forget_task(root)
        assert lib.end_world() == 0


def test_a_pool_ends_with_tasks_that_never_would() -> None:
    for seed in range(30):
        with workers(3) as lib:
            lib.begin_world(EVERYTHING, 400, 0)
            roots = [lib.new_root(seed * 100 + i, 3) for i in range(20)]
            for root in roots:
                lib.start_task(root)
        # What was ready has been cancelled; what waits goes on in the next pool.
        with workers(2) as lib:
            lib.close_world()
            for root in roots:
                assert lib.join_task(root, 0) == 0
                lib.forget_task(root)


def test_threads_join_the_same_task() -> None:
    with workers(2) as lib:
        for seed in range(50):
            lib.begin_world(0, 10, 50)
            root = lib.new_root(seed, 2)
            results: list[int] = []

            def join(root: Any = root, results: list[int] = results) -> None:
                results.append(lib.join_task(root, 0))

            threads = [threading.Thread(target=join) for _ in range(4)]
            for thread in threads:
                thread.start()
            lib.start_task(root)
            lib.close_world()
            for thread in threads:
                thread.join(60)
            assert results == [0] * 4
            lib.forget_task(root)
