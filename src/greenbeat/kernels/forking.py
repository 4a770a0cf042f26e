"""`par`, `prange` and `preduce` in kernels: records at the fork stack's top, which is a parameter of every kernel.

    x, y = par(f(a), g(b))                          a function of its own for a loop's body:
                                                      loop(first, end, what the body reads)
    %top ─▶ │ site of g │ b │ ◀─ top for f             for i in range(first, end): body
    call f; untouched? call g : wait for it
                                                    %top ─▶ │ site │ next │ end │ results │ what it reads │

A *site* is a constant: the thunk that runs a branch as a task, or a loop's functions. See `forkjoin/promotion.py` for
what happens at beats.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from greenbeat.forkjoin import words
from greenbeat.kernels import support
from greenbeat.kernels.intrinsics import loop, syntax
from greenbeat.kernels.matching import combining_problem, term_problem
from greenbeat.kernels.source import CONVENTION, KernelFunction
from greenbeat.kernels.statements import flattened, result_ir
from greenbeat.kernels.types import ArrayType, TupleType, computed, scalars, word_count
from greenbeat.kernels.values import FIBER, ArrayValue
from greenbeat.native import types as t
from greenbeat.native.source import stored_names
from greenbeat.native.types import offsetof
from greenbeat.native.values import Value
from greenbeat.tasks.layout import PROMOTED, Fiber

MOST_WORDS = 16
MOST_LOOP_WORDS = 100

# How results are added: by a kernel, by operators, or by a function that takes what the loop reads as well.
Combine = KernelFunction | list[type[ast.operator]]


@dataclass
class Facts:
    """What is known of a loop's bounds.

    Attributes:
        from_zero: whether the first iteration is not negative.
        sizes: arrays, by name, with the dimension whose size the end is at most.
    """

    from_zero: bool = False
    sizes: list[tuple[str, int]] = field(default_factory=list)


class LoopFunction(KernelFunction):
    """A kernel that is made of a part of another one: a parallel loop's iterations from `first` to `end`."""

    _known: dict[str, Any]

    def __init__(
        self,
        outer: KernelFunction,
        tree: ast.FunctionDef,
        parameters: list[tuple[str, t.Type]],
        result: t.Type,
        known: dict[str, Any],
        facts: "Facts | None" = None,
    ) -> None:
        # Everything that says where the text is, is the outer kernel's.
        self.__dict__.update(outer.__dict__)
        self.parameters, self.result = parameters, result
        self._tree = tree
        self._known = {**getattr(outer, "_known", {}), **known}
        self.facts = facts or Facts()

    @property
    def environment(self) -> dict[str, Any]:
        """What the outer kernel knows, and what it had given names to."""
        return {**super().environment, **self._known}

    def tree(self) -> ast.FunctionDef:
        """The loop."""
        return self._tree


# ---------------------------------------------------------------- words in memory


def offset(emitter: Any, place: str, count: int) -> str:
    """The address of a word."""
    pointer = t.PointerType(t.U64)
    return str(emitter.temporary(f"getelementptr i64, ptr {place}, i64 {count}", pointer).ir) if count else place


def store_words(emitter: Any, place: str, values: list[Value]) -> None:
    """Store numbers as words, as a thunk reads them."""
    for position, value in enumerate(values):
        ir, kind = value.ir, value.type.ir
        if value.type == t.BOOL:
            ir, kind = emitter.temporary(f"zext i1 {ir} to i64", t.U64).ir, "i64"
        emitter.line(f"store {kind} {ir}, ptr {offset(emitter, place, position)}, align 8")


def load_word(emitter: Any, place: str, position: int, kind: t.Type) -> Value:
    """A number that was stored as a word."""
    at = offset(emitter, place, position)
    if kind == t.BOOL:
        byte = emitter.temporary(f"load i8, ptr {at}, align 8", t.U8)
        return emitter.temporary(f"trunc i8 {byte.ir} to i1", t.BOOL)  # type: ignore[no-any-return]
    return emitter.temporary(f"load {kind.ir}, ptr {at}, align 8", kind)  # type: ignore[no-any-return]


def rebuilt(kind: t.Type, parts: Iterator[Value]) -> Any:
    """Numbers in the form of a type; None for no result."""
    if isinstance(kind, TupleType):
        return tuple(rebuilt(item, parts) for item in kind.items)
    return next(parts) if kind != t.VOID else Value("", t.VOID)


