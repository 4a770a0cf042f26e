"""Statements of kernels: assignment, variables, return, raise, assert, match."""

import ast
import builtins
from functools import cached_property
from typing import Any

from greenbeat.errors import KernelError
from greenbeat.kernels.loops import Loops
from greenbeat.kernels.source import KernelFunction, constant
from greenbeat.kernels.types import ArrayType, TupleType, computed, kernel_type, scalars
from greenbeat.kernels.values import MOST_LOCALS, ArrayValue, TupleLocal
from greenbeat.native import types as t
from greenbeat.native.values import Local, Value


class KernelStatements(Loops):
    """Layer of `KernelEmitter`.

    Attributes:
        declared: the types that variables were annotated with.
        first_assigned: the line of each variable's first assignment.
        discarded: expressions whose value nobody uses.
    """

    discarded: set[ast.expr]

    def __init__(self, unit: Any, function: KernelFunction) -> None:
        self.declared: dict[str, t.Type] = {}
        self.first_assigned: dict[str, int] = {}
        super().__init__(unit, function)

    # ---------------------------------------------------------------- variables

    @cached_property
    def reads_underscore(self) -> bool:
        """Whether the kernel reads a variable that is called `_`."""
        return any(isinstance(n, ast.Name) and n.id == "_" and isinstance(n.ctx, ast.Load) for n in ast.walk(self.tree))

    def variable(self, name: str, kind: t.Type) -> Local | TupleLocal:
        """Places for a variable of this type."""
        if isinstance(kind, TupleType):
            return TupleLocal(tuple(self.variable(f"{name}.{i}", item) for i, item in enumerate(kind.items)))
        wide = computed(kind)
        if len(self.allocas) >= MOST_LOCALS:
            self.error(f"a kernel has at most {MOST_LOCALS} variables: move a part of this one into another kernel")
        return Local(self.alloca(name, wide), wide)

    def assign_name(self, name: str, value: Any, kind: t.Type | None = None) -> None:
        """Assign a variable, made at its first assignment with the type of its first value (or `kind`)."""
        if name == "_" and isinstance(value, Value) and value.type == t.VOID:
            return
        found = self.scope.names.get(name)
        if found is None and name not in self.scope.names:
            if isinstance(value, ArrayValue) or not (isinstance(value, Value | tuple) or constant(value)):
                self.scope.names[name] = value
                self.scope.assigned.add(name)
                return
            known = kind or self.kind_of(value, self.node)
            self.scope.names[name] = found = self.variable(name, known)
            self.declared[name] = known
            self.first_assigned[name] = getattr(self.node, "lineno", 0)
        elif not isinstance(found, Local | TupleLocal):
            self.error(f"{name} is {self.describe(found)} and cannot become something else: use another name")
        elif kind is not None and kind != self.declared[name]:
            self.error(f"{name} is {self.declared[name]} already")
        known = self.declared[name]
        line = self.first_assigned[name]
        self.put(found, self.fitted(value, known, f"{name} is {known} since line {line}", self.node))
        self.scope.assigned.add(name)

    def put(self, place: Any, value: Any) -> None:
        """Store a value that fits into a variable's places."""
        if isinstance(place, TupleLocal):
            for inner, item in zip(place.items, value, strict=True):
                self.put(inner, item)
        else:
            self.store_value(self.operand(value, self.node), place.slot)

    def get(self, place: Any) -> Any:
        """What a variable holds."""
        if isinstance(place, TupleLocal):
            return tuple(self.get(inner) for inner in place.items)
        return self.load_value(place.slot, place.type)

    def lookup(self, name: str) -> Any:
        """What a name means here: a variable, a closure's value, a global or a builtin."""
        scope = self.scope
        if name in scope.stored or name in scope.names:
            if name not in scope.assigned:
                never = name not in scope.names
                self.error(
                    f"{name} is used here before it is assigned"
                    if never
                    else f"{name} may be unassigned here: give it a value on every way that leads here"
                )
            found = scope.names[name]
            return self.get(found) if isinstance(found, Local | TupleLocal) else found
        if name in scope.environment:
            return self.known(scope.environment[name])
        names = scope.function.python.__globals__
        if name in names:
            return self.known(names[name])
        if hasattr(builtins, name):
            return getattr(builtins, name)
        self.error(f"the name {name!r} is not defined")

    def known(self, value: Any) -> Any:
        """An object from outside as an expression: numbers lose what subclasses add to them."""
        if isinstance(value, bool | tuple):
            return value
        for kind in (int, float):
            if isinstance(value, kind):
                return kind(value)
        return value

    # ---------------------------------------------------------------- assignment

    def statement_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.discarded.add(node.value)
            self.expression(node.value)

    def statement_Assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        for target in node.targets:
            self.node = node
            self.assign(target, value)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Assign to a name, an element, or several of those."""
        if isinstance(target, ast.Name):
            self.node = target
            # What nobody reads may be something else each time.
            if target.id != "_" or self.reads_underscore:
                self.assign_name(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            if not isinstance(value, tuple):
                self.error(f"{self.describe(value)} is no tuple and cannot be unpacked", target)
            if len(value) != len(target.elts):
                self.error(f"{len(target.elts)} names for a tuple of {len(value)}", target)
            for element, item in zip(target.elts, value, strict=True):
                self.assign(element, item)
        elif isinstance(target, ast.Subscript):
            place, kind = self.place_of(target)
            self.store_element(value, place, kind, target)
        else:
            self.error("a kernel assigns to names and to elements of arrays", target)

    def statement_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.error("only names are annotated", node.target)
        kind = self.annotated(node.annotation)
        self.node = node.target
        if node.value is not None:
            self.assign_name(node.target.id, self.expression(node.value), kind)
        elif node.target.id not in self.scope.names:
            self.scope.names[node.target.id] = self.variable(node.target.id, kind)
            self.declared[node.target.id] = kind
            self.first_assigned[node.target.id] = node.lineno

    def annotated(self, node: ast.expr) -> t.Type:
        """The type that a variable's annotation means."""
        scope = {**self.scope.function.python.__globals__, **self.scope.environment}
        try:
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
            kind = kernel_type(eval(text, scope))
        except Exception as problem:
            self.error(str(problem), node)
        if kind == t.VOID or isinstance(kind, ArrayType):
            self.error(f"a variable cannot be annotated with {kind}", node)
        return kind

    def statement_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            old = self.lookup(target.id)
            new = self.binary(node.op, old, self.expression(node.value), node)
            self.node = node
            self.assign_name(target.id, new)
        elif isinstance(target, ast.Subscript):
            place, kind = self.place_of(target)
            old = self.load_element(place, kind)
            self.store_element(self.binary(node.op, old, self.expression(node.value), node), place, kind, node)
        else:
            self.error("a kernel assigns to names and to elements of arrays", target)

    # ---------------------------------------------------------------- leaving

    def statement_Return(self, node: ast.Return) -> None:
        value = self.expression(node.value) if node.value is not None else None
        self.finish(value, node.value or node)

    def finish(self, value: Any, node: ast.AST) -> None:
        """Return from the kernel."""
        result = self.kernel.result
        if result == t.VOID:
            if value is not None and not (isinstance(value, Value) and value.type == t.VOID):
                self.error("this kernel's result is None, by its `->`", node)
            self.line("ret void")
        elif value is None:
            self.error(f"this kernel returns {result}, but no value is given", node)
        else:
            fitted = self.fitted(value, result, f"{self.kernel.python.__name__} returns {result}", node)
            items = flattened(fitted)
            kind = result_ir(result)
            if not isinstance(result, TupleType):
                whole = self.number(items[0], node).ir
            else:
                whole = "poison"
                for place, item in enumerate(items):
                    number = self.number(item, node)
                    text = f"insertvalue {kind} {whole}, {number.type.ir} {number.ir}, {place}"
                    whole = self.temporary(text, number.type).ir
            self.line(f"ret {kind} {whole}")
        self.live = False

    def statement_Raise(self, node: ast.Raise) -> None:
        raised: ast.expr | None = node.exc
        arguments: list[ast.expr] = []
        if isinstance(raised, ast.Call) and not raised.keywords:
            arguments, raised = raised.args, raised.func
        kind = self.expression(raised) if raised is not None else None
        name = str(getattr(kind, "__name__", ""))
        if not isinstance(kind, type) or not issubclass(kind, Exception) or getattr(builtins, name, None) is not kind:
            self.error('a kernel raises exceptions that are built in, as in `raise ValueError("text")`', node)
        if node.cause is not None or len(arguments) > 1:
            self.error('an exception of a kernel has one constant text, as in `raise ValueError("text")`', node)
        text = self.constant_text(arguments[0], f'raise {name}("text")') if arguments else ""
        self.raise_text(name, text, node)

    def constant_text(self, node: ast.expr, usage: str, kinds: Any = str) -> str:
        """The text of an exception: what can be told before the kernel runs."""
        found = None
        try:
            found = self.expression(node)
        except KernelError:
            # Of a name, what is wrong is no matter of texts.
            if isinstance(node, ast.Name | ast.Attribute):
                raise
        if not isinstance(found, kinds):
            self.error(f"a kernel's exception has a constant text, as in `{usage}`: it tells nothing computed", node)
        return str(found)

    def expression_JoinedStr(self, node: ast.JoinedStr) -> Any:
        parts: list[str] = []
        for part in node.values:
            value = self.expression(part.value if isinstance(part, ast.FormattedValue) else part)
            plain = not isinstance(part, ast.FormattedValue) or (part.conversion < 0 and part.format_spec is None)
            if not plain or not (isinstance(value, str) or constant(value)):
                self.error(self.absent.format("an f-string, unless all of it is constant"), node)
            parts.append(str(value))
        return "".join(parts)

    def raise_text(self, exception: str, text: str, node: ast.AST) -> None:
        """Raise an exception with a constant text, as it is."""
        self.fail(exception, [text], node)

    def statement_Assert(self, node: ast.Assert) -> None:
        if not __debug__:
            return
        condition = self.condition(node.test)
        good, bad = self.label("holds"), self.label("fails")
        if isinstance(condition, Value):
            self.branch(Value(condition.ir, t.BOOL, 1), good, bad)
        else:
            self.jump(good if condition else bad)
        self.start(bad)
        text = ""
        if node.msg is not None:
            text = self.constant_text(node.msg, 'assert n > 0, "text"', str | int | float)
        self.raise_text("AssertionError", text, node.test)
        self.start(good)

    # ---------------------------------------------------------------- match

    def statement_Match(self, node: ast.Match) -> None:
        subject = self.expression(node.subject)
        after = self.label("after")
        before, exits = set(self.scope.assigned), []
        for case in node.cases:
            self.scope.assigned = set(before)
            self.node = case.pattern
            otherwise = self.label("case")
            certain = self.test_pattern(case.pattern, subject, otherwise)
            if case.guard is not None:
                guard = self.condition(case.guard)
                holds = self.label("holds")
                if isinstance(guard, Value):
                    self.branch(guard, holds, otherwise)
                else:
                    self.jump(holds if guard else otherwise)
                self.start(holds)
                certain = False
            self.statements(case.body)
            if self.live:
                exits.append(set(self.scope.assigned))
            self.jump(after)
            self.start(otherwise)
            if certain:
                # Nothing comes here; LLVM drops the block.
                self.line("unreachable")
                self.live = False
                break
        if self.live:
            exits.append(before)
            self.jump(after)
        if exits:
            self.scope.assigned = set.intersection(*exits)
            self.start(after)

    def test_pattern(self, pattern: ast.pattern, subject: Any, otherwise: str) -> bool:
        """Go on if a pattern fits, else go to `otherwise`; returns whether it always fits."""
        if isinstance(pattern, ast.MatchAs):
            certain = pattern.pattern is None or self.test_pattern(pattern.pattern, subject, otherwise)
            if pattern.name is not None:
                self.assign_name(pattern.name, subject)
            return certain
        if isinstance(pattern, ast.MatchValue | ast.MatchSingleton):
            value = pattern.value if isinstance(pattern, ast.MatchSingleton) else self.expression(pattern.value)
            if value is None:
                self.error("None matches nothing in a kernel", pattern)
            return self.require(self.compared(ast.Eq(), subject, value, pattern), otherwise)
        if isinstance(pattern, ast.MatchSequence):
            if not isinstance(subject, tuple) or len(subject) != len(pattern.patterns):
                self.error(f"this pattern is for a tuple of {len(pattern.patterns)} items", pattern)
            results = [self.test_pattern(p, s, otherwise) for p, s in zip(pattern.patterns, subject, strict=True)]
            return all(results)
        if isinstance(pattern, ast.MatchOr):
            fits = self.label("fits")
            certain = False
            for each in pattern.patterns:
                following = self.label("or")
                certain = self.test_pattern(each, subject, following) or certain
                self.jump(fits)
                self.start(following)
            self.jump(otherwise)
            self.start(fits)
            return certain
        self.error("a `case` of a kernel is made of numbers, names, `|`, `_` and tuples", pattern)

    def require(self, condition: Any, otherwise: str) -> bool:
        """Go on if a condition holds; returns whether it always does."""
        fits = self.label("fits")
        if isinstance(condition, Value):
            self.branch(condition, fits, otherwise)
        else:
            self.jump(fits if condition else otherwise)
        self.start(fits)
        return condition is True


def flattened(value: Any) -> list[Any]:
    """The numbers in a value."""
    return [number for item in value for number in flattened(item)] if isinstance(value, tuple) else [value]


def result_ir(kind: t.Type) -> str:
    """LLVM's type of what a kernel returns."""
    if isinstance(kind, TupleType):
        return "{ " + ", ".join(computed(scalar).ir for scalar in scalars(kind)) + " }"
    return computed(kind).ir
