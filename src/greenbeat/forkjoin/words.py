"""What users write for parallel work inside of kernels. As plain Python each means the same, one thing after the other.

left, right = gb.par(fib(n - 1), fib(n - 2))
for i in gb.prange(len(a)): a[i] = f(i)
total = gb.preduce(add, term, n, 0.0)
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@overload
def par(first: A, second: B, /) -> tuple[A, B]: ...
@overload
def par(first: A, second: B, third: C, /) -> tuple[A, B, C]: ...
@overload
def par(first: A, second: B, third: C, fourth: D, /) -> tuple[A, B, C, D]: ...
@overload
def par(*results: Any) -> tuple[Any, ...]: ...
def par(*results: Any) -> tuple[Any, ...]:
    """In a kernel: calls of kernels that may run at the same time; their results, in order.

    What they raise is raised as if they had run from left to right.
    """
    return results


def spawn(function: Any, /, *arguments: Any) -> Any:
    """Let a kernel, a guest's function or a resumable call run beside the caller.

    Returns:
        A `greenbeat.Task`. In a kernel, which can spawn kernels, it has `join()` and `cancel()`, and is joined at most
        once.

    Raises:
        TypeError, ValueError: it cannot be spawned, or an argument does not fit.
    """
    from greenbeat.api.tasks import Task, work_of

    return Task(work_of(function, arguments), 2)


def prange(start: int, stop: int | None = None, /) -> range:
    """In a kernel: a range whose iterations may run at the same time, in any order.

    An iteration has its own variables; it may write to arrays, but not assign the kernel's variables.
    """
    return range(start) if stop is None else range(start, stop)


def preduce(combine: Callable[[T, T], T], term: Callable[..., T], count: int, neutral: T, /, *arguments: Any) -> T:
    """In a kernel: `combine` over `term(0, *arguments)`, `term(1, *arguments)` ... , which may run at the same time.

    `combine` must be associative, and `neutral` change nothing; the order is kept. Both are kernels.
    """
    result = neutral
    for i in range(count):
        result = combine(result, term(i, *arguments))
    return result
