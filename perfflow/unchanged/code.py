"""Digests of functions and data of a native program that are equal in two builds if the code does the same.

Addresses become names and offsets, constants become their content, and what each build numbers anew is left out: hashes
in Rust's symbols, numbers of clones, the lines of Rust's panic locations. A function refers to named data by name, and
that data is compared as an item of its own; data without a name is part of the functions that refer to it. Where the
end of such data is not known, it reaches to the next place that anything refers to.

Whatever cannot be read is reported as unseen, so that it never counts as equal.
"""

from __future__ import annotations

import bisect
import hashlib
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from perfflow.unchanged import elf
from perfflow.unchanged.elf import Elf, ElfSection, Relocation, Symbol

WITHOUT_SYMBOLS = "code without symbols"
THREAD_LOCALS = "initial values of thread-local variables"
_DEEPEST = 60
_MOST_OF_TABLE = 4096
_MOST_OF_LOCATION = 300
_LONG = 64
_SIZES = {"byte": 1, "word": 2, "dword": 4, "qword": 8, "tbyte": 10, "xmmword": 16, "ymmword": 32, "zmmword": 64}
_OF_RIP = re.compile(r"(?:(\w+) ptr )?((?:[c-g]s:)?)\[rip(?: ([+-]) (0x[0-9a-f]+|\d+))?\]")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
# lea REGISTER, [rip + n]; with a lookahead, so that what looks like one hides no other.
_LEA = re.compile(rb"(?=[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](.{4}))", re.DOTALL)
# Instructions with an absolute address in programs that are loaded where they were linked.
_FIXED = re.compile(rb"(?=(?:[\xb8-\xbf\x68]|\xc7[\x00-\x3f\x80-\xff]|[\x48\x49\x4c\x4d]\xc7.)(.{4}))", re.DOTALL)
_BRANCHES = frozenset({"call", "loop", "loope", "loopne", "xbegin"})
_COLD = re.compile(r"(.+)\.cold(?:\.\d+)?")
# The last are functions in assembly, which have no package.
_OF_GO_RUNTIME = re.compile(r"(?:internal/)?runtime[./]|expandAVX512")
_PADDING = frozenset({"nop", "int3"})


def plain(name: str) -> str:
    """Return a symbol without what differs between builds: hashes of Rust and the numbers of clones."""
    if name.startswith("_R"):
        name = re.sub(r"Cs[0-9A-Za-z]*_", "C", name)
    name = re.sub(r"17h[0-9a-f]{16}E", "E", name)
    name = re.sub(r"(\.(?:constprop|isra|part|lto_priv|llvm|cold|warm))\.\d+", r"\1", name)
    name = re.sub(r"(?<=[A-Za-z_])\.\d+\Z", "", name)
    return re.sub(r"anon\.[0-9a-f]{32}\.\d+", "anon", name)


class _UnreadableError(Exception):
    """Code or data that cannot be compared: the word of ``Items.unseen``."""


@dataclass(frozen=True)
class Items:
    """What a run executed and what that refers to: digests by name, and why some of it is not known."""

    digests: Mapping[str, tuple[str, ...]]
    unseen: tuple[str, ...] = ()


@dataclass
class _References:
    """What code or data refers to: the starts of named data, and of functions that are entered behind their start."""

    data: set[int] = field(default_factory=set)
    functions: set[int] = field(default_factory=set)

    def add(self, others: _References) -> None:
        self.data |= others.data
        self.functions |= others.functions


@dataclass(frozen=True)
class _Named:
    name: str
    start: int
    end: int
    sized: bool = True


class _Table:
    """Named pieces of a program by address."""

    def __init__(self, found: Mapping[int, _Named]) -> None:
        self.by_start = found
        self.starts = sorted(found)
        self.count = Counter(piece.name for piece in found.values())

    def at(self, address: int) -> _Named | None:
        index = bisect.bisect_right(self.starts, address) - 1
        if index < 0:
            return None
        piece = self.by_start[self.starts[index]]
        return piece if address < piece.end else None


