"""What a guest may use."""

import re

from greenbeat.api.checks import described, shown, whole
from greenbeat.native.records import record

_UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_MOST_DIGITS = 100
UNLIMITED = (1 << 64) - 1
LARGEST_STACK = 1 << 26
SMALLEST_STACK = 1 << 12
MOST_OPEN_FILES = 1 << 20
NANOSECONDS = 1_000_000_000


def parse_size(size: int | str, what: str) -> int:
    """Bytes: a number, or text such as "64MiB", "1.5GiB" or "500 kB".

    Raises:
        ValueError: the text is no size, or the size is negative.
        TypeError: it is neither a number nor text.
    """
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if match is None or match[2].lower() not in _UNITS:
            raise ValueError(f"{what}: {shown(size)} is no size; write it like 65536, '64MiB' or '1GB'")
        if len(match[1]) > _MOST_DIGITS:
            raise ValueError(f"{what}: a number of {len(match[1])} digits is no size")
        before, _, behind = match[1].partition(".")
        return int(before + behind) * _UNITS[match[2].lower()] // 10 ** len(behind)
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{what} must be an int or a str, not {described(size)}")
    if size < 0:
        raise ValueError(f"{what} must not be negative: {shown(size)}")
    return int(size)


@record(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an instance may use; None is no limit.

    Attributes:
        memory: bytes of linear memory, all memories of the instance together (memory.grow fails beyond).
        seconds: wall-clock time of one call from Python, calls of host functions included; over all resumptions of a
            resumable call.
        fuel: what the instance may execute in its life; about one unit an instruction. See `Instance.fuel`.
        stack: bytes of the guest's own stack, at most 64 MiB.
        depth: how many calls from Python into guests may be waiting for each other; it may be fewer where the thread's
            native stack is small.
        table: elements of one table.
        open_files: descriptors that a WASI guest may have open at a time.
        written_bytes: bytes that a WASI guest may write to files and streams in its life.
        file_memory: bytes of a WASI guest's files in memory and of output that is kept, together.

    Sizes may be written as text: "64MiB".

    Raises:
        ValueError, TypeError: a limit makes no sense.
    """

    memory: int | str | None = None
    seconds: float | None = None
    fuel: int | None = None
    stack: int | str = "1MiB"
    depth: int = 256
    table: int = 10_000_000
    open_files: int = 256
    written_bytes: int | str | None = None
    file_memory: int | str | None = "1GiB"

    def __post_init__(self) -> None:
        if not SMALLEST_STACK <= self.stack_bytes <= LARGEST_STACK:
            raise ValueError(f"stack must be from 4 KiB to 64 MiB, not {shown(self.stack)}")
        if self.memory is not None:
            parse_size(self.memory, "memory")
        if self.seconds is not None:
            if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float):
                raise TypeError(f"seconds must be a float or an int, not {described(self.seconds)}")
            if not 0 < self.seconds < 1e9:
                raise ValueError(f"seconds must be above 0 and below 1e9: {shown(self.seconds)}")
        self._check("fuel", 0, (1 << 63) - 1, "from 0 to 2**63 - 1")
        self._check("depth", 1, 10_000, "from 1 to 10,000")
        self._check("table", 0, UNLIMITED, "from 0 to 2**64 - 1")
        if not 3 <= self.open_files <= MOST_OPEN_FILES:
            raise ValueError(f"open_files must be from 3 to {MOST_OPEN_FILES:,}: {self.open_files}")
        for size, what in ((self.written_bytes, "written_bytes"), (self.file_memory, "file_memory")):
            if size is not None:
                parse_size(size, what)

    def _check(self, name: str, low: int, high: int, words: str) -> None:
        """Check that a number is an int in its range, and make it a plain one."""
        value = getattr(self, name)
        if value is None and name == "fuel":
            return
        if isinstance(value, bool):
            raise TypeError(f"{name} must be an int, not {value}")
        number = whole(value, name)
        if not low <= number <= high:
            raise ValueError(f"{name} must be {words}: {shown(number)}")
        object.__setattr__(self, name, number)

    @property
    def memory_bytes(self) -> int:
        """The memory limit in bytes."""
        return UNLIMITED if self.memory is None else min(parse_size(self.memory, "memory"), UNLIMITED)

    @property
    def written_limit(self) -> int | None:
        """How many bytes may be written to files and streams."""
        return None if self.written_bytes is None else parse_size(self.written_bytes, "written_bytes")

    @property
    def file_memory_bytes(self) -> int | None:
        """How many bytes files in memory and kept output may take."""
        return None if self.file_memory is None else parse_size(self.file_memory, "file_memory")

    @property
    def stack_bytes(self) -> int:
        """The stack limit in bytes."""
        return parse_size(self.stack, "stack")

    @property
    def nanoseconds(self) -> int:
        """The time limit in nanoseconds, 0 for none."""
        return 0 if self.seconds is None else max(1, int(self.seconds * NANOSECONDS))
