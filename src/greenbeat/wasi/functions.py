"""The register of WASI's functions: what implements each, and the type that guests import it with.

    @function("iiii")
    def fd_write(process, fd, vectors, count, written): ...

An implementation returns nothing when it did what was asked for. A `Failure` that it raises, or an `OSError`, is the
number that the guest gets; whatever else it raises ends the guest's call: `Exit`, a deadline, Ctrl-C.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from greenbeat.wasi.constants import Errno, Failure, errno_of

if TYPE_CHECKING:
    from greenbeat.wasi.process import Process

Implementation = Callable[..., None]
F = TypeVar("F", bound=Implementation)


class Entry(NamedTuple):
    """A function of WASI. Types are written as a letter each: `i` is i32, `I` is i64."""

    params: str
    results: str
    implementation: Implementation


Table = dict[str, Entry]
PREVIEW1: Table = {}


def function(params: str, results: str = "i", table: Table = PREVIEW1) -> Callable[[F], F]:
    """Register an implementation under its own name."""

    def register(implementation: F) -> F:
        table[implementation.__name__] = Entry(params, results, implementation)
        return implementation

    return register


def bind(process: "Process", name: str, implementation: Implementation) -> Callable[..., int]:
    """The function that a guest imports."""

    def call(*arguments: Any) -> int:
        try:
            implementation(process, *arguments)
            return 0
        except Failure as failure:
            return failure.errno
        except OSError as error:
            return errno_of(error)
        except MemoryError:
            return Errno.NOMEM

    call.__name__ = call.__qualname__ = name
    return call


def bind_without_result(process: "Process", name: str, implementation: Implementation) -> Callable[..., None]:
    """The same for a function that tells the guest nothing."""

    def call(*arguments: Any) -> None:
        implementation(process, *arguments)

    call.__name__ = call.__qualname__ = name
    return call
