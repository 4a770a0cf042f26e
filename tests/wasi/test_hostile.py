"""Arguments that make no sense: whatever a guest passes, it gets a number back, and the host is as before."""

import random
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.wasi.unstable import MODULES

from .guest import Guest

INTERESTING = [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    15,
    16,
    31,
    64,
    0x100,
    0x1000,
    0xFFFF,
    0x10000,
    0x1FFFF,
    0x20000,
    -1,
    -2,
    1 << 30,
]
WIDE = [*INTERESTING, 1 << 31, 1 << 32, (1 << 63) - 1, -(1 << 63), 10**18]
# These end the guest, or may wait for ever.
LEFT_OUT = ("proc_exit", "proc_raise")


STRINGS = {0x40: b"file", 0x50: b"dir", 0x60: b"dir/../file", 0x70: b"new", 0x80: b"../x", 0x90: b"link"}


def arguments(chosen: random.Random, params: str) -> list[int]:
    """Anything; often with a good string somewhere in it, and a directory in front."""
    found = [chosen.choice(INTERESTING if letter == "i" else WIDE) for letter in params]
    for position in range(len(params) - 1):
        if params[position : position + 2] == "ii" and chosen.random() < 0.3:
            address = chosen.choice(list(STRINGS))
            found[position : position + 2] = [address, len(STRINGS[address])]
    if params and chosen.random() < 0.5:
        found[0] = 3
    return found


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("seed", range(4))
def test_any_arguments(tmp_path: Path, module: str, seed: int) -> None:
    chosen = random.Random(seed)
    names = [name for name in MODULES[module] if name not in LEFT_OUT]
    good = set()
    for turn in range(25):
        folder = tmp_path / str(turn)
        (folder / "dir").mkdir(parents=True)
        (folder / "file").write_bytes(b"contents")
        files = {"file": b"contents", "dir/": b""} if turn % 2 else None
        dirs: dict[str, Any] = {"/ro": (folder, "ro")} if turn % 2 else {"/d": folder, "/ro": (folder, "ro")}
        wasi = gb.Wasi(["a"], env={"A": "b"}, dirs=dirs, files=files, clock=5, random=seed, stdin=b"in")
        with Guest(
            wasi, gb.Limits(written_bytes=10_000, file_memory=100_000, open_files=12, seconds=5), module
        ) as guest:
            for address, text in STRINGS.items():
                guest.memory.write(address, text)
            for _ in range(200):
                if chosen.random() < 0.1:
                    guest.put(0x100, "IIII", *(chosen.choice(INTERESTING) & 0xFFFFFFFF for _ in range(4)))
                name = chosen.choice(names)
                given = arguments(chosen, MODULES[module][name].params)
                code = guest.instance.exports[name](*given)
                assert 0 <= code < 77, (name, given, code)
                if not code:
                    good.add(name)
    # Not everything was refused.
    assert len(good) > 20, good
