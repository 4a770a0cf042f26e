"""Statements of native code."""

import ast
from typing import Any

from greenbeat.native import language, types as t
from greenbeat.native.intrinsics import Intrinsics
from greenbeat.native.values import Local, Loop, Value
from greenbeat.native.writer import PathEnd

UNSUPPORTED: dict[type[ast.stmt], str] = {
    ast.FunctionDef: "a function inside a function",
    ast.AsyncFunctionDef: "an async function",
    ast.ClassDef: "a class inside a function",
    ast.Delete: "`del`",
    ast.With: "`with`",
    ast.AsyncWith: "`async with`",
    ast.AsyncFor: "`async for`",
    ast.Raise: "`raise`",
    ast.Try: "`try`",
    ast.TryStar: "`try`",
    ast.Import: "`import`",
    ast.ImportFrom: "`import`",
    ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`",
}


class Statements(Intrinsics):
    """Layer of `Emitter`: one method per kind of statement."""

    def statements(self, body: list[ast.stmt]) -> None:
        """Compile a suite; what follows a return or a jump is never reached and not compiled."""
        for statement in body:
            if not self.live:
                return
            self.at(statement)
            method = getattr(self, f"statement_{type(statement).__name__}", None)
            if method is None:
                self.error(self.absent.format(UNSUPPORTED.get(type(statement), type(statement).__name__)), statement)
            try:
                method(statement)
            except PathEnd:
                return

    def statement_Pass(self, node: ast.Pass) -> None:
        pass

    def statement_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def statement_Return(self, node: ast.Return) -> None:
        value = self.expression(node.value) if node.value is not None else None
        scope = self.scope
        if scope is self.root:
            self.finish(value, node)
            return
        scope.returned += 1
        if scope.returns is None and (scope.static_result is not None or not isinstance(value, Value)):
            if scope.returned > 1 and not (value is None and scope.static_result is None and scope.result is None):
                self.error("an inline function without a result type returns a compile-time value in one place only")
            scope.static_result = value
        elif scope.returns != t.VOID or value is not None:
            if scope.result is None:
                assert scope.returns is not None or isinstance(value, Value)
                kind = scope.returns or value.type  # type: ignore[union-attr]
                if kind == t.VOID:
                    self.jump(scope.exit)
                    return
                scope.result = Local(self.alloca("result", kind), kind)
            kind = scope.result.type
            self.store_value(
                self.coerce(value, kind, f"{scope.function.python.__name__} returns {kind}"), scope.result.slot
            )
        self.jump(scope.exit)

    def finish(self, value: Any, node: ast.AST) -> None:
        """Return from the function that is being compiled."""
        returns = self.root.returns
        assert returns is not None
        if returns == t.VOID:
            if value is not None and not (isinstance(value, Value) and value.type == t.VOID):
                self.error("this function returns nothing", node)
            self.line("ret void")
        else:
            if value is None and not isinstance(returns, t.PointerType | t.FunctionType):
                self.error(f"this function returns {returns}, but no value is given", node)
            result = self.coerce(value, returns, f"this function returns {returns}")
            self.line(f"ret {returns.ir} {result.ir}")
        self.live = False

    def statement_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            self.error("assign to one name at a time")
        self.assign(node.targets[0], self.expression(node.value))

    def statement_AnnAssign(self, node: ast.AnnAssign) -> None:
        kind = self.type_of(self.expression(node.annotation))
        if kind is None:
            self.error("this annotation is no native type", node.annotation)
        if not isinstance(node.target, ast.Name):
            self.error("only names are annotated")
        name = node.target.id
        if node.value is not None:
            self.assign_name(name, self.expression(node.value), kind)
        elif name in self.scope.names:
            self.error(f"{name} has a type already")
        else:
            kind = self.value_type(kind, f"{name} cannot be a variable", node.annotation)
            self.scope.names[name] = Local(self.alloca(name, kind), kind)

    def statement_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            old = self.lookup(node.target.id)
            new = self.binary(node.op, old, self.expression(node.value), node)
            self.assign_name(node.target.id, new)
            return
        place, kind = self.place(node.target)
        old = self.read_place(place, kind)
        new = self.binary(node.op, old, self.expression(node.value), node)
        self.store_value(self.coerce(new, kind, f"this place holds {kind}"), place.ir)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Assign to a name, a field, an element, or a tuple of those."""
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        elif isinstance(target, ast.Tuple):
            if isinstance(value, Value) or not isinstance(value, tuple) or len(value) != len(target.elts):
                self.error(f"{len(target.elts)} values are needed here", target)
            for element, item in zip(target.elts, value, strict=True):
                self.assign(element, item)
        else:
            place, kind = self.place(target)
            if isinstance(kind, t.ArrayType | t.StructType):
                self.error(f"a whole {kind} cannot be assigned: copy(addressof(...), ..., sizeof(...))", target)
            self.store_value(self.coerce(value, kind, f"this place holds {kind}"), place.ir)

    def statement_Assert(self, node: ast.Assert) -> None:
        if not self.unit.checked:
            return
        condition = self.condition(node.test)
        if not isinstance(condition, Value):
            if not condition:
                self.error("this assertion never holds")
            return
        good, bad = self.label("holds"), self.label("fails")
        condition.weight = 1
        self.branch(condition, good, bad)
        self.start(bad)
        code = self.scope.function.code
        what = f"{code.co_filename}:{node.lineno}: assertion failed: {ast.unparse(node.test)}\n"
        self.line(
            f"call void {self.unit.assertion_failure()}(ptr {self.unit.constant_bytes(what.encode() + bytes(1))})"
        )
        self.line("unreachable")
        self.start(good)

    # ---------------------------------------------------------------- control flow

    def statement_If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if not isinstance(condition, Value):
            self.statements(node.body if condition else node.orelse)
            return
        then, otherwise, after = self.label("then"), self.label("else"), self.label("after")
        self.branch(condition, then, otherwise if node.orelse else after)
        before = set(self.scope.assigned)
        self.start(then)
        self.statements(node.body)
        then_live, then_assigned = self.live, self.scope.assigned
        self.jump(after)
        self.scope.assigned = set(before)
        else_live = True
        if node.orelse:
            self.start(otherwise)
            self.statements(node.orelse)
            else_live = self.live
            self.jump(after)
        if then_live and else_live:
            self.scope.assigned &= then_assigned
        elif then_live:
            self.scope.assigned = then_assigned
        if then_live or else_live:
            self.start(after)
        else:
            self.live = False

    def statement_While(self, node: ast.While) -> None:
        if node.orelse:
            self.error(self.absent.format("`else` after a loop"), node.orelse[0])
        again, body, after = self.label("again"), self.label("body"), self.label("after")
        self.jump(again)
        self.start(again)
        condition = self.condition(node.test)
        loop = Loop(again, after)
        if isinstance(condition, Value):
            self.branch(condition, body, after)
            loop.assigned_at_exit.append(set(self.scope.assigned))
            self.start(body)
        elif not condition:
            self.jump(after)
            self.start(after)
            return
        self.loop_body(loop, node.body)
        self.jump(again)
        self.leave_loop(loop)

    def loop_body(self, loop: Loop, body: list[ast.stmt]) -> None:
        """Compile a loop's body with `break` and `continue` known."""
        self.scope.loops.append(loop)
        self.statements(body)
        self.scope.loops.pop()

    def leave_loop(self, loop: Loop) -> None:
        """Go on after a loop, if anything leaves it."""
        if loop.assigned_at_exit:
            self.scope.assigned = set.intersection(*loop.assigned_at_exit)
            self.start(loop.after)
        else:
            self.live = False

    def statement_For(self, node: ast.For) -> None:
        if node.orelse:
            self.error("`else` after a loop is not part of native code", node.orelse[0])
        if isinstance(node.iter, ast.Call):
            callee = self.expression(node.iter.func)
            if callee is range:
                self.for_range(node, node.iter)
                return
            if callee is language.unroll:
                self.for_unroll(node, node.iter)
                return
        self.error("native loops are `for name in range(...)` or `for name in unroll(...)`", node.iter)

    def for_range(self, node: ast.For, call: ast.Call) -> None:
        """`for i in range(...)`: the counter has the type of the first bound that has one, else i64."""
        if not isinstance(node.target, ast.Name):
            self.error("a range is counted by one name", node.target)
        bounds = self.arguments(call)
        if not 1 <= len(bounds) <= 3:
            self.error(f"range takes 1 to 3 arguments, not {len(bounds)}", call)
        kind = next((b.type for b in bounds if isinstance(b, Value)), t.I64)
        if not isinstance(kind, t.IntegerType):
            self.error(f"range needs integers, not {kind}", call)
        step = bounds[2] if len(bounds) == 3 else 1
        if not isinstance(step, int) or isinstance(step, bool) or step == 0 or not kind.fits(step):
            self.error("the step of a native range is a compile-time number other than 0", call)
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        if not kind.signed and any(isinstance(b, int) and b < 0 for b in (first, last)):
            self.error(f"a range of {kind} never goes below 0", call)
        end = self.coerce(last, kind, f"the range counts in {kind}")
        counter = self.alloca("counter", kind)
        self.store_value(self.coerce(first, kind, f"the range counts in {kind}"), counter)
        head, body, again, after = (self.label(s) for s in ("head", "body", "again", "after"))
        self.jump(head)
        self.start(head)
        current = self.load_value(counter, kind)
        comparison = ("s" if kind.signed else "u") + ("lt" if step > 0 else "gt")
        self.branch(self.temporary(f"icmp {comparison} {kind.ir} {current.ir}, {end.ir}", t.BOOL), body, after)
        loop = Loop(again, after, [set(self.scope.assigned)])
        self.start(body)
        self.assign_name(node.target.id, current)
        self.loop_body(loop, node.body)
        self.jump(again)
        self.start(again)
        count = self.load_value(counter, kind)
        if abs(step) != 1:
            # The next number may be beyond what the type can hold: stop before counting there.
            near, far = (count, end) if step > 0 else (end, count)
            left = self.temporary(f"sub {kind.ir} {far.ir}, {near.ir}", kind)
            more = self.label("more")
            self.branch(self.temporary(f"icmp ugt {kind.ir} {left.ir}, {abs(step)}", t.BOOL), more, after)
            self.start(more)
        self.store_value(self.temporary(f"add {kind.ir} {count.ir}, {step}", kind), counter)
        self.jump(head)
        self.leave_loop(loop)

    def for_unroll(self, node: ast.For, call: ast.Call) -> None:
        """The body once for each compile-time item, with the name bound to it."""
        arguments = self.arguments(call)
        if len(arguments) != 1 or isinstance(arguments[0], Value):
            self.error("unroll takes one sequence known at compile time", call)
        targets = [node.target] if isinstance(node.target, ast.Name) else getattr(node.target, "elts", [])
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        for name in names:
            if isinstance(self.scope.names.get(name), Local):
                self.error(f"{name} is a variable already; the names of unroll are known at compile time", node.target)
        after = self.label("after")
        exits: list[set[str]] = []
        for item in self.items(arguments[0], call):
            values = [item] if isinstance(node.target, ast.Name) else self.items(item, node.target)
            if len(values) != len(targets) or len(names) != len(targets):
                self.error(f"{len(values)} values for {len(targets)} names", node.target)
            for name, value in zip(names, values, strict=True):
                self.scope.names[name] = value
                self.scope.assigned.add(name)
            again = self.label("again")
            loop = Loop(again, after)
            self.loop_body(loop, node.body)
            exits += loop.assigned_at_exit
            ways = [self.scope.assigned] * self.live + loop.assigned_again
            self.jump(again)
            if not ways:
                break
            self.scope.assigned = set.intersection(*ways)
            self.start(again)
        exits += [self.scope.assigned] * self.live
        self.jump(after)
        if exits:
            self.scope.assigned = set.intersection(*exits)
            self.start(after)

    def items(self, value: Any, node: ast.AST) -> list[Any]:
        """A compile-time sequence as a list."""
        try:
            return list(value)
        except TypeError:
            self.error(f"{self.describe(value)} is no sequence known at compile time", node)

    def statement_Break(self, node: ast.Break) -> None:
        if not self.scope.loops:
            self.error("`break` outside a loop")
        loop = self.scope.loops[-1]
        loop.assigned_at_exit.append(set(self.scope.assigned))
        self.jump(loop.after)

    def statement_Continue(self, node: ast.Continue) -> None:
        if not self.scope.loops:
            self.error("`continue` outside a loop")
        self.scope.loops[-1].assigned_again.append(set(self.scope.assigned))
        self.jump(self.scope.loops[-1].again)

    def statement_Match(self, node: ast.Match) -> None:
        """`match` over an integer: LLVM's switch, a jump table where the cases are dense."""
        subject = self.expression(node.subject)
        cases = [(self.case_values(case), case) for case in node.cases]
        if not isinstance(subject, Value):
            for values, case in cases:
                if values is None or subject in values:
                    self.statements(case.body)
                    return
            return
        kind = subject.type
        if not isinstance(kind, t.IntegerType):
            self.error(f"match needs an integer, not {kind}", node.subject)
        after, default = self.label("after"), self.label("default")
        arms, blocks, has_default = [], [], False
        seen: set[int] = set()
        for values, case in cases:
            label = default if values is None else self.label("case")
            has_default = has_default or values is None
            blocks.append((label, case))
            self.node = case.pattern
            for value in values or ():
                operand = self.coerce(value, kind, f"the cases are {kind}")
                if kind.wrap(value) in seen:
                    self.error(f"{value} is matched twice", case.pattern)
                seen.add(kind.wrap(value))
                arms.append(f"{kind.ir} {operand.ir}, label %{label}")
        self.line(f"switch {kind.ir} {subject.ir}, label %{default if has_default else after} [ {' '.join(arms)} ]")
        self.live = False
        before, exits = self.scope.assigned, [] if has_default else [set(self.scope.assigned)]
        for label, case in blocks:
            self.scope.assigned = set(before)
            self.start(label)
            self.statements(case.body)
            if self.live:
                exits.append(self.scope.assigned)
            self.jump(after)
        if exits:
            self.scope.assigned = set.intersection(*exits)
            self.start(after)

    def case_values(self, case: ast.match_case) -> list[int] | None:
        """The compile-time integers of a `case`; `None` for `case _`."""
        if case.guard is not None:
            self.error("a `case` of native code has no guard", case.guard)
        patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
        values: list[int] = []
        for pattern in patterns:
            if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
                return None
            value = self.expression(pattern.value) if isinstance(pattern, ast.MatchValue) else self
            if not isinstance(value, int) or isinstance(value, bool):
                self.error("a `case` of native code is a compile-time integer or `_`", pattern)
            values.append(int(value))
        return values
