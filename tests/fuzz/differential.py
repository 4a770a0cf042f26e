"""One differential case: a module in wasmtime and in Greenbeat, in every way, call by call.

All engines are in the same state after each call, or the case is a finding: results or kind of trap, bytes of
memories, elements of tables, values of globals. After a stack overflow, which is not at the same depth everywhere,
nothing more is compared.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import wasmtime

import greenbeat as gb
from tests.fuzz import ours, theirs
from tests.fuzz.ours import MODES, Ours
from tests.fuzz.theirs import Theirs
from tests.fuzz.world import RAISED, STACK, HostError, value_of

# Loop iterations and calls that a guest may make in one call of ours.
FUEL = 150
MOST_CALLS = 12
MOST_TABLE = 300
# What Greenbeat refuses on purpose.
REFUSED_ON_PURPOSE = ("not supported", "implementation limit")

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class Difference(Exception):
    """The engines disagree; the argument says where."""


@lru_cache(maxsize=1)
def engine() -> wasmtime.Engine:
    """The one engine of this process."""
    return theirs.make_engine()


def _made(make: Callable[[], Any]) -> tuple[Any, Any]:
    """An instance, or why there is none."""
    try:
        return make(), None
    except theirs.Trapped as trap:
        return None, trap.args[0]
    except gb.Trap as trap:
        return None, ours._KINDS.get(trap.kind, trap.kind)
    except gb.Exhausted as error:
        return None, error.resource
    except HostError:
        return None, RAISED


def check(data: bytes, seed: str) -> str:
    """Run a case; returns a word about it.

    Raises:
        Difference: the engines disagree.
    """
    refusal = theirs.refusal(engine(), data)
    try:
        module = gb.Module(data)
    except gb.CompileError as error:
        if refusal is None and not any(word in str(error) for word in REFUSED_ON_PURPOSE):
            raise Difference(f"refused by Greenbeat only: {error}") from None
        return "refused"
    if refusal is not None:
        raise Difference(f"refused by wasmtime only: {refusal}")
    chance = random.Random(seed)
    modes = [MODES[0], MODES[1], MODES[2 + chance.randrange(2)]]
    makers = [partial(Ours, module, seed, mode) for mode in modes]
    try:
        their, reason = _made(partial(Theirs, engine(), data, module, seed))
    except wasmtime.WasmtimeError as error:
        raise Difference(f"wasmtime cannot instantiate: {error}") from None
    instances = []
    try:
        for mode, make in zip(modes, makers, strict=True):
            instance, found = _made(make)
            if STACK in (found, reason):
                return "overflow"
            if found != reason:
                raise Difference(f"instantiation, {mode}: {found}, in wasmtime {reason}")
            if instance is not None:
                instances.append((mode, instance))
        if their is None:
            return "trapped"
        _compare(their, instances, "at first")
        return _run(their, instances, chance)
    except ours.Unsupported:
        return "unsupported"
    finally:
        for _, instance in instances:
            instance.close()
        if their is not None:
            their.close()


def _run(their: Theirs, instances: list[tuple[str, Ours]], chance: random.Random) -> str:
    """Call the exports, in an order and with arguments by chance."""
    functions = their.functions
    order = [chance.randrange(len(functions)) for _ in range(min(MOST_CALLS, 3 * len(functions)))] if functions else []
    returned = 0
    for number, index in enumerate(order):
        arguments = [value_of(kind, chance) for kind in functions[index][0]]
        their.refuel(FUEL)
        wanted = their.call(functions[index], arguments)
        returned += isinstance(wanted, list)
        for mode, instance in instances:
            instance.refuel(FUEL)
            found = instance.call(instance.functions[index], arguments)
            if STACK in (found, wanted) or their.world.overflowed or instance.world.overflowed:
                return "overflow"
            if found != wanted:
                what = f"call {number}, export {index}, arguments {arguments}"
                raise Difference(f"{what}, {mode}: {found}, in wasmtime {wanted}")
        _compare(their, instances, f"after call {number}, of export {index} with {arguments}")
    return "returned" if returned else "ran"


def _compare(their: Theirs, instances: list[tuple[str, Ours]], when: str) -> None:
    """See that the state of all instances is the same."""
    values = their.global_values()
    memories = [their.memory(i) for i in range(len(their.memories))]
    tables = [their.table(i) for i in range(len(their.tables))]
    for mode, instance in instances:
        where = f"{mode}, {when}"
        if instance.global_values() != values:
            raise Difference(f"{where}: globals {instance.global_values()}, in wasmtime {values}")
        for index, (address, size) in enumerate(memories):
            our_address, our_size = instance.memory(index)
            if our_size != size:
                raise Difference(f"{where}: memory {index} has {our_size} bytes, in wasmtime {size}")
            if size and _memcmp(address, our_address, size):
                raise Difference(f"{where}: memory {index} differs {_first_difference(our_address, address, size)}")
        for index, elements in enumerate(tables):
            if instance.table(index) != elements:
                raise Difference(f"{where}: table {index} {instance.table(index)}, in wasmtime {elements}")
        if instance.world.calls != their.world.calls:
            raise Difference(f"{where}: {instance.world.calls} host calls, in wasmtime {their.world.calls}")


def _first_difference(left: int, right: int, size: int) -> str:
    mine, other = ctypes.string_at(left, size), ctypes.string_at(right, size)
    at = next(i for i in range(size) if mine[i] != other[i])
    return f"at {at:#x}: {mine[at : at + 8].hex()}, in wasmtime {other[at : at + 8].hex()}"