# ---------------------------------------------------------------- par


def branch(emitter: Any, node: ast.expr) -> Any:
    """A branch of a `par`, as a call of a kernel."""
    kernel: KernelFunction | None = emitter.kernel_called(node) if isinstance(node, ast.Call) else None
    if kernel is None or not isinstance(node, ast.Call):
        return emitter.error("par takes calls of kernels, as in gb.par(f(a), g(b))", node)
    call = emitter.prepared_call(kernel, emitter.arguments(node), node)
    words = len(call.operands)
    if words > MOST_WORDS:
        emitter.error(f"a branch of par takes at most {MOST_WORDS} words, and this one has {words}", node)
    return call


@syntax(words.par, "par(f(a), g(b))", checked=True)
def fork(emitter: Any, node: ast.Call) -> Any:
    """`par(f(a), g(b), ...)`: records for all branches but the first, which runs at once."""
    if node.keywords or len(node.args) < 2:
        emitter.error("par takes two calls of kernels or more, as in gb.par(f(a), g(b))", node)
    branches = [branch(emitter, argument) for argument in node.args]
    top = emitter.fork_top
    records: list[str] = []
    for call in reversed(branches[1:]):
        emitter.line(f"store ptr {emitter.unit.branch_site(call.kernel, call.symbol)}, ptr {top}, align 8")
        store_words(emitter, offset(emitter, top, 1), call.operands)
        records.append(top)
        top = offset(emitter, top, 1 + max(len(call.operands), word_count(call.kernel.result)))
    emitter.check_fork(top)
    results = [emitter.emit_kernel_call(branches[0], top)]
    for call, record in zip(branches[1:], reversed(records), strict=True):
        results.append(join(emitter, call, record))
    return tuple(results)


def join(emitter: Any, call: Any, record: str) -> Any:
    """Run a branch whose record was not touched, else take its result."""
    kernel = call.kernel
    serial, promoted, take, done = (emitter.label(stem) for stem in ("serial", "promoted", "take", "done"))
    kinds = [computed(kind) for kind in scalars(kernel.result)]
    # What was promoted has its child's address there, with this bit; a site has not.
    found = emitter.temporary(f"load i8, ptr {record}, align 8", t.U8)
    bit = emitter.temporary(f"and i8 {found.ir}, {PROMOTED}", t.U8)
    same = emitter.temporary(f"icmp eq i8 {bit.ir}, 0", t.BOOL)
    emitter.branch(Value(same.ir, t.BOOL, 1), serial, promoted)
    emitter.start(promoted)
    name = emitter.unit.reference(support.join_fork)
    place = emitter.temporary(f"call ptr {name}(ptr {FIBER}, ptr {record})", t.PointerType(t.U64))
    nothing = emitter.temporary(f"icmp eq ptr {place.ir}, null", t.BOOL)
    emitter.branch(nothing, serial, take)
    emitter.start(take)
    taken = [load_word(emitter, place.ir, position, kind) for position, kind in enumerate(kinds)]
    emitter.jump(done)
    emitter.start(serial)
    # From the record, where they are anyway: what is not needed across the first branch's call needs no register there.
    kept = [load_word(emitter, offset(emitter, record, 1), i, value.type) for i, value in enumerate(call.operands)]
    result = emitter.emit_kernel_call(replace(call, operands=kept), record)
    own = flattened(result) if kinds else []
    serial_end = emitter.block_label
    emitter.jump(done)
    emitter.start(done)
    parts = [
        emitter.temporary(f"phi {kind.ir} [ {a.ir}, %{take} ], [ {b.ir}, %{serial_end} ]", kind)
        for kind, a, b in zip(kinds, taken, own, strict=True)
    ]
    return rebuilt(kernel.result, iter(parts))


# ---------------------------------------------------------------- loops


