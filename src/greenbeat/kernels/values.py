"""What expressions of kernels are while they are compiled, how they convert, and how a kernel fails.

An expression is a `Value` (a number or a bool in a register), a tuple of expressions, an `ArrayValue`, or a Python
object known meanwhile: a literal, a constant captured from outside, a function, a module.

What can go wrong at run time is a branch to a block that leaves the fiber. Such a block tells a *site*, a text in the
object (JSON) that says which exception it is, where, and what its message is:

    ["IndexError", ["index ", " is ..."], file, function, [line, column, end line, end column]]
"""

import ast
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from greenbeat.errors import KernelError
from greenbeat.kernels import support
from greenbeat.kernels.source import KernelFunction
from greenbeat.kernels.types import ArrayType, HandleType, TupleType, computed
from greenbeat.native import types as t
from greenbeat.native.language import NativeFunction
from greenbeat.native.statements import Statements
from greenbeat.native.values import Local, Scope, Value

FIBER, FORK_TOP = "%fiber", "%fork_top"
MOST_LOCALS = 200
NUMBERS = (t.IntegerType, t.FloatType, t.BoolType)


@dataclass(eq=False)
class ArrayValue:
    """A buffer that was passed. Sizes and strides are operands, strides in elements.

    Attributes:
        parameter: which parameter of the kernel it is.
    """

    type: ArrayType
    data: str
    sizes: list[str]
    strides: list[str]
    parameter: int


@dataclass
class Method:
    """A method of a task or a channel, about to be called."""

    handle: Value
    name: str


@dataclass
class TupleLocal:
    """A variable that holds a tuple: a place for each item."""

    items: tuple["Local | TupleLocal", ...]


