"""The words for what goes wrong in native code: the hooks of `greenbeat.runtime.hooks`."""

import ctypes
import sys
from typing import Any, NoReturn

from greenbeat.api import bridge
from greenbeat.api.checks import described, shown, whole
from greenbeat.api.values import mismatch, short
from greenbeat.errors import Cancelled, Exhausted, Frame, GreenbeatError, Trap, UncaughtException, frame_lines
from greenbeat.runtime import hooks, layout, traps
from greenbeat.wasm.description import Description, function_type_at
from greenbeat.wasm.printable import printable

MOST_FRAMES = 64
# To find a frame's offset its function is translated again: of no more bytes than these, but always the innermost.
MOST_TRANSLATED = 1 << 20
_RESOURCES = {
    hooks.FUEL: ("fuel", "out of fuel"),
    hooks.TIME: ("time", "out of time"),
    hooks.MEMORY: ("memory", "out of memory"),
    hooks.DEPTH: ("stack", "too many calls between Python and guests are waiting for each other"),
}


def told(function: Any) -> str:
    """A function's name, safe to show: guests choose the names of their exports."""
    return printable(function.name, 100)


def argument(function: Any, position: int, value: object, cause: BaseException | None) -> NoReturn:
    """An argument does not fit."""
    kind = function.type.params[position]
    error = mismatch(f"argument {position + 1} of {told(function)}{short(function.type)}", kind, value, cause)
    raise error from (cause if error is not cause and not isinstance(cause, TypeError | OverflowError) else None)


def argument_count(function: Any, given: int) -> NoReturn:
    """There are too many arguments, or too few."""
    wanted = len(function.type.params)
    plural = "argument" if wanted == 1 else "arguments"
    raise TypeError(f"{told(function)}{short(function.type)} takes {wanted} {plural}, not {given}")


def keywords(function: Any) -> NoReturn:
    """There are keyword arguments."""
    raise TypeError(f"{told(function)}{short(function.type)} takes positional arguments only")


def stopped(address: int, task: int, status: int) -> NoReturn:
    """The guest did not finish: it trapped, or its fuel ran out."""
    found = bridge.at(layout.Task, task)
    frames = backtrace(task)
    if status == layout.SUSPENDED:
        raise Exhausted("fuel", "out of fuel", frames)
    if found.trap == layout.TRAP_EXCEPTION:
        raise UncaughtException(_exception_values(found), frames)
    if found.trap == layout.TRAP_CANCELLED:
        raise Cancelled("the task was cancelled")
    if found.trap == layout.TRAP_TIME:
        raise Exhausted("time", traps.text(found.trap), frames)
    if found.trap in (layout.TRAP_STACK, layout.TRAP_DEPTH):
        raise Exhausted("stack", traps.text(found.trap), frames)
    if found.trap == layout.TRAP_NO_MEMORY:
        raise Exhausted("memory", traps.text(found.trap), frames)
    raise Trap(traps.text(found.trap), frames)


def _exception_values(task: Any) -> tuple[object, ...]:
    """What the exception that a task has carries; the task has it no more."""
    exception = ctypes.cast(task.exception, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(exception))
    task.exception = None
    tag = bridge.at(layout.Tag, int.from_bytes(exception[:8], sys.byteorder))
    words = ctypes.create_string_buffer(exception)
    params = function_type_at(tag.signature).params
    return tuple(
        bridge.native.read_value(kind, ctypes.addressof(words) + layout.SLOT * place)
        for place, kind in enumerate(params, 1)
    )


def exhausted(resource: int, task: int) -> NoReturn:
    """A limit was reached outside of guest code (`task` is 0), or at a beat."""
    kind, message = _RESOURCES[resource]
    raise Exhausted(kind, message, backtrace(task) if task else ())


def busy(function: Any) -> NoReturn:
    """The function's instance runs in another thread or task."""
    raise GreenbeatError(
        f"{told(function)}: its instance is running in another thread or task, and runs one call at a time: "
        "wait for that call, or make an instance for each thread and task"
    )


def dropped(function: Any) -> NoReturn:
    """The function's instance takes no calls any more."""
    raise GreenbeatError(f"{told(function)}: its instance is closed")


def close_awaitable(value: Any) -> None:
    """Nobody will await it: spare Python's warning."""
    close = getattr(value, "close", None)
    if callable(close):
        close()


def awaited_by_nobody(address: int, value: Any) -> NoReturn:
    """A host function returned something to be awaited, to a guest that does not run as a task of an event loop."""
    close_awaitable(value)
    raise TypeError(
        f"host function {name(address)} returned {described(value)}, which has to be awaited: call the guest by "
        "`await function.aio(...)`, or spawn it where an event loop runs"
    )


