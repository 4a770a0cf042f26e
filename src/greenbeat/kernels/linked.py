"""The kernels that this process has linked: what is at an address of their code, for traces and profiles."""

import ctypes
from collections.abc import Callable, Iterator

from greenbeat.native import perfmap

# Each kernel's addresses by symbol, and its object file.
_linked: list[tuple[dict[str, int], bytes]] = []
_watchers: list[Callable[[], None]] = []


def add(addresses: dict[str, int], data: bytes) -> None:
    """A kernel was linked."""
    _linked.append((addresses, data))
    for watcher in _watchers:
        watcher()


def watch(watcher: Callable[[], None]) -> None:
    """Call something whenever a kernel was linked, until `forget`."""
    _watchers.append(watcher)


def forget(watcher: Callable[[], None]) -> None:
    """Undo `watch`."""
    _watchers.remove(watcher)


def entries() -> Iterator[tuple[int, str]]:
    """What fibers can begin with: the addresses of thunks and of loops' bodies, with the kernels' names."""
    size = ctypes.sizeof(ctypes.c_void_p)
    for addresses, _ in _linked:
        place = addresses["entries"]
        while address := ctypes.c_void_p.from_address(place).value:
            name = ctypes.c_char_p.from_address(place + size).value or b""
            yield address, name.decode()
            place += 2 * size


def functions() -> list[tuple[int, int, str]]:
    """Start, size and name of every function of kernels' code, in order. Only object files in ELF tell."""
    return sorted(each for addresses, data in _linked for each in perfmap.function_addresses(data, addresses))
