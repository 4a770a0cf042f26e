"""An engine of two units: built in child processes, cached, shipped, damaged, built twice at once."""

import ctypes
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from greenbeat.native import NativeError, cache
from greenbeat.native.engine import BuildError, Engine, UnitPlan, owner
from greenbeat.native.targets import Machine

TOY = {
    "__init__.py": "raise RuntimeError('builds do without the front door')\n",
    "state.py": """
from greenbeat.native import i64, native, static, table, u64

hits = static(u64, name="hits")
weights = table(i64, [1, 10, 100])

@native(shared=True)
def hit(weight: i64) -> i64:
    hits[0] += 1
    return weight
""",
    "handlers/__init__.py": "",
    "handlers/arithmetic.py": """
from greenbeat.native import export, function, i64, native, table, u32
from toy.state import hit, hits, weights

@native
def private(x: i64) -> i64:
    return x + hit(weights[1])

@native(shared=True)
def add(x: i64) -> i64:
    return private(x) + hit(weights[0])

@native
def triple(x: i64) -> i64:
    assert x != 13
    return hit(x) * 3

handlers = table(function[[i64], i64], [add, triple], name="handlers")

@export
def hit_count() -> u32:
    return u32(hits[0])
""",
    "main.py": """
from greenbeat.native import copy, export, f64, i32, i64, ptr, u32, u8, void
from toy.handlers.arithmetic import handlers, add, private
from toy.state import hit

@export
def run(which: u32, x: i64) -> i64:
    return handlers[which](x) + add(0) + private(0) + hit(0)

@export
def everything(a: i32, b: f64, c: ptr[u8], d: bool) -> bool:
    c[0] = u8(a) + u8(b)
    return not d

@export
def nothing(p: ptr[void]) -> None:
    pass
""",
    "unrelated.py": "from toy import missing\n",
}
UNITS = [UnitPlan("handlers", ("toy.handlers",)), UnitPlan("core")]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GREENBEAT_CACHE", str(tmp_path / "cache"))
    for name in ("GREENBEAT_DEBUG", "GREENBEAT_CHECKED"):
        monkeypatch.delenv(name, raising=False)
    for name, text in TOY.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "toy"


def toy_engine(toy: Path, **options: Any) -> Engine:
    import greenbeat

    packages = {"toy": toy, "greenbeat": Path(greenbeat.__file__).parent}
    return Engine(["toy.main"], UNITS, packages=packages, **options)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def never(self: Engine) -> cache.Compiled:
    raise AssertionError("nothing has to be built here")


def test_two_units_make_one_engine(toy: Path) -> None:
    engine = toy_engine(toy)
    run = engine.function("run")
    assert run(0, 5) == (5 + 10 + 1) + (10 + 1) + 10
    assert run(1, 5) == 15 + 11 + 10
    assert engine.function("hit_count")() == 11
    assert ctypes.c_uint64.from_address(engine.address("toy.state.hits")).value == 11
    assert sorted(engine.obtain().objects) == ["core", "handlers"]
    assert "toy.main" not in sys.modules


def test_functions_have_their_signatures(toy: Path) -> None:
    engine = toy_engine(toy)
    everything = engine.function("everything")
    assert everything.argtypes == (ctypes.c_int32, ctypes.c_double, ctypes.c_void_p, ctypes.c_bool)
    assert everything.restype is ctypes.c_bool
    byte = ctypes.c_uint8()
    assert everything(40, 2.5, ctypes.byref(byte), True) is False
    assert byte.value == 42
    assert engine.function("nothing")(None) is None
    assert engine.function("everything") is everything
    with pytest.raises(AttributeError, match="exports no function 'add'"):
        engine.function("add")
    with pytest.raises(AttributeError, match="no symbol 'nowhere'"):
        engine.address("nowhere")


