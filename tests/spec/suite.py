"""Where the official test suite is, and the marks for tests that need it.

The suite is not part of the repository. `GREENBEAT_TESTSUITE` names a checkout of
https://github.com/WebAssembly/testsuite; without it a directory beside the repository is tried.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
SUITE = Path(os.environ.get("GREENBEAT_TESTSUITE", _ROOT.parent / "shared" / "wasm-testsuite"))

needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason=f"no test suite at {SUITE}: set GREENBEAT_TESTSUITE")


def scripts(directory: str = ".") -> list[Path]:
    """The scripts in a directory of the suite, by name; none when the suite is absent."""
    return sorted((SUITE / directory).glob("*.wast"))
