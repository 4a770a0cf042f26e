"""Running `greenbeat`: in this process where only words matter, in one of its own where the end of it does."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import greenbeat
from greenbeat.cli.entry import main

# Where the package that is tested is, installed or not.
PACKAGES = str(Path(greenbeat.__file__).parents[1])
PYTHON = [sys.executable, "-m", "greenbeat"]


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str


class Command:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> Outcome:
        status = main(list(map(str, words)))
        captured = self.capsys.readouterr()
        return Outcome(status, captured.out, captured.err)


def environment(**more: str) -> dict[str, str]:
    """What a child of these tests gets: the package, and no wish about colours."""
    found = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return found | {"PYTHONPATH": os.pathsep.join([PACKAGES, found.get("PYTHONPATH", "")]), **more}


def process(*words: object, **options: Any) -> "subprocess.Popen[bytes]":
    """A command as a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **options}
    return subprocess.Popen([*PYTHON, *map(str, words)], **pipes)
