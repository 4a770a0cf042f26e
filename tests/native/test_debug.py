"""What debuggers and profilers see: line tables that point at the Python source, symbols in gdb, perf's map."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from greenbeat.native import build, i64, inline, native, perfmap, ptr
from greenbeat.native.build import compile_text
from greenbeat.native.targets import host_machine
from greenbeat.native.unit import Unit


@inline
def bump(place, amount):
    place[0] += amount


@native(noinline=True)
def internal(place: ptr[i64]) -> i64:
    bump(place, 3)
    return place[0]


@native(cold=True)
def rare(place: ptr[i64]) -> i64:
    return place[0] * 7


@native
def outer(place: ptr[i64]) -> i64:
    if place is None:
        return rare(place)
    return internal(place) + 1


def compiled(**options: Any) -> bytes:
    root: Any = outer
    root.shared = True
    return compile_text(Unit("debug", [root], **options).text(), host_machine())


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.strip() == text)


@pytest.mark.skipif(not shutil.which("readelf"), reason="needs readelf")
def test_line_tables_name_the_python_source(tmp_path: Path) -> None:
    (tmp_path / "debug.o").write_bytes(compiled(debug=True))
    command = ["readelf", "--debug-dump=decodedline", "--debug-dump=info", "--wide", str(tmp_path / "debug.o")]
    dump = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = {int(n) for n in re.findall(rf"{Path(__file__).name}\s+(\d+)", dump)}
    for text in ("place[0] += amount", "return place[0]", "return internal(place) + 1", "return place[0] * 7"):
        assert line_of(text) in lines, text
    assert "DW_TAG_inlined_subroutine" in dump
    assert re.search(rf"DW_AT_call_line\s*: (\(\w+\) )?{line_of('bump(place, 3)')}\b", dump)


def test_without_debug_there_is_no_debug_information() -> None:
    assert b".debug_line" not in compiled()
    assert b".debug_line" in compiled(debug=True)


CRASH = """
import sys
from greenbeat.native import build, i64, inline, native, ptr

@inline
def poke(place, value):
    place[0] = value

@native
def crash(place: ptr[i64], value: i64) -> i64:
    poke(place, value)
    return value

build([crash]).function(crash)(16, 2)
"""


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
def test_gdb_shows_the_line(tmp_path: Path) -> None:
    script = tmp_path / "crash.py"
    script.write_text(CRASH)
    environment = {**os.environ, "GREENBEAT_DEBUG": "1"}
    command = ["gdb", "-batch", "-nx", "-ex", "run", "-ex", "bt 1", "--args", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    if "ptrace" in done.stdout + done.stderr:
        pytest.skip("this machine lets nobody debug")
    assert "SIGSEGV" in done.stdout
    assert re.search(rf"crash \(\) at {re.escape(str(script))}:(7|11)", done.stdout)


PERF = """
import ctypes, os
from greenbeat.native import perfmap
import {module} as m
library = m.build([m.outer, m.rare, m.internal])
print(os.getpid(), *[library.addresses[f.symbol] for f in (m.outer, m.rare, m.internal)])
"""


def test_perf_map(tmp_path: Path) -> None:
    environment = {**os.environ, "GREENBEAT_PERF": "1"}
    command = [sys.executable, "-c", PERF.format(module="test_debug")]
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    process, *addresses = map(int, done.stdout.split())
    path = Path(f"/tmp/perf-{process}.map")
    entries = [line.split(" ", 2) for line in path.read_text().splitlines()]
    path.unlink()
    found = {name.rpartition(".")[2]: (int(start, 16), int(size, 16)) for start, size, name in entries}
    assert [found[name][0] for name in ("outer", "rare", "internal")] == addresses
    assert all(size > 0 for _, size in found.values())


def test_internal_functions_are_located_by_the_global_ones() -> None:
    data = compiled()
    sections = perfmap.executable_sections(data)
    functions = {f.name.rpartition(".")[2]: f for s in sections for f in s.functions}
    assert functions["internal"].is_local
    assert not functions["outer"].is_local
    library = build([outer])
    root: Any = outer
    located = {name.rpartition(".")[2]: start for start, _, name in perfmap.function_addresses(data, library.addresses)}
    assert located["outer"] == library.addresses[root.symbol]
    assert located["internal"] != located["rare"]
    assert perfmap.function_addresses(data, {}) == []
    assert perfmap.executable_sections(b"MZ") == []