def result(address: int, position: int, value: object, cause: BaseException | None) -> NoReturn:
    """What a host function returned does not fit."""
    kind = function_type_at(bridge.at(layout.FunctionInstance, address).signature)
    what = f"host function {name(address)}{short(kind)}"
    if position < 0:
        raise TypeError(f"{what} must return a tuple of {len(kind.results)}, not {shown(value)}") from cause
    which = f"result {position + 1} of {what}" if len(kind.results) > 1 else f"the result of {what}"
    error = mismatch(which, kind.results[position], value, cause)
    raise error from (cause if error is not cause and not isinstance(cause, TypeError | OverflowError) else None)


def out_of_range(memory: Any, offset: Any, given: Any, count: int, reads: int, cause: Any) -> NoReturn:
    """The arguments of `Memory.read` (offset, size) or `Memory.write` (offset, data) are wrong.

    `cause` is what their conversion raised, if that went wrong.
    """
    if cause is not None and not isinstance(cause, TypeError | OverflowError | BufferError):
        raise cause
    method = "read" if reads else "write"
    if count != 2:
        raise TypeError(f"Memory.{method} takes 2 arguments, not {count}")
    length = len(memory)
    start = shown(whole(offset, "the offset"))
    if reads:
        size = shown(whole(given, "the size"))
        raise IndexError(f"{size} bytes from {start} are outside of a memory of {length} bytes")
    if isinstance(given, str) or not _is_buffer(given):
        raise TypeError(f"the data to write must be bytes-like, not {described(given)}")
    with memoryview(given) as data:
        if not data.c_contiguous:
            raise BufferError("the data to write must be contiguous")
        raise IndexError(f"{data.nbytes} bytes at {start} are outside of a memory of {length} bytes")


def _is_buffer(given: object) -> bool:
    try:
        memoryview(given).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def note(exception: BaseException, task: int) -> None:
    """An exception of a host function goes through a guest: say which."""
    frames = backtrace(task)
    if frames:
        exception.add_note("\n  ".join(["WebAssembly frames:", *frame_lines(frames)]))


def name(address: int) -> str:
    """What a function is called."""
    target = bridge.at(layout.FunctionInstance, address)
    if target.kind == layout.HOST:
        from greenbeat.api.function import host_callable

        callable = host_callable(address)
        return str(getattr(callable, "__name__", None) or type(callable).__name__)
    return _guest_name(target.instance, target.index)


def _description(instance: int) -> Description | None:
    from greenbeat.api.module import description_of

    return description_of(bridge.at(layout.Instance, instance).module)


def _guest_name(instance: int, index: int) -> str:
    description = _description(instance)
    found = description.function_name(index) if description is not None else None
    return printable(found, 100) if found else f"function {index}"


def backtrace(task: int) -> tuple[Frame, ...]:
    """The guest's frames, innermost first; of a deep recursion only the innermost."""
    records = (bridge.structure(layout.FrameRecord) * MOST_FRAMES)()
    count = bridge.native.walk_frames(task, ctypes.addressof(records), MOST_FRAMES)
    trapped = bridge.at(layout.Task, task).status == layout.TRAPPED
    known: dict[tuple[int, int], Frame] = {}
    left = MOST_TRANSLATED
    frames: list[Frame] = []
    for record in records[:count]:
        # The innermost ip of a trap is at the cell that was running, others are where a call returns to.
        ip = record.ip if trapped and not frames else record.ip - 1
        frame = known.get((record.instance, ip))
        if frame is None:
            module = bridge.at(layout.Module, bridge.at(layout.Instance, record.instance).module)
            size = ctypes.sizeof(bridge.structure(layout.Function))
            length = bridge.at(layout.Function, module.functions + record.index * size).body_length
            frame = known[record.instance, ip] = _frame(record, ip if left > 0 else None)
            left -= length
        frames.append(frame)
    return tuple(frames)


def _frame(record: Any, ip: int | None) -> Frame:
    """One frame, with the offset of the instruction whose cell `ip` points into."""
    module_address = bridge.at(layout.Instance, record.instance).module
    offset = bridge.native.instruction_offset(module_address, record.index, ip) or None if ip is not None else None
    description = _description(record.instance)
    if description is None:
        return Frame(None, record.index, offset)
    found, module = description.function_name(record.index), description.names.module
    return Frame(
        printable(found, 100) if found else None, record.index, offset, printable(module, 100) if module else None
    )


def segment_trap(error: Any) -> Trap:
    """The trap of a segment that does not fit at instantiation."""
    which = "data" if error.is_data else "element"
    trap = Trap(traps.text(error.trap))
    trap.add_note(f"{which} segment {error.index} does not fit")
    return trap


def register() -> None:
    """Register the hooks."""
    for number, hook in (
        (hooks.ARGUMENT, argument),
        (hooks.ARGUMENT_COUNT, argument_count),
        (hooks.KEYWORDS, keywords),
        (hooks.STOPPED, stopped),
        (hooks.EXHAUSTED, exhausted),
        (hooks.BUSY, busy),
        (hooks.DROPPED, dropped),
        (hooks.RESULT, result),
        (hooks.NOTE, note),
        (hooks.NAME, name),
        (hooks.RANGE, out_of_range),
        (hooks.AWAIT, awaited_by_nobody),
    ):
        bridge.native.set_hook(number, hook)


register()