def captured(
    emitter: Any, body: list[ast.stmt], own: frozenset[str]
) -> tuple[dict[str, Any], dict[str, type[ast.operator]]]:
    """The kernel's variables that a loop's body reads, with their values, and those that it adds to, with operators."""
    scope = emitter.scope
    found: dict[str, Any] = {}
    added: dict[str, type[ast.operator]] = {}
    additions: set[ast.AST] = set()
    for each in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(each, ast.Return | ast.Break) and not in_inner_loop(body, each):
            word = "return" if isinstance(each, ast.Return) else "break"
            emitter.error(f"the iterations of a prange all run: `{word}` cannot end it", each)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id in scope.names:
            name = each.target.id
            if type(each.op) not in NEUTRAL or added.setdefault(name, type(each.op)) is not type(each.op):
                emitter.error(f"iterations of a prange add to {name} by one of += *= &= |= ^=, always the same", each)
            additions.add(each.target)
    for each in (inner for statement in body for inner in ast.walk(statement)):
        if not isinstance(each, ast.Name) or each.id not in scope.names or each in additions:
            continue
        if each.id in added and isinstance(each.ctx, ast.Load):
            emitter.error(
                f"iterations of a prange add to {each.id}, in any order, so none can read what it is meanwhile: "
                f"`{each.id} {SYMBOLS[added[each.id]]} ...` without {each.id} on the right is all they may do with it",
                each,
            )
        if each.id in own:
            emitter.error(
                f"iterations of a prange have their own variables, and {each.id} is the kernel's: they may only add to "
                "it, as by +=; for the greatest, the least and other combinations there is gb.preduce; else use "
                "another name, or write to an array",
                each,
            )
        found[each.id] = emitter.lookup(each.id)
    return found, added


def in_inner_loop(body: list[ast.stmt], wanted: ast.AST) -> bool:
    """Whether a `break` ends a loop inside of the body."""
    if isinstance(wanted, ast.Return):
        return False
    return any(
        isinstance(each, ast.For | ast.While) and any(inner is wanted for inner in ast.walk(each))
        for statement in body
        for each in ast.walk(statement)
    )


def kind_of(emitter: Any, value: Any, node: ast.AST) -> t.Type:
    """The type of a parameter for a value."""
    return value.type if isinstance(value, ArrayValue) else emitter.kind_of(value, node)


def placed(tree: Any, node: ast.AST) -> Any:
    """A syntax tree that was made here, at a place of the source."""
    for each in ast.walk(tree):
        if not hasattr(each, "lineno"):
            ast.copy_location(each, node)
    return tree


def range_loop(target: ast.expr, body: list[ast.stmt], first: str, end: str) -> ast.For:
    """`for target in range(first, end)`."""
    bounds: list[ast.expr] = [ast.Name(first, ast.Load()), ast.Name(end, ast.Load())]
    call = ast.Call(ast.Name(RANGE, ast.Load()), bounds, [])
    return ast.For(target, call, body, [])


# What changes nothing, by the operator of a reduction, and LLVM's words for it.
NEUTRAL: dict[type[ast.operator], int] = {ast.Add: 0, ast.Mult: 1, ast.BitAnd: -1, ast.BitOr: 0, ast.BitXor: 0}
WORDS = {ast.Add: ("add", "fadd"), ast.Mult: ("mul", "fmul"), ast.BitAnd: ("and", ""), ast.BitOr: ("or", "")}
WORDS[ast.BitXor] = ("xor", "")
SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+=", ast.Mult: "*=", ast.BitAnd: "&=", ast.BitOr: "|=", ast.BitXor: "^=",
}  # fmt: skip

# Names that no source can have.
RANGE, FIRST, END, SO_FAR = "loop.range", "loop.first", "loop.end", "loop.result"


