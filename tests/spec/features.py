"""What of the official suite is for later, in one place: whole files by proposal, and parts of others with reasons.

A file belongs to a proposal when its path in the suite matches one of the proposal's patterns. Files of the core
directory and of `custom` that no pattern matches are ours. Some of them also touch a later feature: `LATER_COMMANDS`
lists commands we skip, and `TRIMMED_MODULES` modules of which we drop only the fields that need the feature, so that
the rest of the file still runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

from tests.spec.script import (
    Action,
    AssertException,
    AssertExhaustion,
    AssertReturn,
    AssertTrap,
    Command,
    Get,
    Instance,
    Invoke,
    Module,
    QuoteModule,
    TextModule,
    read_script,
)
from tests.spec.suite import SUITE, scripts

LATER_FILES: dict[str, list[str]] = {
    "simd": ["simd_*.wast"],
    "relaxed-simd": ["i16x8_relaxed_*.wast", "i32x4_relaxed_*.wast", "i8x16_relaxed_*.wast", "relaxed_*.wast"],
    "gc": [
        "array.wast",
        "array_*.wast",
        "binary-gc.wast",
        "br_on_cast.wast",
        "br_on_cast_fail.wast",
        "extern.wast",
        "i31.wast",
        "ref_cast.wast",
        "ref_eq.wast",
        "ref_test.wast",
        "struct.wast",
        "type-canon.wast",
        "type-rec.wast",
        "type-subtyping.wast",
    ],
    "threads": ["proposals/threads/*.wast"],
    "custom-page-sizes": ["proposals/custom-page-sizes/*.wast"],
    "wide-arithmetic": ["proposals/wide-arithmetic/*.wast"],
    "custom-descriptors": ["proposals/custom-descriptors/*.wast"],
    "legacy-exceptions": ["legacy/*.wast"],
    "branch-hints": ["custom/branch_hint.wast"],
}

LATER_COMMANDS: dict[str, dict[int, str]] = {
    "ref_null.wast": {23: "gc: bottom types such as nofunc"},
    "tag.wast": dict.fromkeys((30, 38, 40, 48), "gc: recursive types"),
    "table_init.wast": {2272: "gc: a table of arrays"},
    "table_init64.wast": {2457: "gc: a table of arrays"},
    "type-equivalence.wast": dict.fromkeys(
        (30, 38, 49, 136, 161, 233, 238, 246, 257, 268, 279, 290, 308), "gc: recursive types"
    ),
}


@dataclass(frozen=True)
class Trim:
    """Drop the fields of a module that contain one of these tokens."""

    reason: str
    tokens: frozenset[str]


_GC_NULLS = Trim("gc: references to any", frozenset({"anyref"}))

TRIMMED_MODULES: dict[str, dict[int, Trim]] = {
    "ref_null.wast": {1: _GC_NULLS},
}


def feature_of(path: Path) -> str | None:
    """The proposal a script of the suite belongs to, or None when it is ours now."""
    name = path.relative_to(SUITE).as_posix()
    for feature, patterns in LATER_FILES.items():
        if any(fnmatch(name, pattern) for pattern in patterns):
            return feature
    return None


def our_files() -> list[Path]:
    """The scripts that must pass now."""
    return [path for path in scripts() + scripts("custom") if feature_of(path) is None]


def our_commands(path: Path) -> tuple[list[Command], dict[int, str]]:
    """The commands of one of our scripts with some modules trimmed, and the lines to skip with the reasons."""
    later = dict(LATER_COMMANDS.get(path.name, {}))
    trims = TRIMMED_MODULES.get(path.name, {})
    commands: list[Command] = []
    reason, dropped = "", frozenset[str]()
    for command in read_script(path):
        if isinstance(command, Module | Instance):
            dropped = frozenset()
        if isinstance(command, Module) and command.line in trims:
            trim = trims[command.line]
            reason = trim.reason
            command, dropped = _trimmed(command, trim)
        action = _action_of(command)
        if action is not None and action.name in dropped:
            later[command.line] = reason
        commands.append(command)
    return commands, later


def _trimmed(command: Module, trim: Trim) -> tuple[Module, frozenset[str]]:
    """The module without the fields in question, and the names of the exports that go with them."""
    assert isinstance(command.source, TextModule), "only modules written out can be trimmed"
    kept, dropped = [], set()
    for tokens, text in command.source.fields():
        if trim.tokens.isdisjoint(tokens):
            kept.append(text)
        else:
            exports = pairwise(tokens)
            dropped |= {name.strip('"') for keyword, name in exports if keyword == "export"}
    source = QuoteModule(f"(module {' '.join(kept)})".encode())
    return replace(command, source=source), frozenset(dropped)


def _action_of(command: Command) -> Action | None:
    match command:
        case Invoke() | Get():
            return command
        case AssertReturn(action=action) | AssertExhaustion(action=action) | AssertException(action=action):
            return action
        case AssertTrap(action=Invoke() | Get() as action):
            return action
    return None
