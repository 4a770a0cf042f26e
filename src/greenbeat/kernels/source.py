"""A kernel as it was written: its text, its signature, and where in its file something is.

The text is taken when the function is decorated, since a file may be edited while the process runs. Nothing here
imports the compiler: a kernel that was compiled before is found in the cache by its text alone.
"""

import linecache
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from greenbeat.errors import KernelError
from greenbeat.kernels.types import MOST_ARRAYS, MOST_WORDS, ArrayType, array_count, kernel_type, word_count
from greenbeat.native.language import NativeFunction
from greenbeat.native.types import VOID, Type

if TYPE_CHECKING:
    import ast

# Flags of code objects.
VARARGS, VARKEYWORDS, GENERATOR, COROUTINE, ASYNC_GENERATOR = 4, 8, 32, 128, 512
# Of every compiled function. Measured on fib: tailcc, whose callees pop their arguments, takes 1.1 times as long.
CONVENTION = "fastcc"


class KernelFunction(NativeFunction):
    """A function that is a kernel.

    Attributes:
        parameters: names and types.
        result: the type of what it returns.
        lines: the lines of its source, from its first decorator on.
        told: how messages call its arguments, if they are not its user's but were given to `pmap` for example.
    """

    def __init__(self, python: Callable[..., Any]) -> None:
        super().__init__(python, convention=CONVENTION)
        self.file, self.first_line = self.code.co_filename, self.code.co_firstlineno
        self.lines = self._taken()
        self.result: Type = VOID
        self.told: list[str] = []
        self.parameters: list[tuple[str, Type]] = []
        self._read_signature()

    # ---------------------------------------------------------------- text

    def _taken(self) -> list[str]:
        """The function's lines: those that its code says, and what is indented below them."""
        linecache.checkcache(self.file)
        lines = linecache.getlines(self.file, self.python.__globals__)
        first = self.first_line - 1
        if first >= len(lines):
            self.fail(
                f"the source of {self.python.__name__} is not at hand: a kernel is a `def` in a file, a notebook, or "
                "whatever else Python's tracebacks can show",
                self.first_line,
            )
        if self.python.__name__ == "<lambda>":
            self.fail("a kernel is a `def`, not a lambda", self.first_line)
        last = max((p[1] or 0 for p in self.code.co_positions()), default=0)
        last = max(last, self.first_line)
        margin = _indentation(lines[first])
        while last < len(lines):
            text = lines[last].strip()
            if text and not text.startswith("#") and _indentation(lines[last]) <= margin:
                break
            last += 1
        while last > self.first_line and not lines[last - 1].strip():
            last -= 1
        return lines[first:last]

    def text_at(self, line: int) -> str:
        """A line of the function, by its number in the file."""
        position = line - self.first_line
        return self.lines[position].rstrip("\n") if 0 <= position < len(getattr(self, "lines", ())) else ""

    def tree(self) -> "ast.FunctionDef":
        """The function's syntax tree, with the file's own line numbers."""
        import ast

        # An indented function is parsed inside of a statement, which takes one line of its own.
        nested = _indentation(self.lines[0]) > 0
        try:
            module = ast.parse("if True:\n" * nested + "".join(self.lines))
            body = module.body[0].body if nested else module.body  # type: ignore[attr-defined]
            found = body[0]
        except (SyntaxError, IndexError):
            found = None
        if not isinstance(found, ast.FunctionDef) or found.name != self.code.co_name:
            self.fail(f"the source of {self.python.__name__} cannot be read: a kernel is a `def`", self.first_line)
        ast.increment_lineno(found, self.first_line - 1 - nested)
        return found

    def fail(self, message: str, line: int = 0, column: int = 1) -> NoReturn:
        """Refuse the function."""
        line = line or self.definition_line
        raise KernelError(message, self.file, line, column, self.text_at(line))

    @property
    def definition_line(self) -> int:
        """The line of the `def`."""
        for number, text in enumerate(self.lines, self.first_line):
            if text.lstrip().startswith(("def ", "async def ")):
                return number
        return self.first_line

    # ---------------------------------------------------------------- signature

    def _read_signature(self) -> None:
        code, name = self.code, self.python.__name__
        if code.co_flags & (GENERATOR | COROUTINE | ASYNC_GENERATOR):
            self.fail(f"{name} is a generator or coroutine: a kernel is a plain function that returns once")
        if code.co_flags & (VARARGS | VARKEYWORDS) or code.co_kwonlyargcount:
            self.fail("a kernel's parameters are positional, without * and **")
        annotations = self.python.__annotations__
        self._refuse_methods()
        for parameter in code.co_varnames[: code.co_argcount]:
            if parameter not in annotations:
                self._fail_at(parameter, f"parameter {parameter!r} needs a type, as in `{parameter}: int`")
            kind = self._resolved(annotations[parameter], parameter)
            if kind == VOID:
                self._fail_at(parameter, f"parameter {parameter!r} cannot be None")
            self.parameters.append((parameter, kind))
        if "return" not in annotations:
            self.fail(f"{name} needs the type of its result, as in `-> int` or `-> None`")
        self.result = self._resolved(annotations["return"], "->")
        if isinstance(self.result, ArrayType):
            self._fail_at("->", "a kernel returns numbers, bools and tuples: arrays are filled in place")
        kinds = [kind for _, kind in self.parameters]
        words = max(sum(map(word_count, kinds)), word_count(self.result))
        if words > MOST_WORDS or array_count(kinds) > MOST_ARRAYS:
            self.fail(f"a kernel takes at most {MOST_WORDS} numbers and {MOST_ARRAYS} arrays")

    def _refuse_methods(self) -> None:
        """Refuse what a class would bind to its objects: no kernel can take those."""
        outer = self.python.__qualname__.rpartition(".")[0]
        if not outer or outer.endswith("<locals>") or not self.code.co_argcount:
            return
        first = self.code.co_varnames[0]
        if first in ("self", "cls") or first not in self.python.__annotations__:
            name = self.python.__name__
            self._fail_at(
                first,
                f"{name} is a method, and a kernel cannot be one: write a function outside of the class that takes "
                "what it needs, numbers and arrays",
            )

    def _resolved(self, annotation: Any, where: str) -> Type:
        try:
            if isinstance(annotation, str):
                annotation = eval(annotation, {**self.python.__globals__, **self.environment})
            return kernel_type(annotation)
        except Exception as problem:
            self._fail_at(where, str(problem))

    def _fail_at(self, where: str, message: str) -> NoReturn:
        """Refuse the function at a parameter, or at its result."""
        tree = self.tree()
        node: ast.expr | ast.arg | None = tree.returns
        for argument in [*tree.args.posonlyargs, *tree.args.args]:
            if argument.arg == where:
                node = argument
        if node is None:
            self.fail(message)
        before = self.text_at(node.lineno).encode()[: node.col_offset]
        self.fail(message, node.lineno, len(before.decode("utf-8", "ignore")) + 1)

    def argument_told(self, position: int) -> str:
        """How a message calls an argument."""
        if self.told:
            return self.told[position]
        return f"argument {self.parameters[position][0]!r} of {self.python.__name__}{self.described}"

    @property
    def described(self) -> str:
        """The signature, for people."""
        parameters = ", ".join(f"{name}: {kind.name}" for name, kind in self.parameters)
        return f"({parameters}) -> {'None' if self.result == VOID else self.result.name}"


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def constant(value: Any) -> bool:
    """Whether a value of Python's can be part of a kernel: a number, a bool, or a tuple of those."""
    return isinstance(value, bool | int | float) or (isinstance(value, tuple) and all(map(constant, value)))


def python_function(function: KernelFunction, known: dict[int, Callable[..., Any]] | None = None) -> Any:
    """The function as plain Python, with the kernels that it calls as plain Python too."""
    known = {} if known is None else known
    if id(function) in known:
        return known[id(function)]
    python, code = function.python, function.code
    names: dict[str, Any] = {"__builtins__": python.__globals__.get("__builtins__"), "__name__": python.__module__}
    cells = tuple(types.CellType() for _ in code.co_freevars)
    made = types.FunctionType(code, names, python.__name__, python.__defaults__, cells)
    made.__doc__, made.__annotations__ = python.__doc__, python.__annotations__
    made.__qualname__, made.__module__ = python.__qualname__, python.__module__
    known[id(function)] = made

    def plain(value: Any) -> Any:
        kernel = getattr(value, "_function", None)
        return python_function(kernel, known) if isinstance(kernel, KernelFunction) else value

    names.update({n: plain(python.__globals__[n]) for n in code.co_names if n in python.__globals__})
    for cell, name in zip(cells, code.co_freevars, strict=True):
        if name in function.environment:
            cell.cell_contents = plain(function.environment[name])
    return made
