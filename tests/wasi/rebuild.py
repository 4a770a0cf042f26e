"""Rebuilds the WASI commands of the tests and benchmarks from their C sources. For development only.

python -m tests.wasi.rebuild      (from the project's root; needs `ziglang`)
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    for folder in (ROOT / "tests/wasi/programs", ROOT / "benchmarks/commands"):
        for source in sorted(folder.glob("*.c")):
            output = source.with_suffix(".wasm")
            compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-s"]
            subprocess.run([*compiler, str(source), "-o", str(output)], check=True)
            output.chmod(0o644)
            print(f"{output.name}: {output.stat().st_size} bytes")
