"""The numbering of all handlers, and the table of their addresses that cells are written from.

A handler's number is the base of its family plus the digits of its variant. The translator computes with these
numbers; the order of variants here is the only place that says what they mean.

    unary, binary    base + 2 * variant + to slot
    fused branch     base + 4 * variant + 2 * negated + backward
    load             base + 2 * (3 * explicit + address) + to slot
    store            base + 9 * explicit + 3 * value + address
    pair             its own base, by maker and user, + to slot
"""

from collections.abc import Iterable
from typing import Any

from greenbeat.interpreter import (
    access,
    arithmetic,
    branches,
    calls,
    exceptions,
    fusion,
    linear_stack,
    services,
    variables,
)
from greenbeat.interpreter.arithmetic import BINARY_VARIANTS, UNARY_VARIANTS
from greenbeat.interpreter.convention import ACCUMULATOR, HANDLER, IMMEDIATE, SLOT
from greenbeat.native import table, u8, u16
from greenbeat.native.types import as_type
from greenbeat.runtime.layout import (
    NEAR,
    TRAP_NULL_REFERENCE,
    TRAP_UNREACHABLE,
    VARIANTS,
)
from greenbeat.wasm.ops import LOADS, OPERATIONS, STORES

OPCODES = 0x110  # one-byte opcodes, then those behind the prefix 0xFC

functions: list[Any] = []  # by number
names: list[str] = []  # what the disassembler calls them


def family(members: Iterable[tuple[str, Any]]) -> int:
    """Number handlers consecutively; returns the first number."""
    base = len(functions)
    for name, function in members:
        names.append(name)
        functions.append(function)
    return base


_letters = {SLOT: "s", IMMEDIATE: "i", ACCUMULATOR: "a"}

# ---------------------------------------------------------------- pure operations: bases by opcode

_operation_base = [0] * OPCODES
_branch_base = [0] * OPCODES
for _opcode, _operation in OPERATIONS.items():
    if len(_operation.params) == 2:
        _operation_base[_opcode] = family(
            (f"{_operation.name}.{_letters[a]}{_letters[b]}{'.s' if s else ''}", arithmetic.binary(_opcode, a, b, s))
            for a, b in BINARY_VARIANTS
            for s in (False, True)
        )
    else:
        _operation_base[_opcode] = family(
            (f"{_operation.name}.{_letters[a]}{'.s' if s else ''}", arithmetic.unary(_opcode, a, s))
            for a in UNARY_VARIANTS
            for s in (False, True)
        )
    if _operation.compares:
        if len(_operation.params) == 2:
            _branch_base[_opcode] = family(
                (
                    f"br_{'un' if n else ''}{'loop' if k else 'if'}.{_operation.name}.{_letters[a]}{_letters[b]}",
                    arithmetic.branch_binary(_opcode, a, b, n, k),
                )
                for a, b in BINARY_VARIANTS
                for n in (False, True)
                for k in (False, True)
            )
        else:
            _branch_base[_opcode] = family(
                (
                    f"br_{'un' if n else ''}{'loop' if k else 'if'}.{_operation.name}.{_letters[a]}",
                    arithmetic.branch_unary(_opcode, a, n, k),
                )
                for a in UNARY_VARIANTS
                for n in (False, True)
                for k in (False, True)
            )

# ---------------------------------------------------------------- loads and stores

_load_base = [0] * OPCODES
_general_load = [0] * OPCODES
for _opcode, _access in LOADS.items():
    _load_base[_opcode] = family(
        (
            f"{_access.name}.{_letters[a]}{'.checked' if e else ''}{'.s' if s else ''}",
            access.load_handler(_opcode, a, e, s),
        )
        for e in (False, True)
        for a in access.LOAD_VARIANTS
        for s in (False, True)
    )
    _general_load[_opcode] = family(
        (f"{_access.name}.any{'.s' if s else ''}", access.general_load(_opcode, s)) for s in (False, True)
    )
for _opcode, _access in STORES.items():
    _load_base[_opcode] = family(
        (
            f"{_access.name}.{_letters[v]}{_letters[a]}{'.checked' if e else ''}",
            access.store_handler(_opcode, v, a, e),
        )
        for e in (False, True)
        for v, a in access.STORE_VARIANTS
    )
    _general_load[_opcode] = family([(f"{_access.name}.any", access.general_store(_opcode))])

# ---------------------------------------------------------------- moves

