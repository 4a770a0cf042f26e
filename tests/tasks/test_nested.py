"""What host functions of tasks do when the task, its runtime or the process ends; and forks at bad moments."""

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import greenbeat as gb
from tests.tasks.kernels import forever, wait
from tests.tasks.test_processes import run_python

TEXT = """
(module
  (import "env" "f" (func $f))
  (func (export "call") (call $f))
  (func (export "spin") (loop $again (br $again))))
"""


def guest(f: Callable[[], Any] = lambda: None) -> Any:
    """The exports of a guest that can call a host function."""
    return gb.Module.from_wat(TEXT).instantiate({"env": {"f": f}}).exports


def resumed(function: Any) -> None:
    """Run an export by a resumable call."""
    call = function.start()
    while not call.done:
        call.resume(fuel=1_000_000)


NESTED: dict[str, Callable[[Callable[[], Any]], Callable[[], Any]]] = {
    "direct": lambda what: what,
    "in a guest": lambda what: guest(what).call,
    "in a resumed guest": lambda what: lambda: resumed(guest(what).call),
}
ENDLESS: dict[str, Callable[[], Any]] = {
    "a guest": lambda: guest().spin(),
    "a resumed guest": lambda: resumed(guest().spin),
    "a kernel": lambda: forever(),
    "a kernel that waits": lambda: wait(gb.Channel(gb.i64)),
    "receiving": lambda: gb.Channel(gb.i64).recv(),
    "joining": lambda: gb.spawn(wait, gb.Channel(gb.i64)).join(),
    "selecting": lambda: gb.select([gb.Channel(gb.i64), gb.Channel(gb.i64)]),
    "gathering": lambda: gb.gather(gb.spawn(wait, gb.Channel(gb.i64))),
}


@pytest.mark.parametrize("nested", NESTED)
@pytest.mark.parametrize("what", ENDLESS)
def test_cancelling_ends_what_a_host_function_does(nested: str, what: str) -> None:
    begun = gb.Channel(gb.i64, 1)

    def host() -> None:
        begun.send(1)
        ENDLESS[what]()

    task = gb.spawn(guest(NESTED[nested](host)).call)
    begun.recv(timeout=30)
    task.cancel()
    with pytest.raises(gb.Cancelled):
        task.join(30)


@pytest.mark.parametrize("what", ENDLESS)
def test_closing_a_runtime_ends_it_too(what: str) -> None:
    begun = gb.Channel(gb.i64, 1)

    def host() -> None:
        begun.send(1)
        ENDLESS[what]()

    with gb.Runtime(2):
        task = gb.spawn(guest(host).call)
        begun.recv(timeout=30)
    with gb.Runtime(2), pytest.raises(gb.Cancelled):
        task.join(30)


GUEST = """
module = gb.Module.from_wat('''
(module (import "env" "f" (func $f)) (func (export "call") (call $f)) (func (export "spin") (loop $again (br $again)))
  (func (export "call_and_spin") (call $f) (loop $again (br $again))))''')
def guest(f=lambda: None, **limits):
    return module.instantiate({"env": {"f": f}}, limits=gb.Limits(**limits)).exports
def compile_slowly():
    from greenbeat.kernels import cache
    obtain, started = cache.obtain, threading.Event()
    def slowly(*arguments):
        started.set()
        time.sleep(0.2)
        return obtain(*arguments)
    cache.obtain = slowly
    return started
def fork(child):
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
"""


def succeeds(text: str) -> None:
    """Run a program that has a guest, and must not hang."""
    done = run_python(GUEST + textwrap.dedent(text))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_interpreter_ends_while_a_host_function_is_in_a_guest() -> None:
    succeeds("""
        task = gb.spawn(guest(guest().spin).call)
        time.sleep(0.05)
    """)


def test_a_runtime_is_closed_while_threads_compile() -> None:
    succeeds("""
        started = compile_slowly()
        def call():
            started.wait()
            fib(5)
        runtime = gb.Runtime(2)
        task = gb.spawn(guest(call).call)
        thread = threading.Thread(target=fib, args=(5,))
        thread.start()
        started.wait()
        runtime.close()
        thread.join()
    """)


def test_a_guest_whose_host_function_closes_the_runtime_goes_on_with_beats() -> None:
    succeeds("""
        begun = gb.Channel(gb.i64, 1)
        runtime = gb.Runtime(1)
        task = gb.spawn(guest(lambda: (begun.send(1), time.sleep(0.2))).call)
        begun.recv()
        try:
            guest(runtime.close, seconds=0.5).call_and_spin()
        except gb.Exhausted:
            sys.exit(0)
        sys.exit(1)
    """)


def test_a_close_that_is_interrupted_is_gone_on_with() -> None:
    succeeds("""
        begun = gb.Channel(gb.i64, 1)
        def host():
            begun.send(1)
            time.sleep(0.4)
        signal.signal(signal.SIGALRM, lambda *_: 1 // 0)
        for again in (True, False):
            runtime = gb.Runtime(1)
            task = gb.spawn(guest(host).call_and_spin)
            begun.recv()
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with contextlib.suppress(ZeroDivisionError):
                runtime.close()
            assert not task.done
            if again:
                runtime.close()
            with gb.Runtime(1):
                assert task.done and task.cancelled
    """)


def test_runtimes_are_closed_while_calls_wait() -> None:
    succeeds("""
        end = time.monotonic() + 2
        def call():
            while time.monotonic() < end:
                with contextlib.suppress(gb.Cancelled):
                    chain(5)
        threads = [threading.Thread(target=call) for _ in range(2)]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            with gb.Runtime(2):
                keep = [gb.spawn(forever), gb.spawn(guest().spin)]
                time.sleep(0.005)
        for thread in threads:
            thread.join()
    """)


def test_a_thread_that_helps_does_not_wait_for_itself() -> None:
    """Host functions of tasks wait for what the main thread sends after its call, in which it helps."""
    succeeds("""
        first, later = gb.Channel(gb.i64), gb.Channel(gb.i64)
        with gb.Runtime(1):
            tasks = [gb.spawn(guest(lambda: later.recv() and None).call) for _ in range(20)]
            threading.Timer(0.1, lambda: first.send(1)).start()
            assert wait(first) == 1
            for _ in tasks:
                later.send(1, timeout=10)
            for task in tasks:
                task.join(10)
    """)


def test_a_fork_while_a_kernel_is_compiled() -> None:
    succeeds("""
        started = compile_slowly()
        thread = threading.Thread(target=fib, args=(5,))
        thread.start()
        started.wait()
        fork(lambda: fib(6))
        thread.join()
    """)


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.005, 0.01])
def test_a_fork_while_something_is_used_for_the_first_time(delay: float) -> None:
    succeeds(f"""
        thread = threading.Thread(target=lambda: guest().call())
        thread.start()
        time.sleep({delay})
        fork(lambda: guest().call())
        thread.join()
    """)


def test_a_guest_that_goes_on_in_a_child_is_interruptible() -> None:
    succeeds("""
        pids = []
        exports = guest(lambda: pids.append(os.fork()), seconds=0.2)
        try:
            exports.call_and_spin()
        except gb.Exhausted:
            if pids[0] == 0:
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == 7
    """)
