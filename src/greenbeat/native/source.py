"""From a Python function to its syntax tree, with the file's own line numbers.

Each file is parsed once, however many specialisations of its functions are compiled.
"""

import ast
from functools import cache
from types import CodeType

from greenbeat.native.errors import NativeError


@cache
def _functions(file: str) -> dict[tuple[str, int], ast.FunctionDef]:
    with open(file, encoding="utf-8") as source:
        tree = ast.parse(source.read(), file)
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            found[node.name, first] = node
    return found


def function_tree(code: CodeType) -> ast.FunctionDef:
    """The syntax tree of the function that `code` was compiled from.

    Raises:
        NativeError: its source is not at hand, or it is no `def`.
    """
    try:
        return _functions(code.co_filename)[code.co_name, code.co_firstlineno]
    except (OSError, KeyError, SyntaxError):
        raise NativeError(
            f"the source of {code.co_name} cannot be found: native code must be a `def` in a file",
            code.co_filename,
            code.co_firstlineno,
            1,
        ) from None


@cache
def stored_names(tree: ast.FunctionDef) -> frozenset[str]:
    """Names that the function's body assigns: its local variables, as Python's own rule has it."""
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