class KernelValues(Statements):
    """Layer of `KernelEmitter`: conversions, truth, failures."""

    unit: Any  # a KernelUnit, which is made of emitters
    absent = "a kernel cannot contain {}"

    def __init__(self, unit: Any, function: KernelFunction) -> None:
        self.kernel = function
        super().__init__(unit, function)

    def tree_of(self, function: NativeFunction) -> ast.FunctionDef:
        """The syntax tree of the function to compile."""
        return self.kernel.tree()

    def support(self, function: Any) -> str:
        """A function of `support.py` as an operand. To a type checker those are plain functions, hence `Any`."""
        return str(self.unit.reference(function))

    def position(self, node: ast.AST, scope: Scope) -> tuple[str, int, int]:
        """File, line and column of a node, as an editor counts."""
        line, offset = getattr(node, "lineno", self.kernel.definition_line), getattr(node, "col_offset", 0)
        before = self.kernel.text_at(line).encode()[:offset]
        return self.kernel.file, line, len(before.decode("utf-8", "ignore")) + 1

    def error(self, message: str, node: ast.AST | None = None) -> NoReturn:
        """Refuse to compile, at `node` or at the node being compiled."""
        file, line, column = self.position(node or self.node, self.scope)
        raise KernelError(message, file, line, column, self.kernel.text_at(line))

    def describe(self, value: Any) -> str:
        """What an expression is, in an error message."""
        if isinstance(value, Value | ArrayValue):
            return str(value.type)
        if isinstance(value, tuple):
            return f"tuple[{', '.join(self.describe(item) for item in value)}]"
        if isinstance(value, str | bytes):
            return type(value).__name__
        if isinstance(value, bool | int | float) or value is None:
            return f"{type(value).__name__} {value!r}" if value is not None else "None"
        name = getattr(value, "__name__", None)
        return str(name) if name else f"a {type(value).__name__}"

    # ---------------------------------------------------------------- failures

    def site(self, exception: str, pieces: list[str], node: ast.AST) -> str:
        """A constant that tells a failure; values come between the pieces of its message."""
        end = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        place = [getattr(node, "lineno", 0), getattr(node, "col_offset", 0), *end]
        text = json.dumps([exception, pieces, self.kernel.file, self.kernel.code.co_name, place])
        return str(self.unit.constant_bytes(text.encode() + b"\0"))

    def fail(
        self,
        exception: str,
        message: str | list[str],
        node: ast.AST,
        first: Value | None = None,
        second: Value | None = None,
    ) -> None:
        """Raise, here; `{}` in the message stands for the values, which come between pieces."""
        site = self.site(exception, message.split("{}") if isinstance(message, str) else message, node)
        values = ", ".join(f"i64 {value.ir if value is not None else 0}" for value in (first, second))
        name = self.support(support.fail_with)
        self.line(f"call void {name}(ptr {FIBER}, ptr {site}, {values})")
        self.line("unreachable")
        self.live = False

    def fail_if(
        self,
        condition: Value,
        exception: str,
        message: str,
        node: ast.AST,
        first: Value | None = None,
        second: Value | None = None,
    ) -> None:
        """Raise if a condition holds."""
        bad, good = self.label("bad"), self.label("good")
        self.branch(Value(condition.ir, t.BOOL, -1), bad, good)
        self.start(bad)
        self.fail(exception, message, node, first, second)
        self.start(good)

    # ---------------------------------------------------------------- numbers

    def number(self, value: Any, node: ast.AST) -> Value:
        """An expression as a number or bool in a register."""
        if isinstance(value, Value) and isinstance(value.type, NUMBERS):
            return value
        if isinstance(value, bool):
            return Value("true" if value else "false", t.BOOL)
        if isinstance(value, int):
            if t.I64.least <= value <= t.U64.greatest:
                return Value(str(int(value)), t.I64 if value <= t.I64.greatest else t.U64)
            self.error(f"{shortened(value)} does not fit 64 bits", node)
        if isinstance(value, float):
            return Value(t.float_literal(value, t.F64), t.F64)
        self.error(f"a number is needed here, not {self.describe(value)}", node)

    def operand(self, value: Any, node: ast.AST) -> Value:
        """An expression in a register: a number, a bool, a task or a channel."""
        if isinstance(value, Value) and isinstance(value.type, HandleType):
            return value
        return self.number(value, node)

    def kind_of(self, value: Any, node: ast.AST) -> t.Type:
        """The type that an expression has as a variable."""
        if isinstance(value, tuple):
            return TupleType(tuple(self.kind_of(item, node) for item in value))
        if isinstance(value, ArrayValue):
            return value.type
        if isinstance(value, Value) and value.type == t.VOID:
            self.error("this gives None, which is no value in a kernel", node)
        return self.operand(value, node).type

    def common(self, values: list[Any], node: ast.AST) -> t.Type:
        """The type that numbers of different types have together, as Python mixes them."""
        kinds = {self.number(value, node).type for value in values}
        if kinds == {t.BOOL}:
            return t.BOOL
        if t.F64 in kinds:
            return t.F64
        if t.U64 not in kinds:
            return t.I64
        for value in values:
            signed = value.type == t.I64 if isinstance(value, Value) else value < 0
            if signed:
                self.error(
                    f"u64 and {self.describe(value)} do not mix: write gb.i64(...) or gb.u64(...) around one", node
                )
        return t.U64

    def promoted(self, value: Any, kind: t.Type, node: ast.AST) -> Value:
        """A number as one of a wider kind."""
        if not isinstance(value, Value) and isinstance(value, bool | int | float):
            if kind == t.F64:
                try:
                    return self.number(float(value), node)
                except OverflowError:
                    self.error(f"{shortened(value)} is too large for a float", node)
            if isinstance(kind, t.IntegerType) and isinstance(value, int):
                if not kind.least <= value <= kind.greatest:
                    self.error(f"{shortened(value)} does not fit {kind}", node)
                return Value(str(int(value)), kind)
        number = self.number(value, node)
        text = promotion(number, kind)
        return number if text is None else self.temporary(text, kind)

    def together(self, left: Any, right: Any, node: ast.AST) -> tuple[Value, Value, t.Type]:
        """Two numbers as one type; bools count as integers."""
        kind = self.common([left, right], node)
        if kind == t.BOOL:
            kind = t.I64
        return self.promoted(left, kind, node), self.promoted(right, kind, node), kind

    def fitted(self, value: Any, kind: t.Type, what: str, node: ast.AST) -> Any:
        """A value where one of type `kind` is wanted: an int may become a float, and must fit a narrow type.

        `what` begins the message if it does not fit, as in "the result is f64".
        """
        if isinstance(kind, TupleType):
            if not isinstance(value, tuple) or len(value) != len(kind.items):
                self.error(f"{what}, but this is {self.describe(value)}", node)
            return tuple(
                self.fitted(item, inner, f"{what}: its item {place} is {inner}", node)
                for place, (item, inner) in enumerate(zip(value, kind.items, strict=True))
            )
        if isinstance(kind, ArrayType):
            if not isinstance(value, ArrayValue) or value.type != kind:
                self.error(f"{what}, but this is {self.describe(value)}", node)
            return value
        if isinstance(value, Value) and value.type == t.VOID:
            self.error(f"{what}, but this gives None", node)
        if isinstance(kind, HandleType):
            if not isinstance(value, Value) or value.type != kind:
                self.error(f"{what}, but this is {self.describe(value)}", node)
            return value
        if isinstance(value, tuple | ArrayValue) or not isinstance(value, Value | bool | int | float):
            self.error(f"{what}, but this is {self.describe(value)}", node)
        number, wide = self.number(value, node), computed(kind)
        if wide == t.F64:
            number = self.promoted(value, t.F64, node)
            return self.rounded(number) if kind == t.F32 else number
        if wide == t.BOOL:
            if number.type != t.BOOL:
                self.error(f"{what}, but this is {self.describe(value)}: write a comparison, or bool(...)", node)
            return number
        assert isinstance(kind, t.IntegerType)
        if number.type == t.F64:
            self.error(f"{what}, but this is {self.describe(value)}: write int(...), or use // instead of /", node)
        if not isinstance(value, Value):
            if not kind.least <= value <= kind.greatest:
                self.error(f"{what}, and {shortened(value)} does not fit", node)
            return Value(str(int(value)), wide)
        if number.type != t.BOOL and number.type != wide:
            self.error(f"{what}, but this is {number.type}: write gb.{kind}(...)", node)
        number = self.promoted(number, wide, node)
        if kind != wide:
            self.check_range(number, kind, node)
        return number

    def check_range(self, number: Value, kind: t.IntegerType, node: ast.AST) -> None:
        """Raise OverflowError if an i64 does not fit a narrow type."""
        shifted = self.temporary(f"sub i64 {number.ir}, {kind.least}", t.I64)
        outside = self.temporary(f"icmp ugt i64 {shifted.ir}, {kind.greatest - kind.least}", t.BOOL)
        self.fail_if(outside, "OverflowError", f"{{}} does not fit {kind}", node, number)

    def rounded(self, number: Value) -> Value:
        """A float that is stored as an f32."""
        narrow = self.temporary(f"fptrunc double {number.ir} to float", t.F32)
        return self.temporary(f"fpext float {narrow.ir} to double", t.F64)

    def expression_List(self, node: ast.List) -> Any:
        self.error(self.absent.format("a list: tuples have fixed lengths, arrays are passed"), node)

    # ---------------------------------------------------------------- truth

    def truth(self, value: Any, node: ast.AST) -> Any:
        """Whether Python takes a value for true: a bool in a register, or known now."""
        if isinstance(value, ArrayValue):
            self.error("the truth of an array is not clear: compare its length, or an element", node)
        if not isinstance(value, Value):
            return bool(value)
        if value.type == t.BOOL:
            return value
        if isinstance(value.type, t.IntegerType):
            return self.temporary(f"icmp ne i64 {value.ir}, 0", t.BOOL)
        if value.type == t.F64:
            return self.temporary(f"fcmp une double {value.ir}, 0.0", t.BOOL)
        self.error(f"{value.type} has no truth", node)

    def condition(self, node: ast.expr) -> Any:
        """An expression used as a truth value."""
        return self.truth(self.expression(node), node)

    # ---------------------------------------------------------------- ways that meet

    def way(self, value: Any) -> "Way":
        """A value with the place that it comes from; to be called before the line that ends the block."""
        self.lines.append("")
        return value, self.block_label, len(self.lines) - 1

    def meet(self, ways: list["Way"], node: ast.AST) -> Any:
        """The value of the way that was gone, at the start of the block where ways meet."""
        values = [value for value, _, _ in ways]
        if any(isinstance(value, tuple) for value in values):
            lengths = {len(value) if isinstance(value, tuple) else -1 for value in values}
            if len(lengths) > 1:
                self.error(f"one way gives {self.describe(values[0])}, another {self.describe(values[-1])}", node)
            return tuple(
                self.meet([(value[i], label, place) for value, label, place in ways], node)
                for i in range(len(values[0]))
            )
        if any(isinstance(value, ArrayValue) for value in values):
            self.error("which array it is must be known when the kernel is compiled", node)
        kind = self.common(values, node)
        operands = []
        for value, label, place in ways:
            number = value if isinstance(value, Value) else self.promoted(value, kind, node)
            text = promotion(number, kind)
            if text is not None:
                self.labels += 1
                self.lines[place] += f"\n  %met.{self.labels} = {text}{self.location}"
                number = Value(f"%met.{self.labels}", kind)
            operands.append(f"[ {number.ir}, %{label} ]")
        return self.temporary(f"phi {kind.ir} {', '.join(operands)}", kind)


# A value, the block it comes from, and which line of that block is kept free for its conversion.
Way = tuple[Any, str, int]


def promotion(number: Value, kind: t.Type) -> str | None:
    """The instruction that makes a number one of a wider kind, if it needs one."""
    if number.type == kind:
        return None
    if isinstance(kind, t.IntegerType):
        return f"zext i1 {number.ir} to i64"
    name = "sitofp" if number.type == t.I64 else "uitofp"
    return f"{name} {number.type.ir} {number.ir} to double"


def shortened(value: Any) -> str:
    """A number, not too long for a message."""
    if isinstance(value, int) and abs(value) >= 1 << 70:
        return f"a number of {value.bit_length()} bits"
    return repr(value)
