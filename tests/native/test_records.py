"""Data classes that are made without compiling anything, beside the library's."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pytest

from greenbeat.native.records import field, record


@record(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0

    def __str__(self) -> str:
        return f"({self.x}, {self.y})"


@record()
class Box:
    name: str
    items: list[int] = field(default_factory=list)


@record(frozen=True, slots=True, kw_only=True)
class Options:
    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("too small")


def test_values() -> None:
    point = Point(1, y=2)
    assert (point.x, point.y, str(point), repr(point)) == (1, 2, "(1, 2)", "Point(x=1, y=2)")
    assert Point(1) == Point(1, 0) != Point(1, 1)
    other: object = (1, 0)
    assert Point(1) != other
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_frozen() -> None:
    point: Any = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    with pytest.raises(AttributeError):
        point.z = 3


def test_factories_and_what_may_change() -> None:
    first, second = Box("a"), Box("b", [1])
    first.items.append(2)
    assert (first.items, second.items, Box("c").items) == ([2], [1], [])
    first.name = "d"
    assert first == Box("d", [2])
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, r"Point\(\) is missing the argument 'x'"),
        ((1, 2, 3), {}, r"Point\(\) takes at most 2 positional arguments, not 3"),
        ((1,), {"x": 2}, r"Point\(\) got multiple values for argument 'x'"),
        ((1,), {"z": 2}, r"Point\(\) got an unexpected keyword argument 'z'"),
    ],
)
def test_wrong_arguments(arguments: tuple[int, ...], named: dict[str, int], message: str) -> None:
    make: Any = Point
    with pytest.raises(TypeError, match=message):
        make(*arguments, **named)


def test_keywords_only() -> None:
    make: Any = Options
    with pytest.raises(TypeError, match="takes at most 0 positional arguments"):
        make(3)
    with pytest.raises(ValueError, match="too small"):
        Options(size=-1)


def test_copies() -> None:
    for each in (Point(1, 2), Options(size=4), Box("a", [1])):
        assert copy.copy(each) == pickle.loads(pickle.dumps(each)) == each


def test_the_library_knows_them() -> None:
    kinds: Any = (Point, Box, Options)
    assert all(map(dataclasses.is_dataclass, kinds))
    given: Any = Point(1, 2)
    assert dataclasses.asdict(given) == {"x": 1, "y": 2}
    assert dataclasses.replace(given, y=5) == Point(1, 5)
    assert [each.name for each in dataclasses.fields(kinds[1])] == ["name", "items"]
    assert str(inspect.signature(Point)) == "(x: int, y: int = 0)"
    assert str(inspect.signature(Options)) == "(*, size: int = 1)"
