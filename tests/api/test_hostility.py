"""Arguments that are wrong, that lie about themselves, or that run code which gets in the way."""

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from tests.api.conftest import Make

SOURCE = str(Path(gb.__file__).parents[1])
GUEST = """(module
  (import "env" "host" (func $host (param i32) (result i32)))
  (memory (export "memory") 1 10) (table (export "table") 4 20 externref)
  (global (export "first") (mut externref) (ref.null extern))
  (global (export "second") (mut externref) (ref.null extern))
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "long") (param i64) (result i64) (local.get 0))
  (func (export "real") (param f64) (result f64) (local.get 0))
  (func (export "ask") (param i32) (result i32) (call $host (local.get 0)))
  (func (export "count") (param $n i64) (result i64)
    (loop $again
      (local.set $n (i64.sub (local.get $n) (i64.const 1)))
      (br_if $again (i64.ne (local.get $n) (i64.const 0))))
    (local.get $n)))"""
HUGE = 10**5000


class Index:
    """An integer that runs code when it is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __index__(self) -> Any:
        return self.answer()


class Liar(int):
    """An integer that is never out of range."""

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return True

    def __add__(self, other: object) -> "Liar":
        return self


class Unspeakable:
    """An object without a repr."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def host(number: int) -> int:
    return number


@pytest.fixture
def exports(make: Make) -> Any:
    return make(GUEST, {"env": {"host": host}}).exports


def test_messages_about_unspeakable_values(exports: Any) -> None:
    for call in (exports.add, exports.long, exports.real):
        with pytest.raises(ValueError, match="an int of 16610 bits is out of range"):
            call(*[HUGE] * (2 if call is exports.add else 1))
    with pytest.raises(TypeError, match="must be an int .i32., not Unspeakable <Unspeakable without a repr>"):
        exports.add(Unspeakable(), 1)
    with pytest.raises(IndexError, match="1 bytes from an int of 16610 bits"):
        exports.memory.read(HUGE, 1)
    with pytest.raises(IndexError, match="1 bytes at an int of 16610 bits"):
        exports.memory.write(HUGE, b"1")
    with pytest.raises(IndexError, match="element an int of 16610 bits of a table of 4"):
        exports.table[HUGE]
    for growing in (exports.memory, exports.table):
        with pytest.raises(gb.Exhausted, match="cannot grow by an int of 16610 bits"):
            growing.grow(HUGE)
    with pytest.raises(gb.LinkError, match="found Unspeakable <Unspeakable without a repr>"):
        gb.Module.from_wat(GUEST).instantiate({"env": {"host": Unspeakable()}})


@pytest.mark.parametrize("wrong", [1.0, "1", None, slice(0, 2), 1j])
def test_integers_are_integers(make: Make, exports: Any, wrong: Any) -> None:
    instance = make(GUEST, {"env": {"host": host}})
    asks: list[Callable[[], Any]] = [
        lambda: exports.memory.grow(wrong),
        lambda: exports.table[wrong],
        lambda: exports.table.grow(wrong),
        lambda: gb.Memory(wrong),
        lambda: gb.Table("externref", wrong),
        lambda: exports.memory.read(wrong, 1),
        lambda: exports.memory.read(0, wrong),
        lambda: exports.memory.write(wrong, b""),
        lambda: gb.Limits(depth=wrong),
        lambda: gb.Limits(table=wrong),
    ]
    if wrong is not None:
        asks += [
            lambda: exports.count.start(5).resume(wrong),
            lambda: gb.Limits(fuel=wrong),
            lambda: setattr(instance, "fuel", wrong),
        ]
    for ask in asks:
        with pytest.raises(TypeError, match="must be an int, not"):
            ask()
    assert instance.fuel is None


def test_what_stands_for_an_integer_is_one(exports: Any) -> None:
    assert exports.memory.grow(Index(lambda: 1)) == 1
    assert exports.table[Index(lambda: -1)] is None
    assert exports.count.start(5).resume(Index(lambda: 1000))
    assert gb.Limits(fuel=Index(lambda: 5)).fuel == 5  # type: ignore[arg-type]


