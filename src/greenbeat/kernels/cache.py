"""Compiled kernels on disk, beside the engines in the user's cache directory.

The key of a kernel is everything its machine code comes from: its text, where that is, its types, the numbers it
captures, the same of every kernel it can reach, and what compiles it. None of that needs the compiler, so a second
process links the object without importing it.
"""

import contextlib
import hashlib
import types
from functools import cache
from pathlib import Path

from greenbeat.engine import engine
from greenbeat.kernels import linked
from greenbeat.kernels.source import KernelFunction, constant
from greenbeat.native import cache as files
from greenbeat.native.linker import Library

ENTRIES_KEPT = 1000
# How many dots a name from outside may have.
DEEPEST_ATTRIBUTE = 3
SYMBOLS = ("thunk", "parameters", "results", "forks", "entries")


@cache
def compiler_key() -> str:
    """What compiles kernels, hashed: the engine's own key covers the compiler, the machine, LLVM and the build."""
    digest = hashlib.sha256(f"{engine.key} {__debug__}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def reached(kernel: KernelFunction) -> tuple[list[KernelFunction], str]:
    """The kernel and those it can reach, and what their code depends on."""
    found, told = [kernel], []
    for function in found:
        names = function.code.co_names
        outside = {n: function.python.__globals__[n] for n in names if n in function.python.__globals__}
        outside |= function.environment
        told.append(_described(function))
        waiting = sorted(outside.items())
        for name, value in waiting:
            other = getattr(value, "_function", None)
            if isinstance(other, KernelFunction):
                if not any(other is known for known in found):
                    found.append(other)
                told.append(f"{name} is kernel {next(i for i, known in enumerate(found) if known is other)}")
            elif constant(value) or isinstance(value, str):
                told.append(f"{name} = {value!r} {type(value).__qualname__}")
            elif isinstance(value, types.ModuleType | type):
                told.append(f"{name} is {value.__name__}")
                if name.count(".") < DEEPEST_ATTRIBUTE:
                    # Which attributes are used, the names in the code say well enough.
                    inner = {n: getattr(value, n) for n in names if hasattr(value, n)}
                    waiting += [(f"{name}.{n}", v) for n, v in sorted(inner.items())]
            else:
                kind = type(value)
                told.append(f"{name} is {getattr(value, '__qualname__', '')}, a {kind.__module__}.{kind.__qualname__}")
    return found, "\n".join(told)


def _described(function: KernelFunction) -> str:
    text = "".join(function.lines)
    # The name is in the object, for traces and profiles: a program's main module is another one when it is imported.
    name = f"{function.python.__module__}.{function.python.__qualname__}"
    return f"{function.file}:{function.first_line} {name}\n{function.described}\n{text}"


def key(kernel: KernelFunction) -> str:
    """Names the machine code of a kernel."""
    digest = hashlib.sha256(f"{compiler_key()}\n{reached(kernel)[1]}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def obtain(kernel: KernelFunction, name: str) -> Library:
    """The machine code of a kernel, linked: kept by an earlier process, or compiled now.

    Raises:
        KernelError: it, or a kernel that it calls, cannot be compiled.
    """
    directory = files.user_directory()
    directory = directory / "kernels" if directory is not None else None
    found = files.read(directory, name) if directory is not None else None
    if found is None:
        from greenbeat.kernels.compiler import compile_kernel  # here, since a warm start does without

        found = files.Compiled({"kernel": compile_kernel(kernel)}, addresses=list(SYMBOLS))
        if directory is not None and files.write(directory, name, found):
            with contextlib.suppress(OSError):
                files.prune(directory, ENTRIES_KEPT)
    library = Library(found.objects.values(), SYMBOLS)
    linked.add(library.addresses, found.objects["kernel"])
    return library
