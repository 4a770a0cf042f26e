"""Compiles one function: walks its syntax tree once and writes LLVM IR text.

Locals are stack slots, which LLVM's first pass turns into registers; temporaries are numbered, which LLVM parses five times
faster than names. Statements, expressions, calls and the operations of the language are in the mixins beside this file.

    define i64 @f(i64 %p.n) {
    entry:
      %n.1 = alloca i64                 <- one per assigned name, all at the top
      ...
      %0 = load i64, ptr %n.1           <- temporaries count up
      br i1 %1, label %then.1, label %else.1
"""

import ast
import builtins
from typing import Any, NoReturn

from greenbeat.native import types as t
from greenbeat.native.calls import Calls
from greenbeat.native.errors import NativeError
from greenbeat.native.expressions import Expressions
from greenbeat.native.intrinsics import Intrinsics
from greenbeat.native.language import ExternFunction, NativeFunction, Static
from greenbeat.native.source import function_tree, stored_names
from greenbeat.native.statements import Statements
from greenbeat.native.unit import Unit
from greenbeat.native.values import Local, Scope, Value


class Emitter(Statements, Expressions, Calls, Intrinsics):
    """The state of compiling one function into `unit`; `text` is the finished definition."""

    def __init__(self, unit: Unit, function: NativeFunction) -> None:
        self.unit = unit
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.temporaries = 0
        self.labels = 0
        self.live = True
        self.block_label = "entry"
        self.depth = 0
        tree = function_tree(function.code)
        self.node: ast.AST = tree
        self.scope = self.root = Scope(function, stored_names(tree), function.environment)
        self.parameters: list[Value] = []
        self.location = ""
        self.text = self._define(function, tree)

    def _define(self, function: NativeFunction, tree: ast.FunctionDef) -> str:
        params, returns = self._signature(function, tree)
        self.scope.returns = returns
        self.scope.debug_scope = self.unit.debug_function(function, tree.lineno)
        for (name, kind), argument in zip(params, tree.args.args, strict=True):
            self.node = argument
            value = Value(f"%p.{name}", kind)
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
        try:
            params, returns = function.signature
        except (TypeError, NameError) as problem:
            self.error(str(problem))
        known = []
        for (name, kind), argument in zip(params, arguments.args, strict=True):
            if kind is None:
                self.error(f"parameter {name!r} needs a type, as in `{name}: i32`", argument)
            known.append((name, kind))
        if returns is None:
            self.error("the result needs a type, as in `-> i32` or `-> None`")
        return known, returns

    def _head(self, function: NativeFunction, params: list[tuple[str, t.Type]], returns: t.Type) -> str:
        linkage = "" if self.unit.is_external(function) else "internal "
        attributes = ["nounwind", *([function.attributes] if function.attributes else [])]
        if function.cold:
            attributes.append("cold")
        if function.noinline or function.cold:
            attributes.append("noinline")
        debug = f" !dbg {self.scope.debug_scope}" if self.scope.debug_scope else ""
        arguments = ", ".join(f"{kind.ir} %p.{name}" for name, kind in params)
        return (
            f"define {linkage}{function.convention}{' ' if function.convention else ''}{returns.ir} "
            f'@"{function.symbol}"({arguments}) {" ".join(attributes)}{debug} {{'
        )

    # ---------------------------------------------------------------- writing

    def line(self, text: str) -> None:
        """Append an instruction."""
        self.lines.append(f"  {text}{self.location}")

    def temporary(self, text: str, kind: t.Type) -> Value:
        """Append an instruction with a result."""
        name = f"%{self.temporaries}"
        self.temporaries += 1
        self.lines.append(f"  {name} = {text}{self.location}")
        return Value(name, kind)

    def label(self, stem: str) -> str:
        """A fresh label."""
        self.labels += 1
        return f"{stem}.{self.labels}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block_label = label
        self.live = True

    def jump(self, label: str) -> None:
        """End the block, if it is live, by going to `label`."""
        if self.live:
            self.line(f"br label %{label}")
            self.live = False

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        """End the block by a conditional branch, with the weight of `likely` or `unlikely`."""
        weight = {0: "", 1: ", !prof !0", -1: ", !prof !1"}[condition.weight]
        self.line(f"br i1 {condition.ir}, label %{then}, label %{otherwise}{weight}")
        self.live = False

    def alloca(self, name: str, kind: t.Type, count: int = 1) -> str:
        """A stack slot at the top of the function."""
        self.labels += 1
        slot = f"%{name}.{self.labels}"
        many = f", i64 {count}" if count != 1 else ""
        self.allocas.append(f"  {slot} = alloca {kind.memory_ir}{many}, align {max(kind.align, 1)}")
        return slot

    def error(self, message: str, node: ast.AST | None = None) -> NoReturn:
        """Refuse to compile, at `node` or at the node being compiled."""
        node = node or self.node
        code = self.scope.function.code
        line = getattr(node, "lineno", code.co_firstlineno)
        raise NativeError(message, code.co_filename, line, getattr(node, "col_offset", 0) + 1)

    def at(self, node: ast.AST) -> None:
        """Note where the instructions that follow come from."""
        self.node = node
        if self.scope.debug_scope:
            self.location = self.unit.debug_location(node, self.scope)

    # ---------------------------------------------------------------- names

    def bind_parameter(self, name: str, value: Any) -> None:
        """Make a parameter known: as a variable if the body assigns it, else as what was passed."""
        if name in self.scope.stored and isinstance(value, Value):
            self.assign_name(name, value)
        else:
            self.scope.names[name] = value
            self.scope.assigned.add(name)

    def assign_name(self, name: str, value: Any, kind: t.Type | None = None) -> None:
        """Assign a local variable, made at its first assignment with the type of its first value (or `kind`)."""
        local = self.scope.names.get(name)
        if local is None:
            if kind is None and not isinstance(value, Value):
                if isinstance(value, bool):
                    kind = t.BOOL
                elif isinstance(value, int):
                    kind = t.I64
                elif isinstance(value, float):
                    kind = t.F64
                else:
                    self.scope.names[name] = value
                    self.scope.assigned.add(name)
                    return
            kind = kind or value.type
            if kind == t.VOID:
                self.error(f"{name} is given the result of a call that returns nothing")
            local = Local(self.alloca(name, kind), kind)
            self.scope.names[name] = local
        elif not isinstance(local, Local):
            self.error(f"{name} is a compile-time value here and cannot be assigned again")
        self.store_value(self.coerce(value, local.type, f"{name} is {local.type}"), local.slot)
        self.scope.assigned.add(name)

    def lookup(self, name: str) -> Any:
        """What a name means here: a variable, a closure's value, a global or a builtin."""
        scope = self.scope
        found = scope.names.get(name)
        if found is not None:
            if name not in scope.assigned:
                self.error(f"{name} may be used here before it is assigned")
            return self.load_value(found.slot, found.type) if isinstance(found, Local) else found
        if name in scope.names:
            return None
        if name in scope.stored:
            self.error(f"{name} is used here before it is assigned")
        if name in scope.environment:
            return self.known(scope.environment[name])
        names = scope.function.python.__globals__
        if name in names:
            return self.known(names[name])
        if hasattr(builtins, name):
            return getattr(builtins, name)
        self.error(f"unknown name {name!r}")

    def known(self, value: Any) -> Any:
        """A compile-time object as an expression: statics become pointers, the rest stays itself."""
        if isinstance(value, Static):
            kind = value.type
            target = kind.of if isinstance(kind, t.ArrayType) else kind
            return Value(self.unit.static(value), t.PointerType(target))
        return value

    # ---------------------------------------------------------------- memory

    def load_value(self, slot: str, kind: t.Type, align: int = 0, modifier: str = "") -> Value:
        """Load a value of `kind`; a bool is a byte in memory."""
        value = self.temporary(f"load {modifier}{kind.memory_ir}, ptr {slot}, align {align or kind.align}", kind)
        return self.temporary(f"trunc i8 {value.ir} to i1", kind) if kind == t.BOOL else value

    def store_value(self, value: Value, slot: str, align: int = 0, modifier: str = "") -> None:
        """Store a value."""
        kind = value.type
        if kind == t.BOOL:
            value = self.temporary(f"zext i1 {value.ir} to i8", kind)
        self.line(f"store {modifier}{kind.memory_ir} {value.ir}, ptr {slot}, align {align or kind.align}")

    # ---------------------------------------------------------------- types

    def coerce(self, value: Any, kind: t.Type, context: str) -> Value:
        """`value` where a `kind` is needed: literals take its type, everything else must have it."""
        if isinstance(value, Value):
            if value.type == kind:
                return value
            if isinstance(kind, t.PointerType) and isinstance(value.type, t.PointerType | t.FunctionType):
                if kind.of == t.VOID or (isinstance(value.type, t.PointerType) and value.type.of == t.VOID):
                    return Value(value.ir, kind)
            self.error(f"{context}, but this is {value.type}{self._hint(value.type, kind)}")
        return self.literal(value, kind, context)

    def _hint(self, found: t.Type, wanted: t.Type) -> str:
        numbers = (t.IntegerType, t.FloatType)
        if isinstance(found, numbers) and isinstance(wanted, numbers):
            return f": write {wanted}(...) to convert"
        if isinstance(found, t.PointerType) and isinstance(wanted, t.PointerType):
            return f": write cast({wanted}, ...)"
        return ""

    def literal(self, value: Any, kind: t.Type, context: str) -> Value:
        """A compile-time value as an operand of type `kind`."""
        if isinstance(kind, t.BoolType) and isinstance(value, bool):
            return Value("true" if value else "false", kind)
        if isinstance(kind, t.IntegerType) and isinstance(value, int) and not isinstance(value, bool):
            value = int(value)
            if not kind.fits(value):
                self.error(f"{value} does not fit {kind}")
            return Value(str(value), kind)
        if isinstance(kind, t.FloatType) and isinstance(value, int | float) and not isinstance(value, bool):
            return Value(t.float_literal(float(value), kind), kind)
        if isinstance(kind, t.PointerType):
            if value is None:
                return Value("null", kind)
            if isinstance(value, str | bytes):
                data = value.encode() if isinstance(value, str) else value
                return Value(self.unit.constant_bytes(data + b"\0"), kind)
        if isinstance(kind, t.PointerType | t.FunctionType) and isinstance(value, NativeFunction | ExternFunction):
            if isinstance(kind, t.FunctionType) and self.function_type(value) != kind:
                self.error(f"{context}, but {value} is {self.function_type(value)}")
            return Value(self.unit.reference(value), kind)
        if isinstance(kind, t.FunctionType) and value is None:
            return Value("null", kind)
        self.error(f"{context}, but this is {self.describe(value)}")

    def function_type(self, function: NativeFunction | ExternFunction) -> t.FunctionType:
        """The type of a pointer to `function`."""
        try:
            return function.type
        except (TypeError, NameError) as problem:
            self.error(str(problem))

    def describe(self, value: Any) -> str:
        """A compile-time value in an error message."""
        if isinstance(value, bool | int | float | str | bytes):
            return f"the {type(value).__name__} {value!r}"
        return repr(value) if value is not None else "None"

    def type_of(self, value: Any) -> t.Type | None:
        """The native type that a compile-time object stands for, if it does."""
        if isinstance(value, Value):
            return None
        value = getattr(value, "native_type", value)
        if isinstance(value, t.Type):
            return value
        if value is bool:
            return t.BOOL
        return getattr(value, "__native_struct__", None) if isinstance(value, type) else None
