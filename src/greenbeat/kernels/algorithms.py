"""`preduce`, `pmap`, `pscan` and `psort` called from Python: a kernel is made for the types that are given, and kept.

    pmap(f, out, a, 2.0)  ─▶  def pmap(out: Array[f64], a0: Array[f64], a1: float) -> None:
                                  words.pmap(function, out, a0, a1)

The kernels are kept by the kernel that they call, and go with it. Nobody has written them, so no message is to name
them: what does not fit is found before they are made, and their arguments are called by whose they are.
"""

import linecache
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from greenbeat.errors import KernelError
from greenbeat.forkjoin import words
from greenbeat.kernels.matching import combining_problem, mapping_problem, results_problem, term_problem
from greenbeat.kernels.objects import Kernel, element_name, kernel
from greenbeat.kernels.sorting import sorter
from greenbeat.kernels.types import ArrayType, fits
from greenbeat.native import types as t
from greenbeat.native.types import Type

_ELEMENTS: dict[str, Type] = {
    each.name: each for each in (t.I8, t.I16, t.I32, t.I64, t.U8, t.U16, t.U32, t.U64, t.F32, t.F64, t.BOOL)
}


def array_given(value: Any, what: str, word: str, most_dimensions: int = 2) -> tuple[ArrayType, tuple[int, ...]] | None:
    """The type and the sizes of what has a buffer; None: it has none, it is a number for example.

    Raises:
        TypeError: it is no array for kernels, or not one that this word takes.
    """
    try:
        view = memoryview(value)
    except TypeError:
        return None
    except ValueError:
        # numpy's dates cannot be in any buffer.
        raise _no_elements(value, what, "") from None
    if view.ndim == 0:
        return None
    element = _ELEMENTS.get(element_name(view) or "")
    if element is None:
        raise _no_elements(value, what, view.format)
    if view.ndim > most_dimensions:
        most = "1 dimension" if most_dimensions == 1 else f"1 or {most_dimensions} dimensions"
        raise TypeError(f"{what} has {view.ndim} dimensions: {word} takes arrays of {most}")
    return ArrayType(element, view.ndim), tuple(view.shape or ())


def _no_elements(value: Any, what: str, letters: str) -> TypeError:
    kind = getattr(value, "dtype", None)
    held = f"elements in the format {letters!r}" if kind is None else f"elements of the type {kind}"
    return TypeError(
        f"{what} holds {held}: arrays for kernels hold integers of 8 to 64 bits, floats of 32 or 64, or bools, "
        "in the machine's byte order"
    )


def required(value: Any, what: str, word: str, most_dimensions: int = 2) -> tuple[ArrayType, tuple[int, ...]]:
    """The type and the sizes of what has to be an array."""
    found = array_given(value, what, word, most_dimensions)
    if found is None:
        raise TypeError(f"{what} is an array, not {type(value).__name__}")
    return found


def require_sizes(what: str, found: tuple[ArrayType, tuple[int, ...]], out: tuple[ArrayType, tuple[int, ...]]) -> None:
    """Refuse an array that is not as large as the one for the results."""
    (kind, sizes), (wanted, out_sizes) = found, out
    if kind.dimensions != wanted.dimensions:
        raise TypeError(f"{what} has {_counted(kind.dimensions)}, and out has {_counted(wanted.dimensions)}")
    if sizes != out_sizes:
        mine, its = (f"length {each[0]}" if len(each) == 1 else f"shape {each}" for each in (sizes, out_sizes))
        raise ValueError(f"{what} has {mine}, and out has {its}")


def _counted(dimensions: int) -> str:
    return f"{dimensions} dimension{'s' * (dimensions != 1)}"


def refuse(problem: str | None) -> None:
    """Raise what is wrong with a kernel, if anything is."""
    if problem is not None:
        raise TypeError(problem)


