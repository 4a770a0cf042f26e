"""The switch from one stack to another: the one file with machine instructions.

    switch(save, target, fiber)     push where to go on and the frame pointer; store the stack pointer at `save`;
                                    take `target` as stack pointer; pop both, and jump

Every other register is declared clobbered, so the compiler keeps nothing in them. The jump is indirect and not a
return: a return that the processor did not see a call for costs ten times as much. What `fiber` was on one side is the
result on the other; a fiber that has not begun yet has it as third argument.

A function that expands `switch` must be `noredzone`, since the switch pushes.
"""

from greenbeat.native import addressof, cast, inline, inline_assembly, ptr, store, u8, u64
from greenbeat.native.targets import target_triple
from greenbeat.tasks.layout import Fiber

PROCESSOR = target_triple().split("-")[0]

if PROCESSOR in ("aarch64", "arm64"):
    TEXT = (
        "adr x9, 1f\nstp x29, x9, [sp, #-16]!\nmov x10, sp\nstr x10, [x0]\nmov sp, x1\n"
        "ldp x29, x9, [sp], #16\nbr x9\n1:"
    )
    PLACES = ("x2", "x0", "x1")
    CLOBBERS = [f"x{i}" for i in (*range(3, 18), *range(19, 29), 30)] + [f"v{i}" for i in range(32)] + ["memory", "cc"]
    # Saved words: frame pointer, where to go on.
    SAVED_FRAME, SAVED_ENTRY = 0, 8
    ENTRY_OFFSET = 0
else:
    TEXT = (
        "leaq 1f(%rip), %rax\npushq %rbp\npushq %rax\nmovq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %rax\npopq %rbp\njmpq *%rax\n.p2align 4\n1:"
    )
    PLACES = ("rdx", "rdi", "rsi")
    CLOBBERS = [
        *("rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
        *(f"xmm{i}" for i in range(32)),
        *(f"k{i}" for i in range(8)),
        *("memory", "dirflag", "fpsr", "flags"),
    ]
    SAVED_FRAME, SAVED_ENTRY = 8, 0
    # A function is entered by a call, which has pushed 8 bytes.
    ENTRY_OFFSET = 8

# Bytes that the first switch to a stack takes from it.
FIRST_FRAME = 16 + ENTRY_OFFSET
OUTPUTS = ",".join(f"={{{place}}}" for place in PLACES)
CONSTRAINTS = f"{OUTPUTS},0,1,2,{','.join(f'~{{{name}}}' for name in CLOBBERS)}"
# The results of the instructions, of which only the first means something.
RESULTS = (ptr[Fiber], u64, u64)


@inline
def switch(save: ptr[ptr[u8]], target: ptr[u8], fiber: ptr[Fiber]) -> ptr[Fiber]:
    """Go on with the stack pointer `target`, leaving ours at `save`; returns when somebody switches back."""
    return inline_assembly(TEXT, CONSTRAINTS, RESULTS, fiber, save, target)


@inline
def first_stack_pointer(top: ptr[u8], entry) -> ptr[u8]:
    """Make the stack that ends at `top`, aligned to 16, such that a switch to the result enters `entry`."""
    saved = top - FIRST_FRAME
    store(saved, u64(0), SAVED_FRAME)
    store(saved, cast(u64, addressof(entry)), SAVED_ENTRY)
    if ENTRY_OFFSET != 0:
        store(saved, u64(0), 16)
    return saved
