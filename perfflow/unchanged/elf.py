"""Read what the comparison of code needs of a 64-bit ELF file: sections, symbols and relocations."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

X86_64 = 62
EXECUTABLE, SHARED = 2, 3
FUNCTION, OBJECT, INDIRECT = 2, 1, 10
UNDEFINED = 0
WRITTEN, ALLOCATED, CODE, THREAD_LOCAL = 1, 2, 4, 0x400
_NO_BITS = 8
_SYMBOLS, _DYNAMIC_SYMBOLS = 2, 11
_RELA, _REL, _RELR = 4, 9, 19
RELATIVE, ABSOLUTE, COPY, GLOBAL_DATA, JUMP_SLOT, INDIRECT_RELATIVE = 8, 1, 5, 6, 7, 37
"""Types of relocations of x86-64 that stand for addresses."""
_WORD = 8
_BITMAP = 63


class ElfError(ValueError):
    """It is no 64-bit little-endian ELF file, or it is damaged."""


@dataclass(frozen=True)
class ElfSection:
    """A section. Addresses are those of the file, before it is loaded."""

    name: str
    kind: int
    flags: int
    start: int
    offset: int
    size: int
    link: int = 0

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.start + self.size

    @property
    def is_empty(self) -> bool:
        """Whether it has no content in the file and is zero when the program starts."""
        return self.kind == _NO_BITS


@dataclass(frozen=True)
class Symbol:
    """A symbol; ``place`` is the number of its section, UNDEFINED if another file defines it."""

    name: str
    value: int
    size: int
    kind: int
    place: int


@dataclass(frozen=True)
class Relocation:
    """What the loader writes to a place: the address ``target`` of this file, or of a symbol of another file."""

    kind: int
    target: int | None
    name: str = ""
    addend: int = 0


@dataclass(frozen=True)
class Elf:
    """An ELF file. Raises ElfError from ``read``."""

    data: bytes
    kind: int
    machine: int
    sections: tuple[ElfSection, ...]
    symbols: tuple[Symbol, ...]
    dynamic_symbols: tuple[Symbol, ...]
    relocations: Mapping[int, Relocation] = field(default_factory=dict)

    def section(self, at: int) -> ElfSection | None:
        """Return the loaded section that holds an address. Thread-local templates do not count."""
        index = bisect.bisect_right(self._starts, at) - 1
        if index >= 0 and at < self._loaded[index].end:
            return self._loaded[index]
        return None

    def content(self, at: int, size: int) -> bytes:
        """Return bytes of one section, fewer at its end; b'' if it has none in the file."""
        section = self.section(at)
        if section is None or section.is_empty:
            return b""
        first = section.offset + at - section.start
        return self.data[first : first + min(size, section.end - at)]

    def __post_init__(self) -> None:
        loaded = sorted((s for s in self.sections if _has_addresses(s)), key=lambda section: section.start)
        object.__setattr__(self, "_loaded", loaded)
        object.__setattr__(self, "_starts", [section.start for section in loaded])

    _loaded: list[ElfSection] = field(init=False, repr=False, compare=False, default_factory=list)
    _starts: list[int] = field(init=False, repr=False, compare=False, default_factory=list)


def _has_addresses(section: ElfSection) -> bool:
    """Return whether loaded addresses are in it. .tbss has an address and a size, but takes no room."""
    is_template = section.flags & THREAD_LOCAL and section.is_empty
    return bool(section.flags & ALLOCATED and section.size and not is_template)


def read(data: bytes) -> Elf:
    """Read an ELF file. Raises ElfError."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise ElfError(str(error)) from error


def _read(data: bytes) -> Elf:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ElfError("no 64-bit little-endian ELF file")
    kind, machine = struct.unpack_from("<HH", data, 16)
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    raw = [struct.unpack_from("<IIQQQQII", data, offset + number * size) for number in range(count)]
    titles = raw[names][4] if count else 0
    sections = tuple(
        ElfSection(_text(data, titles + name), form, flags, start, place, length, link)
        for name, form, flags, start, place, length, link, _ in raw
    )
    tables = {number: tuple(_symbols(data, sections, s)) for number, s in enumerate(sections) if s.kind in _TABLES}
    relocations: dict[int, Relocation] = {}
    for section in sections:
        if section.flags & ALLOCATED or section.kind == _RELR:
            relocations.update(_relocations(data, sections, section, tables.get(section.link, ())))
    of_kind = {sections[number].kind: table for number, table in tables.items()}
    return Elf(data, kind, machine, sections, of_kind.get(_SYMBOLS, ()), of_kind.get(_DYNAMIC_SYMBOLS, ()), relocations)


_TABLES = (_SYMBOLS, _DYNAMIC_SYMBOLS)


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")


def _symbols(data: bytes, sections: tuple[ElfSection, ...], table: ElfSection) -> Iterator[Symbol]:
    strings = sections[table.link].offset
    for name, info, _, place, value, size in struct.iter_unpack(
        "<IBBHQQ", data[table.offset : table.offset + table.size]
    ):
        yield Symbol(_text(data, strings + name), value, size, info & 15, place)


def _relocations(
    data: bytes, sections: tuple[ElfSection, ...], table: ElfSection, symbols: tuple[Symbol, ...]
) -> Iterator[tuple[int, Relocation]]:
    content = data[table.offset : table.offset + table.size]
    if table.kind == _RELA:
        for at, info, addend in struct.iter_unpack("<QQq", content):
            yield at, _relocation(info & 0xFFFFFFFF, info >> 32, addend, symbols)
    elif table.kind == _REL:
        for at, info in struct.iter_unpack("<QQ", content):
            yield at, _relocation(info & 0xFFFFFFFF, info >> 32, _word(data, sections, at), symbols)
    elif table.kind == _RELR:
        for at in _packed(content):
            yield at, Relocation(RELATIVE, _word(data, sections, at))


def _relocation(kind: int, number: int, addend: int, symbols: tuple[Symbol, ...]) -> Relocation:
    if kind in (RELATIVE, INDIRECT_RELATIVE):
        return Relocation(kind, addend)
    symbol = symbols[number] if number else Symbol("", 0, 0, 0, UNDEFINED)
    own = symbol.place != UNDEFINED and kind in (ABSOLUTE, GLOBAL_DATA, JUMP_SLOT)
    return Relocation(kind, symbol.value + addend if own else None, symbol.name, addend)


def _word(data: bytes, sections: tuple[ElfSection, ...], at: int) -> int:
    for section in sections:
        if _has_addresses(section) and section.start <= at < section.end and not section.is_empty:
            return int(struct.unpack_from("<Q", data, section.offset + at - section.start)[0])
    return 0


def _packed(content: bytes) -> Iterator[int]:
    """Yield the places of relocations in the packed form: an address, then bitmaps of the 63 words after it."""
    at = 0
    for (entry,) in struct.iter_unpack("<Q", content):
        if entry & 1:
            yield from (at + _WORD * bit for bit in range(_BITMAP) if entry >> (bit + 1) & 1)
            at += _WORD * _BITMAP
        else:
            yield entry
            at = entry + _WORD
