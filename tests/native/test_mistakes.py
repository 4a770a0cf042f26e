"""What the compiler says about wrong functions, and where. In the sources below « stands before the place it must name."""

import importlib.util
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from greenbeat.native import NativeError
from greenbeat.native.language import NativeFunction
from greenbeat.native.unit import Unit

PRELUDE = """
from greenbeat.native import *

@struct
class Node:
    next: ptr["Node"]
    value: i64
    items: array[u8, 4]

@native
def helper(x: i32, p: ptr[u8]) -> i32:
    return x

@native
def procedure(x: i32) -> None:
    pass

@native(convention="tailcc")
def other_convention(x: i32) -> i32:
    return x

@inline
def half(x: i32):
    if x > 0:
        return x

@inline
def endless(x):
    return endless(x)

@extern
def strlen(text: ptr[u8]) -> u64: ...

LIMIT = 5
KIND = u16
counter = static(u64, name="counter")

"""

MISTAKES = [
    # Names
    ("def f(x: i32) -> i32:\n    return «y", "unknown name 'y'"),
    ("def f(x: i32) -> i32:\n    y = «y + x\n    return y", "y is used here before it is assigned"),
    ("def f(x: i32) -> i32:\n    if x > 0:\n        y = x\n    return «y", "y may be used here before it is assigned"),
    (
        "def f(x: i32) -> i32:\n    if x > 0:\n        y = x\n    else:\n        z = x\n    return «y",
        "y may be used here before it is assigned",
    ),
    ("def f(x: i32) -> i32:\n    for i in range(x):\n        y = i\n    return «y", "y may be used here before it is"),
    (
        "def f(x: i32) -> i32:\n    while x > 0:\n        y = x\n        x -= 1\n    return «y",
        "y may be used here before",
    ),
    ("def f(x: i32) -> i32:\n    y: i32\n    return «y", "y may be used here before it is assigned"),
    (
        "def f(x: u32) -> i32:\n    match x:\n        case 1:\n            y: i32 = 1\n        case 2:\n            y = 2\n"
        "    return «y",
        "y may be used here before it is assigned",
    ),
    (
        "def f(x: i32) -> i32:\n    while True:\n        if x > 1:\n            break\n        y = x\n    return «y",
        "y may be used here before it is assigned",
    ),
    (
        "def f(x: i32) -> i32:\n    for k in unroll([1, 2]):\n        if x == k:\n            continue\n        y = x\n"
        "    return «y",
        "y may be used here before it is assigned",
    ),
    ("def f(x: i32) -> None:\n    LIMIT = 7\n    «LIMIT = KIND", "LIMIT is i64, but this is u16"),
    (
        "def f(x: i32) -> None:\n    k = u8\n    «k = u16",
        "k is known at compile time here and cannot be assigned again",
    ),
    ("def f(x: i32) -> None:\n    for «x in unroll([1]):\n        pass", "x is a variable already"),
    # Types
    (
        "def f(x: i32, y: i64) -> i64:\n    return «x + y",
        r"\+ has i32 on its left, but this is i64: write i32\(\.\.\.\)",
    ),
    ("def f(x: i32, y: u32) -> bool:\n    return «x < y", "the other side of the comparison is i32, but this is u32"),
    (
        "def f(x: i64) -> None:\n    y: i32 = 0\n    «y = x",
        r"y is i32, but this is i64: write i32\(\.\.\.\) to convert",
    ),
    ("def f(x: i32) -> None:\n    y: i32 = 0\n    «y: i64 = 0", "y is i32 already"),
    ("def f(x: i64) -> i32:\n    «return x", "this function returns i32, but this is i64"),
    ("def f(x: i32) -> i32:\n    «return None", "this function returns i32, but no value is given"),
    ("def f(x: i32) -> None:\n    «return x", "this function returns nothing"),
    ("«def f(x: i32) -> i32:\n    if x > 0:\n        return 1", "f can end without returning i32"),
    ("def f(x: i32) -> i32:\n    return «x / 2", r"/ divides floats; integers are divided by // or divide_truncating"),
    ("def f(x: f64) -> f64:\n    return «x // 2.0", "f64 has no operator //"),
    ("def f(x: f64) -> f64:\n    return «x << 1", "f64 cannot be shifted"),
    ("def f(x: i32) -> i32:\n    return «x << 32", "i32 can be shifted by 0 to 31, not 32"),
    ("def f(x: i32) -> i32:\n    return «x ** 2", r"i32 has no operator \*\*"),
    ("def f(x: bool) -> bool:\n    return «x + x", r"bool has no operator \+"),
    ("def f(x: bool) -> bool:\n    return «-x", "bool has no such operator"),
    ("def f(x: v128) -> bool:\n    return «x == x", "v128 cannot be compared"),
    ("def f(x: u8) -> u8:\n    return «x + 256", "256 does not fit u8"),
    ("def f(x: i8) -> None:\n    y: i8 = 0\n    «y = -129", "-129 does not fit i8"),
    ("def f(x: f32) -> f32:\n    return «x + 1e39", r"1e\+39 does not fit f32"),
    ("def f(x: i32) -> i32:\n    return «x + 1.5", r"\+ has i32 on its left, but this is the float 1.5"),
    ("def f(x: i32) -> i32:\n    return «x + 'a'", r"\+ has i32 on its left, but this is the str 'a'"),
    ("def f(x: i32) -> None:\n    if «x:\n        pass", "a condition is a bool, not i32: compare it with 0"),
    (
        "def f(p: ptr[u8]) -> None:\n    while «p:\n        pass",
        "a condition is a bool, not ptr.u8.: compare it with None",
    ),
    ("def f(x: i32) -> bool:\n    return «0 < x < 5", "compare two values at a time"),
    ("def f(x: i32) -> bool:\n    return «x in (1, 2)", "values are compared by < <= > >= == !="),
    ("def f(x: i32) -> i32:\n    «return 1 if x > 0 else 2.5", "returns i32, but this is f64"),
    (
        "def f(x: i32) -> i32:\n    return «x if x > 0 else i64(2)",
        "the other side of the conditional is i32, but this is i64",
    ),
    ("def f(x: i32) -> bool:\n    return «bool(x)", r"a truth value is made by comparing: write `x != 0`"),
    ("def f(x: i32) -> i32:\n    «y = procedure(x)\n    return 0", "y cannot be a variable: there is no value here"),
    ("def f(x: i32) -> None:\n    y: «Node", "y cannot be a variable: a whole Node is no value"),
    ("def f(x: i32) -> None:\n    y: «dict = 0", "this annotation is no native type"),
    # Signatures
    ("def f(«x) -> i32:\n    return x", "parameter 'x' needs a type, as in `x: i32`"),
    ("«def f(x: i32):\n    return x", "the result needs a type, as in `-> i32` or `-> None`"),
    ("«def f(x: i32 = 5) -> i32:\n    return x", "native functions take plain positional parameters without defaults"),
    ("«def f(*x: i32) -> i32:\n    return 0", "native functions take plain positional parameters"),
    ("def f(«x: Node) -> i32:\n    return 0", "x cannot be a parameter: a whole Node is no value"),
    ("def f(x: i32) -> «array[u8, 4]:\n    return 0", "f cannot return this: a whole array"),
    ("«def f(x: 5) -> i32:\n    return 0", "an annotation of f: 5 is no native type"),
    ("«def f(x: 'nowhere') -> i32:\n    return 0", "an annotation of f: name 'nowhere' is not defined"),
    # Calls
    ("def f(x: i32) -> i32:\n    return «helper(x)", r"helper takes 2 arguments, not 1"),
    ("def f(x: i32) -> i32:\n    return «helper(x, x)", r"argument 2 of .*helper is ptr\[u8\], but this is i32"),
    ("def f(x: i32) -> i32:\n    return helper(x, p=«None)", "native calls have positional arguments only"),
    ("def f(x: i32) -> i32:\n    return helper(«*x)", r"only compile-time sequences are spread by \*"),
    ("def f(x: i32) -> i32:\n    return «half(x)", "half can end without returning a value"),
    ("def f(x: i32) -> i32:\n    return «half(x, x)", "half takes 1 argument, not 2"),
    ("def f(x: i64) -> i32:\n    return «half(x)", "x of half is i32, but this is i64"),
    ("def f(x: i32) -> i32:\n    return «x(1)", "i32 cannot be called"),
    (
        "def f(x: i32) -> i32:\n    return «print(x)",
        "print is not native: native code can call it only with compile-time",
    ),
    ("def f(x: i32) -> i32:\n    return «int('x')", "ValueError at compile time: invalid literal"),
    ("def f(x: i32) -> i32:\n    return «strlen(x)", r"argument 1 of strlen is ptr\[u8\], but this is i32"),
    ("def f(x: i32) -> i32:\n    return «tail(x)", "tail.* takes one call"),
    ("def f(x: i32) -> i32:\n    return «tail(half(x))", "an inline function cannot be tail-called"),
    (
        "def f(x: i32) -> i32:\n    return «tail(other_convention(x))",
        "a tail call needs a function with this function's calling",
    ),
    (
        "def f(x: i32) -> i32:\n    return «tail(helper(x, None))",
        "outside `tailcc` needs a function with this function's param",
    ),
    ("def f(x: i32) -> i32:\n    return «i32(x, x)", r"i32\(\.\.\.\) converts one value"),
    ("def f(x: i32) -> i32:\n    return «Node(x)", r"Node\(\.\.\.\): a whole Node is no value"),
    ("def f(x: i32) -> None:\n    «trap(3)", "inside a function that was not told how to trap"),
    # Pointers and memory
    ("def f(p: ptr[Node]) -> i64:\n    return «p.valeu", "Node has no field 'valeu': it has next, value, items"),
    ("def f(p: ptr[u8]) -> i64:\n    return «p.value", r"ptr\[u8\] has no fields"),
    ("def f(p: ptr[void]) -> i64:\n    return «p[0]", r"ptr\[void\] has no elements"),
    ("def f(x: i32) -> i32:\n    return «x[0]", "i32 has no elements"),
    ("def f(p: ptr[u8], x: f64) -> u8:\n    return «p[x]", "an index is an integer, not f64"),
    ("def f(p: ptr[u8], q: ptr[u8]) -> ptr[u8]:\n    return «p + q", r"an index is an integer, not ptr\[u8\]"),
    ("def f(p: ptr[u8], q: ptr[u16]) -> i64:\n    return «p - q", r"ptr\[u8\] and ptr\[u16\] have no distance"),
    ("def f(p: ptr[u8]) -> ptr[u8]:\n    return «p * 2", r"pointers have no operator \*"),
    (
        "def f(p: ptr[u8]) -> ptr[u16]:\n    «return p",
        r"this function returns ptr\[u16\], but this is ptr\[u8\]: write cast",
    ),
    ("def f(p: ptr[Node]) -> None:\n    «p.items = 0", "a whole array.u8, 4. cannot be assigned"),
    ("def f(p: ptr[Node]) -> None:\n    «p.value = p", r"this place holds i64, but this is ptr\[Node\]"),
    ("def f(x: i32) -> ptr[i32]:\n    return addressof(«x)", "only fields, elements and functions have an address"),
    ("def f(x: i32) -> u8:\n    return «load(u8, x)", "a pointer is needed here, not i32"),
    ("def f(p: ptr[u8]) -> u8:\n    return «load(p, u8)", "the first argument is a type"),
    ("def f(p: ptr[u8]) -> u8:\n    return «load(u8)", r"load\(kind, pointer, offset\) does not take 1 argument$"),
    ("def f(x: i64) -> f32:\n    return «bitcast(f32, x)", "bitcast keeps the size: i64 has 8 bytes, f32 4"),
    ("def f(x: i64) -> u8:\n    return «cast(f32, x)", "cast reinterprets pointers and integers, not i64 as f32"),
    ("def f(p: ptr[bool]) -> None:\n    «atomic_load(p, 'acquire')", "bool is not atomic"),
    (
        "def f(p: ptr[u8]) -> u8:\n    return «atomic_load(p, 'release')",
        "an ordering here is one of relaxed, acquire, seq_cst",
    ),
    (
        "def f(p: ptr[u8]) -> u8:\n    return «atomic_update('nand', p, 1, 'relaxed')",
        "an atomic update is one of add, sub",
    ),
    ("def f(v: v128) -> u8:\n    return «extract_lane(v, u8, 16)", "a lane is a compile-time number from 0 to 15"),
    ("def f(x: i32) -> None:\n    «stack(u8, x)", "the count is a compile-time number"),
    ("def f(x: f64) -> f64:\n    return «count_leading_zeros(x)", "an integer with a type is needed here"),
    ("def f(x: i32) -> f64:\n    return «square_root(x)", "a float with a type is needed here"),
    # Statements
    ("def f(x: i32) -> None:\n    «break", None),
    ("def f(x: i32) -> None:\n    «with x:\n        pass", "`with` is not part of native code"),
    ("def f(x: i32) -> None:\n    «try:\n        pass\n    finally:\n        pass", "`try` is not part of native code"),
    ("def f(x: i32) -> None:\n    «raise ValueError", "`raise` is not part of native code"),
    ("def f(x: i32) -> None:\n    «def g():\n        pass", "a function inside a function is not part of native code"),
    ("def f(x: i32) -> None:\n    y = «lambda: x", "a lambda is not part of native code"),
    ("def f(x: i32) -> None:\n    y = «[i for i in (1, 2)]", "a comprehension is not part of native code"),
    ("def f(x: i32) -> None:\n    y = («z := x)", "`:=` is not part of native code"),
    ("def f(x: i32) -> None:\n    «y = z = x", "assign to one name at a time"),
    ("def f(x: i32) -> None:\n    «y, z = x", "2 values are needed here"),
    ("def f(x: i32) -> None:\n    «helper(x, None) = 3", None),
    ("def f(x: i32) -> None:\n    «LIMIT.real = 3", "this cannot be assigned to: a name, a field or an element can"),
    ("def f(x: i32) -> None:\n    for i in «[1, 2]:\n        pass", r"native loops are `for name in range"),
    (
        "def f(x: i32) -> None:\n    for i in «range(x, 5, x):\n        pass",
        "the step of a native range is a compile-time",
    ),
    ("def f(x: u32) -> None:\n    for i in «range(x, -1, -1):\n        pass", "a range of u32 never goes below 0"),
    ("def f(x: i32) -> None:\n    for i in range(x):\n        pass\n    else:\n        «pass", "`else` after a loop"),
    (
        "def f(x: i32) -> None:\n    for i in «unroll(x):\n        pass",
        "unroll takes one sequence known at compile time",
    ),
    (
        "def f(x: i32) -> None:\n    match x:\n        case 1:\n            pass\n        case «1 | 2:\n            pass",
        "1 is matched twice",
    ),
    ("def f(x: f64) -> None:\n    match «x:\n        case 1:\n            pass", "match needs an integer, not f64"),
    ("def f(x: i32) -> None:\n    match x:\n        case «y:\n            pass", "a compile-time integer or `_`"),
    (
        "def f(x: i32) -> None:\n    match x:\n        case 1 if «x > 0:\n            pass",
        "a `case` of native code has no guard",
    ),
    ("def f(x: u8) -> None:\n    match x:\n        case «300:\n            pass", "300 does not fit u8"),
    # Compile time
    ("def f(x: i32) -> i32:\n    return «(1, 2)[x]", "a compile-time sequence is indexed at compile time"),
    ("def f(x: i32) -> i32:\n    return «(1, 2)[5]", "IndexError: tuple index out of range"),
    ("def f(x: i32) -> i32:\n    return «1 // 0", "// at compile time: .*by zero"),
    ("def f(x: i32) -> i32:\n    return «x.real", "i32 has no fields"),
    ("def f(x: i32) -> ptr[u8]:\n    return «f'{x}'", "text is made at compile time only"),
    ("def f(x: i32) -> i32:\n    return «KIND.nothing", "has no attribute 'nothing'"),
]


