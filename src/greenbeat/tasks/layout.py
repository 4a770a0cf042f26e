"""What native code of tasks and compiled kernels share in memory.

A Fiber lies at the top of its stack slot; its words, and below them its frames, lie under it.
"""

from greenbeat.native import function, ptr, struct, u8, u32, u64, void

# `Fiber.status` after its entry has come back, or was abandoned.
FINISHED, FAILED = 0, 1


@struct
class Fiber:
    """A stack of its own, and what runs on it."""

    floor: ptr[u8]  # native frames may not go below; the pacemaker raises it to all ones to get attention
    pulse: u32  # set by the pacemaker
    status: u32
    services: ptr["KernelServices"]
    words: ptr[u64]  # arguments on entry, results on return: below the Fiber in its stack slot
    entry: function[[ptr["Fiber"]], None]  # the thunk that runs on the fiber's stack
    failure: ptr[void]  # the Site of the failure when status is FAILED


@struct
class KernelServices:
    """What compiled kernels call, in C's convention: a table, so that cached code needs no engine addresses."""

    poll: function[[ptr[Fiber], ptr[u8]], None]  # pulse was seen non-zero at a loop's back edge
    overflow: function[[ptr[Fiber], ptr[u8]], None]  # the check at a function's entry failed: attention, or no stack
    fail: function[[ptr[Fiber], ptr[void]], None]  # abandons the fiber's frames; does not return
