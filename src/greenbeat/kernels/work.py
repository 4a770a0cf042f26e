"""Kernels as what tasks run."""

import asyncio
import atexit
import ctypes
from typing import Any

from greenbeat.kernels.objects import exported

_object, _word = ctypes.py_object, ctypes.c_uint64

_new_kernel_task = exported("new_kernel_task", _word, _object, _object)
_kernel_task_result = exported("kernel_task_result", _object, _object, _word)
collect_returned = exported("collect_returned", None)
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

    def waits_for(self, loop: asyncio.AbstractEventLoop) -> bool:
        return False
