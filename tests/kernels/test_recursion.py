"""Parameters that a recursion hands on unchanged."""

import array
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.api.bridge import native
from greenbeat.kernels.recursion import unchanged_parameters

Numbers = gb.Array[gb.i64]
Links = gb.Array[gb.i32]


@gb.kernel
def total(values: Numbers, left: Links, right: Links, node: int) -> int:
    if node < 0:
        return 0
    x, y = gb.par(total(values, left, right, left[node]), total(values, left, right, right[node]))
    return values[node] + x + y


@gb.kernel
def total_in_turn(values: Numbers, left: Links, right: Links, node: int) -> int:
    if node < 0:
        return 0
    first = total_in_turn(values, left, right, left[node])
    return values[node] + first + total_in_turn(values, left, right, right[node])


@gb.kernel
def everything(
    yes: bool,
    no: bool,
    small: gb.i32,
    half: gb.f32,
    pair: tuple[int, float],
    grid: gb.Array[gb.f64, 2],  # type: ignore[valid-type]
    depth: int,
) -> tuple[int, float, bool]:
    if depth == 0:
        return int(small) + pair[0], float(half) + pair[1] + grid[1, 2], yes and not no
    x, y = gb.par(
        everything(yes, no, small, half, pair, grid, depth - 1), everything(yes, no, small, half, pair, grid, depth - 1)
    )
    return x[0] + y[0], x[1] + y[1], x[2] and y[2]


@gb.kernel
def filled(out: Numbers, other: Numbers, first: int, end: int) -> None:
    """Loops whose bodies call the kernel from outside."""
    if end - first < 16:
        for i in range(first, end):
            out[i] += other[i] + 1
    else:
        middle = (first + end) // 2
        for part in gb.prange(2):
            if part == 0:
                filled(out, other, first, middle)
            else:
                filled(out, other, middle, end)


@gb.kernel
def changed(a: Numbers, b: Numbers, depth: int) -> int:
    return a[0] if depth == 0 else changed(b, a, depth - 1)


@gb.kernel
def assigned(a: int, b: int, c: int, depth: int) -> int:
    if depth == 0:
        return a + b + c
    b += 1
    return assigned(a, b, c, depth - 1)


@gb.kernel
def spread(a: int, b: int, c: int, depth: int) -> int:
    both = (c, depth - 1)
    return a + b + c if depth == 0 else spread(a, b, *both)


@gb.kernel
def other_names(a: int, b: int, c: int, depth: int) -> int:
    if depth == 0:
        return a * 100 + b * 10 + c
    name = other_names
    x, y = gb.par(other_names(a, b, c, depth - 1), name(depth, c, b, depth - 1))
    z = (other_names if True else name)(a, depth, c, depth - 1)
    return x + y + z + other_names(a, b, c, depth - 1)


@gb.kernel
def once(a: Numbers, b: Numbers) -> int:
    return a[0] + b[0]


@gb.kernel
def spawned(a: int, b: int, c: int, depth: int) -> int:
    """A task is given all parameters: what they are stored in may be gone."""
    if depth == 0:
        return a + 10 * b + 100 * c
    if depth % 2 == 0:
        task = gb.spawn(spawned, a, b, c, depth - 1)
        return task.join()
    return spawned(a, b, c, depth - 1)


@gb.kernel
def failing(a: Numbers, b: Numbers, where: int, depth: int) -> int:
    if depth == 0:
        return a[where] + b[where]
    x, y = gb.par(failing(a, b, where, depth - 1), failing(a, b, where, depth - 1))
    return x + y


def tree(size: int) -> tuple[Any, Any, Any]:
    """A tree in arrays: heap order, with the last level cut off."""
    links = [[child if child < size else -1 for child in (2 * i + 1, 2 * i + 2)] for i in range(size)]
    return (
        array.array("q", range(size)),
        array.array("i", [left for left, _ in links]),
        array.array("i", [right for _, right in links]),
    )


@pytest.fixture
def many_tasks() -> Any:
    """Every fork becomes a task."""
    with gb.Runtime(2):
        total(*tree(1), 0)
        native.set_fork_policy(1 << 20, 1)
        yield
        native.prepare_forks()


def test_which_are_unchanged() -> None:
    def found(kernel: Any) -> list[int]:
        return sorted(unchanged_parameters(kernel._function))

    assert found(total) == found(total_in_turn) == [0, 1, 2]
    assert found(everything) == [0, 1, 2, 3, 4, 5]
    assert found(filled) == [0, 1]
    assert found(spawned) == found(other_names) == [0, 1, 2]
    assert found(changed) == found(assigned) == found(spread) == found(once) == []


def test_trees() -> None:
    inputs = tree(5000)
    assert total(*inputs, 0) == total_in_turn(*inputs, 0) == total.python(*inputs, 0) == sum(range(5000))


def test_all_kinds_of_parameters() -> None:
    numpy = pytest.importorskip("numpy")
    grid = numpy.arange(12.0).reshape(4, 3)[::2]
    for yes in (True, False):
        arguments = (yes, False, -7, 0.5, (3, 0.25), grid, 5)
        assert everything(*arguments) == everything.python(*arguments)


def test_when_everything_is_promoted(many_tasks: None) -> None:
    inputs = tree(30_000)
    for _ in range(20):
        assert total(*inputs, 0) == sum(range(30_000))


def test_other_uses_of_the_kernel() -> None:
    out, other = array.array("q", [1] * 1000), array.array("q", range(1000))
    filled(out, other, 0, 1000)
    assert list(out) == [i + 2 for i in range(1000)]
    assert changed(array.array("q", [1]), array.array("q", [2]), 3) == 2
    assert assigned(1, 2, 3, 10) == 16
    assert spread(1, 2, 3, 4) == 6
    assert spawned(1, 2, 3, 8) == 321
    assert other_names(1, 2, 3, 5) == other_names.python(1, 2, 3, 5)


def test_failures(many_tasks: None) -> None:
    a, b = array.array("q", range(10)), array.array("q", range(9))
    assert failing(a, b, 3, 10) == 6 * 1024
    for _ in range(20):
        with pytest.raises(IndexError):
            failing(a, b, 9, 12)


def test_records_are_short() -> None:
    """A pointer and the node; without that it would be seven words."""
    site = next(line for line in gb.inspect(total).llvm.splitlines() if line.startswith("@") and "body.site" in line)
    assert "i32 2, i32 2, ptr null" in site
