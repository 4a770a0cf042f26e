"""`greenbeat run`: what it calls, what it prints, and how it ends."""

import subprocess
from pathlib import Path

import pytest

from .command import Command, process


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["div", "7", "-2"], "-3\n"),
        (["div", "-0x10", "0x2"], "-8\n"),
        (["div", "4_000_000_000", "1"], "-294967296\n"),
        (["floats", "1.5", "-inf"], "1.6\n-inf\n"),
        (["floats", "nan", "0x1.8p3"], "nan\n24.0\n"),
        (["floats", "-1e-3", "Infinity"], "0.099\ninf\n"),
        (["same", "0x8000000000000000"], "-9223372036854775808\n"),
        (["same", "-9223372036854775808"], "-9223372036854775808\n"),
        (["give"], "null\n"),
    ],
)
def test_results_one_a_line(greenbeat: Command, program: Path, words: list[str], printed: str) -> None:
    outcome = greenbeat("run", program, "--invoke", *words)
    assert (outcome.status, outcome.out, outcome.err) == (0, printed, "")


def test_options_may_stand_anywhere(greenbeat: Command, program: Path) -> None:
    assert greenbeat("run", "--fuel", "99", program, "7", "--invoke", "div", "-2", "--timeout", "5").out == "-3\n"
    assert greenbeat("run", program, "--invoke", "div", "--memory=1MiB", "--", "7", "-2").out == "-3\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["div", "1"], "div takes 2 arguments (i32, i32), not 1"),
        (["same"], "same takes 1 argument (i64), not 0"),
        (["spin", "1"], "spin takes 0 arguments, not 1"),
        (["div", "x", "1"], "argument 1 of div: 'x' is no i32"),
        (["div", "1", "5000000000"], "argument 2 of div: '5000000000' is no i32: i32 constant out of range"),
        (["floats", "1", "one"], "argument 2 of floats: 'one' is no f64"),
        (["take", "1"], "argument 1 of take: a value of type externref cannot be written on a command line"),
        (["dvi", "1", "1"], "the module exports no function dvi: did you mean div?"),
        (["other"], "the module exports no function other: it exports div, floats, same, spin, deep, take, give"),
        (["memory"], "the export memory is no function but (memory 2)"),
        (["div", "1", "1", "--memory", "much"], "'much' is no size; write it like 65536, '64MiB' or '1GB'"),
        (["div", "1", "1", "--fuel", "-3"], "argument --fuel: expected a whole number such as 1_000_000, not '-3'"),
        (["div", "1", "1", "--timeout", "soon"], "expected seconds above 0, such as 0.5, not 'soon'"),
        (["div", "1", "1", "--fule", "3"], "unrecognized arguments: --fule"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(
    greenbeat: Command, program: Path, words: list[str], said: str
) -> None:
    outcome = greenbeat("run", program, "--invoke", *words)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith("greenbeat: ")
    assert said in outcome.err


def test_a_function_must_be_chosen(greenbeat: Command, program: Path) -> None:
    outcome = greenbeat("run", program)
    assert outcome.status == 2
    assert "choose a function with --invoke: div, floats" in outcome.err


def test_the_only_function_and_start(greenbeat: Command, tmp_path: Path) -> None:
    path = tmp_path / "one.wat"
    path.write_text('(module (func (export "answer") (result i32) (i32.const 42)))')
    assert greenbeat("run", path).out == "42\n"
    path.write_text('(module (func (export "other")) (func (export "_start") (result i32) (i32.const 7)))')
    assert greenbeat("run", path).out == "7\n"
    path.write_text("(module)")
    assert greenbeat("run", path).status == 126


def test_a_trap_shows_its_kind_and_the_guests_frames(greenbeat: Command, program: Path) -> None:
    outcome = greenbeat("run", program, "--invoke", "div", "7", "0")
    first, frame = outcome.err.splitlines()
    assert outcome.status == 1
    assert first == f"greenbeat: {program}: trap: integer divide by zero"
    assert frame.startswith("  in div")


def test_of_a_deep_stack_the_middle_is_left_out(greenbeat: Command, program: Path) -> None:
    outcome = greenbeat("run", program, "--invoke", "deep")
    assert outcome.status == 1
    assert "stack exhausted" in outcome.err
    assert " more ..." in outcome.err
    assert len(outcome.err.splitlines()) < 20


def test_limits(greenbeat: Command, program: Path) -> None:
    out_of_fuel = greenbeat("run", program, "--invoke", "spin", "--fuel", "1000")
    assert (out_of_fuel.status, "out of fuel (--fuel 1000)" in out_of_fuel.err) == (1, True)
    out_of_time = greenbeat("run", program, "--invoke", "spin", "--timeout", "0.05")
    assert (out_of_time.status, "out of time (--timeout 0.05)" in out_of_time.err) == (124, True)
    too_large = greenbeat("run", program, "--invoke", "div", "1", "1", "--memory", "64KiB")
    assert (too_large.status, "the limit is 65536 bytes" in too_large.err) == (1, True)


def test_a_start_function_that_traps(greenbeat: Command, tmp_path: Path) -> None:
    path = tmp_path / "start.wat"
    path.write_text('(module (func $begin (unreachable)) (start $begin) (func (export "f")))')
    outcome = greenbeat("run", path)
    assert (outcome.status, "trap: unreachable" in outcome.err) == (1, True)


def test_imports(greenbeat: Command, tmp_path: Path) -> None:
    path = tmp_path / "wants.wat"
    path.write_text('(module (import "env" "log" (func (param i32))) (func (export "f")))')
    outcome = greenbeat("run", path)
    assert outcome.status == 126
    assert 'the module needs (import "env" "log" (func (param i32)))' in outcome.err


WASI_PROGRAM = r"""
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $variables (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $directory (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "hello\n")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (drop (call $sizes (i32.const 32) (i32.const 36)))
    (drop (call $variables (i32.const 40) (i32.const 44)))
    (call $exit (i32.add (i32.load (i32.const 32)) (i32.add
      (i32.mul (i32.const 10) (i32.load (i32.const 40)))
      (i32.mul (i32.const 100) (i32.eqz (call $directory (i32.const 3) (i32.const 48))))))))
  (func (export "leave") (call $exit (i32.const 3))))
"""


def test_a_wasi_program_gets_what_the_command_line_names(tmp_path: Path) -> None:
    path = tmp_path / "program.wat"
    path.write_text(WASI_PROGRAM)

    def run(*words: object) -> tuple[int, bytes, bytes]:
        running = process("run", path, *words)
        out, err = running.communicate(timeout=20)
        return running.returncode, out, err

    assert run() == (1, b"hello\n", b"")
    assert run("a", "--", "-b") == (3, b"hello\n", b"")
    assert run("--env", "A=1", "--env", "B=", "--dir", tmp_path) == (121, b"hello\n", b"")
    assert run("--invoke", "leave") == (3, b"", b"")


READING_PROGRAM = r"""
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "path_create_directory" (func $make (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\40\00\00\00\40\00\00\00")
  (data (i32.const 16) "new")
  (func (export "_start")
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $exit (call $make (i32.const 3) (i32.const 16) (i32.const 3)))))
"""


def test_standard_input_and_directories_to_be_read_only(tmp_path: Path) -> None:
    path, data = tmp_path / "program.wat", tmp_path / "data"
    path.write_text(READING_PROGRAM)
    data.write_bytes(b"from a file")

    def run(*words: object) -> tuple[int, bytes, bytes]:
        running = process("run", path, *words, stdin=subprocess.PIPE)
        out, err = running.communicate(b"from a pipe", timeout=20)
        return running.returncode, out, err

    assert run() == (8, b"from a pipe", b"")
    assert run("--stdin", data, "--dir", f"{tmp_path}::/x:ro") == (69, b"from a file", b"")
    assert not (tmp_path / "new").exists()
    assert run("--dir", f"{tmp_path}") == (0, b"from a pipe", b"")
    assert (tmp_path / "new").is_dir()


def test_wrong_options_of_wasi(greenbeat: Command, program: Path) -> None:
    assert "argument --dir: /missing is no directory" in greenbeat("run", program, "--dir", "/missing::/").err
    assert "argument --stdin: /missing cannot be read" in greenbeat("run", program, "--stdin", "/missing").err
    assert "argument --env: expected NAME=VALUE, not 'A'" in greenbeat("run", program, "--env", "A").err


def test_files_that_cannot_be_run(greenbeat: Command, tmp_path: Path) -> None:
    missing = greenbeat("run", tmp_path / "missing.wasm")
    assert (missing.status, missing.err) == (127, f"greenbeat: {tmp_path}/missing.wasm: there is no such file\n")
    folder = greenbeat("run", tmp_path)
    assert (folder.status, "it cannot be read" in folder.err) == (126, True)
    binary = tmp_path / "program"
    binary.write_bytes(b"\x7fELF\0\0\0\0")
    assert "it begins with 7f 45 4c 46, not 00 61 73 6d" in greenbeat("run", binary).err
    broken = tmp_path / "broken.wasm"
    broken.write_bytes(b"\0asm\1\0\0\0\1\5\1")
    outcome = greenbeat("run", broken)
    assert (outcome.status, outcome.err.count("\n"), "offset 0x" in outcome.err) == (126, 1, True)


def test_text_with_a_mistake_is_shown(greenbeat: Command, tmp_path: Path) -> None:
    path = tmp_path / "mistake.wat"
    path.write_text("(module\n\t(func (i32.foo)))")
    outcome = greenbeat("run", path)
    first, line, caret = outcome.err.splitlines()
    assert outcome.status == 126
    assert first == f"greenbeat: {path}:2:9: unknown operator `i32.foo`: expected an instruction"
    assert line.endswith("|  (func (i32.foo)))")
    assert line[caret.index("^") :] == "i32.foo)))"


def test_uncaught_exceptions(greenbeat: Command, tmp_path: Path) -> None:
    path = tmp_path / "throw.wat"
    path.write_text('(module (tag $t (param i32 i64)) (func (export "f") (throw $t (i32.const 5) (i64.const -1))))')
    outcome = greenbeat("run", path)
    assert outcome.status == 1
    assert outcome.err == f"greenbeat: {path}: uncaught exception(5, -1)\n  in f at 0x2c\n"


def test_names_cannot_command_the_terminal(greenbeat: Command, tmp_path: Path) -> None:
    path = tmp_path / "hostile.wat"
    path.write_text(r'(module (func (export "\1b[31m\u{202e}red") unreachable) (func (export "b")))')
    for outcome in (
        greenbeat("run", path),
        greenbeat("run", path, "--invoke", "\x1b[31m\u202ered"),
        greenbeat("run", path, "--invoke", "\x1b]0;title\x07"),
        greenbeat("run", "\x1b[31m"),
        greenbeat("inspect", path),
        greenbeat("inspect", path, "--function", "0"),
        greenbeat("inspect", path, "--cells", "0"),
        greenbeat("inspect", path, "--function", "\x1b[31m"),
    ):
        assert not {"\x1b", "\u202e", "\x07"} & set(outcome.out + outcome.err)


def test_long_names_are_cut(greenbeat: Command, tmp_path: Path) -> None:
    path = tmp_path / "long.wat"
    path.write_text(f'(module (func (export "{"x" * 100_000}")) (func (export "f")))')
    outcome = greenbeat("run", path, "--invoke", "g")
    assert outcome.status == 2
    assert f"the module exports no function g: it exports {'x' * 100}…, f" in outcome.err
    assert greenbeat("run", path, "--invoke", "x" * 99_999).status == 2
