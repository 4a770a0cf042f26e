"""Loops of kernels, and how they look at the pulse.

A loop polls at its back edge. An innermost loop over numbers whose body calls no kernels, but short ones, is cut into
strips: only the outer one of the two loops polls, so that the inner one can be vectorised.

    for i in range(n)   ─▶   left = n;  while left:  strip = min(left, 1024);  do ... while strip;  poll
"""

import ast
from collections.abc import Callable
from typing import Any

from greenbeat.kernels import support
from greenbeat.kernels.arrays import Arrays
from greenbeat.kernels.indices import Candidate, assigned, candidates, inside as everything_in
from greenbeat.kernels.types import ChannelType
from greenbeat.kernels.values import FIBER, FORK_TOP, ArrayValue, TupleLocal
from greenbeat.native import types as t
from greenbeat.native.values import Local, Loop, Value

STRIP = 1024


class Loops(Arrays):
    """Layer of `KernelEmitter`."""

    def poll(self) -> None:
        """Serve the pulse if it is set."""
        pulse = self.temporary("load atomic i32, ptr %pulse monotonic, align 4", t.U32)
        raised = self.temporary(f"icmp ne i32 {pulse.ir}, 0", t.BOOL)
        serve, onward = self.label("serve"), self.label("onward")
        self.branch(Value(raised.ir, t.BOOL, -1), serve, onward)
        self.start(serve)
        name = self.support(support.poll)
        self.line(f"call preserve_mostcc void {name}(ptr {FIBER}, ptr {FORK_TOP})")
        self.jump(onward)
        self.start(onward)

    def statement_While(self, node: ast.While) -> None:
        if node.orelse:
            self.error("a kernel's loops have no `else`: set a variable before `break`", node.orelse[0])
        head, body, again, after = (self.label(stem) for stem in ("head", "body", "again", "after"))
        self.jump(head)
        self.start(head)
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
        if self.live or loop.assigned_again:
            self.jump(again)
            self.start(again)
            self.poll()
            self.jump(head)
        self.leave_loop(loop)

    def statement_For(self, node: ast.For) -> None:
        if node.orelse:
            self.error("a kernel's loops have no `else`: set a variable before `break`", node.orelse[0])
        if isinstance(node.iter, ast.Call):
            callee = self.expression(node.iter.func)
            if callee is range:
                self.for_range(node, node.iter)
                return
            loop = self.loop_of(callee)
            if loop is not None:
                loop(self, node, node.iter)
                return
        items = self.expression(node.iter)
        if isinstance(items, Value) and isinstance(items.type, ChannelType):
            self.for_received(node, items)
            return
        if not isinstance(items, ArrayValue):
            self.error(f"a kernel loops over range(...) or an array, not {self.describe(items)}", node.iter)
        self.for_elements(node, items)

    def for_received(self, node: ast.For, channel: Value) -> None:
        """`for value in channel`: what is received until it is closed."""
        raise NotImplementedError

    def loop_of(self, callee: Any) -> Callable[..., None] | None:
        """What compiles a loop over what `callee` gives, if anything was registered for it."""
        raise NotImplementedError

    def for_range(self, node: ast.For, call: ast.Call) -> None:
        """`for i in range(...)`."""
        if not isinstance(node.target, ast.Name):
            self.error("a range is counted by one name", node.target)
        if call.keywords or not 1 <= len(call.args) <= 3:
            self.error("range takes 1 to 3 arguments, without names", call)
        values = [self.expression(argument) for argument in call.args]
        for value, argument in zip(values, call.args, strict=True):
            if self.number(value, argument).type not in (t.I64, t.BOOL):
                self.error(f"range counts in i64, and this is {self.describe(value)}", argument)
        first, last = (0, values[0]) if len(values) == 1 else values[:2]
        step = values[2] if len(values) == 3 else 1
        start, end, stride = (self.promoted(value, t.I64, call) for value in (first, last, step))
        if isinstance(step, Value) or step == 0:
            zero = self.temporary(f"icmp eq i64 {stride.ir}, 0", t.BOOL)
            self.fail_if(zero, "ValueError", "range() arg 3 must not be zero", call)
        count = self.range_count(start, end, step, stride)
        rising = not isinstance(step, Value) and step > 0
        name, bound = node.target.id, call.args[0 if len(values) == 1 else 1]
        start_node = call.args[0] if len(values) > 1 else ast.Constant(0)
        mine = name not in assigned(node.body)
        facts = mine and rising and self.is_not_negative(first, start_node) and name not in self.not_negative
        inside = {(data, dimension, name) for data, dimension in self.sizes_named(bound)} if facts else set()
        inside -= self.known_indices
        if facts:
            self.not_negative.add(name)
        self.known_indices |= inside
        slot = self.alloca("counter", t.I64)

        def bind() -> None:
            current = self.load_value(slot, t.I64)
            self.assign_name(name, current)
            self.store_value(self.temporary(f"add i64 {current.ir}, {stride.ir}", t.I64), slot)

        def run() -> None:
            self.store_value(start, slot)
            self.counted(node, count, bind)

        hoisted = self.hoisted(node, name) if rising and self.is_innermost(node.body) else []
        if hoisted:
            self.in_two_versions(hoisted, start, count, stride, run)
        else:
            run()
        self.known_indices -= inside
        if facts:
            self.not_negative.discard(name)

    def hoisted(self, node: ast.For, counter: str) -> list[tuple[ArrayValue, Candidate]]:
        """The indices that are checked before a loop."""
        names = self.scope.names

        def is_fixed(name: str) -> bool:
            found = names.get(name)
            return name in self.scope.assigned and isinstance(found, Value | Local) and found.type == t.I64

        found = []
        for candidate in candidates(node.body, counter, is_fixed):
            array = names.get(candidate.array)
            if isinstance(array, ArrayValue) and candidate.dimension < len(array.sizes):
                if (array.data, candidate.dimension, candidate.text) not in self.known_indices:
                    found.append((array, candidate))
        return found

    def in_two_versions(
        self,
        hoisted: list[tuple[ArrayValue, Candidate]],
        start: Value,
        count: Value,
        stride: Value,
        run: Callable[[], None],
    ) -> None:
        """A loop without checks of some indices, if they are seen to be inside, and else one with them."""
        less = self.temporary(f"sub i64 {count.ir}, 1", t.I64)
        way = self.temporary(f"mul i64 {less.ir}, {stride.ir}", t.I64)
        last = self.temporary(f"add i64 {start.ir}, {way.ir}", t.I64)
        good = Value("true", t.BOOL)
        for array, candidate in hoisted:
            values = [start, last] if candidate.shift is not None else [self.expression(candidate.node)]
            for value in values:
                if candidate.shift:
                    value = self.temporary(f"add i64 {value.ir}, {candidate.shift}", t.I64)
                # Unsigned, so that negative numbers are too large. Sums cannot wrap into the array's length again.
                fits = self.temporary(f"icmp ult i64 {value.ir}, {array.sizes[candidate.dimension]}", t.BOOL)
                good = self.temporary(f"and i1 {good.ir}, {fits.ir}", t.BOOL)
        fast, slow, after = self.label("fast"), self.label("slow"), self.label("after")
        self.branch(good, fast, slow)
        known = {(array.data, c.dimension, c.text) for array, c in hoisted}
        before, bound = set(self.scope.assigned), set(self.scope.names)
        self.start(fast)
        self.known_indices |= known
        run()
        self.known_indices -= known
        self.jump(after)
        exits = self.scope.assigned
        self.scope.assigned = before
        for name in set(self.scope.names) - bound:
            # Names of arrays belong to one version; variables are shared by both.
            if not isinstance(self.scope.names[name], Local | TupleLocal):
                del self.scope.names[name]
        self.start(slow)
        run()
        self.jump(after)
        self.scope.assigned &= exits
        self.start(after)

    def range_count(self, start: Value, end: Value, step: Any, stride: Value) -> Value:
        """How many numbers a range has, as a u64."""
        if isinstance(step, Value) or step not in (1, -1):
            return self.call_support(support.range_count, t.U64, start, end, stride)
        low, high = (start, end) if step == 1 else (end, start)
        some = self.temporary(f"icmp slt i64 {low.ir}, {high.ir}", t.BOOL)
        distance = self.temporary(f"sub i64 {high.ir}, {low.ir}", t.U64)
        return self.temporary(f"select i1 {some.ir}, i64 {distance.ir}, i64 0", t.U64)

    def sizes_named(self, node: ast.expr) -> list[tuple[str, int]]:
        """The array and dimension whose size an expression is: `len(a)` or `a.shape[k]`."""
        if isinstance(node, ast.Call) and len(node.args) == 1 and self.expression(node.func) is len:
            array = self.expression(node.args[0])
            return [(array.data, 0)] if isinstance(array, ArrayValue) else []
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            array = self.expression(node.value.value)
            if isinstance(array, ArrayValue) and isinstance(node.slice, ast.Constant):
                dimension = node.slice.value
                if isinstance(dimension, int) and 0 <= dimension < len(array.sizes):
                    return [(array.data, dimension)]
        return []

    def for_elements(self, node: ast.For, array: ArrayValue) -> None:
        """`for x in a`."""
        if len(array.sizes) > 1:
            self.error("a kernel loops over an array of one dimension: here, loop over range(len(...))", node.iter)
        element = array.type.element
        slot = self.alloca("place", t.I64)
        self.store_value(Value("0", t.I64), slot)

        def bind() -> None:
            index = self.load_value(slot, t.I64)
            self.store_value(self.temporary(f"add nsw i64 {index.ir}, 1", t.I64), slot)
            step = self.temporary(f"mul nsw i64 {index.ir}, {array.strides[0]}", t.I64)
            text = f"getelementptr inbounds {element.memory_ir}, ptr {array.data}, i64 {step.ir}"
            self.assign(node.target, self.load_element(self.temporary(text, t.I64).ir, element))

        self.counted(node, Value(array.sizes[0], t.U64), bind)

    def is_innermost(self, body: list[ast.stmt]) -> bool:
        """Whether a body has no loops, and calls no kernels but short ones."""
        return not any(
            isinstance(each, ast.For | ast.While) or (isinstance(each, ast.Call) and self.calls_kernel(each))
            for each in everything_in(body)
        )

    def counted(self, node: ast.For, count: Value, bind: Callable[[], None]) -> None:
        """A body that is run `count` times; `bind` assigns what it counts."""
        strips = self.is_innermost(node.body)
        left = self.alloca("left", t.U64)
        self.store_value(count, left)
        strip = self.alloca("strip", t.U64) if strips else left
        outer, body, again, onward, after = (self.label(s) for s in ("outer", "body", "again", "onward", "after"))
        some = self.temporary(f"icmp ne i64 {count.ir}, 0", t.BOOL)
        before = set(self.scope.assigned)
        self.branch(some, outer, after)
        self.start(outer)
        if strips:
            rest = self.load_value(left, t.U64)
            self.unit.declare("declare i64 @llvm.umin.i64(i64, i64)")
            size = self.temporary(f"call i64 @llvm.umin.i64(i64 {rest.ir}, i64 {STRIP})", t.U64)
            self.store_value(size, strip)
            self.store_value(self.temporary(f"sub i64 {rest.ir}, {size.ir}", t.U64), left)
        self.jump(body)
        self.start(body)
        bind()
        loop = Loop(again, after, [before])
        self.loop_body(loop, node.body)
        if self.live or loop.assigned_again:
            self.jump(again)
            self.start(again)
            one_less = self.temporary(f"sub i64 {self.load_value(strip, t.U64).ir}, 1", t.U64)
            self.store_value(one_less, strip)
            more = self.temporary(f"icmp ne i64 {one_less.ir}, 0", t.BOOL)
            if not strips:
                self.branch(more, onward, after)
                self.start(onward)
                self.poll()
                self.jump(body)
            else:
                self.branch(more, body, onward)
                self.start(onward)
                self.poll()
                rest = self.load_value(left, t.U64)
                self.branch(self.temporary(f"icmp ne i64 {rest.ir}, 0", t.BOOL), outer, after)
        self.leave_loop(loop)

    def calls_kernel(self, node: ast.Call) -> bool:
        """Whether a call is of a kernel that may run long, or of what runs others."""
        raise NotImplementedError
