"""Channel and select: in threads, and in asyncio, where a value is never lost."""

import asyncio
import contextlib
import copy
import gc
import pickle
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import greenbeat as gb
from tests.tasks.kernels import collect


def test_order_and_capacity() -> None:
    channel: gb.Channel[int] = gb.Channel(int, 3)
    for i in range(3):
        channel.send(i)
    with pytest.raises(TimeoutError, match="nothing was sent within 0 s"):
        channel.send(3, timeout=0)
    with pytest.raises(TimeoutError, match="nothing was sent within 0.01 s"):
        channel.send(3, timeout=0.01)
    assert [channel.recv() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(TimeoutError, match="nothing was received within 0.01 s"):
        channel.recv(timeout=0.01)
    assert repr(channel) == "<greenbeat.Channel of i64, capacity 3>"


def test_close() -> None:
    channel: gb.Channel[int] = gb.Channel(int, 2)
    channel.send(1)
    channel.close()
    channel.close()
    assert repr(channel) == "<greenbeat.Channel of i64, capacity 2, closed>"
    with pytest.raises(gb.ChannelClosed, match="capacity 2> is closed"):
        channel.send(2)
    assert list(channel) == [1]
    with pytest.raises(gb.ChannelClosed):
        channel.recv(timeout=0)
    with pytest.raises(gb.ChannelClosed):
        gb.select([channel])


def test_close_wakes_who_waits() -> None:
    channel: gb.Channel[int] = gb.Channel(int)
    ended: list[str] = []

    def receive() -> None:
        try:
            channel.recv()
        except gb.ChannelClosed:
            ended.append("receiver")

    threads = [threading.Thread(target=receive) for _ in range(4)]
    for thread in threads:
        thread.start()
    task = gb.spawn(collect, channel)
    time.sleep(0.02)
    channel.close()
    for thread in threads:
        thread.join(60)
    assert task.join(60) == 0
    assert len(ended) == 4


@pytest.mark.parametrize(
    ("kind", "value", "error", "message"),
    [
        (int, "a", TypeError, "an i64 is needed here, not str 'a'"),
        (int, True, TypeError, "an i64 is needed here, not bool True"),
        (int, 1 << 63, OverflowError, "9223372036854775808 does not fit i64"),
        (gb.i32, 1 << 31, OverflowError, "does not fit i32"),
        (float, "a", TypeError, "a f64 is needed here"),
        (bool, 1, TypeError, "a bool is needed here, not int 1"),
        (None, 1, TypeError, "this channel sends None, not int 1"),
        ((int, float), (1,), TypeError, "this channel sends .i64, f64., not tuple"),
        ((int, float), 1, TypeError, "this channel sends"),
    ],
)
def test_values_are_checked(kind: Any, value: Any, error: type[Exception], message: str) -> None:
    channel: gb.Channel[Any] = gb.Channel(kind, 1)
    for send in (channel.send, channel.sending, lambda value: asyncio.run(channel.asend(value))):
        with pytest.raises(error, match=message):
            send(value)
    with pytest.raises(TimeoutError):
        channel.recv(0)


def test_what_a_channel_is_made_of_is_checked() -> None:
    mistakes: list[tuple[Callable[[], Any], type[Exception]]] = [
        (lambda: gb.Channel(str), TypeError),
        (lambda: gb.Channel(int, "1"), TypeError),  # type: ignore[arg-type]
        (lambda: gb.Channel(int, True), TypeError),
        (lambda: gb.Channel(int, -1), ValueError),
        (lambda: gb.Channel(int, (1 << 24) + 1), ValueError),
        (lambda: gb.Channel((int,) * 17), TypeError),
        (lambda: gb.select([]), ValueError),
        (lambda: gb.select([gb.Channel(int)] * 65), ValueError),
        (lambda: gb.select([3]), TypeError),  # type: ignore[list-item]
        (lambda: asyncio.run(gb.aselect([gb.Channel(int)], -1)), ValueError),
    ]
    for make, error in mistakes:
        with pytest.raises(error):
            make()


def test_a_kind_that_cannot_be_sent_is_told() -> None:
    with pytest.raises(TypeError, match="values of str, which cannot be sent: .* as in Channel"):
        gb.Channel(str)
    with pytest.raises(TypeError, match="values of str 'int', which cannot be sent"):
        gb.Channel("int")
    with pytest.raises(TypeError, match="values of list, which cannot be sent"):
        gb.Channel((int, list))


def test_select_wants_a_list() -> None:
    channel: gb.Channel[int] = gb.Channel(int)
    for cases in (channel, (each for each in [channel])):
        with pytest.raises(
            TypeError, match=r"select takes a list of cases, as in select\(\[.*, not (Channel|generator) <"
        ):
            gb.select(cases)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="select takes a list of cases"):
            asyncio.run(gb.aselect(cases))  # type: ignore[arg-type]


