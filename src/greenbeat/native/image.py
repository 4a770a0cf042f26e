"""Objects linked ahead: what a start maps into memory, so that it needs neither LLVM nor a linker.

    make(objects, ...)    x86-64 ELF objects, as LLVM makes them for this package, linked to an `Image` at address 0
    load(image)           its memory, with addresses; then every symbol's address

    0                  read only             writable            size
    │ code │ stubs     │ constants │ slots   │ data │ zeros      │       each part on pages of its own
             jmp [slot] ──────────── address of what is outside

Places that hold an address inside of the image are listed in `moved`, slots for what is outside in `outside`. Other
machines, other formats, and objects with relocations that are not known here have no image: LLVM links them each time.
"""

import ctypes
import mmap
import struct
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

PAGE = 4096
# The few names of the ELF format that are needed. https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html
_RELA, _NOBITS, _SYMTAB = 4, 8, 2
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
_X86_64, _UNDEFINED, _WEAK = 62, 0, 2
_ADDRESS, _RELATIVE, _CALL, _SLOT_RELATIVE = 1, 2, 4, (9, 41, 42)
_FAILED = (1 << 64) - 1  # what mmap gives
_JUMP = b"\xff\x25"  # to where the slot at a distance says

_header = struct.Struct("<16sHHIQQQIHHHHHH")
_section = struct.Struct("<IIQQQQIIQQ")
_symbol = struct.Struct("<IBBHQQ")
_relocation = struct.Struct("<QQq")


class Unlinkable(Exception):
    """These objects cannot be made an image."""


class Image(NamedTuple):
    """A linked image.

    Attributes:
        contents: of all parts; zeros follow up to `size`.
        constants, data: where the second and the third part begin.
        moved: places of addresses inside.
        outside: slots by the name of what is outside.
        symbols: the places of what may be asked for.
    """

    contents: bytes
    size: int
    constants: int
    data: int
    moved: bytes
    outside: dict[str, int]
    symbols: dict[str, int]


class _Object:
    """An object's sections, symbols and relocations.

    Attributes:
        places: where sections are in the image, by number.
    """

    def __init__(self, number: int, data: bytes) -> None:
        fields = _header.unpack_from(data)
        if fields[0][:6] != b"\x7fELF\x02\x01" or fields[2] != _X86_64:
            raise Unlinkable("an object is not x86-64 ELF")
        self.number, self.data = number, data
        self.sections = [_section.unpack_from(data, fields[6] + _section.size * n) for n in range(fields[12])]
        self.names = [self._text(self.sections[fields[13]][4] + section[0]) for section in self.sections]
        self.places: dict[int, int] = {}
        table = next(section for section in self.sections if section[1] == _SYMTAB)
        texts = self.sections[table[6]][4]
        self.symbols = [
            (self._text(texts + name), info >> 4, section, value)
            for name, info, _, section, value, _ in _symbol.iter_unpack(data[table[4] : table[4] + table[5]])
        ]
        # Section, offset, type, symbol, addend; of sections that are loaded.
        self.relocations = [
            (section[7], offset, info & 0xFFFFFFFF, info >> 32, addend)
            for section in self.sections
            if section[1] == _RELA and self.sections[section[7]][2] & _ALLOC
            for offset, info, addend in _relocation.iter_unpack(data[section[4] : section[4] + section[5]])
        ]

    def _text(self, start: int) -> str:
        return self.data[start : self.data.index(b"\0", start)].decode()

    def part(self, number: int) -> str:
        """Which part of the image a section belongs to; none if it is not loaded."""
        kind, flags = self.sections[number][1:3]
        if not flags & _ALLOC:
            return ""
        if flags & _EXECUTE:
            return "code"
        # What is only written to by a linker is constant afterwards.
        if not flags & _WRITE or self.names[number].startswith(".data.rel.ro"):
            return "constants"
        return "zeros" if kind == _NOBITS else "data"

    def symbol(self, number: int) -> str:
        """What tells a symbol from all others: its name, unless it is this object's own."""
        name, binding, _, _ = self.symbols[number]
        return name if binding else f"{name} {self.number} {number}"


