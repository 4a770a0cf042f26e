"""What users write for parallel work. With plain functions each means the same, one thing after the other.

left, right = gb.par(fib(n - 1), fib(n - 2))            in kernels
for i in gb.prange(len(a)): a[i] = f(i)
total = gb.preduce(add, term, n, 0.0)                   in kernels, and from Python with kernels
gb.pmap(f, out, a); gb.pscan(add, out, a, 0.0); gb.psort(a, scratch)
"""

import itertools
from collections.abc import Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


def _are_kernels(*functions: Any) -> bool:
    return all(hasattr(function, "_function") for function in functions)


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
    """`combine` over `term(0, *arguments)`, `term(1, *arguments)` ... , which may run at the same time.

    `combine` must be associative, and `neutral` change nothing; the order is kept. If both are kernels, this runs as
    machine code, called from Python too.
    """
    if _are_kernels(combine, term):
        from greenbeat.kernels import algorithms

        found: T = algorithms.reduced(combine, term, count, neutral, arguments)
        return found
    result = neutral
    for i in range(count):
        result = combine(result, term(i, *arguments))
    return result


def pmap(function: Callable[..., Any], out: Any, /, *arguments: Any) -> None:
    """`out[i] = function(a[i], b[i], ...)` for all i, which may run at the same time.

    Args:
        function: a kernel of numbers.
        out: an array of one or two dimensions, or whatever has such a buffer.
        arguments: arrays of the same sizes, or numbers, which are the same for all i.
    """
    if _are_kernels(function):
        from greenbeat.kernels import algorithms

        algorithms.map_arrays(function, out, arguments)
        return
    rows = len(getattr(out, "shape", (0,))) == 2
    for index in itertools.product(*map(range, out.shape)) if rows else range(len(out)):
        out[index] = function(*(each[index] if hasattr(each, "__len__") else each for each in arguments))


def pscan(combine: Callable[[T, T], T], out: Any, array: Any, neutral: T, /) -> None:
    """`out[i]` becomes `combine` over the items of an array up to the i-th, that included; parts may run at once.

    `combine` must be associative, and `neutral` change nothing. `out` may be the array itself.
    """
    if _are_kernels(combine):
        from greenbeat.kernels import algorithms

        algorithms.scan_array(combine, out, array, neutral)
        return
    for i in range(len(out)):
        neutral = out[i] = combine(neutral, array[i])


def psort(array: Any, scratch: Any = None, /) -> None:
    """Sort an array in place, stably; parts are sorted at the same time. NaNs come last.

    Args:
        array: an array of one dimension, or whatever has such a buffer.
        scratch: an array like it, whose contents are lost; made if it is not given, which kernels cannot.
    """
    from greenbeat.kernels import algorithms

    algorithms.sort_array(array, scratch)