_classes: list[tuple[str, Any]] = [(as_type(k).name, k) for k in variables.CLASSES]
COPY_PLAIN = family([("copy.plain", variables.copy_plain)])
COPY_TWO_PLAIN = family([("copy.two.plain", variables.copy_two_plain)])
COPY_MANY_PLAIN = family([("copy.many.plain", variables.copy_many_plain)])
CONSTANT_PLAIN = family([("constant.plain", variables.constant_plain)])
# The next ones are numbered by class: i32, i64, f32, f64.
COPY = family((f"copy.{n}{'.s' if s else ''}", variables.copy(k, s)) for n, k in _classes for s in (False, True))
CONSTANT = family(
    (f"constant.{n}{'.s' if s else ''}", variables.constant(k, s)) for n, k in _classes for s in (False, True)
)
GLOBAL_GET = family(
    (f"global.get.{n}{'.imported' if i else ''}{'.s' if s else ''}", variables.global_get(k, i, s))
    for n, k in _classes
    for i in (False, True)
    for s in (False, True)
)
GLOBAL_SET = family(
    (f"global.set.{n}.{_letters[v]}{'.imported' if i else ''}", variables.global_set(k, i, v))
    for n, k in _classes
    for i in (False, True)
    for v in (SLOT, ACCUMULATOR)
)
SELECT = family(
    (f"select.{n}.{_letters[c]}{'.s' if s else ''}", variables.select(k, c, s))
    for n, k in _classes
    for c in (SLOT, ACCUMULATOR)
    for s in (False, True)
)
ZERO_MANY = 9
ZERO = family([("zero", variables.zero(None)), *((f"zero.{n}", variables.zero(n)) for n in range(1, ZERO_MANY))])
ZERO_SPLIT = family(
    (f"zero.split.{f}.{b if b else 'n'}", variables.zero_split(f, b))
    for f in range(1, NEAR + 1)
    for b in (None, *range(1, ZERO_MANY))
)
CHECK_FRAME = family([("check_frame", variables.check_frame)])
CHARGE = family([("charge", variables.charge)])

# ---------------------------------------------------------------- control

BRANCH = family([("br", branches.branch(False)), ("br_loop", branches.branch(True))])
BRANCH_TABLE = family([("br_table.s", branches.branch_table(SLOT)), ("br_table.a", branches.branch_table(ACCUMULATOR))])
CALL_UNLINKED = family((f"call.unlinked.{v}", calls.call_unlinked(v)) for v in range(VARIANTS))
# The digit `near` tells that a header is at its usual place.
CALL = family([("call.far", calls.call(False)), ("call", calls.call(True))])
CALL_IMPORT = family([("call.import", calls.call_import)])
CALL_INDIRECT = family(
    (f"call_indirect{'' if near else '.far'}.{_letters[o]}.{v}", calls.call_dynamic(o, False, v, near))
    for v in range(VARIANTS)
    for o in (SLOT, ACCUMULATOR)
    for near in (False, True)
)
CALL_REF = family(
    (f"call_ref{'' if near else '.far'}.{v}", calls.call_dynamic(SLOT, True, v, near))
    for v in range(VARIANTS)
    for near in (False, True)
)
RETURN_NOTHING = family([("return.0.far", calls.return_nothing(False)), ("return.0", calls.return_nothing(True))])
RETURN_VALUE = family(
    (f"return.{n}.{_letters[o]}{'' if near else '.far'}", calls.return_value(k, o, near))
    for n, k in _classes
    for o in (SLOT, ACCUMULATOR)
    for near in (False, True)
)
RETURN_VALUES = family([("return.n", calls.return_values)])
TAIL_CALL = family((f"return_call.{v}", calls.tail_call(v)) for v in range(VARIANTS))
TAIL_CALL_IMPORT = family([("return_call.import", calls.tail_call_import)])
TAIL_CALL_INDIRECT = family((f"return_call_indirect.{v}", calls.tail_call_dynamic(False, v)) for v in range(VARIANTS))
TAIL_CALL_REF = family((f"return_call_ref.{v}", calls.tail_call_dynamic(True, v)) for v in range(VARIANTS))
UNREACHABLE = family([("unreachable", services.stop_with(TRAP_UNREACHABLE))])
THROW = family([("throw", exceptions.throw)])
THROW_REFERENCE = family([("throw_ref", exceptions.throw_reference)])
NULL_REFERENCE = family([("null_reference", services.stop_with(TRAP_NULL_REFERENCE))])

_first_service = family(services.SERVICES.items())
SERVICE = {name: _first_service + position for position, name in enumerate(services.SERVICES)}

# ---------------------------------------------------------------- pairs: numbers by maker and user

# The digits that the translator computes a maker and a user by.
MAKER_DIGITS, USER_DIGITS = len(BINARY_VARIANTS), 3
_sides = {fusion.LEFT: 0, fusion.RIGHT: 1, fusion.CONSTANT: 2, SLOT: 0, ACCUMULATOR: 1, None: 0}

