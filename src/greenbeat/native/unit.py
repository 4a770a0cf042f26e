"""A unit: the functions and statics that become one LLVM module and one object file.

A unit starts from roots and takes in whatever they reach. What is *shared* (exported functions, `native(shared=True)`
functions, statics) belongs to the unit whose `modules` it was written in and is referred to by name from the others;
any other function is compiled privately into each unit that uses it.
"""

import ast
from collections.abc import Callable, Iterable

from greenbeat.native import types as t
from greenbeat.native.language import ExternFunction, NativeFunction, Static
from greenbeat.native.values import Scope


class Unit:
    """One LLVM module in the making; `text()` compiles everything reachable."""

    def __init__(
        self,
        name: str,
        roots: Iterable[NativeFunction | Static],
        *,
        owns: Callable[[str], bool] = lambda module: True,
        checked: bool = False,
        debug: bool = False,
    ) -> None:
        self.name, self.owns, self.checked, self.debug = name, owns, checked, debug
        self.declarations: dict[str, None] = {}
        self.constants: dict[bytes, str] = {}
        self.globals: list[str] = []
        self.known: set[int] = set()
        self.kept: list[object] = []
        self.pending: list[NativeFunction] = []
        self.metadata: list[str] = []
        self.interned: dict[str, str] = {}
        self.externs: set[str] = set()
        # Functions that are declared here and, unless the unit turns out to define them itself, defined elsewhere.
        self.forward: dict[str, str] = {}
        self.defined: set[str] = set()
        for root in roots:
            if isinstance(root, Static):
                self.static(root)
            else:
                self.reference(root)

    def text(self) -> str:
        """The LLVM IR of the whole unit.

        Raises:
            NativeError: something in it cannot be compiled.
        """
        functions = []
        while self.pending:
            function = self.pending.pop()
            self.defined.add(function.symbol)
            functions.append(self.definition(function))
        weights = ['!0 = !{!"branch_weights", i32 100000, i32 1}', '!1 = !{!"branch_weights", i32 1, i32 100000}']
        if self.debug:
            flags = self.metadata_node('!{i32 2, !"Debug Info Version", i32 3}')
            weights.append(f"!llvm.module.flags = !{{{flags}}}\n!llvm.dbg.cu = !{{{self._compile_unit()}}}")
        forward = [text for symbol, text in self.forward.items() if symbol not in self.defined]
        return "\n".join([*self.declarations, *forward, *self.globals, *functions, *weights, *self.metadata, ""])

    def definition(self, function: NativeFunction) -> str:
        """The LLVM IR of one function."""
        from greenbeat.native.emitter import Emitter

        return Emitter(self, function).text

    # ---------------------------------------------------------------- symbols

    def is_external(self, function: NativeFunction) -> bool:
        """Whether other units, or Python, may refer to the function."""
        return function.exported or function.shared

    def reference(self, function: NativeFunction | ExternFunction) -> str:
        """The function as an operand; it will be part of the unit, or declared."""
        name = f'@"{function.symbol}"'
        if id(function) in self.known:
            return name
        self.known.add(id(function))
        self.kept.append(function)
        if isinstance(function, ExternFunction):
            params = [p.ir for p in function.params] + (["..."] if function.variadic else [])
            attributes = f" {function.attributes}" if function.attributes else ""
            declaration = f"declare {function.returns.ir} {name}({', '.join(params)}){attributes}"
            self.forward.setdefault(function.symbol, declaration)
            self.externs.add(function.symbol)
        elif self.is_external(function) and not self.owns(function.module):
            kind = function.type
            types = ", ".join(p.ir for p in kind.params)
            self.forward[function.symbol] = f"declare {kind.convention} {kind.returns.ir} {name}({types})"
        else:
            self.pending.append(function)
        return name

    def static(self, variable: Static) -> str:
        """The variable as an operand; it will be part of the unit that owns it."""
        name = f'@"{variable.symbol}"'
        if id(variable) in self.known:
            return name
        self.known.add(id(variable))
        self.kept.append(variable)
        kind = variable.type
        word = "constant" if variable.constant else "global"
        if not self.owns(variable.module):
            self.globals.append(f"{name} = external {word} {kind.memory_ir}")
            return name
        initial = self._initial(variable, kind)
        self.globals.append(f"{name} = {word} {kind.memory_ir} {initial}, align {max(kind.align, 16)}")
        return name

    def _initial(self, variable: Static, kind: t.Type) -> str:
        if variable.initial is None:
            return "zeroinitializer"
        if isinstance(kind, t.ArrayType):
            assert not isinstance(variable.initial, int)
            items = ", ".join(f"{kind.of.memory_ir} {self._constant(v, kind.of)}" for v in variable.initial)
            return f"[{items}]"
        return self._constant(variable.initial, kind)

    def _constant(self, value: object, kind: t.Type) -> str:
        if isinstance(value, NativeFunction):
            return self.reference(value)
        if isinstance(kind, t.FloatType) and isinstance(value, int | float):
            return t.float_literal(float(value), kind)
        if value is None:
            return "null"
        if isinstance(value, str | bytes) and isinstance(kind, t.PointerType):
            return self.constant_bytes((value.encode() if isinstance(value, str) else value) + b"\0")
        assert isinstance(value, int), f"{value!r} cannot initialise {kind}"
        return str(int(value))

    def declare(self, text: str) -> None:
        """Add a declaration, once."""
        self.declarations[text] = None

    def constant_bytes(self, data: bytes) -> str:
        """A private constant with these bytes."""
        if data not in self.constants:
            name = self.constants[data] = f"@bytes.{len(self.constants)}"
            text = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data)
            self.globals.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{text}"')
        return self.constants[data]

    def assertion_failure(self) -> str:
        """The function that a failed assertion of the checked build ends in."""
        from greenbeat.native.checks import assertion_failed

        assert isinstance(assertion_failed, NativeFunction)
        return self.reference(assertion_failed)

    # ---------------------------------------------------------------- debug information

    def metadata_node(self, text: str) -> str:
        """A metadata node, once."""
        if text not in self.interned:
            number = len(self.metadata) + 2
            self.interned[text] = f"!{number}"
            self.metadata.append(f"!{number} = {text}")
        return self.interned[text]

    def _file(self, path: str) -> str:
        directory, _, name = path.rpartition("/")
        return self.metadata_node(f'!DIFile(filename: "{name}", directory: "{directory}")')

    def _compile_unit(self) -> str:
        file = self._file(f"/{self.name}")
        return self.metadata_node(
            f'distinct !DICompileUnit(language: DW_LANG_Python, file: {file}, producer: "greenbeat", '
            "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)"
        )

    def debug_function(self, function: NativeFunction, line: int, symbol: str = "") -> str:
        """The debug scope of a function, or of one made for it; nothing when no debug information is wanted."""
        if not self.debug:
            return ""
        file, kind = self._file(function.code.co_filename), self.metadata_node("!DISubroutineType(types: !{null})")
        return self.metadata_node(
            f'distinct !DISubprogram(name: "{symbol or function.symbol}", scope: {file}, file: {file}, line: {line}, '
            f"type: {kind}, scopeLine: {line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, "
            f"unit: {self._compile_unit()})"
        )

    def debug_location_id(self, node: ast.AST, scope: Scope) -> str:
        """The metadata node of a place in the source."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        inlined = f", inlinedAt: {scope.called_at}" if scope.called_at else ""
        distinct = "distinct " if inlined else ""
        return self.metadata_node(
            f"{distinct}!DILocation(line: {line}, column: {column}, scope: {scope.debug_scope}{inlined})"
        )

    def debug_location(self, node: ast.AST, scope: Scope) -> str:
        """The attachment that ties an instruction to its source."""
        return f", !dbg {self.debug_location_id(node, scope)}"
