"""What docs/kernels.md says."""

import re
from pathlib import Path

import pytest

import greenbeat as gb
from tests.kernels.making import kernel, module

TEXT = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text()


def test_the_example_runs() -> None:
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert code is not None
    names = module(code[1])
    assert names["fib"](20) == names["fib"].python(20) == 6765


def test_the_functions_of_math_are_there() -> None:
    found = re.search(r"- `math`: `([^`]*)`", TEXT)
    assert found is not None
    for name in found[1].split():
        two = name in ("atan2", "copysign", "fmod", "gcd", "hypot", "pow")
        kind = "int" if name in ("gcd", "isqrt") else "float"
        call = f"math.{name}(x, x)" if two else f"math.{name}(x)"
        kernel(f"@gb.kernel\ndef f(x: {kind}) -> None:\n    {call}\n").compile()


def test_the_error_is_told_like_that() -> None:
    with pytest.raises(gb.KernelError) as raised:
        kernel("""
@gb.kernel
def f(a: gb.Array[int]) -> int:
    total = 0
    return total / len(a)
""").compile()
    shown = re.sub(r"^<.*?>:5:12: f ", "example.py:5:12: mean ", str(raised.value))
    assert shown in TEXT
