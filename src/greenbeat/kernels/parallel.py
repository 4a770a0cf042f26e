"""`pmap`, `pscan` and `psort` in kernels: functions written here as texts, compiled as parts of the kernel that calls.

    pscan(add, out, a, 0)    1 2 3 4 │ 5 6 7 8      a part that ran elsewhere began at the neutral result ...
                             1 3 6 10│ 5 11 18 26   ... so what is before it is added to all of its results
                                  10 └▶ 15 21 28 36

So a scan takes a second look only at what was run by others: as long as nobody has time, it is the plain loop.
"""

import ast
from typing import Any

from greenbeat.forkjoin import words
from greenbeat.kernels.forking import LoopFunction, kind_of, no_arguments, run_loop
from greenbeat.kernels.intrinsics import syntax
from greenbeat.kernels.matching import combining_problem, mapping_problem, results_problem
from greenbeat.kernels.source import KernelFunction
from greenbeat.kernels.types import TupleType, computed, fits
from greenbeat.kernels.values import ArrayValue
from greenbeat.native import types as t
from greenbeat.native.values import Value

MAP = "for i in range(first, end): out[i] = function({})"
MAP_ROWS = "for i in range(first, end):\n    for j in range(out.shape[1]): out[i, j] = function({})"

# `begun` is where a part began, -1 until it has.
SCAN = """
if begun < 0:
    begun = first
for i in range(first, end):
    total = function(total, source[i])
    out[i] = total
return total, begun, end
"""
JOIN_SCANS = """
for i in prange(later_begun, later_end):
    out[i] = function(total, out[i])
return function(total, later), begun if begun >= 0 else later_begun, later_end
"""


def part(
    emitter: Any, node: ast.AST, text: str, parameters: list[tuple[str, t.Type]], result: t.Type, **known: Any
) -> LoopFunction:
    """A function that is a part of the kernel; in messages, all of it is at the call."""
    arguments = no_arguments()
    arguments.args = [ast.arg(each) for each, _ in parameters]
    tree = ast.FunctionDef(emitter.kernel.code.co_name, arguments, ast.parse(text).body, [], None)
    for each in ast.walk(tree):
        ast.copy_location(each, node)
    known |= {"range": range, "prange": words.prange}
    return LoopFunction(emitter.kernel, tree, parameters, result, known)


def kernel_given(emitter: Any, node: ast.Call, usage: str) -> KernelFunction:
    """The kernel that is the first argument."""
    found: KernelFunction | None = emitter.kernel_named(node.args[0])
    return emitter.error(usage, node) if found is None else found


def array_given(emitter: Any, node: ast.expr, most_dimensions: int, usage: str) -> ArrayValue:
    """An argument that is an array."""
    found = emitter.expression(node)
    if not isinstance(found, ArrayValue) or len(found.sizes) > most_dimensions:
        return emitter.error(usage, node)  # type: ignore[no-any-return]
    return found


def require_sizes(emitter: Any, node: ast.AST, out: ArrayValue, array: ArrayValue) -> None:
    """Raise unless two arrays have the same sizes."""
    if len(out.sizes) != len(array.sizes):
        emitter.error(f"the results are {out.type}, and this is {array.type}", node)
    for wanted, size in zip(out.sizes, array.sizes, strict=True):
        other = emitter.temporary(f"icmp ne i64 {wanted}, {size}", t.BOOL)
        text = "this has a length of {}, and the results have {}"
        emitter.fail_if(other, "ValueError", text, node, Value(size, t.I64), Value(wanted, t.I64))


def require_results(emitter: Any, node: ast.AST, function: KernelFunction, out: ArrayValue) -> None:
    """Refuse an array that cannot hold a kernel's results."""
    problem = results_problem(function, out.type)
    if problem is not None:
        emitter.error(problem, node)


def require_elements(emitter: Any, node: ast.AST, array: ArrayValue, kind: t.Type, what: str) -> None:
    """Refuse an array whose elements a kernel cannot be called with; `what` says what wants them."""
    if not fits(array.type.element, kind):
        emitter.error(f"{what} {kind}, but this array holds {array.type.element}", node)