def compile_mistake(directory: Path, source: str, prelude: str = PRELUDE) -> tuple[NativeError, Path, str]:
    """Compile the `f` of a source and return what the compiler said, the file, and the source without marks."""
    path = directory / "mistake.py"
    text = f"{prelude}@native\n{source.replace('«', '')}\n"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"mistake_{abs(hash(directory))}", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(NativeError) as caught:
        Unit("mistake", [module.f]).text()
    return caught.value, path, text


@pytest.mark.parametrize(("source", "message"), [m for m in MISTAKES if m[1]], ids=lambda x: x.splitlines()[-1].strip())
def test_mistakes(source: str, message: str, tmp_path: Path) -> None:
    error, path, text = compile_mistake(tmp_path, source)
    before = (PRELUDE + "@native\n" + source).split("«")[0]
    here = (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
    assert re.search(message, error.message)
    if "half can end" in message:
        assert error.__notes__ == [f"half is expanded at {path}:{here[0]}"]
    else:
        assert (error.line, error.column) == here
    assert error.file == str(path)
    assert f"{path}:{error.line}:{error.column}: " in str(error)
    assert text.splitlines()[error.line - 1] in str(error)


@pytest.mark.parametrize("source", [m[0] for m in MISTAKES if m[1] is None])
def test_not_even_python(source: str) -> None:
    text = source.replace("«", "")
    with pytest.raises(SyntaxError):
        compile(text, "mistake.py", "exec")


def test_an_endless_expansion_is_refused(tmp_path: Path) -> None:
    error, _, _ = compile_mistake(tmp_path, "def f(x: i32) -> i32:\n    return endless(x)")
    assert "endless expands itself without end" in error.message


def test_columns_count_characters(tmp_path: Path) -> None:
    error, _, _ = compile_mistake(tmp_path, 'def f(x: i32) -> i32:\n    return len("äöü") + y')
    assert error.column == len('    return len("äöü") + ') + 1


def test_errors_can_be_pickled(tmp_path: Path) -> None:
    error, _, _ = compile_mistake(tmp_path, "def f(x: i32) -> i32:\n    return y")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.line, copy.message) == (str(error), error.line, error.message)


def test_native_code_needs_its_source() -> None:
    names: dict[str, Any] = {}
    exec("from greenbeat.native import *\n@native\ndef f() -> None:\n    pass\n", names)
    assert isinstance(names["f"], NativeFunction)
    with pytest.raises(NativeError, match="the source of f cannot be found"):
        Unit("mistake", [names["f"]]).text()


def test_native_functions_are_not_called_from_python() -> None:
    names: dict[str, Any] = {}
    exec("from greenbeat.native import *\n@native\ndef f() -> None:\n    pass\n", names)
    with pytest.raises(TypeError, match="is native code"):
        names["f"]()
    with pytest.raises(TypeError, match="means something in native code only"):
        names["likely"](True)
