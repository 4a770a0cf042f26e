"""Every snippet of the README and of `docs/python.md` is true: sessions at the prompt, and at the shell."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from greenbeat.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PYTHON = ROOT / "docs" / "python.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """A page's code blocks in a language."""
    return [text for found, text in BLOCK.findall(page.read_text()) if found == language]


@pytest.mark.parametrize(("page", "least"), [(README, 15), (PYTHON, 10)], ids=["README", "python"])
def test_python(page: Path, least: int) -> None:
    session = "\n".join(blocks(page, "python"))
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    assert len(test.examples) > least
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert result.failed == 0, "".join(report)


def test_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = blocks(README, "wat")
    Path("tour.wat").write_text(program)
    (session,) = blocks(README, "console")
    for command in session.split("$ greenbeat ")[1:]:
        words, _, expected = command.partition("\n")
        main(shlex.split(words))
        captured = capfd.readouterr()
        assert captured.out + captured.err == expected, words
