"""Operators and comparisons of kernels: Python's meaning on numbers of 64 bits."""

import ast
from typing import Any

from greenbeat.kernels import support
from greenbeat.kernels.values import ArrayValue, KernelValues, Way
from greenbeat.native import types as t
from greenbeat.native.expressions import COMPARE, INTEGER_BINARY, STATIC_BINARY, STATIC_COMPARE, STATIC_UNARY, SYMBOLS
from greenbeat.native.values import Value

FLOAT_BINARY = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul"}
# Powers up to this one are multiplied out.
SMALL_POWER = 4
# Larger results of operators on constants are left to the machine, which wraps them.
MOST_CONSTANT_BITS = 4096
ZERO_DIVISION = {
    (ast.Div, True): "division by zero",
    (ast.Div, False): "float division by zero",
    (ast.FloorDiv, True): "integer division or modulo by zero",
    (ast.FloorDiv, False): "float floor division by zero",
    (ast.Mod, True): "integer modulo by zero",
    (ast.Mod, False): "float modulo",
}
SIGN_BIT = -(1 << 63)


class Arithmetic(KernelValues):
    """Layer of `KernelEmitter`."""

    def call_support(self, function: Any, kind: t.Type, *arguments: Value) -> Value:
        """Call a function of `support.py`."""
        operands = ", ".join(f"{argument.type.ir} {argument.ir}" for argument in arguments)
        return self.temporary(f"call {kind.ir} {self.support(function)}({operands})", kind)

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        """`left op right`."""
        if not isinstance(left, Value | ArrayValue) and not isinstance(right, Value | ArrayValue):
            folded = self.folded(op, left, right)
            if folded is not None:
                return folded
            if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(op, ast.Add):
                return left + right
        symbol = SYMBOLS[type(op)]
        for side in (left, right):
            if isinstance(side, tuple | ArrayValue) or isinstance(op, ast.MatMult):
                self.error(f"{self.describe(left)} {symbol} {self.describe(right)} is not part of kernels", node)
        kinds = self.number(left, node).type, self.number(right, node).type
        if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and kinds == (t.BOOL, t.BOOL):
            a, b = self.number(left, node), self.number(right, node)
            return self.temporary(f"{INTEGER_BINARY[type(op)]} i1 {a.ir}, {b.ir}", t.BOOL)
        if isinstance(op, ast.LShift | ast.RShift):
            return self.shifted(op, left, right, node)
        if isinstance(op, ast.Pow):
            return self.power(left, right, node)
        a, b, kind = self.together(left, right, node)
        if kind == t.F64:
            if type(op) in FLOAT_BINARY:
                return self.temporary(f"{FLOAT_BINARY[type(op)]} double {a.ir}, {b.ir}", t.F64)
            if isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
                return self.float_division(op, a, b, node, right)
            self.error(f"{symbol} is for integers, not {self.describe(left)} and {self.describe(right)}", node)
        if type(op) in INTEGER_BINARY:
            return self.temporary(f"{INTEGER_BINARY[type(op)]} i64 {a.ir}, {b.ir}", kind)
        return self.integer_division(op, a, b, node, right)

    def folded(self, op: ast.operator, left: Any, right: Any) -> Any:
        """What an operator gives for constants; None if that is to happen at run time."""
        if not all(isinstance(side, bool | int | float) for side in (left, right)):
            return None
        if isinstance(op, ast.LShift | ast.Pow) and isinstance(left, int) and isinstance(right, int):
            if max(left.bit_length(), 1) * max(right, 1) > MOST_CONSTANT_BITS:
                return None
        try:
            result = STATIC_BINARY[type(op)](left, right)
        except (ArithmeticError, ValueError, TypeError, KeyError):
            return None
        return result if isinstance(result, bool | int | float) else None

    # ---------------------------------------------------------------- division

    def fail_if_zero(self, divisor: Value, op: ast.operator, node: ast.AST, source: Any) -> None:
        """Raise ZeroDivisionError, unless the divisor is known not to be zero."""
        integers = isinstance(divisor.type, t.IntegerType)
        if isinstance(source, Value) or source == 0:
            test = f"icmp eq i64 {divisor.ir}, 0" if integers else f"fcmp oeq double {divisor.ir}, 0.0"
            zero = self.temporary(test, t.BOOL)
            self.fail_if(zero, "ZeroDivisionError", ZERO_DIVISION[type(op), integers], node)

    def float_division(self, op: ast.operator, left: Value, right: Value, node: ast.AST, source: Any) -> Value:
        """`/`, `//` and `%` of floats."""
        self.fail_if_zero(right, op, node, source)
        if isinstance(op, ast.Div):
            return self.temporary(f"fdiv double {left.ir}, {right.ir}", t.F64)
        function = support.float_floor_divide if isinstance(op, ast.FloorDiv) else support.float_remainder
        return self.call_support(function, t.F64, left, right)

    def integer_division(self, op: ast.operator, left: Value, right: Value, node: ast.AST, source: Any) -> Value:
        """`/`, `//` and `%` of integers."""
        self.fail_if_zero(right, op, node, source)
        kind = right.type
        if isinstance(op, ast.Div):
            function = support.true_divide if kind == t.I64 else support.true_divide_unsigned
            return self.call_support(function, t.F64, left, right)
        if kind == t.I64 and not isinstance(source, Value) and source > 0 and source & (source - 1) == 0:
            if isinstance(op, ast.FloorDiv):
                return self.temporary(f"ashr i64 {left.ir}, {int(source).bit_length() - 1}", kind)
            return self.temporary(f"and i64 {left.ir}, {source - 1}", kind)
        if kind == t.U64 or (not isinstance(source, Value) and source != -1):
            divide = self.floor_divide if isinstance(op, ast.FloorDiv) else self.floor_remainder
            return divide(left, right)
        # The machine cannot divide the least integer by -1; what wraps is the negative.
        minus = self.temporary(f"icmp eq i64 {right.ir}, -1", t.BOOL)
        safe = self.temporary(f"select i1 {minus.ir}, i64 1, i64 {right.ir}", kind)
        if isinstance(op, ast.Mod):
            return self.floor_remainder(left, safe)
        quotient = self.floor_divide(left, safe)
        negative = self.temporary(f"sub i64 0, {left.ir}", kind)
        return self.temporary(f"select i1 {minus.ir}, i64 {negative.ir}, i64 {quotient.ir}", kind)

    # ---------------------------------------------------------------- shifts and powers

    def shifted(self, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Value:
        """`<<` and `>>`: any count but a negative one; bits beyond the 64th are lost."""
        value, count = self.number(left, node), self.number(right, node)
        for each in (value, count):
            if each.type == t.F64:
                self.error(f"{SYMBOLS[type(op)]} is for integers, not f64", node)
        value = self.promoted(left, t.I64, node) if value.type == t.BOOL else value
        kind = value.type
        count = self.promoted(right, t.I64, node) if count.type == t.BOOL else count
        if count.type == t.I64 and (isinstance(right, Value) or right < 0):
            negative = self.temporary(f"icmp slt i64 {count.ir}, 0", t.BOOL)
            self.fail_if(negative, "ValueError", "negative shift count", node)
        name = "shl" if isinstance(op, ast.LShift) else "ashr" if kind == t.I64 else "lshr"
        if not isinstance(right, Value) and 0 <= right < 64:
            return self.temporary(f"{name} i64 {value.ir}, {count.ir}", kind)
        large = self.temporary(f"icmp ugt i64 {count.ir}, 63", t.BOOL)
        if name == "ashr":
            count = self.temporary(f"select i1 {large.ir}, i64 63, i64 {count.ir}", t.I64)
            return self.temporary(f"ashr i64 {value.ir}, {count.ir}", kind)
        count = self.temporary(f"and i64 {count.ir}, 63", t.I64)
        result = self.temporary(f"{name} i64 {value.ir}, {count.ir}", kind)
        return self.temporary(f"select i1 {large.ir}, i64 0, i64 {result.ir}", kind)

    def power(self, left: Any, right: Any, node: ast.AST) -> Any:
        """`**`: an integer for integers, with a positive exponent; else a float."""
        base, exponent = self.number(left, node), self.number(right, node)
        if t.F64 in (base.type, exponent.type) or (not isinstance(right, Value) and right < 0):
            return self.float_power(self.promoted(left, t.F64, node), self.promoted(right, t.F64, node), node, right)
        kind = t.U64 if base.type == t.U64 else t.I64
        base = self.promoted(left, kind, node)
        if not isinstance(right, Value) and right <= SMALL_POWER:
            if right == 0:
                return Value("1", kind)
            result = base
            for _ in range(right - 1):
                result = self.temporary(f"mul i64 {result.ir}, {base.ir}", kind)
            return result
        exponent = self.promoted(right, t.I64, node) if exponent.type == t.BOOL else exponent
        if exponent.type == t.I64 and isinstance(right, Value):
            negative = self.temporary(f"icmp slt i64 {exponent.ir}, 0", t.BOOL)
            message = "an integer to a negative power is a float: write float(...) around one"
            self.fail_if(negative, "ValueError", message, node)
        return self.call_support(support.integer_power, kind, base, exponent)

    def float_power(self, base: Value, exponent: Value, node: ast.AST, source: Any) -> Value:
        """Python's power of floats, with its errors."""
        plain = not isinstance(source, Value) and source >= 0 and source == int(source)
        if not plain:
            zero = self.temporary(f"fcmp oeq double {base.ir}, 0.0", t.BOOL)
            # Negative and finite: to the power of minus infinity, zero is infinity.
            negative = self.float_class(exponent, 0x18)
            both = self.temporary(f"and i1 {zero.ir}, {negative.ir}", t.BOOL)
            message = "0.0 cannot be raised to a negative power"
            self.fail_if(both, "ZeroDivisionError", message, node)
            below = self.temporary(f"fcmp olt double {base.ir}, 0.0", t.BOOL)
            infinite = self.is_infinite(base)
            whole = self.whole(exponent)
            odd = self.temporary(f"xor i1 {whole.ir}, true", t.BOOL)
            limited = self.temporary(f"xor i1 {infinite.ir}, true", t.BOOL)
            finite = self.temporary(f"and i1 {below.ir}, {limited.ir}", t.BOOL)
            complex_ = self.temporary(f"and i1 {finite.ir}, {odd.ir}", t.BOOL)
            self.fail_if(complex_, "ValueError", "a negative number to this power is complex", node)
        result = self.call_support(support.pow, t.F64, base, exponent)
        self.fail_if_overflown(result, [base, exponent], node, "(34, 'Numerical result out of range')")
        return result

    def whole(self, value: Value) -> Value:
        """Whether a float has no fraction; NaN and the infinities have none."""
        self.unit.declare("declare double @llvm.floor.f64(double)")
        floor = self.temporary(f"call double @llvm.floor.f64(double {value.ir})", t.F64)
        return self.temporary(f"fcmp ueq double {floor.ir}, {value.ir}", t.BOOL)

    def float_class(self, value: Value, bits: int) -> Value:
        """Whether a float is of one of these classes of LLVM's."""
        self.unit.declare("declare i1 @llvm.is.fpclass.f64(double, i32)")
        return self.temporary(f"call i1 @llvm.is.fpclass.f64(double {value.ir}, i32 {bits})", t.BOOL)

    def is_infinite(self, value: Value) -> Value:
        return self.float_class(value, 0x204)

    def is_nan(self, value: Value) -> Value:
        return self.temporary(f"fcmp uno double {value.ir}, 0.0", t.BOOL)

    def fail_if_overflown(self, result: Value, operands: list[Value], node: ast.AST, message: str) -> None:
        """Raise OverflowError if finite operands gave an infinite result."""
        after = self.label("after")
        self.ask_further(self.is_infinite(result), after)
        for operand in operands:
            self.ask_further(self.float_class(operand, 0x1F8), after)
        self.fail("OverflowError", message, node)
        self.start(after)

    def ask_further(self, condition: Value, after: str) -> None:
        """Go on here if a condition that hardly ever holds does, else at `after`."""
        more = self.label("more")
        self.branch(Value(condition.ir, t.BOOL, -1), more, after)
        self.start(more)

    # ---------------------------------------------------------------- one operand

    def expression_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            value = self.condition(node.operand)
            if not isinstance(value, Value):
                return not value
            return Value(self.temporary(f"xor i1 {value.ir}, true", t.BOOL).ir, t.BOOL, -value.weight)
        value = self.expression(node.operand)
        if isinstance(value, bool | int | float):
            try:
                return STATIC_UNARY[type(node.op)](value)
            except TypeError:
                self.error("~ is for integers, not a float", node)
        number = self.number(value, node.operand)
        if number.type == t.BOOL:
            number = self.promoted(number, t.I64, node)
        if isinstance(node.op, ast.UAdd):
            return number
        if number.type == t.F64:
            if isinstance(node.op, ast.Invert):
                self.error("~ is for integers, not f64", node)
            return self.temporary(f"fneg double {number.ir}", t.F64)
        text = f"sub i64 0, {number.ir}" if isinstance(node.op, ast.USub) else f"xor i64 {number.ir}, -1"
        return self.temporary(text, number.type)

    # ---------------------------------------------------------------- comparisons

    def expression_Compare(self, node: ast.Compare) -> Any:
        """Comparisons, chained as Python chains them: the later ones are not computed if an earlier one fails."""
        left = self.expression(node.left)
        ways: list[Way] = []
        after = self.label("after")
        for position, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.expression(right_node)
            result = self.compared(op, left, right, node)
            if position == len(node.ops) - 1:
                if not ways:
                    return result
                ways.append(self.way(result))
                self.jump(after)
                break
            left = right
            if not isinstance(result, Value):
                if result:
                    continue
                if not ways:
                    return False
                ways.append(self.way(False))
                self.jump(after)
                break
            more = self.label("more")
            ways.append(self.way(False))
            self.branch(result, more, after)
            self.start(more)
        self.start(after)
        return self.meet(ways, node)

    def compared(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
        """One comparison."""
        if isinstance(op, ast.In | ast.NotIn):
            return self.contained(op, left, right, node)
        if type(op) not in COMPARE:
            self.error("`is` compares objects, of which kernels have none: write ==", node)
        if isinstance(left, tuple) and isinstance(right, tuple):
            return self.compared_tuples(op, left, right, node)
        if not isinstance(left, Value | ArrayValue) and not isinstance(right, Value | ArrayValue):
            try:
                return bool(STATIC_COMPARE[type(op)](left, right))
            except TypeError as problem:
                self.error(str(problem), node)
        for side in (left, right):
            if isinstance(side, tuple | ArrayValue):
                self.error(f"{self.describe(left)} and {self.describe(right)} cannot be compared", node)
        a, b = self.number(left, node), self.number(right, node)
        name = COMPARE[type(op)]
        if {a.type, b.type} == {t.BOOL}:
            a, b = self.promoted(a, t.I64, node), self.promoted(b, t.I64, node)
        elif t.BOOL in (a.type, b.type):
            kind = b.type if a.type == t.BOOL else a.type
            a, b = self.promoted(a, kind, node), self.promoted(b, kind, node)
        if a.type == b.type:
            return self.compared_alike(name, a, b)
        if t.F64 in (a.type, b.type):
            return self.compared_mixed(name, left, right, node)
        return self.compared_signs(name, a, b)

    def compared_alike(self, name: str, a: Value, b: Value) -> Value:
        """A comparison of two numbers of one type."""
        if a.type == t.F64:
            return self.temporary(f"fcmp {'une' if name == 'ne' else 'o' + name} double {a.ir}, {b.ir}", t.BOOL)
        sign = "" if name in ("eq", "ne") else "s" if a.type == t.I64 else "u"
        return self.temporary(f"icmp {sign}{name} i64 {a.ir}, {b.ir}", t.BOOL)

    def compared_signs(self, name: str, a: Value, b: Value) -> Value:
        """An i64 and a u64: by value, so a negative number is the lesser one."""
        signed, swapped = (a, False) if a.type == t.I64 else (b, True)
        negative = self.temporary(f"icmp slt i64 {signed.ir}, 0", t.BOOL)
        plain = self.compared_alike(name, Value(a.ir, t.U64), Value(b.ir, t.U64))
        answer = name == "ne" or ((name in ("lt", "le")) != swapped and name != "eq")
        return self.temporary(f"select i1 {negative.ir}, i1 {str(answer).lower()}, i1 {plain.ir}", t.BOOL)

    def compared_mixed(self, name: str, left: Any, right: Any, node: ast.AST) -> Value:
        """An integer and a float, compared exactly."""
        whole, real = (left, right) if self.number(left, node).type != t.F64 else (right, left)
        if not isinstance(whole, Value) and abs(whole) <= support.EXACT:
            return self.compared_alike(name, self.promoted(left, t.F64, node), self.promoted(right, t.F64, node))
        if not isinstance(real, Value) and real == real and abs(real) <= support.EXACT and real == int(real):
            # An exact integer, whatever it is written as.
            values = [int(real) if side is real else side for side in (left, right)]
            found = self.compared(_operator(name), values[0], values[1], node)
            assert isinstance(found, Value)
            return found
        number, other = self.number(whole, node), self.promoted(real, t.F64, node)
        near = self.promoted(number, t.F64, node)
        first, second = (near, other) if whole is left else (other, near)
        by_float = self.compared_alike(name, first, second)
        # Where the rounded integer equals the float, that is an integer too, perhaps one more than the greatest.
        equal = self.temporary(f"fcmp oeq double {near.ir}, {other.ir}", t.BOOL)
        kind = number.type
        assert isinstance(kind, t.IntegerType)
        top = t.float_literal(float(kind.greatest + 1), t.F64)
        beyond = self.temporary(f"fcmp oge double {other.ir}, {top}", t.BOOL)
        exact = self.convert(other, kind)
        pair = (number, exact) if whole is left else (exact, number)
        by_integer = self.compared_alike(name, *pair)
        less = name in (("lt", "le", "ne") if whole is left else ("gt", "ge", "ne"))
        settled = self.temporary(f"select i1 {beyond.ir}, i1 {str(less).lower()}, i1 {by_integer.ir}", t.BOOL)
        return self.temporary(f"select i1 {equal.ir}, i1 {settled.ir}, i1 {by_float.ir}", t.BOOL)

    def compared_tuples(self, op: ast.cmpop, left: tuple[Any, ...], right: tuple[Any, ...], node: ast.AST) -> Any:
        """`==` and `!=` of tuples."""
        if not isinstance(op, ast.Eq | ast.NotEq):
            self.error("tuples are compared by == and != only", node)
        if len(left) != len(right):
            return isinstance(op, ast.NotEq)
        result: Any = True
        for a, b in zip(left, right, strict=True):
            same = self.number(self.compared(ast.Eq(), a, b, node), node)
            result = same if result is True else self.temporary(f"and i1 {result.ir}, {same.ir}", t.BOOL)
        if isinstance(op, ast.Eq):
            return result
        return not result if isinstance(result, bool) else self.temporary(f"xor i1 {result.ir}, true", t.BOOL)

    def contained(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
        """`in` and `not in` a tuple."""
        if not isinstance(right, tuple):
            self.error(f"`in` looks into tuples, not into {self.describe(right)}", node)
        result: Any = False
        for item in right:
            same = self.number(self.compared(ast.Eq(), left, item, node), node)
            result = same if result is False else self.temporary(f"or i1 {result.ir}, {same.ir}", t.BOOL)
        if isinstance(op, ast.In):
            return result
        return not result if isinstance(result, bool) else self.temporary(f"xor i1 {result.ir}, true", t.BOOL)

    # ---------------------------------------------------------------- and, or, if

    def expression_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and` and `or`: the first operand that decides, or the last."""
        is_and = isinstance(node.op, ast.And)
        after = self.label("decided")
        ways: list[Way] = []
        for position, operand in enumerate(node.values):
            value = self.expression(operand)
            last = position == len(node.values) - 1
            truth = value if last else self.truth(value, operand)
            if last or not isinstance(truth, Value):
                if not last and bool(truth) == is_and:
                    continue
                if not ways:
                    return value
                ways.append(self.way(value))
                self.jump(after)
                break
            ways.append(self.way(value))
            more = self.label("more")
            self.branch(truth, *((more, after) if is_and else (after, more)))
            self.start(more)
        self.start(after)
        return self.meet(ways, node)

    def expression_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test)
        if not isinstance(condition, Value):
            return self.expression(node.body if condition else node.orelse)
        then, otherwise, after = self.label("then"), self.label("else"), self.label("after")
        self.branch(condition, then, otherwise)
        ways: list[Way] = []
        for label, side in ((then, node.body), (otherwise, node.orelse)):
            self.start(label)
            value = self.expression(side)
            ways.append(self.way(value))
            self.jump(after)
        self.start(after)
        return self.meet(ways, node)

    def chosen(self, values: list[Any], name: str, node: ast.AST) -> Any:
        """`min` or `max` of several numbers: as Python, the first unless a later one is beyond it."""
        best = values[0]
        for value in values[1:]:
            if not isinstance(best, Value) and not isinstance(value, Value):
                best = min(best, value) if name == "min" else max(best, value)
                continue
            better = self.number(self.compared(ast.Lt() if name == "min" else ast.Gt(), value, best, node), node)
            kind = self.common([value, best], node)
            a, b = self.promoted(value, kind, node), self.promoted(best, kind, node)
            best = self.temporary(f"select i1 {better.ir}, {kind.ir} {a.ir}, {kind.ir} {b.ir}", kind)
        return best

    # ---------------------------------------------------------------- conversions that are written

    def to_integer(self, value: Any, node: ast.AST) -> Any:
        """`int(value)`."""
        if isinstance(value, bool | int | float):
            try:
                return int(value)
            except (ValueError, OverflowError):
                pass
        number = self.number(value, node)
        if number.type != t.F64:
            return self.promoted(number, t.I64, node) if number.type == t.BOOL else number
        return self.float_to_integer(number, node)

    def float_to_integer(self, number: Value, node: ast.AST) -> Value:
        """A float without its fraction; ValueError or OverflowError if it has no integer of 64 bits."""
        low, high = t.float_literal(float(SIGN_BIT), t.F64), t.float_literal(float(-SIGN_BIT), t.F64)
        enough = self.temporary(f"fcmp oge double {number.ir}, {low}", t.BOOL)
        less = self.temporary(f"fcmp olt double {number.ir}, {high}", t.BOOL)
        fits = self.temporary(f"and i1 {enough.ir}, {less.ir}", t.BOOL)
        good, bad = self.label("good"), self.label("bad")
        self.branch(Value(fits.ir, t.BOOL, 1), good, bad)
        self.start(bad)
        self.fail_if(self.is_nan(number), "ValueError", "cannot convert float NaN to integer", node)
        infinite = self.is_infinite(number)
        self.fail_if(infinite, "OverflowError", "cannot convert float infinity to integer", node)
        self.fail("OverflowError", "this float is too large for an integer of 64 bits", node)
        self.start(good)
        return self.temporary(f"fptosi double {number.ir} to i64", t.I64)

    def wrapped(self, value: Any, kind: t.IntegerType, node: ast.AST) -> Any:
        """`gb.u8(value)` and its like: the low bits of an integer; a float saturates, as those types do in Python."""
        if isinstance(value, bool | int | float):
            return Value(str(kind(value)), t.U64) if kind == t.U64 else kind(value)
        number = self.number(value, node)
        if number.type == t.BOOL:
            number = self.promoted(number, t.I64, node)
        wide = t.U64 if kind == t.U64 else t.I64
        narrow = self.convert(number, kind)
        return self.convert(narrow, wide) if kind != wide else Value(narrow.ir, wide)


def _operator(name: str) -> ast.cmpop:
    return next(kind for kind, text in COMPARE.items() if text == name)()
