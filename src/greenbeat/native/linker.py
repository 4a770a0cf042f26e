"""Object files linked into this process."""

import ctypes
import os
from collections.abc import Iterable
from typing import Any


def flag(name: str) -> bool:
    """Whether an environment variable switches something on."""
    return os.environ.get(name, "") not in ("", "0")


class Library:
    """Objects linked together. It is never unloaded: native threads may be inside it at any moment."""

    _linker: Any = None
    _count = 0

    def __init__(self, objects: Iterable[bytes], symbols: Iterable[str]) -> None:
        # Here, since a start from an image does without.
        import llvmlite.binding as llvm

        from greenbeat.native.targets import host_machine

        if Library._linker is None:
            # Only the older linker tells gdb about the code, but it fails when its sections land 2 GB apart.
            jit_link = not flag("GREENBEAT_DEBUG")
            machine = host_machine().create()
            Library._linker = llvm.create_lljit_compiler(machine, use_jit_link=jit_link, suppress_errors=False)
        builder = llvm.JITLibraryBuilder()
        data = list(objects)
        for item in data:
            builder.add_object_img(item)
        builder.add_current_process()
        names = set(symbols)
        if flag("GREENBEAT_PERF"):
            from greenbeat.native import perfmap

            names.update(name for item in data for name in perfmap.anchors(item))
        for name in names:
            builder.export_symbol(name)
        Library._count += 1
        tracker = builder.link(Library._linker, f"greenbeat.{Library._count}")
        tracker.detach()
        self.addresses: dict[str, int] = {name: tracker[name] for name in names}
        if flag("GREENBEAT_PERF"):
            for item in data:
                perfmap.append(perfmap.function_addresses(item, self.addresses))

    def function(self, function: Any) -> Any:
        """The compiled function as a ctypes callable; it holds the GIL, since calls are short or say otherwise."""
        kind = function.type
        types: list[Any] = [None if p.ir == "void" else p.ctype for p in (kind.returns, *kind.params)]
        return ctypes.PYFUNCTYPE(*types)(self.addresses[function.symbol])
