"""Tasks and channels in kernels, and kernels that Python spawns."""

import asyncio
import gc
import threading
from typing import Any

import pytest

import greenbeat as gb
from tests.kernels.making import kernel, module


@gb.kernel
def square(x: int) -> int:
    if x < 0:
        raise ValueError("negative")
    return x * x


@gb.kernel
def forever() -> None:
    while True:
        pass


@gb.kernel
def echo(requests: gb.Channel[gb.i64], answers: gb.Channel[gb.i64]) -> int:
    count = 0
    for request in requests:
        answers.send(request + 1)
        count += 1
    answers.close()
    return count


def test_spawn_from_python() -> None:
    task = gb.spawn(square, 7)
    assert task.join() == task.result() == 49
    assert task.done
    assert not task.cancelled
    assert task.exception() is None


def test_many_tasks() -> None:
    assert gb.gather(*(gb.spawn(square, i) for i in range(2000))) == [i * i for i in range(2000)]


def test_a_failure_has_both_places() -> None:
    task = gb.spawn(square, -1)
    with pytest.raises(ValueError, match="negative") as caught:
        task.join()
    assert any("test_a_failure_has_both_places" in note for note in caught.value.__notes__)
    names = [entry.name for entry in caught.traceback]
    assert names[-1] == "square"


def test_arguments_are_checked_at_once() -> None:
    with pytest.raises(TypeError, match="x"):
        gb.spawn(square, "one")
    with pytest.raises(TypeError):
        gb.spawn(square)
    with pytest.raises(TypeError, match="spawn takes a kernel"):
        gb.spawn(print)


def test_cancel() -> None:
    task = gb.spawn(forever)
    with pytest.raises(TimeoutError):
        task.join(timeout=0.01)
    task.cancel()
    with pytest.raises(gb.Cancelled):
        task.join()
    assert task.cancelled


def test_endless_tasks_starve_nobody() -> None:
    endless = [gb.spawn(forever) for _ in range(8)]
    assert gb.gather(*(gb.spawn(square, i) for i in range(50))) == [i * i for i in range(50)]
    for task in endless:
        task.cancel()
    for task in endless:
        with pytest.raises(gb.Cancelled):
            task.join()


def test_channels_between_kernels_and_python() -> None:
    requests, answers = gb.Channel(gb.i64, 4), gb.Channel(gb.i64)
    task = gb.spawn(echo, requests, answers)
    sender = threading.Thread(target=lambda: [requests.send(i) for i in range(100)] + [requests.close()])  # type: ignore[func-returns-value]
    sender.start()
    assert list(answers) == list(range(1, 101))
    assert task.join() == 100
    sender.join()


def test_channels_between_kernels_and_asyncio() -> None:
    async def main() -> list[int]:
        requests, answers = gb.Channel(gb.i64), gb.Channel(gb.i64)
        task = gb.spawn(echo, requests, answers)

        async def feed() -> None:
            for i in range(50):
                await requests.asend(i)
            requests.close()

        feeding = asyncio.create_task(feed())
        found = [answer async for answer in answers]
        await feeding
        assert await task == 50
        return found

    assert asyncio.run(main()) == list(range(1, 51))


@pytest.mark.parametrize(
    ("kind", "annotation", "values"),
    [
        (int, "int", [0, -5, 2**63 - 1]),
        (gb.u64, "gb.u64", [0, 2**64 - 1]),
        (gb.u8, "gb.u8", [0, 255]),
        (float, "float", [0.0, -1.5, float("inf")]),
        (gb.f32, "gb.f32", [0.5, -2.0]),
        (bool, "bool", [True, False]),
        (None, "None", [None, None]),
        ((int, float, bool), "tuple[int, float, bool]", [(1, 0.5, True), (-1, 2.0, False)]),
    ],
)
def test_values_of_every_type(kind: Any, annotation: str, values: list[Any]) -> None:
    body = "    for x in a:\n        b.send(x)\n" if kind is not None else "    for _ in a:\n        b.send()\n"
    f = kernel(
        f"@gb.kernel\ndef f(a: gb.Channel[{annotation}], b: gb.Channel[{annotation}]) -> None:\n{body}    b.close()\n"
    )
    a, b = gb.Channel(kind, 10), gb.Channel(kind, 10)
    for value in values:
        a.send(value)
    a.close()
    f(a, b)
    assert list(b) == values


def test_spawn_and_join_in_a_kernel() -> None:
    names = module(
        "@gb.kernel\ndef fib(n: int) -> int:\n"
        "    if n < 2:\n        return n\n"
        "    left = gb.spawn(fib, n - 1)\n    right = gb.spawn(fib, n - 2)\n"
        "    return left.join() + right.join()\n"
    )
    assert names["fib"](16) == 987