@loop(words.prange)
def parallel_loop(emitter: Any, node: ast.For, call: ast.Call) -> None:
    """`for i in prange(...)`."""
    target = node.target
    if not isinstance(target, ast.Name):
        emitter.error("a prange is counted by one name", target)
        return
    if call.keywords or not 1 <= len(call.args) <= 2:
        emitter.error("prange takes 1 or 2 arguments, the end or the start and the end; it counts in ones", call)
    bounds = [emitter.promoted(emitter.expression(argument), t.I64, argument) for argument in call.args]
    start, end = bounds if len(bounds) == 2 else (Value("0", t.I64), bounds[0])
    tree = ast.FunctionDef(emitter.kernel.code.co_name, no_arguments(), [], [], None)
    own = stored_names(placed(ast.Module([node], []), node))
    found, added = captured(emitter, node.body, own)
    if target.id in emitter.scope.names and target.id != "_":
        emitter.error(f"{target.id} is the kernel's already: count the prange by another name", target)
    variables = {name: value for name, value in found.items() if not is_known(value)}
    sums = {name: emitter.lookup(name) for name in added}
    kinds = {name: kind_of(emitter, value, node) for name, value in sums.items()}
    for name, kind in kinds.items():
        if kind not in (t.I64, t.U64, t.F64) or (kind == t.F64 and not WORDS[added[name]][1]):
            emitter.error(f"iterations of a prange cannot add to {name}, which is {kind}, like this", node)
    parameters: list[tuple[str, t.Type]] = [(FIRST, t.I64), (END, t.I64), *kinds.items()]
    parameters += [(name, kind_of(emitter, value, node)) for name, value in variables.items()]
    tree.args.args = [ast.arg(name) for name, _ in parameters]
    tree.body = [range_loop(target, node.body, FIRST, END)]
    result: t.Type = t.VOID
    if sums:
        result = TupleType(tuple(kinds.values()))
        tree.body.append(ast.Return(ast.Tuple([ast.Name(name, ast.Load()) for name in sums], ast.Load())))
    known = {RANGE: range, **{name: value for name, value in found.items() if is_known(value)}}
    facts = Facts(len(bounds) == 1 or emitter.is_not_negative(start, call.args[0]))
    named = emitter.sizes_named(call.args[-1])
    for name, value in variables.items():
        if isinstance(value, ArrayValue):
            facts.sizes += [(name, dimension) for data, dimension in named if data == value.data]
    function = LoopFunction(emitter.kernel, placed(tree, node), parameters, result, known, facts)
    neutral = [emitter.promoted(NEUTRAL[added[name]], kind, node) for name, kind in kinds.items()]
    words = run_loop(emitter, node, function, [start, end], list(variables.values()), neutral, list(added.values()))
    for (name, value), word in zip(sums.items(), words, strict=True):
        emitter.assign_name(name, emitter.binary(added[name](), value, word, node))


def no_arguments() -> ast.arguments:
    """A parameter list to be filled in."""
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def is_known(value: Any) -> bool:
    """Whether a value is known when the kernel is compiled, and not a number in a register."""
    return not isinstance(value, Value | ArrayValue | tuple | bool | int | float)


def run_loop(
    emitter: Any,
    node: ast.AST,
    function: LoopFunction,
    bounds: list[Value],
    values: list[Any],
    neutral: list[Value],
    combine: Combine,
) -> list[Value]:
    """Write a loop's record and run it; the words of its result."""
    emitter.calls = True
    symbol = function.symbol = emitter.unit.fresh(f"{emitter.kernel.symbol}.loop")
    wanted = function.parameters[2:]
    passed: list[Value] = []
    for value, (name, kind) in zip(values, wanted[len(wanted) - len(values) :], strict=True):
        passed += emitter.operands_of(value, kind, f"{name} is {kind}", function, wanted.index((name, kind)) + 2, node)
    if len(passed) + 2 * len(neutral) > MOST_LOOP_WORDS:
        emitter.error("a parallel loop reads too many variables: move a part of it into another kernel", node)
    emitter.unit.reference(function)
    site = emitter.unit.loop_site(symbol, function, neutral, passed, combine)
    record = emitter.fork_top
    emitter.line(f"store ptr {site}, ptr {record}, align 8")
    place = offset(emitter, record, 1)
    store_words(emitter, place, [*bounds, *neutral, *neutral, *passed])
    emitter.line(f"call void {emitter.unit.reference(support.run_loop)}(ptr {FIBER}, ptr {record})")
    return [
        load_word(emitter, place, 2 + len(neutral) + position, value.type) for position, value in enumerate(neutral)
    ]


