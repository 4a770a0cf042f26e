"""Which kernels are over at once: loops around their calls need not look at the pulse each time, and LLVM inlines them.

A short kernel has no loops, and calls nothing but short kernels and what is an operation or two.
"""

import ast
import builtins
from typing import Any

from greenbeat.kernels import intrinsics
from greenbeat.kernels.source import KernelFunction
from greenbeat.native import types as t
from greenbeat.native.source import stored_names

# Nodes of the syntax trees of a short kernel, with what it calls.
MOST_NODES = 400


def is_short(kernel: KernelFunction) -> bool:
    """Whether a kernel is over at once."""
    return size(kernel, []) <= MOST_NODES


def size(kernel: KernelFunction, callers: list[KernelFunction]) -> int:
    """How many nodes run at most in a call of a kernel; more than MOST_NODES if there is no telling."""
    too_many = MOST_NODES + 1
    if any(kernel is caller for caller in callers):
        return too_many
    tree = kernel.tree()
    nodes = [node for statement in tree.body for node in ast.walk(statement)]
    total = len(nodes)
    own = stored_names(tree)
    for node in nodes:
        if total > MOST_NODES or isinstance(node, ast.For | ast.While):
            return too_many
        if isinstance(node, ast.Call):
            called = meaning(node.func, kernel, own)
            function = getattr(called, "_function", None)
            found = intrinsics.find(called)
            if isinstance(function, KernelFunction):
                total += size(function, [*callers, kernel])
            elif found.calls if found is not None else not is_conversion(called):
                return too_many
    return total


def is_conversion(called: Any) -> bool:
    """Whether this is a type of numbers."""
    return isinstance(getattr(called, "kernel_type", called), t.IntegerType | t.FloatType)


def meaning(node: ast.expr, kernel: KernelFunction, own: frozenset[str]) -> Any:
    """The object that a name, or an attribute of one, means; None if it is a variable's."""
    if isinstance(node, ast.Attribute):
        return getattr(meaning(node.value, kernel, own), node.attr, None)
    if not isinstance(node, ast.Name) or node.id in own or node.id in kernel.code.co_varnames:
        return None
    names = {**vars(builtins), **kernel.python.__globals__, **kernel.environment}
    return names.get(node.id)
