"""The state of compiling one function, and what every part of the compiler does with it.

That is: write instructions and labels, know names, load and store. Locals are stack slots, which LLVM's first pass
turns into registers; temporaries are numbered, which LLVM parses five times faster than names.
"""

import ast
import builtins
import linecache
from typing import Any, NoReturn

from greenbeat.native import types as t
from greenbeat.native.errors import NativeError
from greenbeat.native.language import NativeFunction, Static
from greenbeat.native.source import function_tree, stored_names
from greenbeat.native.unit import Unit
from greenbeat.native.values import Local, Scope, Value


class PathEnd(Exception):
    """Raised inside an expression when it turns out to leave the function, so that no code is written after that."""


class Writer:
    """The base of the emitter: what has been written so far, and where we are.

    `absent` is how the language that is compiled says that it does not have something.
    """

    absent = "{} is not part of native code"

    def __init__(self, unit: Unit, function: NativeFunction) -> None:
        self.unit = unit
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.temporaries = 0
        self.labels = 0
        self.live = True
        self.block_label = "entry"
        self.depth = 0
        self.tree = self.tree_of(function)
        self.node: ast.AST = self.tree
        self.scope = self.root = Scope(function, stored_names(self.tree), function.environment)
        self.parameters: list[Value] = []
        self.location = ""

    def tree_of(self, function: NativeFunction) -> ast.FunctionDef:
        """The syntax tree of the function to compile."""
        return function_tree(function.code)

    def expression(self, node: ast.expr) -> Any:
        """Compile an expression: a `Value`, or a compile-time object."""
        raise NotImplementedError

    def coerce(self, value: Any, kind: t.Type, context: str) -> Value:
        """Fit a value to a type."""
        raise NotImplementedError

    def statements(self, body: list[ast.stmt]) -> None:
        """Compile a suite."""
        raise NotImplementedError

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
        slot = f"%{name}.{self.labels}" if name.isascii() else f"%v.{self.labels}"
        many = f", i64 {count}" if count != 1 else ""
        self.allocas.append(f"  {slot} = alloca {kind.memory_ir}{many}, align {max(kind.align, 1)}")
        return slot

    def error(self, message: str, node: ast.AST | None = None) -> NoReturn:
        """Refuse to compile, at `node` or at the node being compiled."""
        error = NativeError(message, *self.position(node or self.node, self.scope))
        scope = self.scope
        while scope.outer is not None and scope.call is not None:
            file, line, _ = self.position(scope.call, scope.outer)
            error.add_note(f"{scope.function.python.__name__} is expanded at {file}:{line}")
            scope = scope.outer
        raise error

    def position(self, node: ast.AST, scope: Scope) -> tuple[str, int, int]:
        """File, line and column of a node, as an editor counts."""
        code = scope.function.code
        line, offset = getattr(node, "lineno", code.co_firstlineno), getattr(node, "col_offset", 0)
        before = linecache.getline(code.co_filename, line).encode()[:offset]
        return code.co_filename, line, len(before.decode("utf-8", "ignore")) + 1

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
            kind = self.value_type(kind or value.type, f"{name} cannot be a variable")
            local = Local(self.alloca(name, kind), kind)
            self.scope.names[name] = local
        elif not isinstance(local, Local):
            self.error(f"{name} is known at compile time here and cannot be assigned again")
        elif kind is not None and kind != local.type:
            self.error(f"{name} is {local.type} already")
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

    def value_type(self, kind: t.Type, context: str, node: ast.AST | None = None) -> t.Type:
        """`kind`, if values of it exist outside memory."""
        if isinstance(kind, t.VoidType):
            self.error(f"{context}: there is no value here", node)
        if isinstance(kind, t.StructType | t.ArrayType):
            self.error(
                f"{context}: a whole {kind} is no value, it has an address only (room for one is made by stack(...))",
                node,
            )
        return kind