@syntax(words.preduce, "preduce(combine, term, count, neutral, ...)")
def reduction(emitter: Any, node: ast.Call) -> Any:
    """`preduce(combine, term, count, neutral, *arguments)`."""
    if node.keywords or len(node.args) < 4:
        emitter.error("preduce takes two kernels, the number of terms and a neutral result", node)
    kernels = [emitter.kernel_named(argument) for argument in node.args[:2]]
    for kernel, argument in zip(kernels, node.args[:2], strict=True):
        if kernel is None:
            emitter.error(
                "preduce combines by a kernel the results of another, as in gb.preduce(add, term, n, 0)", argument
            )
    combine, term = kernels
    result = combine.result
    for problem, place in (
        (combining_problem("preduce", combine), node.args[0]),
        (term_problem(combine, term, len(node.args) - 4), node.args[1]),
    ):
        if problem is not None:
            emitter.error(problem, place)
    count = emitter.promoted(emitter.expression(node.args[2]), t.I64, node.args[2])
    value = emitter.fitted(emitter.expression(node.args[3]), result, f"the neutral result is {result}", node.args[3])
    neutral = [emitter.number(item, node) for item in flattened(value)]
    arguments = [emitter.expression(argument) for argument in node.args[4:]]
    names = [f"loop.argument.{position}" for position in range(len(arguments))]
    counter = "loop.counter"
    term_call = ast.Call(node.args[1], [ast.Name(name, ast.Load()) for name in (counter, *names)], [])
    combined = ast.Call(node.args[0], [ast.Name(SO_FAR, ast.Load()), term_call], [])
    body: list[ast.stmt] = [ast.Assign([ast.Name(SO_FAR, ast.Store())], combined)]
    tree = ast.FunctionDef(emitter.kernel.code.co_name, no_arguments(), [], [], None)
    parameters = [(FIRST, t.I64), (END, t.I64), (SO_FAR, result)]
    parameters += [(name, kind_of(emitter, v, node)) for name, v in zip(names, arguments, strict=True)]
    tree.args.args = [ast.arg(name) for name, _ in parameters]
    loop_tree = range_loop(ast.Name(counter, ast.Store()), body, FIRST, END)
    tree.body = [loop_tree, ast.Return(ast.Name(SO_FAR, ast.Load()))]
    known = {
        each.id: emitter.lookup(each.id)
        for argument in node.args[:2]
        for each in ast.walk(argument)
        if isinstance(each, ast.Name) and each.id in emitter.scope.names
    }
    function = LoopFunction(emitter.kernel, placed(tree, node), parameters, result, {RANGE: range, **known})
    found = run_loop(emitter, node, function, [Value("0", t.I64), count], arguments, neutral, combine)
    return rebuilt(result, iter(found))


# ---------------------------------------------------------------- what sites refer to


def loop_functions(
    symbol: str, function: KernelFunction, neutral: list[Value], passed: list[Value], combine: Combine, scope: str = ""
) -> Iterator[str]:
    """A loop's `chunk` and `combine`, in C's convention: between the record's words and the kernels' parameters.

    With debug information, `scope` is the chunk's.
    """
    kinds = [value.type for value in neutral]
    attached = f" !dbg {scope}" if scope else ""
    head = f"(ptr %fiber, ptr %top, ptr %words, i64 %first, i64 %end) nounwind{attached} {{"
    lines = [f'define internal void @"{symbol}.chunk"{head}']
    arguments = ["ptr %fiber", "ptr %top", "i64 %first", "i64 %end"]
    for position, kind in enumerate([*kinds, *(value.type for value in passed)]):
        lines += loaded(f"%v.{position}", "%words", 2 + len(kinds) + position, kind)
        arguments.append(f"{kind.ir} %v.{position}")
    location = f", !dbg !DILocation(line: {function.tree().lineno}, scope: {scope})" if scope else ""
    lines += [line + location for line in called("%r", f'@"{symbol}"', function.result, arguments)]
    lines += results_stored("%r", "%words", 2 + len(kinds), function.result)
    yield "\n".join([*lines, "  ret void", "}"])
    if not kinds:
        return
    head = "(ptr %fiber, ptr %top, ptr %words, ptr %later) nounwind {"
    lines = [f'define internal void @"{symbol}.combine"{head}']
    for position, kind in enumerate(kinds):
        lines += loaded(f"%a.{position}", "%words", 2 + len(kinds) + position, kind)
        lines += loaded(f"%b.{position}", "%later", position, kind)
    if isinstance(combine, KernelFunction):
        both = [f"{kind.ir} %{side}.{position}" for side in "ab" for position, kind in enumerate(kinds)]
        if isinstance(combine, LoopFunction):
            for position, value in enumerate(passed):
                lines += loaded(f"%v.{position}", "%words", 2 + 2 * len(kinds) + position, value.type)
                both.append(f"{value.type.ir} %v.{position}")
        lines += called("%r", f'@"{combine.symbol}"', combine.result, ["ptr %fiber", "ptr %top", *both])
        lines += results_stored("%r", "%words", 2 + len(kinds), combine.result)
    else:
        for position, (kind, operator) in enumerate(zip(kinds, combine, strict=True)):
            word = WORDS[operator][kind == t.F64]
            lines.append(f"  %r.{position} = {word} {kind.ir} %a.{position}, %b.{position}")
            lines.append(f"  store {kind.ir} %r.{position}, ptr %a.{position}.at, align 8")
    yield "\n".join([*lines, "  ret void", "}"])


