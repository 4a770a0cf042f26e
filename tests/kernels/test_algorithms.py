"""`pmap`, `pscan`, `psort` and `preduce`, from Python and in kernels, beside plain Python and numpy."""

import array
import itertools
import math
import traceback
from collections.abc import Callable, Iterator
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


@gb.kernel
def nothing(n: int) -> None:
    pass


@gb.kernel
def whole(a: gb.Array[gb.f64]) -> float:
    return a[0]


def of_floats(count: int) -> Any:
    """A kernel with so many parameters."""
    heads = ", ".join(f"p{i}: float" for i in range(count))
    return kernel(f"@gb.kernel\ndef f({heads}) -> float:\n    return p0\n")


many, very_many = of_floats(16), of_floats(110)
zeros = numpy.zeros

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


# Type checkers see some of these mistakes as well.
anything: Any = gb


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: anything.pmap(affine, zeros(5), zeros(4), 1.0),
            ValueError,
            "argument 1 (x of affine) has length 4, and out has length 5",
        ),
        (
            lambda: anything.pmap(affine, zeros((2, 3)), 1.0, zeros((2, 4))),
            ValueError,
            "argument 2 (y of affine) has shape (2, 4), and out has shape (2, 3)",
        ),
        (lambda: anything.pmap(affine, 1.0, zeros(5), 1.0), TypeError, "out is an array, not float"),
        (
            lambda: anything.pmap(affine, zeros(5), zeros(5)),
            TypeError,
            "affine(x: f64, y: f64) -> f64 takes 2, so pmap takes 4 arguments, not 3",
        ),
        (
            lambda: anything.pmap(affine, zeros(5), zeros(5, complex), 1.0),
            TypeError,
            "argument 1 (x of affine) holds elements of the type complex128: arrays for kernels hold",
        ),
        (
            lambda: anything.pmap(affine, zeros(5), zeros(5, "M8[s]"), 1.0),
            TypeError,
            "argument 1 (x of affine) holds elements of the type datetime64[s]: arrays",
        ),
        (
            lambda: anything.pmap(affine, zeros(1), memoryview(bytes(8)).cast("c"), 1.0),
            TypeError,
            "argument 1 (x of affine) holds elements in the format 'c': arrays",
        ),
        (
            lambda: anything.pmap(affine, zeros(5), zeros((5, 2)), 1.0),
            TypeError,
            "argument 1 (x of affine) has 2 dimensions, and out has 1 dimension",
        ),
        (
            lambda: anything.pmap(affine, zeros((2, 2, 2)), 1.0, 1.0),
            TypeError,
            "out has 3 dimensions: pmap takes arrays of 1 or 2 dimensions",
        ),
        (
            lambda: anything.pmap(affine, zeros(5, int), zeros(5), 1.0),
            TypeError,
            "affine returns f64, but out holds i64",
        ),
        (lambda: anything.pmap(nothing, zeros(5), zeros(5, int)), TypeError, "nothing returns None, but out holds f64"),
        (
            lambda: anything.pmap(slow_add, zeros(5), zeros(5), 1),
            TypeError,
            "argument 1 (x of slow_add) holds f64, but x is i64",
        ),
        (
            lambda: anything.pmap(affine, zeros(5), zeros(5), "1"),
            TypeError,
            "argument 'y' of affine(x: f64, y: f64) -> f64 must be a float, not a str",
        ),
        (
            lambda: anything.pmap(whole, zeros(5), zeros(5)),
            TypeError,
            "pmap passes elements of arrays, but a of whole(a: Array[f64]) -> f64 is a whole one",
        ),
        (
            lambda: anything.pmap(affine, zeros(8)[::2], 1.0, 1.0),
            TypeError,
            "out of pmap must be a buffer of f64 with 1 dimension, and the elements of this one do not lie ",
        ),
        (
            lambda: anything.pmap(affine, memoryview(bytes(8)).cast("d"), 1.0, 1.0),
            TypeError,
            "out of pmap must be a buffer of f64 with 1 dimension, and this one cannot be written to",
        ),
        (
            lambda: anything.pmap(many, zeros(5), *[zeros(5)] * 16),
            TypeError,
            "pmap: a kernel takes at most 128 numbers and 16 arrays",
        ),
        (
            lambda: anything.pmap(very_many, zeros(5), *[1.0] * 110),
            TypeError,
            "pmap: a parallel loop reads too many variables",
        ),
        (
            lambda: anything.preduce(add, square, 10, 0),
            TypeError,
            "square(i: i64, by: i64) -> i64 takes the index and 1 more, so preduce takes 5 arguments, not 4",
        ),
        (
            lambda: anything.preduce(whole, square, 10, 0, 3),
            TypeError,
            "the first kernel of preduce combines two results: it must take two arguments of the type that it returns, "
            "unlike whole(a: Array[f64]) -> f64",
        ),
        (
            lambda: anything.preduce(add, whole, 10, 0),
            TypeError,
            "the second kernel of preduce gives a term for an index: its first parameter is an int, unlike whole(",
        ),
        (lambda: anything.preduce(add, affine, 10, 0, 1.0), TypeError, "affine returns f64, but add combines i64"),
        (
            lambda: anything.preduce(add, square, 10, 0, 1.5),
            TypeError,
            "argument 'by' of square(i: i64, by: i64) -> i64 must be an int, not a float",
        ),
        (
            lambda: anything.preduce(add, square, 10, 0.5, 1),
            TypeError,
            "the neutral result of preduce must be an int, not a float",
        ),
        (
            lambda: anything.preduce(add, square, 1 << 64, 0, 1),
            OverflowError,
            "the count of preduce: 18446744073709551616 does not fit i64",
        ),
        (
            lambda: anything.pscan(add, zeros(5, int), zeros(4, int), 0),
            ValueError,
            "what is scanned has length 4, and out has length 5",
        ),
        (
            lambda: anything.pscan(earliest, zeros(5, int), zeros(5, int), 0),
            TypeError,
            "the first kernel of pscan combines two numbers: it must take two arguments of the type that it returns, "
            "unlike earliest(",
        ),
        (
            lambda: anything.pscan(add, zeros(5, int), zeros(5), 0),
            TypeError,
            "what is scanned holds f64, but add combines i64",
        ),
        (
            lambda: anything.pscan(larger, zeros(5, int), zeros(5), 0),
            TypeError,
            "larger returns f64, but out holds i64",
        ),
        (
            lambda: anything.pscan(add, zeros((5, 1), int), zeros(5, int), 0),
            TypeError,
            "out has 2 dimensions: pscan takes arrays of 1 dimension",
        ),
        (
            lambda: anything.pscan(add, zeros(5, int), zeros(5, int), None),
            TypeError,
            "the neutral result of pscan must be an int, not None",
        ),
        (lambda: anything.psort(zeros(5), zeros(4)), ValueError, "the scratch is shorter than the array"),
        (lambda: anything.psort([3, 2]), TypeError, "what is sorted is an array, not list"),
        (
            lambda: anything.psort(zeros((2, 2))),
            TypeError,
            "what is sorted has 2 dimensions: psort takes arrays of 1 dimension",
        ),
        (
            lambda: anything.psort(numpy.array(["a"])),
            TypeError,
            "what is sorted holds elements of the type <U1: arrays for kernels hold integers of 8 to 64 bits",
        ),
        (lambda: anything.psort(zeros(5), zeros(5, int)), TypeError, "argument 'scratch' of psort("),
    ],
)
def test_what_is_refused_from_python(call: Callable[[], None], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value).startswith(message)
    assert "<greenbeat" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("call", "place", "message"),
    [
        (
            "gb.pmap(affine, out, a)",
            "gb.pmap(affine, out, a)",
            "affine(x: f64, y: f64) -> f64 takes 2, so pmap takes 4 arguments, not 3",
        ),
        ("gb.pmap(affine, b, a, 1)", "b, a", "affine returns f64, but out holds i64"),
        ("gb.pmap(add, b, a, 1)", "a, 1", "x of add is i64, but this array holds f64"),
        ("gb.pscan(add, out, a, 0)", "a, 0", "add combines i64, but this array holds f64"),
        ("gb.pscan(larger, b, a, 0)", "b, a", "larger returns f64, but out holds i64"),
        ("gb.pscan(earliest, b, b, (0, 0))", "earliest", "the first kernel of pscan combines two numbers"),
        ("gb.preduce(whole, square, 3, 0)", "whole", "the first kernel of preduce combines two results"),
        ("gb.preduce(add, square, 3, 0)", "square", "square(i: i64, by: i64) -> i64 takes the index and 1 more"),
        ("gb.preduce(add, affine, 3, 0, 1)", "affine", "affine returns f64, but add combines i64"),
    ],
)
def test_what_is_refused_in_kernels(call: str, place: str, message: str) -> None:
    text = f"@gb.kernel\ndef f(out: gb.Array[gb.f64], a: gb.Array[gb.f64], b: gb.Array[gb.i64]) -> None:\n    {call}\n"
    names = {each.__name__: each for each in (affine, add, larger, earliest, whole, square)}
    with pytest.raises(gb.KernelError) as raised:
        kernel(text, **names).compile()
    assert raised.value.message.startswith(message)
    assert (raised.value.line, raised.value.column) == (3, 5 + call.index(place))


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


def test_arrays_in_kernels_have_the_same_length() -> None:
    f = kernel(
        "@gb.kernel\ndef f(out: gb.Array[gb.i64], a: gb.Array[gb.i64]) -> None:\n    gb.pscan(add, out, a, 0)\n",
        add=add,
    )
    with pytest.raises(ValueError, match="this has a length of 4, and the results have 5"):
        f(zeros(5, int), zeros(4, int))


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


def test_psort_in_a_kernel_takes_scratch() -> None:
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
