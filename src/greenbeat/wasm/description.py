"""A decoded module as Python sees it: its types, imports, exports, sections and names, read lazily.

    description = Description(address, data)      the Module that decode_module gave, and the bytes it was decoded from
    description.exports                           (ExportType(name='add', type=FunctionType(...)), ...)
    str(description.exports[0].type)              '(func (param i32 i32) (result i32))'

A description does not own the module: it must not be used after `free_module`.
"""

import ctypes
import mmap
import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any

from greenbeat.native import ctypes_of
from greenbeat.native.records import record
from greenbeat.runtime import layout
from greenbeat.wasm import limits, valuetypes
from greenbeat.wasm.names_section import Names
from greenbeat.wasm.printable import printable
from greenbeat.wasm.reader import NO_FUNCTION, Failure

SECTION_NAMES = (
    "custom",
    "type",
    "import",
    "function",
    "table",
    "memory",
    "global",
    "export",
    "start",
    "element",
    "code",
    "data",
    "data count",
    "tag",
)


# ------------------------------------------------------------------------------------------------------ types


class ValueType(int):
    """A value type: a number of `valuetypes.py` that prints as the text format writes it."""

    def __str__(self) -> str:
        return valuetypes.name_of(self)

    __repr__ = __str__


@record(frozen=True, slots=True)
class FunctionType:
    """What a function takes and gives."""

    params: tuple[ValueType, ...]
    results: tuple[ValueType, ...]

    def __str__(self) -> str:
        params = f" (param {' '.join(map(str, self.params))})" if self.params else ""
        results = f" (result {' '.join(map(str, self.results))})" if self.results else ""
        return f"(func{params}{results})"


@record(frozen=True, slots=True)
class TableType:
    """A table of references; sizes are counted in elements, `maximum` is None where there is none."""

    element: ValueType
    minimum: int
    maximum: int | None = None
    is_64: bool = False

    def __str__(self) -> str:
        return f"(table {_limits(self)} {self.element})"


@record(frozen=True, slots=True)
class MemoryType:
    """A memory; sizes are counted in pages, `maximum` is None where there is none."""

    minimum: int
    maximum: int | None = None
    is_64: bool = False
    page_size: int = layout.PAGE

    def __str__(self) -> str:
        page = f" (pagesize {self.page_size})" if self.page_size != layout.PAGE else ""
        return f"(memory {_limits(self)}{page})"


@record(frozen=True, slots=True)
class GlobalType:
    """A global variable, or a constant unless it is mutable."""

    value: ValueType
    mutable: bool = False

    def __str__(self) -> str:
        return f"(global {f'(mut {self.value})' if self.mutable else self.value})"


@record(frozen=True, slots=True)
class TagType:
    """A tag of exceptions: the types of the values that they carry."""

    params: tuple[ValueType, ...] = ()

    def __str__(self) -> str:
        return f"(tag{' (param ' + ' '.join(map(str, self.params)) + ')' if self.params else ''})"


def _limits(kind: TableType | MemoryType) -> str:
    maximum = f" {kind.maximum}" if kind.maximum is not None else ""
    return f"{'i64 ' if kind.is_64 else ''}{kind.minimum}{maximum}"


ExternType = FunctionType | TableType | MemoryType | GlobalType | TagType


@record(frozen=True, slots=True)
class ImportType:
    """Something a module wants, and under which two names."""

    module: str
    name: str
    type: ExternType

    def __str__(self) -> str:
        return f'(import "{printable(self.module)}" "{printable(self.name)}" {self.type})'


@record(frozen=True, slots=True)
class ExportType:
    """Something a module offers, and under which name. `index` is in the index space of its kind."""

    name: str
    type: ExternType
    index: int

    def __str__(self) -> str:
        return f'(export "{printable(self.name)}" {self.type})'


@record(frozen=True, slots=True)
class Section:
    """A section of a module: `kind` as the specification calls it, `name` for custom ones, where its contents are."""

    kind: str
    name: str | None
    offset: int
    size: int


# ------------------------------------------------------------------------------------------------------ modules


