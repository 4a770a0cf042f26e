"""Loops, branches, variables, tuples, calls: what kernels are made of, beside plain Python."""

import pytest
from hypothesis import given, strategies as st

from tests.kernels.making import kernel, module, same

small = st.integers(-30, 30)


@given(a=small, b=small, c=small)
def test_ranges(a: int, b: int, c: int) -> None:
    f = RANGE
    same(f, a, b, c)


RANGE = kernel("""
@gb.kernel
def f(a: int, b: int, c: int) -> tuple[int, int, int, int]:
    total = 0
    i = -99
    for i in range(a, b, c):
        total += i * i
    up = 0
    for j in range(a, b):
        if j % 3 == 0:
            continue
        if j > 20:
            break
        up = up * 3 + j
    down = 0
    for k in range(b, a, -2):
        down = down * 5 + k
        k = 0
    return total, i, up, down
""")


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 5000])
def test_strips(count: int) -> None:
    f = kernel("""
@gb.kernel
def f(n: int) -> tuple[int, int]:
    total = 0
    last = -1
    for i in range(n):
        total += i ^ 5
        last = i
        if i == 4000:
            break
    return total, last
""")
    same(f, count)


def test_ranges_at_the_end_of_the_numbers() -> None:
    f = kernel("""
@gb.kernel
def f(a: int, b: int, c: int) -> tuple[int, int]:
    n = 0
    last = 0
    for i in range(a, b, c):
        n += 1
        last = i
        if n > 50:
            break
    return n, last
""")
    top, bottom = (1 << 63) - 1, -(1 << 63)
    for case in ((top - 3, top, 1), (top - 3, top, 2), (bottom + 3, bottom, -1), (bottom, top, 1 << 62), (5, 5, 0)):
        same(f, *case)


@given(n=st.integers(0, 300))
def test_while(n: int) -> None:
    same(COLLATZ, n)


COLLATZ = kernel("""
@gb.kernel
def f(n: int) -> int:
    steps = 0
    while True:
        if n <= 1:
            break
        steps += 1
        if n % 2:
            n = 3 * n + 1
            continue
        n //= 2
    return steps
""")


@given(n=small, x=st.floats(-5, 5), b=st.booleans())
def test_match(n: int, x: float, b: bool) -> None:
    same(MATCH, n, x, b)


MATCH = kernel("""
ANSWER = 7

@gb.kernel
def f(n: int, x: float, b: bool) -> int:
    match n:
        case 0 | 1:
            r = 10
        case -3:
            return 30
        case m if m > 5 and x > 0:
            r = m * 2
        case _:
            r = 1
    match (n, b):
        case (2, True):
            r += 100
        case (m, False):
            r += m
    match x:
        case 0.0:
            r += 5
    match n > 0:
        case True:
            r += 7
    return r
""")


@given(a=small, b=st.floats(-5, 5))
def test_tuples(a: int, b: float) -> None:
    same(TUPLES, a, b, (a, (b, a > 0)))


TUPLES = kernel("""
PAIRS = (1, 2, 3), (4, 5, 6)
SQUARES = (0, 1, 4, 9, 16)

@gb.kernel
def swap(p: tuple[int, float]) -> tuple[float, int]:
    a, b = p
    a, b = a + 1, b
    return b, a

@gb.kernel
def nothing(a: int) -> None:
    if a:
        return
    pass

@gb.kernel
def f(a: int, b: float, t: tuple[int, tuple[float, bool]]) -> tuple[int, float, tuple[int, bool], int, int]:
    nothing(a)
    p = (a, b)
    x, y = swap(p)
    p = (y, x)
    q = p if a > 3 else (a * 2, a)
    first, (second, flag) = t
    (u, v), w = (1, 2), 3
    c = d = a
    c += 1
    total = 0
    for i in range(5):
        total += SQUARES[i] + SQUARES[-1 - i]
    return q[0] + p[-1 if False else 0], q[1] + second, (first, flag and q == p), PAIRS[1][2] + c * d, u + v + w + total
""")


