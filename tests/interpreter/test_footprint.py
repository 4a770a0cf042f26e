"""What an instance costs: operands that are never computed cost no memory, however many a function declares."""

import sys
from pathlib import Path

import pytest

import greenbeat as gb

PAGE = 4096


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the resident size on Linux")
@pytest.mark.parametrize("memory", ["", "(memory 1)"])
def test_a_deep_branch_that_never_runs(memory: str) -> None:
    deep = "(i64.const 5) " * 30_000 + "i64.add " * 29_999 + "drop"
    module = gb.Module.from_wat(f"""(module {memory}
      (func (export "f") (param i32) (result i32) (if (local.get 0) (then {deep})) (i32.const 7)))""")
    first = module.instantiate()
    assert first.exports.f(0) == 7
    before = resident()
    instances = [module.instantiate() for _ in range(64)]
    assert {instance.exports.f(0) for instance in instances} == {7}
    assert resident() - before <= 64 * 20_000
    assert first.exports.f(1) == 7