class Description:
    """What a decoded module declares.

    Args:
        address: of the native Module.
        data: the bytes it was decoded from.
        owner: what keeps the native Module alive, if that is for this object to see to.
        complete: to be called before the contents of custom sections are looked at: they may not have been read.
    """

    def __init__(
        self,
        address: int,
        data: bytes | mmap.mmap,
        *,
        owner: object = None,
        complete: Callable[[], None] = lambda: None,
    ) -> None:
        self.address, self.data, self.owner, self.complete = address, data, owner, complete
        self.module: Any = ctypes_of(layout.Module).from_address(address)

    def __repr__(self) -> str:
        name = f' "{printable(self.names.module, 60)}"' if self.names.module is not None else ""
        imports, exports = self.module.import_count, self.module.export_count
        return f"<module{name}: {imports} imports, {exports} exports, {self.module.length} bytes>"

    def _array(self, kind: Any, address: int | None, count: int) -> Any:
        return (ctypes_of(kind) * count).from_address(address) if count and address else ()

    def _text(self, address: int | None, length: int) -> str:
        start = (address or 0) - (self.module.bytes or 0)
        return bytes(self.data[start : start + length]).decode() if length else ""

    @cached_property
    def types(self) -> tuple[FunctionType, ...]:
        """The type section."""
        count = self.module.signature_count
        addresses = (ctypes.c_uint64 * count).from_address(self.module.signatures) if count else ()
        return tuple(map(function_type_at, addresses))

    @property
    def function_count(self) -> int:
        """How many functions there are, imported ones first."""
        return int(self.module.function_count)

    def function_type(self, index: int) -> FunctionType:
        """The type of a function."""
        return function_type_at(self._functions[index].signature)

    def body(self, index: int) -> tuple[int, int] | None:
        """Where a function's body is in `data`, from the declarations of its locals to its end; None for imports."""
        function = self._functions[index]
        if not function.body:
            return None
        start = function.body - self.module.bytes
        return start, start + function.body_length

    @cached_property
    def _functions(self) -> Any:
        return self._array(layout.Function, self.module.functions, self.module.function_count)

    @cached_property
    def tables(self) -> tuple[TableType, ...]:
        """The types of all tables, imported ones first."""
        found = self._array(layout.TableType, self.module.tables, self.module.table_count)
        return tuple(
            TableType(ValueType(t.kind), t.minimum, t.maximum if t.has_maximum else None, t.is_64) for t in found
        )

    @cached_property
    def memories(self) -> tuple[MemoryType, ...]:
        """The types of all memories, imported ones first."""
        found = self._array(layout.MemoryType, self.module.memories, self.module.memory_count)
        return tuple(
            MemoryType(m.minimum, m.maximum if m.has_maximum else None, m.is_64, 1 << m.page_bits) for m in found
        )

    @cached_property
    def globals(self) -> tuple[GlobalType, ...]:
        """The types of all globals, imported ones first."""
        found = self._array(layout.GlobalType, self.module.globals, self.module.global_count)
        return tuple(GlobalType(ValueType(g.kind), g.mutable) for g in found)

    @cached_property
    def tags(self) -> tuple[TagType, ...]:
        """The types of all tags, imported ones first."""
        count = self.module.tag_count
        signatures = (ctypes.c_uint64 * count).from_address(self.module.tags) if count else ()
        return tuple(TagType(function_type_at(signature).params) for signature in signatures)

    def _extern_type(self, kind: int, index: int) -> ExternType:
        if kind == layout.FUNCTION:
            return self.function_type(index)
        spaces: dict[int, tuple[ExternType, ...]] = {
            layout.TABLE: self.tables,
            layout.MEMORY: self.memories,
            layout.GLOBAL: self.globals,
            layout.TAG: self.tags,
        }
        return spaces[kind][index]

    @cached_property
    def imports(self) -> tuple[ImportType, ...]:
        """What the module wants, in order."""
        return tuple(
            ImportType(
                self._text(i.module, i.module_length),
                self._text(i.name, i.name_length),
                self._extern_type(i.kind, i.index),
            )
            for i in self._array(layout.Import, self.module.imports, self.module.import_count)
        )

    @cached_property
    def exports(self) -> tuple[ExportType, ...]:
        """What the module offers, in order."""
        return tuple(
            ExportType(self._text(e.name, e.name_length), self._extern_type(e.kind, e.index), e.index)
            for e in self._array(layout.Export, self.module.exports, self.module.export_count)
        )

    @property
    def start(self) -> int | None:
        """The index of the start function."""
        return int(self.module.start) if self.module.has_start else None

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections in order; of more than 65,536 only the first ones."""
        found = self._array(layout.Section, self.module.sections, self.module.section_count)
        start = self.module.bytes or 0
        return tuple(
            Section(
                SECTION_NAMES[s.id],
                None if s.id else self._text(s.name, s.name_length),
                (s.contents or start) - start,
                s.length,
            )
            for s in found
        )

    def custom_sections(self, name: str) -> Iterator[bytes]:
        """The contents of the custom sections with a name."""
        self.complete()
        for section in self.sections:
            if section.name == name:
                yield bytes(self.data[section.offset : section.offset + section.size])

    @cached_property
    def names(self) -> Names:
        """What the name section calls things; empty without one."""
        if not self.module.names:
            return Names.read(b"")
        start = self.module.names - self.module.bytes
        return Names.read(bytes(self.data[start : start + self.module.names_length]))

    def function_name(self, index: int) -> str | None:
        """A function's name: of the name section, else that of an export or import."""
        return self.names.functions.get(index) or self._linked_names.get(index)

    @cached_property
    def _linked_names(self) -> dict[int, str]:
        imported = [i for i in self.imports if isinstance(i.type, FunctionType)]
        found = {index: f"{entry.module}.{entry.name}" for index, entry in enumerate(imported)}
        for export in self.exports:
            if isinstance(export.type, FunctionType):
                found.setdefault(export.index, export.name)
        return found


