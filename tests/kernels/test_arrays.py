"""Arrays: any buffer of the right elements, in place, never outside."""

import array
import ctypes
from typing import Any

import numpy
import pytest

from tests.kernels.making import kernel, module, outcome, same

TOTAL = """
@gb.kernel
def f(a: gb.Array[gb.{kind}]) -> {result}:
    total = {zero}
    for i in range(len(a)):
        total += a[i]
    for x in a:
        total += x
    return total
"""
KINDS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"]


def total(kind: str) -> Any:
    zero = {"f": "0.0", "u64": "gb.u64(0)"}.get(kind if kind == "u64" else kind[0], "0")
    result = {"f": "float", "u64": "gb.u64"}.get(kind if kind == "u64" else kind[0], "int")
    return kernel(TOTAL.format(kind=kind, result=result, zero=zero))


def dtype(kind: str) -> Any:
    return numpy.dtype({"i": "i", "u": "u", "f": "f"}[kind[0]] + str(int(kind[1:]) // 8))


@pytest.mark.parametrize("kind", KINDS)
def test_elements_of_every_kind(kind: str) -> None:
    f = total(kind)
    for values in ([], [1], [1, 2, 3], list(range(100))):
        assert f(numpy.array(values, dtype(kind))) == 2 * sum(values)
    if kind[0] == "i":
        assert f(numpy.array([-3, -4], dtype(kind))) == -14


@pytest.mark.parametrize("kind", KINDS)
def test_only_elements_of_that_kind(kind: str) -> None:
    f = total(kind)
    for other in KINDS:
        if other != kind:
            with pytest.raises(TypeError, match=rf"'a' of f.* must be a buffer of {kind} .*, not one of {other}"):
                f(numpy.zeros(3, dtype(other)))
    if kind not in ("i8", "u8"):
        with pytest.raises(TypeError, match="must be a buffer"):
            f(numpy.zeros(3, dtype(kind).newbyteorder()))
    with pytest.raises(TypeError, match="not one of bool"):
        f(numpy.zeros(3, bool))


def test_whatever_lends_a_buffer() -> None:
    f, g = total("f64"), total("u8")
    assert f(array.array("d", [1.5, 2.5])) == 8
    assert f((ctypes.c_double * 2)(1.5, 2.5)) == 8
    assert f(memoryview(array.array("d", [1.0, 2.0, 3.0]))[1:]) == 10
    assert g(b"\1\2\3") == g(bytearray(b"\1\2\3")) == g(memoryview(b"\1\2\3")) == 12
    assert total("i64")(array.array("q", [5])) == total("i64")(array.array("l", [5])) == 10
    for wrong in ([1.0], "text", 3, (1.0, 2.0)):
        with pytest.raises(TypeError, match="must be a buffer of f64 with 1 dimension, not a"):
            f(wrong)
    with pytest.raises(TypeError, match="not None"):
        f(None)


def test_dimensions_and_contiguity() -> None:
    f = total("f64")
    with pytest.raises(TypeError, match="not one with 2 dimensions"):
        f(numpy.zeros((2, 2)))
    with pytest.raises(TypeError, match="not one with 0 dimensions"):
        f(numpy.array(1.0))
    with pytest.raises(TypeError, match="do not lie side by side"):
        f(numpy.zeros(10)[::2])
    with pytest.raises(TypeError, match="do not lie side by side"):
        f(numpy.zeros(10)[::-1])
    with pytest.raises(TypeError, match="not aligned"):
        f(numpy.frombuffer(bytearray(17), dtype="f8", count=2, offset=1))
    assert f(numpy.zeros(10)[::2][:1]) == 0


FILL = """
@gb.kernel
def inner(a: gb.Array[gb.i32], i: int, x: int) -> None:
    a[i] = x

@gb.kernel
def f(a: gb.Array[gb.i32], i: int, x: int) -> int:
    inner(a, i, x)
    a[i] += 1
    return a[i]

@gb.kernel
def g(a: gb.Array[gb.i32]) -> int:
    return a[-1]
"""


def test_writing() -> None:
    names = module(FILL)
    f = names["f"]
    values = numpy.arange(5, dtype="i4")
    for i in range(-5, 5):
        assert f(values, i, 100 + i) == 101 + i
        assert values[i] == 101 + i
    for i in (-6, 5, 1 << 62, -(1 << 63)):
        with pytest.raises(IndexError, match=rf"index {i} is out of range for a length of 5"):
            f(values, i, 0)
    with pytest.raises(OverflowError, match="2147483648 does not fit i32"):
        f(values, 0, 1 << 31)
    values.flags.writeable = False
    with pytest.raises(TypeError, match="'a' of f.* cannot be written to"):
        f(values, 0, 0)
    assert names["g"](values) == values[-1]
    assert outcome(names["g"], values[:0]) is IndexError


def test_a_buffer_is_held_during_a_call_only() -> None:
    f, data = total("u8"), bytearray(b"abc")
    f(data)
    with pytest.raises(TypeError):
        f(data, 3)
    with pytest.raises(TypeError):
        total("u16")(data)
    data.append(1)
    g = kernel("@gb.kernel\ndef f(a: gb.Array[gb.u8], b: gb.Array[gb.u8], n: int) -> int:\n    return a[n] + b[n]\n")
    for arguments in ((data, data, 1), (data, data, 9), (data, 3, 1), (data, data, "x")):
        outcome(g, *arguments)
        data.append(1)


def test_two_dimensions() -> None:
    f = kernel("""
@gb.kernel
def f(a: gb.Array[gb.f64, 2], i: int, j: int) -> tuple[float, int, int, int, int]:
    total = 0.0
    for r in range(a.shape[0]):
        for c in range(a.shape[1]):
            total += a[r, c] * (r + 1) * (c + 10)
            if a[r][c] != a[r, c]:
                total = -1e9
    rows, columns = a.shape
    a[i, j] += 1
    return total + a[i, j], len(a), rows * columns, a.size, a.ndim
""")
    base = numpy.arange(24.0).reshape(4, 6)
    views = [base, base.T, base[::2], base[:, ::2], base[::-1, ::-1], base[1:3, 2:5], base[:0], base[:, :0]]
    for view in views:
        for i, j in ((0, 0), (-1, -1), (1, -2), (9, 0), (0, 9), (-7, 0)):
            ours, plain = view.copy(order="K"), view.copy(order="K")
            assert outcome(f, ours, i, j) == outcome(f.python, plain, i, j)
            numpy.testing.assert_array_equal(ours, plain)
            strided = numpy.zeros((view.shape[0] * 2, view.shape[1] * 3))[::2, ::3]
            strided[...] = view
            assert outcome(f, strided, i, j) == outcome(f.python, view.copy(), i, j)


def test_bools() -> None:
    f = kernel("""
@gb.kernel
def f(a: gb.Array[bool], i: int) -> int:
    n = 0
    for x in a:
        if x:
            n += 1
    a[i] = n > 2
    return n
""")
    values = numpy.array([True, False, True, True])
    assert f(values, 1) == 3
    assert values.all()


def test_stencils_stay_inside() -> None:
    f = kernel("""
@gb.kernel
def f(a: gb.Array[gb.f64], b: gb.Array[gb.f64], low: int, high: int) -> int:
    n = 0
    for i in range(low, high):
        b[i] = a[i - 1] + a[i] * 2 + a[i + 1]
        n += 1
    return n
""")
    for size in (0, 1, 5, 3000):
        for low, high in ((0, size), (1, size - 1), (-2, size), (1, size), (0, size - 1), (-size, -1), (1, size + 5)):
            source = numpy.arange(float(size)) ** 2
            ours, plain = numpy.zeros(size), numpy.zeros(size)
            assert outcome(f, source, ours, low, high) == outcome(f.python, source, plain, low, high)
            numpy.testing.assert_array_equal(ours, plain)


def test_matrix_product() -> None:
    f = kernel("""
@gb.kernel
def f(a: gb.Array[gb.f64, 2], b: gb.Array[gb.f64, 2], c: gb.Array[gb.f64, 2]) -> None:
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            x = a[i, k]
            for j in range(b.shape[1]):
                c[i, j] += x * b[k, j]
""")
    random = numpy.random.default_rng(1)
    a, b = random.integers(0, 9, (7, 5)).astype(float), random.integers(0, 9, (5, 1500)).astype(float)
    c = numpy.zeros((7, 1500))
    assert f(a, b, c) is None
    numpy.testing.assert_array_equal(c, a @ b)
    with pytest.raises(IndexError):
        f(a, b[:4], c)
    with pytest.raises(IndexError):
        f(a, b, c[:, :1499])


def test_the_counter_may_be_changed_by_the_body() -> None:
    f = kernel("""
@gb.kernel
def f(a: gb.Array[gb.i64]) -> int:
    total = 0
    for i in range(len(a)):
        i += 2
        total += a[i]
    return total
""")
    same(f, numpy.arange(5))


def test_most_arrays() -> None:
    names = [f"a{n}" for n in range(16)]
    f = kernel(
        "@gb.kernel\ndef f("
        + ", ".join(f"{n}: gb.Array[gb.i64]" for n in names)
        + ") -> int:\n    return "
        + " + ".join(f"{n}[0]" for n in names)
    )
    assert f(*[numpy.array([n]) for n in range(16)]) == sum(range(16))