def test_channels_are_not_copied() -> None:
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a greenbeat.Channel cannot be pickled or copied"):
            way(gb.Channel(int))


def test_select_between_threads() -> None:
    first: gb.Channel[int] = gb.Channel(int)
    second: gb.Channel[int] = gb.Channel(int)
    with pytest.raises(TimeoutError, match="none of the 2 channels was ready within 0.01 s"):
        gb.select([first, second], timeout=0.01)
    with pytest.raises(TimeoutError, match="^the channel was not ready within 0 s"):
        gb.select([first], timeout=0)
    received: list[Any] = []
    thread = threading.Thread(target=lambda: received.append(gb.select([first, second])))
    thread.start()
    second.send(7, timeout=60)
    thread.join(60)
    assert received == [(1, 7)]


def test_select_against_select() -> None:
    """Two threads that both may send and receive on the same channels always find each other."""
    channels: list[gb.Channel[int]] = [gb.Channel(int) for _ in range(3)]
    sums = [0, 0, 0, 0]

    def play(me: int) -> None:
        draw = random.Random(me)
        for _ in range(300):
            cases = draw.sample(channels, 3)
            which, value = gb.select([cases[0], cases[1].sending(1), cases[2], cases[0].sending(1)], timeout=60)
            sums[me] += 1 if which in (1, 3) else -value

    threads = [threading.Thread(target=play, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    # Whoever has nobody left to play with is helped.
    while any(thread.is_alive() for thread in threads):
        for channel in channels:
            for case in (channel, channel.sending(1)):
                try:
                    _, value = gb.select([case], timeout=0)
                except TimeoutError:
                    continue
                sums[0] += 1 if case is not channel else -value
        time.sleep(0.0005)
    assert sum(sums) == 0


def test_asyncio() -> None:
    async def main() -> None:
        channel: gb.Channel[int] = gb.Channel(int)
        receiving = asyncio.ensure_future(channel.arecv())
        await channel.asend(3)
        assert await receiving == 3
        sending = asyncio.ensure_future(gb.aselect([channel.sending(4)]))
        assert await gb.aselect([gb.Channel(int), channel]) == (1, 4)
        assert await sending == (0, None)
        task = gb.spawn(collect, channel)
        for i in range(100):
            await channel.asend(i)
        channel.close()
        assert await task == 4950
        with pytest.raises(gb.ChannelClosed):
            await channel.asend(1)
        with pytest.raises(gb.ChannelClosed):
            await channel.arecv()
        assert [value async for value in channel] == []

    asyncio.run(main())


def test_a_select_in_asyncio_ends_in_time() -> None:
    async def main() -> None:
        first: gb.Channel[int] = gb.Channel(int)
        second: gb.Channel[int] = gb.Channel(int, 1)
        with pytest.raises(TimeoutError, match="none of the 2 channels was ready within 0.01 s"):
            await gb.aselect([first, second], 0.01)
        with pytest.raises(TimeoutError, match="was ready within 0 s"):
            await gb.aselect([first, second], timeout=0)
        # Nobody receives any more.
        with pytest.raises(TimeoutError):
            first.send(1, timeout=0)
        second.send(2)
        assert await gb.aselect([first, second], timeout=0) == (1, 2)
        waiting = asyncio.ensure_future(gb.aselect([first, second], timeout=60))
        await asyncio.sleep(0)
        first.send(3)
        assert await waiting == (0, 3)
        first.close()
        with pytest.raises(gb.ChannelClosed):
            await gb.aselect([first], timeout=0)

    asyncio.run(main())


def test_selects_of_asyncio_whose_time_is_over_as_a_value_comes_lose_nothing() -> None:
    async def receive(channel: "gb.Channel[int]", found: list[int]) -> None:
        while len(found) < 200:
            with contextlib.suppress(TimeoutError):
                found.append((await gb.aselect([channel, gb.Channel(int)], timeout=0.0003))[1])

    channel: gb.Channel[int] = gb.Channel(int)
    found: list[int] = []
    sender = threading.Thread(target=send_all, args=(channel,))
    sender.start()
    asyncio.run(receive(channel, found))
    sender.join(60)
    assert found == list(range(200))


@pytest.mark.parametrize("way", ["recv", "select"])
def test_a_cancelled_receive_loses_nothing(way: str) -> None:
    async def main() -> None:
        channel: gb.Channel[int] = gb.Channel(int)
        for _ in range(50):
            wait = channel.arecv() if way == "recv" else gb.aselect([gb.Channel(int), channel])
            receiving = asyncio.ensure_future(wait)
            await asyncio.sleep(0)
            # It is handed over now, but the loop has not told the coroutine when that is cancelled.
            channel.send(1)
            receiving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await receiving
            assert channel.recv(60) == 1

    asyncio.run(main())


def test_values_given_back_keep_their_order_and_come_first() -> None:
    async def main() -> None:
        channel: gb.Channel[int] = gb.Channel(int, 4)
        receiving = [asyncio.ensure_future(channel.arecv()) for _ in range(3)]
        await asyncio.sleep(0)
        for i in range(6):
            channel.send(i)
        for wait in receiving:
            wait.cancel()
        await asyncio.gather(*receiving, return_exceptions=True)
        channel.close()
        assert sorted(list(channel)[:3]) == [0, 1, 2]

    asyncio.run(main())


def send_all(channel: "gb.Channel[int]") -> None:
    for i in range(200):
        channel.send(i, timeout=60)


def test_receivers_cancelled_at_random_moments_lose_nothing() -> None:
    async def receive(channel: "gb.Channel[int]", found: list[int]) -> None:
        while True:
            found.append(await channel.arecv())

    async def main(seed: int) -> None:
        draw = random.Random(seed)
        channel: gb.Channel[int] = gb.Channel(int, draw.choice((0, 1, 5)))
        found: list[int] = []
        sender = threading.Thread(target=send_all, args=(channel,))
        sender.start()
        while sender.is_alive():
            receivers = [asyncio.ensure_future(receive(channel, found)) for _ in range(3)]
            await asyncio.sleep(draw.random() * 2e-3)
            for receiver in receivers:
                receiver.cancel()
            await asyncio.gather(*receivers, return_exceptions=True)
        channel.close()
        found += list(channel)
        assert sorted(found) == list(range(200))

    for seed in range(10):
        asyncio.run(main(seed))


def test_a_select_that_nobody_awaits_any_more() -> None:
    async def main() -> None:
        channel: gb.Channel[int] = gb.Channel(int)
        selecting: Any = gb.aselect([channel, gb.Channel(int)])
        selecting.send(None)
        selecting.close()
        del selecting
        gc.collect()
        with pytest.raises(TimeoutError):
            channel.send(1, timeout=0)

    asyncio.run(main())
