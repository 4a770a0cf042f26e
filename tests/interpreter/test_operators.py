"""Every operator with its operands from everywhere: locals, constants, slots, accumulators, in all combinations.

The official suite calls operators with parameters only. What it proves of those must hold for all other places: a
function for each place an operand can come from, and for each thing a result can become part of, gives the same result.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product

import pytest

from greenbeat.wasm import valuetypes
from greenbeat.wasm.ops import LOADS, OPERATIONS, STORES, Operation
from tests.support import Guest, outcome, same

Case = tuple[float, ...]
KINDS = {valuetypes.I32: "i32", valuetypes.I64: "i64", valuetypes.F32: "f32", valuetypes.F64: "f64"}
_INTEGERS = (0, 1, 7, -1, 31, 1 << 31, 0x1234_5678)
_FLOATS = (0.0, -0.0, 1.0, -2.5, 1e9, float("inf"), float("nan"))
VALUES: dict[str, tuple[float, ...]] = {
    "i32": tuple((value + (1 << 31)) % (1 << 32) - (1 << 31) for value in _INTEGERS),
    "i64": (*_INTEGERS, -(1 << 63), 0x1_0000_0000, 0x1234_5678_9ABC_DEF0),
    "f32": _FLOATS,
    "f64": _FLOATS,
}
BINARY = [operation for operation in OPERATIONS.values() if len(operation.params) == 2]
UNARY = [operation for operation in OPERATIONS.values() if len(operation.params) == 1]


def kinds_of(operation: Operation) -> tuple[str, str]:
    """The types of an operation's operands and of its result, by their names."""
    return KINDS[operation.operand_type], KINDS[operation.result_type]


def written(kind: str, value: float) -> str:
    """A constant expression."""
    if kind.startswith("i"):
        return f"({kind}.const {value})"
    return f"({kind}.const {'nan' if value != value else 'inf' if value == float('inf') else value.hex()})"


def detour(kind: str, expression: str) -> str:
    """The same value, computed: by an operation whose result is in an accumulator."""
    neutral = {"i32": "i32.const 0", "i64": "i64.const 0", "f32": "f32.const 1", "f64": "f64.const 1"}[kind]
    # 1 * x is x for floats, but for signs and payloads of NaNs.
    return f"({kind}.{'add' if kind.startswith('i') else 'mul'} {expression} ({neutral}))"


def places(kind: str, local: int, value: float) -> dict[str, str]:
    """Expressions of one value from all places."""
    get = f"(local.get {local})"
    return {"local": get, "constant": written(kind, value), "computed": detour(kind, get)}


def uses(operation: str, result: str, expression: str) -> Iterator[tuple[str, str, str]]:
    """Functions' names, result types and bodies, in which the expression's result is used in all ways."""
    yield "plain", result, expression
    yield "set", result, f"(local.set $r {expression}) (local.get $r)"
    yield "tee", result, f"(drop (local.tee $r {expression})) (local.get $r)"
    yield "twice", result, f"(block (result {result}) {expression} (br_if 0 (i32.const 1)))"
    yield "global", result, f"(global.set $g {expression}) (global.get $g)"
    yield "call", result, f"(call $same {expression})"
    yield "returned", result, f"(return {expression})"
    if result == "i32":
        yield "if", "i32", f"(if (result i32) {expression} (then (i32.const 1)) (else (i32.const 0)))"
        yield "unless", "i32", f"(if (result i32) (i32.eqz {expression}) (then (i32.const 0)) (else (i32.const 1)))"
        yield "br_if", "i32", f"(block (br_if 0 {expression}) (return (i32.const 0))) (i32.const 1)"
        yield "br_unless", "i32", f"(block (br_if 0 (i32.eqz {expression})) (return (i32.const 1))) (i32.const 0)"
        yield (
            "br_if with a value",
            "i32",
            f"(block (result i32) (i32.const 1) (br_if 0 {expression}) drop (i32.const 0))",
        )
        yield (
            "loop",
            "i32",
            (
                f"(loop $l (if (local.get $r) (then (return (i32.const 1)))) (local.set $r (i32.const 1))"
                f" (br_if $l {expression})) (i32.const 0)"
            ),
        )
        yield "select", "i32", f"(select (i32.const 1) (i32.const 0) {expression})"


TRUTHS = {"if", "unless", "br_if", "br_unless", "br_if with a value", "loop", "select"}


def check(guest: Guest, kind: str, result: str, name: str, cases: list[Case]) -> None:
    """Compare all functions of all cases with the operation on parameters; every use is tried in the first only."""
    functions, calls = [], []
    for number, values in enumerate(cases):
        params = f"(param {f'{kind} ' * len(values)})"
        sides = [places(kind, position, value) for position, value in enumerate(values)]
        for combination in product(*sides):
            operands = " ".join(side[place] for side, place in zip(sides, combination, strict=True))
            everything = list(uses(name, result, f"({name} {operands})"))
            for use, gives, body in everything if number == 0 else everything[:1]:
                label = f"{number} {' '.join(combination)} {use}"
                functions.append(f'(func (export "{label}") {params} (result {gives}) (local $r {result}) {body})')
                calls.append((label, values, use in TRUTHS))
    operands = " ".join(f"(local.get {position})" for position in range(len(cases[0])))
    params = f"(param {f'{kind} ' * len(cases[0])})"
    program = guest(f"""(module (global $g (mut {result}) ({result}.const 0))
      (func $same (param {result}) (result {result}) (local.get 0))
      (func (export "reference") {params} (result {result}) ({name} {operands}))
      {" ".join(functions)})""")
    for label, values, truth in calls:
        expected = outcome(program, "reference", *values)
        if truth and isinstance(expected, int):
            expected = int(expected != 0)
        assert same(outcome(program, label, *values), expected), (label, values)


