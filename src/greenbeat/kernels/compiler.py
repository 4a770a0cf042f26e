"""From a kernel to its object file."""

import re
from typing import Any

from greenbeat.engine import engine
from greenbeat.errors import KernelError
from greenbeat.kernels.emitter import KernelUnit
from greenbeat.kernels.source import KernelFunction
from greenbeat.native.build import compile_text, explain_text
from greenbeat.native.errors import NativeError

# A frame may be as large as this: `emitter.FRAME_MARGIN` has room for it and for C functions that are called. A unit
# with fewer lines of LLVM IR than the other number cannot have so many values at once.
LARGEST_FRAME = 3584
FEW_LINES = 600
# How a function takes room on x86-64; elsewhere nothing is found.
FUNCTION = re.compile(r'^"?([\w.<>]+)"?:', re.MULTILINE)
ROOM = re.compile(r"^\t(?:pushq\t%\w+|subq\t\$(\d+), %rsp)", re.MULTILINE)

OPTIONS: dict[str, Any] = {"speed": 3, "vectorize": True}

# How many kernels this process has compiled, for tests of the cache.
compiled = 0


def compile_kernel(kernel: KernelFunction) -> bytes:
    """Compile a kernel and what it calls.

    Raises:
        KernelError: one of them cannot be compiled.
    """
    global compiled
    compiled += 1
    text = kernel_text(kernel)

    def examine(assembly: str) -> None:
        name, size = largest_frame(assembly)
        if size > LARGEST_FRAME:
            kernel.fail(
                f"{name} needs {size} bytes of the stack, of which a kernel has {LARGEST_FRAME}: "
                "move a part of it into another kernel"
            )

    examined = examine if text.count("\n") > FEW_LINES else None
    return compile_text(text, engine.machine, examine=examined, **OPTIONS)


def explain_kernel(kernel: KernelFunction) -> tuple[str, str]:
    """A kernel and what it calls as optimised LLVM IR and as assembly, with the lines that they come from.

    Raises:
        KernelError: one of them cannot be compiled.
    """
    return explain_text(kernel_text(kernel, debug=True), engine.machine, **OPTIONS)


def largest_frame(assembly: str) -> tuple[str, int]:
    """The function with the largest frame, and how large that is, as pushes and subtractions say."""
    largest = "", 0
    parts = FUNCTION.split(assembly)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        size = sum(int(found[1]) if found[1] else 8 for found in ROOM.finditer(body))
        largest = max(largest, (name.rpartition(".")[2], size), key=lambda each: each[1])
    return largest


def kernel_text(kernel: KernelFunction, *, debug: bool = False) -> str:
    """A kernel and what it calls as LLVM IR; with `debug` it tells the lines that it comes from."""
    try:
        return KernelUnit(kernel, debug=debug).text()
    except NativeError as problem:
        raise KernelError(problem.message, problem.file, problem.line, problem.column) from problem
