"""Compiles kernels: the layers on top of native's emitter, and the unit they are put into.

    define internal fastcc i64 @f(ptr %fiber, ptr %fork_top, i64 %p.n) {
    entry:   is the stack pointer above the fiber's floor?
    begin:   ...

    KernelValues       conversions, truth, failures       Arrays             elements, bounds
    Arithmetic         operators, comparisons             Loops              loops, polls
    KernelStatements   variables, return, match           KernelEmitter      calls, the function as a whole

A thunk, in C's convention, takes the arguments out of the fiber's words, calls the kernel, and puts the results there.
"""

import ast
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from greenbeat.kernels import (
    builtins as _builtins,
    forking,
    intrinsics,
    parallel as _parallel,
    recursion,
    support,
    tasking,
)
from greenbeat.kernels.short import is_short
from greenbeat.kernels.source import CONVENTION, KernelFunction
from greenbeat.kernels.statements import KernelStatements, flattened, result_ir
from greenbeat.kernels.types import ArrayType, TupleType, computed, layout, scalars, word_count
from greenbeat.kernels.values import FIBER, FORK_TOP, ArrayValue, Method
from greenbeat.native import types as t
from greenbeat.native.language import NativeFunction
from greenbeat.native.types import offsetof
from greenbeat.native.unit import Unit
from greenbeat.native.values import Value
from greenbeat.tasks.layout import Fiber

# A kernel's frame, and the C functions that it calls without a check of theirs, fit into this.
FRAME_MARGIN = 4096
# LLVM's type of a `ForkSite`.
SITE = "{ ptr, i32, i32, ptr, ptr, i32 }"
SIZE = "i64 range(i64 0, -9223372036854775808)"
SIZE_RANGE = "i64 0, i64 -9223372036854775808"

# They register what kernels may call.
assert _builtins and _parallel


@dataclass(frozen=True)
class KernelCall:
    """A call of a kernel: the function that is called, which may be its body, and what comes after fiber and top."""

    kernel: KernelFunction
    symbol: str
    operands: list[Value]


