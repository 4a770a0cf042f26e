"""`par`, `prange` and `preduce` in kernels: results, exceptions, what cannot be compiled, stacks."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import greenbeat as gb
from tests.kernels.making import kernel, module

numpy = pytest.importorskip("numpy")


@pytest.fixture(params=[1, 2, 4], scope="module", autouse=True)
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    """Everything here is run with one worker and with several."""
    with gb.Runtime(request.param):
        yield request.param


@gb.kernel
def fib(n: int) -> int:
    if n < 2:
        return n
    x, y = gb.par(fib(n - 1), fib(n - 2))
    return x + y


def test_par_gives_the_results_in_order() -> None:
    assert fib(27) == 196418
    assert fib.python(15) == 610


def test_par_of_many_branches_and_types() -> None:
    names = module(
        "@gb.kernel\ndef half(x: float) -> float:\n    return x / 2\n"
        "@gb.kernel\ndef both(a: int, b: bool) -> tuple[int, bool]:\n    return a + 1, not b\n"
        "@gb.kernel\ndef put(a: gb.Array[gb.i64], i: int, x: int) -> None:\n    a[i] = x\n"
        "@gb.kernel\ndef f(a: gb.Array[gb.i64]) -> tuple[float, int, bool, int]:\n"
        "    x, y, _, z = gb.par(half(3.0), both(4, True), put(a, 2, 7), both(1, False))\n"
        "    return x, y[0], y[1], z[0]\n"
    )
    array = numpy.zeros(4, dtype=numpy.int64)
    assert names["f"](array) == (1.5, 5, False, 2)
    assert list(array) == [0, 0, 7, 0]


def sort(depth: int) -> Any:
    return module(
        "@gb.kernel\ndef total(a: gb.Array[gb.f64], low: int, high: int) -> float:\n"
        "    if high - low <= 3:\n"
        "        s = 0.0\n"
        "        for i in range(low, high):\n"
        "            s += a[i]\n"
        "        return s\n"
        "    middle = (low + high) // 2\n"
        "    x, y = gb.par(total(a, low, middle), total(a, middle, high))\n"
        "    return x + y\n"
    )["total"]


@given(st.lists(st.integers(-1000, 1000), min_size=0, max_size=3000))
@settings(max_examples=30, deadline=None)
def test_a_tree_of_forks_sums_an_array(numbers: list[int]) -> None:
    array = numpy.array(numbers, dtype=numpy.float64)
    assert sort(0)(array, 0, len(numbers)) == sum(numbers)


@gb.kernel
def fails(n: int, where: int) -> int:
    if n == where:
        raise ValueError("here")
    if n < 2:
        return n
    x, y = gb.par(fails(n - 1, where), fails(n - 2, where))
    return x + y


@gb.kernel
def left_or_right(n: int) -> int:
    x, y = gb.par(spins_then_fails(n, 1), spins_then_fails(0, 2))
    return x + y


@gb.kernel
def spins_then_fails(n: int, which: int) -> int:
    for _ in range(n):
        fib_serial(15)
    if which == 1:
        raise KeyError("left")
    raise IndexError("right")


@gb.kernel
def fib_serial(n: int) -> int:
    if n < 2:
        return n
    return fib_serial(n - 1) + fib_serial(n - 2)


def test_the_leftmost_exception_wins() -> None:
    for _ in range(5):
        with pytest.raises(KeyError, match="left"):
            left_or_right(3000)


@pytest.mark.parametrize("where", [0, 1, 2, 20, 24])
def test_an_exception_ends_all_branches(where: int) -> None:
    for _ in range(20):
        with pytest.raises(ValueError, match="here"):
            fails(24, where)
    assert fib(20) == 6765


@gb.kernel
def nest(n: int) -> int:
    if n == 0:
        return 0
    x, y = gb.par(nest(n - 1), fib_serial(1))
    return x + y


@gb.kernel
def chain(n: int) -> int:
    if n == 0:
        return 0
    x, y = gb.par(fib_serial(1), chain(n - 1))
    return x + y


@pytest.mark.parametrize("function", [nest, chain])
def test_deep_nesting_ends_in_an_exception(function: Any) -> None:
    assert function(2000) == 2000
    with pytest.raises(RecursionError):
        function(10_000_000)
    assert function(2000) == 2000


# ---------------------------------------------------------------- loops


@gb.kernel
def fill(a: gb.Array[gb.i64], k: int) -> None:
    for i in gb.prange(len(a)):
        a[i] = k * i


@pytest.mark.parametrize("size", [0, 1, 2, 1000, 1_000_000])
def test_prange_runs_every_iteration_once(size: int) -> None:
    array = numpy.full(size, -1, dtype=numpy.int64)
    fill(array, 3)
    assert (array == 3 * numpy.arange(size)).all()


def test_prange_reads_variables_and_nests() -> None:
    f = kernel(
        "@gb.kernel\ndef f(a: gb.Array[gb.f64, 2], k: float) -> None:\n"
        "    pair = (k, 2)\n"
        "    for i in gb.prange(1, len(a)):\n"
        "        scale = pair[0] * pair[1]\n"
        "        for j in gb.prange(a.shape[1]):\n"
        "            if j == 3:\n"
        "                continue\n"
        "            a[i, j] = scale * i + j\n"
    )
    array = numpy.zeros((300, 70))
    f(array, 1.5)
    wanted = 3.0 * numpy.arange(300)[:, None] + numpy.arange(70)[None, :]
    wanted[0], wanted[:, 3] = 0.0, 0.0
    assert (array == wanted).all()


def test_prange_adds_to_variables() -> None:
    f = kernel(
        "@gb.kernel\ndef f(a: gb.Array[gb.i64]) -> tuple[int, int, float, int]:\n"
        "    total = 5\n    both = -1\n    mean = 1.0\n    odd = 0\n"
        "    for i in gb.prange(len(a)):\n"
        "        total += a[i]\n"
        "        both &= a[i] | 8\n"
        "        mean += a[i] / 4\n"
        "        if a[i] % 2:\n"
        "            odd ^= a[i]\n"
        "    return total, both, mean, odd\n"
    )
    array = numpy.arange(300_000)
    assert f(array) == f.python(array.tolist())


def test_preduce_keeps_the_order() -> None:
    names = module(
        "@gb.kernel\ndef join(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:\n"
        "    return a[0] * b[0] % 1000003, (a[1] * b[0] + b[1]) % 1000003\n"
        "@gb.kernel\ndef step(i: int, k: int) -> tuple[int, int]:\n    return 31, i * k % 1000\n"
        "@gb.kernel\ndef f(n: int, k: int) -> tuple[int, int]:\n"
        "    return gb.preduce(join, step, n, (1, 0), k)\n"
    )
    for size in (0, 1, 10, 200_000):
        assert names["f"](size, 7) == names["f"].python(size, 7)


def test_an_exception_in_a_loop_ends_it() -> None:
    f = kernel(
        "@gb.kernel\ndef f(a: gb.Array[gb.i64], bad: int) -> None:\n"
        "    for i in gb.prange(len(a)):\n        a[i] = 10 // (i - bad)\n"
    )
    array = numpy.zeros(500_000, dtype=numpy.int64)
    for bad in (0, 1, 250_000, 499_999):
        with pytest.raises(ZeroDivisionError):
            f(array, bad)
    f(array, -1)


# ---------------------------------------------------------------- mistakes

HEAD = "@gb.kernel\ndef g(n: int) -> int:\n    return n\n@gb.kernel\ndef f(n: int) -> int:\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return gb.par(g(1))[0]\n", "two calls of kernels"),
        ("    x, y = gb.par(g(1), n)\n    return x\n", "par takes calls of kernels"),
        ("    x, y = gb.par(g(1), abs(n))\n    return x\n", "par takes calls of kernels"),
        ("    x = 0\n    for i in gb.prange(n):\n        x = i\n    return x\n", "x is the kernel's"),
        (
            "    x = 0\n    for i in gb.prange(n):\n        x ^= i + x\n    return x\n",
            r"`x \^= ...` without x on the right",
        ),
        (
            "    x = 0\n    for i in gb.prange(n):\n        x += 1\n        y = x\n    return x\n",
            "none can read what it is",
        ),
        ("    x = 0\n    for i in gb.prange(n):\n        x = max(x, i)\n    return x\n", "the greatest.* gb.preduce"),
        ("    for i in gb.prange(n):\n        break\n    return 1\n", "`break` cannot end it"),
        ("    for i in gb.prange(n):\n        return 2\n    return 1\n", "`return` cannot end it"),
        ("    x = 0\n    for i in gb.prange(n):\n        x -= i\n    return x\n", "always the same"),
        ("    x = 0\n    for i in gb.prange(n):\n        x += i\n        n = x\n    return x\n", "kernel's"),
        ("    for i in gb.prange(0, n, 2):\n        pass\n    return 1\n", "counts in ones"),
        ("    return gb.preduce(g, g, n, 0)\n", "the first kernel of preduce combines two results"),
        ("    return gb.preduce(g, g, n)\n", "a neutral result"),
    ],
)
def test_mistakes(body: str, message: str) -> None:
    with pytest.raises(gb.KernelError, match=message) as caught:
        kernel(HEAD + body).compile()
    assert caught.value.line >= 5
