"""What a kernel failed of, as Python's exception with a traceback that shows the kernel's own line.

A site (see `values.py`) says which exception it is and where; a kernel that asks for more stack leaves one too, in case
there is none. The traceback is a real one: a statement that raises is compiled with the file, the name and the position
of the kernel's source, and run.
"""

import _ast
import builtins
import ctypes
import functools
import json
from types import CodeType
from typing import Any

from greenbeat import errors

# Statuses of fibers (see `tasks/layout.py`) that have a site, and those that have none.
FAILED, OVERFLOWED = 1, 3
OTHERS: dict[int, tuple[type[Exception], str]] = {
    2: (errors.Cancelled, "the task was cancelled"),
    4: (MemoryError, "no memory for a task"),
    5: (ValueError, "this task was joined before, or was spawned by another task"),
}


def failure(status: int, site: int, *words: int) -> BaseException:
    """The exception that a fiber's end means."""
    if status not in (FAILED, OVERFLOWED):
        kind, text = OTHERS[status]
        return kind(text)
    kind, pieces, file, name, position = json.loads(ctypes.string_at(site))
    values = iter(words)
    text = pieces[0]
    for piece in pieces[1:]:
        word = next(values)
        text += f"{word - (1 << 64) if word >> 63 else word}{piece}"
    exception: BaseException = (getattr(builtins, kind, None) or getattr(errors, kind))(*([text] if text else []))
    if text.startswith("(34, "):
        exception = OverflowError(34, "Numerical result out of range")
    return placed(exception, file, name, position)


def placed(exception: BaseException, file: str, name: str, position: list[Any]) -> BaseException:
    """The exception with the traceback of having been raised there."""
    try:
        exec(_raising(file, name, *position), {"exception": exception})
    except BaseException as raised:
        trace = raised.__traceback__
        return raised.with_traceback(trace.tb_next if trace is not None else None)
    raise AssertionError("the statement raises")


@functools.lru_cache(256)
def _raising(file: str, name: str, line: int, column: int, end_line: int | None, end_column: int | None) -> CodeType:
    """Code that raises `exception` at a place of a file."""
    place = {"lineno": line, "col_offset": column, "end_lineno": end_line or line, "end_col_offset": end_column or 0}
    statement = _ast.Raise(exc=_ast.Name(id="exception", ctx=_ast.Load(), **place), cause=None, **place)
    code = compile(_ast.Module(body=[statement], type_ignores=[]), file, "exec")
    return code.replace(co_name=name, co_qualname=name)
