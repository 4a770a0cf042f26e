"""`greenbeat bench`: the list of benches, and the table of handlers."""

import pytest

from greenbeat.cli import forks
from greenbeat.cli.bench import source_tree
from greenbeat.cli.handlers import report
from greenbeat.cli.terminal import Paint
from greenbeat.native.linker import flag

from .command import Command


def test_the_list(greenbeat: Command) -> None:
    outcome = greenbeat("bench")
    assert outcome.status == 0
    assert {"handlers", "par", "interpreters", "startup", "forkjoin"} <= {
        line.split()[0] for line in outcome.out.splitlines()
    }
    assert greenbeat("bench", "nothing").status == 2


def test_without_the_source_tree(greenbeat: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenbeat.cli.bench.source_tree", lambda: None)
    outcome = greenbeat("bench")
    assert (outcome.status, "the benchmarks are not in the package" in outcome.err) == (127, True)


def test_par(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller programs than usual; that they are right is looked at by the bench itself."""
    versions = [program[3] for program in forks.PROGRAMS]
    programs = (
        ("fib 20", (20,), 6765, versions[0]),
        ("a tree", (500,), 500, versions[1]),
        ("6 queens", (63, 0, 0, 0, 63), 4, versions[2]),
    )
    monkeypatch.setattr(forks, "PROGRAMS", programs)
    found = forks.measure(lambda _: None)
    assert [each["program"] for each in found["programs"]] == ["fib 20", "a tree", "6 queens"]
    for each in found["programs"]:
        assert each["processors"][1]["after"] < each["processors"][1]["before"]
    shown = "\n".join(forks.lines(found, Paint(None)))
    assert "before / after" in shown
    assert "6 queens: serial" in shown


def test_weights() -> None:
    mix = report.Mix("mix", [3, 1, 5], 100)
    assert report.weighted([[10, 0, 0], [20, 1, 2], None], mix) == (12.5, 0.25, 0.5)


@pytest.mark.skipif(flag("GREENBEAT_CHECKED"), reason="the same on both builds, and it takes long")
def test_handlers_beside_tinywasms_figures() -> None:
    """The promise: fewer stack operands than tinywasm's best, and no more pushes, wherever it has figures."""
    tree = source_tree()
    assert tree is not None
    found = report.measure(tree, [target for target in report.TARGETS if target.theirs])
    assert [target["name"] for target in found["targets"]] == ["x86-64 System V", "x86-64 Windows"]
    for mix in found["mixes"]:
        assert 0 < mix["dispatches"] < mix["instructions"]
        for target in found["targets"]:
            instructions, stack, pushes = target["weighted"][mix["name"]]
            assert instructions < target["tinywasm"][0]
            assert stack < target["tinywasm"][1]
            assert pushes <= target["tinywasm"][2]
    assert "27.0 / 0.38 / 0.06" in "\n".join(report.lines(found, Paint(None)))
