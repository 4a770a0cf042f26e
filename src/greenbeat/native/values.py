"""What an expression is while it is compiled.

A value known only at run time is a `Value`: an LLVM operand and its type. Anything else is a compile-time value, a
plain Python object: a number, a type, a function, a tuple of those. Compile-time numbers have no width until they meet
one.
"""

import ast
from dataclasses import dataclass, field
from typing import Any

from greenbeat.native.language import NativeFunction
from greenbeat.native.types import Type


@dataclass(slots=True)
class Value:
    """An LLVM operand. `weight` is set by `likely` (+1) and `unlikely` (-1)."""

    ir: str
    type: Type
    weight: int = 0


@dataclass(slots=True)
class Local:
    """A local variable: its stack slot, which LLVM turns into registers."""

    slot: str
    type: Type


@dataclass
class Loop:
    """Where `continue` and `break` go, and which names are assigned each time they do."""

    again: str
    after: str
    assigned_at_exit: list[set[str]] = field(default_factory=list)
    assigned_again: list[set[str]] = field(default_factory=list)


@dataclass
class Scope:
    """The names of one function while it is compiled; an expanded inline function has its own."""

    function: NativeFunction
    stored: frozenset[str]
    environment: dict[str, Any]
    names: dict[str, Any] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    loops: list[Loop] = field(default_factory=list)
    returns: Type | None = None
    exit: str = ""
    result: Local | None = None
    static_result: Any = None
    returned: int = 0
    debug_scope: str = ""
    called_at: str = ""
    outer: "Scope | None" = None
    call: ast.AST | None = None
