"""What can go wrong with guests, kernels and tasks, as exceptions.

    GreenbeatError
    ├── CompileError         the module is malformed or invalid
    ├── LinkError            an import is missing or of another type
    ├── Trap                 the guest did something that WebAssembly stops
    ├── UncaughtException    the guest threw an exception that no guest caught
    ├── Exhausted            a limit was reached: fuel, time, memory or stack
    ├── KernelError          a kernel cannot be compiled
    ├── Cancelled            the task was cancelled
    └── ChannelClosed        nothing more can be sent or received

What a host function raises comes out of the call unchanged, with a note that names the guest's frames. A wrong argument
is a `TypeError` or a `ValueError`, as in Python.
"""

import itertools
from collections.abc import Iterator

from greenbeat.native.records import record


@record(frozen=True, slots=True)
class Frame:
    """A guest function that was running.

    Attributes:
        function: its name, if the module tells one.
        index: its index in the module's functions.
        offset: where it was, in bytes from the module's start; None if that is not known.
        module: the module's name, if it tells one.
    """

    function: str | None
    index: int
    offset: int | None = None
    module: str | None = None

    def __str__(self) -> str:
        where = f" at 0x{self.offset:x}" if self.offset is not None else ""
        module = f" in {self.module}" if self.module else ""
        return f"{self.function or f'function {self.index}'}{where}{module}"


class GreenbeatError(Exception):
    """The base of all errors of Greenbeat's own."""


class CompileError(GreenbeatError):
    """A module cannot be used: it is malformed, invalid, or beyond an implementation limit.

    Attributes:
        offset: where, in bytes from the module's start; None if it is no single place. Of a module that was text, in
            the binary it was assembled to; None if the text itself is wrong, and then the message has line and column.
        function: the index of the function whose body it is in, or None.
        malformed: whether these are no module at all, in the specification's sense, rather than one that breaks a rule.
    """

    def __init__(
        self, message: str, offset: int | None = None, function: int | None = None, *, malformed: bool = False
    ) -> None:
        super().__init__(message)
        self.offset, self.function, self.malformed = offset, function, malformed

    def __str__(self) -> str:
        where = f"at offset 0x{self.offset:x}" if self.offset is not None else ""
        if self.function is not None:
            where = f"in function {self.function}, {where}" if where else f"in function {self.function}"
        return f"{self.args[0]} ({where})" if where else str(self.args[0])


class LinkError(GreenbeatError):
    """An import does not fit.

    Attributes:
        module, name: the import's two names.
        expected: the type that the module declares, in the text format.
        found: what was given instead.
    """

    def __init__(self, module: str, name: str, expected: str, found: str) -> None:
        super().__init__(module, name, expected, found)
        self.module, self.name, self.expected, self.found = module, name, expected, found

    def __str__(self) -> str:
        return f'import "{self.module}" "{self.name}": expected {self.expected}, found {self.found}'


# A frame is shown so often in a row; then it is told how often it follows.
_SHOWN = 3


def frame_lines(backtrace: tuple[Frame, ...], before: str = "") -> Iterator[str]:
    """A line for each frame, with a word before it; of what a deep recursion repeats, a few and how many more."""
    for line, same in itertools.groupby(map(str, backtrace)):
        count = len(list(same))
        yield from [before + line] * min(count, _SHOWN)
        if count > _SHOWN:
            more = count - _SHOWN
            yield f"[the frame before, {more} more time{'s' * (more > 1)}]"


def _with_frames(message: str, backtrace: tuple[Frame, ...]) -> str:
    return "\n  ".join([message, *frame_lines(backtrace, "in ")])


class Trap(GreenbeatError):
    """The guest was stopped.

    Attributes:
        kind: why, in the words of the specification, such as "integer divide by zero".
        backtrace: the guest's frames, innermost first.
    """

    def __init__(self, kind: str, backtrace: tuple[Frame, ...] = ()) -> None:
        super().__init__(kind, backtrace)
        self.kind, self.backtrace = kind, backtrace

    def __str__(self) -> str:
        return _with_frames(self.kind, self.backtrace)


class UncaughtException(GreenbeatError):
    """The guest threw an exception that no guest caught.

    Attributes:
        values: what the exception carries.
        backtrace: the guest's frames where it was thrown, innermost first.
    """

    def __init__(self, values: tuple[object, ...] = (), backtrace: tuple[Frame, ...] = ()) -> None:
        super().__init__(values, backtrace)
        self.values, self.backtrace = values, backtrace

    def __str__(self) -> str:
        return _with_frames(f"uncaught exception({', '.join(map(repr, self.values))})", self.backtrace)


class Exhausted(GreenbeatError):
    """A limit was reached.

    Attributes:
        resource: "fuel", "time", "memory" or "stack".
        backtrace: the guest's frames, innermost first.
    """

    def __init__(self, resource: str, message: str, backtrace: tuple[Frame, ...] = ()) -> None:
        super().__init__(resource, message, backtrace)
        self.resource, self.backtrace = resource, backtrace

    def __str__(self) -> str:
        return _with_frames(self.args[1], self.backtrace)


class KernelError(GreenbeatError):
    """A kernel cannot be compiled.

    Attributes:
        message: what is wrong and what would be right.
        file, line, column: where, as an editor counts (lines and columns from 1).
        text: that line of the source, if it is known.
    """

    def __init__(self, message: str, file: str, line: int, column: int, text: str = "") -> None:
        super().__init__(message, file, line, column, text)
        self.message, self.file, self.line, self.column, self.text = message, file, line, column, text

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}: {self.message}"
        source = self.text.strip()
        if not source:
            return where
        indent = len(self.text) - len(self.text.lstrip())
        return f"{where}\n    {source}\n    {' ' * (self.column - 1 - indent)}^"


class Cancelled(GreenbeatError):
    """A task was cancelled before it had finished."""


class ChannelClosed(GreenbeatError):
    """A channel is closed: nothing can be sent, and nothing that was sent before is left to receive."""