@lru_cache(maxsize=4096)
def function_type_at(address: int) -> FunctionType:
    """The function type at the address of a `SignatureType`, which lives as long as the process."""
    signature = ctypes_of(layout.SignatureType).from_address(address)
    count = signature.param_count + signature.result_count
    words = (ctypes.c_uint32 * count).from_address(signature.params)
    kinds = tuple(map(ValueType, words))
    return FunctionType(kinds[: signature.param_count], kinds[signature.param_count :])


@lru_cache(maxsize=4096)
def signature_address(kind: FunctionType) -> int:
    """The address of the process-wide `SignatureType` of a function type, for functions that the host brings.

    Raises:
        ValueError: it has more parameters or results than any module may.
        MemoryError: there is no memory for a new one.
    """
    from greenbeat.engine import engine

    if len(kind.params) > limits.PARAMETERS or len(kind.results) > limits.RESULTS:
        raise ValueError(f"a function has at most {limits.PARAMETERS} parameters and {limits.RESULTS} results")
    words = (*kind.params, *kind.results)
    array = (ctypes.c_uint32 * (len(words) + 1))(*words)
    address: int | None = engine.function("intern_signature")(
        ctypes.addressof(array), len(kind.params), len(kind.results)
    )
    if not address:
        raise MemoryError("no memory for another function type")
    return address


# ------------------------------------------------------------------------------------------------------ failures


def describe_failure(failure: Any) -> tuple[str, int, int | None]:
    """Why a module was refused: the message, the offset in the module's bytes, and the function when it is in a body.

    Args:
        failure: the ctypes structure that `decode_module` filled in, or its address.
    """
    if isinstance(failure, int):
        failure = ctypes_of(Failure).from_address(failure)
    values = iter((failure.a, failure.b))

    def fill(match: re.Match[str]) -> str:
        value = next(values)
        if match[1] == "type":
            return valuetypes.name_of(value)
        return f"0x{value:02X}" if match[1] == "hex" else str(value)

    message = ctypes.string_at(failure.message).decode() if failure.message else ""
    text = re.sub(r"\{(type|number|hex)\}", fill, message)
    return text, failure.offset, None if failure.function == NO_FUNCTION else failure.function
