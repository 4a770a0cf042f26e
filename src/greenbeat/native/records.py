"""Data classes for what every start imports: the same as the library's, but nothing is compiled when they are made.

    @record(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 0

`dataclasses` writes the methods of each class as source text and compiles it, and to do so imports the library's
inspection of syntax: together longer than all else that is imported. Here the methods are the same functions for all
classes. They take longer to run, so whatever is made by the thousand is better off with the library's. Its `fields`,
`asdict` and `replace` work on these as well.
"""

from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
_NOTHING: Any = object()


class _Factory:
    """A default that is made anew each time."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], Any]) -> Any:
    """A field whose default is made anew each time."""
    return _Factory(default_factory)


@dataclass_transform(field_specifiers=(field,))
def record(
    *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True, repr: bool = True
) -> Callable[[type[T]], type[T]]:
    """Make a class a data class; the options are those of `dataclasses.dataclass`."""

    def make(cls: type[T]) -> type[T]:
        names = tuple(cls.__dict__.get("__annotations__", {}))  # noqa: RUF063 - without importing inspect
        defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
        members: dict[str, Any] = {
            "_record_fields": names,
            "_record_defaults": defaults,
            "__init__": _init,
            "__match_args__": () if kw_only else names,
            "__dataclass_fields__": _LibraryFields(),
            "__signature__": _Signature(),
        }
        if repr:
            members["__repr__"] = _repr
        if eq:
            members["__eq__"] = _eq
            members["__hash__"] = _hash if frozen else None
        if frozen:
            members["__setattr__"] = members["__delattr__"] = _refuse
        if slots:
            members["__slots__"], members["__reduce__"] = names, _reduce
            dropped = {"__dict__", "__weakref__", *names}
            kept = {name: value for name, value in cls.__dict__.items() if name not in dropped}
            metaclass: Any = type(cls)
            made: Any = metaclass(cls.__name__, cls.__bases__, {**members, **kept})
            made.__qualname__ = cls.__qualname__
            return made  # type: ignore[no-any-return]
        for name, default in defaults.items():
            if isinstance(default, _Factory):
                delattr(cls, name)
        for name, value in members.items():
            if name not in cls.__dict__ or name == "__hash__":
                setattr(cls, name, value)
        return cls

    return make


def _init(self: Any, *values: Any, **named: Any) -> None:
    kind = type(self)
    names, places = kind._record_fields, kind.__match_args__
    if len(values) > len(places):
        raise TypeError(f"{kind.__name__}() takes at most {len(places)} positional arguments, not {len(values)}")
    given = dict(zip(places, values, strict=False))
    for name, value in named.items():
        if name in given:
            raise TypeError(f"{kind.__name__}() got multiple values for argument {name!r}")
        if name not in names:
            raise TypeError(f"{kind.__name__}() got an unexpected keyword argument {name!r}")
        given[name] = value
    for name in names:
        value = given.get(name, _NOTHING)
        if value is _NOTHING:
            value = kind._record_defaults.get(name, _NOTHING)
            if value is _NOTHING:
                raise TypeError(f"{kind.__name__}() is missing the argument {name!r}")
            if isinstance(value, _Factory):
                value = value.make()
        object.__setattr__(self, name, value)
    if hasattr(kind, "__post_init__"):
        self.__post_init__()


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self._record_fields)


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._record_fields)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse(self: Any, name: str, value: object = None) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change the field {name!r}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return _restored, (type(self), _values(self))


def _restored(kind: Any, values: tuple[Any, ...]) -> Any:
    return kind(**dict(zip(kind._record_fields, values, strict=True)))


class _LibraryFields:
    """What the library knows a class's fields by, made when it asks."""

    def __get__(self, instance: object, kind: Any) -> Any:
        import dataclasses

        fields = [
            (name, kind.__annotations__[name])
            if name not in kind._record_defaults
            else (name, kind.__annotations__[name], _library_field(kind._record_defaults[name]))
            for name in kind._record_fields
        ]
        made: Any = dataclasses.make_dataclass(kind.__name__, fields, kw_only=not kind.__match_args__)
        return made.__dataclass_fields__


def _library_field(default: Any) -> Any:
    import dataclasses

    if isinstance(default, _Factory):
        return dataclasses.field(default_factory=default.make)
    return dataclasses.field(default=default)


class _Signature:
    """A class's signature, made when it is asked for."""

    def __get__(self, instance: object, kind: Any) -> Any:
        import inspect

        way = inspect.Parameter.POSITIONAL_OR_KEYWORD if kind.__match_args__ else inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter(
                name,
                way,
                default=kind._record_defaults.get(name, inspect.Parameter.empty),
                annotation=kind.__annotations__[name],
            )
            for name in kind._record_fields
        ]
        return inspect.Signature(parameters)
