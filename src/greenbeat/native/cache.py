"""Where compiled engines are kept between processes: one small set of files per key, checked whenever they are read.

    KEY.json      a checksum line, then the manifest: signatures of what is exported, and each object's checksum
    KEY.UNIT.o    one object file per unit

Every file is written under another name and renamed, objects first, so a reader sees all of an entry or none of it.
What is damaged, cut short or half deleted is the same as missing. The package's own `_objects` directory has the same
form.
"""

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from greenbeat.native.records import field, record

ENTRIES_KEPT = 12


@record()
class Compiled:
    """A compiled engine: its objects by unit, and what Python may refer to.

    Attributes:
        functions: exported functions: the names of the ctypes types of the result and of the parameters.
        addresses: other symbols whose address can be asked for.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    functions: dict[str, list[str]] = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)


def checksum(data: bytes) -> str:
    """What tells a damaged file; it is no protection against malice."""
    return hashlib.sha256(data).hexdigest()


def user_directory() -> Path | None:
    """The user's cache directory: GREENBEAT_CACHE, or what the platform's own rules say; none without a home."""
    chosen = os.environ.get("GREENBEAT_CACHE")
    if chosen:
        return Path(chosen)
    with contextlib.suppress(RuntimeError):
        return _platform_directory()
    return None


def _platform_directory() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "greenbeat" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "greenbeat"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "greenbeat"


def read(directory: Path, key: str) -> Compiled | None:
    """The entry of a key, if it is there and whole."""
    import json  # here, since a start from an image does without

    try:
        first, _, body = (directory / f"{key}.json").read_bytes().partition(b"\n")
        if checksum(body) != first.decode("ascii", "replace"):
            return None
        manifest = json.loads(body)
        found = Compiled(functions=manifest["functions"], addresses=manifest["addresses"])
        for unit, expected in manifest["objects"].items():
            data = (directory / f"{key}.{unit}.o").read_bytes()
            if checksum(data) != expected:
                return None
            found.objects[unit] = data
    except OSError:
        return None
    return found


def write(directory: Path, key: str, compiled: Compiled) -> bool:
    """Keep an entry; returns whether it could be kept. A directory that cannot be written to is no error."""
    import json

    manifest = {
        "functions": compiled.functions,
        "addresses": compiled.addresses,
        "objects": {unit: checksum(data) for unit, data in compiled.objects.items()},
    }
    body = json.dumps(manifest, indent=1, sort_keys=True).encode()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for unit, data in compiled.objects.items():
            replace(directory / f"{key}.{unit}.o", data)
        replace(directory / f"{key}.json", checksum(body).encode() + b"\n" + body)
    except OSError:
        return False
    return True


def replace(path: Path, data: bytes | bytearray) -> None:
    """Write a file under another name, readable by the user alone, and rename it."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def open_own(path: Path) -> int | None:
    """Open a file that nobody but the user, or root, can have written; its descriptor, or None if it is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), 0) and not found.st_mode & 0o022:
            return descriptor
    os.close(descriptor)
    return None


def read_own(path: Path) -> bytes | None:
    """The contents of such a file."""
    descriptor = open_own(path)
    if descriptor is None:
        return None
    with open(descriptor, "rb") as file, contextlib.suppress(OSError):
        return file.read()
    return None


def prune(directory: Path, kept: int = ENTRIES_KEPT) -> None:
    """Delete all but the newest entries, and what no entry refers to."""
    with contextlib.suppress(OSError):
        manifests = sorted(directory.glob("*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
        for old in manifests[kept:]:
            for path in directory.glob(f"{old.stem}.*"):
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def only_one(directory: Path, key: str) -> Iterator[None]:
    """Hold the key's lock, where files can be locked, so that processes that start together build once.

    A courtesy, not needed for correctness: entries are whole however many processes write them.
    """
    try:
        import fcntl

        directory.mkdir(parents=True, exist_ok=True)
        lock = open(directory / f"{key}.lock", "wb")  # noqa: SIM115
    except (ImportError, OSError):
        yield
        return
    with lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
