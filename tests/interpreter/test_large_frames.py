"""What looks at a task's stack stays inside of it, however large the frames that a module could make are."""

import pytest

import greenbeat as gb
from tests.fuzz.binary import CODE, EXPORTS, FUNCTIONS, HEADER, TYPES, name, section, unsigned, vector

# `big` has a branch with 24 MB of operands, never taken; `count` runs until its argument is 0; `touch` does nothing.
TYPES_OF_FUNCTIONS = vector([b"\x60\x01\x7f\x00", b"\x60\x01\x6f\x00"])
BIG = b"\x20\x00\x04\x40" + b"\x42\x05" * 3_000_000 + b"\x00\x0b\x0b"
COUNT = b"\x03\x40\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b\x0b"
TOUCH = b"\x0b"


def exports() -> gb.Instance:
    bodies = [b"\x00" + code for code in (BIG, COUNT, TOUCH)]
    data = (
        HEADER
        + section(TYPES, TYPES_OF_FUNCTIONS)
        + section(FUNCTIONS, vector([b"\x00", b"\x00", b"\x01"]))
        + section(EXPORTS, vector(name(n) + b"\x00" + unsigned(i) for i, n in enumerate(["big", "count", "touch"])))
        + section(CODE, vector(unsigned(len(body)) + body for body in bodies))
    )
    return gb.Module(data).instantiate()


def test_sweep_of_references_while_a_call_is_suspended() -> None:
    instance = exports()
    with pytest.raises(gb.Exhausted, match="call stack exhausted"):
        instance.exports.big(0)
    call = instance.exports.count.start(1000)
    call.resume(fuel=100)
    assert not call.done
    for _ in range(20_000):
        instance.exports.touch(object())
    call.resume(fuel=100_000)
    assert call.done
