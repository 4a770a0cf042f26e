"""Kernels that the tests of tasks run, also in processes of their own."""

import greenbeat as gb


@gb.kernel
def forever() -> None:
    while True:
        pass


@gb.kernel
def recur(n: int) -> int:
    """A recursion that LLVM makes a loop of."""
    return recur(n + 1)


@gb.kernel
def pong(requests: gb.Channel[gb.i64], answers: gb.Channel[gb.i64]) -> None:
    for value in requests:
        answers.send(value + 1)


@gb.kernel
def ping(requests: gb.Channel[gb.i64], answers: gb.Channel[gb.i64]) -> None:
    while True:
        requests.send(0)
        answers.recv()


@gb.kernel
def play(requests: gb.Channel[gb.i64], answers: gb.Channel[gb.i64]) -> None:
    gb.spawn(pong, requests, answers)
    while True:
        requests.send(0)
        answers.recv()


@gb.kernel
def wait(channel: gb.Channel[gb.i64]) -> int:
    return channel.recv()


@gb.kernel
def collect(channel: gb.Channel[gb.i64]) -> int:
    total = 0
    for value in channel:
        total += value
    return total


@gb.kernel
def fib(n: int) -> int:
    if n < 2:
        return n
    left, right = gb.par(fib(n - 1), fib(n - 2))
    return left + right


@gb.kernel
def chain(n: int) -> int:
    if n == 0:
        return 0
    task = gb.spawn(chain, n - 1)
    return task.join() + 1


@gb.kernel
def fail(number: int) -> int:
    if number >= 0:
        raise ValueError("failed")
    return number
