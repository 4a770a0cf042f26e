"""Small C programs, each compared with what Python says the answer is.

The programs' sources and modules lie beside this file; `rebuild.py` builds them anew. Every test runs on every engine
of `engines.py`.
"""

import json
import math
import random
import re
import struct
from collections.abc import Callable

import pytest

from .engines import BUFFER_BYTES, ENGINES, FOLDER, Program

MASK64 = (1 << 64) - 1
Load = Callable[[str], Program]


@pytest.fixture(params=ENGINES)
def load(request: pytest.FixtureRequest) -> Load:
    """Instantiates the program of that name on one of the engines."""
    engine = ENGINES[request.param]
    return lambda name: engine((FOLDER / f"{name}.wasm").read_bytes())


def signed64(value: int) -> int:
    """A 64-bit word as the signed integer an export takes."""
    value &= MASK64
    return value - (1 << 64) if value >> 63 else value


def signed32(value: int) -> int:
    """A 32-bit word as the signed integer an export takes."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def test_every_source_is_built() -> None:
    assert {path.stem for path in FOLDER.glob("*.c")} == {path.stem for path in FOLDER.glob("*.wasm")}


# json


def normalized(program: Program, text: bytes) -> bytes | int:
    program.put(text)
    length: int = program.call("normalize", len(text))
    return program.output(length) if length >= 0 else length


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        "",
        [1, -2, 3.5, 1e100, True, False, None],
        {"b": [1, {"z": 0, "a": [[]]}], "a": "text", "": " "},
        'quotes " and \\ and / and tabs \t, line ends \r\n, \x01',
        "äöü €, \U0001f40d and \U00010348",
        [[[[[[[["deep"]]]]]]], {"k": {"k": {"k": {}}}}],
        {str(i): [i, i * i, {"half": i / 2}] for i in range(300)},
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("layout", ["compact", "indented"])
def test_json_is_written_back_sorted(load: Load, value: object, layout: str) -> None:
    text = json.dumps(value, indent=2 if layout == "indented" else None, ensure_ascii=layout == "indented")
    wanted = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    # Python has short forms for these three, the program only the long ones.
    wanted = wanted.replace("\\t", "\\u0009").replace("\\n", "\\u000a").replace("\\r", "\\u000d")
    assert normalized(load("json"), text.encode()) == wanted.encode()


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("[1,", 3),
        ('{"a" 1}', 6),
        ('"open', 5),
        ("[1] 2", 4),
        (r'"\q"', 3),
        ("[" * 300, 201),
        (r'"\ud800x"', 7),
    ],
)
def test_json_errors_have_an_offset(load: Load, text: str, offset: int) -> None:
    program = load("json")
    assert normalized(program, text.encode()) == -1 - offset
    assert normalized(program, b"[2, 1]") == b"[2,1]"


# regex

PATTERNS = [
    "abc",
    "a*b",
    "a+?b*",
    "(ab|cd)*e",
    "^[a-c]+$",
    "[^a-z ]+",
    r"\d+\.\d*",
    r"(\w+)@(\w+)\.com",
    "a|ab|abc",
    "(a|ab)(c|bcd)(d*)",
    "x?y?z?$",
    "(?:aa|aab)+b",
    ".*c",
    ".*?c",
    r"[\d-]+",
    r"\s(a|b|c|d)\s",
    "(a+b+)+c",
]
SUBJECTS = [
    "",
    "abc",
    "aaaab",
    "abcdabcde",
    "xyz abc 12.50 somebody@example.com",
    "abcd",
    "aabaabb",
    "tel. 030-1234",
    "a b c d",
    "aabbabab",
    "aaabbbaabbc\nabc",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_regex_finds_what_python_finds(load: Load, pattern: str) -> None:
    program = load("regex")
    for subject in SUBJECTS:
        program.put(pattern.encode() + b"\0" + subject.encode())
        found = program.call("search", len(pattern), len(subject))
        # Python's $ also matches before a final line end, the program's does not.
        wanted = re.search(pattern.replace("$", r"\Z"), subject)
        assert found == (wanted.start() << 16 | wanted.end() if wanted else -1), subject


@pytest.mark.parametrize("pattern", ["(a", "a)", "[a", "((a|b)"])
def test_regex_refuses_malformed_patterns(load: Load, pattern: str) -> None:
    program = load("regex")
    program.put(pattern.encode() + b"\0a")
    assert program.call("search", len(pattern), 1) == -2


# pidigits


def digits_of_pi(count: int) -> str:
    """By Machin's formula, with some digits to spare for the rounding errors of its terms."""
    one: int = 10 ** (count + 10)

    def arccot(x: int) -> int:
        total = term = one // x
        divisor, positive = 3, False
        while term:
            term //= x * x
            total += term // divisor if positive else -(term // divisor)
            divisor, positive = divisor + 2, not positive
        return total

    return str(4 * (4 * arccot(5) - arccot(239)))[:count]


