"""Calls whose arguments and results stay words: nothing is converted, so the bits of every NaN arrive as they are.

    words ─▶ │ argument 0 │ argument 1 │ ... │ before the call
    words ─▶ │ result 0   │ ...              │ behind it

Python floats cannot stand for an f32 that is a signalling NaN: the conversion from and to f64 makes it quiet. What has
to see or send such values calls a function this way. A word is what a slot is: 32-bit values are in its lower half,
references are made and read with `write_value` and `read_value`.
"""

from greenbeat.native import copy, export, native, ptr, u32, u64, unlikely
from greenbeat.runtime.callable import enter, raise_about, raise_exhausted
from greenbeat.runtime.functions import FunctionObject
from greenbeat.runtime.hooks import DROPPED, STACK
from greenbeat.runtime.layout import FINISHED, SLOT, STACK_MARGIN
from greenbeat.runtime.pythonapi import PyErr_NoMemory
from greenbeat.runtime.tasks import this_thread
from greenbeat.wasm.valuetypes import F32, I32


@native
def clear_halves(kinds: ptr[u32], count: u32, words: ptr[u64]) -> None:
    """32-bit results are the lower halves of their words: make the upper ones zero."""
    for i in range(count):
        if kinds[i] == I32 or kinds[i] == F32:
            words[i] = u64(u32(words[i]))


@export
def call_with_words(self: ptr[FunctionObject], words: ptr[u64]) -> u32:
    """Call a function.

    Args:
        self: the function; the caller keeps it alive.
        words: has room for the arguments and for the results. References among the arguments are known to the
            function's group;
            those among the results must become objects before anything else is called.

    Returns:
        1, or 0 with an exception set.
    """
    target = self.target
    if target is None:
        raise_about(self, DROPPED)
        return 0
    thread = this_thread()
    if thread is None:
        PyErr_NoMemory()
        return 0
    signature = target.signature
    task = thread.task
    frame = task.top
    top = frame + (u64(signature.param_count) + u64(signature.result_count)) * SLOT
    if unlikely(top > task.stack_end - STACK_MARGIN):
        raise_exhausted(STACK)
        return 0
    task.top = top
    copy(frame, words, u64(signature.param_count) * SLOT)
    status = enter(self, thread, task, target, frame)
    if status == FINISHED:
        copy(words, frame, u64(signature.result_count) * SLOT)
        clear_halves(signature.results, signature.result_count, words)
    task.top = frame
    return u32(status == FINISHED)
