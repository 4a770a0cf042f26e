"""The convex hull of points: each step finds the farthest point and keeps the points outside of two lines."""

from typing import Any

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload

Numbers = gb.Array[gb.f64]
Places = gb.Array[gb.i32]
BLOCK = 4096


@gb.kernel
def outside(x: Numbers, y: Numbers, a: int, b: int, p: int) -> float:
    """How far a point is to the left of the line from a to b, times the line's length."""
    return (x[b] - x[a]) * (y[p] - y[a]) - (y[b] - y[a]) * (x[p] - x[a])


@gb.kernel
def farther(p: tuple[float, int], q: tuple[float, int]) -> tuple[float, int]:
    return p if p[0] > q[0] or (p[0] == q[0] and p[1] < q[1]) else q


@gb.kernel
def distance(i: int, x: Numbers, y: Numbers, points: Places, first: int, a: int, b: int) -> tuple[float, int]:
    p = points[first + i]
    return outside(x, y, a, b, p), p


@gb.kernel
def kept(x: Numbers, y: Numbers, points: Places, first: int, end: int, out: Places, at: int, a: int, b: int) -> int:
    """Put the points of a part that are outside of a line into `out`; how many they are."""
    count = 0
    for i in range(first, end):
        p = points[i]
        if outside(x, y, a, b, p) > 0:
            out[at + count] = p
            count += 1
    return count


@gb.kernel
def moved(points: Places, first: int, out: Places, at: int, count: int) -> None:
    for i in range(count):
        out[at + i] = points[first + i]


@gb.kernel
def filtered(
    x: Numbers,
    y: Numbers,
    points: Places,
    first: int,
    end: int,
    out: Places,
    at: int,
    a: int,
    b: int,
    spare: Places,
    counts: Places,
) -> int:
    """Keep the points outside of a line: in each block, then together. `spare` and `counts` have room for parts."""
    if end - first <= BLOCK:
        return kept(x, y, points, first, end, out, at, a, b)
    blocks = (end - first + BLOCK - 1) // BLOCK
    base = 2 * first // BLOCK
    for k in gb.prange(blocks):
        start = first + k * BLOCK
        counts[base + k] = kept(x, y, points, start, min(start + BLOCK, end), spare, start, a, b)
    total = 0
    for block in range(blocks):
        total += counts[base + block]
        counts[base + block] = total
    for k in gb.prange(blocks):
        before = counts[base + k - 1] if k > 0 else 0
        moved(spare, first + k * BLOCK, out, at + before, counts[base + k] - before)
    return total


@gb.kernel
def side(
    x: Numbers,
    y: Numbers,
    points: Places,
    first: int,
    end: int,
    scratch: Places,
    spare: Places,
    counts: Places,
    a: int,
    b: int,
) -> int:
    """How many points of the hull are between a and b, of points that are all outside of that line."""
    if first == end:
        return 0
    _, far = gb.preduce(farther, distance, end - first, (0.0, -1), x, y, points, first, a, b)
    left = filtered(x, y, points, first, end, scratch, first, a, far, spare, counts)
    right = filtered(x, y, points, first, end, scratch, first + left, far, b, spare, counts)
    split, last = first + left, first + left + right
    m, n = gb.par(
        side(x, y, scratch, first, split, points, spare, counts, a, far),
        side(x, y, scratch, split, last, points, spare, counts, far, b),
    )
    return 1 + m + n


@gb.kernel
def parallel(
    x: Numbers, y: Numbers, points: Places, scratch: Places, spare: Places, counts: Places, west: int, east: int
) -> int:
    """Points of the hull; `west` and `east` are the outermost points."""
    for i in gb.prange(len(points)):
        points[i] = i
    above = filtered(x, y, points, 0, len(points), scratch, 0, west, east, spare, counts)
    upper = side(x, y, scratch, 0, above, points, spare, counts, west, east)
    for i in gb.prange(len(points)):
        points[i] = i
    below = filtered(x, y, points, 0, len(points), scratch, 0, east, west, spare, counts)
    return 2 + upper + side(x, y, scratch, 0, below, points, spare, counts, east, west)


@gb.kernel
def serial_side(x: Numbers, y: Numbers, points: Places, first: int, end: int, scratch: Places, a: int, b: int) -> int:
    if first == end:
        return 0
    far = -1
    best = 0.0
    for i in range(first, end):
        found = outside(x, y, a, b, points[i])
        if found > best or (found == best and points[i] < far):
            best = found
            far = points[i]
    left = kept(x, y, points, first, end, scratch, first, a, far)
    right = kept(x, y, points, first, end, scratch, first + left, far, b)
    split, last = first + left, first + left + right
    m = serial_side(x, y, scratch, first, split, points, a, far)
    return 1 + m + serial_side(x, y, scratch, split, last, points, far, b)


@gb.kernel
def serial(
    x: Numbers, y: Numbers, points: Places, scratch: Places, spare: Places, counts: Places, west: int, east: int
) -> int:
    for i in range(len(points)):
        points[i] = i
    above = kept(x, y, points, 0, len(points), scratch, 0, west, east)
    upper = serial_side(x, y, scratch, 0, above, points, west, east)
    for i in range(len(points)):
        points[i] = i
    below = kept(x, y, points, 0, len(points), scratch, 0, east, west)
    return 2 + upper + serial_side(x, y, scratch, 0, below, points, east, west)


def prepare(size: int) -> Inputs:
    """Points in a disc."""
    random = numpy.random.default_rng(5)
    angle, radius = random.random(size) * 2 * numpy.pi, numpy.sqrt(random.random(size))
    x, y = radius * numpy.cos(angle), radius * numpy.sin(angle)
    points, scratch, spare = numpy.zeros((3, size), dtype=numpy.int32)
    counts = numpy.zeros(2 * size // BLOCK + 4, dtype=numpy.int32)
    return x, y, points, scratch, spare, counts, int(x.argmin()), int(x.argmax())


def check(inputs: Inputs, found: Any) -> None:
    """By Andrew's chains, over those points that can be on the hull."""
    x, y = inputs[:2]
    far = numpy.flatnonzero(x * x + y * y > 0.9) if len(x) > 10_000 else numpy.arange(len(x))
    points = sorted(zip(x[far].tolist(), y[far].tolist(), strict=True))
    corners = 0
    for chain in (points, points[::-1]):
        hull: list[tuple[float, float]] = []
        for p in chain:
            while len(hull) > 1:
                (ax, ay), (bx, by) = hull[-2:]
                if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                    break
                hull.pop()
            hull.append(p)
        corners += len(hull) - 1
    assert found == corners


WORKLOAD = Workload(
    about="the convex hull of points in a disc",
    sizes=(1_000_000, 20_000_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
)
