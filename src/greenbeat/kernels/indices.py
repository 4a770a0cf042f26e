"""Which indices in a loop's body can be checked before the loop.

A loop over a range whose body has such indices is compiled twice: if a look at the first and the last value shows that
all of them stay inside, a loop runs that checks none of them and can be vectorised; else one that checks each.

    for i in range(low, high):              if 0 <= low - 1 and high - 1 < len(a) and ...:
        b[i] = a[i - 1] + c[k]     ─▶           loop without checks of b[i], a[i - 1] and c[k]
                                            else:
                                                loop with checks
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass

# A body with more nodes than this is not worth twice the code.
LARGEST_BODY = 300


@dataclass(frozen=True)
class Candidate:
    """An index: of which array (by name) and dimension, and what it is.

    Attributes:
        shift: what is added to the counter; None if the counter is not in it.
    """

    array: str
    dimension: int
    node: ast.expr
    shift: int | None

    @property
    def text(self) -> str:
        """The index as it is written."""
        return ast.unparse(self.node)


def inside(body: list[ast.stmt]) -> list[ast.AST]:
    """Everything inside of a suite."""
    return [node for statement in body for node in ast.walk(statement)]


def assigned(body: list[ast.stmt]) -> set[str]:
    """The names that a suite assigns."""
    names = {n.id for n in inside(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {n.name for n in inside(body) if isinstance(n, ast.MatchAs) and n.name is not None}


def candidates(body: list[ast.stmt], counter: str, is_fixed: Callable[[str], bool]) -> list[Candidate]:
    """The indices of a body that are the counter, the counter plus a constant, or a fixed integer.

    `is_fixed` tells whether a name is an integer variable that is known before the loop.
    """
    nodes = inside(body)
    if len(nodes) > LARGEST_BODY:
        return []
    changing = assigned(body) | {counter}
    found: dict[tuple[str, int, str], Candidate] = {}
    for node in nodes:
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            continue
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for dimension, index in enumerate(indices):
            shift = _shift(index, counter) if counter not in assigned(body) else None
            if shift is None and not (isinstance(index, ast.Name) and index.id not in changing and is_fixed(index.id)):
                continue
            candidate = Candidate(node.value.id, dimension, index, shift)
            found[candidate.array, dimension, candidate.text] = candidate
    return list(found.values())


def _shift(node: ast.expr, counter: str) -> int | None:
    """What is added to the counter in an index."""
    if isinstance(node, ast.Name):
        return 0 if node.id == counter else None
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name) and node.left.id == counter:
        if isinstance(node.right, ast.Constant) and type(node.right.value) is int and node.right.value < 1 << 30:
            if isinstance(node.op, ast.Add | ast.Sub):
                return node.right.value if isinstance(node.op, ast.Add) else -node.right.value
    return None
