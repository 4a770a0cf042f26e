"""The hot path through assembly, on small pieces written by hand."""

from greenbeat.disassembly.machine import Assembly, Cost

X86 = """
	.text
	.globl	plain
plain:                                  # @plain
	movl	8(%r12), %eax
	# a comment
	movq	8(%r12), %rax
	rex64 jmpq	*%rax
.Lfunc_end0:

"checked.one":
	pushq	%rbx
	cmpl	$0, 8(%rdi)
	jne	.LBB1_1
	movl	%eax, 8(%rsp)
	leaq	8(%rsp), %rdi
	callq	helper
	popq	%rbx
	jmpq	*%rax
.LBB1_1:
	jmp	slow

slow:
	movl	$1, %eax
	jmpq	*%rax

stops:
	cmpl	$0, %eax
	je	.LBB3_1
	retq
.LBB3_1:
	ud2

backwards:
	cmpl	$0, %eax
	je	.LBB4_2
	retq
.LBB4_2:
	jmp	plain

loops:
	cmpl	$0, %eax
	jne	loops
	jmp	loops
"""

ARM = """
_pairs:
	stp	x29, x30, [sp, #-16]!           ; 16-byte Folded Spill
	stp	x20, x19, [sp, #32]
	str	x0, [sp, #8]
	bl	_helper
	cbz	x0, LBB0_1
	ldp	x29, x30, [sp], #16             ; 16-byte Folded Reload
	br	x3
LBB0_1:
	ret
_straight:
	ldr	x0, [x20, #16]!
	b.ne	LBB1_1
	br	x0
LBB1_1:
	b	_pairs
"""


def test_x86() -> None:
    assembly = Assembly(X86, x86=True, cold=["slow"])
    assert assembly.cost("plain") == Cost(3, 0, 0)
    # The address of a place on the stack is no operand in memory; the call counts as one.
    assert assembly.cost("checked.one") == Cost(8, 1, 2)
    assert assembly.cost("stops") is None
    assert assembly.cost("loops") is None
    assert assembly.cost("backwards") == Cost(6, 0, 0)
    # A cold handler has a cost of its own.
    assert assembly.cost("slow") == Cost(2, 0, 0)


def test_a_cold_handler_is_the_last_resort() -> None:
    text = "hot:\n\tjmp\tcold\ncold:\n\tjmpq\t*%rax\n"
    assert Assembly(text, x86=True, cold=["cold"]).cost("hot") == Cost(2, 0, 0)
    text = "hot:\n\tjne\t.L1\n\tjmp\tcold\n.L1:\n\tnop\n\tnop\n\tjmpq\t*%rax\ncold:\n\tjmpq\t*%rax\n"
    assert Assembly(text, x86=True, cold=["cold"]).cost("hot") == Cost(4, 0, 0)
    assert Assembly(text, x86=True).cost("hot") == Cost(3, 0, 0)


def test_aarch64() -> None:
    assembly = Assembly(ARM, x86=False)
    assert assembly.cost("_pairs") == Cost(7, 3, 4)
    assert assembly.cost("_straight") == Cost(3, 0, 0)
