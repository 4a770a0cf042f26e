"""The second way into the runner: scripts that `wasm-tools json-from-wast` has already taken apart.

Its JSON has the same commands, with every module in a file of its own: `.wasm` for a binary, `.wat` for quoted text.
Reading it gives the same command objects as `script`, so neither our text format nor our script parser is involved.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.spec.script import (
    MODULE_ASSERTIONS,
    Action,
    AssertException,
    AssertExhaustion,
    AssertModule,
    AssertReturn,
    AssertTrap,
    BinaryModule,
    Command,
    Either,
    Get,
    Instance,
    Invoke,
    Module,
    ModuleSource,
    NanPattern,
    Number,
    Pattern,
    QuoteModule,
    RefExtern,
    RefFunc,
    RefHost,
    RefKind,
    RefNull,
    Register,
    Vector,
)

_SHAPES = {"i8": "i8x16", "i16": "i16x8", "i32": "i32x4", "i64": "i64x2", "f32": "f32x4", "f64": "f64x2"}


def read_json(path: Path) -> list[Command]:
    """All commands of a JSON script; its modules are read from beside it."""
    return [_command(command, path.parent) for command in json.loads(path.read_text())["commands"]]


def _command(command: dict[str, Any], directory: Path) -> Command:
    line: int = command["line"]
    match command["type"]:
        case "module" | "module_definition" as type_:
            return Module(line, _name(command, "name"), _source(command, directory), type_ == "module_definition")
        case "module_instance":
            return Instance(line, _name(command, "instance"), _name(command, "module"))
        case "register":
            return Register(line, command["as"], _name(command, "name"))
        case "action":
            return _action(line, command["action"])
        case "assert_return":
            return AssertReturn(line, _action(line, command["action"]), tuple(map(_value, command["expected"])))
        case "assert_trap":
            return AssertTrap(line, _action(line, command["action"]), command["text"])
        case "assert_uninstantiable":
            return AssertTrap(line, _source(command, directory), command["text"])
        case "assert_exhaustion":
            return AssertExhaustion(line, _action(line, command["action"]), command["text"])
        case "assert_exception":
            return AssertException(line, _action(line, command["action"]))
        case type_ if type_.removeprefix("assert_") in MODULE_ASSERTIONS:
            kind = type_.removeprefix("assert_")
            return AssertModule(line, kind, _source(command, directory), command["text"])
    raise ValueError(f"unknown command in line {line}: {command['type']}")


def _name(command: dict[str, Any], key: str) -> str | None:
    """A name, with the `$` that the JSON leaves out."""
    name = command.get(key)
    return None if name is None else "$" + name.removeprefix("$")


def _source(command: dict[str, Any], directory: Path) -> ModuleSource:
    # Where text is turned into a binary on the way, the JSON names both files.
    file = directory / command.get("binary_filename", command["filename"])
    return BinaryModule(file.read_bytes()) if file.suffix == ".wasm" else QuoteModule(file.read_bytes())


def _action(line: int, action: dict[str, Any]) -> Action:
    instance = _name(action, "module")
    if action["type"] == "get":
        return Get(line, instance, action["field"])
    arguments = []
    for argument in map(_value, action["args"]):
        assert not isinstance(argument, NanPattern | RefKind | Either), "arguments are no patterns"
        arguments.append(argument)
    return Invoke(line, instance, action["field"], tuple(arguments))


def _value(value: dict[str, Any]) -> Pattern:
    type_: str = value["type"]
    content = value.get("value")
    if type_ in _SHAPES:
        return _number(type_, str(content))
    if type_ == "v128":
        lane = value["lane_type"]
        return Vector(_SHAPES[lane], tuple(_number(lane, text) for text in content or ()))
    if type_ == "either":
        return Either(tuple(map(_value, value["values"])))
    if type_ == "refnull":
        return RefNull(None)
    kind = type_.removesuffix("ref")
    if content == "null" or kind.startswith("null"):
        return RefNull(kind)
    if kind == "func":
        return RefFunc(content)
    if kind == "extern":
        return RefExtern(None if content is None else int(content))
    return RefKind(kind) if content is None else RefHost(int(content))


def _number(type_: str, text: str) -> Number | NanPattern:
    if text.startswith("nan:"):
        return NanPattern(type_, text.removeprefix("nan:"))
    return Number(type_, int(text) & ((1 << int(type_[1:])) - 1))
