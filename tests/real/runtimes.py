"""The engines the modules run on, behind the few operations a host needs.

Greenbeat is what is tested; wasmtime, where it is installed, runs the same tests to show that they ask for the right
thing. A host is an object with the functions a module imports; it is given the running module, because most of its
functions read or write that module's memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pytest

import greenbeat

Imports = Mapping[str, Mapping[str, Callable[..., Any]]]


class Host(Protocol):
    """What a module runs in."""

    guest: "Guest"

    def imports(self) -> Imports:
        """The functions by module and name; more than a module asks for is no harm."""


class Guest(ABC):
    """A running module."""

    def __init__(self, module: bytes, host: Host, memory: str = "memory") -> None:
        self.memory_name = memory
        self.instantiate(module, host.imports())
        host.guest = self

    @abstractmethod
    def instantiate(self, module: bytes, imports: Imports) -> None:
        """Compiles and links the module."""

    @abstractmethod
    def call(self, name: str, *arguments: float) -> Any:
        """Calls an export. What a host function raises comes out here."""

    @abstractmethod
    def read(self, address: int, length: int) -> bytes:
        """Copies bytes out of the module's memory."""

    @abstractmethod
    def write(self, address: int, data: bytes) -> None:
        """Copies bytes into the module's memory."""


class GreenbeatGuest(Guest):
    def instantiate(self, module: bytes, imports: Imports) -> None:
        try:
            found = greenbeat.Module(module)
        except greenbeat.CompileError as error:
            if "vector instructions are not supported yet" in str(error):
                pytest.skip("the module needs vector instructions, which are for later")
            raise
        self.exports = found.instantiate(imports=imports).exports

    def call(self, name: str, *arguments: float) -> Any:
        return self.exports[name](*arguments)

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.exports[self.memory_name].read(address, length))

    def write(self, address: int, data: bytes) -> None:
        self.exports[self.memory_name].write(address, data)


class WasmtimeGuest(Guest):
    def instantiate(self, module: bytes, imports: Imports) -> None:
        wasmtime = pytest.importorskip("wasmtime")
        config = wasmtime.Config()
        config.wasm_exceptions = True
        engine = wasmtime.Engine(config)
        self.store = wasmtime.Store(engine)
        compiled = wasmtime.Module(engine, module)
        functions = [
            wasmtime.Func(self.store, wanted.type, imports[wanted.module][wanted.name]) for wanted in compiled.imports
        ]
        self.exports = wasmtime.Instance(self.store, compiled, functions).exports(self.store)

    def call(self, name: str, *arguments: float) -> Any:
        return self.exports[name](self.store, *arguments)

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.exports[self.memory_name].read(self.store, address, address + length))

    def write(self, address: int, data: bytes) -> None:
        self.exports[self.memory_name].write(self.store, data, address)


RUNTIMES: dict[str, type[Guest]] = {"greenbeat": GreenbeatGuest, "wasmtime": WasmtimeGuest}
