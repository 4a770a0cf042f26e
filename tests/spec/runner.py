"""Runs scripts of the official suite on an engine behind an `Adapter`.

The runner knows what a script means: which instance an action is for, what is registered under which name, which
outcome an assertion wants. The adapter knows the engine. Arguments and results cross between them as the values of
`script`, with floats as their bits, because an adapter that sent them through Python floats would lose signalling
NaNs.

    report = Runner(adapter).run(read_script(path))
    assert not report.failures

The host module `spectest` that scripts import from is itself WebAssembly, written in the text format below, so no
engine needs anything special for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, Protocol, TypeVar

from greenbeat.wasm.text import TextError, assemble
from tests.spec.script import (
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
    TextModule,
    Value,
    Vector,
)

SPECTEST = """
(module $spectest
  (global (export "global_i32") i32 (i32.const 666))
  (global (export "global_i64") i64 (i64.const 666))
  (global (export "global_f32") f32 (f32.const 666.6))
  (global (export "global_f64") f64 (f64.const 666.6))
  (table (export "table") 10 20 funcref)
  (table (export "table64") i64 10 20 funcref)
  (memory (export "memory") 1 2)
  (func (export "print"))
  (func (export "print_i32") (param i32))
  (func (export "print_i64") (param i64))
  (func (export "print_f32") (param f32))
  (func (export "print_f64") (param f64))
  (func (export "print_i32_f32") (param i32 f32))
  (func (export "print_f64_f64") (param f64 f64)))
"""


# The kinds of references a pattern may name for a reference of a kind.
_SUPERTYPES = {kind: {kind, "eq", "any"} for kind in ("i31", "struct", "array")}


class Outcome(Enum):
    """How something ended that did not end well."""

    MALFORMED = "malformed"
    INVALID = "invalid"
    REFUSED = "refused"
    """Malformed or invalid; the engine does not tell which."""
    UNLINKABLE = "unlinkable"
    TRAP = "trap"
    EXHAUSTION = "exhaustion"
    EXCEPTION = "exception"


CompiledModule = TypeVar("CompiledModule")
LiveInstance = TypeVar("LiveInstance")


class Adapter(Protocol[CompiledModule, LiveInstance]):
    """What the runner asks of an engine."""

    def compile(self, binary: bytes) -> CompiledModule:
        """Decode and validate a module."""

    def instantiate(self, module: CompiledModule, imports: Mapping[str, Mapping[str, object]]) -> LiveInstance:
        """Link and initialise an instance; `imports` holds everything registered, more than the module needs."""

    def exports(self, instance: LiveInstance) -> Mapping[str, object]:
        """The exports of an instance in whatever form `instantiate` takes them."""

    def invoke(self, instance: LiveInstance, name: str, arguments: Sequence[Value]) -> Sequence[Value | RefKind]:
        """Call an exported function."""

    def get_global(self, instance: LiveInstance, name: str) -> Value | RefKind:
        """Read an exported global."""

    def classify(self, error: Exception) -> Outcome | None:
        """What an error raised by any of the above means; None when it is a defect."""

    def trap_message(self, error: Exception) -> str | None:
        """What a trap says, if it is in the words of the specification; None when the engine has its own."""


@dataclass
class Report:
    """What became of a script's commands: how many passed, and the others by line with the reason."""

    passed: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    skipped: list[tuple[int, str]] = field(default_factory=list)


class _SkippedError(Exception):
    """A command depends on something that was skipped."""