class KernelEmitter(KernelStatements):
    """Compiles one kernel; `text` is the finished definition.

    Attributes:
        passed_on: arrays that are given to other kernels: own parameter, kernel, its parameter.
        unchanged: the numbers of parameters that the kernel hands on to itself, see `recursion.py`.
        heads: LLVM's parameters for each of the kernel's.
    """

    def __init__(self, unit: "KernelUnit", function: KernelFunction) -> None:
        self.passed_on: list[tuple[int, KernelFunction, int]] = []
        self.calls = False
        self.discarded = set()
        self.fork_top = FORK_TOP
        self.unchanged = recursion.unchanged_parameters(function)
        self.heads: list[list[str]] = []
        super().__init__(unit, function)
        try:
            self.text = self._define()
        except RecursionError:
            self.error("this is nested too deeply")

    def _define(self) -> str:
        kernel = self.kernel
        self.scope.debug_scope = self.unit.debug_function(kernel, self.tree.lineno)
        self.at(self.tree)
        heads = self.heads
        self.block_label = "begin"
        for number, (name, kind) in enumerate(kernel.parameters):
            parameters, value = parameter(f"%${number}", kind, number)
            heads.append(parameters)
            self.node = self.tree.args.args[number] if number < len(self.tree.args.args) else self.tree
            self.declared[name] = kind if isinstance(kind, ArrayType) else widened(kind)
            self.first_assigned[name] = self.node.lineno
            if name in self.scope.stored and not isinstance(value, ArrayValue):
                self.scope.names[name] = place = self.variable(name, kind)
                self.put(place, value)
            else:
                self.scope.names[name] = value
            self.scope.assigned.add(name)
        self.statements(self.tree.body)
        self.node = self.tree
        if self.live:
            if kernel.result != t.VOID:
                self.error(f"{kernel.python.__name__} can end without returning {kernel.result}")
            self.line("ret void")
        returns = f"{CONVENTION} {result_ir(kernel.result)}"
        debug = f" !dbg {self.scope.debug_scope}" if self.scope.debug_scope else ""
        passed = [head for number, each in enumerate(heads) if number not in self.unchanged for head in each]
        symbol, loads, outside = kernel.symbol, "", ""
        if self.unchanged:
            symbol = recursion.body_symbol(kernel)
            kept = [head for number in sorted(self.unchanged) for head in heads[number]]
            loads = "\n".join(recursion.loads(kept, self.unit.metadata_node(f"!{{{SIZE_RANGE}}}")))
            passed.insert(0, f"ptr {recursion.UNCHANGED}")
            outside = recursion.wrapper(kernel, heads, self.unchanged)
        passed = [f"ptr {FIBER}", f"ptr {FORK_TOP}", *passed]
        head = f'define internal {returns} @"{symbol}"({", ".join(passed)}) nounwind{debug} {{'
        pulse = f"  %pulse = getelementptr i8, ptr {FIBER}, i64 {offsetof(Fiber, 'pulse')}"
        self.at(self.tree)
        check = list(self._entry_check()) if self.calls else ["  br label %begin"]
        lines = [head, "entry:", *self.allocas, pulse, loads, *check, "begin:", *self.lines, "}", outside]
        return "\n".join(filter(None, lines))

    def _entry_check(self) -> Iterator[str]:
        """Whether there is room for a frame, and no attention asked for."""
        self.unit.declare("declare ptr @llvm.addressofreturnaddress.p0()")
        yield "  %place = call ptr @llvm.addressofreturnaddress.p0()"
        yield f"  %bottom = getelementptr i8, ptr %place, i64 {-FRAME_MARGIN}"
        yield f"  %floor.place = getelementptr i8, ptr {FIBER}, i64 {offsetof(Fiber, 'floor')}"
        yield "  %floor = load atomic ptr, ptr %floor.place monotonic, align 8"
        yield "  %short = icmp ult ptr %bottom, %floor"
        yield "  br i1 %short, label %overflow, label %begin, !prof !1"
        yield "overflow:"
        yield f"  %failure.place = getelementptr i8, ptr {FIBER}, i64 {offsetof(Fiber, 'failure')}"
        yield f"  store ptr {self.overflow_site(self.head())}, ptr %failure.place, align 8"
        name = self.support(support.overflow)
        yield f"  call preserve_mostcc void {name}(ptr {FIBER}, ptr {FORK_TOP}){self.location}"
        yield "  br label %begin"

    def head(self) -> ast.AST:
        """The first line of the function, or of the loop, as a place."""
        line, column = self.tree.lineno, self.tree.col_offset
        end = len(self.kernel.text_at(line).encode())
        return ast.Pass(lineno=line, col_offset=column, end_lineno=line, end_col_offset=end)

    def overflow_site(self, node: ast.AST) -> str:
        """What a fiber is to fail of if it has no room left for what begins here."""
        return self.site("RecursionError", [f"maximum recursion depth exceeded in {self.kernel.code.co_name}"], node)

    # ---------------------------------------------------------------- calls

    def expression_Call(self, node: ast.Call) -> Any:
        callee = self.expression(node.func)
        if isinstance(callee, Method):
            return tasking.call_method(self, callee, node)
        found = intrinsics.find(callee)
        if found is not None:
            return self.call_intrinsic(found, node)
        kernel = kernel_of(callee)
        if kernel is not None:
            return self.call_kernel(kernel, self.arguments(node), node)
        kind = getattr(callee, "kernel_type", callee)
        if isinstance(kind, t.IntegerType | t.FloatType):
            arguments = self.arguments(node)
            if len(arguments) != 1:
                self.error(f"gb.{kind}(x) converts one number", node)
            if isinstance(kind, t.IntegerType):
                return self.wrapped(arguments[0], kind, node)
            number = self.promoted(arguments[0], t.F64, node)
            return self.rounded(number) if kind == t.F32 else number
        self.error(uncallable(callee, self.describe(callee)), node)

    def call_intrinsic(self, found: intrinsics.Intrinsic, node: ast.Call) -> Any:
        """A call of something that was registered."""
        self.calls = self.calls or (found.calls and not found.checked)
        if found.raw:
            return found.compile(self, node)
        arguments = self.arguments(node)
        if not found.fewest <= len(arguments) <= found.most:
            plural = "argument" if len(arguments) == 1 else "arguments"
            self.error(f"{found.usage} does not take {len(arguments)} {plural} in a kernel", node)
        return found.compile(self, node, *arguments)

    def arguments(self, node: ast.Call) -> list[Any]:
        """The arguments' values; `*tuple` is spread."""
        if node.keywords:
            self.error("a call in a kernel passes its arguments by position, without names", node.keywords[0].value)
        values: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                spread = self.expression(argument.value)
                if not isinstance(spread, tuple):
                    self.error(f"only tuples are spread by *, not {self.describe(spread)}", argument)
                values.extend(spread)
            else:
                values.append(self.expression(argument))
        return values

    def kernel_operands(self, kernel: KernelFunction, arguments: list[Any], node: ast.AST) -> list[Value]:
        """The arguments of a call of a kernel, fitted and flattened to operands: what comes after fiber and top."""
        wanted, name = kernel.parameters, kernel.python.__name__
        if len(arguments) != len(wanted):
            plural = "argument" if len(wanted) == 1 else "arguments"
            self.error(f"{name}{kernel.described} takes {len(wanted)} {plural}, not {len(arguments)}", node)
        operands: list[Value] = []
        for number, (argument, (parameter_name, kind)) in enumerate(zip(arguments, wanted, strict=True)):
            what = f"{parameter_name} of {name} is {kind}"
            operands += self.operands_of(argument, kind, what, kernel, number, node)
        return operands

    def operands_of(
        self, argument: Any, kind: t.Type, what: str, kernel: KernelFunction, number: int, node: ast.AST
    ) -> list[Value]:
        """One argument as operands, parameter `number` of a kernel. `what` begins the message if it does not fit."""
        value = self.fitted(argument, kind, what, node)
        if not isinstance(value, ArrayValue):
            return [self.operand(item, node) for item in flattened(value)]
        if value.strides[0] != "1" and len(value.sizes) == 1:
            self.error("a row of an array of two dimensions cannot be passed on", node)
        self.passed_on.append((value.parameter, kernel, number))
        strides = value.strides if len(value.sizes) == 2 else []
        return [Value(value.data, t.PointerType(t.U8)), *(Value(word, t.I64) for word in (*value.sizes, *strides))]

    def call_kernel(self, kernel: KernelFunction, arguments: list[Any], node: ast.AST) -> Any:
        """A call of a kernel."""
        self.calls = True
        return self.emit_kernel_call(self.prepared_call(kernel, arguments, node), self.fork_top)

    def prepared_call(self, kernel: KernelFunction, arguments: list[Any], node: ast.AST) -> KernelCall:
        """A call of a kernel, or a branch that is one: of its body, if that has what is unchanged already."""
        operands = self.kernel_operands(kernel, arguments, node)
        self.unit.reference(kernel)
        if kernel is self.kernel and self.unchanged:
            numbers = [number for number, (_, kind) in enumerate(kernel.parameters) for _ in range(word_count(kind))]
            names = [recursion.kind_and_name(head)[1] for heads in self.heads for head in heads]
            words = list(zip(numbers, names, operands, strict=True))
            # By another name, the kernel may be called with anything.
            if all(operand.ir == name for number, name, operand in words if number in self.unchanged):
                changed = [operand for number, _, operand in words if number not in self.unchanged]
                unchanged = Value(recursion.UNCHANGED, t.PointerType(t.U8))
                return KernelCall(kernel, recursion.body_symbol(kernel), [unchanged, *changed])
        return KernelCall(kernel, kernel.symbol, operands)

    def emit_kernel_call(self, call: KernelCall, top: str) -> Any:
        """A call; its own forks begin at `top`."""
        kernel = call.kernel
        words = "".join(f", {operand.type.ir} {operand.ir}" for operand in call.operands)
        kind = result_ir(kernel.result)
        text = f'call {CONVENTION} {kind} @"{call.symbol}"(ptr {FIBER}, ptr {top}{words})'
        if kernel.result == t.VOID:
            self.line(text)
            return Value("", t.VOID)
        whole = self.temporary(text, computed(kernel.result))
        if not isinstance(kernel.result, TupleType):
            return whole
        parts = iter(
            [
                self.temporary(f"extractvalue {kind} {whole.ir}, {place}", computed(scalar))
                for place, scalar in enumerate(scalars(kernel.result))
            ]
        )
        return rebuilt(kernel.result, parts)

    def check_fork(self, top: str) -> None:
        """Before a fork whose records end at `top`: is there room, and no attention asked for, nor a token spare?"""
        pointer = t.PointerType(t.U8)
        self.unit.declare("declare ptr @llvm.addressofreturnaddress.p0()")
        place = self.temporary("call ptr @llvm.addressofreturnaddress.p0()", pointer)
        bottom = self.temporary(f"getelementptr i8, ptr {place.ir}, i64 {-FRAME_MARGIN}", pointer)
        at = self.temporary(f"getelementptr i8, ptr {FIBER}, i64 {offsetof(Fiber, 'fork_floor')}", pointer)
        floor = self.temporary(f"load ptr, ptr {at.ir}, align 8", pointer)
        short = self.temporary(f"icmp ult ptr {bottom.ir}, {floor.ir}", t.BOOL)
        serve, onward = self.label("serve"), self.label("onward")
        self.branch(Value(short.ir, t.BOOL, -1), serve, onward)
        self.start(serve)
        at = self.temporary(f"getelementptr i8, ptr {FIBER}, i64 {offsetof(Fiber, 'failure')}", pointer)
        self.line(f"store ptr {self.overflow_site(self.node)}, ptr {at.ir}, align 8")
        self.line(f"call preserve_mostcc void {self.unit.reference(support.fork)}(ptr {FIBER}, ptr {top})")
        self.jump(onward)
        self.start(onward)

    def kernel_named(self, node: ast.expr) -> KernelFunction | None:
        """The kernel that an expression is, if it is one."""
        return kernel_of(self.expression(node))

    def kernel_called(self, node: ast.Call) -> KernelFunction | None:
        """The kernel that is called, if it is one."""
        return self.kernel_named(node.func)

    def calls_kernel(self, node: ast.Call) -> bool:
        """Whether a call is of a kernel that may run long, or of what runs others."""
        if isinstance(node.func, ast.Name) and node.func.id in self.scope.stored:
            # Another name for something: what it is may be known only later.
            return True
        callee = self.expression(node.func)
        kernel = kernel_of(callee)
        if kernel is not None:
            return not is_short(kernel)
        found = intrinsics.find(callee)
        return isinstance(callee, Method) or (found is not None and found.calls)

    def sizes_named(self, node: ast.expr) -> list[tuple[str, int]]:
        if isinstance(node, ast.Name) and node.id == forking.END and isinstance(self.kernel, forking.LoopFunction):
            arrays = ((self.scope.names[name], dimension) for name, dimension in self.kernel.facts.sizes)
            return [(array.data, dimension) for array, dimension in arrays if isinstance(array, ArrayValue)]
        return super().sizes_named(node)

    def is_not_negative(self, value: Any, node: ast.expr) -> bool:
        if isinstance(node, ast.Name) and node.id == forking.FIRST and isinstance(self.kernel, forking.LoopFunction):
            return self.kernel.facts.from_zero
        return super().is_not_negative(value, node)

    def for_received(self, node: ast.For, channel: Value) -> None:
        tasking.loop_over(self, node, channel)

    def loop_of(self, callee: Any) -> Callable[..., None] | None:
        """What compiles a loop over what `callee` gives, if anything was registered for it."""
        return intrinsics.find_loop(callee)


