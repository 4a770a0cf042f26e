"""Faults in guarded memories become traps.

    load handler ──▶ page without access ──▶ SIGSEGV ──▶ fault_handler ──▶ saved pc := fault_target ──▶ back in `run`
                                                          │ not ours
                                                          └──▶ whoever handled the signal before

A fault is ours only if the pc lies in the code of the interpreter's handlers and the address in a registered
reservation. Those handlers keep their state in registers, so a function with their signature can be entered in their
place, with the registers as they were and the stack as it was when the first handler was entered: that is
`fault_target`. Everything else goes to the earlier handler, unchanged, or to the system's default.

The signal handler reads the reservations without a lock. An entry is written end first and erased start first, so a
reader sees no range that is not reserved.
"""

import platform
import sys

import llvmlite.binding as llvm

from greenbeat.native import (
    addressof,
    array,
    atomic_load,
    atomic_store,
    cast,
    function,
    i32,
    native,
    ptr,
    stack,
    static,
    struct,
    u8,
    u32,
    u64,
)
from greenbeat.runtime.layout import Task
from greenbeat.runtime.system import Action, pthread_kill, pthread_self, sigaction

# Byte offset of the program counter in Linux's `ucontext_t`, by processor.
PROGRAM_COUNTERS = {"x86_64": 40 + 16 * 8, "aarch64": 176 + 8 + 32 * 8}
# On x86-64: of the stack pointer, and of the register that holds a handler's task (the fifth argument of
# preserve_none).
STACK_POINTER, TASK = 40 + 15 * 8, 40 + 8 * 8
PROCESSOR = llvm.get_process_triple().split("-")[0]
SUPPORTED = sys.platform == "linux" and PROCESSOR in PROGRAM_COUNTERS and platform.libc_ver()[0] in ("glibc", "")
PROGRAM_COUNTER = PROGRAM_COUNTERS.get(PROCESSOR, 0)
FAULT_ADDRESS = 16
FAULT_CODE = 8

SIGBUS, SIGSEGV = 7, 11
SA_SIGINFO, SA_ONSTACK, SA_NODEFER = 4, 0x0800_0000, 0x4000_0000
SIG_DFL, SIG_IGN = 0, 1
# A quarter of a 47-bit address space: what else a process maps needs room too.
RESERVATIONS = 1 << 12


@struct
class Reservation:
    """Addresses from `start` up to `end`; `start` is 0 in a free entry."""

    start: u64
    end: u64


handlers_start = static(u64, name="handlers_start")
handlers_end = static(u64, name="handlers_end")
fault_target = static(u64, name="fault_target")

reservations = static(array[Reservation, RESERVATIONS], name="reservations")
reservations_used = static(u32, name="reservations_used")
earlier_segv = static(Action, name="earlier_segv")
earlier_bus = static(Action, name="earlier_bus")
forwarding = static(u32, name="forwarding")


@native
def register_reservation(base: ptr[u8], size: u64) -> bool:
    """Let faults in these addresses be traps; False when the list is full."""
    for i in range(u32(RESERVATIONS)):
        entry = reservations + i
        if entry.start == 0:
            entry.end = cast(u64, base) + size
            atomic_store(addressof(entry.start), cast(u64, base), "release")
            if i >= reservations_used[0]:
                atomic_store(reservations_used, i + 1, "release")
            return True
    return False


@native
def forget_reservation(base: ptr[u8]) -> None:
    """Undo `register_reservation`."""
    for i in range(reservations_used[0]):
        entry = reservations + i
        if entry.start == cast(u64, base):
            atomic_store(addressof(entry.start), u64(0), "release")


@native
def is_reserved(address: u64) -> bool:
    """Whether an address lies in a guarded memory; safe in a signal handler."""
    for i in range(atomic_load(reservations_used, "acquire")):
        entry = reservations + i
        start = atomic_load(addressof(entry.start), "acquire")
        if start != 0 and address >= start and address < entry.end:
            return True
    return False


@native
def forward(signal: i32, details: ptr[u8], context: ptr[u8]) -> None:
    """Hand a signal that is not ours to whoever handled it before us."""
    earlier = earlier_bus if signal == SIGBUS else earlier_segv
    handler = earlier.handler
    # A handler that was called may restore us and raise the signal again: then it has had its turn.
    if forwarding[0] != 0 or handler == SIG_DFL or (handler == SIG_IGN and load_code(details) > 0):
        default = stack(Action)
        default.handler = SIG_DFL
        default.flags = 0
        for i in range(16):
            default.mask[i] = 0
        sigaction(signal, default, None)
        pthread_kill(pthread_self(), signal)
        return
    if handler == SIG_IGN:
        return
    forwarding[0] = 1
    if earlier.flags & SA_SIGINFO != 0:
        cast(function[[i32, ptr[u8], ptr[u8]], None], handler)(signal, details, context)
    else:
        cast(function[[i32], None], handler)(signal)
    forwarding[0] = 0


@native
def load_code(details: ptr[u8]) -> i32:
    """`si_code`: above 0 when an instruction of this thread faulted."""
    return cast(ptr[i32], details + FAULT_CODE)[0]


@native
def fault_handler(signal: i32, details: ptr[u8], context: ptr[u8]) -> None:
    """The handler of SIGSEGV and SIGBUS."""
    counter = cast(ptr[u64], context + PROGRAM_COUNTER)
    address = cast(ptr[u64], details + FAULT_ADDRESS)[0]
    in_handlers = counter[0] >= handlers_start[0] and counter[0] < handlers_end[0]
    if load_code(details) > 0 and in_handlers and is_reserved(address):
        if PROCESSOR == "x86_64":
            # Checked handlers may have pushed something: go on with the stack as it was when the first handler was
            # entered.
            task = cast(ptr[ptr[Task]], context + TASK)[0]
            task.accumulator = counter[0]
            cast(ptr[u64], context + STACK_POINTER)[0] = cast(u64, task.native_stack)
        counter[0] = fault_target[0]
        return
    forward(signal, details, context)


@native
def install_for(signal: i32, earlier: ptr[Action]) -> bool:
    """Be the first to get a signal."""
    now = stack(Action)
    if sigaction(signal, None, now) != 0:
        return False
    own = cast(u64, addressof(fault_handler))
    if now.handler == own:
        return True
    action = stack(Action)
    action.handler = own
    action.flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER
    for i in range(16):
        action.mask[i] = 0
    if sigaction(signal, action, earlier) != 0:
        return False
    return True


@native
def install_fault_handler() -> bool:
    """Make sure that faults come to us first, whoever installed a handler since; False where that is not possible."""
    if SUPPORTED:
        return install_for(SIGSEGV, earlier_segv) and install_for(SIGBUS, earlier_bus)
    return False


@native
def reservation_count() -> u32:
    """How many guarded memories there are."""
    count = u32(0)
    for i in range(reservations_used[0]):
        if reservations[i].start != 0:
            count += 1
    return count
