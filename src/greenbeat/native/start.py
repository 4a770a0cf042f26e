"""The short way to a running engine: the image that an earlier process linked, found without LLVM and without hashing.

An image is found by its *signature*: which source files the package has and when each was written, which llvmlite is
installed, what processor this is, how the engine is to be built. Whatever changes any of that leads to another
signature, and there to the long way (`Engine.obtain`), which knows engines by the contents of their sources; then the
image is made anew. The file:

    0         32
    │ digest  │ version of Python's, the engine's key, its functions, the image    (marshal)

It is as good as code: believed if it belongs to the user, or to root, and nobody else may write to it.
"""

import marshal
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from greenbeat.native import cache
from greenbeat.native.image import Image, Unlinkable, load, make

_SUFFIX = ".image"
_DIGEST = 32
_KEPT = 8
# The beginning of /proc/cpuinfo tells the first processor's features.
_CPU = 8192


class Started(NamedTuple):
    """A running engine: its key, the types of its functions, the addresses of its symbols."""

    key: str
    functions: dict[str, list[str]]
    addresses: dict[str, int]


def possible() -> bool:
    """Whether this platform is one that images are made for."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"


def signature(packages: Mapping[str, Path], variant: object) -> str | None:
    """See above; None if not all of it can be told."""
    llvmlite = find_spec("llvmlite")
    if llvmlite is None or llvmlite.origin is None:
        return None
    digest = sha256(repr((variant, sys.implementation.cache_tag, sorted(map(str, packages.items())))).encode())
    binding = os.path.join(os.path.dirname(llvmlite.origin), "binding")
    try:
        with open("/proc/cpuinfo", "rb") as file:
            digest.update(next((line for line in file.read(_CPU).split(b"\n") if line.startswith(b"flags")), b""))
        for entry in _files(map(str, packages.values())):
            digest.update(_told(entry.path, entry.stat()))
        for path in (llvmlite.origin, *(entry.path for entry in os.scandir(binding) if "llvmlite" in entry.name)):
            digest.update(_told(path, os.stat(path)))
    except OSError:
        return None
    return digest.hexdigest()[:40]


def _files(directories: Iterable[str]) -> list[os.DirEntry[str]]:
    """All source files, in an order that does not depend on the file system."""
    found: list[os.DirEntry[str]] = []
    waiting = list(directories)
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    found.append(entry)
                elif entry.is_dir() and entry.name != "__pycache__":
                    waiting.append(entry.path)
    return sorted(found, key=lambda entry: entry.path)


def _told(path: str, status: os.stat_result) -> bytes:
    # Its inode and when that was changed: a file with the same name, size and date may still be another one.
    return f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}\n".encode()


def start(directory: Path, name: str) -> Started | None:
    """Load the image with a signature, if there is a good one."""
    data = cache.read_own(directory / f"{name}{_SUFFIX}")
    if data is None or data[:_DIGEST] != sha256(data[_DIGEST:]).digest():
        return None
    key, functions, image = marshal.loads(memoryview(data)[_DIGEST:])
    addresses = load(Image(*image))
    return Started(key, functions, addresses) if addresses is not None else None


def keep(directory: Path, name: str, key: str, compiled: cache.Compiled) -> None:
    """Link an image of an engine for later processes; one that cannot be made or written is no error."""
    try:
        image = make(compiled.objects.values(), [*compiled.functions, *compiled.addresses])
        body = marshal.dumps((key, compiled.functions, tuple(image)))
        directory.mkdir(parents=True, exist_ok=True)
        cache.replace(directory / f"{name}{_SUFFIX}", sha256(body).digest() + body)
    except (Unlinkable, OSError):
        return
    with suppress(OSError):
        images = sorted(directory.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in images[_KEPT:]:
            old.unlink(missing_ok=True)