class KernelUnit(Unit):
    """A kernel and everything it reaches, as one LLVM module that exports `thunk`, `parameters` and `results`."""

    def __init__(self, kernel: KernelFunction, *, debug: bool = False) -> None:
        self.kernel = kernel
        self.tables: dict[str, str] = {}
        # What records of forks refer to, by the symbol of their site.
        self.thunks: dict[str, str] = {}
        # What a fiber can begin with, and the kernel that it runs then.
        self.entries = {"@thunk": kernel.symbol}
        self.numbers = 0
        self.written: dict[int, set[int]] = {}
        self.passed_on: list[tuple[int, int, int, int]] = []
        super().__init__("kernel", [kernel], debug=debug)

    def definition(self, function: NativeFunction) -> str:
        """The LLVM IR of one function."""
        if not isinstance(function, KernelFunction):
            return super().definition(function)
        emitter = KernelEmitter(self, function)
        self.written[id(function)] = emitter.written
        self.passed_on += [(id(function), own, id(to), its) for own, to, its in emitter.passed_on]
        return emitter.text

    def table(self, text: str) -> str:
        """A private constant."""
        if text not in self.tables:
            self.tables[text] = f"@table.{len(self.tables)}"
            self.globals.append(f"{self.tables[text]} = private unnamed_addr constant {text}")
        return self.tables[text]

    def text(self) -> str:
        """The LLVM IR of the whole unit.

        Raises:
            KernelError: something in it cannot be compiled.
        """
        # Before the rest, which writes what it refers to when it is debugged.
        thunk = self._thunk(self.kernel, "thunk", self.kernel.symbol, list(forking.operand_types(self.kernel)))
        functions = super().text()
        return "\n".join(
            [
                functions,
                *self._layouts(),
                *self._entry_table(),
                *self.thunks.values(),
                thunk,
                "",
            ]
        )

    def fresh(self, stem: str) -> str:
        """A symbol that nothing has yet."""
        self.numbers += 1
        return f"{stem}.{self.numbers}"

    def branch_site(self, kernel: KernelFunction, called: str) -> str:
        """The constant that a record of a branch begins with: how to run the kernel, or its body, as a task."""
        body = called == recursion.body_symbol(kernel)
        unchanged = recursion.unchanged_parameters(kernel) if body else frozenset()
        name = f'@"{called}.site"'
        if name not in self.thunks:
            kinds = list(forking.operand_types(kernel, unchanged))
            symbol = f'@"{called}.thunk"'
            self.thunks[name] = self._thunk(kernel, f"{called}.thunk", called, kinds, "internal ")
            self.entries[symbol] = kernel.symbol
            arguments = len(kinds)
            words = max(arguments, word_count(kernel.result))
            self.globals.append(
                f"{name} = internal constant {SITE} "
                f"{{ ptr {symbol}, i32 {arguments}, i32 {words}, ptr null, ptr null, i32 0 }}, align 8"
            )
        return name

    def loop_site(
        self,
        symbol: str,
        function: KernelFunction,
        neutral: list[Value],
        passed: list[Value],
        combine: "forking.Combine",
    ) -> str:
        """The constant that a loop's record begins with: how to run some of its iterations, and to add results."""
        if isinstance(combine, KernelFunction):
            self.reference(combine)
        scope = self.debug_function(function, function.tree().lineno, f"{symbol}.chunk")
        for number, text in enumerate(forking.loop_functions(symbol, function, neutral, passed, combine, scope)):
            self.thunks[f"{symbol} {number}"] = text
        self.entries[f'@"{symbol}.chunk"'] = symbol
        words = 2 + 2 * len(neutral) + len(passed)
        adder = f'@"{symbol}.combine"' if neutral else "null"
        self.globals.append(
            f'@"{symbol}.site" = internal constant {SITE} '
            f'{{ ptr null, i32 {words}, i32 {words}, ptr @"{symbol}.chunk", ptr {adder}, i32 {len(neutral)} }}, align 8'
        )
        return f'@"{symbol}.site"'

    def _thunk(self, kernel: KernelFunction, symbol: str, called: str, kinds: list[t.Type], linkage: str = "") -> str:
        scope = self.debug_function(kernel, kernel.definition_line, symbol)
        return forking.thunk(kernel, f'{linkage}void @"{symbol}"', called, kinds, scope)

    def _entry_table(self) -> Iterator[str]:
        """Names for traces, see `linked.py`: pairs of an address and a text, a null at the end."""
        pairs = []
        for number, (address, name) in enumerate(self.entries.items()):
            data = name.encode() + b"\0"
            yield f"@name.{number} = private constant [{len(data)} x i8] [{', '.join(f'i8 {byte}' for byte in data)}]"
            pairs += [f"ptr {address}", f"ptr @name.{number}"]
        pairs.append("ptr null")
        yield f"@entries = constant [{len(pairs)} x ptr] [{', '.join(pairs)}]"

    def _layouts(self) -> Iterator[str]:
        """What native code must know of the parameters and the result."""
        # A parameter is written if the kernel that it is passed on to writes it, however far that goes.
        changed = True
        while changed:
            changed = False
            for function, own, to, its in self.passed_on:
                if its in self.written.get(to, ()) and own not in self.written[function]:
                    self.written[function].add(own)
                    changed = True
        written = self.written[id(self.kernel)]
        parameters = b"".join(layout(kind, i in written) for i, (_, kind) in enumerate(self.kernel.parameters))
        for name, data in (("parameters", parameters), ("results", layout(self.kernel.result))):
            cells = ", ".join(f"i8 {byte}" for byte in data + b"\0")
            yield f"@{name} = constant [{len(data) + 1} x i8] [{cells}]"
        yield f"@forks = constant i8 {int(bool(self.thunks))}"


