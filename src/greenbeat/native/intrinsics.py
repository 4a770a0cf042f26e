"""The operations of `language.py`, each by its name: what LLVM instruction or intrinsic it becomes."""

import ast
from typing import Any

from greenbeat.native import types as t
from greenbeat.native.calls import Calls
from greenbeat.native.language import NativeFunction, Operation
from greenbeat.native.values import Value

FLOAT_UNARY = {
    "square_root": "sqrt",
    "round_floor": "floor",
    "round_ceiling": "ceil",
    "round_truncate": "trunc",
    "round_nearest": "roundeven",
    "absolute": "fabs",
}
FLOAT_BINARY = {"copy_sign": "copysign", "float_minimum": "minimum", "float_maximum": "maximum"}
OVERFLOWS = {"add_overflows": "add", "subtract_overflows": "sub", "multiply_overflows": "mul"}
BIT_COUNTS = {
    "count_leading_zeros": "ctlz",
    "count_trailing_zeros": "cttz",
    "population_count": "ctpop",
    "byteswap": "bswap",
}
ORDERINGS = {
    "relaxed": "monotonic",
    "acquire": "acquire",
    "release": "release",
    "acq_rel": "acq_rel",
    "seq_cst": "seq_cst",
}
LOADS = ("relaxed", "acquire", "seq_cst")
STORES = ("relaxed", "release", "seq_cst")
FENCES = ("acquire", "release", "acq_rel", "seq_cst")
ATOMIC = (t.IntegerType, t.FloatType, t.PointerType, t.FunctionType)
UPDATES = ("add", "sub", "and", "or", "xor", "xchg", "max", "min")


