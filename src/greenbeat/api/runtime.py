"""`greenbeat.Runtime`: the threads that run tasks.

    with gb.Runtime(workers=2):
        task = gb.spawn(kernel, 1)

Without one, a runtime with a worker per processor is made when the first task is spawned. Workers are threads of
Python's inside native code, without the GIL; they sleep when there is nothing to run.
"""

import atexit
import contextlib
import os
import threading
from types import TracebackType
from typing import Any

from greenbeat.api.bridge import native
from greenbeat.api.checks import described, shown

MOST_WORKERS = 128
# How often whoever closes a runtime looks after what is left to run, in seconds.
_PATIENCE = 0.05
# Threads of a runtime at most, those included that work in place of others.
MOST_THREADS = 512

# Held while workers are started or awaited. A worker never waits for it; `_here.is_worker` tells one.
_guard = threading.RLock()
_here = threading.local()
_current: "Runtime | None" = None
# The one that is closed, as long as it has workers.
_closing: "Runtime | None" = None
# Whether the current one was made by hand, not on first use.
_chosen = False


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Runtime:
    """Workers that run tasks; there is one runtime at a time.

    Args:
        workers: how many threads, and how many processors a kernel that forks runs on, its caller's included; by
            default as many as this process may use.
        pin: bind each worker to a processor of its own, where the system can.

    Raises:
        ValueError: the number is not from 1 to 128.
        RuntimeError: there is a runtime that was made by hand and is still open.
    """

    def __init__(self, workers: int | None = None, *, pin: bool = False) -> None:
        if workers is None:
            workers = min(processors(), MOST_WORKERS)
        if not isinstance(workers, int) or isinstance(workers, bool):
            raise TypeError(f"workers is a number of threads, not {described(workers)}")
        if not 1 <= workers <= MOST_WORKERS:
            raise ValueError(f"workers must be from 1 to {MOST_WORKERS}: {shown(workers)}")
        self.workers, self.pin = workers, pin
        self._start(chosen=True)

    def _start(self, *, chosen: bool) -> None:
        global _current, _chosen
        self._threads: list[_WorkerThread] = []
        self._open = False
        # Threads of workers that sleep in host functions; under a lock of its own, which is held for moments only.
        self._asleep = 0
        self._counting = threading.Lock()
        _refuse_workers()
        with _guard:
            if _current is not None:
                if _chosen:
                    raise RuntimeError("there is a runtime already: close it first, or make it in a `with` block")
                _current.close()
            if _closing is not None:
                _closing._await_workers()
            native.stop_pool(0)
            native.set_seats(self.workers)
            self._open = True
            _current, _chosen = self, chosen
            places = sorted(os.sched_getaffinity(0)) if self.pin and hasattr(os, "sched_getaffinity") else []
            try:
                for number in range(self.workers):
                    self._add_thread(places[number % len(places)] if places else None)
            except BaseException:
                self.close()
                raise

    def _add_thread(self, place: int | None) -> None:
        name = f"greenbeat worker {len(self._threads)}"
        thread = _WorkerThread(name, place)
        thread.start()
        self._threads.append(thread)

    def _falls_asleep(self) -> None:
        """A worker's thread is about to sleep in a host function: another one works in its place."""
        with self._counting:
            self._asleep += 1
            if self._open and len(self._threads) - self._asleep < self.workers:
                if len(self._threads) >= MOST_THREADS:
                    self._asleep -= 1
                    raise RuntimeError(
                        f"more than {MOST_THREADS} host functions wait, each in a thread: make them coroutine functions"
                    )
                try:
                    self._add_thread(None)
                except BaseException:
                    self._asleep -= 1
                    raise

    def _is_awake(self) -> None:
        with self._counting:
            self._asleep -= 1

    def close(self) -> None:
        """Cancel tasks that run or are ready to, and end the workers. Tasks that wait go on in the next runtime.

        Raises:
            RuntimeError: a task calls this.
        """
        global _current, _closing
        _refuse_workers()
        with _guard:
            if self._open:
                with self._counting:
                    self._open = False
                if _current is self:
                    _current = None
                _closing = self
                native.stop_pool(1)
            self._await_workers()

    def _await_workers(self) -> None:
        """Wait for the workers of a closed runtime. If that is interrupted, the next close or runtime goes on with it.

        Under the lock: a new runtime would let workers go on that have not seen yet that they are to end.
        """
        global _closing
        while self._threads:
            # A `join` that is interrupted takes the thread for ended, in some versions of Python.
            if self._threads[-1].over.wait(_PATIENCE):
                self._threads[-1].join()
                self._threads.pop()
            else:
                # The host function that keeps it may wait for tasks that were cancelled, and no worker is left.
                native.run_what_is_left()
        if _closing is self:
            _closing = None

    def __enter__(self) -> "Runtime":
        if not self._open:
            raise RuntimeError(
                f"{self!r} cannot be entered again: make a new one, `with greenbeat.Runtime(workers={self.workers}):`"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        workers = f"{self.workers} worker{'s' * (self.workers != 1)}"
        return f"<greenbeat.Runtime of {workers}{'' if self._open else ', closed'}>"


def _is_worker() -> bool:
    return getattr(_here, "is_worker", False)


def _refuse_workers() -> None:
    if _is_worker():
        raise RuntimeError("a task cannot make or close the runtime that it runs in")


class _WorkerThread(threading.Thread):
    """A thread that runs tasks until the pool stops; `over` is set then."""

    def __init__(self, name: str, place: int | None) -> None:
        super().__init__(name=name, daemon=True)
        self.over, self._place = threading.Event(), place

    def run(self) -> None:
        """Be a worker, on one processor if there is a place."""
        try:
            _here.is_worker = True
            if self._place is not None:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(threading.get_native_id(), {self._place})
            native.work_in_pool()
        finally:
            self.over.set()


def wait_natively(function: Any, *arguments: Any) -> Any:
    """Call a native function that may put this thread to sleep."""
    runtime = _current
    if not _is_worker() or runtime is None:
        return function(*arguments)
    runtime._falls_asleep()
    try:
        return function(*arguments)
    finally:
        runtime._is_awake()


def ensure_runtime() -> None:
    """Make the default runtime, if there is none."""
    if _current is None and not _is_worker():
        with _guard:
            if _current is None:
                made = Runtime.__new__(Runtime)
                made.workers, made.pin = min(processors(), MOST_WORKERS), False
                made._start(chosen=False)


def _close_at_exit() -> None:
    if _current is not None:
        _current.close()


def _forget_in_child() -> None:
    global _current, _closing, _chosen, _guard
    if _current is not None:
        _current._open = False
        _current._threads.clear()
    _current, _closing, _chosen, _guard = None, None, False, threading.RLock()
    _here.is_worker = False


atexit.register(_close_at_exit)
os.register_at_fork(after_in_child=_forget_in_child)
