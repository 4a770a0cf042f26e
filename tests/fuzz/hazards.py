"""Random modules for what a translator can get wrong: what is still on the operand stack while other things happen.

Code is well-typed by construction: `Body.expression` pushes a value of a type, `Body.statement` leaves the stack as
it was, and between the operands of an expression there may be statements. So locals are set while their old value
waits, blocks begin and end above pending constants, and calls build their frames behind all of it. There are few
locals, so that the same ones meet often. A branch may stand anywhere: what follows it is dead code, and valid,
because behind a branch anything can be popped.

Loops end by a counter of their own or by the module's fuel, a global that functions and loops count down. NaNs have
no definite bits: floats that may be NaN are made canonical before their bits can be seen. A float is therefore DIRTY
(arithmetic made it), CLEAN (its bits are certain) or FINITE (and small, so that a sum or product is CLEAN).
"""

from __future__ import annotations

from tests.fuzz.binary import unsigned
from tests.fuzz.hazard_code import CLEAN, DEEPEST_LOOP, DIRTY, FINITE, Code, Label, Signature
from tests.fuzz.instructions import (
    BLOCK,
    BR,
    BR_IF,
    BR_ON_NON_NULL,
    BR_ON_NULL,
    BR_TABLE,
    CALL,
    CALL_INDIRECT,
    CALL_REF,
    COMPARISONS,
    DROP,
    ELSE,
    END,
    EXTERNREF,
    F32,
    F64,
    FUNCREF,
    GET,
    GLOBAL_GET,
    GLOBAL_SET,
    I32,
    I32_AND,
    I32_EQZ,
    I32_OR,
    I32_SUB,
    I64,
    I64_EXTEND,
    I64_OR,
    IF,
    LOOP,
    NUMBERS,
    PRODUCERS,
    RETURN,
    RETURN_CALL,
    RETURN_CALL_INDIRECT,
    RETURN_CALL_REF,
    SELECT,
    SELECT_TYPED,
    SET,
    TABLE_GET,
    TEE,
    UNREACHABLE,
    Producer,
    i32_const,
    i64_const,
)


