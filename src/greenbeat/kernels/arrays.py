"""Arrays and tuples in kernels: elements, lengths, negative indices, bounds.

    parameter a: Array[f64, 2] ─▶ %a.data  %a.size.0  %a.size.1  %a.stride.0  %a.stride.1     (strides in elements)

An index is checked, unless it is known to be inside: `known_indices` has what loops know of their counters.
"""

import ast
import types
from typing import Any

from greenbeat.kernels.arithmetic import Arithmetic
from greenbeat.kernels.cache import DEEPEST_ATTRIBUTE
from greenbeat.kernels.source import KernelFunction
from greenbeat.kernels.types import ArrayType, HandleType, computed
from greenbeat.kernels.values import ArrayValue, Method
from greenbeat.native import types as t
from greenbeat.native.values import Value


class Arrays(Arithmetic):
    """Layer of `KernelEmitter`.

    Attributes:
        known_indices: data operand, dimension and source text of indices that are inside.
        not_negative: names of variables that are at least 0.
        written: the parameters whose elements are assigned.
    """

    def __init__(self, unit: Any, function: KernelFunction) -> None:
        self.known_indices: set[tuple[str, int, str]] = set()
        self.not_negative: set[str] = set()
        self.written: set[int] = set()
        super().__init__(unit, function)

    def expression_Attribute(self, node: ast.Attribute) -> Any:
        base = self.expression(node.value)
        if isinstance(base, ArrayValue):
            sizes = tuple(Value(size, t.I64) for size in base.sizes)
            if node.attr == "shape":
                return sizes
            if node.attr == "ndim":
                return len(sizes)
            if node.attr == "size":
                return sizes[0] if len(sizes) == 1 else self.binary(ast.Mult(), sizes[0], sizes[1], node)
            self.error(f"an array has no {node.attr!r} in a kernel: it has shape, size, ndim and len()", node)
        if isinstance(base, Value) and isinstance(base.type, HandleType):
            return Method(base, node.attr)
        if isinstance(base, Value | tuple | bool | int | float):
            self.error(f"{self.describe(base)} has no attributes in a kernel", node)
        if not isinstance(base, types.ModuleType | type):
            self.error(f"a kernel reads attributes of modules and classes, not of {self.describe(base)}", node)
        if ast.unparse(node).count(".") > DEEPEST_ATTRIBUTE:
            self.error(f"a name from outside has at most {DEEPEST_ATTRIBUTE} dots", node)
        try:
            return self.known(getattr(base, node.attr))
        except AttributeError as problem:
            self.error(str(problem), node)

    def expression_Subscript(self, node: ast.Subscript) -> Any:
        base = self.expression(node.value)
        if isinstance(base, ArrayValue):
            place, kind = self.array_place(base, node)
            return place if isinstance(place, ArrayValue) else self.load_element(place, kind)
        if not isinstance(base, tuple):
            self.error(f"{self.describe(base)} has no elements", node)
        index = self.expression(node.slice)
        if isinstance(index, Value):
            return self.table_element(base, index, node)
        try:
            return base[index]
        except (IndexError, TypeError) as problem:
            self.error(str(problem), node)

    def place_of(self, node: ast.Subscript) -> tuple[str, t.Type]:
        """The address of an element that is assigned, and its type."""
        base = self.expression(node.value)
        if not isinstance(base, ArrayValue):
            self.error(f"only elements of arrays can be assigned, not those of {self.describe(base)}", node)
        place, kind = self.array_place(base, node)
        if isinstance(place, ArrayValue):
            self.error("a whole row cannot be assigned: assign its elements", node)
        self.written.add(base.parameter)
        return place, kind

    def array_place(self, array: ArrayValue, node: ast.Subscript) -> tuple[str | ArrayValue, t.Type]:
        """The address of an element; of an array with two dimensions and one index, a row."""
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(nodes) > len(array.sizes):
            self.error(f"{array.type} takes {len(array.sizes)} of them, not {len(nodes)} indices", node)
        for each in nodes:
            if isinstance(each, ast.Slice):
                self.error("a kernel cannot take slices of arrays: loop over a range of indices", each)
        element = array.type.element
        offset = ""
        for dimension, each in enumerate(nodes):
            index = self.checked_index(array, dimension, each, node)
            stride = array.strides[dimension]
            step = index if stride == "1" else self.temporary(f"mul nsw i64 {index}, {stride}", t.I64).ir
            offset = step if not offset else self.temporary(f"add nsw i64 {offset}, {step}", t.I64).ir
        place = self.temporary(f"getelementptr inbounds {element.memory_ir}, ptr {array.data}, i64 {offset}", t.I64).ir
        if len(nodes) < len(array.sizes):
            row = ArrayType(element, 1)
            return ArrayValue(row, place, array.sizes[1:], array.strides[1:], array.parameter), element
        return place, element

    def checked_index(self, array: ArrayValue, dimension: int, index_node: ast.expr, node: ast.AST) -> str:
        """An index as an operand, counted from the front; IndexError if it is outside."""
        index = self.expression(index_node)
        if isinstance(index, float | tuple | ArrayValue) or (isinstance(index, Value) and index.type == t.F64):
            self.error(f"an index is an integer, not {self.describe(index)}", index_node)
        number = self.number(index, index_node)
        if number.type == t.BOOL:
            number = self.promoted(number, t.I64, index_node)
        text = ast.unparse(index_node)
        if (array.data, dimension, text) in self.known_indices:
            return number.ir
        size = array.sizes[dimension]
        place = number
        if number.type == t.I64 and not self.is_not_negative(index, index_node):
            from_end = self.temporary(f"add i64 {number.ir}, {size}", t.I64)
            if isinstance(index, Value):
                negative = self.temporary(f"icmp slt i64 {number.ir}, 0", t.BOOL)
                place = self.temporary(f"select i1 {negative.ir}, i64 {from_end.ir}, i64 {number.ir}", t.I64)
            else:
                place = from_end
        outside = self.temporary(f"icmp uge i64 {place.ir}, {size}", t.BOOL)
        message = "index {} is out of range for a length of {}"
        if number.type == t.U64:
            message = "index is out of range"
        self.fail_if(outside, "IndexError", message, node, number, Value(size, t.I64))
        return place.ir

    def is_not_negative(self, value: Any, node: ast.expr) -> bool:
        """Whether a number is known to be at least 0."""
        if not isinstance(value, Value):
            return bool(value >= 0)
        return isinstance(node, ast.Name) and node.id in self.not_negative

    # ---------------------------------------------------------------- elements in memory

    def load_element(self, place: str, kind: t.Type) -> Value:
        """An element as it is computed with."""
        if kind == t.BOOL:
            byte = self.temporary(f"load i8, ptr {place}, align 1", t.U8)
            return self.temporary(f"icmp ne i8 {byte.ir}, 0", t.BOOL)
        value = self.temporary(f"load {kind.ir}, ptr {place}, align {kind.align}", kind)
        return self.convert(value, computed(kind))

    def store_element(self, value: Any, place: str, kind: t.Type, node: ast.AST) -> None:
        """Store a number, if it fits."""
        number = self.fitted(value, kind, f"the array holds {kind}", node)
        if kind == t.BOOL:
            number = self.temporary(f"zext i1 {number.ir} to i8", t.U8)
        elif kind != number.type:
            number = self.convert(number, kind)
        self.line(f"store {number.type.ir} {number.ir}, ptr {place}, align {kind.align}")

    # ---------------------------------------------------------------- tuples

    def table_element(self, items: tuple[Any, ...], index: Value, node: ast.Subscript) -> Value:
        """An element of a tuple of constants, by an index known at run time."""
        if not items or not all(isinstance(item, bool | int | float) for item in items):
            self.error("only a tuple of constants can be indexed by a number that is computed", node)
        if not isinstance(index.type, t.IntegerType):
            self.error(f"an index is an integer, not {index.type}", node.slice)
        kind = self.common(list(items), node)
        cells = ", ".join(f"{kind.memory_ir} {_cell(self.promoted(item, kind, node))}" for item in items)
        name = self.unit.table(f"[{len(items)} x {kind.memory_ir}] [{cells}]")
        negative = self.temporary(f"icmp slt i64 {index.ir}, 0", t.BOOL)
        from_end = self.temporary(f"add i64 {index.ir}, {len(items)}", t.I64)
        place = self.temporary(f"select i1 {negative.ir}, i64 {from_end.ir}, i64 {index.ir}", t.I64)
        outside = self.temporary(f"icmp uge i64 {place.ir}, {len(items)}", t.BOOL)
        self.fail_if(outside, "IndexError", "tuple index out of range", node)
        address = self.temporary(f"getelementptr inbounds {kind.memory_ir}, ptr {name}, i64 {place.ir}", t.I64)
        return self.load_element(address.ir, kind)

    def length(self, value: Any, node: ast.AST) -> Any:
        """`len(value)`."""
        if isinstance(value, tuple):
            return len(value)
        if not isinstance(value, ArrayValue):
            self.error(f"{self.describe(value)} has no length", node)
        return Value(value.sizes[0], t.I64)


def _cell(number: Value) -> str:
    return {"true": "1", "false": "0"}.get(number.ir, number.ir)
