"""What a traceback shows: the user's own lines, and nothing of how kernels are compiled and called."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from tests.kernels.making import module

PACKAGE = str(Path(gb.__file__).parent)


@gb.kernel
def mistaken(n: int) -> int:
    return n + missing  # type: ignore[name-defined]  # noqa: F821


@gb.kernel
def endless(n: int) -> int:
    return endless(n + 1) + endless(n + 2)


@gb.kernel
def endless_loop(n: int) -> int:
    s = 0
    for i in gb.prange(n, n + 2):
        s += endless_loop(i) + endless_loop(i + 1)
    return s


@gb.kernel
def calls_endless(n: int) -> int:
    return endless(n) ^ 1


def raised(call: Callable[[], object], kind: type[Exception]) -> traceback.TracebackException:
    """What a call raises, as Python would print it."""
    with pytest.raises(kind) as found:
        call()
    return traceback.TracebackException.from_exception(found.value)


def inside(told: traceback.TracebackException) -> list[str]:
    """The functions of the package's that a traceback shows."""
    return [frame.name for frame in told.stack if frame.filename.startswith(PACKAGE)]


def with_signature(annotation: str) -> Any:
    return module(f"@gb.kernel\ndef f(n: {annotation}) -> int:\n    return 1\n")


@pytest.mark.parametrize(
    ("call", "kind", "shown"),
    [
        (lambda: mistaken(1), gb.KernelError, []),
        (lambda: mistaken("1"), gb.KernelError, []),
        (lambda: mistaken(n=1), gb.KernelError, []),
        (lambda: mistaken.compile(), gb.KernelError, ["compile"]),
        (lambda: with_signature("str"), gb.KernelError, ["kernel"]),
        (lambda: with_signature("'undefined'"), gb.KernelError, ["kernel"]),
        (lambda: endless("1"), TypeError, []),
        (lambda: endless(1 << 64), OverflowError, []),
        (lambda: endless(1, 2), TypeError, []),
        (lambda: endless(m=2), TypeError, []),
        (lambda: gb.pmap(mistaken, bytearray(4), bytearray(4)), gb.KernelError, ["pmap", "call"]),
        (lambda: gb.pmap(endless, bytearray(4), "1"), TypeError, ["pmap", "call"]),
        (lambda: gb.preduce(mistaken, mistaken, 3, 0), TypeError, ["preduce", "call"]),
        (lambda: gb.psort([1]), TypeError, ["psort", "call"]),
        (lambda: gb.spawn(mistaken, 1), gb.KernelError, ["spawn", "__init__", "begin"]),
    ],
)
def test_only_calls_are_shown(call: Callable[[], object], kind: type[Exception], shown: list[str]) -> None:
    told = raised(call, kind)
    assert inside(told) == shown
    assert told.__cause__ is None
    assert told.__context__ is None or told.__suppress_context__


def test_what_the_user_was_handling_is_shown() -> None:
    def call() -> None:
        try:
            raise ValueError("mine")
        except ValueError:
            endless("1")

    told = raised(call, TypeError)
    assert told.__context__ is not None
    assert not told.__suppress_context__
    assert str(told.__context__) == "mine"


@pytest.mark.parametrize(
    ("kernel", "name", "line"),
    [
        (endless, "endless", "def endless(n: int) -> int:"),
        (calls_endless, "endless", "def endless(n: int) -> int:"),
        (endless_loop, "endless_loop", "for i in gb.prange(n, n + 2):"),
    ],
)
def test_an_endless_recursion_is_shown_where_the_stack_ended(kernel: "gb.Kernel[int]", name: str, line: str) -> None:
    for call in (lambda: kernel(1), lambda: gb.spawn(kernel, 1).join()):
        told = raised(call, RecursionError)
        assert str(told) == f"maximum recursion depth exceeded in {name}"
        assert (told.stack[-1].name, told.stack[-1].line) == (name, line)
        assert told.stack[-1].filename == __file__
