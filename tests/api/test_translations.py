"""Translations that are kept between processes: what is saved, what is taken, and what is not believed."""

import contextlib
import errno
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.api import bridge, content, translations
from greenbeat.api.content import Content
from greenbeat.engine import engine
from greenbeat.wasm.text import assemble
from tests.support import MODES, PLENTY, SLICE, Mode, guard_pages

TEXT = """
(module
  (type $unary (func (param i32) (result i32)))
  (type $pair (func (param i32 i64) (result i64)))
  (import "host" "twice" (func $twice (param i32) (result i32)))
  (tag $odd (param i32))
  (memory (export "memory") 1)
  (global $calls (mut i32) (i32.const 0))
  (table $functions (export "table") 4 funcref)
  (elem (table $functions) (i32.const 0) func $square $fib $widen $add)
  (elem declare func $square $fib)
  (func $square (param i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.mul (local.get 0) (local.get 0)))
  (func $fib (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add
        (call $fib (i32.sub (local.get 0) (i32.const 1)))
        (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func $widen (param i32 i64) (result i64) (i64.add (i64.extend_i32_s (local.get 0)) (local.get 1)))
  (func $add (param f64 f64) (result f64) (f64.add (local.get 0) (local.get 1)))
  (func (export "through_table") (param i32 i32) (result i32)
    (call_indirect $functions (type $unary) (local.get 1) (local.get 0)))
  (func (export "pair_through_table") (param i32 i32 i64) (result i64)
    (return_call_indirect $functions (type $pair) (local.get 1) (local.get 2) (local.get 0)))
  (func (export "through_reference") (param i32) (result i32)
    (call_ref $unary (local.get 0) (ref.func $square)))
  (func (export "tail_through_reference") (param i32) (result i32)
    (return_call_ref $unary (local.get 0) (ref.func $fib)))
  (func $checked (param i32) (result i32)
    (if (i32.and (local.get 0) (i32.const 1)) (then (throw $odd (local.get 0))))
    (local.get 0))
  (func (export "catching") (param i32) (result i32)
    (block $caught (result i32)
      (try_table (result i32) (catch $odd $caught)
        (call $twice (call $checked (local.get 0))))
      (return))
    (i32.mul (i32.const -1)))
  (func (export "memory_sum") (param i32) (result i32) (local $sum i32)
    (i32.store (local.get 0) (i32.const 7))
    (i32.store offset=4 (local.get 0) (i32.const 35))
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get 0))))
      (local.set 0 (i32.add (local.get 0) (i32.const 4)))
      (br_if $again (i32.load (local.get 0))))
    (local.get $sum))
  (func (export "chosen") (param i32) (result i32)
    (block $two (block $one (block $zero
      (br_table $zero $one $two (local.get 0)))
      (return (i32.const 100)))
      (return (i32.const 101)))
    (i32.const 102))
  (func (export "calls") (result i32) (global.get $calls))
  (func (export "divided") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
  (func (export "never_called") (param i32) (result i32)
    (call $square (i32.add (local.get 0) (i32.const 1)))))
"""
IMPORTS = {"host": {"twice": lambda value: value * 2}}
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("through_table", (0, 9)),
    ("through_table", (1, 10)),
    ("through_table", (2, 1)),
    ("through_table", (9, 1)),
    ("pair_through_table", (2, -3, 10)),
    ("pair_through_table", (0, 1, 1)),
    ("through_reference", (12,)),
    ("tail_through_reference", (11,)),
    ("catching", (4,)),
    ("catching", (5,)),
    ("memory_sum", (1024,)),
    ("memory_sum", (70000,)),
    ("chosen", (0,)),
    ("chosen", (1,)),
    ("chosen", (7,)),
    ("divided", (7, 2)),
    ("divided", (7, 0)),
    ("calls", ()),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where translations are kept, of small modules too."""
    monkeypatch.setenv("GREENBEAT_CACHE", str(tmp_path))
    monkeypatch.delenv("GREENBEAT_MODULE_CACHE", raising=False)
    monkeypatch.setattr(content, "LEAST_KEPT", 0)
    return tmp_path / "modules"


def load(binary: bytes) -> gb.Module:
    return gb.Module(binary, cache=True)


def counters(module: gb.Module) -> tuple[int, int, int]:
    """How many bodies were validated, functions translated, and translations taken from before."""
    native = bridge.at(bridge.layout.Module, bridge.address_of(module))
    return native.validated, native.translated, native.restored


def outcomes(module: gb.Module, mode: Mode = MODES[0]) -> list[object]:
    """What becomes of all calls, with the offsets of the instructions that trapped."""
    found: list[object] = []
    with guard_pages(mode.guarded):
        instance = module.instantiate(IMPORTS, limits=gb.Limits(fuel=PLENTY if mode.metered else None))
    for name, arguments in CALLS:
        function = instance.exports[name]
        try:
            if mode.sliced:
                call = function.start(*arguments)
                while not call.resume(fuel=SLICE):
                    pass
                found.append(call.result)
            else:
                found.append(function(*arguments))
        except gb.Trap as trap:
            found.append((trap.kind, trap.backtrace))
    if mode.metered:
        found.append(instance.fuel)
    return found


def saved(binary: bytes, mode: Mode = MODES[0]) -> list[object]:
    """The outcomes of a first process, which leaves its translations."""
    module = load(binary)
    found = outcomes(module, mode)
    module._save_translations()
    return found


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture(scope="module")
def binary() -> bytes:
    return assemble(TEXT)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_kept_translations_do_the_same(folder: Path, binary: bytes, mode: Mode) -> None:
    plain = outcomes(gb.Module(binary), mode)
    assert saved(binary, mode) == plain
    again = load(binary)
    assert outcomes(again, mode) == plain
    validated, translated, restored = counters(again)
    assert (validated, translated) == (0, 0)
    assert restored > 10


def test_variants_are_kept_side_by_side(folder: Path, binary: bytes) -> None:
    module = load(binary)
    first = [outcomes(module, mode) for mode in MODES]
    module._save_translations()
    again = load(binary)
    assert [outcomes(again, mode) for mode in MODES] == first
    assert counters(again)[:2] == (0, 0)
    assert counters(again)[2] == counters(module)[1]


def test_what_was_not_called_is_validated_and_translated_when_it_is(folder: Path, binary: bytes) -> None:
    saved(binary)
    again = load(binary)
    assert again.instantiate(IMPORTS).exports.never_called(4) == 25
    assert counters(again) == (1, 1, 1)


def test_types_are_shared_between_modules(folder: Path, binary: bytes) -> None:
    user = assemble("""
        (module
          (type (func (param i64)))
          (type $unary (func (param i32) (result i32)))
          (import "other" "table" (table 4 funcref))
          (func (export "call") (param i32 i32) (result i32)
            (call_indirect (type $unary) (local.get 1) (local.get 0))))""")
    for expected in ((True, True), (False, False)):
        first, second = load(binary), load(user)
        provider = first.instantiate(IMPORTS)
        program = second.instantiate({"other": provider})
        assert program.exports.call(0, 9) == 81
        assert program.exports.call(1, 10) == 55
        with pytest.raises(gb.Trap, match="indirect call type mismatch"):
            program.exports.call(3, 1)
        assert (counters(first)[1] > 0, counters(second)[1] > 0) == expected
        first._save_translations()
        second._save_translations()


PROGRAM = """
import sys
import greenbeat as gb
from greenbeat.api import bridge

