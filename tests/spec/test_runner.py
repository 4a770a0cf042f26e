"""The runner itself: that it notices what is wrong, on an engine that does what the test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.spec.runner import Outcome, Report, Runner, matches
from tests.spec.script import (
    Either,
    NanPattern,
    Number,
    Pattern,
    RefExtern,
    RefFunc,
    RefKind,
    RefNull,
    Value,
    Vector,
    parse_script,
)


class EngineError(Exception):
    def __init__(self, outcome: Outcome | None) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class FakeAdapter:
    """A module is its bytes; one named `$unlinkable` does not link; a function does what its name says."""

    def compile(self, binary: bytes) -> bytes:
        if not binary.startswith(b"\0asm"):
            raise EngineError(Outcome.MALFORMED)
        return binary

    def instantiate(self, module: bytes, imports: Mapping[str, Mapping[str, object]]) -> bytes:
        if b"unlinkable" in module:
            raise EngineError(Outcome.UNLINKABLE)
        return module

    def exports(self, instance: bytes) -> Mapping[str, object]:
        return {}

    def invoke(self, instance: bytes, name: str, arguments: Sequence[Value]) -> Sequence[Value | RefKind]:
        if name == "echo":
            return arguments
        raise EngineError(None if name == "defect" else Outcome(name))

    def get_global(self, instance: bytes, name: str) -> Value | RefKind:
        return Number("i32", len(instance))

    def classify(self, error: Exception) -> Outcome | None:
        return error.outcome if isinstance(error, EngineError) else None

    def trap_message(self, error: Exception) -> str | None:
        return "trapped for a reason"


def run(source: str, later: Mapping[int, str] | None = None) -> Report:
    return Runner(FakeAdapter(), later).run(parse_script(source))


@pytest.mark.parametrize(
    "assertion",
    [
        '(assert_return (invoke "echo" (i32.const 1)) (i32.const 1))',
        '(assert_return (get "global") (i32.const 8))',
        '(assert_trap (invoke "trap") "")',
        '(assert_exhaustion (invoke "exhaustion") "")',
        '(assert_exception (invoke "exception"))',
        '(assert_malformed (module quote "(func") "")',
        '(assert_malformed (module binary "") "")',
        '(assert_unlinkable (module $unlinkable) "")',
        '(invoke "echo")',
        "(module instance)",
        '(register "name")',
    ],
)
def test_what_passes(assertion: str) -> None:
    assert run(f"(module) {assertion}") == Report(passed=2)


@pytest.mark.parametrize(
    ("assertion", "problem"),
    [
        ('(assert_return (invoke "echo" (i32.const 1)) (i32.const 2))', "expected [Number(type='i32', bits=2)], got"),
        ('(assert_return (invoke "echo" (i32.const 1)))', "expected [], got"),
        ('(assert_return (invoke "trap"))', "unexpected EngineError"),
        ('(assert_trap (invoke "echo") "")', "expected trap, got ()"),
        ('(assert_trap (invoke "exhaustion") "")', "expected trap, got EngineError"),
        ('(assert_trap (invoke "defect") "")', "expected trap, got EngineError"),
        ('(assert_trap (module) "")', "expected trap, got"),
        ('(assert_malformed (module quote "(func)") "")', "expected malformed, got"),
        ('(assert_invalid (module binary "") "")', "expected invalid, got EngineError"),
        ('(assert_unlinkable (module) "")', "expected unlinkable, got"),
        ('(invoke "trap")', "unexpected EngineError"),
        ("(module $unlinkable)", "unexpected EngineError"),
        ('(invoke $nobody "echo")', "unexpected KeyError"),
    ],
)
def test_what_fails(assertion: str, problem: str) -> None:
    report = run(f"(module)\n{assertion}")
    assert report.passed == 1
    ((line, message),) = report.failures
    assert line == 2
    assert problem in message


def test_what_depends_on_a_failed_module_is_skipped() -> None:
    report = run('(module $a)\n(module $unlinkable)\n(invoke "echo")\n(invoke $a "echo")')
    assert [line for line, _ in report.failures] == [2]
    assert report.skipped == [(3, "the module in line 2 failed")]
    assert report.passed == 2


def test_what_is_for_later_is_skipped_with_what_depends_on_it() -> None:
    report = run('(module $a)\n(invoke $a "echo")\n(register "x" $a)\n(module)\n(invoke "echo")', {1: "later"})
    assert report == Report(passed=2, skipped=[(1, "later"), (2, "later"), (3, "later")])


CANONICAL = Number("f32", 0xFFC0_0000)
QUIET = Number("f32", 0x7FC0_0001)
SIGNALLING = Number("f32", 0x7F80_0001)


@pytest.mark.parametrize(
    ("result", "pattern", "expected"),
    [
        (CANONICAL, NanPattern("f32", "canonical"), True),
        (QUIET, NanPattern("f32", "canonical"), False),
        (QUIET, NanPattern("f32", "arithmetic"), True),
        (SIGNALLING, NanPattern("f32", "arithmetic"), False),
        (Number("f64", 0x7FF8 << 48), NanPattern("f64", "canonical"), True),
        (Number("f64", 0x7FF8 << 48), NanPattern("f32", "canonical"), False),
        (Number("f32", 0x7F80_0000), NanPattern("f32", "arithmetic"), False),
        (Number("i32", 1), Number("i64", 1), False),
        (Number("f32", 1 << 31), Number("f32", 0), False),
        (Number("i32", 2), Either((Number("i32", 1), Number("i32", 2))), True),
        (Number("i32", 3), Either((Number("i32", 1), Number("i32", 2))), False),
        (
            Vector("i64x2", (Number("i64", 1), Number("i64", 0))),
            Vector("i32x4", (Number("i32", 1), *[Number("i32", 0)] * 3)),
            True,
        ),
        (Vector("f32x4", (QUIET,) * 4), Vector("f32x4", (NanPattern("f32", "arithmetic"),) * 4), True),
        (Vector("f32x4", (QUIET,) * 4), Vector("f32x4", (NanPattern("f32", "canonical"),) * 4), False),
        (RefNull(None), RefNull("func"), True),
        (RefFunc(None), RefNull(None), False),
        (RefFunc(None), RefFunc("3"), True),
        (RefExtern(1), RefExtern(1), True),
        (RefExtern(1), RefExtern(2), False),
        (RefExtern(1), RefExtern(None), True),
        (RefKind("struct"), RefKind("eq"), True),
        (RefKind("struct"), RefKind("array"), False),
    ],
)
def test_patterns(result: Value | RefKind, pattern: Pattern, expected: bool) -> None:
    assert matches(result, pattern) is expected
