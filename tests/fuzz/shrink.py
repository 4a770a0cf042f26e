"""The minimiser: a module made small that still shows what was found, by `wasm-tools shrink`.

That program runs a script for every candidate. Ours is a few lines that hand the candidate to this process, which has
both engines loaded and tries it in a fork of itself:

    wasm-tools shrink ──▶ script ──socket──▶ Trials ──fork──▶ the case
                             ◀── y or n ───────┘  ◀── status ──┘
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tests.fuzz import differential, mutation, smith

SECONDS = 20
_SCRIPT = """#!{python} -SE
import socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({address!r})
link.sendall(sys.argv[1].encode())
sys.exit(link.recv(1) != b"y")
"""


def verdict(data: bytes, seed: str, kind: str) -> str:
    """What becomes of a case in a fork of this process: "fine", "difference", or how it ended."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        code = 0
        try:
            mutation.check(data, seed) if kind == "mutants" else differential.check(data, seed)
        except (differential.Difference, mutation.Escaped):
            code = 3
        except BaseException:
            code = 4
        os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {0: "fine", 3: "difference"}.get(code, f"ended with {code}")


class Trials(threading.Thread):
    """Answers the script: whether a candidate shows the same as the original."""

    def __init__(self, address: str, seed: str, kind: str, wanted: str) -> None:
        super().__init__(daemon=True)
        self.seed, self.kind, self.wanted = seed, kind, wanted
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        self.listener.listen()

    def run(self) -> None:
        while True:
            link, _ = self.listener.accept()
            with link:
                data = Path(link.recv(4096).decode()).read_bytes()
                link.sendall(b"y" if verdict(data, self.seed, self.kind) == self.wanted else b"n")


def shrink(data: bytes, seed: str, kind: str, attempts: int = 1000) -> bytes | None:
    """The smaller module; None if the case is fine."""
    wanted = verdict(data, seed, kind)
    print(f"{len(data)} bytes: {wanted}", file=sys.stderr)
    if wanted == "fine":
        return None
    with tempfile.TemporaryDirectory() as place:
        address, script = str(Path(place) / "link"), Path(place) / "script"
        before, after = Path(place) / "before.wasm", Path(place) / "after.wasm"
        before.write_bytes(data)
        script.write_text(_SCRIPT.format(python=sys.executable, address=address))
        script.chmod(0o755)
        Trials(address, seed, kind, wanted).start()
        command = [str(smith.tool()), "shrink", f"--attempts={attempts}", "--allow-empty"]
        subprocess.run([*command, "-o", str(after), str(script), str(before)], check=False)
        return after.read_bytes() if after.exists() else data