_maker_of = [0] * (OPCODES * MAKER_DIGITS)
for _number, (_opcode, _left, _right) in enumerate(fusion.MAKERS, 1):
    if _left is None:
        continue
    _digit = UNARY_VARIANTS.index(_left) if _right is None else BINARY_VARIANTS.index((_left, _right))
    _maker_of[_opcode * MAKER_DIGITS + _digit] = _number
    if _right == SLOT and _left == ACCUMULATOR and OPERATIONS[_opcode].commutative:
        _maker_of[_opcode * MAKER_DIGITS + BINARY_VARIANTS.index((SLOT, ACCUMULATOR))] = _number

_users: list[tuple[int, Any]] = [
    *fusion.USERS,
    *((_opcode, SLOT) for _opcode in fusion.LOAD_USERS),
    *fusion.STORE_USERS,
]
USERS = len(_users) + 1
_user_of = [0] * (OPCODES * USER_DIGITS)
for _number, (_opcode, _side) in enumerate(_users, 1):
    _user_of[_opcode * USER_DIGITS + _sides[_side]] = _number
    if _side == fusion.LEFT and OPERATIONS[_opcode].commutative:
        _user_of[_opcode * USER_DIGITS + _sides[fusion.RIGHT]] = _number
BRANCH_USERS = len(fusion.BRANCH_USERS) + 1
_branch_user_of = [0] * (OPCODES * USER_DIGITS)
_branch_users: list[tuple[int, Any]] = [*fusion.BRANCH_USERS]
for _number, (_opcode, _side) in enumerate(_branch_users, 1):
    _branch_user_of[_opcode * USER_DIGITS + _sides[_side]] = _number


def _maker_number(maker):
    return fusion.MAKERS.index(maker) + 1


def _pair_number(maker, user):
    return _fused_base[_maker_number(maker) * USERS + _users.index(user) + 1]


def _maker_name(maker):
    if maker == fusion.OWN_GLOBAL:
        return "global.get"
    opcode, left, right = maker
    name = (LOADS.get(opcode) or OPERATIONS[opcode]).name
    return f"{name}.{_letters[left]}{_letters[right] if right else ''}"


def _fused(maker, user):
    """The handlers of a pair."""
    opcode, side = user
    if opcode in STORES:
        name = f"{_maker_name(maker)}+{STORES[opcode].name}.{_letters[side]}"
        return [(name, fusion.fused_store(maker, opcode, side))]
    name = f"{_maker_name(maker)}+{(LOADS.get(opcode) or OPERATIONS[opcode]).name}.{side}"
    make = (lambda s: fusion.fused_load(maker, opcode, s)) if opcode in LOADS else (
        lambda s: fusion.fused_operation(maker, opcode, side, s))  # fmt: skip
    return [(f"{name}{'.s' if s else ''}", make(s)) for s in (False, True)]


FIRST_PAIR = len(functions)
_fused_base = [0] * ((len(fusion.MAKERS) + 1) * USERS)
_fused_branch_base = [0] * ((len(fusion.MAKERS) + 1) * BRANCH_USERS)
for _m, _maker in enumerate(fusion.MAKERS, 1):
    for _u, _user in enumerate(_users, 1):
        if fusion.fits(_maker, _user):
            _fused_base[_m * USERS + _u] = family(_fused(_maker, _user))
    for _u, _user in enumerate(_branch_users, 1):
        if fusion.fits(_maker, _user):
            _fused_branch_base[_m * BRANCH_USERS + _u] = family(
                (
                    f"{_maker_name(_maker)}+br_{'un' if n else ''}{'loop' if k else 'if'}"
                    f".{OPERATIONS[_user[0]].name}.{_user[1]}",
                    fusion.fused_branch(_maker, *_user, n, k),
                )
                for n in (False, True)
                for k in (False, True)
            )

_pairs = len(functions) - FIRST_PAIR
_pair_store, _pair_return = [0] * _pairs, [0] * _pairs
for _maker, _user in fusion.STORED_PAIRS:
    _name, _ = _fused(_maker, _user)[0]
    _pair_store[_pair_number(_maker, _user) - FIRST_PAIR] = family(
        [(f"{_name}+i32.store", fusion.fused_pair_store(_maker, _user))]
    )
for _maker, _user in fusion.RETURNED_PAIRS:
    _name, _ = _fused(_maker, _user)[0]
    _pair_return[_pair_number(_maker, _user) - FIRST_PAIR] = family(
        (f"{_name}+return{'' if near else '.far'}", fusion.fused_pair_return(_maker, _user, near))
        for near in (False, True)
    )

