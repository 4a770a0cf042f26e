"""Tasks and the process: its end, forks, Ctrl-C, and that nothing happens when nothing is to be done."""

import os
import resource
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import greenbeat as gb
from tests.tasks import kernels

HEAD = """
import contextlib, os, signal, sys, threading, time
import greenbeat as gb
from tests.tasks.kernels import *
a, b = gb.Channel(gb.i64, 1), gb.Channel(gb.i64, 1)
"""
# What runs while the interpreter ends.
RUNNING = {
    "loops": "keep = [gb.spawn(forever) for _ in range(4)]",
    "switching": "keep = [gb.spawn(ping, a, b), gb.spawn(pong, a, b)]",
    "waiting": "keep = [gb.spawn(wait, a) for _ in range(100)]",
    "calls": """
        threading.Thread(target=fib, args=(60,), daemon=True).start()
        threading.Thread(target=forever, daemon=True).start()
    """,
    "switching calls": """
        threading.Thread(target=play, args=(a, b), daemon=True).start()
        threading.Thread(target=wait, args=(gb.Channel(gb.i64),), daemon=True).start()
    """,
    "joins": """
        keep = [gb.spawn(chain, 50) for _ in range(50)] + [gb.spawn(forever)]
        def join():
            with contextlib.suppress(gb.Cancelled):
                keep[-1].join()
        threading.Thread(target=join, daemon=True).start()
        threading.Thread(target=a.recv, daemon=True).start()
    """,
    "a group that was not left": """
        group = gb.TaskGroup()
        group.__enter__()
        group.spawn(forever)
        group.spawn(wait, a)
    """,
}


def run_python(text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", HEAD + textwrap.dedent(text), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


@pytest.mark.parametrize("what", RUNNING)
def test_the_interpreter_ends_at_any_moment(what: str) -> None:
    text = textwrap.dedent(RUNNING[what]) + "\ntime.sleep(float(sys.argv[1]))"
    for delay in (0, 0.001, 0.01, 0.03):
        done = run_python(text, str(delay))
        assert (done.returncode, done.stderr) == (0, ""), delay


@pytest.mark.parametrize(
    "what",
    [
        "forever()",
        "play(a, b)",
        "wait(a)",
        "fib(60)",
        "recur(0)",
        "gb.spawn(forever).join()",
        "a.recv()",
        "gb.select([a, b])",
        "gb.gather(gb.spawn(forever), gb.spawn(wait, a))",
        "with gb.TaskGroup() as group: group.spawn(forever); group.spawn(wait, a); group.spawn(ping, a, b)",
    ],
)
def test_interrupts(what: str) -> None:
    done = run_python(f"""
        fib(5)
        def kick():
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=kick).start()
        try:
            {what}
        except KeyboardInterrupt:
            print("interrupted")
        assert chain(3) == 3 and fib(10) == 55
    """)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_forked_children_have_tasks_of_their_own() -> None:
    done = run_python("""
        busy = [gb.spawn(forever), gb.spawn(ping, a, b), gb.spawn(pong, a, b), gb.spawn(wait, gb.Channel(gb.i64))]
        def receive():
            while True:
                with contextlib.suppress(TimeoutError):
                    a.recv(0.001)
        threading.Thread(target=receive, daemon=True).start()
        for turn in range(40):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                c = gb.Channel(int, 1)
                c.send(turn)
                assert gb.spawn(wait, c).join() == turn
                assert gb.gather(*(gb.spawn(chain, 9) for _ in range(9))) == [9] * 9
                assert fib(20) == 6765
                try:
                    busy[0].join()
                except RuntimeError as problem:
                    assert "forked" in str(problem)
                else:
                    os._exit(3)
                # Nobody of the parent's waits in a channel.
                while True:
                    try:
                        a.recv(0)
                    except TimeoutError:
                        break
                a.send(1, 0)
                assert a.recv(0) == 1
                os._exit(0) if turn % 2 else sys.exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
        print("done")
        os._exit(0)
    """)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_nothing_is_done_when_there_is_nothing_to_do() -> None:
    channel: gb.Channel[int] = gb.Channel(int)
    tasks = [gb.spawn(kernels.collect, channel) for _ in range(50)]
    caller = threading.Thread(target=kernels.collect, args=(channel,))
    receiver = threading.Thread(target=lambda: list(channel))
    caller.start()
    receiver.start()

    def switches() -> int:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_nvcsw + usage.ru_nivcsw

    # The pacemaker ticks for a while after everything has come to rest.
    for _ in range(50):
        before = switches()
        time.sleep(0.3)
        if switches() - before <= 20:
            break
    else:
        pytest.fail("something wakes up all the time")
    channel.close()
    caller.join(60)
    receiver.join(60)
    assert gb.gather(*tasks) == [0] * 50


def test_a_call_that_waits_does_not_spin_after_the_runtime_was_closed() -> None:
    channel: gb.Channel[int] = gb.Channel(int)
    gb.Runtime(1).close()
    caller = threading.Thread(target=kernels.wait, args=(channel,))
    caller.start()
    time.sleep(0.3)
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(0.5)
    after = resource.getrusage(resource.RUSAGE_SELF)
    channel.send(1)
    caller.join(60)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.25


def test_what_is_forked_is_ended_with_few_stacks() -> None:
    """Branches that have begun go on before others begin: so a long call does not need more and more stacks."""

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    task = gb.spawn(kernels.fib, 70)
    time.sleep(0.3)
    before = resident()
    time.sleep(1.5)
    grown = resident() - before
    task.cancel()
    with pytest.raises(gb.Cancelled):
        task.join()
    assert grown < 4 << 20


def test_spawning_in_turn_maps_nothing() -> None:
    def mappings() -> list[str]:
        with open("/proc/self/maps") as file:
            return [line.split()[0] for line in file]

    for _ in range(2000):
        kernels.chain(3)
    before = mappings()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20_000):
        kernels.chain(3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults < 200
    assert len(mappings()) <= len(before) + 1


MILLION = """
import os, time
from benchmarks.spawn import green_turns
import greenbeat as gb
done = gb.Channel(None)
green_turns(done, 10_000)
# The pacemaker's thread is made by whoever runs first, which may be a worker that has only just begun.
time.sleep(0.5)
os.write(2, b"begin")
green_turns(done, 1_000_000)
os.write(2, b"end")
"""


def test_a_million_tasks_in_turn_ask_the_system_for_no_memory(tmp_path: Path) -> None:
    if not shutil.which("strace"):
        pytest.skip("strace is not installed: it counts the system calls")
    calls = "mmap,munmap,madvise,mremap,brk,mprotect"
    found = tmp_path / "calls"
    command = ["strace", "-f", "-e", f"trace={calls},write", "-o", str(found), sys.executable, "-c", MILLION]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0 and "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip().splitlines()[-1]}")
    assert done.stderr.endswith("beginend"), done.stderr
    lines = found.read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if 'write(2, "begin"' in line)
    end = next(i for i, line in enumerate(lines) if 'write(2, "end"' in line)
    wanted = tuple(f"{name}(" for name in calls.split(","))
    assert not [line for line in lines[begin:end] if any(call in line for call in wanted)]