class Intrinsics(Calls):
    """Layer of `Emitter`."""

    def operation(self, operation: Operation, node: ast.Call) -> Any:
        """Compile a call of an operation."""
        name = operation.name
        if name == "tail":
            return self.tail_call(node)
        if name == "addressof":
            if len(node.args) != 1 or node.keywords:
                self.error("addressof takes one field, element or function", node)
            return self.address_of(node.args[0])
        arguments = self.arguments(node)
        if not operation.fewest <= len(arguments) <= operation.most:
            self.error(f"{operation.usage} does not take {len(arguments)} argument{'s' * (len(arguments) != 1)}", node)
        if name in FLOAT_UNARY or name in FLOAT_BINARY or name == "fused_multiply_add":
            intrinsic = FLOAT_UNARY.get(name) or FLOAT_BINARY.get(name) or "fma"
            return self.float_intrinsic(intrinsic, arguments, node)
        if name in BIT_COUNTS:
            return self.bit_count(BIT_COUNTS[name], arguments[0], node)
        if name in OVERFLOWS:
            return self.overflows(OVERFLOWS[name], node, arguments[0], arguments[1])
        method = getattr(self, f"operation_{name}", None)
        if method is None:
            self.error(f"{name} cannot be used here", node)
        return method(node, *arguments)

    def kind_argument(self, value: Any, node: ast.AST) -> t.Type:
        kind = self.type_of(value)
        if kind is None:
            self.error("the first argument is a type, as in load(i32, p)", node)
        return kind

    def pointer_argument(self, value: Any, node: ast.AST) -> Value:
        if not isinstance(value, Value) or not isinstance(value.type, t.PointerType):
            self.error(
                f"a pointer is needed here, not {value.type if isinstance(value, Value) else self.describe(value)}",
                node,
            )
        return value

    def target_of(self, pointer: Any, node: ast.AST) -> t.Type:
        pointer = self.pointer_argument(pointer, node)
        assert isinstance(pointer.type, t.PointerType)
        return pointer.type.of

    def value_at(self, pointer: Any, node: ast.AST) -> t.Type:
        """The type of the value behind a pointer."""
        return self.value_type(self.target_of(pointer, node), "this pointer's target cannot be loaded or stored", node)

    def constant(self, value: Any, least: int, most: int, what: str, node: ast.AST) -> int:
        """A compile-time integer within bounds."""
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.error(f"{what} is a compile-time number from {least} to {most}", node)
        return value

    # ---------------------------------------------------------------- reinterpretation

    def operation_cast(self, node: ast.AST, kind: Any, value: Any) -> Value:
        target = self.kind_argument(kind, node)
        if not isinstance(value, Value):
            if isinstance(value, int) and isinstance(target, t.PointerType | t.FunctionType):
                self.constant(value, 0, (1 << 64) - 1, "an address", node)
                return self.temporary(f"inttoptr i64 {value} to ptr", target)
            return self.coerce(value, target, f"cast to {target}")
        addresses = (t.PointerType, t.FunctionType)
        if isinstance(value.type, addresses) and isinstance(target, addresses):
            return Value(value.ir, target)
        if isinstance(value.type, addresses) and isinstance(target, t.IntegerType):
            return self.temporary(f"ptrtoint ptr {value.ir} to {target.ir}", target)
        if isinstance(value.type, t.IntegerType) and isinstance(target, addresses):
            wide = self.convert(value, t.U64)
            return self.temporary(f"inttoptr i64 {wide.ir} to ptr", target)
        self.error(f"cast reinterprets pointers and integers, not {value.type} as {target}", node)

    def operation_bitcast(self, node: ast.AST, kind: Any, value: Any) -> Value:
        target = self.kind_argument(kind, node)
        if not isinstance(value, Value):
            self.error("bitcast takes a value with a type", node)
        if not all(isinstance(k, t.IntegerType | t.FloatType | t.VectorType) for k in (value.type, target)):
            self.error(f"bitcast is between numbers, not from {value.type} to {target}: pointers are cast", node)
        if value.type.size != target.size:
            self.error(
                f"bitcast keeps the size: {value.type} has {value.type.size} bytes, {target} {target.size}", node
            )
        if value.type.ir == target.ir:
            return Value(value.ir, target)
        return self.temporary(f"bitcast {value.type.ir} {value.ir} to {target.ir}", target)

    def operation_truncate_unchecked(self, node: ast.AST, kind: Any, value: Any) -> Value:
        target = self.kind_argument(kind, node)
        if (
            not isinstance(target, t.IntegerType)
            or not isinstance(value, Value)
            or not isinstance(value.type, t.FloatType)
        ):
            self.error("truncate_unchecked makes an integer of a float", node)
        return self.temporary(f"fpto{'s' if target.signed else 'u'}i {value.type.ir} {value.ir} to {target.ir}", target)

    # ---------------------------------------------------------------- memory

    def raw_place(self, pointer: Any, offset: Any, node: ast.AST) -> str:
        pointer = self.pointer_argument(pointer, node)
        if not isinstance(offset, Value):
            return self.offset(
                pointer, self.constant(offset, -(1 << 63), (1 << 63) - 1, "an offset", node), pointer.type
            ).ir
        return self.temporary(f"getelementptr i8, ptr {pointer.ir}, i64 {self.index(offset, node).ir}", pointer.type).ir

    def operation_load(self, node: ast.AST, kind: Any, pointer: Any, offset: Any = 0) -> Value:
        wanted = self.value_type(self.kind_argument(kind, node), "load", node)
        return self.load_value(self.raw_place(pointer, offset, node), wanted, align=1)

    def operation_store(self, node: ast.AST, pointer: Any, value: Any, offset: Any = 0) -> None:
        if not isinstance(value, Value):
            value = self.coerce(value, self.value_at(pointer, node), "the pointer's target gives a literal its type")
        self.value_type(value.type, "store", node)
        self.store_value(value, self.raw_place(pointer, offset, node), align=1)

    def operation_volatile_load(self, node: ast.AST, pointer: Any) -> Value:
        kind = self.value_at(pointer, node)
        return self.load_value(pointer.ir, kind, modifier="volatile ")

    def operation_volatile_store(self, node: ast.AST, pointer: Any, value: Any) -> None:
        kind = self.value_at(pointer, node)
        self.store_value(self.coerce(value, kind, f"the place holds {kind}"), pointer.ir, modifier="volatile ")

    def ordering(self, name: Any, allowed: tuple[str, ...], node: ast.AST) -> str:
        if not isinstance(name, str) or name not in allowed:
            self.error(f"an ordering here is one of {', '.join(allowed)}", node)
        return ORDERINGS[name]

    def atomic_place(self, pointer: Any, node: ast.AST, *, arithmetic: bool = False) -> t.Type:
        """The type behind a pointer, if the machine reads and writes it whole."""
        kind = self.target_of(pointer, node)
        good = isinstance(kind, t.IntegerType) if arithmetic else isinstance(kind, ATOMIC)
        if not good:
            self.error(f"{kind} is not atomic{' here' if arithmetic else ''}: integers are", node)
        return kind

    def operation_atomic_load(self, node: ast.AST, pointer: Any, ordering: Any) -> Value:
        kind = self.atomic_place(pointer, node)
        order = self.ordering(ordering, LOADS, node)
        return self.temporary(f"load atomic {kind.ir}, ptr {pointer.ir} {order}, align {kind.size}", kind)

    def operation_atomic_store(self, node: ast.AST, pointer: Any, value: Any, ordering: Any) -> None:
        kind = self.atomic_place(pointer, node)
        value = self.coerce(value, kind, f"the place holds {kind}")
        order = self.ordering(ordering, STORES, node)
        self.line(f"store atomic {kind.ir} {value.ir}, ptr {pointer.ir} {order}, align {kind.size}")

    def operation_atomic_update(self, node: ast.AST, name: Any, pointer: Any, value: Any, ordering: Any) -> Value:
        if name not in UPDATES:
            self.error(f"an atomic update is one of {', '.join(UPDATES)}", node)
        kind = self.atomic_place(pointer, node, arithmetic=name != "xchg")
        if name in ("max", "min") and isinstance(kind, t.IntegerType) and not kind.signed:
            name = f"u{name}"
        value = self.coerce(value, kind, f"the place holds {kind}")
        order = self.ordering(ordering, tuple(ORDERINGS), node)
        return self.temporary(f"atomicrmw {name} ptr {pointer.ir}, {kind.ir} {value.ir} {order}", kind)

    def operation_compare_exchange(
        self, node: ast.AST, pointer: Any, expected: Any, desired: Any, ordering: Any
    ) -> Value:
        kind = self.atomic_place(pointer, node)
        if isinstance(kind, t.FloatType):
            self.error(f"{kind} cannot be compared and exchanged: integers and pointers can", node)
        old, new = (self.coerce(v, kind, f"the place holds {kind}") for v in (expected, desired))
        order = self.ordering(ordering, tuple(ORDERINGS), node)
        failure = {"release": "monotonic", "acq_rel": "acquire"}.get(order, order)
        pair = f"cmpxchg ptr {pointer.ir}, {kind.ir} {old.ir}, {kind.ir} {new.ir} {order} {failure}"
        found = self.temporary(pair, kind)
        return self.temporary(f"extractvalue {{ {kind.ir}, i1 }} {found.ir}, 0", kind)

    def operation_fence(self, node: ast.AST, ordering: Any) -> None:
        self.line(f"fence {self.ordering(ordering, FENCES, node)}")

    def bulk(self, name: str, node: ast.AST, destination: Any, source: Any, size: Any) -> None:
        to, source = self.pointer_argument(destination, node), self.pointer_argument(source, node)
        count = self.index(size, node)
        self.unit.declare(f"declare void @llvm.{name}.p0.p0.i64(ptr, ptr, i64, i1)")
        self.line(f"call void @llvm.{name}.p0.p0.i64(ptr {to.ir}, ptr {source.ir}, i64 {count.ir}, i1 false)")

    def operation_copy(self, node: ast.AST, destination: Any, source: Any, size: Any) -> None:
        self.bulk("memcpy", node, destination, source, size)

    def operation_move(self, node: ast.AST, destination: Any, source: Any, size: Any) -> None:
        self.bulk("memmove", node, destination, source, size)

    def operation_fill(self, node: ast.AST, destination: Any, byte: Any, size: Any) -> None:
        to, value = self.pointer_argument(destination, node), self.coerce(byte, t.U8, "the byte is u8")
        self.unit.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.line(
            f"call void @llvm.memset.p0.i64(ptr {to.ir}, i8 {value.ir}, i64 {self.index(size, node).ir}, i1 false)"
        )

    def operation_stack(self, node: ast.AST, kind: Any, count: Any = 1) -> Value:
        target = self.kind_argument(kind, node)
        if target == t.VOID:
            self.error("void takes no room", node)
        many = self.constant(count, 1, 1 << 20, "the count", node)
        return Value(
            self.alloca("room", target, many), t.PointerType(target.of if isinstance(target, t.ArrayType) else target)
        )

    def address_of(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Attribute | ast.Subscript):
            place, kind = self.place(node)
            return Value(place.ir, t.PointerType(kind.of if isinstance(kind, t.ArrayType) else kind))
        value = self.expression(node)
        if isinstance(value, NativeFunction):
            return Value(self.unit.reference(value), self.function_type(value))
        if isinstance(value, Value) and isinstance(value.type, t.PointerType):
            return value
        self.error("only fields, elements and functions have an address; locals are in registers", node)

    # ---------------------------------------------------------------- arithmetic

    def bit_count(self, name: str, value: Any, node: ast.AST) -> Value:
        if not isinstance(value, Value) or not isinstance(value.type, t.IntegerType):
            self.error("an integer with a type is needed here", node)
        if name == "bswap" and value.type.bits == 8:
            return value
        kind = value.type.ir
        extra = ", i1 false" if name in ("ctlz", "cttz") else ""
        self.unit.declare(f"declare {kind} @llvm.{name}.{kind}({kind}{', i1' if extra else ''})")
        return self.temporary(f"call {kind} @llvm.{name}.{kind}({kind} {value.ir}{extra})", value.type)

    def rotate(self, name: str, value: Any, count: Any, node: ast.AST) -> Value:
        if not isinstance(value, Value) or not isinstance(value.type, t.IntegerType):
            self.error("an integer with a type is rotated", node)
        kind = value.type
        if isinstance(count, Value) and not isinstance(count.type, t.IntegerType):
            self.error(f"a count of bits is an integer, not {count.type}", node)
        count = self.convert(count, kind)
        self.unit.declare(f"declare {kind.ir} @llvm.{name}.{kind.ir}({kind.ir}, {kind.ir}, {kind.ir})")
        call = (
            f"call {kind.ir} @llvm.{name}.{kind.ir}({kind.ir} {value.ir}, {kind.ir} {value.ir}, {kind.ir} {count.ir})"
        )
        return self.temporary(call, kind)

    def operation_rotate_left(self, node: ast.AST, value: Any, count: Any) -> Value:
        return self.rotate("fshl", value, count, node)

    def operation_rotate_right(self, node: ast.AST, value: Any, count: Any) -> Value:
        return self.rotate("fshr", value, count, node)

    def same_type(self, left: Any, right: Any, node: ast.AST) -> tuple[Value, Value, t.Type]:
        if not isinstance(left, Value) and not isinstance(right, Value):
            self.error("one of the two needs a type", node)
        kind = left.type if isinstance(left, Value) else right.type
        return self.coerce(left, kind, f"the other is {kind}"), self.coerce(right, kind, f"the other is {kind}"), kind

    def truncating(self, name: str, left: Any, right: Any, node: ast.AST) -> Value:
        a, b, kind = self.same_type(left, right, node)
        if not isinstance(kind, t.IntegerType):
            self.error(f"integers are divided so, not {kind}", node)
        return self.temporary(f"{'s' if kind.signed else 'u'}{name} {kind.ir} {a.ir}, {b.ir}", kind)

    def operation_divide_truncating(self, node: ast.AST, left: Any, right: Any) -> Value:
        return self.truncating("div", left, right, node)

    def operation_remainder_truncating(self, node: ast.AST, left: Any, right: Any) -> Value:
        return self.truncating("rem", left, right, node)

    def overflows(self, name: str, node: ast.AST, left: Any, right: Any) -> Value:
        a, b, kind = self.same_type(left, right, node)
        if not isinstance(kind, t.IntegerType):
            self.error(f"integers overflow, not {kind}", node)
        full = f"llvm.{'s' if kind.signed else 'u'}{name}.with.overflow.{kind.ir}"
        pair = f"{{ {kind.ir}, i1 }}"
        self.unit.declare(f"declare {pair} @{full}({kind.ir}, {kind.ir})")
        both = self.temporary(f"call {pair} @{full}({kind.ir} {a.ir}, {kind.ir} {b.ir})", kind)
        return self.temporary(f"extractvalue {pair} {both.ir}, 1", t.BOOL)

    def float_intrinsic(self, name: str, arguments: list[Any], node: ast.AST) -> Value:
        kinds = [a.type for a in arguments if isinstance(a, Value)]
        if not kinds or not isinstance(kinds[0], t.FloatType):
            self.error("a float with a type is needed here", node)
        kind = kinds[0]
        values = [self.coerce(a, kind, f"the others are {kind}") for a in arguments]
        full = f"llvm.{name}.f{kind.size * 8}"
        self.unit.declare(f"declare {kind.ir} @{full}({', '.join([kind.ir] * len(values))})")
        return self.temporary(f"call {kind.ir} @{full}({', '.join(f'{kind.ir} {v.ir}' for v in values)})", kind)

    # ---------------------------------------------------------------- vectors

    def lanes(self, kind: t.Type, lane: Any, node: ast.AST) -> str:
        """LLVM's type of 16 bytes seen as lanes of `kind`; `lane` must be one of them."""
        if not isinstance(kind, t.IntegerType | t.FloatType):
            self.error(f"a lane is a number, not {kind}", node)
        self.constant(lane, 0, 16 // kind.size - 1, "a lane", node)
        return f"<{16 // kind.size} x {kind.ir}>"

    def vector_as(self, vector: Any, shape: str, node: ast.AST) -> Value:
        """A v128 seen as lanes."""
        if not isinstance(vector, Value) or vector.type != t.V128:
            self.error("a v128 is needed here", node)
        return self.temporary(f"bitcast {t.V128.ir} {vector.ir} to {shape}", t.V128) if shape != t.V128.ir else vector

    def operation_extract_lane(self, node: ast.AST, vector: Any, kind: Any, lane: Any) -> Value:
        element = self.kind_argument(kind, node)
        shape = self.lanes(element, lane, node)
        return self.temporary(f"extractelement {shape} {self.vector_as(vector, shape, node).ir}, i32 {lane}", element)

    def operation_insert_lane(self, node: ast.AST, vector: Any, value: Any, lane: Any) -> Value:
        if not isinstance(value, Value):
            self.error("the type of a lane is the value's: write it, as in insert_lane(v, i32(1), 0)", node)
        shape = self.lanes(value.type, lane, node)
        seen = self.vector_as(vector, shape, node)
        made = self.temporary(f"insertelement {shape} {seen.ir}, {value.type.ir} {value.ir}, i32 {lane}", t.V128)
        return self.temporary(f"bitcast {shape} {made.ir} to {t.V128.ir}", t.V128) if shape != t.V128.ir else made

    def operation_vector_of(self, node: ast.AST, value: Any) -> Value:
        return self.operation_insert_lane(node, Value("poison", t.V128), value, 0)

    # ---------------------------------------------------------------- control

    def weighted(self, condition: Any, weight: int, node: ast.AST) -> Any:
        if not isinstance(condition, Value):
            return condition
        return Value(self.coerce(condition, t.BOOL, "a condition is needed here").ir, t.BOOL, weight)

    def operation_likely(self, node: ast.AST, condition: Any) -> Any:
        return self.weighted(condition, 1, node)

    def operation_unlikely(self, node: ast.AST, condition: Any) -> Any:
        return self.weighted(condition, -1, node)

    def operation_select(self, node: ast.AST, condition: Any, left: Any, right: Any) -> Value:
        a, b, kind = self.same_type(left, right, node)
        self.value_type(kind, "select", node)
        test = self.coerce(condition, t.BOOL, "the first argument of select is a bool")
        return self.temporary(f"select i1 {test.ir}, {kind.ir} {a.ir}, {kind.ir} {b.ir}", kind)

    def operation_unreachable(self, node: ast.AST) -> None:
        self.line("unreachable")
        self.live = False

    def operation_trap(self, node: ast.AST, kind: Any) -> None:
        handler = self.root.function.trap
        if handler is None:
            self.error("trap(...) inside a function that was not told how to trap", node)
        own = dict(zip(self.root.function.code.co_varnames, self.parameters, strict=False))
        wanted = handler.code.co_varnames[1 : handler.code.co_argcount]
        missing = [name for name in wanted if name not in own]
        if missing:
            self.error(f"trapping needs the parameter {missing[0]}", node)
        self.expand(handler, [kind, *(own[name] for name in wanted)], node)
        if self.live:
            self.error("what a trap expands to must leave the function", node)

    def operation_parameters_of_caller(self, node: ast.AST) -> tuple[Value, ...]:
        return tuple(self.parameters)

    def operation_sizeof_value(self, node: ast.AST, pointer: Any) -> int:
        return self.target_of(pointer, node).size

    def operation_frame_address(self, node: ast.AST) -> Value:
        self.unit.declare("declare ptr @llvm.frameaddress.p0(i32)")
        return self.temporary("call ptr @llvm.frameaddress.p0(i32 0)", t.PointerType(t.U8))

    def operation_return_address_place(self, node: ast.AST) -> Value:
        self.unit.declare("declare ptr @llvm.addressofreturnaddress.p0()")
        return self.temporary("call ptr @llvm.addressofreturnaddress.p0()", t.PointerType(t.U8))

    def operation_inline_assembly(
        self, node: ast.AST, text: Any, constraints: Any, result: Any, *operands: Any
    ) -> Value:
        several = [self.kind_argument(kind, node) for kind in result] if isinstance(result, tuple) else []
        returns = several[0] if several else t.VOID if result is None else self.kind_argument(result, node)
        parts = ", ".join(f"{v.type.ir} {v.ir}" for v in operands)
        escaped = text.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")
        shape = f"{{ {', '.join(kind.ir for kind in several)} }}" if several else returns.ir
        call = f'call {shape} asm sideeffect "{escaped}", "{constraints}"({parts})'
        if returns == t.VOID:
            self.line(call)
            return Value("", t.VOID)
        if several:
            return self.temporary(f"extractvalue {shape} {self.temporary(call, returns).ir}, 0", returns)
        return self.temporary(call, returns)
