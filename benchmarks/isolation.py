"""An object in a process of its own.

Engines install signal handlers, reserve address space and, if they are wrong, take their process with them. So the
benchmarks keep each engine in a worker process: it cannot disturb another's measurement, and a crash or an endless
loop is one entry in the table instead of the end of the run. All timing happens inside the worker; the pipe is never
measured.
"""

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self


class WorkerError(Exception):
    """The worker raised, died, or did not answer in time; the message says which."""


class Worker:
    """Runs `factory()` in a new process and forwards method calls to what it returns."""

    def __init__(self, factory: Callable[[], object], timeout: float = 120.0) -> None:
        self.timeout = timeout
        # A forked child would inherit the engines this process may have loaded; a spawned one starts clean.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, factory), daemon=True)
        self._process.start()
        theirs.close()

    def call(self, method: str, *arguments: object) -> Any:
        """Calls a method of the worker's object and returns its result."""
        try:
            self._pipe.send((method, arguments))
            if not self._pipe.poll(self.timeout):
                self._process.kill()
                raise WorkerError(f"no answer within {self.timeout:.0f} s")
            succeeded, result = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            raise WorkerError(f"its process ended with status {self._process.exitcode}") from None
        if not succeeded:
            raise WorkerError(str(result))
        return result

    def close(self) -> None:
        """Ends the process."""
        self._pipe.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve(pipe: Connection, factory: Callable[[], object]) -> None:
    """The worker's side: one answer for each request, until the pipe closes."""
    served: object = None
    while True:
        try:
            method, arguments = pipe.recv()
        except EOFError:
            return
        try:
            if served is None:
                served = factory()
            answer = (True, getattr(served, method)(*arguments))
        except Exception as error:
            answer = (False, "".join(traceback.format_exception_only(error)).strip().splitlines()[0])
        pipe.send(answer)
