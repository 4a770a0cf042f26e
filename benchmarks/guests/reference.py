"""What every guest program must answer, computed without WebAssembly.

Plain Python, numpy where rounding to single precision matters, and the standard library where it knows the algorithm
(`zlib.crc32`, `hashlib.sha256`, `bytes.find`). `build.py --check` compares these with the built modules.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator

import numpy as np

WORD = 0xFFFFFFFF


def signed(value: int) -> int:
    """A 32-bit word read as a signed integer, as an export returns it."""
    value &= WORD
    return value - (1 << 32) if value >> 31 else value


def xorshift(state: int) -> Iterator[int]:
    """The reproducible data of `guest.h`."""
    while True:
        state ^= state << 13 & WORD
        state ^= state >> 17
        state ^= state << 5 & WORD
        yield state


def fold(total: int, word: int) -> int:
    """The checksum step of `guest.h`."""
    return (((total << 5 | total >> 27) & WORD) ^ word) * 0x9E3779B1 & WORD


def fib(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def sieve(n: int) -> int:
    total = 0
    for turn in range(n):
        limit = (1 << 17) - (turn & 63)
        composite = bytearray(limit)
        for i in range(2, int(limit**0.5) + 1):
            if not composite[i]:
                composite[i * i :: i] = b"\1" * len(range(i * i, limit, i))
        primes = [i for i in range(2, limit) if not composite[i]]
        total = fold(fold(total, len(primes)), primes[-1])
    return total


def crc32(n: int) -> int:
    random = xorshift(1)
    data = bytes(next(random) >> 8 & 255 for _ in range(65536))
    crc = 0
    for _ in range(n):
        crc = zlib.crc32(data, crc)
    return crc


def matmul(n: int) -> int:
    size = 48
    random = xorshift(7)
    left = [[0.0] * size for _ in range(size)]
    right = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(size):
            left[i][j] = (next(random) & 1023) / 512.0 - 1.0
            right[i][j] = (next(random) & 1023) / 512.0 - 1.0
    columns = list(zip(*right, strict=True))
    for _ in range(n):
        product = []
        for row in left:
            totals = []
            for column in columns:
                # Not sum(): newer Pythons compensate its rounding errors, and the guest does not.
                total = 0.0
                for a, b in zip(row, column, strict=True):
                    total += a * b
                totals.append(total * 0.125)
            product.append(totals)
        left = product
    total = 0
    for row in left:
        for value in row:
            low, high = struct.unpack("<II", struct.pack("<d", value))
            total = fold(fold(total, low), high)
    return total


def convolution(n: int) -> int:
    side, taps = 128, 5
    random = xorshift(11)
    pixels = [next(random) & 255 for _ in range(side * side)]
    image = np.array(pixels, dtype=np.float32).reshape(side, side)
    weights = [[np.float32((1 + ((x * 3 + y * 5) & 7)) / 128.0) for x in range(taps)] for y in range(taps)]
    inner = side - taps + 1
    for _ in range(n):
        total = np.zeros((inner, inner), dtype=np.float32)
        for y in range(taps):
            for x in range(taps):
                total = total + weights[y][x] * image[y : y + inner, x : x + inner]
        image = image.copy()
        image[2 : 2 + inner, 2 : 2 + inner] = total
    folded = 0
    for word in image.view(np.uint32).ravel().tolist():
        folded = fold(folded, word)
    return folded


def sha256(n: int) -> int:
    random = xorshift(3)
    message = bytes(next(random) >> 8 & 255 for _ in range(4096))
    for _ in range(n):
        message = hashlib.sha256(message).digest() + message[32:]
    return int.from_bytes(message[:4], "big")


def string_search(n: int) -> int:
    length = 32768
    random = xorshift(5)
    text = bytes(ord("a") + (next(random) >> 8) % 4 for _ in range(length))
    total = 0
    for _ in range(n):
        size = 4 + (next(random) >> 8) % 12
        start = (next(random) >> 8) % (length - size)
        pattern = text[start : start + size]
        count, at = 0, text.find(pattern)
        while at >= 0:
            count += 1
            total = fold(total, at)
            at = text.find(pattern, at + 1)
        total = fold(total, count)
    return total


STEPS: tuple[Callable[[int, int], int], ...] = (
    lambda value, operand: value + operand,
    lambda value, operand: value - operand,
    lambda value, operand: value ^ operand,
    lambda value, operand: value * (operand | 1),
    lambda value, operand: value << (operand & 31) | value >> (-operand & 31),
    lambda value, operand: (value >> (operand & 31)) + operand,
    lambda value, operand: (value & 0xFFFF) * 0x10001 + operand,
    lambda value, operand: ((value << 16 | value >> 16) & WORD) + operand,
    lambda value, operand: operand - value,
    lambda value, operand: ~value + operand,
    lambda value, operand: value * value + operand,
    lambda value, operand: value | operand,
    lambda value, operand: (value & ~operand) + 1,
    lambda value, operand: value + 1 if value < operand else operand,
    lambda value, operand: (value >> 1) + (operand >> 1),
    lambda value, operand: (value ^ value >> 15) * 0x2C1B3C6D + operand,
)


def indirect(n: int) -> int:
    random = xorshift(13)
    program = [next(random) >> 8 & 15 for _ in range(256)]
    value = 1
    for turn in range(n):
        for i, step in enumerate(program):
            value = STEPS[step](value, i + turn) & WORD
    return value


def bulk(n: int) -> int:
    length, longest = 262144, 16384
    random = xorshift(17)
    buffer = bytearray(next(random) >> 8 & 255 for _ in range(length))
    for _ in range(n):
        choice = next(random) >> 4
        size = choice >> 5 & 127 if choice & 31 else choice >> 5 & (longest - 1)
        to = (next(random) >> 4) % (length - longest)
        start = (next(random) >> 4) % (length - longest)
        if choice & 1 << 20:
            buffer[to : to + size] = buffer[start : start + size]
        else:
            buffer[to : to + size] = bytes([start & 255]) * size
    total = 0
    for byte in buffer[::61]:
        total = fold(total, byte)
    return total


def crc16(crc: int, word: int) -> int:
    for _ in range(16):
        differs = (crc ^ word) & 1
        word >>= 1
        crc >>= 1
        if differs:
            crc ^= 0xA001
    return crc


def crc_of_word(crc: int, word: int) -> int:
    return crc16(crc16(crc, word & 0xFFFF), word >> 16 & 0xFFFF)


def list_pass(crc: int, random: Iterator[int]) -> int:
    nodes = [(next(random) >> 8 & 255, place) for place in range(96)]
    keys = [key for key, _ in nodes]
    for i in range(16):
        wanted = i * 16 + 5
        crc = crc16(crc, keys.index(wanted) if wanted in keys else len(keys))
        keys.reverse()
    for key, place in sorted(nodes):
        crc = crc16(crc, key ^ place << 8)
    return crc16(crc, nodes[0][0])


def sum_of_results(matrix: list[list[int]]) -> int:
    total = previous = 0
    for row in matrix:
        for value in row:
            total += 10 if value > previous else value & 7
            previous = value
    return total


def matrix_pass(crc: int, random: Iterator[int]) -> int:
    side = range(12)
    first = [[0] * 12 for _ in side]
    second = [[0] * 12 for _ in side]
    last = 0
    for i in side:
        for j in side:
            half = next(random) >> 16
            first[i][j] = half - 65536 if half >> 15 else half
            last = next(random)
            second[i][j] = last >> 24
    crc = crc_of_word(crc, sum_of_results([[value * (last & 63) for value in row] for row in first]))
    for i in side:
        crc = crc_of_word(crc, sum(first[i][j] * second[0][j] for j in side))
    products = [[[first[i][k] * second[k][j] for k in side] for j in side] for i in side]
    crc = crc_of_word(crc, sum_of_results([[signed(sum(terms)) for terms in row] for row in products]))
    picked = [[signed(sum((t >> 2 & 15) * (t >> 5 & 127) for t in terms)) for terms in row] for row in products]
    return crc_of_word(crc, sum_of_results(picked))


# The state machine of `coremark_like.c` as a table: for each state, what may follow and where it leads.
MACHINE: tuple[dict[str, int], ...] = (
    {"0": 2, "+": 1, "-": 1, ".": 3},
    {"0": 2, ".": 3},
    {"0": 2, ".": 4, "e": 5},
    {"0": 4},
    {"0": 4, "e": 5},
    {"0": 7, "+": 6, "-": 6},
    {"0": 7},
    {"0": 7},
    {},
)


def machine_pass(crc: int, random: Iterator[int]) -> int:
    alphabet = "0123456789012345678,,,,,..+-eeT "
    ended, visited = [0] * 9, [0] * 9
    state = 0
    for _ in range(512):
        byte = alphabet[next(random) >> 8 & 31]
        if byte == ",":
            ended[state] += 1
            state = 0
        else:
            state = MACHINE[state].get("0" if byte.isdigit() else byte, 8)
        visited[state] += 1
    for i in range(9):
        crc = crc16(crc16(crc, ended[i]), visited[i])
    return crc


def coremark_like(n: int) -> int:
    random = xorshift(19)
    crc = 0xFFFF
    for _ in range(n):
        crc = machine_pass(matrix_pass(list_pass(crc, random), random), random)
    return crc


REFERENCES: dict[str, Callable[[int], int]] = {
    function.__name__: function
    for function in (
        fib,
        sieve,
        crc32,
        matmul,
        convolution,
        sha256,
        string_search,
        indirect,
        bulk,
        coremark_like,
    )
}


def expected(name: str, n: int) -> int:
    """The checksum `run(n)` of that guest must return."""
    return signed(REFERENCES[name](n))
