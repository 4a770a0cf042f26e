"""Whether kernels fit what `preduce`, `pmap` and `pscan` do with them: in the same words from Python and in kernels.

What does not fit would be found when the loop is compiled, too, but in terms of a loop that nobody wrote.
"""

from greenbeat.kernels.source import KernelFunction
from greenbeat.kernels.types import ArrayType, TupleType, fits
from greenbeat.native.types import I64, VOID


def named(kernel: KernelFunction) -> str:
    """A kernel with its signature."""
    return f"{kernel.python.__name__}{kernel.described}"


def combining_problem(word: str, combine: KernelFunction) -> str | None:
    """Why a kernel is nothing that `preduce` or `pscan` could combine by."""
    result = combine.result
    numbers = word == "pscan"
    combines = not isinstance(result, ArrayType) and result != VOID and not (numbers and isinstance(result, TupleType))
    if combines and [kind for _, kind in combine.parameters] == [result, result]:
        return None
    what = "two numbers" if numbers else "two results"
    return (
        f"the first kernel of {word} combines {what}: it must take two arguments of the type that it returns, "
        f"unlike {named(combine)}"
    )


def term_problem(combine: KernelFunction, term: KernelFunction, given: int) -> str | None:
    """Why a kernel cannot give `preduce` its terms, with so many arguments after the index."""
    name, more = named(term), len(term.parameters) - 1
    if more < 0 or not fits(I64, term.parameters[0][1]):
        return f"the second kernel of preduce gives a term for an index: its first parameter is an int, unlike {name}"
    if more != given:
        return f"{name} takes the index and {more} more, so preduce takes {4 + more} arguments, not {4 + given}"
    if not fits(term.result, combine.result):
        return f"{term.python.__name__} returns {told(term)}, but {combine.python.__name__} combines {combine.result}"
    return None


def mapping_problem(function: KernelFunction, given: int) -> str | None:
    """Why `pmap` cannot call a kernel with so many arguments."""
    wanted = len(function.parameters)
    if wanted != given:
        return f"{named(function)} takes {wanted}, so pmap takes {2 + wanted} arguments, not {2 + given}"
    for name, kind in function.parameters:
        if isinstance(kind, ArrayType):
            return f"pmap passes elements of arrays, but {name} of {named(function)} is a whole one"
    return None


def results_problem(function: KernelFunction, out: ArrayType) -> str | None:
    """Why an array cannot take a kernel's results."""
    if fits(function.result, out.element):
        return None
    return f"{function.python.__name__} returns {told(function)}, but out holds {out.element}"


def told(kernel: KernelFunction) -> str:
    """What a kernel returns."""
    return "None" if kernel.result == VOID else kernel.result.name
