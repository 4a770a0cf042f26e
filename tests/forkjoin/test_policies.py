"""How many tokens a beat gives, and whether forks spend what is left, decides how many promotions there are."""

from collections.abc import Iterator

import pytest

import greenbeat as gb
from greenbeat.api.bridge import native


@gb.kernel
def fib(n: int) -> int:
    if n < 2:
        return n
    x, y = gb.par(fib(n - 1), fib(n - 2))
    return x + y


@pytest.fixture(autouse=True)
def usual_policy() -> Iterator[None]:
    """Every test leaves the usual policy."""
    with gb.Runtime(2):
        yield
    native.prepare_forks()


def promotions(tokens: int, eager: bool) -> int:
    """Promotions of a run of many beats."""
    native.set_fork_policy(tokens, eager)
    fib(20)
    before = native.promotion_count()
    assert fib(31) == 1_346_269
    return int(native.promotion_count() - before)


def test_policies() -> None:
    assert promotions(0, False) == 0
    few, usual = promotions(1, False), promotions(30, True)
    assert 0 < few < usual < 100_000


def test_promotions_can_be_kept() -> None:
    found = []
    for keep in (False, True):
        native.keep_promoted(keep)
        try:
            with gb.trace() as trace:
                assert fib(31) == 1_346_269
        finally:
            native.keep_promoted(False)
        assert trace.timeline is not None
        found.append(trace.timeline.summary())
    usual, kept = found
    assert usual.unforked > 0
    assert kept.unforked == 0
    assert kept.joins == kept.promotions > 0


@pytest.mark.parametrize("eager", [False, True])
def test_a_token_a_beat(eager: bool) -> None:
    """A single token is spent by the beat that gives it, whatever forks may do."""
    assert 0 < promotions(1, eager) < 2000
