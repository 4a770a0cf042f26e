"""The peers of parallel programs: numba, C with OpenMP, pools of processes, Go. One that is missing says why."""

import ctypes
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.forkjoin.workload import Inputs, Workload, installed, seconds

PEERS = Path(__file__).parent / "peers"


class Rival(ABC):
    """Somebody who runs the same programs."""

    name: ClassVar[str]

    @abstractmethod
    def obstacle(self) -> str | None:
        """Why it cannot run here, or None."""

    @abstractmethod
    def measure(self, workload: Workload, size: int, inputs: Inputs, workers: int, rounds: int) -> float | None:
        """The best time on so many processors; None if it cannot say this program."""


class Numba(Rival):
    """Loops by `prange`."""

    name = "numba"

    def obstacle(self) -> str | None:
        return None if installed("numba") else "not installed: pip install numba"

    def measure(self, workload: Workload, size: int, inputs: Inputs, workers: int, rounds: int) -> float | None:
        if workload.numba is None:
            return None
        installed("numba").set_num_threads(workers)
        run = workload.numba()
        workload.check(inputs, run(*inputs))
        return seconds(run, inputs, rounds)


class Joblib(Rival):
    """Processes that run the serial kernel on pieces; the time to send what they need is theirs."""

    name = "joblib"

    def obstacle(self) -> str | None:
        return None if installed("joblib") else "not installed: pip install joblib"

    def measure(self, workload: Workload, size: int, inputs: Inputs, workers: int, rounds: int) -> float | None:
        if workload.pieces is None:
            return None
        joblib = installed("joblib")
        pieces = workload.pieces(*inputs)
        with joblib.Parallel(n_jobs=workers) as pool:

            def run() -> Any:
                return sum(pool(joblib.delayed(function)(*arguments) for function, arguments in pieces))

            return seconds(run, (), rounds)


class OpenMP(Rival):
    """C, compiled with everything the compiler can do for this processor."""

    name = "C, OpenMP"

    OPTIONS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")

    def compilers(self) -> list[list[str]]:
        """What may be there, the best first. zig brings clang, but no library of OpenMP."""
        found = [[each] for each in ("gcc", "clang") if shutil.which(each)]
        return [*found, [sys.executable, "-m", "ziglang", "cc"]]

    @functools.cached_property
    def library(self) -> Any:
        """The compiled library, or the compilers' complaints."""
        self.folder = tempfile.TemporaryDirectory()
        # Threads that wait for the next loop do not take the processor from whoever is measured next.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        complaints = []
        for compiler in self.compilers():
            path = Path(self.folder.name) / f"{Path(compiler[0]).name}.so"
            command = [*compiler, *self.OPTIONS, str(PEERS / "openmp.c"), "-lm", "-o", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            try:
                if done.returncode == 0:
                    library = ctypes.CDLL(str(path))
                    for name in ("fib", "treesum", "nqueens", "primes", "bfs"):
                        getattr(library, name).restype = ctypes.c_int64
                    library.fib.argtypes = [ctypes.c_int64]
                    library.nqueens.argtypes = [ctypes.c_int64] * 4
                    library.mcss.restype = ctypes.c_double
                    return library
                complaints.append(done.stderr.strip().partition("\n")[0])
            except OSError as error:
                complaints.append(str(error))
        return "; ".join(complaints)

    def obstacle(self) -> str | None:
        return self.library if isinstance(self.library, str) else None

    def measure(self, workload: Workload, size: int, inputs: Inputs, workers: int, rounds: int) -> float | None:
        if workload.openmp is None:
            return None
        self.library.set_threads(workers)
        run = functools.partial(workload.openmp, self.library)
        workload.check(inputs, run(*inputs))
        return seconds(run, inputs, rounds)


class Go(Rival):
    """A program of goroutines."""

    name = "Go"

    def obstacle(self) -> str | None:
        return self.program if isinstance(self.program, str) else None

    @functools.cached_property
    def program(self) -> Path | str:
        """The compiled program, or why there is none."""
        if not shutil.which("go"):
            return "no go on the search path"
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "tasks"
        command = ["go", "build", "-o", str(path), str(PEERS / "tasks.go")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return path if done.returncode == 0 else done.stderr.strip().partition("\n")[0]

    def measure(self, workload: Workload, size: int, inputs: Inputs, workers: int, rounds: int) -> float | None:
        if workload.go is None:
            return None
        command = [str(self.program), workload.go, str(size), str(workers), str(rounds)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1])


RIVALS: tuple[type[Rival], ...] = (Numba, OpenMP, Joblib, Go)
