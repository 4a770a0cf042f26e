"""The official suite on Greenbeat: every script of ours, with and without guard pages, with and without fuel.

Which build of the engine this is, fast or checked, is the process's affair: CI runs both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import pytest

from greenbeat.api import content
from tests.spec.features import LATER_COMMANDS, TRIMMED_MODULES, our_commands, our_files
from tests.spec.greenbeat_adapter import GreenbeatAdapter
from tests.spec.json_script import read_json
from tests.spec.runner import Report, Runner
from tests.spec.script import Command
from tests.spec.suite import json_from_script, needs_suite, needs_wasm_tools
from tests.support import MODES, Mode, guard_pages

# A slice pays for a few straight runs of code: calls stop in most places where they can.
SLICE = 50

# wasm-tools takes scripts apart as they are, so only those without parts for later are compared.
WHOLE = [path for path in our_files() if path.name not in LATER_COMMANDS | TRIMMED_MODULES]

_commands = lru_cache(maxsize=1)(our_commands)


@pytest.fixture(params=MODES, ids=str)
def mode(request: pytest.FixtureRequest) -> Iterator[Mode]:
    mode: Mode = request.param
    with guard_pages(mode.guarded):
        yield mode


def run(commands: list[Command], mode: Mode, later: Mapping[int, str] | None = None) -> Report:
    adapter = GreenbeatAdapter(metered=mode.metered, fuel_slice=SLICE if mode.sliced else None)
    return Runner(adapter, later).run(commands)


def check(path: Path, report: Report) -> None:
    assert report.passed > 0
    assert not report.failures, "\n".join(f"{path.name}:{line}: {problem}" for line, problem in report.failures)


@needs_suite
@pytest.mark.parametrize("path", our_files(), ids=lambda path: path.stem)
def test_script(path: Path, mode: Mode) -> None:
    commands, later = _commands(path)
    check(path, run(commands, mode, later))


@needs_suite
@pytest.mark.parametrize("path", our_files(), ids=lambda path: path.stem)
def test_script_with_kept_translations(path: Path, mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time everything that runs was translated the first time."""
    monkeypatch.setenv("GREENBEAT_CACHE", str(tmp_path))
    monkeypatch.setattr(content, "LEAST_KEPT", 0)
    commands, later = _commands(path)
    adapters = []
    for _ in range(2):
        adapter = GreenbeatAdapter(metered=mode.metered, fuel_slice=SLICE if mode.sliced else None, kept=True)
        check(path, Runner(adapter, later).run(commands))
        adapter.save()
        adapters.append(adapter)
    first, second = adapters
    # A module that is there twice is saved by the first that is done: not all of what the other needs is there.
    if len({module.description.data for module in first.modules}) == len(first.modules):
        assert second.count("translated") == second.count("validated") == 0
        assert second.count("restored") == first.count("translated")


@needs_suite
@needs_wasm_tools
@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_script_that_wasm_tools_took_apart(path: Path, tmp_path: Path) -> None:
    """The same as the text, without our parsers of scripts and modules."""
    check(path, run(read_json(json_from_script(path, tmp_path)), MODES[0]))
