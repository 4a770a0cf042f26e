"""`greenbeat inspect FILE.py:KERNEL`: what a kernel was compiled to."""

import json
from pathlib import Path

import pytest

from .command import Command

TEXT = '''\
import greenbeat as gb


@gb.kernel
def area(width: int, height: int) -> int:
    """Of a rectangle."""
    return width * height


@gb.kernel
def wrong(n: int) -> int:
    return n / 2


class Inner:
    twice = gb.kernel(area.__wrapped__)


other = 1
'''


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "inspected_kernels.py"
    path.write_text(TEXT)
    return path


def test_a_kernel(greenbeat: Command, source: Path) -> None:
    outcome = greenbeat("inspect", f"{source}:area")
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "4 │ @gb.kernel"
    place = lines.index("7 │     return width * height")
    assert "mul i64" in "".join(lines[place + 1 :])
    assert greenbeat("inspect", f"{source}:Inner.twice").status == 0


def test_for_programs(greenbeat: Command, source: Path) -> None:
    found = json.loads(greenbeat("inspect", f"{source}:area", "--json").out)
    assert found["name"] == "area" and "define" in found["llvm"] and "ret" in found["assembly"]
    assert [line["number"] for line in found["lines"]] == [4, 5, 6, 7]


def test_mistakes(greenbeat: Command, source: Path) -> None:
    outcome = greenbeat("inspect", f"{source}:wrong")
    assert outcome.status == 1 and f"{source}:12:12: wrong returns i64, but this is f64" in outcome.err
    outcome = greenbeat("inspect", f"{source}:other")
    assert outcome.status == 2
    assert outcome.err == f"greenbeat: {source} has no kernel other: it has area, wrong\n"
    outcome = greenbeat("inspect", f"{source}:area", "--cells", "0")
    assert (outcome.status, outcome.err) == (2, "greenbeat: --function and --cells are for WebAssembly modules\n")
    outcome = greenbeat("inspect", f"{source.with_name('none.py')}:area")
    assert outcome.status == 127 and outcome.err.endswith("none.py: there is no such file\n")
    source.write_text("1 / 0\n")
    outcome = greenbeat("inspect", f"{source}:area")
    assert outcome.status == 126
    assert outcome.err.endswith("it cannot be imported: ZeroDivisionError: division by zero\n")
