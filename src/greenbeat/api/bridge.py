"""The border between the Python API and the engine: native functions that take and give objects, and the native types.

FunctionType, Handle ...   made by the engine when this module is imported
native.new_group()         a native function by name; exceptions that it sets are raised
"""

import ctypes
import importlib
import os
import sys
import threading
import time
import types
from functools import cache
from typing import TYPE_CHECKING, Any

from greenbeat.engine import engine
from greenbeat.native import ctypes_of
from greenbeat.runtime import layout

_object = ctypes.py_object
_word = ctypes.c_uint64
_half = ctypes.c_uint32

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "new_group": (_object,),
    "keep": (_half, _object, _object),
    "adopt": (_half, _object, _half, _word),
    "adopt_instance": (_half, _object, _word),
    "merge_groups": (_half, _object, _object),
    "retained_count": (_word, _object),
    "new_host_function": (_word, _object, _word, _object),
    "new_host_global": (_word, _object, _half),
    "new_host_memory": (_word, _object, _word, _word),
    "new_host_table": (_word, _object, _word, _word),
    "new_handle": (_object, _object, _object, _word),
    "wrap_function": (_object, _word),
    "exported_function": (_object, _word, _half, _object),
    "read_value": (_object, _half, _word),
    "read_element": (_object, _word, _word),
    "write_value": (_half, _half, _object, _word, _object),
    "write_element": (_half, _word, _word, _object, _object),
    "grow_memory_by": (_word, _word, _word),
    "grow_table_by": (_word, _word, _word, _object, _object),
    "decode_module": (_word, _word, _word, ctypes.c_void_p, _half),
    "use_translations": (None, _word, _word, _word),
    "collect_translations": (_word, _word, ctypes.c_void_p, _word),
    "create_instance": (_word, _word, ctypes.c_void_p, _word, _word, ctypes.c_void_p),
    "call_with_words": (_half, _object, ctypes.c_void_p),
    "new_call": (_object, _object, _object),
    "resume_call": (_half, _object, ctypes.c_int64),
    "create_call_type": (_object,),
    "create_types": (_half, ctypes.c_void_p),
    "walk_frames": (_half, _word, _word, _half),
    "instruction_offset": (_word, _word, _half, _word),
    "start_interpreter": (None,),
    "current_task": (_word,),
    "set_hook": (None, _half, _object),
    "set_none": (None, _object),
    "set_coroutine_type": (None, _object),
    "set_main_thread": (None, _word),
    "set_guard_pages": (_half, _half),
    "begin_fork": (None,),
    "end_fork": (None,),
    "forget_other_threads": (None,),
    "forget_pacemaker": (None,),
    "prepare_tasks": (None,),
    "prepare_forks": (None,),
    "beat_faster": (None,),
    "set_beat": (None, _word),
    "set_fork_policy": (None, _half, _half),
    "keep_promoted": (None, _half),
    "promotion_count": (_word,),
    "start_tracing": (None, _word),
    "stop_tracing": (_half,),
    "first_ring": (_word,),
    "other_ring": (_word,),
    "forget_tracing": (None,),
    "prepare_samples": (None,),
    "start_profiling": (ctypes.c_bool, _word),
    "stop_profiling": (_word,),
    "set_code_map": (None, ctypes.c_void_p),
    "work_in_pool": (ctypes.c_bool,),
    "run_what_is_left": (None,),
    "stop_pool": (None, _half),
    "set_seats": (None, _half),
    "set_stack_cache": (None, _half),
    "forget_pool": (None,),
    "new_task": (_word, _word, _word),
    "start_task": (None, _word),
    "forget_task": (None, _word),
    "cancel_task": (None, _word),
    "task_ended": (ctypes.c_bool, _word),
    "join_task": (_half, _word, _word),
    "new_channel": (_word, _half, _half),
    "drop_channel": (None, _word),
    "close_channel": (ctypes.c_bool, _word),
    "give_back": (ctypes.c_bool, _word, ctypes.c_void_p),
    "forget_waiters": (None, _word),
    "undo_case": (None, ctypes.c_void_p, _half),
    "thread_transfer": (_half, _word, ctypes.c_void_p, _word, _half, _half),
    "thread_select": (_half, ctypes.c_void_p, _half, _word, _half),
    "new_bridge": (_word, ctypes.c_int32),
    "free_bridge": (None, _word),
    "pend_end": (_word, _word, _word, _word),
    "pend_channel": (_word, _word, _word, ctypes.c_void_p, _word, _half, ctypes.c_void_p),
    "pend_select": (_word, _word, ctypes.c_void_p, _half, _word, ctypes.c_void_p),
    "take_done": (_word, _word),
    "cancel_pending": (ctypes.c_bool, _word),
    "finish_pending": (_half, _word, ctypes.c_void_p),
    "finish_select": (_half, _word),
    "new_guest": (_word, _object, _object, _object),
    "new_call_guest": (_word, _object, _object),
    "guest_result": (_object, _word),
    "answer_guest": (_half, _word, _half, _object, _half),
    "sleep_at_bridge": (_half, _word, _word, _half),
}


