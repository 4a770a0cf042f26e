"""From a kernel to its object file."""

from greenbeat.engine import engine
from greenbeat.errors import KernelError
from greenbeat.kernels.emitter import KernelUnit
from greenbeat.kernels.source import KernelFunction
from greenbeat.native.build import compile_text
from greenbeat.native.errors import NativeError

# How many kernels this process has compiled, for tests of the cache.
compiled = 0


def compile_kernel(kernel: KernelFunction) -> bytes:
    """Compile a kernel and what it calls.

    Raises:
        KernelError: one of them cannot be compiled.
    """
    global compiled
    compiled += 1
    return compile_text(kernel_text(kernel), engine.machine, speed=3, vectorize=True)


def kernel_text(kernel: KernelFunction) -> str:
    """A kernel and what it calls as LLVM IR."""
    try:
        return KernelUnit(kernel).text()
    except NativeError as problem:
        raise KernelError(problem.message, problem.file, problem.line, problem.column) from problem