module = gb.Module.from_file(sys.argv[1])
print(module.instantiate().exports.fib(12))
native = bridge.at(bridge.layout.Module, bridge.address_of(module))
print(native.validated, native.translated, native.restored)
"""
FIB = """
(module
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add
        (call $fib (i32.sub (local.get 0) (i32.const 1)))
        (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func (export "other")))
"""


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A module of the size from which on translations are kept, in a file."""
    path = tmp_path / "large.wasm"
    path.write_bytes(padded(assemble(FIB)))
    return path


def padded(binary: bytes, name: bytes = b"padding", size: int = 1 << 18) -> bytes:
    """The module with one more custom section."""
    contents = bytes([len(name)]) + name + bytes(range(256)) * (size // 256)
    length = b""
    rest = len(contents)
    while rest >= 0x80:
        length += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return binary + b"\0" + length + bytes([rest]) + contents


def environment(cache: Path, **more: str) -> dict[str, str]:
    packages = os.pathsep.join([str(Path(gb.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": packages, "GREENBEAT_CACHE": str(cache), **more}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache directory that has the engine already, so that processes need not build it."""
    from greenbeat.native.cache import user_directory

    engines, made = user_directory(), tmp_path / "cache"
    made.mkdir()
    for path in engines.glob(f"{engine.key}.*") if engines is not None else ():
        with contextlib.suppress(OSError):
            os.link(path, made / path.name)
    return made


def start(large: Path, cache: Path, **more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM, str(large)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(cache, **more))


def told(process: "subprocess.Popen[str]") -> list[str]:
    output, _ = process.communicate()
    assert process.returncode == 0
    return output.split("\n")[:2]


def test_a_second_process_neither_validates_nor_translates(large: Path, cache: Path) -> None:
    assert told(start(large, cache)) == ["144", "2 1 0"]
    assert told(start(large, cache)) == ["144", "0 0 1"]
    assert told(start(large, cache, GREENBEAT_MODULE_CACHE="0")) == ["144", "2 1 0"]
    [file] = files(cache / "modules")
    assert file.stat().st_mode & 0o777 == 0o600
    assert (cache / "modules").stat().st_mode & 0o777 == 0o700


def test_processes_at_once(large: Path, cache: Path) -> None:
    processes = [start(large, cache) for _ in range(4)]
    assert [told(process)[0] for process in processes] == ["144"] * 4
    assert len(files(cache / "modules")) == 1
    assert told(start(large, cache)) == ["144", "0 0 1"]


def test_the_command_line_keeps_translations(large: Path, cache: Path) -> None:
    command = [sys.executable, "-m", "greenbeat", "run", str(large), "--invoke", "fib", "20"]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=environment(cache), check=True)
        assert done.stdout == "6765\n"
        assert len(files(cache / "modules")) == 1
    assert told(start(large, cache)) == ["144", "0 0 1"]


def test_damaged_files(folder: Path, binary: bytes) -> None:
    """Whatever bit is wrong, it is found out, and what it is in is done anew."""
    expected = saved(binary)
    [file] = files(folder)
    whole = file.read_bytes()
    for position in [*range(0, 64, 3), *range(64, len(whole), 41)]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        file.write_bytes(damaged)
        module = load(binary)
        assert outcomes(module) == expected
        if not position >= 64 + 0:
            assert counters(module)[2] == 0
        module._translations = None


@pytest.mark.parametrize("part", [0.0, 0.02, 0.3, 0.7, 0.999])
def test_files_that_were_cut_short(folder: Path, binary: bytes, part: float) -> None:
    expected = saved(binary)
    [file] = files(folder)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * part)])
    module = load(binary)
    assert outcomes(module) == expected
    assert counters(module)[2] == 0
    module._save_translations()
    assert len(file.read_bytes()) == len(whole)


def test_another_modules_file(folder: Path, binary: bytes) -> None:
    saved(binary)
    [file] = files(folder)
    other = load(assemble(FIB))
    own = other._translations
    assert own is not None
    own._path.write_bytes(file.read_bytes())
    again = load(assemble(FIB))
    assert again.instantiate().exports.fib(10) == 55
    assert counters(again) == (2, 1, 0)


def test_files_that_others_can_write_are_not_believed(folder: Path, binary: bytes) -> None:
    saved(binary)
    [file] = files(folder)
    file.chmod(0o620)
    module = load(binary)
    assert counters(module)[0] > 0
    file.chmod(0o600)
    moved = folder / "elsewhere"
    file.rename(moved)
    file.symlink_to(moved)
    assert counters(load(binary))[0] > 0


def test_a_changed_module_has_a_file_of_its_own(folder: Path, binary: bytes) -> None:
    saved(binary)
    changed = assemble(TEXT.replace("i32.const 100", "i32.const 99"))
    assert 99 in saved(changed)
    assert len(files(folder)) == 2


def test_data_and_custom_sections_make_no_other_module(folder: Path) -> None:
    """What neither validation nor translation looks at."""
    saved_once = False
    for text in ("abc", "xyz"):
        for size in (256, 512):
            module = load(padded(assemble(f'{FIB.rstrip()[:-1]} (memory 1) (data "{text}"))'), size=size))
            assert module.instantiate().exports.fib(10) == 55
            assert (counters(module)[1] == 0) == saved_once
            module._save_translations()
            saved_once = True
    assert len(files(folder)) == 1


def test_a_changed_engine_takes_nothing(folder: Path, binary: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(binary)
    monkeypatch.setitem(vars(engine), "key", "another")
    assert counters(load(binary))[0] > 0


def test_a_directory_that_cannot_be_made(
    tmp_path: Path, folder: Path, binary: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("GREENBEAT_CACHE", str(tmp_path / "file"))
    assert saved(binary) == saved(binary)


def test_a_full_disk(folder: Path, binary: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        expected = saved(binary)
    assert files(folder) == []
    assert saved(binary) == expected
    assert len(files(folder)) == 1


def test_two_modules_at_once(folder: Path, binary: bytes) -> None:
    """The second to save finds that the first was there."""
    first, second = load(binary), load(binary)
    assert outcomes(first) == outcomes(second)
    first._save_translations()
    [file] = files(folder)
    before = file.stat().st_ino
    second._save_translations()
    assert file.stat().st_ino == before


def test_later_processes_add_what_is_new(folder: Path, binary: bytes) -> None:
    module = load(binary)
    assert module.instantiate(IMPORTS).exports.chosen(1) == 101
    module._save_translations()
    expected = saved(binary)
    last = load(binary)
    assert outcomes(last) == expected
    assert counters(last)[:2] == (0, 0)


def test_little_that_is_new_is_not_written(folder: Path, binary: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(binary)
    [file] = files(folder)
    before = file.stat().st_ino
    monkeypatch.setattr(translations, "_WORTH", 1)
    module = load(binary)
    assert module.instantiate(IMPORTS).exports.never_called(4) == 25
    module._save_translations()
    assert file.stat().st_ino == before


def test_files_that_were_not_used_for_longest_go(folder: Path, binary: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(binary)
    [file] = files(folder)
    os.utime(file, (1, 1))
    stale = folder / "left.tmp"
    stale.write_bytes(b"half")
    os.utime(stale, (1, 1))
    monkeypatch.setattr(translations, "LARGEST_TOTAL", file.stat().st_size)
    module = load(assemble(FIB))
    module.instantiate().exports.fib(3)
    module._save_translations()
    assert file not in files(folder)
    assert len(files(folder)) == 1


def save_by_closing(binary: bytes) -> None:
    with load(binary).instantiate(IMPORTS) as instance:
        instance.exports.chosen(0)


def save_by_forgetting(binary: bytes) -> None:
    load(binary).instantiate(IMPORTS).exports.chosen(0)
    gc.collect()


def save_by_forgetting_a_function(binary: bytes) -> None:
    chosen = load(binary).instantiate(IMPORTS).exports.chosen
    gc.collect()
    chosen(0)
    del chosen
    gc.collect()


@pytest.mark.parametrize("save", [save_by_closing, save_by_forgetting, save_by_forgetting_a_function])
def test_when_translations_are_saved(folder: Path, binary: bytes, save: Callable[[bytes], None]) -> None:
    save(binary)
    assert len(files(folder)) == 1


@contextlib.contextmanager
def nothing_kept(folder: Path) -> Iterator[None]:
    yield
    gc.collect()
    assert files(folder) == []


def test_who_keeps_translations(folder: Path, large: Path, binary: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with nothing_kept(folder):
        outcomes(gb.Module(binary))
        gb.Module.from_file(large, cache=False).instantiate().exports.fib(3)
    with monkeypatch.context() as patch, nothing_kept(folder):
        patch.setenv("GREENBEAT_MODULE_CACHE", "0")
        gb.Module.from_file(large).instantiate().exports.fib(3)
    with monkeypatch.context() as patch, nothing_kept(folder):
        patch.setattr(content, "LEAST_KEPT", large.stat().st_size + 1)
        gb.Module.from_file(large).instantiate().exports.fib(3)
    save_by_forgetting(binary)
    assert len(files(folder)) == 1


@pytest.fixture
def debugged(tmp_path: Path) -> Path:
    """A module that is read by a thread, most of it a custom section."""
    path = tmp_path / "debugged.wasm"
    path.write_bytes(padded(padded(assemble(FIB), b"small", 256), b".debug_info", 1 << 21))
    return path


def test_large_custom_sections_are_read_when_they_are_asked_for(debugged: Path) -> None:
    module = gb.Module.from_file(debugged)
    assert module.instantiate().exports.fib(10) == 55
    whole = gb.Module(debugged.read_bytes())
    for name in ("small", ".debug_info", "other"):
        assert module.custom_sections(name) == whole.custom_sections(name)
    assert module.custom_sections(".debug_info") == [bytes(range(256)) * (1 << 13)]


def test_a_file_that_was_changed_since(debugged: Path) -> None:
    module = gb.Module.from_file(debugged)
    assert module.custom_sections("nothing") == []
    module = gb.Module.from_file(debugged)
    module.exports  # noqa: B018 - it has been read
    debugged.write_bytes(debugged.read_bytes() + b"\0\1\0")
    with pytest.raises(OSError, match="has been changed since it was read"):
        module.custom_sections(".debug_info")
    assert module.instantiate().exports.fib(10) == 55


@pytest.mark.parametrize("binary", [b"", b"\0asm", b"\0asm\1\0\0\0\1", b"\0asm\1\0\0\0\1\xff\xff\xff\xff\xff", b"text"])
def test_digests_of_what_is_no_module(binary: bytes) -> None:
    assert len(content.digest_of(binary)) == 32


def test_a_module_with_very_many_sections_is_hashed_as_a_whole() -> None:
    binary = b"\0asm\1\0\0\0" + b"\0\1\0" * 2000
    assert content.digest_of(binary) != content.digest_of(binary[:-3])
    assert content.digest_of(binary[: 8 + 3 * 10]) == content.digest_of(binary[: 8 + 3 * 20])


def test_an_error_in_a_file_that_is_read_ahead(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        gb.Module.from_file(tmp_path / "nowhere.wasm")
    path = tmp_path / "broken.wasm"
    path.write_bytes(b"\0asm\1\0\0\0" + b"\1\2\3" * (1 << 20))
    with pytest.raises(gb.CompileError):
        gb.Module.from_file(path)
    assert Content(b"abc", kept=False).digest == b""
