"""Kernels as Python objects: how they are called, what they look like, what they raise."""

import copy
import gc
import inspect
import pickle
import threading
import traceback
import weakref
from typing import Any

import pytest

import greenbeat as gb
from tests.kernels.making import kernel, module


@gb.kernel
def divided(a: int, b: int = 2) -> float:
    """A quotient."""
    return inner(a, b) + 1


@gb.kernel
def inner(a: int, b: int) -> float:
    return a / b


def test_what_it_looks_like() -> None:
    assert repr(divided) == "<greenbeat.Kernel divided(a: i64, b: i64) -> f64>"
    assert divided.__name__ == divided.__qualname__ == "divided"
    assert divided.__module__ == __name__
    assert divided.__doc__ == "A quotient."
    assert str(inspect.signature(divided)) == "(a: int, b: int = 2) -> float"
    assert inspect.unwrap(divided) is divided.__wrapped__
    assert isinstance(divided, gb.Kernel)
    assert type(divided).__name__ == "Kernel"
    assert gb.Kernel(divided.__wrapped__)(6, 3) == 3


def test_arguments_by_name_and_defaults() -> None:
    assert divided(6, 3) == divided(a=6, b=3) == divided(6, b=3) == 3
    assert divided(6) == divided(a=6) == 4
    for arguments, names in (((), {}), ((1, 2, 3), {}), ((1,), {"c": 2}), ((1, 2), {"b": 2})):
        with pytest.raises(TypeError, match=r"^divided\(a: i64, b: i64\) -> f64: "):
            divided(*arguments, **names)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("int", 1.5, "argument 'x' of f(x: i64) -> None must be an int, not a float"),
        ("int", "1", "must be an int, not a str"),
        ("int", None, "must be an int, not None"),
        ("float", "1", "must be a float, not a str"),
        ("float", None, "must be a float, not None"),
        ("bool", 1, "must be a bool, not an int"),
        ("gb.u8", 2.0, "must be an int, not a float"),
        ("gb.u64", "", "must be an int, not a str"),
        ("tuple[int, bool]", (1, 1), "must be a tuple[i64, bool], not a tuple"),
        ("tuple[int, bool]", (1,), "must be a tuple[i64, bool], not a tuple"),
        ("tuple[int, bool]", [1, True], "must be a tuple[i64, bool], not a list"),
    ],
)
def test_wrong_arguments(parameter: str, value: object, message: str) -> None:
    f = kernel(f"@gb.kernel\ndef f(x: {parameter}) -> None:\n    pass\n")
    with pytest.raises(TypeError) as raised:
        f(value)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("int", 1 << 63), ("int", -(1 << 90)), ("gb.u8", -1), ("gb.u64", -1), ("gb.u64", 1 << 64), ("float", 1 << 2000)],
)
def test_arguments_that_do_not_fit(parameter: str, value: int) -> None:
    f = kernel(f"@gb.kernel\ndef f(x: {parameter}) -> None:\n    pass\n")
    with pytest.raises(OverflowError, match="argument 'x' of f.* does not fit"):
        f(value)


def test_what_converts() -> None:
    class Whole:
        def __index__(self) -> int:
            return 7

    class Real:
        def __float__(self) -> float:
            return 0.5

    class Broken:
        def __index__(self) -> int:
            raise ZeroDivisionError("mine")

    f = kernel("@gb.kernel\ndef f(a: int, b: float, c: gb.u64) -> tuple[int, float, gb.u64]:\n    return a, b, c\n")
    assert f(Whole(), Real(), Whole()) == (7, 0.5, 7)
    assert f(True, 3, (1 << 64) - 1) == (1, 3.0, (1 << 64) - 1)
    with pytest.raises(ZeroDivisionError, match="mine"):
        f(Broken(), 1, 1)


def test_conversions_may_call_kernels() -> None:
    class Nested:
        def __index__(self) -> int:
            return int(inner(8, 2))

    assert inner(Nested(), Nested()) == 1


def test_tracebacks_show_the_kernel() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        divided(1, 0)
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert [f.name for f in frames] == ["test_tracebacks_show_the_kernel", "inner"]
    assert frames[-1].filename == __file__
    assert frames[-1].line == "return a / b"
    first = inner.__wrapped__.__code__.co_firstlineno
    assert frames[-1].lineno == first + 2
    assert (frames[-1].colno, frames[-1].end_colno) == (11, 16)


def test_failures_leave_nothing_behind() -> None:
    for _ in range(1000):
        with pytest.raises(ZeroDivisionError):
            inner(1, 0)
    assert inner(4, 2) == 2


def test_pickling_is_by_name() -> None:
    assert pickle.loads(pickle.dumps(divided)) is divided
    assert copy.copy(divided) is copy.deepcopy(divided) is divided
    local = kernel(
        "def make():\n    @gb.kernel\n    def f(n: int) -> int:\n        return n\n    return f\nf = make()\n"
    )
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(local)


def test_kernels_are_collected() -> None:
    names = module("@gb.kernel\ndef f(n: int) -> int:\n    return n and f(n - 1)\n")
    assert names["f"](3) == 0
    watched = weakref.ref(names["f"])
    del names
    gc.collect()
    assert watched() is None


def test_compile_takes_what_has_changed() -> None:
    names = module("@gb.kernel\ndef f(n: int) -> int:\n    return n + STEP\nSTEP = 1\n")
    f = names["f"]
    f.compile()
    assert f(1) == 2
    names["STEP"] = 10
    assert f(1) == 2
    assert f.python(1) == 11
    f.compile()
    assert f(1) == 11


def test_redefinition() -> None:
    names = module("@gb.kernel\ndef f(n: int) -> int:\n    return n + 1\n")
    old = names["f"]
    assert old(1) == 2
    assert module("@gb.kernel\ndef f(n: int) -> int:\n    return n + 2\n")["f"](1) == 3
    assert old(1) == 2


def test_threads_that_call_it_first_at_once() -> None:
    f = kernel("@gb.kernel\ndef f(n: int) -> int:\n    return n if n < 2 else f(n - 1) + f(n - 2)\n")
    start, results = threading.Barrier(8), []

    def run() -> None:
        start.wait()
        results.append(f(15))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [610] * 8


def test_plain_python_calls_plain_python() -> None:
    names = module("""
@gb.kernel
def f(n: int) -> int:
    return g(n) + 1

@gb.kernel
def g(n: int) -> int:
    return n * n

def close(k):
    @gb.kernel
    def h(n: int) -> int:
        return k(n)
    return h
h = close(g)
""")
    assert names["f"].python(1 << 40) == (1 << 80) + 1
    assert names["h"].python(1 << 40) == 1 << 80
    assert names["f"](1 << 40) == 1


def test_a_kernel_cannot_be_made_without_a_function() -> None:
    hollow: Any = object.__new__
    with pytest.raises(TypeError):
        gb.Kernel()  # type: ignore[call-arg]
    try:
        made = hollow(gb.Kernel)
    except TypeError:
        return
    with pytest.raises((TypeError, AttributeError)):
        made(1)
