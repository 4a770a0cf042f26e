"""What addresses and numbers in traces and samples are called."""

import threading

from greenbeat.api.module import description_of
from greenbeat.kernels import linked
from greenbeat.wasm.printable import printable

LONGEST = 100


def thread_names() -> dict[int, str]:
    """The names of Python's threads, by what `pthread_self` gives in each."""
    return {thread.ident: thread.name for thread in threading.enumerate() if thread.ident is not None}


class Names:
    """The names of what runs, as far as it is known now."""

    def __init__(self) -> None:
        self._entries = dict(linked.entries())

    def code(self, address: int, number: int = 0) -> str:
        """What a fiber runs: a kernel by its thunk's address, or of a module the function before `number`."""
        if number:
            return self.guest(address, number - 1)
        return self._entries.get(address, f"{address:#x}")

    def guest(self, module: int, index: int) -> str:
        """A guest's function, by its module's address."""
        description = description_of(module)
        name = description.function_name(index) if description is not None else None
        return f"${printable(name, LONGEST)}" if name is not None else f"function {index}"