def test_a_failed_task_fails_who_joins_it() -> None:
    names = module(
        "@gb.kernel\ndef bad(n: int) -> int:\n    return 1 // n\n"
        "@gb.kernel\ndef f(n: int) -> int:\n    task = gb.spawn(bad, n)\n    return task.join()\n"
    )
    assert names["f"](1) == 1
    with pytest.raises(ZeroDivisionError) as caught:
        names["f"](0)
    assert caught.traceback[-1].name == "bad"


def test_joining_twice_is_an_error() -> None:
    f = module(
        "@gb.kernel\ndef one() -> int:\n    return 1\n"
        "@gb.kernel\ndef f() -> int:\n    task = gb.spawn(one)\n    return task.join() + task.join()\n"
    )["f"]
    with pytest.raises(ValueError, match="joined before"):
        f()


def test_cancelling_in_a_kernel() -> None:
    names = module(
        "@gb.kernel\ndef spin() -> int:\n    while True:\n        pass\n"
        "@gb.kernel\ndef f() -> int:\n    task = gb.spawn(spin)\n    task.cancel()\n    return task.join()\n"
    )
    with pytest.raises(gb.Cancelled):
        names["f"]()


def test_timeouts_and_closed_channels_in_a_kernel() -> None:
    f = kernel("@gb.kernel\ndef f(c: gb.Channel[int], t: float) -> int:\n    return c.recv(t)\n")
    channel = gb.Channel(int)
    with pytest.raises(TimeoutError):
        f(channel, 0.01)
    channel.close()
    with pytest.raises(gb.ChannelClosed):
        f(channel, 1.0)
    g = kernel("@gb.kernel\ndef f(c: gb.Channel[int]) -> None:\n    c.send(1)\n")
    with pytest.raises(gb.ChannelClosed):
        g(channel)


def test_sleep_lets_others_run() -> None:
    names = module(
        "@gb.kernel\ndef late(c: gb.Channel[int]) -> None:\n    time.sleep(0.02)\n    c.send(2)\n"
        "@gb.kernel\ndef f(c: gb.Channel[int]) -> tuple[int, int]:\n"
        "    gb.spawn(late, c)\n    c.send(1)\n    return c.recv(), c.recv()\n",
        time=__import__("time"),
    )
    assert names["f"](gb.Channel(int, 4)) == (1, 2)


def test_arrays_live_as_long_as_a_task_needs_them() -> None:
    numpy = pytest.importorskip("numpy")
    f = kernel(
        "@gb.kernel\ndef f(a: gb.Array[gb.f64], go: gb.Channel[None]) -> float:\n"
        "    go.recv()\n    s = 0.0\n    for x in a:\n        s += x\n    return s\n"
    )
    go: gb.Channel[None] = gb.Channel(None)
    array = numpy.ones(100_000)
    task = gb.spawn(f, array, go)
    with pytest.raises(ValueError, match="resize|references|own"):
        array.resize(3, refcheck=True)
    del array
    gc.collect()
    go.send()
    assert task.join() == 100_000.0


def test_a_channel_lives_as_long_as_a_detached_task() -> None:
    names = module(
        "@gb.kernel\ndef late(c: gb.Channel[int], go: gb.Channel[int]) -> None:\n    c.send(go.recv())\n"
        "@gb.kernel\ndef f(c: gb.Channel[int], go: gb.Channel[int]) -> None:\n    gb.spawn(late, c, go)\n"
    )
    for i in range(200):
        c, go = gb.Channel(int, 1), gb.Channel(int, 1)
        names["f"](c, go)
        go.send(i)
        del c, go
    gc.collect()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    gb.spawn(print)\n", "spawn takes a kernel"),
        ("    c.push(1)\n", "has no 'push'"),
        ("    c.send(1.5)\n", "sends i64"),
        ("    c.send(1, 2, 3)\n", "does not take 3 arguments"),
        ("    x = c + 1\n", "a number is needed"),
        ("    t = gb.spawn(h)\n    t.stop()\n", "has no 'stop'"),
        ("    gb.spawn(g, a)\n", "cannot give an array"),
    ],
)
def test_mistakes(body: str, message: str) -> None:
    head = (
        "@gb.kernel\ndef g(a: gb.Array[gb.f64]) -> None:\n    pass\n@gb.kernel\ndef h() -> None:\n    pass\n"
        "@gb.kernel\ndef f(c: gb.Channel[int], a: gb.Array[gb.f64]) -> None:\n"
    )
    with pytest.raises(gb.KernelError, match=message):
        kernel(head + body).compile()


def test_a_channel_of_another_type_is_refused() -> None:
    requests, answers = gb.Channel(gb.i64), gb.Channel(gb.f64)
    with pytest.raises(TypeError, match="Channel"):
        gb.spawn(echo, requests, answers)
    with pytest.raises(TypeError, match="Channel"):
        gb.spawn(echo, requests, 3)