class _Linking:
    """An image while it is put together.

    Attributes:
        memory: its bytes so far.
        addresses: where each symbol is.
    """

    def __init__(self, objects: Sequence[_Object]) -> None:
        self.objects = objects
        self.memory = bytearray()
        self.addresses: dict[str, int] = {}
        self.moved: list[int] = []

    def align(self, step: int) -> int:
        """Fill up to a multiple of `step`; returns where that is."""
        self.memory += bytes(-len(self.memory) % step)
        return len(self.memory)

    def place(self, part: str) -> None:
        """Append all sections of a part."""
        for item in self.objects:
            for number, section in enumerate(item.sections):
                if item.part(number) == part:
                    item.places[number] = self.align(max(section[8], 16))
                    start, size = section[4:6]
                    self.memory += bytes(size) if section[1] == _NOBITS else item.data[start : start + size]

    def reserve(self, symbols: Iterable[str]) -> dict[str, int]:
        """Append eight bytes for each of some symbols; returns where."""
        start = self.align(16)
        places = {symbol: start + 8 * number for number, symbol in enumerate(symbols)}
        self.memory += bytes(8 * len(places))
        return places

    def define(self) -> None:
        """Find where symbols are, once all sections have their places. A weak one gives way to another."""
        weak: set[str] = set()
        for item in self.objects:
            for number, (name, binding, section, value) in enumerate(item.symbols):
                if section not in item.places:
                    continue
                symbol = item.symbol(number)
                if symbol in self.addresses and symbol not in weak:
                    if binding == _WEAK:
                        continue
                    raise Unlinkable(f"{name} is defined twice")
                self.addresses[symbol] = item.places[section] + value
                weak.discard(symbol)
                if binding == _WEAK:
                    weak.add(symbol)

    def put_address(self, place: int, target: int) -> None:
        """Write an address inside of the image, which moves with it."""
        if place % 8:
            raise Unlinkable("an address is not aligned")
        self.memory[place : place + 8] = target.to_bytes(8, "little")
        self.moved.append(place)

    def put_distance(self, place: int, target: int) -> None:
        """Write the distance of something to a place."""
        self.memory[place : place + 4] = (target - place).to_bytes(4, "little", signed=True)

    def relocate(self, slots: dict[str, int], stubs: dict[str, int]) -> None:
        """Write all addresses and distances."""
        for item in self.objects:
            for section, offset, kind, number, addend in item.relocations:
                place, symbol = item.places[section] + offset, item.symbol(number)
                target = self.addresses.get(symbol)
                if kind in _SLOT_RELATIVE:
                    self.put_distance(place, slots[symbol] + addend)
                elif kind == _CALL:
                    self.put_distance(place, (stubs[symbol] if target is None else target) + addend)
                elif target is None:
                    raise Unlinkable(f"{symbol} is neither called nor reached through a slot")
                elif kind == _RELATIVE:
                    self.put_distance(place, target + addend)
                elif kind == _ADDRESS:
                    self.put_address(place, target + addend)
                else:
                    raise Unlinkable(f"relocations of type {kind} are not known")


def make(objects: Iterable[bytes], wanted: Sequence[str]) -> Image:
    """Link objects.

    Args:
        objects: all that belongs together.
        wanted: the symbols that may be asked for.

    Raises:
        Unlinkable: these objects are not of the kind that is known here.
    """
    try:
        items = [_Object(number, data) for number, data in enumerate(objects)]
    except (struct.error, IndexError, StopIteration, ValueError) as problem:
        raise Unlinkable(f"an object is malformed: {problem}") from None
    linking = _Linking(items)
    defined = {s[0] for item in items for s in item.symbols if s[1] and s[2] != _UNDEFINED}
    used = [(kind, item.symbol(number)) for item in items for _, _, kind, number, _ in item.relocations]
    called = sorted({symbol for kind, symbol in used if kind == _CALL and symbol not in defined and " " not in symbol})
    linking.place("code")
    stubs = linking.reserve(called)
    constants = linking.align(PAGE)
    linking.place("constants")
    slots = linking.reserve(sorted({*called, *(symbol for kind, symbol in used if kind in _SLOT_RELATIVE)}))
    data = linking.align(PAGE)
    linking.place("data")
    filled = len(linking.memory)
    linking.place("zeros")
    size = linking.align(PAGE)
    linking.define()
    for symbol, slot in slots.items():
        if symbol in linking.addresses:
            linking.put_address(slot, linking.addresses[symbol])
    for symbol, stub in stubs.items():
        linking.memory[stub : stub + 2] = _JUMP
        linking.put_distance(stub + 2, slots[symbol] - 4)
    linking.relocate(slots, stubs)
    missing = [name for name in wanted if name not in linking.addresses]
    if missing:
        raise Unlinkable(f"{missing[0]} is not defined")
    return Image(
        bytes(linking.memory[:filled]),
        size,
        constants,
        data,
        array("I", linking.moved).tobytes(),
        {symbol: slot for symbol, slot in slots.items() if symbol not in linking.addresses},
        {name: linking.addresses[name] for name in wanted},
    )


def load(image: Image) -> dict[str, int] | None:
    """Bring an image into the process: every symbol's address. None if something outside is not to be had.

    It is never unloaded: native threads may be inside of it at any moment, and Python's objects until the very end.
    """
    process = ctypes.CDLL(None)
    process.mmap.restype = ctypes.c_void_p
    process.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    process.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = process.mmap(None, image.size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base in (None, _FAILED):
        return None
    ctypes.memmove(base, image.contents, len(image.contents))
    words = (ctypes.c_uint64 * (image.size // 8)).from_address(base)
    with memoryview(words) as view, view.cast("B") as plain, plain.cast("Q") as places:
        for place in array("I", image.moved):
            places[place >> 3] += base
        for name, slot in image.outside.items():
            try:
                places[slot >> 3] = ctypes.cast(getattr(process, name), ctypes.c_void_p).value or 0
            except AttributeError:
                return None
    for start, end, rights in (
        (0, image.constants, mmap.PROT_READ | mmap.PROT_EXEC),
        (image.constants, image.data, mmap.PROT_READ),
    ):
        if process.mprotect(base + start, end - start, rights):
            return None
    return {name: base + place for name, place in image.symbols.items()}
