"""`greenbeat.profile`: what is seen at beats. How often there is one depends on the machine, so no test counts."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.tracing.profiling import Profile, _kernel_stack

from .kernels import GUEST, down, fib, spin, waves

ELF = os.uname().sysname == "Linux" if hasattr(os, "uname") else False


def profiled(call: Callable[[int], Any], found: Callable[[Profile], bool] = lambda profile: True) -> Profile:
    """Profile a call, with more work each time, until something was seen."""
    for size in range(12):
        with gb.profile(0.0005) as profile:
            call(1 << size)
        if profile.samples and found(profile):
            return profile
    raise AssertionError("it was never seen")


def seen(profile: Profile) -> set[str]:
    return {name.rpartition(".")[2] for sample in profile.samples for name in sample.stack}


def test_a_kernel() -> None:
    before = time.monotonic_ns()
    profile = profiled(lambda size: spin(100_000 * size))
    assert seen(profile) == {"spin"}
    assert all(sample.thread == "MainThread" for sample in profile.samples)
    assert all(before < sample.time < time.monotonic_ns() for sample in profile.samples)
    assert profile.dropped == 0


@pytest.mark.skipif(not ELF, reason="only object files in ELF tell where functions are")
def test_the_calls_between_kernels() -> None:
    profile = profiled(lambda size: down(20, 100_000 * size))
    names = [[name.rpartition(".")[2] for name in sample.stack] for sample in profile.samples]
    # LLVM may make one function of several levels.
    assert all(stack[0] == "down" for stack in names)
    assert any(len(stack) > 3 for stack in names)


def test_what_is_compiled_meanwhile_is_known() -> None:
    @gb.kernel
    def late(n: int) -> int:
        return spin(n)

    profile = profiled(lambda size: late(100_000 * size))
    assert "late" in seen(profile)


def test_tasks_and_loops() -> None:
    with gb.Runtime(workers=2):
        profile = profiled(lambda size: (fib(18), waves(200_000 * size)), lambda found: "1" in seen(found))
    assert seen(profile) <= {"fib", "waves", "1"}


def test_a_guest() -> None:
    instance = gb.Module.from_wat(GUEST).instantiate()
    sizes = iter(range(18, 40))
    profile = profiled(lambda size: instance.exports.fib(next(sizes)))
    assert {name for sample in profile.samples for name in sample.stack} == {"$fib"}
    assert any(len(sample.stack) > 5 for sample in profile.samples)


def test_a_guest_as_a_task() -> None:
    instance = gb.Module.from_wat(GUEST).instantiate()
    sizes = iter(range(18, 40))
    with gb.Runtime(workers=1):
        profile = profiled(lambda size: gb.spawn(instance.exports.fib, next(sizes)).join())
    assert {sample.thread for sample in profile.samples} == {"greenbeat worker 0"}
    assert "$fib" in profile.top()


def test_files(tmp_path: Path) -> None:
    profile = profiled(lambda size: spin(100_000 * size))
    collapsed, scope = tmp_path / "stacks.txt", tmp_path / "run.json"
    profile.save_collapsed(collapsed)
    counts = [line.rpartition(" ") for line in collapsed.read_text().splitlines()]
    assert sum(int(count) for _, _, count in counts) == len(profile.samples)
    assert all(stack.startswith("MainThread;") and stack.endswith("spin") for stack, _, _ in counts)
    profile.save_speedscope(scope)
    data = json.loads(scope.read_text())
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    (thread,) = data["profiles"]
    assert (thread["type"], thread["name"], thread["unit"]) == ("sampled", "MainThread", "milliseconds")
    assert len(thread["samples"]) == len(thread["weights"]) == len(profile.samples)
    assert thread["endValue"] == pytest.approx(sum(thread["weights"]))
    frames = data["shared"]["frames"]
    assert all(frames[place]["name"] for stack in thread["samples"] for place in stack)


def test_the_table() -> None:
    profile = profiled(lambda size: spin(100_000 * size))
    head, titles, row = profile.top().splitlines()
    assert head.startswith(f"{len(profile.samples)} samples, one in 0.5 ms of a thread; 0 dropped")
    assert titles == "   self  total  function"
    assert row.split()[:2] == ["100.0%", "100.0%"] and row.endswith(".spin")
    with gb.profile() as empty:
        pass
    assert empty.top() == f"0 samples, one in {empty.interval * 1000:g} ms of a thread; 0 dropped"


def test_stacks_of_kernels() -> None:
    poll, overflow = "kernels.support.poll", "kernels.support.overflow"
    # What is left of older frames is below the poll.
    assert _kernel_stack("m.f", ["m.old", poll, "m.g", "m.f", "m.f.thunk"]) == ("m.f", "m.g")
    assert _kernel_stack("m.f", [overflow, "m.f", "thunk"]) == ("m.f",)
    assert _kernel_stack("m.f.loop.1", [poll, "m.f.loop.1.chunk"]) == ("m.f.loop.1",)
    assert _kernel_stack("m.f", []) == ("m.f",)
    # The outermost frames are missing in a deep recursion.
    assert _kernel_stack("m.f", [poll, "m.h", "m.g"]) == ("m.f", "m.g", "m.h")


def test_beats_come_as_before() -> None:
    from greenbeat.tracing.profiling import _period

    before = _period().value
    with gb.profile(0.0002) as profile:
        assert _period().value == 200_000 and profile.interval == 0.0002
    assert _period().value == before


def test_mistakes() -> None:
    with gb.profile() as profile:
        assert repr(profile) == "<greenbeat.profile, running>"
        with pytest.raises(RuntimeError, match="a profile is being taken already: stop it first"):
            gb.profile().start()
    assert repr(profile) == "<greenbeat.profile, 0 samples>"
    with pytest.raises(RuntimeError, match="this profile is not being taken"):
        profile.stop()
    with pytest.raises(ValueError, match="interval must be from 0.0001 to 1 seconds: 0"):
        gb.profile(0)
    with pytest.raises(TypeError, match="interval is a number of seconds, not str 'often'"):
        gb.profile("often")  # type: ignore[arg-type]
