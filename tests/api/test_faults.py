"""Out-of-bounds accesses that hit guard pages, in processes of their own: what becomes of faults that are ours and that
are not."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import greenbeat as gb

SOURCE = str(Path(gb.__file__).parents[1])
GUEST = """(module (memory (export "memory") 1 100)
  (func $load (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "far") (param i32) (result i64) (i64.load offset=0xfffffff0 (local.get 0)))
  (func (export "store") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
  (func (export "byte") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func (export "deep") (param i32 i32) (result i32)
    (if (result i32) (local.get 1) (then (i32.add (i32.const 1) (call $load (local.get 0)))) (else (i32.const 0))))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))"""
PROBE = """
for attempt in range(50):
    for name, arguments in (("load", (65533,)), ("load", (2**32 - 1,)), ("far", (0,)), ("far", (2**32 - 1,)),
                            ("store", (65529, 1)), ("byte", (65536,)), ("deep", (2**31, 1))):
        try:
            exports[name](*arguments)
        except gb.Trap as error:
            assert error.kind == "out of bounds memory access", error
            assert error.backtrace[0].function == ("load" if name == "deep" else name), error.backtrace
        else:
            raise AssertionError(name)
    exports.store(65528, 7)
    assert exports.load(65532) == 0 and exports.byte(65528) == 7
"""


def run(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    program = f"import greenbeat as gb\nGUEST = {GUEST!r}\nPROBE = {PROBE!r}\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
    )


MAKE = "exports = gb.Module.from_wat(GUEST).instantiate().exports\n"


@pytest.mark.parametrize("guard", ["0", "1"])
def test_with_and_without_guard_pages(guard: str) -> None:
    done = run(f"{MAKE}exec(PROBE)\nprint(exports.memory._native.guarded)", GREENBEAT_GUARD_PAGES=guard)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in (["False"] if guard == "0" else ["True", "False"])


def test_both_kinds_of_memory_in_one_process() -> None:
    done = run("""
        from greenbeat.api.bridge import native
        module = gb.Module.from_wat(GUEST)
        kinds = []
        for guard in (1, 0, 1, 0):
            native.set_guard_pages(guard)
            kinds.append(module.instantiate().exports)
        assert [exports.memory._native.guarded for exports in kinds][1::2] == [False, False]
        for exports in kinds * 2:
            exec(PROBE)
        for exports in kinds:
            exports.grow(1)
            assert exports.load(65536) == 0
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", ["before", "after", "both"])
def test_faulthandler(order: str) -> None:
    enable = "import faulthandler; faulthandler.enable()\n"
    code = (enable if order != "after" else "") + MAKE + "exec(PROBE)\n"
    if order != "before":
        # A handler installed later is found when the next memory is made.
        code += enable + MAKE + "exec(PROBE)\n"
    done = run(code + "print('fine')")
    assert done.returncode == 0 and done.stdout == "fine\n", done.stderr
    assert "Fatal" not in done.stderr
    done = run(code + "import ctypes; ctypes.string_at(8)")
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr and "string_at" in done.stderr


def test_a_fault_of_somebody_else_is_fatal() -> None:
    done = run(MAKE + "exec(PROBE)\nimport ctypes; ctypes.string_at(8)")
    assert done.returncode == -signal.SIGSEGV
    # Even inside of a guarded memory: only the interpreter's own loads and stores may fault there.
    done = run(MAKE + "exec(PROBE)\nimport ctypes; ctypes.string_at(exports.memory._native.base + (1 << 20), 1)")
    assert done.returncode == -signal.SIGSEGV


def test_a_signal_that_was_sent_is_no_fault() -> None:
    done = run(MAKE + "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\nimport time; time.sleep(5)")
    assert done.returncode == -signal.SIGSEGV


def test_a_python_handler_is_still_called() -> None:
    done = run(
        "import os, signal\nsignal.signal(signal.SIGBUS, lambda *_: print('handled'))\n"
        + MAKE
        + "exec(PROBE)\nos.kill(os.getpid(), signal.SIGBUS)\nprint('on')"
    )
    assert done.returncode == 0 and done.stdout == "handled\non\n", done.stderr


def test_faults_in_threads() -> None:
    done = run("""
        import threading
        module = gb.Module.from_wat(GUEST)
        failed = []
        def work():
            try:
                exec(PROBE, {"gb": gb, "exports": module.instantiate().exports})
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not failed, failed
    """)
    assert done.returncode == 0, done.stderr


def test_without_address_space() -> None:
    done = run(f"""
        import resource
        module = gb.Module.from_wat(GUEST)
        module.instantiate()
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        {MAKE.strip()}
        assert not exports.memory._native.guarded
        exec(PROBE)
    """)
    assert done.returncode == 0, done.stderr


def test_more_memories_than_may_be_guarded() -> None:
    done = run("""
        module = gb.Module.from_wat(GUEST)
        many = [module.instantiate().exports for _ in range(5000)]
        guarded = [exports.memory._native.guarded for exports in many]
        assert not guarded[-1] and sum(guarded) in (0, 4096)
        for exports in (many[0], many[-1]):
            exec(PROBE)
        del many, exports
        exports = module.instantiate().exports
        exec(PROBE)
        assert exports.memory._native.guarded == any(guarded)
    """)
    assert done.returncode == 0, done.stderr
