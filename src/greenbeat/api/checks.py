"""What arguments must be, and how the values that are wrong are told in messages.

pages = whole(pages, "a number of pages")     3, True, numpy.int64(3); not 3.0
raise ValueError(f"... not {shown(pages)}")   whatever it is, the message comes to an end
"""

from operator import index
from typing import Any


def whole(value: Any, what: str) -> int:
    """An integer, or what stands for one: a plain int, whose comparisons are its own.

    Raises:
        TypeError: it is none; the message begins with `what`.
    """
    if not hasattr(type(value), "__index__"):
        raise TypeError(f"{what} must be an int, not {described(value)}")
    return int.__index__(index(value))


def shown(value: object, limit: int = 40) -> str:
    """The repr of a value, cut; what has none, or too long a one, is told in other words."""
    if isinstance(value, int) and int.bit_length(value) > 4 * limit:
        return f"an int of {int.bit_length(value)} bits"
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__} without a repr>"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def described(value: object, limit: int = 40) -> str:
    """A value with its type."""
    return f"{type(value).__name__} {shown(value, limit)}"
