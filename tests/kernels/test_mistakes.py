"""What is refused: where, and in which words."""

import pickle
import subprocess
import sys
from typing import Any

import pytest

import greenbeat as gb
from tests.kernels.making import module

# A mistake is marked by ▸ before it. The message must contain the text.
MISTAKES = [
    # ------------------------------------------------------------ at decoration
    ("def f(▸n) -> int:\n    return n", "parameter 'n' needs a type, as in `n: int`"),
    ("▸def f(n: int):\n    return n", "f needs the type of its result"),
    ("def f(▸n: str) -> int:\n    return 1", "str is no type of kernels"),
    ("def f(▸n: str) -> int:\n    return 1", "gb.Channel[...], and None for a result are"),
    ("def f(▸n: gb.Channel) -> int:\n    return 1", "a Channel says what it passes: write gb.Channel[gb.i64]"),
    ("def f(▸n: list) -> int:\n    return 1", "list is no type of kernels: write gb.Array[gb.f64]"),
    ("def f(▸n: list[int]) -> int:\n    return 1", "list[int] is no type of kernels: write gb.Array[gb.f64]"),
    ("def f(▸n: int | None) -> int:\n    return 1", "int | None is no type of kernels: int,"),
    ("def f(▸n: None) -> int:\n    return 1", "parameter 'n' cannot be None"),
    ("def f(▸n: gb.Array) -> int:\n    return 1", "an Array says what is in it"),
    ("def f(▸n: tuple[int, ...]) -> int:\n    return 1", "a tuple's length is part of its type"),
    ("def f(a: gb.Array[int]) -> ▸gb.Array[int]:\n    return a", "arrays are filled in place"),
    ("▸def f(*n: int) -> int:\n    return 1", "positional, without * and **"),
    ("▸def f(n: int) -> int:\n    yield n", "generator"),
    ("▸async def f(n: int) -> int:\n    return n", "coroutine"),
    ("def f(n: int, ▸m: 'undefined') -> int:\n    return n", "name 'undefined' is not defined"),
    # ------------------------------------------------------------ statements
    ("def f(n: int) -> int:\n    ▸import math\n    return n", "a kernel cannot contain `import`"),
    ("def f(n: int) -> int:\n    ▸try:\n        pass\n    finally:\n        pass\n    return 1", "`try`"),
    ("def f(n: int) -> int:\n    ▸with n:\n        pass\n    return n", "`with`"),
    ("def f(n: int) -> int:\n    ▸def g(): pass\n    return n", "a function inside a function"),
    ("def f(n: int) -> int:\n    ▸del n\n    return 1", "`del`"),
    ("def f(n: int) -> int:\n    return ▸[n][0]", "a list"),
    ("def f(n: int) -> int:\n    return ▸[x for x in n]", "a comprehension"),
    ("def f(n: int) -> int:\n    g = ▸lambda: 1\n    return n", "a lambda"),
    ("def f(n: int) -> int:\n    return ▸{n: 1}[n]", "a dict"),
    ("def f(n: int) -> int:\n    if (▸m := n):\n        pass\n    return n", "`:=`"),
    ("def f(n: int) -> int:\n    for i in ▸(1, 2):\n        pass\n    return n", "loops over range(...) or an array"),
    ("def f(n: int) -> int:\n    while n:\n        n -= 1\n    else:\n        ▸n = 1\n    return n", "no `else`"),
    ("def f(n: int) -> int:\n    raise Exception(▸n)", "a kernel's exception has a constant text"),
    ("def f(n: int) -> int:\n    raise Exception(▸3)", 'as in `raise Exception("text")`'),
    ("def f(n: int) -> int:\n    raise ValueError(▸f'x {n}')", 'constant text, as in `raise ValueError("text")`'),
    ("def f(n: int) -> int:\n    raise ValueError(▸'x %d' % n)", "a kernel's exception has a constant text"),
    ("def f(n: int) -> int:\n    raise ValueError(▸'{}'.format(n))", "a kernel's exception has a constant text"),
    ("def f(n: int) -> int:\n    raise ValueError(▸'x' + str(n))", "it tells nothing computed"),
    ("def f(n: int) -> int:\n    raise ValueError(▸TEXT)", "the name 'TEXT' is not defined"),
    ("def f(n: int) -> int:\n    ▸raise ValueError('a', 'b')", "one constant text"),
    ("def f(n: int) -> int:\n    ▸raise ValueError('a') from None", "one constant text"),
    ("def f(n: int) -> int:\n    assert n, ▸f'x {n}'\n    return n", 'as in `assert n > 0, "text"`'),
    ("def f(n: int) -> int:\n    return len(▸f'{n}')", "an f-string, unless all of it is constant"),
    ("def f(n: int) -> int:\n    raise ValueError(▸f'{1:3}')", "constant text"),
    ("def f(n: int) -> int:\n    ▸n.x = 1\n    return n", "assigns to names and to elements"),
    # ------------------------------------------------------------ names
    ("def f(n: int) -> int:\n    return ▸nothing", "the name 'nothing' is not defined"),
    ("def f(n: int) -> int:\n    if n:\n        x = 1\n    return ▸x", "may be unassigned here"),
    ("def f(n: int) -> int:\n    y = ▸x\n    x = 1\n    return y", "used here before it is assigned"),
    ("def f(n: int) -> int:\n    return ▸sorted(n)", "a kernel cannot call sorted"),
    ("def f(n: int) -> int:\n    ▸print(n)\n    return n", "a kernel cannot call print: call it in Python, before or"),
    ("def f(n: int) -> int:\n    return ▸math.factorial(n)", "cannot call math.factorial: call it in Python"),
    ("import time\n@gb.kernel\ndef f(n: int) -> float:\n    return ▸time.time()", "a kernel cannot call time.time:"),
    ("import random\n@gb.kernel\ndef f() -> float:\n    return ▸random.random()", "call random.Random.random: call it"),
    (
        "import cmath\n@gb.kernel\ndef f(x: float) -> float:\n    return ▸cmath.sqrt(x)",
        "cmath.sqrt: write math.sqrt, or",
    ),
    (
        "import ast\n@gb.kernel\ndef f(n: int) -> int:\n    return ▸ast.parse(n)",
        "cannot call ast.parse: call it in Python",
    ),
    (
        "def g(n): pass\n@gb.kernel\ndef f(n: int) -> int:\n    return ▸g(n)",
        "call g, a function of Python's: make it a",
    ),
    ("def f(n: int) -> int:\n    return ▸n(1)", "i64 is nothing to call"),
    ("def f(n: int) -> int:\n    return ▸math.nothing", "has no attribute 'nothing'"),
    ("def f(n: int) -> int:\n    return ▸n.real", "i64 has no attributes"),
    ("DATA = [1]\n@gb.kernel\ndef f(n: int) -> int:\n    return ▸DATA + n", "number is needed here, not a list"),
    (
        "from types import SimpleNamespace\nIT = SimpleNamespace(n=1)\n"
        "@gb.kernel\ndef f(n: int) -> int:\n    return ▸IT.n",
        "reads attributes of modules and classes, not of a SimpleNamespace",
    ),
    # ------------------------------------------------------------ types
    ("def f(n: int) -> int:\n    return ▸n / 2", "f returns i64, but this is f64: write int(...), or use //"),
    ("def f(n: int) -> bool:\n    return ▸n", "f returns bool, but this is i64: write a comparison"),
    ("def f(n: int) -> int:\n    x = 0\n    ▸x = 0.5\n    return n", "x is i64 since line 3, but this is float 0.5"),
    ("def f(n: int) -> tuple[int, int]:\n    return ▸n, n, n", "returns tuple[i64, i64], but this is tuple["),
    ("def f(n: int) -> int:\n    ▸a, b = n, n, n\n    return n", "2 names for a tuple of 3"),
    ("def f(n: int) -> int:\n    return ▸n & 0.5", "& is for integers"),
    ("def f(n: float) -> int:\n    return ▸~n", "~ is for integers"),
    ("def f(n: int, u: gb.u64) -> int:\n    return ▸n + u", "u64 and i64 do not mix"),
    ("def f(a: gb.Array[int]) -> int:\n    return ▸a + 1", "Array[i64] + int 1 is not part of kernels"),
    ("def f(a: gb.Array[int]) -> int:\n    return a[▸0.5]", "an index is an integer"),
    ("def f(a: gb.Array[int]) -> int:\n    return ▸a[0, 1]", "takes 1 of them, not 2 indices"),
    ("def f(a: gb.Array[int]) -> int:\n    return a[▸1:2][0]", "cannot take slices"),
    ("def f(a: gb.Array[int]) -> int:\n    if ▸a:\n        pass\n    return 1", "truth of an array is not clear"),
    ("def f(a: gb.Array[int]) -> int:\n    ▸a[0] = 1.5\n    return 1", "the array holds i64, but this is float 1.5"),
    ("def f(n: int) -> int:\n    return ▸f(n, n)", "takes 1 argument, not 2"),
    ("def f(n: int) -> int:\n    return ▸f(0.5)", "n of f is i64, but this is float 0.5"),
    ("def f(n: int) -> int:\n    return f(n=▸n)", "by position"),
    ("def f(n: int) -> int:\n    return ▸abs(n, n)", "abs(x) does not take 2 arguments"),
    ("def f(n: int) -> int:\n    return ▸round(n, 2)", "round(x) does not take 2 arguments"),
    ("def f(n: int) -> int:\n    return ▸n + 'x'", "number is needed here, not str"),
    ("def f(n: int) -> int:\n    return ▸1 << 64", "does not fit 64 bits"),
    ("▸def f(n: int) -> int:\n    if n:\n        return 1", "f can end without returning i64"),
    ("def f(n: int) -> None:\n    return ▸n", "this kernel's result is None"),
    ("def f(n: int) -> int:\n    return ▸None", "but no value is given"),
    ("def f(n: int) -> int:\n    return n if ▸n is None else 1", "write =="),
    ("def f(n: int) -> int:\n    é = 'ü'; return ▸missing", "the name 'missing' is not defined"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes(text: str, message: str) -> None:
    source = text if "@gb.kernel" in text else f"@gb.kernel\n{text}"
    line, column = next((n, s.index("▸") + 1) for n, s in enumerate(source.splitlines(), 1) if "▸" in s)
    with pytest.raises(gb.KernelError) as raised:
        module(source.replace("▸", ""))["f"].compile()
    error = raised.value
    assert message in error.message
    if "▸def" not in text and "▸async" not in text:
        assert (error.line, error.column) == (line, column), str(error)
    assert error.line == line
    assert error.file.startswith("<kernels of a test")
    assert str(error).startswith(f"{error.file}:{error.line}:{error.column}: {error.message}\n")
    assert str(error).splitlines()[1].strip() == source.replace("▸", "").splitlines()[line - 1].strip()


@pytest.mark.parametrize("head", ["self, n: int", "self: 'C', n: int", "cls, n: int", "this, n: int"])
def test_a_method_cannot_be_a_kernel(head: str) -> None:
    with pytest.raises(
        gb.KernelError, match="m is a method, and a kernel cannot be one: write a function outside"
    ) as raised:
        module(f"class C:\n    @gb.kernel\n    def m({head}) -> int:\n        return n\n")
    assert (raised.value.line, raised.value.column) == (3, 11)


def test_a_class_may_hold_kernels() -> None:
    held = module("class C:\n    @staticmethod\n    @gb.kernel\n    def m(n: int) -> int:\n        return n + 1\n")["C"]
    assert held.m(1) == held().m(1) == 2


def test_constant_texts_of_exceptions() -> None:
    names = module("LIMIT = 3\n@gb.kernel\ndef f(n: int) -> int:\n    raise ValueError(f'at most {LIMIT} {(1, 2)}')\n")
    with pytest.raises(ValueError, match=r"^at most 3 \(1, 2\)$"):
        names["f"](1)


def test_a_mistake_in_a_called_kernel_is_shown_there() -> None:
    names = module(
        """
@gb.kernel
def f(n: int) -> int:
    return g(n)

@gb.kernel
def g(n: int) -> int:
    return n +
""".replace("n +\n", "n + missing\n")
    )
    with pytest.raises(gb.KernelError) as raised:
        names["f"](1)
    assert (raised.value.line, raised.value.column) == (8, 16)
    with pytest.raises(gb.KernelError):
        names["f"](1)


def test_errors_are_pickled() -> None:
    error = gb.KernelError("no", "file.py", 3, 4, "    text")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "file.py:3:4: no\n    text\n   ^"[:16] + str(error)[16:]
    assert isinstance(error, gb.GreenbeatError)


def test_what_has_no_source() -> None:
    names: dict[str, Any] = {"gb": gb}
    with pytest.raises(gb.KernelError, match="the source of f is not at hand"):
        exec("@gb.kernel\ndef f(n: int) -> int:\n    return n\n", names)
    with pytest.raises(gb.KernelError, match="not a lambda"):
        gb.kernel(lambda n: n)
    wrong: Any
    for wrong in (len, int, 3):
        with pytest.raises(TypeError, match="a kernel is made of a function"):
            gb.kernel(wrong)


def test_the_prompt_has_no_source() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import greenbeat as gb\n@gb.kernel\ndef f(n: int) -> int: return n"],
        capture_output=True,
        text=True,
    )
    assert "KernelError" in done.stderr
    assert "not at hand" in done.stderr


def test_too_many_variables() -> None:
    body = "\n".join(f"    v{i} = n + {i}" for i in range(300))
    with pytest.raises(gb.KernelError, match="at most 200 variables"):
        module(f"@gb.kernel\ndef f(n: int) -> int:\n{body}\n    return v1\n")["f"](1)


def test_too_deep() -> None:
    with pytest.raises((gb.KernelError, RecursionError, MemoryError)):
        module("@gb.kernel\ndef f(n: int) -> int:\n    return " + "-" * 3000 + "n\n")["f"](1)


def test_frames_have_a_limit() -> None:
    text = "g(n)"
    for _ in range(12):
        text = f"f({', '.join(['g(n)'] * 60)}, {text})"
    parameters = ", ".join(f"p{i}: int" for i in range(61))
    names = module(f"""
@gb.kernel
def g(n: int) -> int:
    return n if n < 2 else g(n - 1) + g(n - 2)

@gb.kernel
def f({parameters}) -> int:
    return p0 ^ {" + ".join(f"p{i} * p{i}" for i in range(61))} + g(p3)

@gb.kernel
def h(n: int) -> int:
    return {text}
""")
    assert names["f"](*[1] * 61) == 63
    with pytest.raises(gb.KernelError, match="bytes of the stack, of which a kernel has 3584"):
        names["h"](1)