class ProgramCode:
    """The comparable code of an ELF file of x86-64."""

    def __init__(self, file: Elf) -> None:
        self._file = file
        # Such a program contains addresses without relocations.
        self._fixed = file.kind == elf.EXECUTABLE
        self._contents: dict[tuple[int, int], tuple[str, _References]] = {}
        self._open: list[tuple[int, int]] = []
        self._digests: dict[int, tuple[str, _References]] = {}
        self._shapes: dict[int, str] = {}

    def items(self, entered: Iterable[int]) -> Items:
        """Return the items of a run that entered the functions at these addresses, which are symbols' values."""
        digests_of: dict[str, list[str]] = {}
        unseen: dict[str, None] = {}
        functions, data = [*entered, *self._at_any_time], list(self._exported)
        known: set[int] = set()
        for name, digest in self._always():
            digests_of.setdefault(name, []).append(digest)
        while functions or data:
            start = functions.pop() if functions else data.pop()
            if start in known:
                continue
            known.add(start)
            piece = self._functions.by_start.get(start) or self._objects.by_start.get(start)
            if piece is None:
                unseen["symbols"] = None
                continue
            try:
                digest, references = self._digest(piece)
            except _UnreadableError as error:
                unseen[str(error)] = None
                continue
            digests_of.setdefault(piece.name, []).append(digest)
            functions += [*references.functions, *self._cold.get(start, ())]
            data += references.data
        return Items({name: tuple(sorted(digests)) for name, digests in digests_of.items()}, tuple(unseen))

    @property
    def has_lines(self) -> bool:
        """Whether debug information tells the source lines of its code."""
        return any(section.name == ".debug_line" for section in self._file.sections)

    @property
    def starts(self) -> Iterable[int]:
        """The addresses of all functions."""
        return self._functions.by_start

    def places(self, entered: int) -> tuple[int, ...]:
        """Return the addresses of the instructions of a function, for a lookup of their lines."""
        piece = self._functions.by_start.get(entered)
        if piece is None:
            return ()
        content = self._file.content(piece.start, piece.end - piece.start)
        return tuple(at for at, _, _, _ in self._decoder.disasm_lite(content, piece.start))

    # What the file defines

    @cached_property
    def _symbols(self) -> tuple[Symbol, ...]:
        sections = self._file.sections
        return tuple(
            symbol
            for symbol in (*self._file.symbols, *self._file.dynamic_symbols)
            if elf.UNDEFINED < symbol.place < len(sections) and sections[symbol.place].flags & elf.ALLOCATED
        )

    @cached_property
    def _functions(self) -> _Table:
        by_start: dict[int, _Named] = {}
        sections = self._file.sections
        for symbol in self._symbols:
            if symbol.kind not in (elf.FUNCTION, elf.INDIRECT) or not sections[symbol.place].flags & elf.CODE:
                continue
            old = by_start.get(symbol.value)
            name, size = plain(symbol.name), max(symbol.size, old.end - old.start if old and old.sized else 0)
            name = min(name, old.name) if old else name
            by_start[symbol.value] = _Named(name, symbol.value, symbol.value + size, bool(size))
        starts = sorted(by_start)
        for start, after in zip(starts, [*starts[1:], None], strict=False):
            if not by_start[start].sized:
                section = self._file.section(start)
                end = section.end if section else start
                by_start[start] = _Named(by_start[start].name, start, min(after or end, end), sized=False)
        return _Table(by_start)

    @cached_property
    def _objects(self) -> _Table:
        found: dict[int, _Named] = {}
        for symbol in self._symbols:
            if symbol.kind == elf.OBJECT and symbol.size:
                old = found.get(symbol.value)
                name = plain(symbol.name)
                end = max(symbol.value + symbol.size, old.end if old else 0)
                found[symbol.value] = _Named(min(name, old.name) if old else name, symbol.value, end)
        return _Table(found)

    @cached_property
    def _cold(self) -> Mapping[int, list[int]]:
        """The parts that the compiler split off each function, which are entered by a jump or by an exception."""
        by_name: dict[str, list[int]] = {}
        parts: list[tuple[str, int]] = []
        for symbol in self._symbols:
            if symbol.kind == elf.FUNCTION:
                if match := _COLD.fullmatch(symbol.name):
                    parts.append((match[1], symbol.value))
                else:
                    by_name.setdefault(symbol.name, []).append(symbol.value)
        parts_of: dict[int, list[int]] = {}
        for name, part in parts:
            for start in by_name.get(name, ()):
                parts_of.setdefault(start, []).append(part)
        return parts_of

    @cached_property
    def _exported(self) -> tuple[int, ...]:
        """The data that a library exports: a program that copies it contains none of its content."""
        if any(section.name == ".interp" for section in self._file.sections) or self._fixed:
            return ()
        exported = (symbol for symbol in self._file.dynamic_symbols if symbol.kind == elf.OBJECT and symbol.size)
        return tuple({symbol.value for symbol in exported if symbol.place != elf.UNDEFINED})

    @cached_property
    def _anchors(self) -> list[int]:
        """All addresses that something may refer to as the start of data."""
        anchors = {symbol.value for symbol in self._symbols}
        anchors |= {symbol.value + symbol.size for symbol in self._symbols}
        anchors |= {r.target for r in self._file.relocations.values() if r.target is not None}
        for section in self._file.sections:
            if not section.flags & elf.CODE:
                continue
            content = self._file.content(section.start, section.size)
            for match in _LEA.finditer(content):
                anchors.add(section.start + match.end(1) + int.from_bytes(match[1], "little", signed=True))
            if self._fixed:
                anchors.update(int.from_bytes(match[1], "little") for match in _FIXED.finditer(content))
        if self._fixed:
            for section in self._file.sections:
                if section.flags & elf.ALLOCATED and not section.flags & elf.CODE:
                    anchors.update(target for _, target in self._fixed_pointers(section.start, section.size))
        return sorted(anchors)

    @cached_property
    def _places(self) -> list[int]:
        return sorted(self._file.relocations)

    @cached_property
    def _decoder(self) -> Any:
        # Its constants alone are a tenth of what a command imports, and few runs compare native code.
        import capstone

        return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)

    # What counts as executed in every run

    @cached_property
    def _at_any_time(self) -> list[int]:
        """The functions of Go's runtime, of which the scheduler and the garbage collector enter others in each run."""
        if not any(section.name == ".go.buildinfo" for section in self._file.sections):
            return []
        return [start for start, piece in self._functions.by_start.items() if _OF_GO_RUNTIME.match(piece.name)]

    def _always(self) -> Iterator[tuple[str, str]]:
        for start, end in self._gaps:
            yield WITHOUT_SYMBOLS, self._gap_digest(start, end)
        for section in self._file.sections:
            if section.flags & elf.THREAD_LOCAL and not section.is_empty and section.size:
                try:
                    yield THREAD_LOCALS, _hashed(self._content(section.start, section.size, _References()))
                except _UnreadableError as error:
                    yield THREAD_LOCALS, str(error)

    @cached_property
    def _gaps(self) -> list[tuple[int, int]]:
        """The ranges of code that no function covers, without padding."""
        gaps = []
        for section in self._file.sections:
            if not section.flags & elf.CODE or section.name.startswith(".plt") or not section.size:
                continue
            at = section.start
            first = bisect.bisect_left(self._functions.starts, section.start)
            for start in self._functions.starts[first:]:
                if start >= section.end:
                    break
                if start > at:
                    gaps.append((at, start))
                at = max(at, self._functions.by_start[start].end)
            if at < section.end:
                gaps.append((at, section.end))
        padding: dict[bytes, bool] = {}
        return [(start, end) for start, end in gaps if not self._is_padding(start, end, padding)]

    def _is_padding(self, start: int, end: int, known: dict[bytes, bool]) -> bool:
        content = self._file.content(start, end - start)
        if not content.strip(b"\0"):
            return True
        if content not in known:
            decoded = list(self._decoder.disasm_lite(content, 0))
            whole = sum(size for _, size, _, _ in decoded) == len(content)
            known[content] = whole and all(_is_filler(name, words) for _, _, name, words in decoded)
        return known[content]

    @cached_property
    def _gap_digests(self) -> dict[int, str]:
        return {}

    def _gap_digest(self, start: int, end: int) -> str:
        if start not in self._gap_digests:
            try:
                text = "\n".join(self._instruction_texts(_Named("", start, end), _References()))
            except _UnreadableError:
                text = self._file.content(start, end - start).hex()
            self._gap_digests[start] = _hashed(text)
        return self._gap_digests[start]

    # Digests

    def _digest(self, piece: _Named) -> tuple[str, _References]:
        """Return the digest of a function or of named data, and what it refers to. Raises _UnreadableError."""
        if piece.start not in self._digests:
            references = _References()
            if piece.start in self._functions.by_start:
                text = "\n".join(self._instruction_texts(piece, references))
            else:
                size = piece.end - piece.start
                text = self._content(piece.start, size, references) + self._near(piece.start, size, references)
            self._digests[piece.start] = _hashed(text), references
        return self._digests[piece.start]

    def _instructions(self, start: int, end: int) -> Iterator[tuple[int, int, str, str]]:
        """Yield address, size, name and operands of each instruction. Raises _UnreadableError if one is unknown."""
        content, at = self._file.content(start, end - start), start
        for address, size, name, operands in self._decoder.disasm_lite(content, start):
            yield address, size, name, operands
            at = address + size
        if at != start + len(content) or len(content) != end - start:
            raise _UnreadableError("instructions")

    def _instruction_texts(self, piece: _Named, references: _References) -> Iterator[str]:
        pending: list[str] = []
        for address, size, name, operands in self._instructions(piece.start, piece.end):
            if not piece.sized and _is_filler(name, operands):
                # Only padding if nothing follows.
                pending.append(f"{name} {operands}")
                continue
            yield from pending
            pending = []
            if _is_branch(name) and _NUMBER.fullmatch(operands):
                to = int(operands, 0)
                inside = piece.start <= to < piece.end
                yield f"{name} {to - piece.start if inside else self._code(to, references)}"
            elif "ip" in operands and "ip" in (words := _OF_RIP.sub("", operands)):
                raise _UnreadableError("instructions")
            elif match := _OF_RIP.search(operands):
                words = _OF_RIP.sub("@", operands)
                data = self._data(_target(match, address + size), _size_of(match), piece, references)
                yield f"{name} {words} {match[1]}{match[2]} {data}"
            elif self._fixed and _ADDRESS.search(operands):
                words = _ADDRESS.sub(lambda number: self._of_number(number[0], piece, references), operands)
                yield f"{name} {words}"
            else:
                yield self._file.content(address, size).hex()

    def _of_number(self, text: str, piece: _Named, references: _References) -> str:
        """Return what a number of an instruction stands for, which may be an address."""
        section = self._file.section(int(text, 0))
        return text if section is None else f"<{self._data(int(text, 0), None, piece, references)}>"

    def _code(self, at: int, references: _References) -> str:
        piece = self._functions.at(at)
        if piece:
            if at != piece.start:
                references.functions.add(piece.start)
            # Of functions with one name, the one that is meant counts.
            which = self._shape(piece) if self._functions.count[piece.name] > 1 else ""
            return f"{piece.name}+{at - piece.start} {which}"
        section = self._file.section(at)
        if section and section.name.startswith(".plt"):
            return f"plt {self._linked(at)}"
        for start, end in self._gaps:
            if start <= at < end:
                return f"gap {_hashed(self._file.content(start, end - start).hex())}+{at - start}"
        return "padding"

    def _shape(self, piece: _Named) -> str:
        """Return a digest of a function without what it refers to except for the names of other functions."""
        if piece.start not in self._shapes:
            words = []
            for address, size, name, operands in self._instructions(piece.start, piece.end):
                if _is_branch(name) and _NUMBER.fullmatch(operands):
                    callee = self._functions.at(int(operands, 0))
                    words.append(f"{name} {callee.name if callee else ''}")
                elif "rip" in operands or self._fixed:
                    words.append(f"{name} {_OF_RIP.sub('', _ADDRESS.sub('', operands))}")
                else:
                    words.append(self._file.content(address, size).hex())
            self._shapes[piece.start] = _hashed("\n".join(words))
        return self._shapes[piece.start]

    def _linked(self, at: int) -> str:
        """Return the function of another file that a stub of the linker jumps to: ``jmp [rip + n]``."""
        content = self._file.content(at, 16)
        index = content.find(b"\xff\x25")
        if index < 0:
            raise _UnreadableError("stubs")
        place = at + index + 6 + int.from_bytes(content[index + 2 : index + 6], "little", signed=True)
        return self._slot(place, _References())

    def _slot(self, place: int, references: _References) -> str:
        """Return what the linker's table of addresses holds at a place."""
        if relocation := self._file.relocations.get(place):
            return self._pointer(relocation, references)
        word = int.from_bytes(self._file.content(place, 8), "little")
        return self._pointer(Relocation(elf.RELATIVE, word), references) if word else "null"

    def _data(self, at: int, size: int | None, inside: _Named | None, references: _References) -> str:
        """Return what is at an address; ``size`` is None if only the address is taken. Raises _UnreadableError."""
        section = self._file.section(at)
        if section is None:
            return "end" if self._file.section(at - 1) else "nowhere"
        if section.flags & elf.CODE:
            return f"code {self._code(at, references)}"
        if section.name.startswith(".got"):
            if size is None:
                # What the code then adds to it is not known.
                raise _UnreadableError("global offset table")
            return self._slot(at, references)
        piece = self._objects.at(at)
        if piece and (relocation := self._file.relocations.get(piece.start)) and relocation.kind == elf.COPY:
            return f"copy {relocation.name}+{at - piece.start}"
        if piece and self._objects.count[piece.name] == 1:
            references.data.add(piece.start)
            return f"{piece.name}+{at - piece.start}"
        if piece:
            return f"{piece.name}+{at - piece.start} {self._content(piece.start, piece.end - piece.start, references)}"
        if size is None:
            if inside and (table := self._table(at, inside, references)):
                return table
            size = self._end_of(at) - at
            return self._content(at, size, references) + self._near(at, size, references)
        return self._content(at, size, references)

    def _near(self, at: int, size: int, references: _References) -> str:
        """Return what a table of 32-bit distances to other data leads to; '' if it is none.

        LLVM makes such tables of strings. Numbers may look like distances, so they count as well.
        """
        content = self._file.content(at, min(size, 4 * _MOST_OF_TABLE)).rstrip(b"\0")
        content = content.ljust(-(-len(content) // 4) * 4, b"\0")
        targets = [at + distance for (distance,) in struct.iter_unpack("<i", content)]
        for to in targets:
            section = self._file.section(to)
            if section is None or section.flags & elf.CODE or at <= to < at + size:
                return ""
        if len(targets) < 2:
            return ""
        return f" near {[self._content(to, self._end_of(to) - to, references) for to in dict.fromkeys(targets)]}"

    def _end_of(self, at: int) -> int:
        """Return where data that begins at an address ends at the latest: where anything else begins."""
        section = self._file.section(at)
        index = bisect.bisect_right(self._anchors, at)
        end = section.end if section else at
        return min(self._anchors[index], end) if index < len(self._anchors) else end

    def _table(self, at: int, inside: _Named, references: _References) -> str:
        """Return the targets of a jump table, which holds 32-bit distances from itself to code; '' if it is none."""
        index = bisect.bisect_right(self._anchors, at)
        end = self._anchors[index] if index < len(self._anchors) else at + 4 * _MOST_OF_TABLE
        entries = []
        content = self._file.content(at, min(end - at, 4 * _MOST_OF_TABLE))
        for (distance,) in struct.iter_unpack("<i", content[: len(content) // 4 * 4]):
            to = at + distance
            piece = self._functions.at(to)
            if inside.start <= to < inside.end:
                entries.append(str(to - inside.start))
            elif piece and (entries or piece.name.startswith(inside.name)):
                entries.append(self._code(to, references))
            else:
                break
        return f"table {entries}" if len(entries) > 1 else ""

    def _pointer(self, relocation: Relocation, references: _References) -> str:
        if relocation.target is None:
            return f"{relocation.kind} {relocation.name}+{relocation.addend}"
        return self._data(relocation.target, None, None, references) if relocation.target else "null"

    def _content(self, at: int, size: int, references: _References) -> str:
        """Return data with addresses replaced by what they stand for. Raises _UnreadableError."""
        key = at, size
        if key in self._contents:
            text, inner = self._contents[key]
            references.add(inner)
            return text
        if key in self._open:
            return f"cycle {len(self._open) - self._open.index(key)}"
        if len(self._open) > _DEEPEST:
            raise _UnreadableError("deep")
        self._open.append(key)
        try:
            inner = _References()
            text = " ".join(self._parts(at, size, inner))
        finally:
            self._open.pop()
        if len(text) > _LONG:
            text = _hashed(text)
        self._contents[key] = text, inner
        references.add(inner)
        return text

    def _parts(self, at: int, size: int, references: _References) -> Iterator[str]:
        section = self._file.section(at) or self._template(at)
        if section is None or section.is_empty:
            yield f"{size} zero"
            return
        first = section.offset + at - section.start
        raw = self._file.data[first : first + min(size, section.end - at)]
        done = 0
        for place, relocation in self._pointers(at, len(raw)):
            if place - at < done:
                continue
            yield _shown(raw[max(done, 0) : place - at])
            name = self._location(raw[place - at :], relocation)
            if name:
                yield f"location {name}"
            else:
                yield f"({self._pointer(relocation, references)})"
            done = place - at + (24 if name else 8)
        yield _shown(raw[done:])

    def _template(self, at: int) -> ElfSection | None:
        for section in self._file.sections:
            if section.flags & elf.THREAD_LOCAL and section.start <= at < section.end:
                return section
        return None

    def _pointers(self, at: int, size: int) -> Iterator[tuple[int, Relocation]]:
        """Yield the places of addresses in data, in order."""
        first, last = bisect.bisect_left(self._places, at), bisect.bisect_left(self._places, at + size)
        relocated = [(place, self._file.relocations[place]) for place in self._places[first:last]]
        if not self._fixed:
            yield from relocated
            return
        known = {place for place, _ in relocated}
        plain_ones = (
            (place, Relocation(elf.RELATIVE, target))
            for place, target in self._fixed_pointers(at, size)
            if place not in known
        )
        yield from sorted([*relocated, *plain_ones], key=lambda pair: pair[0])

    def _fixed_pointers(self, at: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield (place, target) of aligned words that look like addresses."""
        first = -(-at // 8) * 8
        content = self._file.content(first, at + size - first)
        for index, (word,) in enumerate(struct.iter_unpack("<Q", content[: len(content) // 8 * 8])):
            if word >= self._lowest and self._file.section(word):
                yield first + 8 * index, word

    @cached_property
    def _lowest(self) -> int:
        return min((section.start for section in self._file.sections if section.flags & elf.ALLOCATED), default=0) or 1

    def _location(self, raw: bytes, relocation: Relocation) -> str:
        """Return the file of Rust's panic location, which is a file's name, its length, a line and a column."""
        if relocation.target is None or len(raw) < 24:
            return ""
        (length,) = struct.unpack_from("<Q", raw, 8)
        if not 3 < length < _MOST_OF_LOCATION:
            return ""
        name = self._file.content(relocation.target, length)
        return name.decode("utf-8", "replace").rsplit("/", 1)[-1] if name.endswith(b".rs") else ""


def _is_filler(name: str, operands: str) -> bool:
    words = name.split()
    return words[-1] in _PADDING or (words[-1] == "xchg" and operands == "ax, ax")


def _is_branch(name: str) -> bool:
    word = name.rsplit(" ", 1)[-1]
    return word in _BRANCHES or word.startswith("j")


def _target(match: re.Match[str], after: int) -> int:
    distance = int(match[4], 0) if match[4] else 0
    return after + (-distance if match[3] == "-" else distance)


def _size_of(match: re.Match[str]) -> int | None:
    """Return the size of an operand in memory; None if its address is taken, or if the size is not known."""
    return _SIZES.get(match[1] or "")


def _shown(raw: bytes) -> str:
    return raw.hex() if len(raw) <= _LONG else hashlib.sha256(raw).hexdigest()


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
