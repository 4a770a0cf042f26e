"""Modules written byte by byte, and the decoder under test, built both ways: fast and checked."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from greenbeat.native import Library, build, ctypes_of
from greenbeat.runtime import layout
from greenbeat.runtime.evaluate import function_reference
from greenbeat.runtime.instantiate import create_instance, destroy_instance
from greenbeat.runtime.outcomes import NO_ERROR, InstanceError
from greenbeat.runtime.segments import data_drop, elem_drop, memory_init, table_init
from greenbeat.wasm.decoder import decode_module, free_module
from greenbeat.wasm.description import Description, describe_failure
from greenbeat.wasm.functypes import intern_signature
from greenbeat.wasm.reader import INVALID, MALFORMED, OUT_OF_MEMORY, Failure

NO_LIMIT = (1 << 64) - 1
HEADER = b"\0asm\1\0\0\0"
KINDS = {MALFORMED: "malformed", INVALID: "invalid", OUT_OF_MEMORY: "out of memory"}


def leb(value: int) -> bytes:
    """An unsigned LEB128 number."""
    parts = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        parts.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(parts)


def vector(*items: bytes) -> bytes:
    """A count and that many items."""
    return leb(len(items)) + b"".join(items)


def name(text: str) -> bytes:
    """A length and that many bytes."""
    data = text.encode()
    return leb(len(data)) + data


def section(number: int, contents: bytes) -> bytes:
    """A section with its size."""
    return bytes([number]) + leb(len(contents)) + contents


def module(*sections: bytes) -> bytes:
    """A module of these sections."""
    return HEADER + b"".join(sections)


@cache
def library(checked: bool) -> Library:
    """The decoder and instantiation, compiled."""
    wasm = [decode_module, free_module, intern_signature]
    runtime = [create_instance, destroy_instance, function_reference, memory_init, data_drop, table_init, elem_drop]
    return build([*wasm, *runtime], checked=checked)


@dataclass(frozen=True)
class Refusal:
    """Why a module was refused."""

    kind: str
    message: str
    offset: int
    function: int | None


class GuardedBytes:
    """Bytes that end where memory ends: reading one byte too many is a fault, not a silent mistake."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        self.room = (size + page - 1) // page * page
        self.memory = mmap.mmap(-1, self.room + page)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(self.start + self.room), ctypes.c_size_t(page), 0) == 0

    def put(self, data: bytes) -> int:
        """Put bytes right before the end; returns where they start."""
        place = self.start + self.room - len(data)
        ctypes.memmove(place, data, len(data))
        return place


class Decoder:
    """The decoder as Python calls it."""

    def __init__(self, checked: bool) -> None:
        self.library = library(checked)
        self.decode_module = self.library.function(decode_module)
        self.free_module = self.library.function(free_module)

    def decode_at(self, address: int, size: int) -> int | Refusal:
        """The address of a module, or why there is none."""
        failure: Any = ctypes_of(Failure)()
        found: int | None = self.decode_module(address, size, ctypes.addressof(failure), 0)
        if found:
            return found
        message, offset, function = describe_failure(failure)
        return Refusal(KINDS[failure.kind], message, offset, function)

    def refusal(self, data: bytes) -> Refusal | None:
        """Why bytes are no module, if they are not one."""
        buffer = ctypes.create_string_buffer(data, len(data) + 1)
        found = self.decode_at(ctypes.addressof(buffer), len(data))
        if isinstance(found, Refusal):
            return found
        self.free_module(found)
        return None

    @contextlib.contextmanager
    def decoded(self, data: bytes) -> Iterator[Description]:
        """A description of a valid module, which is freed afterwards."""
        buffer = ctypes.create_string_buffer(data, len(data) + 1)
        found = self.decode_at(ctypes.addressof(buffer), len(data))
        assert not isinstance(found, Refusal), found
        try:
            yield Description(found, data)
        finally:
            self.free_module(found)


class Made:
    """An instance, or what stopped it from being made."""

    def __init__(self, decoder: Decoder, description: Description, address: int | None, error: Any) -> None:
        self.decoder, self.description, self.error, self.address = decoder, description, error, address
        if address:
            self.instance: Any = ctypes_of(layout.Instance).from_address(address)

    def call(self, function: Any, *arguments: int) -> int:
        result: int = self.decoder.library.function(function)(self.address, *arguments)
        return result

    def pointer(self, array: int, index: int) -> int:
        return ctypes.c_uint64.from_address(array + 8 * index).value

    def global_bytes(self, index: int) -> bytes:
        return ctypes.string_at(self.pointer(self.instance.globals, index), 16)

    def global_value(self, index: int) -> int:
        return int.from_bytes(self.global_bytes(index)[:8], "little")

    def elements(self, table: int) -> list[int]:
        found: Any = ctypes_of(layout.Table).from_address(self.pointer(self.instance.tables, table))
        return list((ctypes.c_uint64 * found.length).from_address(found.elements)) if found.length else []

    def memory(self, index: int = 0) -> Any:
        return ctypes_of(layout.Memory).from_address(self.pointer(self.instance.memories, index))

    def bytes(self, start: int, count: int, memory: int = 0) -> bytes:
        return ctypes.string_at(self.memory(memory).base + start, count)

    def reference(self, index: int) -> int:
        return self.call(function_reference, index)


@contextlib.contextmanager
def instance_of(
    decoder: Decoder,
    data: bytes,
    imports: Sequence[int] = (),
    memory_limit: int = NO_LIMIT,
    table_limit: int = NO_LIMIT,
) -> Iterator[Made]:
    """An instance of a valid module, or what stopped it; freed afterwards."""
    with decoder.decoded(data) as description:
        addresses = (ctypes.c_uint64 * (len(imports) + 1))(*imports)
        error: Any = ctypes_of(InstanceError)()
        address = decoder.library.function(create_instance)(
            description.address, ctypes.addressof(addresses), memory_limit, table_limit, ctypes.addressof(error)
        )
        assert address or error.kind != NO_ERROR
        yield Made(decoder, description, address, error)
        if address:
            decoder.library.function(destroy_instance)(address)