def made(
    word: str, parameters: list[tuple[str, Type, str]], result: Type | None, **kernels: "Kernel[Any]"
) -> "Kernel[Any]":
    """A kernel that calls a word with some kernels and its parameters: names, types, and how messages call them."""
    keeper = next(iter(kernels.values()))._function
    kept: dict[Any, Kernel[Any]] = keeper.__dict__.setdefault("derived", {})
    key = (word, result, *parameters, *kernels.values())
    if key not in kept:
        heads = ", ".join(f"{name}: {name}_type" for name, _, _ in parameters)
        call = f"words.{word}({', '.join([*kernels, *(name for name, _, _ in parameters)])})"
        text = f"def {word}({heads}) -> result_type:\n    {'' if result is None else 'return '}{call}\n"
        file = f"<greenbeat.{word} {sha256(text.encode()).hexdigest()[:16]}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        names: dict[str, Any] = {"words": words, "__name__": __name__, "result_type": result, **kernels}
        names |= {f"{name}_type": kind for name, kind, _ in parameters}
        exec(compile(text, file, "exec"), names)
        try:
            kept[key] = kernel(names[word])
        except KernelError as error:
            raise TypeError(f"{word}: {error.message}") from None
        kept[key]._function.told = [told for _, _, told in parameters]
    return kept[key]


def called_here(prepare: Callable[..., tuple[Any, tuple[Any, ...]]]) -> Callable[..., Any]:
    """Decorator: calls the kernel that a function gives, with the arguments that it gives.

    What the function refuses is raised without its frames: they are no business of the user's.
    """

    def call(*given: Any) -> Any:
        try:
            made, arguments = prepare(*given)
        except (TypeError, ValueError) as error:
            raise error.with_traceback(None) from None
        return made(*arguments)

    return call


@called_here
def reduced(
    combine: Any, term: Any, count: int, neutral: Any, arguments: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...]]:
    """`preduce` of kernels."""
    combining, giving = combine._function, term._function
    refuse(combining_problem("preduce", combining) or term_problem(combining, giving, len(arguments)))
    result = combining.result
    parameters = [("count", t.I64, "the count of preduce"), ("neutral", result, "the neutral result of preduce")]
    for position, (_, kind) in enumerate(giving.parameters[1:]):
        parameters.append((f"a{position}", kind, giving.argument_told(position + 1)))
    return made("preduce", parameters, result, combine=combine, term=term), (count, neutral, *arguments)


@called_here
def map_arrays(function: Any, out: Any, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """`pmap` of a kernel."""
    called = function._function
    refuse(mapping_problem(called, len(arguments)))
    results = required(out, "out", "pmap")
    refuse(results_problem(called, results[0]))
    parameters: list[tuple[str, Type, str]] = [("out", results[0], "out of pmap")]
    for position, (value, (name, kind)) in enumerate(zip(arguments, called.parameters, strict=True)):
        what = f"argument {position + 1} ({name} of {called.python.__name__})"
        found = array_given(value, what, "pmap")
        if found is None:
            parameters.append((f"a{position}", kind, called.argument_told(position)))
            continue
        require_sizes(what, found, results)
        if not fits(found[0].element, kind):
            raise TypeError(f"{what} holds {found[0].element}, but {name} is {kind}")
        parameters.append((f"a{position}", found[0], what))
    return made("pmap", parameters, None, function=function), (out, *arguments)


@called_here
def scan_array(combine: Any, out: Any, array: Any, neutral: Any) -> tuple[Any, tuple[Any, ...]]:
    """`pscan` of a kernel."""
    combining = combine._function
    refuse(combining_problem("pscan", combining))
    results, found = required(out, "out", "pscan", 1), required(array, "what is scanned", "pscan", 1)
    refuse(results_problem(combining, results[0]))
    require_sizes("what is scanned", found, results)
    if not fits(found[0].element, combining.result):
        raise TypeError(f"what is scanned holds {found[0].element}, but {combine.__name__} combines {combining.result}")
    parameters = [
        ("out", results[0], "out of pscan"),
        ("array", found[0], "what is scanned"),
        ("neutral", combining.result, "the neutral result of pscan"),
    ]
    return made("pscan", parameters, None, combine=combine), (out, array, neutral)


@called_here
def sort_array(array: Any, scratch: Any) -> tuple[Any, tuple[Any, ...]]:
    """`psort`, with scratch of its own if there is none."""
    kind, _ = required(array, "what is sorted", "psort", 1)
    if scratch is None:
        view = memoryview(array)
        room: Any = memoryview(bytearray(view.nbytes))
        scratch = room.cast(view.format.lstrip("@=<"))
    return sorter(kind.element), (array, scratch)
