"""The one exception of the native compiler: what is wrong in a function, and where."""

from typing import Any


class NativeError(Exception):
    """A function cannot be compiled to native code.

    Attributes:
        message: what is wrong and what would be right.
        file, line, column: where, as an editor counts (lines and columns from 1).
    """

    def __init__(self, message: str, file: str, line: int, column: int) -> None:
        self.message, self.file, self.line, self.column = message, file, line, column
        import linecache  # here, since a start has no errors

        source = linecache.getline(file, line).rstrip("\n")
        where = f"{file}:{line}:{column}: {message}"
        super().__init__(f"{where}\n    {source}\n    {' ' * (column - 1)}^" if source.strip() else where)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.file, self.line, self.column)