VALUE_USERS = len(fusion.VALUE_USERS) + 1
_value_user_of = [0] * OPCODES
_value_base = [0] * ((len(fusion.MAKERS) + 1) * VALUE_USERS)
for _u, _opcode in enumerate(fusion.VALUE_USERS, 1):
    _value_user_of[_opcode] = _u
    for _m, _maker in enumerate(fusion.MAKERS, 1):
        if fusion.fits_store(_maker, _opcode):
            _value_base[_m * VALUE_USERS + _u] = family(
                [(f"{_maker_name(_maker)}+{STORES[_opcode].name}.value", fusion.fused_value_store(_maker, _opcode))]
            )

_fused_return = [0]
for _maker in fusion.MAKERS:
    _name = f"{_maker_name(_maker)}+return"
    _fused_return.append(
        family([(f"{_name}.far", fusion.fused_return(_maker, False)), (_name, fusion.fused_return(_maker, True))])
    )
# By maker; a local's copy is the maker 0, a constant is behind all.
LITERAL = len(fusion.MAKERS) + 1
_fused_call = [0] * (len(fusion.MAKERS) + 2)
_call_makers = {0: fusion.COPY, LITERAL: fusion.LITERAL} | {_maker_number(m): m for m in fusion.CALL_MAKERS}
for _m, _maker in _call_makers.items():
    _name = _maker if isinstance(_maker, str) else _maker_name(_maker)
    _fused_call[_m] = family(
        [(f"{_name}+call.far", fusion.fused_call(_maker, False)), (f"{_name}+call", fusion.fused_call(_maker, True))]
    )
STEP = _maker_number(fusion.STEP)
_step_base = [0] * BRANCH_USERS
for _u, _user in enumerate(_branch_users, 1):
    _step_base[_u] = family(
        (
            f"step+br_{'un' if n else ''}{'loop' if k else 'if'}.{OPERATIONS[_user[0]].name}.{_user[1]}",
            fusion.fused_step(*_user, n, k),
        )
        for n in (False, True)
        for k in (False, True)
    )

# ---------------------------------------------------------------- stacks in linear memory

OWN_GLOBAL, LOAD = _maker_number(fusion.OWN_GLOBAL), _maker_number((fusion.BY_NAME["i32.load"], SLOT, None))
PROLOGUE = _pair_number(fusion.OWN_GLOBAL, (fusion.BY_NAME["i32.add"], fusion.CONSTANT))
PROLOGUE_SETS = family([("prologue.set", linear_stack.prologue(True, 0))])
PROLOGUE_STORES = family((f"prologue{'.set' if s else ''}.store", linear_stack.prologue(s, 1)) for s in (False, True))
PROLOGUE_STORES_TWO = family(
    (f"prologue{'.set' if s else ''}.store.two", linear_stack.prologue(s, 2)) for s in (False, True)
)
EPILOGUE = family([("epilogue", linear_stack.epilogue(None))])
EPILOGUE_OF_NOTHING = family([("epilogue+return.0", linear_stack.epilogue_of_nothing)])
EPILOGUE_OF_VALUE = family((f"epilogue+return.{n}", linear_stack.epilogue(k)) for n, k in _classes[:2])
EPILOGUE_OF_LOAD = family([("epilogue+i32.load+return", linear_stack.epilogue_of_load)])

# ---------------------------------------------------------------- the tables native code uses

handlers = table(HANDLER, functions, name="handlers")
operation_base = table(u16, _operation_base, name="operation_base")
branch_base = table(u16, _branch_base, name="branch_base")
access_base = table(u16, _load_base, name="access_base")
general_access = table(u16, _general_load, name="general_access")
maker_of = table(u8, _maker_of, name="maker_of")
user_of = table(u8, _user_of, name="user_of")
branch_user_of = table(u8, _branch_user_of, name="branch_user_of")
fused_base = table(u16, _fused_base, name="fused_base")
fused_branch_base = table(u16, _fused_branch_base, name="fused_branch_base")
swapped_comparison = table(u8, [arithmetic.SWAPPED.get(o, 0) for o in range(OPCODES)], name="swapped_comparison")
fused_return = table(u16, _fused_return, name="fused_return")
fused_call = table(u16, _fused_call, name="fused_call")
step_base = table(u16, _step_base, name="step_base")
value_base = table(u16, _value_base, name="value_base")
value_user_of = table(u8, _value_user_of, name="value_user_of")
pair_store = table(u16, _pair_store, name="pair_store")
pair_return = table(u16, _pair_return, name="pair_return")