def test_liars(exports: Any) -> None:
    with pytest.raises(IndexError):
        exports.table[Liar(1 << 40)]
    with pytest.raises(IndexError):
        exports.table[Liar(1 << 40)] = 1
    with pytest.raises(ValueError, match="cannot shrink"):
        exports.memory.grow(Liar(-1))

    class Longer(bytes):
        def __len__(self) -> int:
            return 1 << 40

    assert gb.Module(Longer(b"\0asm\1\0\0\0")).exports == ()
    value = gb.Global("i32", 1)
    with pytest.raises(AttributeError):
        value.type = gb.Global("externref", None).type  # type: ignore[misc]


def test_exceptions_of_conversions_arrive(exports: Any) -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    answers: list[Callable[[], int]] = [interrupt, lambda: 0]
    once = iter(answers)
    with pytest.raises(KeyboardInterrupt):
        exports.memory.read(Index(lambda: next(once)()), 1)
    asks: list[Callable[[Index], Any]] = [
        lambda i: exports.add(i, 1),
        lambda i: exports.memory.write(i, b""),
        exports.memory.grow,
    ]
    for ask in asks:
        with pytest.raises(KeyboardInterrupt):
            ask(Index(interrupt))


def test_a_call_that_is_resumed_by_its_own_fuel(exports: Any) -> None:
    call = exports.count.start(100)
    with pytest.raises(gb.GreenbeatError, match="cannot be resumed: it is finished"):
        call.resume(Index(lambda: call.resume() and 5))
    assert call.result == 0


def test_calls_are_made_by_start() -> None:
    with pytest.raises(TypeError, match="cannot create"):
        gb.Call()


def test_imports_and_limits_of_the_wrong_kind(exports: Any) -> None:
    module = gb.Module.from_wat(GUEST)
    wrong: Any
    for wrong in ([], [1], 5, "env", b"env"):
        with pytest.raises(TypeError, match="imports must be a mapping of mappings, not"):
            module.instantiate(wrong)
    for wrong in ({"fuel": 1}, 5):
        with pytest.raises(TypeError, match="limits must be greenbeat.Limits, not"):
            module.instantiate({"env": {"host": host}}, limits=wrong)
        with pytest.raises(TypeError, match="wasi must be a greenbeat.Wasi, not"):
            module.instantiate({"env": {"host": host}}, wasi=wrong)
    with pytest.raises(TypeError, match="params and results are sequences"):
        gb.Function(host, "i32", "i32")