def kernel_of(value: Any) -> KernelFunction | None:
    """The function of a kernel object."""
    found = getattr(value, "_function", None)
    return found if isinstance(found, KernelFunction) else None


def uncallable(callee: Any, described: str) -> str:
    """Why a kernel cannot call something, and what to write instead."""
    if isinstance(callee, Value | ArrayValue | tuple | str | int | float) or not callable(callee):
        return f"{described} is nothing to call"
    if isinstance(callee, FunctionType) and is_users(callee):
        return f"a kernel cannot call {described}, a function of Python's: make it a kernel too, by @gb.kernel"
    name = getattr(callee, "__qualname__", None) or described
    owner = type(getattr(callee, "__self__", None))
    module = getattr(callee, "__module__", None) or owner.__module__
    same = intrinsics.find(getattr(math, name, None))
    whole = name if module == "builtins" else f"{module}.{name}"
    wish = f"write math.{name}, or call" if same is not None else "call"
    return (
        f"a kernel cannot call {whole}: {wish} it in Python, before or after the kernel; kernels call kernels, and the "
        "functions of math and the builtins that docs/kernels.md lists"
    )


def is_users(function: FunctionType) -> bool:
    """Whether a function may be one of the user's own, which a decorator can be put on."""
    module = (function.__module__ or "").partition(".")[0]
    file = function.__code__.co_filename
    return module not in (*sys.stdlib_module_names, "greenbeat") and "site-packages" not in file