@pytest.mark.parametrize("count", [1, 2, 10, 100, 300])
def test_pidigits(load: Load, count: int) -> None:
    program = load("pidigits")
    assert program.call("digits", count) > 0
    assert program.output(count).decode() == digits_of_pi(count)


# heap


def test_heap_keeps_a_tree_and_joins_what_it_frees(load: Load) -> None:
    program = load("heap")
    chosen = random.Random(1)
    counts: dict[int, int] = {}
    for _ in range(4000):
        key = chosen.randrange(3000)
        if chosen.random() < 0.6:
            counts[key] = counts.get(key, 0) + 1
            assert program.call("insert", key) == counts[key]
        else:
            assert program.call("remove_key", key) == counts.pop(key, 0)
    held = program.call("list")
    assert list(struct.unpack(f"<{held}i", program.output(4 * held))) == sorted(counts)
    assert program.call("allocated") >= sum(16 + key % 200 for key in counts)
    for key, count in counts.items():
        assert program.call("remove_key", key) == count
    assert program.call("list") == 0
    assert program.call("allocated") == 0
    assert program.call("fragments") == 1


# nbody


class Bodies:
    """The same steps as `nbody.c`, operation for operation."""

    def __init__(self) -> None:
        def cell(i: int, j: int) -> float:
            return (i * 7 + j * 3) % 11 - 5.0

        self.positions = [[cell(i, axis) * 1.5 for axis in range(3)] for i in range(5)]
        self.velocities = [[cell(axis, i) * 0.125 for axis in range(3)] for i in range(5)]
        self.masses = [1.0 / (i + 1) for i in range(5)]

    def gap(self, i: int, j: int) -> tuple[list[float], float]:
        gap = [a - b for a, b in zip(self.positions[i], self.positions[j], strict=True)]
        return gap, gap[0] * gap[0] + gap[1] * gap[1] + gap[2] * gap[2]

    def energy(self) -> float:
        total = 0.0
        for i in range(5):
            x, y, z = self.velocities[i]
            total += 0.5 * self.masses[i] * (x * x + y * y + z * z)
            for j in range(i + 1, 5):
                total -= self.masses[i] * self.masses[j] / math.sqrt(self.gap(i, j)[1])
        return total

    def advance(self, steps: int, step: float) -> float:
        for _ in range(steps):
            for i in range(5):
                for j in range(i + 1, 5):
                    gap, squared = self.gap(i, j)
                    pull = step / (squared * math.sqrt(squared))
                    for axis in range(3):
                        self.velocities[i][axis] -= gap[axis] * self.masses[j] * pull
                        self.velocities[j][axis] += gap[axis] * self.masses[i] * pull
            for i in range(5):
                for axis in range(3):
                    self.positions[i][axis] += step * self.velocities[i][axis]
        return self.energy()


def test_nbody_arrives_at_the_same_bits(load: Load) -> None:
    program, bodies = load("nbody"), Bodies()
    program.call("prepare")
    assert program.call("energy") == bodies.energy()
    for steps, step in ((1, 0.01), (50, 0.01), (200, 0.005)):
        assert program.call("advance", steps, step) == bodies.advance(steps, step)


# hash64


