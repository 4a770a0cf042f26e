"""Every snippet of the README is true: sessions at the prompt, and at the shell."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from greenbeat.cli import main

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """The README's code blocks in a language."""
    return [text for found, text in BLOCK.findall(README.read_text()) if found == language]


def test_python() -> None:
    session = "\n".join(blocks("python"))
    test = doctest.DocTestParser().get_doctest(session, {}, "README.md", str(README), 0)
    assert len(test.examples) > 15
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert result.failed == 0, "".join(report)


def test_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = blocks("wat")
    Path("tour.wat").write_text(program)
    (session,) = blocks("console")
    for command in session.split("$ greenbeat ")[1:]:
        words, _, expected = command.partition("\n")
        main(shlex.split(words))
        captured = capfd.readouterr()
        assert captured.out + captured.err == expected, words
