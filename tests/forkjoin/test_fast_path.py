"""What a fork costs that is not promoted, read off the machine code of `fib`.

The path is the one from the function's entry to its return that calls both branches and nothing else: what a beat, a
promotion or a lack of stack leads to is elsewhere.
"""

import re
from collections.abc import Iterator

import pytest

import greenbeat as gb
from greenbeat.native.targets import target_triple
from greenbeat.native.types import offsetof
from greenbeat.tasks.layout import Fiber

pytestmark = pytest.mark.skipif(not target_triple().startswith("x86_64"), reason="reads x86-64 assembly")

STORE = re.compile(r"mov\w* [^,]+(?:\([^)]*\))?, \S*\(%\w+\)$")


@gb.kernel
def fib(n: int) -> int:
    if n < 2:
        return n
    x, y = gb.par(fib(n - 1), fib(n - 2))
    return x + y


class Code:
    """The instructions of one function of an assembly text."""

    def __init__(self, text: str, suffix: str) -> None:
        self.lines: list[str] = []
        self.labels: dict[str, int] = {}
        inside = False
        for line in text.splitlines():
            if not line.startswith(" ") and not line.startswith(".L"):
                inside = line.rstrip(":").endswith(suffix)
                self.name = line.rstrip(":") if inside else getattr(self, "name", "")
            elif inside and line.strip().endswith(":"):
                self.labels[line.strip()[:-1]] = len(self.lines)
            elif inside:
                self.lines.append(line.strip())

    def paths(self) -> Iterator[list[str]]:
        """Every way from the entry to a return that goes through nothing twice."""
        waiting: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        while waiting:
            place, before = waiting.pop()
            if place in before:
                continue
            path = (*before, place)
            words = self.lines[place].split()
            target = self.labels.get(words[-1])
            if words[0].startswith("ret"):
                yield [self.lines[each] for each in path]
            elif words[0] == "jmp":
                assert target is not None, "this leaves the function"
                waiting.append((target, path))
            else:
                waiting.append((place + 1, path))
                if words[0].startswith("j"):
                    assert target is not None
                    waiting.append((target, path))


def test_a_fork_that_is_not_promoted() -> None:
    code = Code(gb.inspect(fib).assembly, ".fib")
    called = [[line for line in path if line.startswith("call")] for path in code.paths()]
    fast = [path for path, calls in zip(code.paths(), called, strict=True) if calls == [f"callq {code.name}"] * 2]
    # There is one such path, and one that calls nothing.
    assert len(fast) == 1 and called.count([]) == 1
    (path,) = fast
    own_stack = [line for line in path if line.startswith(("push", "pop"))]
    rest = [line for line in path if line not in own_stack]

    atomic = [line for line in path if line.startswith(("lock", "xchg", "mfence"))]
    assert not atomic

    stores = [line for line in rest if STORE.search(line)]
    # The record: how to run the branch, and its argument.
    assert len(stores) == 2, stores
    assert len({line.rpartition("(")[2] for line in stores}) == 1

    reads = [line for line in rest if "(" in line and line not in stores and not line.startswith("lea")]
    polls = [line for line in reads if line.startswith("cmp") and f"{offsetof(Fiber, 'fork_floor')}(%rdi)" in line]
    assert len(polls) == 1, reads
    tests = [line for line in reads if line.startswith("test")]
    assert len(tests) == 1, reads
    # And the second branch's argument, out of the record.
    assert len(reads) == 3, reads

    # What is left is moving arguments and results, and three branches: n < 2, the poll, the test.
    assert len([line for line in rest if line.startswith("j")]) == 3
    assert len(rest) <= 27, "\n".join(rest)
    assert len(own_stack) <= 6


def test_the_case_without_a_fork_touches_no_memory() -> None:
    code = Code(gb.inspect(fib).assembly, ".fib")
    (shortest,) = [path for path in code.paths() if not any(line.startswith("call") for line in path)]
    assert len(shortest) <= 4 and not any("(" in line for line in shortest), shortest
