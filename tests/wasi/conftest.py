"""The two file systems that tests of paths and files run on: a directory of the host's, and one in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import greenbeat as gb

from .guest import Guest


@pytest.fixture(params=["host", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Guest]:
    """A guest with an empty directory, descriptor 3."""
    wasi = gb.Wasi(dirs={"/": tmp_path}) if request.param == "host" else gb.Wasi(files={})
    with Guest(wasi) as guest:
        yield guest