@syntax(words.pmap, "pmap(f, out, a, ...)")
def mapping(emitter: Any, node: ast.Call) -> Any:
    """`pmap(f, out, a, ...)`."""
    usage = "pmap takes a kernel, an array for the results, and arrays or values, as in gb.pmap(f, out, a)"
    if node.keywords or len(node.args) < 2:
        emitter.error(usage, node)
    called = kernel_given(emitter, node, usage)
    problem = mapping_problem(called, len(node.args) - 2)
    if problem is not None:
        emitter.error(problem, node)
    out = array_given(emitter, node.args[1], 2, usage)
    require_results(emitter, node.args[1], called, out)
    index = "[i]" if len(out.sizes) == 1 else "[i, j]"
    values: list[Any] = [out]
    parameters = [("first", t.I64), ("end", t.I64), ("out", out.type)]
    given: list[str] = []
    for position, argument in enumerate(node.args[2:]):
        value = emitter.expression(argument)
        if isinstance(value, ArrayValue):
            require_sizes(emitter, argument, out, value)
            name, kind = called.parameters[position]
            require_elements(emitter, argument, value, kind, f"{name} of {called.python.__name__} is")
        values.append(value)
        parameters.append((f"a{position}", kind_of(emitter, value, argument)))
        given.append(f"a{position}{index if isinstance(value, ArrayValue) else ''}")
    text = (MAP if len(out.sizes) == 1 else MAP_ROWS).format(", ".join(given))
    function = part(emitter, node, text, parameters, t.VOID, function=emitter.expression(node.args[0]))
    run_loop(emitter, node, function, [Value("0", t.I64), Value(out.sizes[0], t.I64)], values, [], [])
    return Value("", t.VOID)


@syntax(words.pscan, "pscan(combine, out, a, neutral)")
def scan(emitter: Any, node: ast.Call) -> Any:
    """`pscan(combine, out, a, neutral)`."""
    usage = "pscan takes a kernel, an array for the results, an array, and a neutral result"
    if node.keywords or len(node.args) != 4:
        emitter.error(usage, node)
    combine = kernel_given(emitter, node, usage)
    out, source = (array_given(emitter, argument, 1, usage) for argument in node.args[1:3])
    require_sizes(emitter, node.args[2], out, source)
    problem = combining_problem("pscan", combine)
    if problem is not None:
        emitter.error(problem, node.args[0])
    require_results(emitter, node.args[1], combine, out)
    require_elements(emitter, node.args[2], source, combine.result, f"{combine.python.__name__} combines")
    result = computed(combine.result)
    value = emitter.fitted(
        emitter.expression(node.args[3]), combine.result, f"the neutral result is {combine.result}", node.args[3]
    )
    own = [("total", result), ("begun", t.I64), ("until", t.I64)]
    later = [("later", result), ("later_begun", t.I64), ("later_end", t.I64)]
    arrays: list[tuple[str, t.Type]] = [("out", out.type), ("source", source.type)]
    state = TupleType(tuple(kind for _, kind in own))
    known = {"function": emitter.expression(node.args[0])}
    function = part(emitter, node, SCAN, [("first", t.I64), ("end", t.I64), *own, *arrays], state, **known)
    joining = part(emitter, node, JOIN_SCANS, [*own, *later, *arrays], state, **known)
    joining.symbol = emitter.unit.fresh(f"{emitter.kernel.symbol}.join")
    neutral = [emitter.number(value, node), Value("-1", t.I64), Value("0", t.I64)]
    bounds = [Value("0", t.I64), Value(out.sizes[0], t.I64)]
    run_loop(emitter, node, function, bounds, [out, source], neutral, joining)
    return Value("", t.VOID)


@syntax(words.psort, "psort(a, scratch)")
def sort(emitter: Any, node: ast.Call) -> Any:
    """`psort(a, scratch)`."""
    from greenbeat.kernels.sorting import sorter  # here, since it is made of kernels

    usage = "in a kernel, psort takes an array and another one like it, as scratch"
    if node.keywords or len(node.args) != 2:
        emitter.error(usage, node)
    arrays = [array_given(emitter, argument, 1, usage) for argument in node.args]
    if arrays[0].type != arrays[1].type:
        emitter.error(usage, node.args[1])
    return emitter.call_kernel(sorter(arrays[0].type.element)._function, arrays, node)
