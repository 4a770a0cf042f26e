"""Compiles one function: walks its syntax tree once and writes LLVM IR text.

    define i64 @f(i64 %p.n) {
    entry:
      %n.1 = alloca i64                 <- one per assigned name, all at the top
      ...
      %0 = load i64, ptr %n.1           <- temporaries count up
      br i1 %1, label %then.1, label %else.1

The emitter is one object in layers, each in its own file and able to call what is below it:

    Writer        lines, names, memory, types       Intrinsics   the operations of language.py
    Expressions   operators, fields, elements       Statements   assignments and control flow
    Calls         calls, expansion in place         Emitter      the function as a whole
"""

import ast

from greenbeat.native import types as t
from greenbeat.native.errors import NativeError
from greenbeat.native.language import NativeFunction
from greenbeat.native.statements import Statements
from greenbeat.native.unit import Unit
from greenbeat.native.values import Value


class Emitter(Statements):
    """Compiles `function` into `unit`; `text` is the finished definition."""

    def __init__(self, unit: Unit, function: NativeFunction) -> None:
        super().__init__(unit, function)
        try:
            self.text = self._define(function, self.tree)
        except NativeError:
            raise
        except RecursionError:
            self.error("this is nested too deeply")
        except Exception as problem:
            # Compile-time objects run code of their own (attributes, operators, annotations), which may raise anything.
            try:
                self.error(f"{type(problem).__name__}: {problem}")
            except NativeError as error:
                raise error from problem

    def _define(self, function: NativeFunction, tree: ast.FunctionDef) -> str:
        params, returns = self._signature(function, tree)
        self.scope.returns = returns
        self.scope.debug_scope = self.unit.debug_function(function, tree.lineno)
        for (name, kind), argument in zip(params, tree.args.args, strict=True):
            self.node = argument
            value = Value(parameter(name), kind)
            self.parameters.append(value)
            self.bind_parameter(name, value)
        self.statements(tree.body)
        self.node = tree
        if self.live:
            if returns != t.VOID:
                self.error(f"{function.python.__name__} can end without returning {returns}")
            self.line("ret void")
        head = self._head(function, params, returns)
        return "\n".join([head, "entry:", *self.allocas, *self.lines, "}"])

    def _signature(self, function: NativeFunction, tree: ast.FunctionDef) -> tuple[list[tuple[str, t.Type]], t.Type]:
        arguments = tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or arguments.defaults:
            self.error("native functions take plain positional parameters without defaults")
        params, returns = self.signature(function)
        known = []
        for (name, kind), argument in zip(params, arguments.args, strict=True):
            if kind is None:
                self.error(f"parameter {name!r} needs a type, as in `{name}: i32`", argument)
            known.append((name, self.value_type(kind, f"{name} cannot be a parameter", argument)))
        if returns is None:
            self.error("the result needs a type, as in `-> i32` or `-> None`")
        if returns != t.VOID:
            self.value_type(returns, f"{function.python.__name__} cannot return this", tree.returns)
        return known, returns

    def _head(self, function: NativeFunction, params: list[tuple[str, t.Type]], returns: t.Type) -> str:
        linkage = "" if self.unit.is_external(function) else "internal "
        attributes = [
            "nounwind",
            *(["uwtable"] if self.unit.debug else []),
            *([function.attributes] if function.attributes else []),
        ]
        if function.cold:
            attributes.append("cold")
        if function.noinline or function.cold:
            attributes.append("noinline")
        debug = f" !dbg {self.scope.debug_scope}" if self.scope.debug_scope else ""
        arguments = ", ".join(f"{kind.ir} {parameter(name)}" for name, kind in params)
        return (
            f"define {linkage}{function.convention}{' ' if function.convention else ''}{returns.ir} "
            f'@"{function.symbol}"({arguments}) {" ".join(attributes)}{debug} {{'
        )


def parameter(name: str) -> str:
    """LLVM's name of a parameter."""
    return f"%p.{name}" if name.isascii() else f'%"p.{name}"'
