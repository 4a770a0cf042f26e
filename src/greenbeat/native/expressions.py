"""Expressions of native code: names, operators, fields and elements."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from greenbeat.native import types as t
from greenbeat.native.conversions import Conversions
from greenbeat.native.values import Value
from greenbeat.native.writer import PathEnd

STATIC_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
STATIC_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
STATIC_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
INTEGER_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
FLOAT_BINARY = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
SYMBOLS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}

UNSUPPORTED: dict[type[ast.expr], str] = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.Await: "`await`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`",
    ast.NamedExpr: "`:=`",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.Starred: "`*` outside a call",
}


class Expressions(Conversions):
    """Layer of `Emitter`: one method per kind of expression."""

    def expression(self, node: ast.expr) -> Any:
        """Compile an expression: a `Value`, or a compile-time object."""
        method = getattr(self, f"expression_{type(node).__name__}", None)
        if method is None:
            self.error(self.absent.format(UNSUPPORTED.get(type(node), type(node).__name__)), node)
        outer, self.node = self.node, node
        result = method(node)
        self.node = outer
        return result

    def expression_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def expression_Name(self, node: ast.Name) -> Any:
        return self.lookup(node.id)

    def expression_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.expression(e) for e in node.elts)

    def expression_List(self, node: ast.List) -> Any:
        return [self.expression(e) for e in node.elts]

    def expression_JoinedStr(self, node: ast.JoinedStr) -> Any:
        parts = []
        for part in node.values:
            value = self.expression(part.value if isinstance(part, ast.FormattedValue) else part)
            if isinstance(value, Value):
                self.error("text is made at compile time only", node)
            parts.append(str(value))
        return "".join(parts)

    # ---------------------------------------------------------------- operators

    def expression_BinOp(self, node: ast.BinOp) -> Any:
        left = self.expression(node.left)
        return self.binary(node.op, left, self.expression(node.right), node)

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        """`left op right` for values of one type, a pointer and a count, or two compile-time values."""
        symbol = SYMBOLS[type(op)]
        if not isinstance(left, Value) and not isinstance(right, Value):
            try:
                return STATIC_BINARY[type(op)](left, right)
            except Exception as problem:
                self.error(f"{symbol} at compile time: {problem}", node)
        if isinstance(left, Value) and isinstance(left.type, t.PointerType):
            return self.pointer_arithmetic(op, left, right, node)
        kind = left.type if isinstance(left, Value) else right.type
        if isinstance(op, ast.LShift | ast.RShift):
            return self.shift(op, left, right, node)
        left = self.coerce(left, kind, f"{symbol} has {kind} on its right")
        right = self.coerce(right, kind, f"{symbol} has {kind} on its left")
        if isinstance(kind, t.IntegerType):
            if type(op) in INTEGER_BINARY:
                return self.temporary(f"{INTEGER_BINARY[type(op)]} {kind.ir} {left.ir}, {right.ir}", kind)
            if isinstance(op, ast.FloorDiv):
                return self.floor_divide(left, right)
            if isinstance(op, ast.Mod):
                return self.floor_remainder(left, right)
            if isinstance(op, ast.Div):
                self.error("/ divides floats; integers are divided by // or divide_truncating(a, b)", node)
        elif isinstance(kind, t.FloatType) and type(op) in FLOAT_BINARY:
            return self.temporary(f"{FLOAT_BINARY[type(op)]} {kind.ir} {left.ir}, {right.ir}", kind)
        elif isinstance(kind, t.BoolType) and isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            return self.temporary(f"{INTEGER_BINARY[type(op)]} i1 {left.ir}, {right.ir}", kind)
        elif isinstance(kind, t.VectorType) and isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            return self.temporary(f"{INTEGER_BINARY[type(op)]} {kind.ir} {left.ir}, {right.ir}", kind)
        self.error(f"{kind} has no operator {symbol}", node)

    def shift(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Value:
        """Shift by the count modulo the width; right shifts copy the sign of signed types."""
        if not isinstance(left, Value):
            left = self.coerce(left, right.type, "a shift needs one type")
        kind = left.type
        if not isinstance(kind, t.IntegerType):
            self.error(f"{kind} cannot be shifted", node)
        if isinstance(right, Value):
            if not isinstance(right.type, t.IntegerType):
                self.error(f"a shift count is an integer, not {right.type}", node)
            right = self.convert(right, kind)
            right = self.temporary(f"and {kind.ir} {right.ir}, {kind.bits - 1}", kind)
        elif not isinstance(right, int) or isinstance(right, bool) or not 0 <= right < kind.bits:
            self.error(f"{kind} can be shifted by 0 to {kind.bits - 1}, not {right}", node)
        else:
            right = Value(str(right), kind)
        name = "shl" if isinstance(op, ast.LShift) else "ashr" if kind.signed else "lshr"
        return self.temporary(f"{name} {kind.ir} {left.ir}, {right.ir}", kind)

    def floor_divide(self, left: Value, right: Value) -> Value:
        """Python's `//`: the quotient rounded down. The divisor is not zero."""
        kind = left.type
        assert isinstance(kind, t.IntegerType)
        if not kind.signed:
            return self.temporary(f"udiv {kind.ir} {left.ir}, {right.ir}", kind)
        quotient = self.temporary(f"sdiv {kind.ir} {left.ir}, {right.ir}", kind)
        inexact = self._rounds_up(left, right)
        extra = self.temporary(f"sext i1 {inexact.ir} to {kind.ir}", kind)
        return self.temporary(f"add {kind.ir} {quotient.ir}, {extra.ir}", kind)

    def floor_remainder(self, left: Value, right: Value) -> Value:
        """Python's `%`: the remainder has the sign of the divisor."""
        kind = left.type
        assert isinstance(kind, t.IntegerType)
        if not kind.signed:
            return self.temporary(f"urem {kind.ir} {left.ir}, {right.ir}", kind)
        remainder = self.temporary(f"srem {kind.ir} {left.ir}, {right.ir}", kind)
        inexact = self._rounds_up(left, right)
        extra = self.temporary(f"select i1 {inexact.ir}, {kind.ir} {right.ir}, {kind.ir} 0", kind)
        return self.temporary(f"add {kind.ir} {remainder.ir}, {extra.ir}", kind)

    def _rounds_up(self, left: Value, right: Value) -> Value:
        kind = left.type
        remainder = self.temporary(f"srem {kind.ir} {left.ir}, {right.ir}", kind)
        differs = self.temporary(f"xor {kind.ir} {left.ir}, {right.ir}", kind)
        opposite = self.temporary(f"icmp slt {kind.ir} {differs.ir}, 0", t.BOOL)
        inexact = self.temporary(f"icmp ne {kind.ir} {remainder.ir}, 0", t.BOOL)
        return self.temporary(f"and i1 {opposite.ir}, {inexact.ir}", t.BOOL)

    def pointer_arithmetic(self, op: ast.operator, left: Value, right: Any, node: ast.AST) -> Value:
        """A pointer plus or minus a count of elements, or the distance of two pointers in elements."""
        assert isinstance(left.type, t.PointerType)
        size = left.type.of.size
        if isinstance(op, ast.Sub) and isinstance(right, Value) and isinstance(right.type, t.PointerType):
            if right.type != left.type:
                self.error(f"{left.type} and {right.type} have no distance", node)
            if size == 0:
                self.error(f"{left.type.of} is empty: its elements have no distance", node)
            a = self.temporary(f"ptrtoint ptr {left.ir} to i64", t.I64)
            b = self.temporary(f"ptrtoint ptr {right.ir} to i64", t.I64)
            distance = self.temporary(f"sub i64 {a.ir}, {b.ir}", t.I64)
            return self.temporary(f"sdiv exact i64 {distance.ir}, {size}", t.I64)
        if not isinstance(op, ast.Add | ast.Sub):
            self.error(f"pointers have no operator {SYMBOLS[type(op)]}", node)
        if not isinstance(right, Value):
            if not isinstance(right, int):
                self.error(f"a pointer moves by an integer, not {self.describe(right)}", node)
            return self.offset(left, (right if isinstance(op, ast.Add) else -right) * size, left.type)
        count = self.index(right, node)
        if isinstance(op, ast.Sub):
            count = self.temporary(f"sub i64 0, {count.ir}", t.I64)
        element = "i8" if left.type.of == t.VOID else left.type.of.memory_ir
        return self.temporary(f"getelementptr {element}, ptr {left.ir}, i64 {count.ir}", left.type)

    def index(self, value: Any, node: ast.AST) -> Value:
        """An integer of any width as an i64, by its signedness."""
        if not isinstance(value, Value):
            return self.coerce(value, t.I64, "an index is an integer")
        if not isinstance(value.type, t.IntegerType):
            self.error(f"an index is an integer, not {value.type}", node)
        return self.convert(value, t.I64)

    def offset(self, pointer: Value, count: int, kind: t.Type) -> Value:
        """A pointer `count` bytes further on."""
        if count == 0:
            return Value(pointer.ir, kind)
        return self.temporary(f"getelementptr i8, ptr {pointer.ir}, i64 {count}", kind)

    def expression_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            value = self.condition(node.operand)
            if not isinstance(value, Value):
                return not value
            return Value(self.temporary(f"xor i1 {value.ir}, true", t.BOOL).ir, t.BOOL, -value.weight)
        value = self.expression(node.operand)
        if not isinstance(value, Value):
            try:
                return STATIC_UNARY[type(node.op)](value)
            except TypeError as problem:
                self.error(f"at compile time: {problem}", node)
        kind = value.type
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(kind, t.IntegerType):
            if isinstance(node.op, ast.USub):
                return self.temporary(f"sub {kind.ir} 0, {value.ir}", kind)
            return self.temporary(f"xor {kind.ir} {value.ir}, -1", kind)
        if isinstance(kind, t.FloatType) and isinstance(node.op, ast.USub):
            return self.temporary(f"fneg {kind.ir} {value.ir}", kind)
        self.error(f"{kind} has no such operator", node)

    def expression_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and` and `or`, left to right; the right side is not computed when the left decides."""
        is_and = isinstance(node.op, ast.And)
        decided = self.label("decided")
        incoming: list[str] = []
        for position, operand in enumerate(node.values):
            try:
                value = self.condition(operand)
            except PathEnd:
                if not incoming:
                    raise
                break
            last = position == len(node.values) - 1
            if not isinstance(value, Value):
                if bool(value) == is_and and not last:
                    continue
                if not incoming:
                    return value
                value, last = Value("true" if value else "false", t.BOOL), True
            if last:
                if not incoming:
                    return value
                incoming.append(f"[ {value.ir}, %{self.block_label} ]")
                self.jump(decided)
                break
            incoming.append(f"[ {'false' if is_and else 'true'}, %{self.block_label} ]")
            more = self.label("more")
            self.branch(value, *((more, decided) if is_and else (decided, more)))
            self.start(more)
        self.start(decided)
        return self.temporary(f"phi i1 {', '.join(incoming)}", t.BOOL)

    def expression_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1:
            self.error("compare two values at a time: `a < b and b < c`", node)
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        return self.compare(node.ops[0], left, right, node)

    def compare(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
        """A comparison by the type's own order: signed, unsigned, or IEEE's (NaN is unordered)."""
        if not isinstance(left, Value) and not isinstance(right, Value):
            try:
                return STATIC_COMPARE[type(op)](left, right)
            except Exception as problem:
                self.error(f"comparison at compile time: {problem}", node)
        if isinstance(op, ast.Is | ast.IsNot) and (left is None or right is None):
            op = ast.Eq() if isinstance(op, ast.Is) else ast.NotEq()
        if type(op) not in COMPARE:
            self.error("values are compared by < <= > >= == !=", node)
        kind = left.type if isinstance(left, Value) else right.type
        left = self.coerce(left, kind, f"the other side of the comparison is {kind}")
        right = self.coerce(right, kind, f"the other side of the comparison is {kind}")
        name = COMPARE[type(op)]
        if isinstance(kind, t.VoidType | t.VectorType):
            self.error(f"{kind} cannot be compared", node)
        if isinstance(kind, t.FloatType):
            predicate = f"fcmp {'une' if name == 'ne' else 'o' + name}"
        elif name in ("eq", "ne"):
            predicate = f"icmp {name}"
        else:
            predicate = f"icmp {'s' if isinstance(kind, t.IntegerType) and kind.signed else 'u'}{name}"
        return self.temporary(f"{predicate} {kind.ir} {left.ir}, {right.ir}", t.BOOL)

    def condition(self, node: ast.expr) -> Any:
        """An expression used as a truth value: a bool, or a compile-time object's truth."""
        value = self.expression(node)
        if isinstance(value, Value) and value.type != t.BOOL:
            hint = "compare it with 0" if isinstance(value.type, t.IntegerType) else "compare it with None"
            self.error(f"a condition is a bool, not {value.type}: {hint}", node)
        return value

    def expression_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test)
        if not isinstance(condition, Value):
            return self.expression(node.body if condition else node.orelse)
        then, otherwise, after = self.label("then"), self.label("else"), self.label("after")
        self.branch(condition, then, otherwise)
        sides: list[tuple[Any, str]] = []
        for label, side in ((then, node.body), (otherwise, node.orelse)):
            self.start(label)
            try:
                sides.append((self.expression(side), self.block_label))
                self.jump(after)
            except PathEnd:
                continue
        if not sides:
            raise PathEnd
        self.start(after)
        if len(sides) == 1:
            return sides[0][0]
        kind = self._common_type([value for value, _ in sides])
        operands = [self.coerce(value, kind, f"the other side of the conditional is {kind}").ir for value, _ in sides]
        if kind == t.VOID:
            return Value("", t.VOID)
        ways = (f"[ {ir}, %{label} ]" for ir, (_, label) in zip(operands, sides, strict=True))
        return self.temporary(f"phi {kind.ir} {', '.join(ways)}", kind)

    def _common_type(self, values: list[Any]) -> t.Type:
        """The type of the first value that has one; of bare literals, what a variable would get."""
        for value in values:
            if isinstance(value, Value):
                return value.type
        if any(isinstance(v, float) for v in values):
            return t.F64
        if all(isinstance(v, str | bytes) for v in values):
            return t.PointerType(t.U8)
        return t.BOOL if all(isinstance(v, bool) for v in values) else t.I64

    # ---------------------------------------------------------------- fields and elements

    def expression_Attribute(self, node: ast.Attribute) -> Any:
        base = self.expression(node.value)
        if not isinstance(base, Value):
            try:
                return self.known(getattr(base, node.attr))
            except Exception as problem:
                self.error(str(problem), node)
        return self.read_place(*self.field(base, node))

    def expression_Subscript(self, node: ast.Subscript) -> Any:
        base = self.expression(node.value)
        if not isinstance(base, Value):
            index = self.expression(node.slice)
            if isinstance(index, Value):
                self.error("a compile-time sequence is indexed at compile time; make it a table(...) for more", node)
            try:
                return self.known(base[index])
            except Exception as problem:
                self.error(f"{type(problem).__name__}: {problem}", node)
        return self.read_place(*self.element(base, node))

    def expression_Slice(self, node: ast.Slice) -> Any:
        bounds = [None if b is None else self.expression(b) for b in (node.lower, node.upper, node.step)]
        if any(isinstance(b, Value) for b in bounds):
            self.error("slices are of compile-time sequences, by compile-time numbers", node)
        return slice(*bounds)

    def read_place(self, place: Value, kind: t.Type) -> Value:
        """What a place holds; a struct or an array in it is named by its address."""
        if isinstance(kind, t.ArrayType):
            return Value(place.ir, t.PointerType(kind.of))
        if isinstance(kind, t.StructType):
            return Value(place.ir, t.PointerType(kind))
        return self.load_value(place.ir, kind)

    def place(self, node: ast.expr) -> tuple[Value, t.Type]:
        """The address that an assignable expression names, and the type of what is there."""
        if isinstance(node, ast.Attribute):
            base = self.expression(node.value)
            if isinstance(base, Value):
                return self.field(base, node)
        elif isinstance(node, ast.Subscript):
            base = self.expression(node.value)
            if isinstance(base, Value):
                return self.element(base, node)
        self.error("this cannot be assigned to: a name, a field or an element can", node)

    def field(self, base: Value, node: ast.Attribute) -> tuple[Value, t.Type]:
        """Address and type of a field behind a pointer to a struct."""
        if not isinstance(base.type, t.PointerType) or not isinstance(base.type.of, t.StructType):
            self.error(f"{base.type} has no fields", node)
        found = base.type.of.fields.get(node.attr)
        if found is None:
            self.error(f"{base.type.of} has no field {node.attr!r}: it has {', '.join(base.type.of.fields)}", node)
        offset, kind = found
        return self.offset(base, offset, t.PointerType(kind)), kind

    def element(self, base: Value, node: ast.Subscript) -> tuple[Value, t.Type]:
        """Address and type of an element behind a pointer."""
        if not isinstance(base.type, t.PointerType) or base.type.of == t.VOID:
            self.error(f"{base.type} has no elements", node)
        kind = base.type.of
        index = self.expression(node.slice)
        if not isinstance(index, Value) and isinstance(index, int):
            return self.offset(base, index * kind.size, base.type), kind
        index = self.index(index, node)
        return self.temporary(f"getelementptr {kind.memory_ir}, ptr {base.ir}, i64 {index.ir}", base.type), kind
