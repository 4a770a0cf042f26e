"""Object files linked into this process."""

import ctypes
from collections.abc import Iterable
from typing import Any

import llvmlite.binding as llvm

from greenbeat.native.targets import host_machine


class Library:
    """Objects linked together. It is never unloaded: native threads may be inside it at any moment."""

    _linker: Any = None
    _count = 0

    def __init__(self, objects: Iterable[bytes], symbols: Iterable[str]) -> None:
        if Library._linker is None:
            Library._linker = llvm.create_lljit_compiler(host_machine().create(), use_jit_link=True, suppress_errors=False)
        builder = llvm.JITLibraryBuilder()
        for data in objects:
            builder.add_object_img(data)
        builder.add_current_process()
        names = list(symbols)
        for name in names:
            builder.export_symbol(name)
        Library._count += 1
        tracker = builder.link(Library._linker, f"greenbeat.{Library._count}")
        tracker.detach()
        self.addresses: dict[str, int] = {name: tracker[name] for name in names}

    def function(self, function: Any) -> Any:
        """The compiled function as a ctypes callable; it runs holding the GIL, since calls are short or say otherwise."""
        kind = function.type
        types: list[Any] = [None if p.ir == "void" else p.ctype for p in (kind.returns, *kind.params)]
        return ctypes.PYFUNCTYPE(*types)(self.addresses[function.symbol])