class Body(Code):
    """One function's code.

    Args:
        shape: the module.
        signature: the function's type.
        chance: where all decisions come from.
        budget: about how many instructions.
    """

    def encode(self) -> bytes:
        """The function's entry in the code section."""
        self._burn()
        self.labels.append(Label(self.signature.results))
        self._statements(self.chance.randrange(2, 9))
        self._results(self.signature.results)
        self.out += END
        declared = self.locals[len(self.signature.params) :]
        runs: list[tuple[int, bytes]] = []
        for kind in declared:
            if runs and runs[-1][1] == kind:
                runs[-1] = runs[-1][0] + 1, kind
            else:
                runs.append((1, kind))
        code = unsigned(len(runs)) + b"".join(unsigned(count) + kind for count, kind in runs) + bytes(self.out)
        return unsigned(len(code)) + code

    # ------------------------------------------------------------------------------------------ expressions

    def expression(self, kind: bytes) -> int:
        """Push a value of a type; returns how certain its bits are."""
        if self.budget <= 0 or self.depth > 12 or self._likely(0.3):
            return self._leaf(kind)
        self.depth += 1
        quality = self._node(kind)
        self.depth -= 1
        return quality

    def _leaf(self, kind: bytes) -> int:
        chance = self.chance.random()
        local = self._local(kind)
        if local is not None and chance < 0.6 and kind[0] != 0x64:
            self._emit(GET, unsigned(local))
            return CLEAN if local in self.always_clean or kind not in (F32, F64) else DIRTY
        if chance < 0.7:
            known = [i for i, (k, _) in enumerate(self.shape.globals) if k == kind and i != self.shape.fuel]
            if known:
                self._emit(GLOBAL_GET, unsigned(self.chance.choice(known)))
                return DIRTY if kind in (F32, F64) else CLEAN
        return self._constant(kind)

    def _node(self, kind: bytes) -> int:
        choice = self.chance.random()
        if kind not in NUMBERS:
            return self._reference(kind, choice)
        if choice < 0.5:
            return self._operation(self.chance.choice(PRODUCERS[kind]))
        if choice < 0.6:
            return self._load(kind)
        if choice < 0.68:
            return self._select(kind)
        if choice < 0.76:
            return self._tee(kind)
        if choice < 0.84:
            return self._block_value(kind)
        if choice < 0.90:
            return self._branch_value(kind)
        return self._call_value(kind)

    def _condition(self) -> None:
        """Push what a branch may depend on: mostly a comparison, which the translator makes a part of the branch."""
        if self.budget <= 0 or self._likely(0.3):
            self.expression(I32)
            return
        kind = self.chance.choice(NUMBERS)
        local = self._local(kind)
        choice = self.chance.random()
        if choice < 0.3 and kind in (I32, I64) and local is not None:
            # A counter's step.
            step = self.chance.choice((1, -1, 8))
            self._emit(GET, unsigned(local))
            self._emit(i32_const(step) if kind == I32 else i64_const(step), b"\x6a" if kind == I32 else b"\x7c")
            self._emit(TEE, unsigned(local))
        elif choice < 0.5:
            self._constant(kind)
        else:
            self.expression(kind)
        if kind in (I32, I64) and self._likely(0.15):
            self._emit(b"\x45" if kind == I32 else b"\x50")
            return
        if self._likely(0.5):
            self._leaf(kind)
        else:
            self.expression(kind)
        self._emit(self.chance.choice(COMPARISONS[kind]))
        if self._likely(0.15):
            self._emit(I32_EQZ)

    def _operation(self, producer: Producer) -> int:
        """An operation, on operands that it rarely traps on."""
        qualities = []
        for position, kind in enumerate(producer.operands):
            if position:
                self._between()
            wants_clean = producer.rule == "bits" or (producer.rule == "sign" and position == 1)
            qualities.append(self.clean(kind) if wants_clean else self.expression(kind))
        if producer.divides and self._likely(0.93):
            wide = producer.operands[1] == I64
            self._emit(i64_const(1) if wide else i32_const(1), I64_OR if wide else I32_OR)
        self._emit(producer.code)
        lowest = min(qualities)
        match producer.rule:
            case "finite":
                return FINITE
            case "same" | "bits":
                return lowest if producer.rule == "same" else CLEAN
            case "sign":
                return qualities[0]
            case "sum":
                return CLEAN if lowest == FINITE else DIRTY
            case "bounded":
                return FINITE if lowest == FINITE else DIRTY
        return DIRTY if producer.result in (F32, F64) else CLEAN

    def _select(self, kind: bytes) -> int:
        first = self.expression(kind)
        self._between()
        second = self.expression(kind)
        self._between()
        self._condition()
        if kind in NUMBERS and self._likely(0.7):
            self._emit(SELECT)
        else:
            self._emit(SELECT_TYPED, b"\x01", kind)
        return min(first, second, CLEAN)

    def _tee(self, kind: bytes) -> int:
        local = self._local(kind)
        if local is None:
            return self._leaf(kind)
        quality = self.clean(kind) if local in self.always_clean else self.expression(kind)
        self._emit(TEE, unsigned(local))
        return quality

    def _reference(self, kind: bytes, choice: float) -> int:
        """A reference by something other than a constant or a variable."""
        if choice < 0.3:
            return self._select(kind)
        if choice < 0.5:
            return self._tee(kind)
        if choice < 0.8:
            known = [i for i, (k, _, _) in enumerate(self.shape.tables) if k == kind]
            if known:
                table = self.chance.choice(known)
                self._index(table)
                self._emit(TABLE_GET, unsigned(table))
                return CLEAN
        return self._call_value(kind)

    # ------------------------------------------------------------------------------------------ calls

    def _arguments(self, signature: Signature) -> None:
        for position, kind in enumerate(signature.params):
            if position:
                self._between()
            self.expression(kind)

    def _call(self, wanted: list[int], *, last: bool) -> Signature | None:
        """Call a function of one of these types, some way or other; a tail call if it is the `last` thing to do."""
        known = [i for i, s in enumerate(self.shape.functions) if s.index in wanted]
        if not known:
            return None
        function = self.chance.choice(known)
        signature = self.shape.functions[function]
        self._arguments(signature)
        choice = self.chance.random()
        tables = [i for i, (kind, _, _) in enumerate(self.shape.tables) if kind == FUNCREF]
        if choice < 0.3 and tables:
            table = self.chance.choice(tables)
            _, wide, elements = self.shape.tables[table]
            places = [
                i for i, f in enumerate(elements) if f is not None and self.shape.functions[f].index == signature.index
            ]
            if places and self._likely(0.95):
                self._emit(i32_const(self.chance.choice(places)))
                if self._likely(0.3):
                    self.expression(I32)
                    self._emit(i32_const(0), I32_AND, I32_OR)
                if wide:
                    self._emit(I64_EXTEND)
            else:
                self._index(table)
            self._emit(RETURN_CALL_INDIRECT if last else CALL_INDIRECT, unsigned(signature.index), unsigned(table))
        elif choice < 0.45:
            kind = b"\x63" + unsigned(signature.index)
            if self._likely(0.9):
                self._function_of(signature.index)
            else:
                self.expression(kind)
            self._emit(RETURN_CALL_REF if last else CALL_REF, unsigned(signature.index))
        else:
            self._emit(RETURN_CALL if last else CALL, unsigned(function))
        return signature

    def _call_value(self, kind: bytes) -> int:
        wanted = [s.index for s in self.shape.signatures if s.results and s.results[0] == kind]
        if self.budget < 10:
            return self._leaf(kind)
        signature = self._call(wanted, last=False)
        if signature is None:
            return self._leaf(kind)
        for extra in reversed(signature.results[1:]):
            self._consume(extra)
        return DIRTY if kind in (F32, F64) else CLEAN

    # ------------------------------------------------------------------------------------------ blocks

    def _block_type(self, params: tuple[bytes, ...], results: tuple[bytes, ...]) -> bytes | None:
        """The encoding of a block's type; None if the module has none such."""
        if not params and not results:
            return b"\x40"
        if not params and len(results) == 1:
            return results[0]
        for signature in self.shape.signatures:
            if signature.params == params and signature.results == results:
                return unsigned(signature.index)
        return None

    def _adapt(self, stack: list[bytes], results: tuple[bytes, ...]) -> None:
        """Turn the block's operands into its results."""
        while tuple(stack) != results[: len(stack)]:
            top = stack.pop()
            if stack and top == stack[-1] and top in (I32, I64) and self._likely(0.5):
                self._emit(b"\x6a" if top == I32 else b"\x7c")
            else:
                self._consume(top)
        self._results(results[len(stack) :])

    def _results(self, kinds: tuple[bytes, ...]) -> None:
        for position, kind in enumerate(kinds):
            if position:
                self._between()
            self.expression(kind)

    def _inside(self, stack: list[bytes], results: tuple[bytes, ...], label: Label) -> None:
        """A block's code, from its parameters to its results."""
        self.labels.append(label)
        kept = list(stack)
        while kept and self._likely(0.4):
            self._consume(kept.pop())
        self._statements(self.chance.randrange(0, 4))
        self._adapt(kept, results)
        self.labels.pop()

    def _block(self, params: tuple[bytes, ...], results: tuple[bytes, ...]) -> None:
        """A block, loop or if whose parameters are on the stack."""
        kind = self._block_type(params, results)
        assert kind is not None
        choice = self.chance.random()
        if choice < 0.35:
            self._emit(BLOCK, kind)
            self._inside(list(params), results, Label(results))
            self._emit(END)
        elif choice < 0.65:
            self._condition()
            self._emit(IF, kind)
            self._inside(list(params), results, Label(results))
            if params != results or self._likely(0.6):
                self._emit(ELSE)
                self._inside(list(params), results, Label(results))
            self._emit(END)
        elif self.loops < DEEPEST_LOOP:
            self._loop(params, results, kind)
        else:
            self._emit(BLOCK, kind)
            self._inside(list(params), results, Label(results))
            self._emit(END)

    def _loop(self, params: tuple[bytes, ...], results: tuple[bytes, ...], kind: bytes) -> None:
        """A loop that a counter ends, or one that code may branch to, which burns fuel."""
        counter = unsigned(self.counters[self.loops])
        self.loops += 1
        counted = self._likely(0.6)
        if counted:
            self._emit(i32_const(self.chance.randrange(1, 5)), SET, counter)
        self._emit(LOOP, kind)
        if not counted:
            self._burn()
            self._inside(list(params), results, Label(params))
        else:
            self._inside(list(params), params, Label(params, usable=False))
            self.labels.append(Label(params, usable=False))
            self._emit(GET, counter, i32_const(1), I32_SUB, TEE, counter, BR_IF, unsigned(0))
            self._adapt(list(params), results)
            self.labels.pop()
        self._emit(END)
        self.loops -= 1

    def _block_value(self, kind: bytes) -> int:
        """A block with a result, and perhaps with parameters."""
        fitting = [s for s in self.shape.signatures if s.results and s.results[0] == kind]
        if fitting and self._likely(0.6):
            signature = self.chance.choice(fitting)
            self._arguments(signature)
            self._block(signature.params, signature.results)
            for extra in reversed(signature.results[1:]):
                self._consume(extra)
        else:
            self._block((), (kind,))
        return DIRTY if kind in (F32, F64) else CLEAN

    # ------------------------------------------------------------------------------------------ branches

    def _label(self, *kinds: bytes) -> int | None:
        """A label that may be branched to; with `kinds`, one that takes just those."""
        known = [
            i for i, label in enumerate(reversed(self.labels)) if label.usable and (not kinds or label.types == kinds)
        ]
        return self.chance.choice(known) if known else None

    def _types_of(self, label: int) -> tuple[bytes, ...]:
        return self.labels[len(self.labels) - 1 - label].types

    def _branch_value(self, kind: bytes) -> int:
        """A value that a `br_if` may take along."""
        label = self._label(kind)
        quality = self.expression(kind)
        if label is None:
            return quality
        self._between()
        self._condition()
        self._emit(BR_IF, unsigned(label))
        return quality

    def _branch_if(self) -> None:
        label = self._label()
        if label is None:
            return
        types = self._types_of(label)
        self._results(types)
        self._between()
        self._condition()
        self._emit(BR_IF, unsigned(label))
        for kind in reversed(types):
            self._consume(kind)

    def _branch_on_reference(self) -> None:
        """`br_on_null` and `br_on_non_null`."""
        kind = self.chance.choice((FUNCREF, EXTERNREF))
        label = self._label()
        if label is None:
            return
        types = self._types_of(label)
        if types and types[-1] == kind:
            self._results(types[:-1])
            self.expression(kind)
            self._emit(BR_ON_NON_NULL, unsigned(label))
            types = types[:-1]
        else:
            self._results(types)
            self.expression(kind)
            self._emit(BR_ON_NULL, unsigned(label), DROP)
        for each in reversed(types):
            self._consume(each)

    def _leave(self) -> None:
        """A branch that is always taken, a return, or a trap."""
        choice = self.chance.random()
        if choice < 0.3:
            label = self._label()
            if label is not None:
                self._results(self._types_of(label))
                self._emit(BR, unsigned(label))
        elif choice < 0.6:
            label = self._label()
            if label is not None:
                types = self._types_of(label)
                known = [i for i, each in enumerate(reversed(self.labels)) if each.usable and each.types == types]
                self._results(types)
                self.expression(I32)
                targets = [self.chance.choice(known) for _ in range(self.chance.randrange(5))]
                self._emit(BR_TABLE, unsigned(len(targets)), *map(unsigned, targets), unsigned(label))
        elif choice < 0.75:
            self._results(self.signature.results)
            self._emit(RETURN)
        elif choice < 0.95:
            wanted = [s.index for s in self.shape.signatures if s.results == self.signature.results]
            self._call(wanted, last=True)
        elif choice < 0.96:
            self._emit(UNREACHABLE)

    # ------------------------------------------------------------------------------------------ statements

    def _statements(self, count: int) -> None:
        for _ in range(count):
            if self.budget > 0:
                self.statement()

    def statement(self) -> None:
        """Do something that leaves the stack as it is."""
        if self.depth > 12:
            return
        self.depth += 1
        choice = self.chance.random()
        if choice < 0.28:
            self._set()
        elif choice < 0.42:
            self._store()
        elif choice < 0.48:
            self._set_global()
        elif choice < 0.58:
            self._block((), ())
        elif choice < 0.66:
            self._block_with_values()
        elif choice < 0.74:
            self._branch_if()
        elif choice < 0.77:
            self._branch_on_reference()
        elif choice < 0.86:
            self._call_statement()
        elif choice < 0.90:
            self._bulk()
        elif choice < 0.94:
            self._table_statement()
        elif choice < 0.97:
            self.expression(self.chance.choice(NUMBERS))
            self._emit(DROP)
        elif len(self.labels) > 1:
            self._leave()
        self.depth -= 1

    def _set(self) -> None:
        kind = self.chance.choice(NUMBERS) if self._likely(0.93) else self.chance.choice((FUNCREF, EXTERNREF))
        local = self._local(kind)
        if local is not None:
            if local in self.always_clean:
                self.clean(kind)
            else:
                self.expression(kind)
            self._emit(SET, unsigned(local))

    def _set_global(self) -> None:
        known = [i for i, (_, mutable) in enumerate(self.shape.globals) if mutable and i != self.shape.fuel]
        if known:
            index = self.chance.choice(known)
            self.expression(self.shape.globals[index][0])
            self._emit(GLOBAL_SET, unsigned(index))

    def _block_with_values(self) -> None:
        signature = self.chance.choice(self.shape.signatures)
        self._arguments(signature)
        self._block(signature.params, signature.results)
        for kind in reversed(signature.results):
            self._consume(kind)

    def _call_statement(self) -> None:
        if self.budget < 10:
            return
        signature = self._call([s.index for s in self.shape.signatures], last=False)
        if signature is not None:
            for kind in reversed(signature.results):
                self._consume(kind)
