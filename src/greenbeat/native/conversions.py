"""How values meet types: literals take the type of their context, conversions are written."""

from typing import Any

from greenbeat.native import types as t
from greenbeat.native.language import ExternFunction, NativeFunction
from greenbeat.native.values import Value
from greenbeat.native.writer import Writer


class Conversions(Writer):
    """Layer of `Emitter`."""

    def coerce(self, value: Any, kind: t.Type, context: str) -> Value:
        """`value` where a `kind` is needed: literals take its type, everything else must have it."""
        if isinstance(value, Value):
            if value.type == kind:
                return value
            if isinstance(kind, t.PointerType) and isinstance(value.type, t.PointerType | t.FunctionType):
                if kind.of == t.VOID or (isinstance(value.type, t.PointerType) and value.type.of == t.VOID):
                    return Value(value.ir, kind)
            self.error(f"{context}, but this is {value.type}{self._hint(value.type, kind)}")
        return self.literal(value, kind, context)

    def _hint(self, found: t.Type, wanted: t.Type) -> str:
        numbers = (t.IntegerType, t.FloatType)
        if isinstance(found, numbers) and isinstance(wanted, numbers):
            return f": write {wanted}(...) to convert"
        if isinstance(found, t.PointerType) and isinstance(wanted, t.PointerType):
            return f": write cast({wanted}, ...)"
        return ""

    def literal(self, value: Any, kind: t.Type, context: str) -> Value:
        """A compile-time value as an operand of type `kind`."""
        if isinstance(kind, t.BoolType) and isinstance(value, bool):
            return Value("true" if value else "false", kind)
        if isinstance(kind, t.IntegerType) and isinstance(value, int) and not isinstance(value, bool):
            value = int(value)
            if not kind.fits(value):
                self.error(f"{value} does not fit {kind}")
            return Value(str(value), kind)
        if isinstance(kind, t.FloatType) and isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return Value(t.float_literal(float(value), kind), kind)
            except OverflowError:
                self.error(f"{value} does not fit {kind}")
        if isinstance(kind, t.PointerType):
            if value is None:
                return Value("null", kind)
            if isinstance(value, str | bytes):
                data = value.encode() if isinstance(value, str) else value
                return Value(self.unit.constant_bytes(data + b"\0"), kind)
        if isinstance(kind, t.PointerType | t.FunctionType) and isinstance(value, NativeFunction | ExternFunction):
            if isinstance(kind, t.FunctionType) and self.function_type(value) != kind:
                self.error(f"{context}, but {value} is {self.function_type(value)}")
            return Value(self.unit.reference(value), kind)
        if isinstance(kind, t.FunctionType) and value is None:
            return Value("null", kind)
        self.error(f"{context}, but this is {self.describe(value)}")

    def function_type(self, function: NativeFunction | ExternFunction) -> t.FunctionType:
        """The type of a pointer to `function`."""
        try:
            return function.type
        except Exception as problem:
            self.error(f"the signature of {function.symbol}: {problem}")

    def signature(self, function: NativeFunction) -> tuple[list[tuple[str, t.Type | None]], t.Type | None]:
        """Parameters and result of `function`; what its annotations say is evaluated here, and may raise anything."""
        try:
            return function.signature
        except Exception as problem:
            self.error(f"an annotation of {function.python.__name__}: {problem}")

    def describe(self, value: Any) -> str:
        """A compile-time value in an error message."""
        if isinstance(value, bool | int | float | str | bytes):
            return f"the {type(value).__name__} {value!r}"
        return repr(value) if value is not None else "None"

    def type_of(self, value: Any) -> t.Type | None:
        """The native type that a compile-time object stands for, if it does."""
        if isinstance(value, Value):
            return None
        value = getattr(value, "native_type", value)
        if isinstance(value, t.Type):
            return value
        if value is bool:
            return t.BOOL
        return getattr(value, "__native_struct__", None) if isinstance(value, type) else None

    def convert(self, value: Any, kind: t.Type) -> Value:
        """`kind(value)`: widen by the source's signedness, narrow by dropping bits, float to integer saturating."""
        if not isinstance(value, Value):
            if isinstance(kind, t.IntegerType) and isinstance(value, int | float):
                return Value(str(kind(value)), kind)
            if isinstance(kind, t.FloatType) and isinstance(value, int | float):
                return self.literal(float(value), kind, "")
            if isinstance(kind, t.BoolType) and isinstance(value, int):
                return self.literal(bool(value), kind, "")
            return self.coerce(value, kind, f"{kind}(...) was written")
        source = value.type
        if source == kind:
            return value
        if isinstance(kind, t.IntegerType):
            if isinstance(source, t.BoolType):
                return self.temporary(f"zext i1 {value.ir} to {kind.ir}", kind)
            if isinstance(source, t.IntegerType):
                if source.bits == kind.bits:
                    return Value(value.ir, kind)
                name = "trunc" if source.bits > kind.bits else "sext" if source.signed else "zext"
                return self.temporary(f"{name} {source.ir} {value.ir} to {kind.ir}", kind)
            if isinstance(source, t.FloatType):
                name = f"llvm.fpto{'s' if kind.signed else 'u'}i.sat.{kind.ir}.f{source.size * 8}"
                self.unit.declare(f"declare {kind.ir} @{name}({source.ir})")
                return self.temporary(f"call {kind.ir} @{name}({source.ir} {value.ir})", kind)
        if isinstance(kind, t.FloatType):
            if isinstance(source, t.IntegerType):
                name = "sitofp" if source.signed else "uitofp"
                return self.temporary(f"{name} {source.ir} {value.ir} to {kind.ir}", kind)
            if isinstance(source, t.FloatType):
                name = "fpext" if kind.size > source.size else "fptrunc"
                return self.temporary(f"{name} {source.ir} {value.ir} to {kind.ir}", kind)
        if isinstance(kind, t.BoolType):
            self.error("a truth value is made by comparing: write `x != 0`")
        self.error(f"{source} does not convert to {kind}: cast and bitcast reinterpret")
