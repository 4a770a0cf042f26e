"""Calls whose arguments and results stay words: nothing is converted, so the bits of every NaN arrive as they are.

    words ─▶ │ argument 0 │ argument 1 │ ... │ before the call
    words ─▶ │ result 0   │ ...              │ behind it

Python floats cannot stand for an f32 that is a signalling NaN: the conversion from and to f64 makes it quiet. What has
to see or send such values calls a function this way. A word is what a slot is: 32-bit values are in its lower half,
references are made and read with `write_value` and `read_value`.
"""

from greenbeat.native import cast, copy, export, native, ptr, u32, u64
from greenbeat.runtime.callable import argument_slot, enter, raise_about, run_guest_here
from greenbeat.runtime.functions import FunctionObject
from greenbeat.runtime.hooks import DROPPED
from greenbeat.runtime.layout import FINISHED, SLOT
from greenbeat.runtime.tasks import this_thread
from greenbeat.tasks.layout import Worker
from greenbeat.tasks.slots import release_slot, task_of
from greenbeat.tasks.threads import worker_of
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
    signature = target.signature
    thread = this_thread()
    worker = worker_of(thread) if thread is not None else cast(ptr[Worker], 0)
    fiber = argument_slot(worker, target, run_guest_here, 1)
    if fiber is None:
        return 0
    task = task_of(fiber)
    copy(task.stack, words, u64(signature.param_count) * SLOT)
    status = enter(self, thread, worker, fiber, target)
    if status == FINISHED:
        copy(words, task.stack, u64(signature.result_count) * SLOT)
        clear_halves(signature.results, signature.result_count, words)
    release_slot(worker, fiber)
    return u32(status == FINISHED)