def siphash(key0: int, key1: int, data: bytes) -> int:
    def rotate(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & MASK64

    v0, v1, v2, v3 = (
        word ^ key
        for word, key in zip(
            (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573),
            (key0, key1, key0, key1),
            strict=True,
        )
    )

    def turn(times: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(times):
            v0, v2 = (v0 + v1) & MASK64, (v2 + v3) & MASK64
            v1, v3 = rotate(v1, 13) ^ v0, rotate(v3, 16) ^ v2
            v0 = rotate(v0, 32)
            v2, v0 = (v2 + v1) & MASK64, (v0 + v3) & MASK64
            v1, v3 = rotate(v1, 17) ^ v2, rotate(v3, 21) ^ v0
            v2 = rotate(v2, 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v3 ^= word
        turn(2)
        v0 ^= word
    v2 ^= 0xFF
    turn(4)
    return v0 ^ v1 ^ v2 ^ v3


def test_siphash(load: Load) -> None:
    program = load("hash64")
    key0, key1 = 0x0706050403020100, 0x0F0E0D0C0B0A0908
    for length in (*range(17), 63, 64, 1000):
        data = bytes(i & 255 for i in range(length))
        program.put(data)
        assert program.call("siphash", key0, key1, length) & MASK64 == siphash(key0, key1, data)
    # The example of the algorithm's published description: fifteen bytes, keys as above.
    assert siphash(key0, key1, bytes(range(15))) == 0xA129CA6149BE45E5


def test_fnv1a_and_splitmix(load: Load) -> None:
    program = load("hash64")
    hashed = 0xCBF29CE484222325
    data = b"greenbeat" * 20
    for byte in data:
        hashed = (hashed ^ byte) * 0x100000001B3 & MASK64
    program.put(data)
    assert program.call("fnv1a", len(data)) & MASK64 == hashed
    seed = mixed = 0
    for _ in range(10):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK64
        mixed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & MASK64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK64
        mixed ^= mixed >> 31
    assert program.call("splitmix", 0, 10) & MASK64 == mixed


@pytest.mark.parametrize(
    ("a", "b"), [(7, 3), (-7, 3), (7, -3), (-7, -3), (1 << 62, 10), (-(1 << 63), 3), (5, -(1 << 63))]
)
def test_division_of_64_bit_integers(load: Load, a: int, b: int) -> None:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    remainder = a - quotient * b
    high, low = divmod(a & MASK64, b & MASK64)
    assert load("hash64").call("divide", a, b) == signed64(quotient * 3 + remainder + high * 5 + low)


# language

FACTORIAL = ": factorial dup 2 < if drop 1 else dup 1 - factorial * then ; 0 begin dup factorial . 1 + dup 13 = until"
PRIMES = """
: divides over over mod 0 = ;
: prime 2 begin over over dup * < if drop drop 1 1 else
    divides if drop drop 0 1 else 1 + 0 then then until ;
2 begin dup prime if dup . then 1 + dup 100 = until
"""
FIBONACCI = ": fib dup 2 < if else dup 1 - fib swap 2 - fib + then ; 20 fib ."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1 2 + .", "3 "),
        ("-7 2 / . -7 2 mod . 2147483647 1 + .", "-3 -1 -2147483648 "),
        ("-2147483648 -1 / . 1 2 3 rot . . .", "-2147483648 1 3 2 "),
        ("72 emit 105 emit", "Hi"),
        ("6 3 and . 6 3 or . 1 2 swap . .", "2 7 1 2 "),
        (FACTORIAL, "".join(f"{math.factorial(i)} " for i in range(13))),
        (PRIMES, "".join(f"{i} " for i in range(2, 100) if all(i % j for j in range(2, i)))),
        (FIBONACCI, "6765 "),
    ],
)
def test_language(load: Load, text: str, wanted: str) -> None:
    program = load("language")
    program.put(text.encode())
    assert program.output(program.call("run", len(text), 1_000_000)).decode() == wanted


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("+", 1),
        (": deep deep ; deep", 2),
        ("0 begin 1 0 until", 2),
        ("unknown", 3),
        ("1 0 /", 4),
        ("1 if 2", 5),
        ("then", 5),
        ("begin 0 until", 6),
    ],
)
def test_language_errors(load: Load, text: str, error: int) -> None:
    program = load("language")
    program.put(text.encode())
    assert program.call("run", len(text), 100_000) == -error
    program.put(b"40 2 + .")
    assert program.output(program.call("run", 8, 100)) == b"42 "


# lz


def lz_decompress(data: bytes) -> bytes:
    out = bytearray()
    at = items = flags = 0
    while at < len(data):
        if items % 8 == 0:
            flags = data[at]
            at += 1
        if flags >> items % 8 & 1:
            distance, extra = struct.unpack_from("<HB", data, at)
            for _ in range(extra + 4):
                out.append(out[-distance])
            at += 3
        else:
            out.append(data[at])
            at += 1
        items += 1
    return bytes(out)


