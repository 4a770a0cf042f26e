"""What kernels may call besides kernels: a registry from Python objects to what compiles a call of them.

    @intrinsic(abs)
    def absolute(emitter, node, value): ...            called with the arguments' values, gives the call's value

    @syntax(par)
    def fork(emitter, node): ...                       called with the call itself, before its arguments are computed

    @loop(prange)
    def parallel(emitter, node, call): ...             compiles `for name in prange(...)`, a whole statement

An entry that runs other kernels says so (`calls=True`): loops around it poll each time, and the function checks its
stack.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Compiler = Callable[..., Any]


@dataclass(frozen=True)
class Intrinsic:
    """How a call is compiled.

    Attributes:
        usage: how it is called, for messages.
        fewest, most: numbers of arguments.
        raw: it gets the syntax tree instead of values.
        calls: it runs other kernels.
        checked: it looks at the stack itself before it does.
    """

    python: Any
    compile: Compiler
    usage: str
    fewest: int
    most: int
    raw: bool = False
    calls: bool = False
    checked: bool = False


_calls: dict[int, Intrinsic] = {}
_loops: dict[int, tuple[Any, Compiler]] = {}


def register(python: Any, compile: Compiler, usage: str, fewest: int, most: int, **options: bool) -> None:
    """Let kernels call an object. It is known by identity."""
    _calls[id(python)] = Intrinsic(python, compile, usage, fewest, most, **options)


def intrinsic(
    python: Any, usage: str = "", *, most: int | None = None, calls: bool = False
) -> Callable[[Compiler], Compiler]:
    """Decorator: registers the compiler of calls of `python`; it takes the emitter, the node and the values."""

    def decorate(compile: Compiler) -> Compiler:
        code = compile.__code__
        names = code.co_varnames[2 : code.co_argcount]
        fewest = len(names) - len(compile.__defaults__ or ())
        told = usage or f"{python.__name__}({', '.join(names)})"
        register(python, compile, told, fewest, len(names) if most is None else most, calls=calls)
        return compile

    return decorate


def syntax(python: Any, usage: str, *, calls: bool = True, checked: bool = False) -> Callable[[Compiler], Compiler]:
    """Decorator: registers the compiler of calls of `python`; it takes the emitter and the node."""

    def decorate(compile: Compiler) -> Compiler:
        register(python, compile, usage, 0, 0, raw=True, calls=calls, checked=checked)
        return compile

    return decorate


def loop(python: Any) -> Callable[[Compiler], Compiler]:
    """Decorator: registers the compiler of `for ... in python(...)`; it takes the emitter, the statement, the call."""

    def decorate(compile: Compiler) -> Compiler:
        _loops[id(python)] = python, compile
        return compile

    return decorate


def find(python: Any) -> Intrinsic | None:
    """How a call of an object is compiled, if it can be called."""
    return _calls.get(id(python))


def find_loop(python: Any) -> Compiler | None:
    """How a loop over what an object gives is compiled, if that was registered."""
    found = _loops.get(id(python))
    return found[1] if found is not None else None
