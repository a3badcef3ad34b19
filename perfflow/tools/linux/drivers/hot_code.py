"""Disassemble the functions with samples in a recording of perf, and print them as JSON.

    python hot_code.py PERF RECORDING > hot-code.json

`functions[]` has an entry for each function with at least 1% of the samples (at most 40): `name` as perf prints it,
`file` (the executable or library), `machine`, `addresses` (address in the file -> samples), `sources` (address ->
[function, file:line] of inlined frames, innermost first) and `listing`, the lines of objdump. `elsewhere[]` counts all
other samples: [place, reason, samples]. On failure the JSON is `{"error": REASON}` and the exit status 1.

A bare interpreter runs this file, so it uses only the standard library.
"""

# ruff: noqa: D102, D103

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FIELDS = "pid,tid,time,event,ip,sym,symoff,dso"
LEAST, MOST = 0.01, 40
"""The smallest share of samples of a disassembled function, and the largest number of such functions."""
BEYOND, AROUND, LONGEST = 16_384, 4096, 4_194_304
"""Bytes after the last sample, around a sample without a symbol, and at most from a function's start to a sample."""
LINES = 20_000
SECONDS = 120
MACHINES = {3: "x86", 62: "x86", 183: "aarch64"}
ELF = {b"\x7fELF\1\1": ("<18xH8xI10xHH", "<III4xI"), b"\x7fELF\2\1": ("<18xH12xQ14xHH", "<I4xQQ8xQ")}
"""Formats by the first bytes of a file, for 32 and 64 bits: of the header (machine, offset, entry size and number of
entries of the segment table), and of a table entry (kind, offset, address and length)."""
RECORD = "PERF_RECORD_"
"""Beginning of a line, after the time, that is not a sample."""
UNKNOWN = "places in files that are not known"
_HEAD = re.compile(r"\s*(?P<pid>-?\d+)/-?\d+\s+\d+\.\d+:\s+(?P<rest>.*)")
_MMAP = re.compile(
    r"PERF_RECORD_MMAP2? (?P<pid>-?\d+)/-?\d+: \[0x(?P<start>[0-9a-f]+)\(0x(?P<size>[0-9a-f]+)\) @ "
    r"(?:0x)?(?P<offset>[0-9a-f]+)[^\]]*\]: \S+ (?P<file>.*)"
)
_SAMPLE = re.compile(r"(?:\d+\s+)?(?P<event>\S+):\s+(?P<ip>[0-9a-f]+) (?P<place>.* \(.*\))\Z")
_SYMBOL = re.compile(r"(?P<name>.*)\+0x(?P<offset>[0-9a-f]+)\Z")
_NO_FILE = re.compile(r"[^/]|//|/memfd:|/dev/|/SYSV|/tmp/perf-\d+\.map|.*\(deleted\)")
_MODULE = re.compile(r"\.ko(?:\.\w+)?\Z")
_LABEL = re.compile(r"[0-9a-f]+ <.*>:\s*\Z")
_INSTRUCTION = re.compile(r"\s*[0-9a-f]+:\s")


class HopelessError(Exception):
    """The recording cannot be analysed; the text is the reason."""


def main() -> None:
    try:
        found = hot_code(sys.argv[1], sys.argv[2])
    except (HopelessError, OSError, subprocess.SubprocessError) as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        sys.exit(1)
    sys.stdout.write(json.dumps(found, indent=0) + "\n")


def hot_code(perf: str, recording: str) -> dict[str, Any]:
    objdump = next(filter(None, map(shutil.which, ("objdump", "llvm-objdump"))), "")
    if not objdump:
        raise HopelessError("neither objdump nor llvm-objdump is on PATH; install one: apt-get install binutils")
    require_whole(Path(recording))
    samples = Samples()
    argv = [perf, "script", "-i", recording, "-F", FIELDS, "--no-inline", "--show-mmap-events"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, encoding="utf-8", errors="replace") as child:
        for line in child.stdout or ():
            samples.take(line.rstrip("\n"))
    if child.returncode:
        raise HopelessError(f"perf script exited with {child.returncode}")
    total = sum(samples.events.values())
    functions: list[dict[str, Any]] = []
    ranked = sorted(samples.places.items(), key=lambda item: (-item[1].total(), item[0].file, item[0].name))
    for where, addresses in ranked:
        why = ""
        if addresses.total() < LEAST * total or len(functions) == MOST:
            why = "functions of few samples each"
        elif where.machine not in MACHINES.values():
            why = "code that is neither x86 nor AArch64"
        elif where.is_bounded and max(addresses) - where.start > LONGEST:
            why = "functions of more than 4 MiB"
        if why:
            samples.elsewhere[where.file, why] += addresses.total()
        else:
            functions.append(told(objdump, where, addresses))
    return {
        "samples": total,
        "events": samples.events,
        "functions": functions,
        "elsewhere": [[file, why, count] for (file, why), count in sorted(samples.elsewhere.items())],
    }


