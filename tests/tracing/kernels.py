"""Kernels that are traced and profiled."""

import greenbeat as gb


@gb.kernel
def fib(n: int) -> int:
    if n < 2:
        return n
    x, y = gb.par(fib(n - 1), fib(n - 2))
    return x + y


@gb.kernel
def waves(n: int) -> int:
    total = 0
    for i in gb.prange(n):
        total += i * i % 7
    return total


@gb.kernel
def leaf(i: int) -> int:
    return i


@gb.kernel
def spawns(n: int) -> int:
    total = 0
    for i in range(n):
        task = gb.spawn(leaf, i)
        total += task.join()
    return total


@gb.kernel
def echo(requests: gb.Channel[int], answers: gb.Channel[int]) -> None:
    for value in requests:
        answers.send(value + 1)


@gb.kernel
def spin(n: int) -> int:
    x = 1
    for _ in range(n):
        x = x * 6364136223846793005 + 1442695040888963407
    return x


@gb.kernel
def down(depth: int, n: int) -> int:
    if depth == 0:
        return spin(n)
    value = down(depth - 1, n)
    return value - value // 3


GUEST = """
(module (func $fib (export "fib") (param i32) (result i32)
  (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
    (then (local.get 0))
    (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                   (call $fib (i32.sub (local.get 0) (i32.const 2))))))))
"""