class Runner(Generic[CompiledModule, LiveInstance]):
    """Executes the commands of one script.

    `later` gives the reasons why modules at certain lines are not run yet. What depends on them is skipped too.
    """

    def __init__(self, adapter: Adapter[CompiledModule, LiveInstance], later: Mapping[int, str] | None = None) -> None:
        self.adapter = adapter
        self.later = later or {}
        self.report = Report()
        self._definitions: dict[str | None, CompiledModule | _SkippedError] = {}
        self._instances: dict[str | None, LiveInstance | _SkippedError] = {}
        self._registered: dict[str, Mapping[str, object]] = {}

    def run(self, commands: Sequence[Command]) -> Report:
        """Execute all commands, go on after failures, and tell what happened."""
        spectest = self.adapter.compile(assemble(SPECTEST))
        self._registered["spectest"] = self.adapter.exports(self.adapter.instantiate(spectest, {}))
        for command in commands:
            try:
                if command.line in self.later:
                    self._skip(command)
                problem = self._execute(command)
            except _SkippedError as reason:
                self.report.skipped.append((command.line, str(reason)))
                continue
            except Exception as error:
                problem = f"unexpected {type(error).__name__}: {error}"
            if problem is None:
                self.report.passed += 1
            else:
                self.report.failures.append((command.line, f"{type(command).__name__}: {problem}"))
        return self.report

    def _skip(self, command: Command) -> None:
        """Skip a command, and remember that what it would have defined is not there."""
        reason = _SkippedError(self.later[command.line])
        if isinstance(command, Module | Instance):
            self._instances[None] = self._instances[command.name] = reason
        if isinstance(command, Module):
            self._definitions[None] = self._definitions[command.name] = reason
        raise reason

    def _execute(self, command: Command) -> str | None:
        """Execute a command; what is wrong with it, or None."""
        match command:
            case Module():
                self._define(command)
            case Instance():
                self._instantiate_as(command.name, self._definition(command.module))
            case Register():
                self._registered[command.name] = self.adapter.exports(self._instance(command.instance))
            case Invoke() | Get():
                self._act(command)
            case AssertReturn():
                return self._check_results(self._act(command.action), command.results)
            case AssertTrap(action=Invoke() | Get() as action):
                return self._expect([Outcome.TRAP], lambda: self._act(action), command.message)
            case AssertTrap(action=TextModule() | QuoteModule() | BinaryModule() as source):
                module = self.adapter.compile(source.binary())
                return self._expect([Outcome.TRAP], lambda: self._instantiate(module), command.message)
            case AssertExhaustion():
                return self._expect([Outcome.EXHAUSTION], lambda: self._act(command.action))
            case AssertException():
                return self._expect([Outcome.EXCEPTION], lambda: self._act(command.action))
            case AssertModule():
                return self._check_module(command)
        return None

    def _define(self, command: Module) -> None:
        # A module that fails leaves no current instance, so that later commands cannot hit an older one by mistake.
        failed = _SkippedError(f"the module in line {command.line} failed")
        self._definitions[None] = self._definitions[command.name] = failed
        if not command.definition:
            self._instances[None] = self._instances[command.name] = failed
        module = self.adapter.compile(command.source.binary())
        self._definitions[None] = self._definitions[command.name] = module
        if not command.definition:
            self._instantiate_as(command.name, module)

    def _instantiate_as(self, name: str | None, module: CompiledModule) -> None:
        self._instances[None] = self._instances[name] = self._instantiate(module)

    def _instantiate(self, module: CompiledModule) -> LiveInstance:
        return self.adapter.instantiate(module, self._registered)

    def _definition(self, name: str | None) -> CompiledModule:
        definition = self._definitions[name]
        if isinstance(definition, _SkippedError):
            raise definition
        return definition

    def _instance(self, name: str | None) -> LiveInstance:
        instance = self._instances[name]
        if isinstance(instance, _SkippedError):
            raise instance
        return instance

    def _act(self, action: Action) -> Sequence[Value | RefKind]:
        instance = self._instance(action.instance)
        if isinstance(action, Get):
            return [self.adapter.get_global(instance, action.name)]
        return self.adapter.invoke(instance, action.name, action.arguments)

    def _expect(self, wanted: Sequence[Outcome], act: Callable[[], object], message: str | None = None) -> str | None:
        """Do something that must end in one of the wanted outcomes; a trap with a message that agrees with this one."""
        try:
            result = act()
        except _SkippedError:
            raise
        except Exception as error:
            outcome = Outcome.MALFORMED if isinstance(error, TextError) else self.adapter.classify(error)
            if outcome in wanted:
                found = self.adapter.trap_message(error) if message is not None else None
                return None if found is None or _agree(found, message or "") else f"expected {message!r}, got {found!r}"
            return f"expected {wanted[0].value}, got {type(error).__name__}: {error}"
        return f"expected {wanted[0].value}, got {result}"

    def _check_module(self, command: AssertModule) -> str | None:
        source = command.source
        match command.kind:
            case "malformed" | "malformed_custom":
                return self._expect([Outcome.MALFORMED, Outcome.REFUSED], lambda: self._compile(source))
            case "invalid" | "invalid_custom":
                return self._expect([Outcome.INVALID, Outcome.REFUSED], lambda: self._compile(source))
            case _:
                module = self._compile(source)
                return self._expect([Outcome.UNLINKABLE], lambda: self._instantiate(module))

    def _compile(self, source: ModuleSource) -> CompiledModule:
        return self.adapter.compile(source.binary())

    def _check_results(self, results: Sequence[Value | RefKind], patterns: Sequence[Pattern]) -> str | None:
        good = len(results) == len(patterns) and all(map(matches, results, patterns))
        return None if good else f"expected {list(patterns)}, got {list(results)}"


def _agree(found: str, wanted: str) -> bool:
    """Whether two messages of traps mean the same: scripts sometimes add what the trap was about."""
    return found.startswith(wanted) or wanted.replace("null function", "null").startswith(found)


def matches(result: Value | RefKind, pattern: Pattern) -> bool:
    """Whether a result is what a pattern describes."""
    match pattern:
        case Either():
            return any(matches(result, alternative) for alternative in pattern.alternatives)
        case NanPattern():
            return isinstance(result, Number) and result.type == pattern.type and _is_nan(result, pattern.payload)
        case Vector():
            if not isinstance(result, Vector):
                return False
            lanes = Vector.from_bytes(result.to_bytes(), pattern.shape).lanes
            pairs = zip(lanes, pattern.lanes, strict=True)
            return all(isinstance(lane, Number) and matches(lane, wanted) for lane, wanted in pairs)
        case RefNull():
            return isinstance(result, RefNull)
        case RefExtern(value=None):
            return isinstance(result, RefExtern)
        case RefFunc():
            return isinstance(result, RefFunc)
        case RefKind():
            return isinstance(result, RefKind) and pattern.kind in _SUPERTYPES.get(result.kind, {result.kind})
        case RefHost() | RefExtern() | Number():
            return result == pattern


def _is_nan(number: Number, payload: str) -> bool:
    width, mantissa = (32, 23) if number.type == "f32" else (64, 52)
    magnitude = number.bits & ~(1 << (width - 1))
    quiet = ((1 << (width - mantissa)) - 1) << (mantissa - 1)
    return magnitude == quiet if payload == "canonical" else magnitude & quiet == quiet
