"""Random expressions and statements, compiled and in plain Python."""

import math
import re
from random import Random

import pytest

from tests.kernels.making import kernel, same

# What expressions are made of: w is an integer, r a float, t a bool. Integers are kept small, so that none wraps.
SHAPES = {
    "w": [
        "((w + w) % 1009)", "(w - w) % -1013", "(w * w % 1019)", "(w // w)", "(w % w)", "(w & w | w)",
        "((w << (w & 7)) ^ w) % 999", "(w >> w)", "(w if t else w)", "(w and w)", "(w or w)", "int(t)", "abs(w)",
        "min(w, w, w)", "(-w)", "(~w)", "(w ** 3 % 1021)", "TABLE[(w + a) % 7]", "divmod(w, w)[1]", "g(w, r)",
        "(w + t) % 77",
    ],
    "r": [
        "(r + r)", "(r - w)", "(w * r)", "(w / w)", "(r / w)", "(r // r)", "(r % r)", "(r if t else r)", "float(w)",
        "max(r, r)", "math.sqrt(r)", "math.floor(math.fmod(r, 1000)) / 3", "(-r)", "math.sin(r)", "abs(r) ** 0.5",
    ],
    "t": [
        "(w < r)", "(r == w)", "(w != w >= r)", "(t and t)", "(t or not t)", "(w in (1, w))", "bool(r)", "(t ^ t)",
    ],
}  # fmt: skip
ATOMS = {"w": ["a", "b", "7", "-3", "0", "2"], "r": ["x", "y", "0.5", "-2.0", "1e10"], "t": ["c", "True", "False"]}


def expression(random: Random, kind: str, depth: int = 4) -> str:
    """A random expression of a kind."""
    if depth == 0 or random.random() < 0.2:
        return random.choice(ATOMS[kind])
    shape = random.choice(SHAPES[kind])
    return re.sub(r"\b[wrt]\b", lambda found: expression(random, found[0], depth - 1), shape)


PROGRAM = """
TABLE = (3, 1, 4, 1, 5)

@gb.kernel
def g(n: int, z: float) -> int:
    return n % 13 if z > 0 else n // 2

@gb.kernel
def f(a: int, b: int, x: float, y: float, c: bool) -> tuple[int, float, bool]:
    i = {0}
    z = {1} + 0.0
    for a in range(b % 9):
        if {2}:
            i = {3}
            continue
        elif {4}:
            y = {5} + 0.0
            break
        i = i % 1000 + ({6}) % 10
    while i % 7 and c:
        i = i // 2
        c = {7}
        x = x / 2 if x == x else 0.0
        if abs(x) < 0.01:
            break
    match i:
        case 0 | 1:
            z = z + 1
        case 2 if c:
            i = {8}
        case m if m > 100:
            z = {9} + 0.0
    return i, z, {10}
"""


@pytest.mark.parametrize("seed", range(100))
def test_programs(seed: int) -> None:
    random = Random(seed)
    f = kernel(PROGRAM.format(*(expression(random, kind) for kind in "wrtwtrwtwrt")))
    for _ in range(20):
        x, y = random.choice([random.uniform(-50, 50), 0.0, 4.0]), random.choice([1.5, -2.5, math.inf, math.nan])
        same(f, random.randint(-100, 100), random.randint(-20, 20), x, y, random.random() < 0.5)
