"""A little fuzzing in every run of the tests; `python -m tests.fuzz` does more of it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

pytest.importorskip("wasmtime", reason="wasmtime is not installed")

from tests.fuzz import binary, campaign, hazard_modules, shrink, smith, theirs
from tests.fuzz.cases import Case

needs_smith = pytest.mark.skipif(not smith.available(), reason="wasm-tools is not installed")


@pytest.mark.parametrize(
    ("kind", "count"), [pytest.param("smith", 200, marks=needs_smith), ("hazards", 300), ("mutants", 2000)]
)
def test_campaign(kind: str, count: int) -> None:
    """In the build that the tests run on."""
    report = campaign.run(kind, 2024, 0, count)
    assert not report.findings
    assert report.cases == count
    assert report.outcomes["returned"] + report.outcomes["ran"] > count // 50


def test_cases_are_reproducible() -> None:
    case = Case.parse("hazards:3:14")
    assert str(case) == "hazards:3:14"
    assert case.module() == case.module() != Case("hazards", 3, 15).module()
    with pytest.raises(ValueError, match="no kind of case: nothing"):
        Case.parse("nothing:1:1")


def test_hazards_are_valid() -> None:
    engine = theirs.make_engine()
    for number in range(100):
        assert theirs.refusal(engine, hazard_modules.generate(random.Random(number))) is None


def test_an_export_more() -> None:
    """With and without an export section."""
    bare = binary.HEADER + binary.section(binary.GLOBALS, b"\x01\x7f\x01\x41\x00\x0b")
    once = binary.with_export(bare, "a", 3, 0)
    twice = binary.with_export(once, "b", 3, 0)
    assert (binary.own_globals(bare), smith.imported_globals(bare)) == (1, 0)
    assert theirs.refusal(theirs.make_engine(), twice) is None
    assert twice.endswith(binary.section(binary.EXPORTS, b"\x02\x01a\x03\x00\x01b\x03\x00"))


def test_a_worker_that_dies_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its case is kept, and the next worker goes on behind it."""
    monkeypatch.setenv("GREENBEAT_FUZZ_DIE_AT", "2")
    report = campaign.run("hazards", 1, 0, 4, keep=tmp_path)
    assert list(report.findings) == ["hazards:1:2"]
    assert "SIGABRT" in report.findings["hazards:1:2"]
    assert (tmp_path / "hazards-1-2.wasm").read_bytes() == Case("hazards", 1, 2).module()


@needs_smith
@pytest.mark.skipif(shutil.which("true") is None, reason="scripts need a system with them")
def test_nothing_to_shrink() -> None:
    data = Case("hazards", 1, 1).module()
    assert data is not None
    assert shrink.shrink(data, "hazards:1:1", "hazards") is None
