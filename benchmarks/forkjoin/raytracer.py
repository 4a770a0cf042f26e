"""A small ray tracer: spheres that mirror each other, one light, brightness per pixel."""

import math
import types
from typing import Any, Literal

import numpy

import greenbeat as gb
from benchmarks.forkjoin.workload import Inputs, Workload, address

Picture = gb.Array[gb.f64, Literal[2]]
# Of each sphere: its centre and its radius.
Spheres = gb.Array[gb.f64, Literal[2]]
FAR = 1e30
BOUNCES = 4
LIGHT = (0.577350269, 0.577350269, -0.577350269)


@gb.kernel
def hit(spheres: Spheres, x: float, y: float, z: float, dx: float, dy: float, dz: float) -> tuple[float, int]:
    """How far a ray goes, and the sphere that it meets; -1 if none."""
    nearest = FAR
    found = -1
    for k in range(spheres.shape[0]):
        cx, cy, cz = spheres[k, 0] - x, spheres[k, 1] - y, spheres[k, 2] - z
        along = cx * dx + cy * dy + cz * dz
        rest = along * along - (cx * cx + cy * cy + cz * cz) + spheres[k, 3] * spheres[k, 3]
        if rest > 0:
            distance = along - math.sqrt(rest)
            if 1e-4 < distance < nearest:
                nearest = distance
                found = k
    return nearest, found


@gb.kernel
def brightness(spheres: Spheres, px: float, py: float) -> float:
    """What comes back along the ray through a point of the picture."""
    x, y, z = 0.0, 0.0, -3.0
    length = math.sqrt(px * px + py * py + 1)
    dx, dy, dz = px / length, py / length, 1 / length
    seen = 0.0
    weight = 1.0
    for _ in range(BOUNCES):
        distance, k = hit(spheres, x, y, z, dx, dy, dz)
        if k < 0:
            return seen + weight * (0.5 + 0.5 * dy)
        x, y, z = x + dx * distance, y + dy * distance, z + dz * distance
        radius = spheres[k, 3]
        nx, ny, nz = (x - spheres[k, 0]) / radius, (y - spheres[k, 1]) / radius, (z - spheres[k, 2]) / radius
        shade = nx * LIGHT[0] + ny * LIGHT[1] + nz * LIGHT[2]
        if shade > 0:
            blocked = hit(spheres, x, y, z, LIGHT[0], LIGHT[1], LIGHT[2])[1]
            if blocked < 0:
                seen += weight * 0.6 * shade
        weight *= 0.4
        along = 2 * (dx * nx + dy * ny + dz * nz)
        dx, dy, dz = dx - along * nx, dy - along * ny, dz - along * nz
    return seen


@gb.kernel
def serial(spheres: Spheres, out: Picture) -> None:
    height, width = out.shape
    for i in range(height):
        for j in range(width):
            out[i, j] = brightness(spheres, 2 * j / width - 1, 1 - 2 * i / height)


@gb.kernel
def parallel(spheres: Spheres, out: Picture) -> None:
    height, width = out.shape
    for i in gb.prange(height):
        for j in gb.prange(width):
            out[i, j] = brightness(spheres, 2 * j / width - 1, 1 - 2 * i / height)


def prepare(size: int) -> Inputs:
    random = numpy.random.default_rng(7)
    spheres = numpy.concatenate([random.random((24, 3)) * [4, 4, 4] - [2, 2, 0], random.random((24, 1)) * 0.5 + 0.1], 1)
    return numpy.ascontiguousarray(spheres), numpy.zeros((size, size))


def check(inputs: Inputs, found: Any) -> None:
    """Some of the pixels, in Python."""
    spheres, out = inputs
    size = len(out)
    for i in range(0, size, size // 8):
        for j in range(0, size, size // 8):
            assert math.isclose(out[i, j], brightness.python(spheres, 2 * j / size - 1, 1 - 2 * i / size), abs_tol=1e-9)


def numba() -> Any:
    from numba import njit, prange

    names: dict[str, Any] = {"math": math, "FAR": FAR, "BOUNCES": BOUNCES, "LIGHT": LIGHT}
    names["hit"] = njit(hit.python)
    python: Any = brightness.python
    one = njit(types.FunctionType(python.__code__, names))

    @njit(parallel=True)
    def run(spheres: Any, out: Any) -> None:
        height, width = out.shape
        for i in prange(height):
            for j in range(width):
                out[i, j] = one(spheres, 2 * j / width - 1, 1 - 2 * i / height)

    return run


WORKLOAD = Workload(
    about="a small ray tracer: spheres that mirror each other",
    sizes=(700, 4_000),
    prepare=prepare,
    serial=serial,
    parallel=parallel,
    check=check,
    numba=numba,
    openmp=lambda library, spheres, out: library.raytracer(address(spheres), len(spheres), address(out), *out.shape),
)
