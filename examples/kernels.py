"""Kernels of the README: plain, parallel, and with a channel.

python -m examples.kernels
"""

import greenbeat as gb


@gb.kernel
def fib(n: int) -> int:
    """Fork at every call."""
    if n < 2:
        return n
    x, y = gb.par(fib(n - 1), fib(n - 2))
    return x + y


@gb.kernel
def square(x: int) -> int:
    """Something for a task to do."""
    return x * x


@gb.kernel
def report(done: gb.Channel[gb.i64], i: int) -> None:
    """Send a number."""
    done.send(i)


@gb.kernel
def mean(a: gb.Array[gb.f64]) -> float:
    """A loop whose iterations run at the same time."""
    total = 0.0
    for i in gb.prange(len(a)):
        total += a[i]
    return total / len(a)


if __name__ == "__main__":
    print("fib(32) =", fib(32))
    print("squares:", gb.gather(*(gb.spawn(square, i) for i in range(10))))