def test_a_warm_cache_imports_nothing_of_the_engine(toy: Path) -> None:
    toy_engine(toy).load()
    program = (
        "import sys; from pathlib import Path; from greenbeat.native.engine import Engine, UnitPlan; import greenbeat\n"
        "packages = {'toy': Path(sys.argv[1]), 'greenbeat': Path(greenbeat.__file__).parent}\n"
        "units = [UnitPlan('handlers', ('toy.handlers',)), UnitPlan('core')]\n"
        "engine = Engine(['toy.main'], units, packages=packages)\n"
        "def never(): raise AssertionError\n"
        "engine.build = never\n"
        "print(engine.function('run')(1, 2))\n"
        "loaded = [m for m in sys.modules if m.startswith('toy')]\n"
        "print(loaded, 'greenbeat.native.emitter' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, toy], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["27", "[] False"]


def test_the_key_depends_on_what_is_imported(toy: Path) -> None:
    before = toy_engine(toy).key
    assert {"toy.main", "toy.handlers", "toy.handlers.arithmetic", "toy.state"} <= set(toy_engine(toy).sources())
    assert "toy.unrelated" not in toy_engine(toy).sources()
    edit(toy / "unrelated.py", "missing", "nothing")
    assert toy_engine(toy).key == before
    assert toy_engine(toy, checked=True).key != before
    assert toy_engine(toy, debug=True).key != before
    assert toy_engine(toy, machine=Machine("x86_64-unknown-linux-gnu", "x86-64-v4")).key != before
    edit(toy / "state.py", "1, 10, 100", "1, 10, 101")
    assert toy_engine(toy).key != before


def test_every_form_of_import_is_seen(toy: Path) -> None:
    for name in "abcdefg":
        (toy / f"{name}.py").write_text("")
    (toy / "main.py").write_text(
        "import toy.a\nimport os, toy.b as b\nfrom toy import c, d as x\n"
        "if True:\n    from toy import (\n        e,\n        f as y,  # why\n    )\nfrom toy.g import *\n"
    )
    assert set(toy_engine(toy).sources()) >= {f"toy.{name}" for name in "abcdefg"}


def test_what_is_imported_unseen_is_an_error(toy: Path) -> None:
    edit(toy / "main.py", "from toy.state", "__import__('importlib').import_module('toy.hidden')\nfrom toy.state")
    (toy / "hidden.py").write_text("")
    with pytest.raises(BuildError, match=r"the engine's key cannot know of: toy\.hidden"):
        toy_engine(toy).load()


def test_mistakes_are_reported_where_they_are(toy: Path) -> None:
    edit(toy / "state.py", "hits[0] += 1", "hits[0] += weight")
    with pytest.raises(NativeError, match=r"\+ has u64 on its left, but this is i64") as caught:
        toy_engine(toy).load()
    assert (caught.value.file, caught.value.line) == (str(toy / "state.py"), 9)


def test_an_exception_in_a_module_of_the_engine(toy: Path) -> None:
    edit(toy / "state.py", "hits = ", "1 / 0\nhits = ")
    with pytest.raises(BuildError, match="(?s)unit 'handlers' of the engine failed with status 1:.*ZeroDivisionError"):
        toy_engine(toy).load()


def test_a_compiler_that_dies(toy: Path) -> None:
    edit(toy / "main.py", "    return not d", "    inline_assembly('no such instruction', '', None)\n    return not d")
    edit(toy / "main.py", "import copy", "import inline_assembly")
    with pytest.raises(BuildError, match="(?s)unit 'core' of the engine (failed|was ended).*instruction"):
        toy_engine(toy).load()


def test_names_are_exported_once(toy: Path) -> None:
    edit(toy / "main.py", "def nothing", "def run")
    with pytest.raises(BuildError, match=r"run is defined both in toy\.main and in toy\.main"):
        toy_engine(toy).load()


def test_using_the_engine_while_it_is_built(toy: Path) -> None:
    edit(toy / "main.py", "@export\ndef run", "from greenbeat.engine import engine\nengine.load()\n\n@export\ndef run")
    with pytest.raises(BuildError, match="must not use engine.function when imported"):
        toy_engine(toy).load()


@pytest.mark.parametrize("damage", ["truncate", "flip", "delete", "manifest", "empty", "garbage"])
def test_damaged_entries_are_built_again(toy: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = toy_engine(toy)
    good = engine.build()
    directory = toy.parent / "cache"
    assert cache.write(directory, engine.key, good)
    built: list[str] = []

    def build(self: Engine) -> cache.Compiled:
        built.append(self.key)
        return good

    monkeypatch.setattr(Engine, "build", build)
    found = toy_engine(toy).obtain()
    assert (found, built) == (good, [])
    path = directory / f"{engine.key}.core.o"
    manifest = directory / f"{engine.key}.json"
    data = bytearray(path.read_bytes())
    match damage:
        case "truncate":
            path.write_bytes(data[:-1])
        case "flip":
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        case "delete":
            path.unlink()
        case "manifest":
            edit(manifest, '"run"', '"ran"')
        case "empty":
            manifest.write_bytes(b"")
        case "garbage":
            manifest.write_bytes(b"\xff\xfe\n{}")
    assert toy_engine(toy).obtain() == good
    assert built == [engine.key]
    assert toy_engine(toy).obtain() == good
    assert built == [engine.key]


def test_a_cache_that_cannot_be_written(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = toy.parent / "a file"
    place.write_text("no directory")
    monkeypatch.setenv("GREENBEAT_CACHE", str(place / "below"))
    assert toy_engine(toy).function("run")(1, 5) == 36
    monkeypatch.setenv("GREENBEAT_CACHE", "/proc/no such place")
    assert toy_engine(toy).function("run")(1, 5) == 36


def test_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GREENBEAT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.user_directory() == tmp_path / "greenbeat"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert cache.user_directory() == tmp_path / "home" / ".cache" / "greenbeat"
    monkeypatch.setattr(Path, "home", homeless)
    assert cache.user_directory() is None


def test_shipped_objects_come_first(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = toy_engine(toy)
    shipped = toy.parent / "shipped"
    assert cache.write(shipped, engine.key, engine.build())
    monkeypatch.setattr(Engine, "build", never)
    assert toy_engine(toy, shipped=shipped).function("run")(1, 5) == 36
    assert not (toy.parent / "cache").exists()
    with pytest.raises(AssertionError, match="nothing has to be built"):
        edit(toy / "state.py", "1, 10", "1, 11")
        toy_engine(toy, shipped=shipped).load()


PROCESS = """
import sys, json
from pathlib import Path
import greenbeat
from greenbeat.native.engine import Engine, UnitPlan
packages = {'toy': Path(sys.argv[1]), 'greenbeat': Path(greenbeat.__file__).parent}
engine = Engine(['toy.main'], [UnitPlan('handlers', ('toy.handlers',)), UnitPlan('core')], packages=packages)
built, build = [], engine.build
def counted():
    built.append(1)
    return build()
engine.build = counted
print(json.dumps([engine.function('run')(1, 5), len(built)]))
"""


def test_processes_that_start_together(toy: Path) -> None:
    command = [sys.executable, "-c", PROCESS, str(toy)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    results = [json.loads(child.communicate()[0]) for child in children]
    assert [r[0] for r in results] == [36, 36, 36]
    assert sum(r[1] for r in results) == 1
    assert not list((toy.parent / "cache").glob("*.tmp"))


def test_old_entries_are_deleted(tmp_path: Path) -> None:
    compiled = cache.Compiled(objects={"core": b"object"})
    for n in range(cache.ENTRIES_KEPT + 3):
        assert cache.write(tmp_path, f"key{n:02}", compiled)
        os.utime(tmp_path / f"key{n:02}.json", (n, n))
    cache.prune(tmp_path)
    left = {path.name.split(".")[0] for path in tmp_path.iterdir()}
    assert left == {f"key{n:02}" for n in range(3, cache.ENTRIES_KEPT + 3)}


def test_progress_is_shown_on_a_terminal_only(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        toy_engine(toy).build()
        assert ("compiling the engine for this machine" in stream.getvalue()) == shown


def test_the_checked_engine(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENBEAT_CHECKED", "1")
    engine = toy_engine(toy)
    assert engine.checked
    assert engine.function("run")(1, 5) == 36
    assert b"assertion failed: x != 13" in engine.obtain().objects["handlers"]
    monkeypatch.setenv("GREENBEAT_CHECKED", "0")
    assert not toy_engine(toy).checked


def test_owners() -> None:
    plans = [UnitPlan("a", ("p.x", "p.y.z")), UnitPlan("b", ("p.y",)), UnitPlan("c")]
    owners = {m: owner(plans, m) for m in ("p.x", "p.x.q", "p.xx", "p.y", "p.y.z", "p.y.z.k", "p.y.zz", "q")}
    assert owners == {
        "p.x": "a",
        "p.x.q": "a",
        "p.xx": "c",
        "p.y": "b",
        "p.y.z": "a",
        "p.y.z.k": "a",
        "p.y.zz": "b",
        "q": "c",
    }
    with pytest.raises(BuildError, match="no unit of the engine owns q"):
        owner(plans[:2], "q")


def test_objects_do_not_depend_on_when_and_where_they_are_built(toy: Path) -> None:
    first = toy_engine(toy).build()
    time.sleep(0.01)
    assert toy_engine(toy).build() == first
