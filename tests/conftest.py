"""What all tests may use."""

from collections.abc import Iterator

import pytest

from tests.support import GreenbeatGuest, Guest, guard_pages, guests


@pytest.fixture(params=guests())
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    """An engine for modules in the text format: Greenbeat in each mode, and wasmtime. See `tests/support.py`."""
    made = guests()[request.param]()
    with guard_pages(not isinstance(made, GreenbeatGuest) or made.mode.guarded):
        yield made
