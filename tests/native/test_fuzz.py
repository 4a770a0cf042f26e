"""Random programs, most of them wrong: the compiler refuses with NativeError or writes IR that LLVM accepts; nothing else."""

import importlib.util
import os
import random
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from greenbeat.native import NativeError
from greenbeat.native.targets import host_machine
from greenbeat.native.unit import Unit

PRELUDE = """
from greenbeat.native import *

@struct
class Node:
    next: ptr["Node"]
    value: i64
    small: u8
    flag: bool
    items: array[u8, 4]
    real: f64

@native
def helper(x: i32, p: ptr[u8]) -> i32:
    return x

@native
def procedure(x: i32) -> None:
    pass

@inline
def generic(x, y):
    if x > y:
        return x
    return y

@inline
def leaves(x):
    unreachable()

@inline
def constant(x):
    return x

@extern(variadic=True)
def printf(format: ptr[u8]) -> i32: ...

@extern(attributes="noreturn")
def abort() -> None: ...

LIMIT = 5
KIND = u16
KINDS = [i32, f64, u8]
words = table(u16, [1, 2, 3])
counter = static(u64, name="counter")
"""

PARAMETERS = "x: i32, y: i32, z: u8, q: f64, b: bool, p: ptr[Node], r: ptr[u8], v: v128, o: u64"
NAMES = "x y z q b p r v o a c d LIMIT KIND KINDS words counter helper nothing".split()
UNARY = ["-", "~", "not ", "+"]
BINARY = "+ - * // % / ** & | ^ << >> @".split()
COMPARE = ["<", "<=", ">", "==", "!=", "is", "is not", "in"]
KINDS = "i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bool v128 void ptr[u8] ptr[void] ptr[Node] Node KIND array[u8,4] function[[i32],i32]".split()
ORDERINGS = ['"relaxed"', '"acquire"', '"release"', '"acq_rel"', '"seq_cst"', "1"]
OPERATIONS = {
    "cast": "ke",
    "bitcast": "ke",
    "truncate_unchecked": "ke",
    "load": "kee",
    "store": "eee",
    "volatile_load": "e",
    "volatile_store": "ee",
    "atomic_load": "eo",
    "atomic_store": "eeo",
    "atomic_update": "ueeo",
    "compare_exchange": "eeeo",
    "fence": "o",
    "copy": "eee",
    "fill": "eee",
    "addressof": "e",
    "stack": "ke",
    "count_leading_zeros": "e",
    "byteswap": "e",
    "rotate_left": "ee",
    "divide_truncating": "ee",
    "add_overflows": "ee",
    "square_root": "e",
    "float_minimum": "ee",
    "fused_multiply_add": "eee",
    "extract_lane": "eke",
    "insert_lane": "eee",
    "vector_of": "e",
    "likely": "e",
    "unlikely": "e",
    "tail": "c",
    "trap": "e",
    "unreachable": "",
    "select": "eee",
    "sizeof_value": "e",
    "sizeof": "k",
    "frame_address": "",
    "parameters_of_caller": "",
}


