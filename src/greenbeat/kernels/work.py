"""Kernels as what tasks run."""

import atexit
import ctypes
from typing import Any

from greenbeat.engine import engine

_object, _word = ctypes.py_object, ctypes.c_uint64


def _native(name: str, *types: Any) -> Any:
    return ctypes.PYFUNCTYPE(*types)(engine.address(name))


_new_kernel_task = _native("new_kernel_task", _word, _object, _object)
_kernel_task_result = _native("kernel_task_result", _object, _object, _word)
collect_returned = _native("collect_returned", None)
atexit.register(collect_returned)


class KernelWork:
    """A call of a kernel that a task runs."""

    def __init__(self, kernel: Any, arguments: tuple[Any, ...]) -> None:
        self.kernel, self.arguments, self.name = kernel, arguments, kernel.__name__

    def begin(self) -> int:
        fiber: int = _new_kernel_task(self.kernel, self.arguments)
        del self.arguments
        return fiber

    def finish(self, fiber: int) -> Any:
        return _kernel_task_result(self.kernel, fiber)
