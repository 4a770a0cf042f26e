"""`pmap`, `pscan`, `psort` and `preduce`, from Python and in kernels, beside plain Python and numpy."""

import array
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import greenbeat as gb
from greenbeat.kernels.short import is_short
from tests.kernels.making import kernel, module

numpy = pytest.importorskip("numpy")
TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]


@pytest.fixture(params=[1, 3], scope="module", autouse=True)
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    """Everything here is run with few workers and with several."""
    with gb.Runtime(request.param):
        yield request.param


@gb.kernel
def add(x: int, y: int) -> int:
    return x + y


@gb.kernel
def larger(x: float, y: float) -> float:
    return max(x, y)


@gb.kernel
def slow_add(x: int, y: int) -> int:
    """So slow that a few thousand of these meet several beats."""
    z = 0
    while z < 3000:
        z += 1
    return x + y + z - 3000


@gb.kernel
def affine(x: float, y: float) -> float:
    return 2 * x + y


@gb.kernel
def square(i: int, by: int) -> int:
    return slow_add(i * i, by)


@gb.kernel
def picked(i: int, a: gb.Array[gb.i64]) -> tuple[int, int]:
    return a[i], i


@gb.kernel
def earliest(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
    return x if x[0] < y[0] or (x[0] == y[0] and x[1] <= y[1]) else y


# ---------------------------------------------------------------- preduce


def test_preduce_from_python() -> None:
    assert gb.preduce(add, square, 2000, 0, 5) == sum(i * i + 5 for i in range(2000))
    assert gb.preduce(add, square, 0, 7, 5) == 7


def test_preduce_of_tuples_and_arrays() -> None:
    numbers = numpy.random.default_rng(1).integers(0, 1000, 300_000)
    found = gb.preduce(earliest, picked, len(numbers), (1 << 40, 0), numbers)
    assert found == (numbers.min(), numbers.argmin())


def test_preduce_of_plain_functions_is_a_loop() -> None:
    assert gb.preduce(add.python, square.python, 10, 0, 1) == 295


def test_preduce_says_how_many_arguments_are_missing() -> None:
    with pytest.raises(TypeError, match=r"square\(i: i64, by: i64\) -> i64 takes 2 arguments here, not 1"):
        gb.preduce(add, square, 10, 0)


def test_kernels_are_made_once() -> None:
    gb.preduce(add, square, 1, 0, 5)
    made = dict(add._function.__dict__["derived"])
    gb.preduce(add, square, 2, 0, 5)
    assert add._function.__dict__["derived"] == made


# ---------------------------------------------------------------- pmap


@given(st.lists(st.floats(-1e6, 1e6), max_size=200), st.floats(-10, 10))
@settings(max_examples=30)
def test_pmap(numbers: list[float], by: float) -> None:
    a = numpy.array(numbers)
    out, other = numpy.zeros(len(a)), array.array("d", numbers)
    gb.pmap(affine, out, a, by)
    assert (out == 2 * a + by).all()
    gb.pmap(affine, out, by, other)
    assert (out == 2 * by + a).all()
    plain = [0.0] * len(a)
    gb.pmap(affine.python, plain, numbers, by)
    assert plain == (2 * a + by).tolist()


def test_pmap_of_two_dimensions() -> None:
    a = numpy.arange(600.0).reshape(20, 30)
    out, plain = numpy.zeros((30, 20)).T, numpy.zeros((20, 30))
    gb.pmap(affine, out, a, a.T.copy().T)
    gb.pmap(affine.python, plain, a, a)
    assert (out == 3 * a).all()
    assert (plain == 3 * a).all()


def test_pmap_meets_beats() -> None:
    a = numpy.arange(5000)
    out = numpy.zeros(5000, dtype=numpy.int32)
    gb.pmap(slow_add, out, a, a)
    assert (out == 2 * a).all()


def test_pmap_in_a_kernel() -> None:
    f = kernel(
        "@gb.kernel\ndef f(out: gb.Array[gb.f32], a: gb.Array[gb.u8], k: float) -> None:\n"
        "    gb.pmap(affine, out, a, k + 1)\n",
        affine=affine,
    )
    out, a = numpy.zeros(9, dtype="f4"), numpy.arange(9, dtype="u1")
    f(out, a, 0.5)
    assert (out == 2 * a + numpy.float32(1.5)).all()


def test_what_pmap_refuses() -> None:
    out = numpy.zeros(5)
    with pytest.raises(ValueError, match="this has a length of 4, and the results have 5"):
        gb.pmap(affine, out, numpy.zeros(4), 1.0)
    with pytest.raises(TypeError, match="out is an array, not float"):
        gb.pmap(affine, 1.0, out, 1.0)
    with pytest.raises(TypeError, match=r"affine\(x: f64, y: f64\) -> f64 takes 2 arguments here, not 1"):
        gb.pmap(affine, out, out)
    with pytest.raises(TypeError, match="no kernel takes a buffer of 1 dimensions in the format 'Zd'"):
        gb.pmap(affine, out, numpy.zeros(5, dtype=complex), 1.0)
    with pytest.raises(gb.KernelError, match="the results are Array\\[f64\\], and this is Array\\[f64, 2\\]"):
        gb.pmap(affine, out, numpy.zeros((5, 2)), 1.0)
    with pytest.raises(TypeError, match="cannot be written to"):
        gb.pmap(affine, memoryview(bytes(8)).cast("d"), 1.0, 1.0)


# ---------------------------------------------------------------- pscan


@given(st.lists(st.integers(-1000, 1000), max_size=300), st.sampled_from(["i4", "i8"]))
@settings(max_examples=30)
def test_pscan(numbers: list[int], kind: str) -> None:
    a = numpy.array(numbers, dtype="i8")
    out = numpy.zeros(len(a), dtype=kind)
    gb.pscan(add, out, a, 0)
    assert out.tolist() == list(itertools.accumulate(numbers))
    gb.pscan(add, a, a, 0)
    assert a.tolist() == out.tolist()
    plain = [0] * len(numbers)
    gb.pscan(add.python, plain, numbers, 0)
    assert plain == out.tolist()


@pytest.mark.parametrize("count", [1, 2, 3000, 10_000])
def test_pscan_meets_beats(count: int) -> None:
    a = numpy.random.default_rng(count).integers(-1000, 1000, count)
    out = numpy.zeros(count, dtype=numpy.int64)
    for _ in range(3):
        gb.pscan(slow_add, out, a, 0)
        assert (out == numpy.cumsum(a)).all()


def test_pscan_of_many() -> None:
    a = numpy.random.default_rng(5).random(3_000_000)
    out = numpy.zeros_like(a)
    gb.pscan(larger, out, a, -math.inf)
    assert (out == numpy.maximum.accumulate(a)).all()
    gb.pscan(larger, a, a, -math.inf)
    assert (out == a).all()


def test_pscan_in_a_kernel() -> None:
    f = kernel(
        "@gb.kernel\ndef f(out: gb.Array[gb.i64], a: gb.Array[gb.u16]) -> int:\n"
        "    gb.pscan(add, out, a, 0)\n"
        "    return out[-1]\n",
        add=slow_add,
    )
    a = numpy.arange(4000, dtype="u2")
    assert f(numpy.zeros(4000, dtype="i8"), a) == a.sum()


def test_what_pscan_refuses() -> None:
    text = "@gb.kernel\ndef f(a: gb.Array[gb.i64]) -> None:\n    gb.pscan(combine, a, a, (0, 0))\n"
    with pytest.raises(gb.KernelError, match="earliest.* does not combine two numbers to one"):
        kernel(text, combine=earliest).compile()
    with pytest.raises(ValueError, match="this has a length of 4, and the results have 5"):
        gb.pscan(add, numpy.zeros(5, dtype="i8"), numpy.zeros(4, dtype="i8"), 0)


# ---------------------------------------------------------------- psort


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("count", [0, 1, 2, 24, 25, 600, 5000, 100_000])
def test_psort(kind: str, count: int) -> None:
    random = numpy.random.default_rng(count)
    a = random.random(count).astype(kind) if kind[0] == "f" else random.integers(0, 120, count).astype(kind)
    wanted = numpy.sort(a)
    gb.psort(a)
    assert (a == wanted).all()


@given(st.lists(st.floats(width=32), max_size=500))
@settings(max_examples=50)
def test_psort_puts_nan_last_and_is_stable(numbers: list[float]) -> None:
    a = numpy.array(numbers)
    wanted = numpy.sort(a, kind="stable")
    gb.psort(a, numpy.zeros_like(a))
    # Zeros of both signs are equal: that they keep their order shows that equals do.
    assert a.tobytes() == wanted.tobytes() or [repr(x) for x in a] == [repr(x) for x in wanted]


def test_psort_of_many_that_are_equal_or_sorted() -> None:
    random = numpy.random.default_rng(3)
    for a in (random.integers(0, 3, 500_000), numpy.arange(500_000), numpy.arange(500_000)[::-1].copy()):
        wanted = numpy.sort(a)
        gb.psort(a)
        assert (a == wanted).all()


def test_psort_in_a_kernel_and_of_other_buffers() -> None:
    f = kernel("@gb.kernel\ndef f(a: gb.Array[gb.i32], b: gb.Array[gb.i32]) -> None:\n    gb.psort(a, b)\n")
    a = numpy.random.default_rng(3).integers(0, 1000, 40_000).astype("i4")
    wanted = numpy.sort(a)
    f(a, numpy.zeros_like(a))
    assert (a == wanted).all()
    numbers = array.array("h", [3, -1, 2])
    gb.psort(numbers)
    assert numbers.tolist() == [-1, 2, 3]


def test_what_psort_refuses() -> None:
    with pytest.raises(ValueError, match="the scratch is shorter than the array"):
        gb.psort(numpy.zeros(5), numpy.zeros(4))
    with pytest.raises(TypeError, match="what is sorted is an array, not list"):
        gb.psort([3, 2])
    with pytest.raises(TypeError, match="with 1 dimension, not one with 2"):
        gb.psort(numpy.zeros((2, 2)))
    with pytest.raises(gb.KernelError, match="in a kernel, psort takes an array and another one like it, as scratch"):
        kernel("@gb.kernel\ndef f(a: gb.Array[gb.i32]) -> None:\n    gb.psort(a)\n").compile()


# ---------------------------------------------------------------- failures, short kernels


def test_the_failure_of_the_first_wins() -> None:
    names = module(
        "@gb.kernel\ndef slow(i: int) -> int:\n    z = 0\n    while z < 3000:\n        z += 1\n    return i\n"
        "@gb.kernel\ndef refuses(i: int, first: int) -> int:\n    slow(i)\n    if i == first:\n"
        '        raise ValueError("first")\n    if i > first:\n        raise IndexError("later")\n    return i\n'
    )
    out = numpy.zeros(6000, dtype="i8")
    for first in (0, 100, 3000, 5990):
        with pytest.raises(ValueError, match="first"):
            gb.pmap(names["refuses"], out, numpy.arange(6000), first)
        assert (out[:first] == numpy.arange(first)).all()


def test_a_loop_in_a_loop_may_use_another_name_for_a_kernel() -> None:
    f = kernel(
        "@gb.kernel\ndef f(a: gb.Array[gb.i64, 2]) -> None:\n"
        "    g = other\n"
        "    for i in gb.prange(a.shape[0]):\n"
        "        for j in gb.prange(a.shape[1]):\n"
        "            a[i, j] = g(i, j)\n",
        other=add,
    )
    a = numpy.zeros((3, 4), dtype="i8")
    f(a)
    assert a[2, 3] == 5


def test_which_kernels_are_short() -> None:
    names: dict[str, Any] = module(
        "@gb.kernel\ndef leaf(x: float) -> float:\n    return math.sqrt(x) + float(int(x)) + gb.f32(x)\n"
        "@gb.kernel\ndef caller(x: float) -> float:\n    return leaf(x) + leaf(x)\n"
        "@gb.kernel\ndef loops(x: float) -> float:\n    while x > 1:\n        x /= 2\n    return x\n"
        "@gb.kernel\ndef calls_loops(x: float) -> float:\n    return loops(x)\n"
        "@gb.kernel\ndef recursive(x: float) -> float:\n    return recursive(x / 2) if x > 1 else x\n"
        "@gb.kernel\ndef other(x: float) -> float:\n    f = leaf\n    return f(x)\n"
    )
    found = {name for name, each in names.items() if isinstance(each, gb.Kernel) and is_short(each._function)}
    assert found == {"leaf", "caller"}
