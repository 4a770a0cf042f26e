"""Kernels made from text, and how they are compared with plain Python."""

import linecache
import math
from collections.abc import Callable
from itertools import count
from typing import Any

import greenbeat as gb

_numbers = count()


def module(text: str, **names: Any) -> dict[str, Any]:
    """Run a text as a module of its own, whose source Python can find; `gb` and `math` are there."""
    file = f"<kernels of a test {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    found: dict[str, Any] = {"gb": gb, "math": math, "__name__": "made", **names}
    exec(compile(text, file, "exec"), found)
    return found


def kernel(text: str, **names: Any) -> Any:
    """The kernel `f` of a text."""
    return module(text, **names)["f"]


def binary(expression: str, left: str, right: str, result: str) -> Any:
    """A kernel of two parameters, a and b."""
    return kernel(f"@gb.kernel\ndef f(a: {left}, b: {right}) -> {result}:\n    return {expression}\n")


def unary(expression: str, argument: str, result: str) -> Any:
    """A kernel of one parameter, a."""
    return kernel(f"@gb.kernel\ndef f(a: {argument}) -> {result}:\n    return {expression}\n")


def wrapped(value: Any, unsigned: bool = False) -> Any:
    """What 64 bits keep of an integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 and not unsigned else value


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives, or the type of what it raises; floats by their bits, but for NaNs."""
    try:
        return shown(function(*arguments))
    except Exception as error:
        return type(error)


def shown(value: Any) -> Any:
    """A value as something that compares as one wants."""
    if isinstance(value, tuple):
        return tuple(map(shown, value))
    value = value.item() if hasattr(value, "item") else value
    return (type(value), repr(value) if isinstance(value, float) else value)


def same(made: Any, *arguments: Any, unsigned: bool = False) -> None:
    """A kernel gives or raises what it does as plain Python, integers wrapped."""

    def plain(*given: Any) -> Any:
        result = made.python(*given)
        return (
            tuple(wrapped(item, unsigned) for item in result)
            if isinstance(result, tuple)
            else wrapped(result, unsigned)
        )

    assert outcome(made, *arguments) == outcome(plain, *arguments), arguments
