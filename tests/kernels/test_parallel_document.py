"""What docs/parallel.md says."""

import re
from pathlib import Path

import pytest

from tests.kernels.making import module

TEXT = (Path(__file__).parents[2] / "docs" / "parallel.md").read_text()


def test_the_example_runs() -> None:
    pytest.importorskip("numpy")
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert code is not None
    names = module(code[1])
    a = 2.0 * names["np"].arange(1000)
    assert (names["out"] == a.cumsum()).all()
    assert names["fib"](20) == 6765
    assert names["scale"](a, 0.5) == 499_500