LZ_INPUTS = {
    "empty": b"",
    "short": b"abc",
    "repeats": b"greenbeat " * 3000,
    "zeros": bytes(BUFFER_BYTES - 20),
    "words": b" ".join(random.Random(2).choices([b"one", b"two", b"three", b"seventeen"], k=5000)),
    "noise": random.Random(3).randbytes(20000),
}


@pytest.mark.parametrize("name", LZ_INPUTS)
def test_lz_there_and_back(load: Load, name: str) -> None:
    program, data = load("lz"), LZ_INPUTS[name]
    program.put(data)
    packed = program.output(program.call("compress", len(data)))
    assert lz_decompress(packed) == data
    assert len(packed) < len(data) / 2 or name in ("empty", "short", "noise")
    program.put(packed)
    assert program.output(program.call("decompress", len(packed))) == data


def test_lz_refuses_what_it_did_not_write(load: Load) -> None:
    program = load("lz")
    for packed in (b"\x01\x05\x00\x00", b"\x01\x00\x00\x00", b"\x00", b"\x01\x01"):
        program.put(packed)
        assert program.call("decompress", len(packed)) == -1


def test_lz_signed_loads(load: Load) -> None:
    program, data = load("lz"), random.Random(4).randbytes(1001)
    program.put(data)
    words = struct.unpack("<500h", data[1:])
    assert program.call("signed_sum", len(data)) == sum(struct.unpack("1001b", data)) + sum(words)


# numbers


def single(value: float) -> float:
    """Rounded to single precision."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


INFINITY = math.inf
NUMBERS: list[tuple[str, tuple[float, ...], float]] = [
    ("leading_zeros", (0,), 32),
    ("leading_zeros", (1,), 31),
    ("leading_zeros", (-1,), 0),
    ("trailing_zeros", (0,), 64),
    ("trailing_zeros", (-(1 << 63),), 63),
    ("count_ones", (-1,), 64),
    ("count_ones", (0x5555555555555555,), 32),
    ("rotate_left", (signed32(0x80000001), 1), 3),
    ("rotate_left", (0x12345678, 36), 0x23456781),
    ("rotate_right", (1, 65), -(1 << 63)),
    ("shift_arithmetic", (-8, 66), -2),
    ("extend_byte", (0x80,), -128),
    ("extend_word", (0x1_8000_0000,), -(1 << 31)),
    ("round_even", (2.5,), 2.0),
    ("round_even", (-0.5,), -0.0),
    ("round_even", (4503599627370497.5,), 4503599627370498.0),
    ("round_down", (-1.5,), -2.0),
    ("round_up", (-0.25,), -0.0),
    ("cut", (-0.75,), -0.0),
    ("root", (2.0,), single(math.sqrt(2.0))),
    ("with_sign", (1.5, -0.0), -1.5),
    ("magnitude", (-0.0,), 0.0),
    ("to_i32", (1e10,), 2147483647),
    ("to_i32", (-INFINITY,), -2147483648),
    ("to_i32", (math.nan,), 0),
    ("to_i32", (-2147483648.9,), -2147483648),
    ("to_u64", (-1.0,), 0),
    ("to_u64", (INFINITY,), -1),
    ("to_u64", (single(1e19),), signed64(int(single(1e19)))),
    ("from_u64", (-1,), 18446744073709551616.0),
    ("from_u64", (signed64(0x8000000000000401),), 9223372036854777856.0),
    ("from_i64", (16777217,), 16777216.0),
    ("from_i64", (0x7FFFFF4000000001,), float(0x7FFFFF8000000000)),
    ("demote", (1e-45,), single(1e-45)),
    ("demote", (1e39,), INFINITY),
    ("bits", (-0.0,), -(1 << 63)),
    ("bits", (5e-324,), 1),
    ("less", (math.nan, 1.0), 0),
    ("not_greater", (math.nan, 1.0), 1),
    ("less", (-0.0, 0.0), 0),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), NUMBERS)
def test_numbers(load: Load, name: str, arguments: tuple[float, ...], wanted: float) -> None:
    result = load("numbers").call(name, *arguments)
    assert result == wanted
    # Equality does not tell the zeros apart.
    assert math.copysign(1.0, result) == math.copysign(1.0, wanted)
    assert type(result) is type(wanted)
