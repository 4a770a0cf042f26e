"""The guest programs of the benchmarks: the list of them, with the amount of work each is asked for.

Every guest is one source file beside this one and the `.wasm` built from it. It imports nothing and exports
`run(n: i32) -> i32`, which does an amount of work proportional to `n` (fib apart) and returns a checksum. `n` is
chosen so that a good interpreter takes 0.2 to 0.6 seconds on a machine of today; `slow_n` is for peers a hundred times
slower than that, `check_n` for the plain Python references in `reference.py`.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Guest:
    """One guest program: what it is called, what it exercises, and how much of it to run."""

    name: str
    about: str
    n: int
    slow_n: int
    check_n: int

    @property
    def wasm(self) -> Path:
        """The built module."""
        return FOLDER / f"{self.name}.wasm"


GUESTS = (
    Guest("fib", "recursive calls", n=35, slow_n=28, check_n=15),
    Guest("sieve", "byte loads and stores", n=120, slow_n=1, check_n=2),
    Guest("crc32", "table lookups", n=600, slow_n=5, check_n=2),
    Guest("matmul", "f64 arithmetic", n=500, slow_n=2, check_n=2),
    Guest("convolution", "f32 arithmetic", n=80, slow_n=2, check_n=2),
    Guest("sha256", "straight-line i32 code", n=1500, slow_n=5, check_n=3),
    Guest("string_search", "short unpredictable loops", n=1400, slow_n=5, check_n=7),
    Guest("indirect", "call_indirect", n=70000, slow_n=200, check_n=5),
    Guest("bulk", "memory.copy and memory.fill", n=6000000, slow_n=10000, check_n=300),
    Guest("coremark_like", "lists, matrices, a state machine", n=3000, slow_n=10, check_n=3),
)


def guest(name: str) -> Guest:
    """The guest of that name."""
    for each in GUESTS:
        if each.name == name:
            return each
    raise KeyError(f"no guest program is called {name!r}; there are {', '.join(g.name for g in GUESTS)}")
