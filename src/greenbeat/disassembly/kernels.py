"""`greenbeat.inspect`: a kernel's lines, each with the LLVM IR and the machine code that came from it.

The kernel is compiled once more, with a table of lines. LLVM's optimiser keeps that up to date: what was moved or
merged belongs to where it came from, and what belongs to no line is shown with the `def`.

    IR        every instruction has a location:  !dbg !9  ─▶  !9 = !DILocation(line: 6, ..., inlinedAt: !12)
    assembly  a directive says what follows:     .loc 1 6 5
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from greenbeat.errors import KernelError
from greenbeat.kernels.cache import reached
from greenbeat.kernels.compiler import explain_kernel
from greenbeat.kernels.objects import Kernel
from greenbeat.kernels.source import KernelFunction

_WIDTH = 44

_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(\w+)\((.*)\)$", re.MULTILINE)
_ATTACHED = re.compile(r", !dbg !(\d+)")
_FIELD = re.compile(r'(\w+): (?:"([^"]*)"|!?([\w.]+))')
_FILE = re.compile(r'\.file\t(\d+) (?:"([^"]*)" )?"([^"]*)"')
_PLACE = re.compile(r"\.loc\t(\d+) (\d+)")
_FUNCTION = re.compile(r'^"?([^\s."][^\s"]*)"?:')
_LABEL = re.compile(r'^"?(\.LBB[^\s"]*)"?:')


@dataclass(frozen=True)
class InspectedLine:
    """A line of a kernel's source, and what came from it, in the order in which it is laid out."""

    number: int
    text: str
    llvm: tuple[str, ...]
    assembly: tuple[str, ...]


@dataclass(frozen=True)
class Inspection:
    """What a kernel was compiled to; as text, its lines with both beside each other.

    Attributes:
        name: the kernel.
        llvm: the optimised LLVM IR of it and what it calls.
        assembly: the machine code as assembly.
        lines: the lines of the kernel, and of other kernels that it calls, which may have become part of it.
    """

    name: str
    llvm: str
    assembly: str
    lines: tuple[InspectedLine, ...]

    def __str__(self) -> str:
        return "\n".join(self._shown())

    def _shown(self) -> Iterator[str]:
        width = len(str(max(line.number for line in self.lines)))
        for line in self.lines:
            yield f"{line.number:>{width}} │ {line.text}".rstrip()
            for place in range(max(len(line.assembly), len(line.llvm))):
                left = line.assembly[place] if place < len(line.assembly) else ""
                right = line.llvm[place] if place < len(line.llvm) else ""
                yield f"{'':{width}} │     {left:{_WIDTH}} ┊ {right}".rstrip(" ┊")


def inspect(kernel: "Kernel[Any]") -> Inspection:
    """What a kernel is compiled to: optimised LLVM IR, machine code, and which line each came from.

    Raises:
        TypeError: this is no kernel.
        KernelError: it cannot be compiled.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"inspect takes a kernel, not {type(kernel).__name__}")
    function = kernel._function
    try:
        llvm, assembly = explain_kernel(function)
    except KernelError as error:
        raise error.with_traceback(None) from None
    source = _Source(reached(function)[0])
    from_llvm, from_assembly = _llvm_lines(llvm, source), _assembly_lines(assembly, source)
    lines = [
        InspectedLine(number, text, tuple(from_llvm.get(place, ())), tuple(from_assembly.get(place, ())))
        for place, number, text in source.lines()
    ]
    return Inspection(kernel.__name__, _plain_llvm(llvm), "\n".join(_plain_assembly(assembly)), tuple(lines))


Place = tuple[str, int]


class _Source:
    """The lines of kernels, by file and number."""

    def __init__(self, kernels: list[KernelFunction]) -> None:
        self.kernels = kernels
        self.first = {
            (kernel.file, number): kernel.definition_line
            for kernel in kernels
            for number in range(kernel.first_line, kernel.first_line + len(kernel.lines))
        }

    def lines(self) -> Iterator[tuple[Place, int, str]]:
        """All of them, the inspected kernel's first."""
        for kernel in self.kernels:
            for number in range(kernel.first_line, kernel.first_line + len(kernel.lines)):
                yield (kernel.file, number), number, kernel.text_at(number)

    def has(self, place: Place) -> bool:
        """Whether a place is in a kernel."""
        return place in self.first


def _path(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


# ---------------------------------------------------------------- LLVM


def _llvm_lines(text: str, source: _Source) -> dict[Place, list[str]]:
    """The instructions of each line."""
    nodes = {}
    for number, kind, fields in _NODE.findall(text):
        nodes[number] = {"kind": kind, **{name: words or word for name, words, word in _FIELD.findall(fields)}}

    def place_of(number: str) -> Place | None:
        """The innermost place that is in a kernel; of what has no line, the function's."""
        while number in nodes:
            node = nodes[number]
            scope = nodes[node["scope"]]
            file = nodes[scope["file"]]
            line = int(node["line"]) or int(scope["line"])
            place = _path(file["directory"], file["filename"]), line
            if source.has(place):
                return place
            number = node.get("inlinedAt", "")
        return None

    found: dict[Place, list[str]] = {}
    for line in text.splitlines():
        attached = _ATTACHED.search(line)
        if attached and line.startswith("  ") and (place := place_of(attached[1])) is not None:
            found.setdefault(place, []).append(_ATTACHED.sub("", line).strip())
    return found


def _plain_llvm(text: str) -> str:
    """Without what only says where things come from."""
    lines = [re.sub(r" !dbg !\d+", "", _ATTACHED.sub("", line)) for line in text.splitlines()]
    kept = [line for line in lines if not line.startswith(("!", "source_filename", "; ModuleID"))]
    return "\n".join(kept).strip()


# ---------------------------------------------------------------- assembly


def _assembly_lines(text: str, source: _Source) -> dict[Place, list[str]]:
    """The instructions of each line. Of what was expanded from elsewhere, the line is the one before."""
    files: dict[str, str] = {}
    found: dict[Place, list[str]] = {}
    place: Place | None = None
    for line in text.splitlines():
        if _FUNCTION.match(line):
            place = None
        elif file := _FILE.search(line):
            files[file[1]] = _path(file[2], file[3])
        elif mark := _PLACE.search(line):
            name, number = files[mark[1]], int(mark[2])
            if number == 0 and place is not None and place[0] == name:
                place = name, source.first[place]
            elif source.has((name, number)):
                place = name, number
        elif place is not None and _is_code(line):
            found.setdefault(place, []).append(line.strip().replace("\t", " "))
    return found


def _is_code(line: str) -> bool:
    return _LABEL.match(line) is not None or (line[:1].isspace() and line.strip()[:1] not in (".", "#", ""))


def _plain_assembly(text: str) -> Iterator[str]:
    """The functions' labels and instructions."""
    for line in text.splitlines():
        if line.startswith("\t.section\t.debug"):
            return
        if _is_code(line) or _FUNCTION.match(line):
            yield line.replace("\t", "    ", 1).replace("\t", " ")