@pytest.mark.parametrize("operation", BINARY, ids=lambda operation: operation.name)
def test_binary_operators(guest: Guest, operation: Operation) -> None:
    kind, result = kinds_of(operation)
    values = VALUES[kind]
    cases: list[Case] = [(values[1], values[2]), *((left, right) for left in values for right in values[::2])]
    check(guest, kind, result, operation.name, cases)


@pytest.mark.parametrize("operation", UNARY, ids=lambda operation: operation.name)
def test_unary_operators(guest: Guest, operation: Operation) -> None:
    kind, result = kinds_of(operation)
    check(guest, kind, result, operation.name, [(value,) for value in VALUES[kind]])


def test_both_operands_are_the_last_result(guest: Guest) -> None:
    program = guest("""(module
      (func (export "square") (param i32) (result i32) (local i32)
        (i32.mul (local.tee 1 (i32.add (local.get 0) (i32.const 1))) (local.get 1)))
      (func (export "double") (param f64) (result f64) (local f64)
        (f64.add (local.tee 1 (f64.mul (local.get 0) (f64.const 3))) (local.get 1)))
      (func (export "less") (param i32) (result i32) (local i32)
        (i32.lt_u (local.tee 1 (i32.add (local.get 0) (i32.const 1))) (local.get 1))))""")
    assert (program("square", 4), program("double", 2.0), program("less", 3)) == (25, 12.0, 0)


ADDRESSES = {
    "local": "(local.get 0)",
    "constant": "(i32.const 40)",
    "sum": "(i32.add (local.get 0) (i32.const 0))",
    "shifted": "(i32.shl (i32.shr_u (local.get 0) (i32.const 1)) (i32.const 1))",
    "loaded": "(i32.load (local.get 1))",
    "masked": "(i32.and (local.get 0) (i32.const 0xffff))",
    "wrapped": "(i32.wrap_i64 (i64.extend_i32_u (local.get 0)))",
}


@pytest.mark.parametrize("memory", ["32", "64", "second"])
def test_loads_and_stores(guest: Guest, memory: str) -> None:
    """Every load reads what every store wrote, with address and value from everywhere, in memories of every kind."""
    wide, name = memory == "64", "$second " if memory == "second" else ""
    functions = []
    for access in (*LOADS.values(), *STORES.values()):
        kind = KINDS[access.value_type]
        stores = access in STORES.values()
        for place, written_address in ADDRESSES.items():
            address = written_address
            if wide:
                address = f"(i64.extend_i32_u {written_address.replace('(local.get 1)', '(i64.const 64)')})"
            for offset in (0, 8):
                where = f"{name}offset={offset}"
                if not stores:
                    functions.append(
                        f'(func (export "{access.name} {place} {offset}") (param i32 i32) (result {kind})'
                        f" ({access.name} {where} {address}))"
                    )
                    continue
                value = f"({kind}.const 3)"
                for source, expression in (
                    ("constant", value),
                    ("local", "(local.get $v)"),
                    ("computed", f"({kind}.add (local.get $v) ({kind}.const 0))"),
                ):
                    functions.append(
                        f'(func (export "{access.name} {place} {offset} {source}") (param i32 i32) (local $v {kind})'
                        f" (local.set $v {value}) ({access.name} {where} {address} {expression}))"
                    )
    first = "(memory i64 1)" if wide else "(memory 1)"
    pointer = "(i32.store (i64.const 64) (i32.const 40))" if wide else "(i32.store (i32.const 64) (i32.const 40))"
    if memory == "second":
        pointer += " (i32.store $second (i32.const 64) (i32.const 40))"
    size, zero = ("i64.const 64", "i64.const 0") if wide else ("i32.const 64", "i32.const 0")
    program = guest(f"""(module {first} (memory $second 1)
      (func (export "fill") (param i32) (memory.fill {name} ({zero}) (local.get 0) ({size})) {pointer})
      {" ".join(functions)})""")
    for access in LOADS.values():
        for offset in (0, 8):
            program("fill", 0xA5)
            expected = decoded(access.name, b"\xa5" * 8)
            for place in ADDRESSES:
                assert same(program(f"{access.name} {place} {offset}", 40, 64), expected), (access.name, place, offset)
    for access in STORES.values():
        kind = KINDS[access.value_type]
        back = {1: "i32.load8_u", 2: "i32.load16_u", 4: "i32.load", 8: "i64.load"}[access.stored.size]
        bits = struct.unpack("<I" if kind == "f32" else "<Q", struct.pack("<f" if kind == "f32" else "<d", 3.0))[0]
        for offset in (0, 8):
            for place in ADDRESSES:
                for source in ("constant", "local", "computed"):
                    program("fill", 0)
                    program(f"{access.name} {place} {offset} {source}", 40, 64)
                    found = program(f"{back} local {offset}", 40, 64)
                    assert found == (3 if kind.startswith("i") else bits), (access.name, place, offset, source)


def decoded(load: str, content: bytes) -> float:
    """What a load makes of bytes."""
    kind, _, how = load.partition(".load")
    size = int(how.rstrip("_su") or int(kind[1:])) // 8
    if kind.startswith("f"):
        value: float = struct.unpack("<f" if size == 4 else "<d", content[:size])[0]
        return value
    number = int.from_bytes(content[:size], "little", signed=not how.endswith("_u"))
    bits = int(kind[1:])
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
