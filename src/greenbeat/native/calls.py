"""Calls in native code: of functions, through pointers, expanded in place, and Python called at compile time."""

import ast
from typing import Any

from greenbeat.native import types as t
from greenbeat.native.expressions import Expressions
from greenbeat.native.language import ExternFunction, NativeFunction, Operation
from greenbeat.native.source import function_tree, stored_names
from greenbeat.native.values import Scope, Value
from greenbeat.native.writer import PathEnd

DEEPEST_EXPANSION = 40


class Calls(Expressions):
    """Layer of `Emitter`."""

    def operation(self, operation: Operation, node: ast.Call) -> Any:
        """Compile a call of an operation of the language."""
        raise NotImplementedError

    def expression_Call(self, node: ast.Call) -> Any:
        result = self.call_expression(node)
        if not self.live:
            raise PathEnd
        return result

    def call_expression(self, node: ast.Call) -> Any:
        """A call of whatever the callee turns out to be."""
        callee = self.expression(node.func)
        if isinstance(callee, Operation):
            return self.operation(callee, node)
        arguments = self.arguments(node)
        if isinstance(callee, Value):
            return self.call_pointer(callee, arguments, node)
        if isinstance(callee, NativeFunction):
            return self.expand(callee, arguments, node) if callee.inline else self.call(callee, arguments, node)
        if isinstance(callee, ExternFunction):
            return self.call(callee, arguments, node)
        kind = self.type_of(callee)
        if kind is not None:
            if len(arguments) != 1:
                self.error(f"{kind}(...) converts one value", node)
            self.value_type(kind, f"{kind}(...)", node)
            return self.convert(arguments[0], kind)
        return self.call_at_compile_time(callee, arguments, node)

    def arguments(self, node: ast.Call) -> list[Any]:
        """The arguments' values; `*tuple` is spread when it is known at compile time."""
        if node.keywords:
            self.error("native calls have positional arguments only", node.keywords[0].value)
        values: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                spread = self.expression(argument.value)
                if not isinstance(spread, tuple | list):
                    self.error("only compile-time sequences are spread by *", argument)
                values.extend(spread)
            else:
                values.append(self.expression(argument))
        return values

    def call_at_compile_time(self, callee: Any, arguments: list[Any], node: ast.Call) -> Any:
        """Call ordinary Python with compile-time arguments; it may return functions, types, numbers."""
        if any(isinstance(a, Value) for a in arguments):
            name = getattr(callee, "__name__", repr(callee))
            self.error(f"{name} is not native: native code can call it only with compile-time values", node)
        try:
            return self.known(callee(*arguments))
        except Exception as problem:
            self.error(f"{type(problem).__name__} at compile time: {problem}", node)

    # ---------------------------------------------------------------- functions

    def operands(self, kind: t.FunctionType, arguments: list[Any], name: str, variadic: bool = False) -> str:
        """LLVM's argument list, each argument coerced to its parameter's type."""
        wanted, given = len(kind.params), len(arguments)
        if given < wanted or (given > wanted and not variadic):
            self.error(f"{name} takes {count(wanted)}, not {given}")
        parts = []
        for position, (argument, param) in enumerate(zip(arguments, kind.params, strict=False), 1):
            value = self.coerce(argument, param, f"argument {position} of {name} is {param}")
            parts.append(f"{param.ir} {value.ir}")
        for argument in arguments[wanted:]:
            if not isinstance(argument, Value):
                kind_of = (
                    t.I64
                    if isinstance(argument, int)
                    else t.F64
                    if isinstance(argument, float)
                    else t.PointerType(t.U8)
                )
                argument = self.literal(argument, kind_of, "a variadic argument")
            argument = self.promote(argument)
            parts.append(f"{argument.type.ir} {argument.ir}")
        return ", ".join(parts)

    def promote(self, argument: Value) -> Value:
        """A variadic argument as C passes it: small integers as int, floats as double."""
        kind = self.value_type(argument.type, "an argument")
        if isinstance(kind, t.BoolType) or (isinstance(kind, t.IntegerType) and kind.bits < 32):
            name = "sext" if isinstance(kind, t.IntegerType) and kind.signed else "zext"
            return self.temporary(f"{name} {kind.ir} {argument.ir} to i32", t.I32)
        return self.convert(argument, t.F64) if kind == t.F32 else argument

    def call(
        self, callee: NativeFunction | ExternFunction, arguments: list[Any], node: ast.AST, tail: bool = False
    ) -> Value:
        """Call a function by name."""
        kind = self.function_type(callee)
        variadic = isinstance(callee, ExternFunction) and callee.variadic
        operands = self.operands(kind, arguments, callee.symbol, variadic)
        returns = kind.returns.ir
        if variadic:
            returns = f"{returns} ({', '.join(p.ir for p in kind.params)}, ...)"
        result = self.emit_call(kind, returns, self.unit.reference(callee), operands, tail)
        if isinstance(callee, ExternFunction) and "noreturn" in callee.attributes.split():
            self.line("unreachable")
            self.live = False
        return result

    def call_pointer(self, callee: Value, arguments: list[Any], node: ast.AST, tail: bool = False) -> Value:
        """Call through a function pointer."""
        if not isinstance(callee.type, t.FunctionType):
            self.error(f"{callee.type} cannot be called", node)
        operands = self.operands(callee.type, arguments, "this function")
        return self.emit_call(callee.type, callee.type.returns.ir, callee.ir, operands, tail)

    def emit_call(self, kind: t.FunctionType, returns: str, target: str, operands: str, tail: bool) -> Value:
        """The call itself; a tail call ends the function."""
        convention = f"{kind.convention} " if kind.convention else ""
        text = f"call {convention}{returns} {target}({operands})"
        if tail:
            text = f"musttail {text}"
        if kind.returns == t.VOID:
            self.line(text)
            result = Value("", t.VOID)
        else:
            result = self.temporary(text, kind.returns)
        if tail:
            self.line("ret void" if kind.returns == t.VOID else f"ret {kind.returns.ir} {result.ir}")
            self.live = False
        return result

    def tail_call(self, node: ast.Call) -> Value:
        """`return tail(f(...))`: musttail, so the frame is gone before `f` runs."""
        if len(node.args) != 1 or not isinstance(node.args[0], ast.Call):
            self.error("tail(...) takes one call, as in `return tail(f(x))`", node)
        inner = node.args[0]
        callee, arguments = self.expression(inner.func), self.arguments(inner)
        if isinstance(callee, NativeFunction) and callee.inline:
            self.error("an inline function cannot be tail-called", node)
        if not isinstance(callee, Value | NativeFunction | ExternFunction):
            self.error(f"{self.describe(callee)} cannot be tail-called: native functions can", node)
        own = self.function_type(self.root.function)
        kind = callee.type if isinstance(callee, Value) else self.function_type(callee)
        if not isinstance(kind, t.FunctionType) or kind.convention != own.convention or kind.returns != own.returns:
            self.error("a tail call needs a function with this function's calling convention and result type", node)
        if own.convention not in ("tailcc", "swifttailcc") and [p.ir for p in kind.params] != [
            p.ir for p in own.params
        ]:
            self.error("a tail call outside `tailcc` needs a function with this function's parameter types", node)
        if isinstance(callee, Value):
            return self.call_pointer(callee, arguments, node, tail=True)
        return self.call(callee, arguments, node, tail=True)

    # ---------------------------------------------------------------- expansion

    def expand(self, callee: NativeFunction, arguments: list[Any], node: ast.AST) -> Any:
        """Compile an inline function's body here, its parameters bound to the arguments."""
        tree = function_tree(callee.code)
        params, returns = self.signature(callee)
        if len(params) != len(arguments):
            self.error(f"{callee.python.__name__} takes {count(len(params))}, not {len(arguments)}", node)
        if self.depth > DEEPEST_EXPANSION:
            self.error(f"{callee.python.__name__} expands itself without end", node)
        bound = []
        for (name, kind), argument in zip(params, arguments, strict=True):
            if kind is not None:
                argument = self.coerce(argument, kind, f"{name} of {callee.python.__name__} is {kind}")
            bound.append((name, argument))
        outer, outer_node, outer_location = self.scope, self.node, self.location
        scope = Scope(callee, stored_names(tree), callee.environment, returns=returns, exit=self.label("exit"))
        scope.outer, scope.call = outer, node
        if outer.debug_scope:
            scope.debug_scope = self.unit.debug_function(callee, tree.lineno)
            scope.called_at = self.unit.debug_location_id(node, outer)
        self.scope = scope
        self.depth += 1
        for name, argument in bound:
            self.bind_parameter(name, argument)
        self.statements(tree.body)
        self.depth -= 1
        wants_value = returns not in (None, t.VOID) or scope.result is not None or scope.static_result is not None
        if self.live and wants_value:
            self.error(f"{callee.python.__name__} can end without returning {returns or 'a value'}", tree)
        reached = self.live or scope.returned > 0
        self.jump(scope.exit)
        self.scope, self.node, self.location = outer, outer_node, outer_location
        if reached:
            self.start(scope.exit)
        if scope.result is not None:
            return self.load_value(scope.result.slot, scope.result.type)
        return scope.static_result if scope.static_result is not None else Value("", t.VOID)


def count(arguments: int) -> str:
    """`1 argument`, `2 arguments`."""
    return f"{arguments} argument{'s' if arguments != 1 else ''}"