def widened(kind: t.Type) -> t.Type:
    """The type of a variable that begins as a parameter of this type."""
    return TupleType(tuple(map(widened, kind.items))) if isinstance(kind, TupleType) else computed(kind)


def rebuilt(kind: t.Type, parts: Iterator[Value]) -> Any:
    """Numbers in the form of a type."""
    if isinstance(kind, TupleType):
        return tuple(rebuilt(item, parts) for item in kind.items)
    return next(parts)


def parameter(stem: str, kind: t.Type, number: int) -> tuple[list[str], Any]:
    """The LLVM parameters of a kernel's parameter, and its value."""
    if isinstance(kind, ArrayType):
        sizes = [f"{stem}.size.{d}" for d in range(kind.dimensions)]
        strides = [f"{stem}.stride.{d}" for d in range(kind.dimensions)] if kind.dimensions > 1 else []
        heads = [f"ptr {stem}", *(f"{SIZE} {size}" for size in sizes), *(f"i64 {stride}" for stride in strides)]
        return heads, ArrayValue(kind, stem, sizes, strides or ["1"], number)
    parts = [Value(f"{stem}.{i}", computed(scalar)) for i, scalar in enumerate(scalars(kind))]
    return [f"{part.type.ir} {part.ir}" for part in parts], rebuilt(kind, iter(parts))