def test_sources_of_the_wrong_kind(tmp_path: Path) -> None:
    wrong: Any
    for wrong in (1, None, [1, 2], 5.0):
        with pytest.raises(TypeError, match="a module is a bytes-like object, not"):
            gb.Module(wrong)
        with pytest.raises(TypeError, match="the text of a module is a str, not"):
            gb.Module.from_wat(wrong)
    path = tmp_path / "bad.wat"
    path.write_bytes(b"(module \xff)")
    for name in (path, bytes(path)):
        with pytest.raises(gb.CompileError, match="1:9: malformed UTF-8"):
            gb.Module.from_file(name)  # type: ignore[arg-type]
    wrong = 0
    with pytest.raises(TypeError, match="expected str, bytes or os.PathLike object, not int"):
        gb.Module.from_file(wrong)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"memory": "9" * 5000}, "5000 digits"),
        ({"memory": "9" * 400 + ".5"}, "402 digits"),
        ({"fuel": HUGE}, "fuel must be from 0 to .* an int of 16610 bits"),
        ({"seconds": HUGE}, "seconds must be above 0 and below 1e9: an int of 16610 bits"),
        ({"seconds": float("nan")}, "above 0"),
        ({"table": 1 << 64}, "from 0 to"),
    ],
)
def test_limits_without_sense(limits: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gb.Limits(**limits)
    with pytest.raises(TypeError, match="seconds must be a float or an int, not str '1'"):
        gb.Limits(seconds="1")  # type: ignore[arg-type]


def test_names_of_guests_in_messages() -> None:
    text = r'(module (import "\1b[2J" "b\00\n" (func)) (func (export "\1b[31mred\u{202e}\n") (param i32)))'
    module = gb.Module.from_wat(text)
    with pytest.raises(gb.LinkError) as missing:
        module.instantiate()
    (red,) = module.instantiate({"\x1b[2J": {"b\0\n": lambda: None}}).exports.values()
    with pytest.raises(TypeError) as count:
        red()
    with pytest.raises(TypeError) as kind:
        red("x")
    for shown in (str(missing.value), str(count.value), str(kind.value), repr(red), red.__doc__):
        assert shown.isprintable()
    assert red.name == "\x1b[31mred\u202e\n"


def test_exports_with_the_names_of_methods(make: Make) -> None:
    exports = make('(module (func (export "items")) (func (export "keys")) (func (export "__eq__")))').exports
    assert exports == exports and exports != {} and exports == {name: exports[name] for name in exports}


def test_fuel_given_while_a_host_function_is_called_directly(make: Make) -> None:
    function = gb.Function(host, ["i32"], ["i32"])
    instance = make(GUEST, {"env": {"host": host}}, fuel=1000)
    instance.exports.add(1, 2)
    instance.fuel = 500_000
    assert function(1) == 1 and instance.fuel == 500_000

    def give(number: int) -> int:
        given.fuel = 500_000
        return int(function(number))

    given = make(GUEST, {"env": {"host": give}}, fuel=1000)
    assert given.exports.ask(3) == 3 and 499_000 < (given.fuel or 0) <= 500_000


def test_a_sweep_inside_a_sweep(exports: Any) -> None:
    class Busy:
        """Its finaliser passes more objects than a sweep waits for."""

        def __del__(self) -> None:
            if not running:
                running.append(True)
                for _ in range(400):
                    seconds.value = object()
                running.clear()

    running: list[bool] = []
    seconds, first = exports["second"], exports.first
    for number in range(400):
        item = [number]
        before = sys.getrefcount(item)
        seconds.value = Busy()
        first.value = item
        after = sys.getrefcount(item)
        assert after == before + 1 and first.value is item


def test_a_table_that_grows_by_an_object_in_two_threads(exports: Any) -> None:
    table = gb.Table("externref", 0)
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            for item in table:
                assert isinstance(item, list)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(3000):
        table.grow(1, [number])
    done.set()
    reader.join()
    assert [item[0] for item in table] == list(range(3000))


@pytest.mark.parametrize("kilobytes", [0, 64, 256])
def test_recursion_ends_before_the_native_stack_does(kilobytes: int) -> None:
    done = child(f"""
        import sys, threading
        sys.setrecursionlimit(10**6)
        instance = gb.Module.from_wat(GUEST).instantiate(
            {{"env": {{"host": lambda number: instance.exports.ask(number)}}}},
            limits=gb.Limits(depth=10_000, stack="64MiB"))
        def run():
            try:
                instance.exports.ask(1)
            except gb.Exhausted as end:
                print(end)
        threading.stack_size({kilobytes} << 10)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert instance.exports.add(1, 2) == 3
    """)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "too many calls between Python and guests are waiting for each other\n"


def test_an_instance_that_another_thread_ran_when_the_process_forked() -> None:
    done = child("""
        import os, threading, time
        entered = threading.Event()
        def host(number):
            entered.set()
            time.sleep(1)
            return number
        instance = gb.Module.from_wat(GUEST).instantiate({"env": {"host": host}})
        threading.Thread(target=instance.exports.ask, args=(1,), daemon=True).start()
        entered.wait()
        child = os.fork()
        if child == 0:
            results = []
            for _ in range(3):
                thread = threading.Thread(target=lambda: results.append(instance.exports.add(2, 40)))
                thread.start()
                thread.join()
            os._exit(results != [42] * 3)
        assert os.waitpid(child, 0)[1] == 0
    """)
    assert (done.returncode, done.stderr) == (0, "")


def child(code: str, *flags: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    program = f"import greenbeat as gb\nGUEST = {GUEST!r}\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, *flags, "-c", program],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
    )


@pytest.mark.parametrize(
    "text",
    [
        f"(module (func (drop (f64.const {'1' * 5000}))))",
        f"(module (func (drop (i32.const {'1' * 5000}))))",
        f"(module (func (call ${'x' * 5000})))",
        f"(module (func ${'x' * 5000}) (func ${'x' * 5000}))",
        f"(module {'z' * 5000})",
    ],
)
def test_long_tokens_are_cut(text: str) -> None:
    with pytest.raises(gb.CompileError) as error:
        gb.Module.from_wat(text)
    assert len(str(error.value)) < 200


def test_backtrace_of_a_huge_function(make: Make) -> None:
    """Offsets are found by translating again: only as often as can be afforded, and always for the innermost frame."""
    text = f"""(module (func $f (export "f") (param i32)
      (if (i32.eqz (local.get 0)) (then unreachable))
      (if (i32.and (local.get 0) (i32.const 1))
        (then (call $f (i32.sub (local.get 0) (i32.const 1))))
        (else (call $f (i32.sub (local.get 0) (i32.const 1)))))
      (br_if 0 (i32.const 1)) {"(drop (i32.const 0))" * 400_000}))"""
    with pytest.raises(gb.Trap) as trap:
        make(text).exports.f(10)
    frames = trap.value.backtrace
    assert len(frames) == 11 and frames[0].offset is not None
    assert [frame.offset for frame in frames[2:]] == [None] * 9


def test_references_that_a_host_function_returns_when_its_group_was_merged(make: Make) -> None:
    """The host function's group becomes part of another, and is let go, while it runs."""
    inner_text = """(module (import "env" "h" (func $h (param i32) (result externref i32)))
      (global (export "kept") (mut externref) (ref.null extern))
      (func (export "f") (param i32) (result i32) (local i32)
        (call $h (local.get 0)) (local.set 1) (global.set 0) (local.get 1)))"""
    outer_text = """(module (import "inner" "f" (func $f (param i32) (result i32)))
      (table (export "table") 4 funcref)
      (func (export "go") (param i32) (result i32) (call $f (local.get 0))))"""
    instances: dict[str, gb.Instance] = {}

    def h(number: int) -> tuple[list[int], int]:
        instances["outer"].exports.table[0] = instances.pop("inner").exports.f
        return [number], number

    for number in range(20):
        function = gb.Function(h, ["i32"], ["externref", "i32"])
        instances["inner"] = make(inner_text, {"env": {"h": function}})
        kept = instances["inner"].exports.kept
        instances["outer"] = make(outer_text, {"inner": {"f": instances["inner"].exports.f}})
        assert instances["outer"].exports.go(number) == number
        assert kept.value == [number]


def test_interpreters_of_their_own_and_hooks() -> None:
    done = child(
        """
        import sys
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        instance = gb.Module.from_wat(GUEST).instantiate({"env": {"host": int}})
        assert instance.exports.ask(3) == 3
        made = interpreters.create()
        interpreters.run_string(made, f"import sys; sys.path = {sys.path}\\nimport greenbeat as gb\\n"
            f"program = gb.Module.from_wat({GUEST!r}).instantiate({{'env': {{'host': int}}}}).exports\\n"
            "assert program.ask(4) == 4 and program.count(10**6) == 0")
        interpreters.destroy(made)
        seen = []
        sys.setprofile(lambda frame, event, argument: seen.append(event))
        sys.settrace(lambda *_: None)
        assert instance.exports.ask(5) == 5 and instance.exports.count(10**6) == 0
        sys.setprofile(None)
    """
    )
    assert (done.returncode, done.stderr) == (0, "")