class Program:
    """Writes the body of one function from a stream of random numbers; expressions mostly have fitting types."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.depth = 0

    def pick(self, items: Any) -> Any:
        return self.random.choice(items)

    def typed(self, kind: str) -> str:
        """An expression that probably has this type."""
        if self.depth > 3 or self.random.random() < 0.3:
            return str(self.pick({
                "i32": ["x", "y", "3", "-1", "i32(z)", "helper(x, r)", "a"],
                "bool": ["b", "True", "x < y", "p is None", "p.flag", "z != 0"],
                "f64": ["q", "1.5", "p.real", "f64(x)"],
                "ptr": ["p", "r", "p.next", "p.items", "None", "r + x", "stack(Node)"],
            }[kind]))  # fmt: skip
        self.depth += 1
        try:
            match kind, self.random.randrange(5):
                case "bool", 0:
                    return f"({self.typed('bool')} {self.pick(['and', 'or'])} {self.typed('bool')})"
                case "bool", 1:
                    return f"(not {self.typed('bool')})"
                case "bool", _:
                    side = self.pick(["i32", "f64"])
                    return f"({self.typed(side)} {self.pick(COMPARE[:5])} {self.typed(side)})"
                case _, 0:
                    return f"({self.typed(kind)} if {self.typed('bool')} else {self.typed(kind)})"
                case "i32", 1:
                    return f"generic({self.typed('i32')}, {self.typed('i32')})"
                case "i32", 2:
                    return f"leaves({self.typed('i32')})"
                case (("i32" | "f64"), _):
                    return f"({self.typed(kind)} {self.pick('+-*')} {self.typed(kind)})"
                case _, _:
                    return f"cast(ptr[{self.pick(['u8', 'Node'])}], {self.typed('ptr')})"
        finally:
            self.depth -= 1

    def expression(self) -> str:
        self.depth += 1
        try:
            if self.random.random() < 0.8:
                return self.typed(self.pick(["i32", "bool", "f64", "ptr"]))
            if self.depth > 4:
                return str(self.pick(NAMES))
            e = self.expression
            match self.random.randrange(17):
                case 0 | 1:
                    return str(self.pick(NAMES))
                case 2:
                    return str(
                        self.pick(
                            [
                                "0",
                                "1",
                                "-7",
                                "300",
                                "2**40",
                                "2**70",
                                "1.5",
                                "1e400",
                                "True",
                                "None",
                                '"t"',
                                "b'u'",
                                "...",
                            ]
                        )
                    )
                case 3:
                    return f"({self.pick(UNARY)}{e()})"
                case 4 | 5:
                    return f"({e()} {self.pick(BINARY)} {e()})"
                case 6:
                    return f"({e()} {self.pick(COMPARE)} {e()})"
                case 7:
                    return f"({e()} {self.pick(['and', 'or'])} {e()})"
                case 8:
                    return f"({e()} if {e()} else {e()})"
                case 9:
                    return f"{e()}.{self.pick(['value', 'items', 'next', 'flag', 'nothing', 'real'])}"
                case 10:
                    return f"{e()}[{e()}]"
                case 11:
                    return self.call()
                case 12 | 13:
                    return self.operation()
                case 14:
                    return f"{self.pick(KINDS)}({e()})"
                case 15:
                    return str(self.pick([f"({e()}, {e()})", f"[{e()}]", f"len({e()})", "lambda: 1", f"f'{{{e()}}}'"]))
                case _:
                    return f"{e()}[{e()}:{e()}]"
        finally:
            self.depth -= 1

    def call(self) -> str:
        name = self.pick(
            ["helper", "procedure", "generic", "leaves", "constant", "printf", "program_1", "abort", "int", "max"]
        )
        return f"{name}({', '.join(self.expression() for _ in range(self.random.randrange(4)))})"

    def operation(self) -> str:
        name = self.pick(list(OPERATIONS))
        parts = {
            "k": lambda: self.pick(KINDS) if self.random.random() < 0.9 else self.expression(),
            "e": self.expression,
            "o": lambda: self.pick(ORDERINGS),
            "u": lambda: self.pick(['"add"', '"xchg"', '"max"', '"nand"', "x"]),
            "c": self.call,
        }
        arguments = [str(parts[c]()) for c in OPERATIONS[name]]
        if self.random.random() < 0.05:
            arguments = arguments[1:]
        return f"{name}({', '.join(arguments)})"

    def target(self) -> str:
        return str(
            self.pick(
                [
                    "a",
                    "c",
                    "d",
                    "x",
                    "q",
                    "p",
                    "LIMIT",
                    "p.value",
                    "p.next",
                    "p.items[1]",
                    "p.flag",
                    "r[x]",
                    "words[0]",
                    "(a, c)",
                ]
            )
        )

    def block(self, indent: str, loop: bool) -> list[str]:
        return [line for _ in range(self.random.randrange(1, 4)) for line in self.statement(indent, loop)]

    def statement(self, indent: str, loop: bool) -> list[str]:
        inner = indent + "    "
        deep = len(indent) > 12
        e = self.expression
        match self.random.randrange(6 if deep else 15):
            case 0 | 1:
                return [f"{indent}{self.pick(['a', 'c', self.target()])} = {e()}"]
            case 2:
                return [f"{indent}{self.pick(['a', 'c'])}: {self.pick(KINDS)} = {e()}"]
            case 3:
                return [f"{indent}{self.target().replace('(a, c)', 'a')} {self.pick(BINARY)}= {e()}"]
            case 4:
                return [f"{indent}{e()}"]
            case 5:
                ends = [
                    "return 1",
                    "return",
                    "return " + self.typed("i32"),
                    "pass",
                    "assert b",
                    *["break", "continue"] * loop,
                ]
                return [indent + str(self.pick(ends))]
            case 6 | 7 | 8:
                otherwise = [f"{indent}else:", *self.block(inner, loop)] if self.random.random() < 0.5 else []
                return [f"{indent}if {self.typed('bool')}:", *self.block(inner, loop), *otherwise]
            case 9 | 10:
                return [f"{indent}while {self.pick([e(), self.typed('bool'), 'True'])}:", *self.block(inner, True)]
            case 11:
                return [
                    f"{indent}for {self.pick('acx')} in range({e()}, {self.typed('i32')}, {self.pick([1, -1, 3])}):",
                    *self.block(inner, True),
                ]
            case 12:
                items = self.pick(["[1, 2]", "KINDS", "range(3)", "[(1, 2)]", "[]", e()])
                return [f"{indent}for {self.pick(['a', 'k', 'k, m'])} in unroll({items}):", *self.block(inner, True)]
            case 13:
                cases = [
                    f"{inner}case {value}:\n" + "\n".join(self.block(inner + "    ", loop)) for value in (1, "2 | -3")
                ]
                return [f"{indent}match {self.pick(['x', 'z', 'o', 'LIMIT', e()])}:", *cases]
            case _:
                return [
                    f"{indent}{self.pick(['x: i32', 'd: u64', 'global w', 'del a', 'import os', 'raise', 'a = c = 1'])}"
                ]

    def text(self, number: int) -> str:
        body = "\n".join(self.block("    ", False))
        return f"@native\ndef program_{number}({PARAMETERS}) -> i32:\n{body}\n    return 0\n"


def python_accepts(text: str) -> bool:
    try:
        compile(text, "fuzz", "exec")
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_programs(tmp_path: Path, checked: bool) -> None:
    count, seed = int(os.environ.get("GREENBEAT_FUZZ", "400")), int(os.environ.get("GREENBEAT_SEED", "1")) * 2 + checked
    programs = [Program(seed * 1_000_000 + n).text(n) for n in range(count)]
    programs = [text for text in programs if python_accepts(text)]
    path = tmp_path / "fuzz.py"
    path.write_text(PRELUDE + "\n".join(programs))
    spec = importlib.util.spec_from_file_location(f"fuzz_{seed}", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    machine = host_machine().create()
    good = 0
    for name in [n for n in vars(module) if n.startswith("program_")]:
        function = getattr(module, name)
        try:
            text = Unit("fuzz", [function], checked=checked).text()
        except NativeError as error:
            assert error.__cause__ is None, f"{error}\n(from {error.__cause__!r})"
            continue
        with llvm.create_context() as context, llvm.parse_assembly(text, context) as parsed:
            parsed.data_layout = str(machine.target_data)
            parsed.verify()
        good += 1
    assert good > count // 20, "the programs are all wrong: nothing was tested"