def require_whole(recording: Path) -> None:
    """Raise HopelessError for a truncated file, which perf reads without a message.

    The header is documented in Linux' tools/perf/Documentation/perf.data-file-format.txt.
    """
    with recording.open("rb") as stream:
        header = stream.read(104)
        size = os.fstat(stream.fileno()).st_size
        if len(header) < 104 or header[:8] != b"PERFILE2":
            raise HopelessError(f"{recording.name} is not a recording of perf")
        offset, length = struct.unpack_from("<QQ", header, 40)
        features = sum(bits.bit_count() for bits in struct.unpack_from("<4Q", header, 72))
        stream.seek(min(offset + length, size))
        table = stream.read(16 * features)
    # After the data is a table with the offset and size of each feature.
    ends = [offset + length, *(sum(pair) for pair in struct.iter_unpack("<QQ", table[: len(table) // 16 * 16]))]
    if not length or len(table) < 16 * features or max(ends) > size:
        raise HopelessError(f"{recording.name} is cut short")


class Image:
    """An ELF file: its machine, and its loadable segments as (offset, size, address)."""

    def __init__(self, path: str) -> None:
        self.machine, self.segments = "", list[tuple[int, int, int]]()
        with contextlib.suppress(OSError, struct.error, KeyError), Path(path).open("rb") as stream:
            header = stream.read(64)
            fields, entry = ELF[header[:6]]
            machine, table, size, count = struct.unpack_from(fields, header)
            stream.seek(table)
            entries = [struct.unpack_from(entry, stream.read(size)) for _ in range(count)]
            self.machine = MACHINES.get(machine, "other")
            self.segments = [(offset, length, address) for kind, offset, address, length in entries if kind == 1]

    def address(self, offset: int) -> int | None:
        """Return the file's own address of the byte at an offset, None if no segment contains it."""
        return next((at + offset - start for start, size, at in self.segments if start <= offset < start + size), None)


class Place(NamedTuple):
    """A function as perf prints it, with its start in a file; without a symbol a range around samples."""

    file: str
    name: str
    start: int
    is_bounded: bool
    machine: str


class Samples:
    """The samples in the output of perf script, collected line by line."""

    def __init__(self) -> None:
        self.events = Counter[str]()
        self.elsewhere = Counter[tuple[str, str]]()
        self.images = dict[str, Image]()
        self.maps = defaultdict[str, list[tuple[str, int, int, int]]](list)
        self.places = defaultdict[Place, Counter[int]](Counter)

    def take(self, line: str) -> None:
        if not line:
            return
        head = _HEAD.match(line)
        if head and head["rest"].startswith(RECORD):
            self.map(head["rest"])
            return
        sample = _SAMPLE.match(head["rest"]) if head else None
        if not head or not sample:
            raise HopelessError(f"perf script prints what is not a sample: {line[:80]!r}")
        self.events[sample["event"]] += 1
        # `f(int)+0x3 (/usr/lib/x.so)` is split before the name of a mapped file, since both parts may have parentheses.
        place = sample["place"]
        parts = [(place[: at.start()], place[at.end() : -1]) for at in re.finditer(r" \(", place)]
        symbol, file = next((part for part in parts if part[1] in self.maps), parts[-1])
        address, why = self._address(head["pid"], int(sample["ip"], 16), file)
        if address is None:
            self.elsewhere[file, why] += 1
            return
        named = _SYMBOL.match(symbol)
        # Samples without a symbol are grouped by ranges of addresses.
        begin = address - int(named["offset"], 16) if named else address // AROUND * AROUND
        where = Place(file, named["name"] if named else "", begin, bool(named), self.images[file].machine)
        self.places[where][address] += 1

    def map(self, record: str) -> None:
        """Remember where a process mapped a file, if the record of perf says so."""
        if mapped := _MMAP.match(record):
            start, size, offset = (int(mapped[key], 16) for key in ("start", "size", "offset"))
            self.maps[mapped["file"]].append((mapped["pid"], start, size, offset))

    def located_in(self, pid: str, ip: int, file: str) -> tuple[str, int] | None:
        """Return a file and the address in it of an address of a process; None if its place is not known."""
        address, _ = self._address(pid, ip, file)
        return None if address is None else (file, address)

    def located(self, file: str, offset: int) -> tuple[str, int] | None:
        """Return a file and the address in it of the byte at an offset; None if the file cannot be read."""
        address = None if self._unreadable(file) else self.images[file].address(offset)
        return None if address is None else (file, address)

    def _unreadable(self, file: str) -> str:
        """Return why a file, as named by perf, cannot be disassembled; '' if it can."""
        if _MODULE.search(file) or (file.startswith("[") and "kernel" in file):
            return "the kernel"
        if file.startswith("["):
            return f"memory without a file ({file})"
        if _NO_FILE.match(file):
            return "code that was made while it ran, or whose file was removed"
        if file not in self.images:
            self.images[file] = Image(file)
        return "" if self.images[file].segments else "files that are no readable ELF"

    def _address(self, pid: str, ip: int, file: str) -> tuple[int | None, str]:
        """Return the address in a file for an address of a process, or None and the reason.

        Mappings of a parent are valid for its children as well.
        """
        if why := self._unreadable(file):
            return None, why
        around = [item for item in self.maps.get(file, ()) if item[1] <= ip < item[1] + item[2]]
        found = [item for item in around if item[0] == pid] or around
        return self.images[file].address(ip - found[-1][1] + found[-1][3]) if found else None, UNKNOWN


def told(objdump: str, where: Place, addresses: Counter[int]) -> dict[str, Any]:
    first = where.start if where.is_bounded else max(0, (min(addresses) & ~15) - AROUND)
    last = max(addresses) + (BEYOND if where.is_bounded else AROUND)
    argv = [objdump, "-d", "--no-show-raw-insn", f"--start-address={first:#x}", f"--stop-address={last:#x}", where.file]
    return {
        "name": where.name,
        "file": where.file,
        "machine": where.machine,
        "addresses": {f"{address:x}": count for address, count in sorted(addresses.items())},
        "sources": sources(where.file, sorted(addresses)),
        "listing": list(listing(argv, max(addresses) if where.is_bounded else None)),
    }


def listing(argv: list[str], last: int | None) -> Iterator[str]:
    """Yield the lines of a disassembly; with ``last``, the function's last sample, only up to the next function."""
    labels = lines = 0
    done = subprocess.run(argv, capture_output=True, timeout=SECONDS, check=False)
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if _LABEL.match(line):
            labels += 1
            if last is not None and labels > 1 and int(line.split()[0], 16) > last:
                return
        elif _INSTRUCTION.match(line) and lines < LINES:
            lines += 1
            yield line.rstrip()


def sources(file: str, addresses: list[int]) -> dict[str, list[list[str]]]:
    """Return the function and place of each inlined frame at the addresses, innermost first, from debug information."""
    program = next(filter(None, map(shutil.which, ("addr2line", "llvm-addr2line"))), "")
    if not program:
        return {}
    asked = "".join(f"{address:#x}\n" for address in addresses)
    argv = [program, "-a", "-i", "-f", "-C", "-e", file]
    try:
        done = subprocess.run(argv, input=asked.encode(), capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {}
    # After each address, functions and their places alternate.
    _, *blocks = re.split(r"^0x([0-9a-f]+)\n", done.stdout.decode("utf-8", "replace"), flags=re.MULTILINE)
    found: dict[str, list[list[str]]] = {}
    for at, text in zip(blocks[::2], blocks[1::2], strict=True):
        for name, place in re.findall(r"(.+)\n(.*)\n", text):
            if not place.startswith("??") and not place.endswith((":0", ":?")):
                found.setdefault(f"{int(at, 16):x}", []).append([name, place.partition(" (discriminator")[0]])
    return found


if __name__ == "__main__":
    main()
