"""How exceptions are told."""

import pytest

import greenbeat as gb
from greenbeat.errors import Frame, frame_lines


def test_a_repeated_frame_is_told_once_in_a_while() -> None:
    a, b = Frame("a", 1, 16), Frame("[b", 2)
    assert list(frame_lines((a, a, a))) == ["a at 0x10"] * 3
    assert list(frame_lines((a, a, a, a, b))) == [*["a at 0x10"] * 3, "[the frame before, 1 more time]", "[b"]
    assert list(frame_lines((b, *[a] * 50), "in "))[3:] == ["in a at 0x10", "[the frame before, 47 more times]"]


def test_deep_recursion() -> None:
    made = gb.Module.from_wat('(module (func $f (export "f") (call $f)))').instantiate()
    with pytest.raises(gb.Exhausted) as found:
        made.exports.f()
    assert str(found.value).count("\n") == 4
    assert len(found.value.backtrace) == 64
