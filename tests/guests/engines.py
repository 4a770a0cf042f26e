"""The engines the guest programs of the tests run on, behind the few operations the tests need.

Greenbeat is what is tested; wasmtime, where it is installed, runs the same tests to show that they ask for the right
thing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import greenbeat

FOLDER = Path(__file__).parent
BUFFER_BYTES = 65536


class Program(ABC):
    """One instance of a guest program."""

    @abstractmethod
    def call(self, name: str, *arguments: float) -> Any:
        """Calls an export."""

    @abstractmethod
    def read(self, address: int, length: int) -> bytes:
        """Copies bytes out of the program's memory."""

    @abstractmethod
    def write(self, address: int, data: bytes) -> None:
        """Copies bytes into the program's memory."""

    def put(self, data: bytes) -> None:
        """Fills the program's input buffer."""
        assert len(data) <= BUFFER_BYTES
        self.write(self.call("input_address"), data)

    def output(self, length: int) -> bytes:
        """The beginning of the program's output buffer."""
        return self.read(self.call("output_address"), length)


class GreenbeatProgram(Program):
    def __init__(self, module: bytes) -> None:
        self.instance = greenbeat.Module(module).instantiate()

    def call(self, name: str, *arguments: float) -> Any:
        return self.instance.exports[name](*arguments)

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.instance.exports["memory"].read(address, length))

    def write(self, address: int, data: bytes) -> None:
        self.instance.exports["memory"].write(address, data)


class WasmtimeProgram(Program):
    def __init__(self, module: bytes) -> None:
        wasmtime = pytest.importorskip("wasmtime")
        self.store = wasmtime.Store()
        instance = wasmtime.Instance(self.store, wasmtime.Module(self.store.engine, module), [])
        self.exports = instance.exports(self.store)

    def call(self, name: str, *arguments: float) -> Any:
        return self.exports[name](self.store, *arguments)

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.exports["memory"].read(self.store, address, address + length))

    def write(self, address: int, data: bytes) -> None:
        self.exports["memory"].write(self.store, data, address)


ENGINES: dict[str, Callable[[bytes], Program]] = {"greenbeat": GreenbeatProgram, "wasmtime": WasmtimeProgram}
