"""`preduce`, `pmap`, `pscan` and `psort` called from Python: a kernel is made for the types that are given, and kept.

    pmap(f, out, a, 2.0)  ─▶  def pmap(out: Array[f64], a0: Array[f64], a1: float) -> None:
                                  words.pmap(function, out, a0, a1)

The kernels are kept by the kernel that they call, and go with it.
"""

import linecache
from hashlib import sha256
from typing import Any

from greenbeat.forkjoin import words
from greenbeat.kernels.objects import Kernel, element_name, kernel
from greenbeat.kernels.sorting import sorter
from greenbeat.kernels.types import ArrayType
from greenbeat.native import types as t
from greenbeat.native.types import Type

_ELEMENTS: dict[str, Type] = {
    each.name: each for each in (t.I8, t.I16, t.I32, t.I64, t.U8, t.U16, t.U32, t.U64, t.F32, t.F64, t.BOOL)
}


def array_type(value: Any) -> ArrayType | None:
    """The type of a parameter for what has a buffer; None: it has none, it is a number for example.

    Raises:
        TypeError: no kernel takes such a buffer.
    """
    try:
        view = memoryview(value)
    except TypeError:
        return None
    if view.ndim == 0:
        return None
    element = _ELEMENTS.get(element_name(view) or "")
    if element is None or view.ndim > 2:
        raise TypeError(f"no kernel takes a buffer of {view.ndim} dimensions in the format {view.format!r}")
    return ArrayType(element, view.ndim)


def required(value: Any, what: str) -> ArrayType:
    """The type of what has to be an array."""
    found = array_type(value)
    if found is None:
        raise TypeError(f"{what} is an array, not {type(value).__name__}")
    return found


def made(word: str, kinds: list[tuple[str, Type]], result: Type | None, **kernels: "Kernel[Any]") -> "Kernel[Any]":
    """A kernel of these parameters that calls a word with some kernels and its parameters."""
    keeper = next(iter(kernels.values()))._function
    kept: dict[Any, Kernel[Any]] = keeper.__dict__.setdefault("derived", {})
    key = (word, result, *kinds, *kernels.values())
    if key not in kept:
        parameters = ", ".join(f"{name}: {name}_type" for name, _ in kinds)
        call = f"words.{word}({', '.join([*kernels, *(name for name, _ in kinds)])})"
        text = f"def {word}({parameters}) -> result_type:\n    {'' if result is None else 'return '}{call}\n"
        file = f"<greenbeat.{word} {sha256(text.encode()).hexdigest()[:16]}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        names: dict[str, Any] = {"words": words, "__name__": __name__, "result_type": result, **kernels}
        names |= {f"{name}_type": kind for name, kind in kinds}
        exec(compile(text, file, "exec"), names)
        kept[key] = kernel(names[word])
    return kept[key]


def argument_types(function: "Kernel[Any]", first: int, arguments: tuple[Any, ...], whole: bool) -> list[Type]:
    """The types of arguments that a kernel gets: its own, but for arrays whose elements it gets."""
    wanted = function._function.parameters[first:]
    if len(arguments) != len(wanted):
        named = f"{function.__name__}{function._function.described}"
        raise TypeError(f"{named} takes {len(wanted) + first} arguments here, not {len(arguments) + first}")
    kinds = [kind for _, kind in wanted]
    return kinds if whole else [array_type(each) or kind for each, kind in zip(arguments, kinds, strict=True)]


def reduced(combine: Any, term: Any, count: int, neutral: Any, arguments: tuple[Any, ...]) -> Any:
    """`preduce` of kernels."""
    kinds = argument_types(term, 1, arguments, whole=True)
    result = combine._function.result
    parameters = [("count", t.I64), ("neutral", result), *((f"a{i}", kind) for i, kind in enumerate(kinds))]
    return made("preduce", parameters, result, combine=combine, term=term)(count, neutral, *arguments)


def map_arrays(function: Any, out: Any, arguments: tuple[Any, ...]) -> None:
    """`pmap` of a kernel."""
    kinds = argument_types(function, 0, arguments, whole=False)
    parameters = [("out", required(out, "out")), *((f"a{i}", kind) for i, kind in enumerate(kinds))]
    made("pmap", parameters, None, function=function)(out, *arguments)


def scan_array(combine: Any, out: Any, array: Any, neutral: Any) -> None:
    """`pscan` of a kernel."""
    kinds = {"out": required(out, "out"), "array": required(array, "what is scanned")}
    parameters = [*kinds.items(), ("neutral", combine._function.result)]
    made("pscan", parameters, None, combine=combine)(out, array, neutral)


def sort_array(array: Any, scratch: Any) -> None:
    """`psort`, with scratch of its own if there is none."""
    kind = required(array, "what is sorted")
    if scratch is None:
        view = memoryview(array)
        room: Any = memoryview(bytearray(view.nbytes))
        scratch = room.cast(view.format.lstrip("@=<"))
    sorter(kind.element)(array, scratch)
