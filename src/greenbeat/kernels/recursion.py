"""Parameters that a recursion hands on unchanged: stored once, by the call from outside, and found by a pointer.

    total(values, left, right, node):                 total.body(unchanged, node):
        unchanged ─▶ │ values │ left │ right │            ... total(values, left, right, left[node])
        total.body(unchanged, node)                           ──▶ total.body(unchanged, left[node])

An array is two words or more. They would be passed at every call, and written into the record of every fork.
"""

import ast
from collections.abc import Iterator

from greenbeat.kernels.short import meaning
from greenbeat.kernels.source import CONVENTION, KernelFunction
from greenbeat.kernels.statements import result_ir
from greenbeat.kernels.types import word_count
from greenbeat.native import types as t
from greenbeat.native.source import stored_names

# Fewer words are as well off in registers.
LEAST_WORDS = 3
# The parameter that points to the others.
UNCHANGED = "%unchanged"


def unchanged_parameters(kernel: KernelFunction) -> frozenset[int]:
    """The numbers of the parameters that a kernel hands on to itself as they are; none if that saves nothing."""
    tree = kernel.tree()
    own = stored_names(tree)
    calls = [
        node
        for statement in tree.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and getattr(meaning(node.func, kernel, own), "_function", None) is kernel
    ]
    whole = all(
        len(call.args) == len(kernel.parameters) and not any(isinstance(each, ast.Starred) for each in call.args)
        for call in calls
    )
    if not calls or not whole:
        return frozenset()

    def is_handed_on(number: int, name: str) -> bool:
        handed = (call.args[number] for call in calls)
        return name not in own and all(isinstance(each, ast.Name) and each.id == name for each in handed)

    found = [number for number, (name, _) in enumerate(kernel.parameters) if is_handed_on(number, name)]
    words = sum(word_count(kernel.parameters[number][1]) for number in found)
    return frozenset(found if words >= LEAST_WORDS else ())


def body_symbol(kernel: KernelFunction) -> str:
    """The symbol of the function that has the kernel's code, if some of its parameters are unchanged."""
    return f"{kernel.symbol}.body"


def kind_and_name(head: str) -> tuple[str, str]:
    """Of a parameter as LLVM has it, which may have attributes between them."""
    return head.split(" ", 1)[0], head.rsplit(" ", 1)[1]


def loads(heads: list[str], sizes: str) -> Iterator[str]:
    """Instructions that load what is unchanged: parameters as LLVM has them, a word each.

    `sizes` is the metadata node of the range of what is not negative.
    """
    for place, head in enumerate(heads):
        kind, name = kind_and_name(head)
        yield f"  {name}.at = getelementptr i64, ptr {UNCHANGED}, i64 {place}"
        if kind == t.BOOL.ir:
            yield f"  {name}.byte = load i8, ptr {name}.at, align 8"
            yield f"  {name} = trunc i8 {name}.byte to i1"
        else:
            known = f", !range {sizes}" if " range(" in head else ""
            yield f"  {name} = load {kind}, ptr {name}.at, align 8{known}"


def wrapper(kernel: KernelFunction, all_heads: list[list[str]], unchanged: frozenset[int]) -> str:
    """The kernel as others call it: it stores what is unchanged, and calls the body.

    Args:
        kernel: the kernel.
        all_heads: LLVM's parameters for each of its parameters.
        unchanged: the numbers of those that do not change.
    """
    kind = result_ir(kernel.result)
    flat = [head for heads in all_heads for head in heads]
    kept = [head for number in sorted(unchanged) for head in all_heads[number]]
    passed = [head for number, heads in enumerate(all_heads) if number not in unchanged for head in heads]
    lines = [
        f'define internal {CONVENTION} {kind} @"{kernel.symbol}"(ptr %fiber, ptr %fork_top, {", ".join(flat)}) '
        "alwaysinline nounwind {",
        f"  {UNCHANGED} = alloca [{len(kept)} x i64], align 8",
    ]
    for place, head in enumerate(kept):
        word, name = kind_and_name(head)
        value = name
        lines.append(f"  {name}.at = getelementptr i64, ptr {UNCHANGED}, i64 {place}")
        if word == t.BOOL.ir:
            lines.append(f"  {name}.wide = zext i1 {name} to i64")
            word, value = "i64", f"{name}.wide"
        lines.append(f"  store {word} {value}, ptr {name}.at, align 8")
    arguments = ["ptr %fiber", "ptr %fork_top", f"ptr {UNCHANGED}"]
    arguments += [" ".join(kind_and_name(head)) for head in passed]
    target = "" if kind == "void" else "%r = "
    lines.append(f'  {target}call {CONVENTION} {kind} @"{body_symbol(kernel)}"({", ".join(arguments)})')
    lines.append("  ret void" if kind == "void" else f"  ret {kind} %r")
    return "\n".join([*lines, "}"])