def loaded(name: str, place: str, position: int, kind: t.Type) -> list[str]:
    """Instructions that load a number from a word."""
    lines = [f"  {name}.at = getelementptr i64, ptr {place}, i64 {position}"]
    if kind == t.BOOL:
        return [*lines, f"  {name}.byte = load i8, ptr {name}.at, align 8", f"  {name} = trunc i8 {name}.byte to i1"]
    return [*lines, f"  {name} = load {kind.ir}, ptr {name}.at, align 8"]


def called(name: str, symbol: str, result: t.Type, arguments: list[str]) -> list[str]:
    """Instructions that call a kernel."""
    whole = result_ir(result)
    target = "" if whole == "void" else f"{name} = "
    return [f"  {target}call {CONVENTION} {whole} {symbol}({', '.join(arguments)})"]


def results_stored(name: str, place: str, position: int, result: t.Type) -> Iterator[str]:
    """Instructions that store what a kernel returned as words."""
    whole = result_ir(result)
    for number, scalar in enumerate(scalars(result)):
        ir, value = computed(scalar).ir, name
        if isinstance(result, TupleType):
            value = f"{name}.{number}"
            yield f"  {value} = extractvalue {whole} {name}, {number}"
        if ir == "i1":
            yield f"  {name}.wide.{number} = zext i1 {value} to i64"
            ir, value = "i64", f"{name}.wide.{number}"
        yield f"  {name}.at.{number} = getelementptr i64, ptr {place}, i64 {position + number}"
        yield f"  store {ir} {value}, ptr {name}.at.{number}, align 8"


def thunk(kernel: KernelFunction, name: str, symbol: str, kinds: list[t.Type], scope: str = "") -> str:
    """The function that a fiber enters to run a kernel: from its words to parameters, and the results back.

    Args:
        kernel: the kernel.
        name: what the thunk is called, with its linkage and type.
        symbol: the function that has the kernel's code.
        kinds: of that function's parameters, a word each.
        scope: the thunk's, with debug information.
    """
    attached = f" !dbg {scope}" if scope else ""
    lines = [
        f"define {name}(ptr %fiber) nounwind{attached} {{",
        f"  %words.place = getelementptr i8, ptr %fiber, i64 {offsetof(Fiber, 'words')}",
        "  %words = load ptr, ptr %words.place, align 8",
        f"  %stack.place = getelementptr i8, ptr %fiber, i64 {offsetof(Fiber, 'stack')}",
        "  %stack = load ptr, ptr %stack.place, align 8",
    ]
    arguments = ["ptr %fiber", "ptr %stack"]
    for position, kind in enumerate(kinds):
        lines += loaded(f"%v.{position}", "%words", position, kind)
        arguments.append(f"{kind.ir} %v.{position}")
    location = f", !dbg !DILocation(line: {kernel.definition_line}, scope: {scope})" if scope else ""
    lines += [line + location for line in called("%r", f'@"{symbol}"', kernel.result, arguments)]
    lines += results_stored("%r", "%words", 0, kernel.result)
    return "\n".join([*lines, "  ret void", "}"])


def operand_types(kernel: KernelFunction, unchanged: frozenset[int] = frozenset()) -> Iterator[t.Type]:
    """The types of a kernel's LLVM parameters, or of its body's, one word each."""
    if unchanged:
        yield t.PointerType(t.U8)
    for number, (_, kind) in enumerate(kernel.parameters):
        if number in unchanged:
            continue
        if isinstance(kind, ArrayType):
            yield t.PointerType(t.U8)
            yield from [t.I64] * (word_count(kind) - 1)
        else:
            yield from (computed(scalar) for scalar in scalars(kind))