def test_recursion_and_mutual_recursion() -> None:
    names = module("""
@gb.kernel
def even(n: int) -> bool:
    return True if n == 0 else odd(n - 1)

@gb.kernel
def odd(n: int) -> bool:
    return False if n == 0 else even(n - 1)

@gb.kernel
def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))
""")
    for n in range(20):
        same(names["even"], n)
        same(names["odd"], n)
    same(names["ackermann"], 2, 3)


def test_endless_recursion_is_an_error() -> None:
    f = kernel("""
@gb.kernel
def f(n: int) -> int:
    return f(n + 1) * 2 + f(n)
""")
    for _ in range(3):
        with pytest.raises(RecursionError):
            f(0)


def test_closures_and_globals_are_constants() -> None:
    names = module("""
from enum import IntEnum

class Color(IntEnum):
    RED = 3

SCALE, FLAG, TABLE = 4, True, (1, 2.5)

def make(k):
    @gb.kernel
    def f(n: int) -> float:
        if FLAG:
            return n * k + SCALE + TABLE[1] + Color.RED + helper(n)
        return undefined_name

    @gb.kernel
    def helper(n: int) -> int:
        return n + k
    return f
""")
    for k in (2, 3):
        same(names["make"](k), 10)


def test_annotated_variables() -> None:
    f = kernel("""
@gb.kernel
def f(n: int) -> tuple[float, int]:
    x: float = n
    y: gb.u8 = 200
    z: float
    z = 1
    y = n
    return x / 2 + z, y
""")
    same(f, 5)
    with pytest.raises(OverflowError, match="256 does not fit u8"):
        f(256)


def test_variables_of_parameters_widen() -> None:
    f = kernel("""
@gb.kernel
def f(n: gb.i8, x: gb.f32, s: float) -> tuple[int, float]:
    n = n * 1000
    s = 3
    return n, x + s
""")
    same(f, 100, 0.5, 1.0)


def test_assertions_and_raise() -> None:
    f = kernel("""
@gb.kernel
def f(n: int) -> int:
    assert n != 1
    assert n != 2, "two {} is not good"
    if n == 3:
        raise ValueError("three {} %s")
    if n == 4:
        raise KeyError
    if n == 5:
        raise NotImplementedError()
    return n
""")
    for n in range(7):
        same(f, n)
        if 0 < n < 6:
            with pytest.raises(Exception) as plain:  # noqa: PT011
                f.python(n)
            with pytest.raises(Exception) as compiled:  # noqa: PT011
                f(n)
            assert compiled.value.args == plain.value.args


def test_spread_arguments() -> None:
    f = kernel("""
@gb.kernel
def g(a: int, b: int, c: float) -> float:
    return a - b * c

@gb.kernel
def f(a: int) -> float:
    p = a, a + 1
    return g(*p, 2.0)
""")
    same(f, 5)


def test_constants_that_fail_at_run_time() -> None:
    f = kernel("""
@gb.kernel
def f(a: int) -> float:
    if a == 1:
        return 1 / 0
    if a == 2:
        return 1 << -1
    if a == 3:
        return 7 % 0
    if a == 4:
        return 2.0 ** 5000
    return 0.0
""")
    for a in range(5):
        same(f, a)


def test_other_names_for_functions() -> None:
    f = kernel("""
@gb.kernel
def inner(n: int) -> int:
    return n * 2

@gb.kernel
def f(n: int) -> float:
    total = 0.0
    for i in range(n):
        root = math.sqrt
        twice = inner
        total += root(i) + twice(i)
    return total
""")
    same(f, 10)


def test_what_is_called_underscore_may_be_anything() -> None:
    f = kernel(
        "@gb.kernel\ndef f(n: int) -> int:\n"
        "    total = 0\n"
        "    for _ in range(n):\n"
        "        _, _, x = 1.5, True, n\n"
        "        for _ in gb.prange(n):\n"
        "            total += x\n"
        "    return total\n"
    )
    assert f(5) == f.python(5) == 125
    g = kernel("@gb.kernel\ndef f(n: int) -> int:\n    _, x = n, 2\n    return _ + x\n")
    assert g(5) == 7