class _Native:
    """Native functions as attributes."""

    def __getattr__(self, name: str) -> Any:
        returns, *params = _SIGNATURES[name]
        found = ctypes.PYFUNCTYPE(returns, *params)(engine.address(name))
        setattr(self, name, found)
        return found


native = _Native()


@cache
def structure(kind: Any) -> Any:
    """The ctypes structure of a struct of the engine."""
    return ctypes_of(kind)


def at(kind: Any, address: int) -> Any:
    """What is at an address, seen as a struct of the engine."""
    return structure(kind).from_address(address)


def _created() -> tuple[Any, ...]:
    native.set_none(None)
    native.set_coroutine_type(types.CoroutineType)
    native.set_main_thread(threading.main_thread().ident)
    native.start_interpreter()
    native.prepare_tasks()
    native.prepare_forks()
    places = (ctypes.c_void_p * 4)()
    native.create_types(places)
    made = []
    for place in places:
        found = ctypes.cast(place or 0, _object).value
        ctypes.pythonapi.Py_DecRef(_object(found))
        made.append(found)
    return (*made, native.create_call_type())


if TYPE_CHECKING:
    _function: Any
    _call: Any

    class Handle:
        """Something native that belongs to a group."""

        _owner: Any
        _address: int

    class MemoryHandle(Handle):
        """A handle whose buffer is the memory."""

        def __buffer__(self, flags: int, /) -> memoryview: ...
        def read(self, offset: int, size: int, /) -> bytes:
            """A copy of `size` bytes from `offset` on; IndexError if they are not all in the memory."""

        def write(self, offset: int, data: Any, /) -> None:
            """Put the bytes of `data`, any buffer, at `offset`; IndexError if they do not all fit."""

else:
    _group, Handle, MemoryHandle, _function, _call = _created()


def native_types() -> tuple[Any, Any]:
    """The types of functions and of resumable calls, to be completed in Python."""
    return _function, _call


def _being_imported() -> list[str]:
    """Modules of ours that some thread imports."""
    return [
        name
        for name, module in list(sys.modules.items())
        if name.startswith("greenbeat.") and getattr(getattr(module, "__spec__", None), "_initializing", False)
    ]


def _finish_imports() -> None:
    """Let other threads import what they do of ours: a child would wait for them for ever."""
    before: list[str] | None = None
    # What this thread imports itself stays.
    while (names := _being_imported()) != before:
        before = names
        for name in names:
            importlib.import_module(name)
        # Who waits for its turn has it now, and not between this look and the fork.
        time.sleep(0)


def _before_fork() -> None:
    _finish_imports()
    native.begin_fork()


def _after_fork_in_parent() -> None:
    native.end_fork()


def _after_fork() -> None:
    native.end_fork()
    native.forget_pacemaker()
    native.forget_other_threads()
    native.set_main_thread(threading.main_thread().ident)
    native.forget_pool()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
if os.environ.get("GREENBEAT_GUARD_PAGES") == "0":
    native.set_guard_pages(0)


def address_of(handle: Handle) -> int:
    """The address of what a handle holds.

    Raises:
        ReferenceError: the garbage collector has taken it apart.
    """
    address = handle._address
    if not address:
        raise ReferenceError(f"this {type(handle).__name__} is gone")
    return address


def address_of_buffer(data: Any) -> tuple[int, object]:
    """Where the bytes of a `bytes` object or a writable buffer are, and what keeps them there."""
    if isinstance(data, bytes):
        return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0, data
    kept = (ctypes.c_char * len(data)).from_buffer(data)
    return ctypes.addressof(kept), kept


def group_of(item: Any) -> Any:
    """The group that a handle or function belongs to."""
    owner = item._owner
    if owner is None:
        raise ReferenceError(f"this {type(item).__name__} is gone")
    return owner


__all__ = [
    "Handle",
    "MemoryHandle",
    "address_of",
    "address_of_buffer",
    "at",
    "group_of",
    "layout",
    "native",
    "native_types",
    "structure",
]
