"""Reader of Nsight Systems reports as SQLite (``nsys export --type sqlite``), with the schemas of 2022 to 2025.

A table exists only if the report has such events, and columns differ from version to version, so both are looked up.
The tables with the environment, the processes and the output are not read. The file can come from anybody: it is opened
read-only, and only plain tables are queried.

Schema: "SQLite Schema Reference" of the Nsight Systems User Guide.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import repeat
from pathlib import Path
from urllib.parse import quote

from perfflow.model.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.nvidia.nsys_report import Covered, NamedSums, NsysReport, ProfiledGpu, Threads

MOST_EVENTS = 10_000_000
"""The most events of one table. Larger profiles are rejected."""
_LONGEST_VALUE = 1 << 24
_MAGIC = b"SQLite format 3\0"
# ENUM_NSYS_EVENT_CLASS: marks of the profiler's own begin and end, among the calls of the operating system.
_OWN_MARKS = (31, 32)
_PUSHED, _STARTED, _DOMAIN = (59, 70), (60, 71), 75
# https://docs.nvidia.com/nsight-systems/UserGuide/index.html#cuda-copykind-enum
_COPY_KINDS = "unknown HtoD DtoH HtoA AtoH AtoA AtoD DtoA DtoD HtoH PtoP unified-HtoD unified-DtoH unified-DtoD"
_COPIES = dict(enumerate(_COPY_KINDS.split()))
_LAUNCH = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread")
_SHARED = ("staticSharedMemory", "dynamicSharedMemory")
_GPU = ("cuDevice", "id", "name", "memoryBandwidth", "smCount", "clockRate", "computeMajor", "computeMinor")
Event = tuple[int, int, tuple[object, ...]]
"""Start and end in ns, and further columns."""


def read(path: Path) -> NsysReport:
    """Sum the events of a report. Raises ToolOutputError if it is truncated, damaged, too large or not a report."""
    _check_whole(path)
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return _NsysSqliteReader(path.name, connection).report()
    except (sqlite3.Error, OverflowError) as error:
        raise ToolOutputError(f"{path.name} is damaged or not a report: {tool_files.clean_name(str(error))}") from error


def _check_whole(path: Path) -> None:
    """Raise ToolOutputError if it is not an SQLite file, or shorter than its header says (sqlite.org/fileformat)."""
    with path.open("rb") as stream:
        head, size = stream.read(100), stream.seek(0, 2)
    if len(head) < 100 or not head.startswith(_MAGIC):
        raise ToolOutputError(f"{path.name} is not an SQLite file: export it by `nsys export --type sqlite`")
    page = int.from_bytes(head[16:18], "big")
    if size < (65536 if page == 1 else page) * int.from_bytes(head[28:32], "big"):
        raise ToolOutputError(f"{path.name} is cut short")


class _NsysSqliteReader:
    """Reads one file."""

    def __init__(self, file: str, connection: sqlite3.Connection) -> None:
        self._file, self._connection = file, connection
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        self._tables = self._plain_tables()
        self._string, self._launch = cache(self._read_string), cache(self._read_launch)
        self._without_end = 0

    def report(self) -> NsysReport:
        """Read every relevant table."""
        version = self._version()
        kernels, memory, devices = self._on_devices()
        api, ranges, threads = self._on_threads()
        system, calls = NamedSums(nested=True), Threads()
        for start, end, (thread, name, kind) in self._events("OSRT_API", ("globalTid", "nameId", "eventClass")):
            if kind not in _OWN_MARKS:
                calls.add(thread, start, end, system, self._string(name))
        notes = (f"{self._without_end:,} events without an end are left out",) if self._without_end else ()
        parts = kernels.rows(), memory.rows(), api.rows(), ranges.rows(), system.rows()
        return NsysReport(*parts, devices, float(threads.length), version, notes, threads.folded)

    def _plain_tables(self) -> dict[str, set[str]]:
        """Return the columns of each table, without views and virtual tables, which could run other code."""
        query = (
            "SELECT made.name, have.name FROM sqlite_master AS made, pragma_table_info(made.name) AS have "
            "WHERE made.type = 'table' AND made.sql LIKE 'CREATE TABLE%' LIMIT 100000"
        )
        found: dict[str, set[str]] = {}
        for table, column in self._connection.execute(query):
            found.setdefault(str(table), set()).add(str(column))
        return found

    def _has(self, table: str, *columns: str) -> bool:
        return set(columns) <= self._tables.get(table, set())

    def _version(self) -> str:
        """Return the version of the exporter. Raises ToolOutputError for a database of another program."""
        for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
            if self._has(table, "name", "value"):
                query = f"SELECT value FROM {table} WHERE name = 'EXPORT_PRODUCT_VERSION'"  # noqa: S608 (constants)
                row = self._connection.execute(query).fetchone()
                return tool_files.clean_name(str(row[0])) if row else ""
        if "StringIds" not in self._tables:
            raise ToolOutputError(
                f"{self._file} is not a report of Nsight Systems: it has no table META_DATA_EXPORT and no StringIds"
            )
        return ""

    def _on_devices(self) -> tuple[NamedSums, NamedSums, tuple[ProfiledGpu, ...]]:
        """Return the kernels, the copies and memsets, and the GPUs with the time that these cover on each."""
        kernels, memory, covered = NamedSums(), NamedSums(sized=True), dict[int, Covered]()
        sources = {
            "CUPTI_ACTIVITY_KIND_KERNEL": ("deviceId", "demangledName", "shortName", *_LAUNCH, *_SHARED),
            "CUPTI_ACTIVITY_KIND_MEMCPY": ("deviceId", "bytes", "copyKind"),
            "CUPTI_ACTIVITY_KIND_MEMSET": ("deviceId", "bytes"),
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ("deviceId", "graphId"),
        }
        streams = [zip(repeat(table), self._events(table, columns)) for table, columns in sources.items()]
        for table, (start, end, (number, about, *more)) in heapq.merge(*streams, key=lambda item: item[1][0]):
            device = self._whole(number or 0, "deviceId")
            covered.setdefault(device, Covered(start)).add(start, end)
            if table.endswith("KERNEL"):
                name, *launch = more
                kernels.add(self._string(name if about is None else about), end - start, launch=self._launch(*launch))
            elif table.endswith("GRAPH_TRACE"):
                kernels.add(f"CUDA graph {self._whole(about or 0, 'graphId')}", end - start)
            else:
                copied = self._whole(more[0] or 0, "copyKind") if more else None
                kind = "memset" if copied is None else f"memcpy {_COPIES.get(copied, f'kind {copied}')}"
                memory.add(f"[CUDA {kind}]", end - start, self._whole(about or 0, "bytes"))
        return kernels, memory, tuple(self._devices(covered))

    def _read_launch(self, *values: object) -> str:
        """Return how a kernel was launched, as far as this version reports it."""
        sizes = [None if value is None else self._whole(value, "launch") for value in values]
        *shape, registers, static, dynamic = sizes
        grid, block = ("x".join(map(str, sides)) for sides in (shape[:3], shape[3:]))
        shared, part = (static or 0) + (dynamic or 0), f" ({dynamic} B dynamic)" if dynamic else ""
        words = [f"grid {grid}, block {block}"] if None not in shape else []
        words += [f"{registers} registers"] if registers is not None else []
        words += [f"{shared} B shared{part}"] if shared else []
        return ", ".join(words)

    def _on_threads(self) -> tuple[NamedSums, NamedSums, Threads]:
        """Return CUDA calls and NVTX ranges, which nest on a thread. Start/end ranges do not, and have no own time."""
        # The name with the highest priority wins.
        order = "priority" if self._has("ThreadNames", "priority") else "rowid"
        names = {
            thread: self._string(name) for thread, name in self._select("ThreadNames", ("globalTid", "nameId"), order)
        }
        api, ranges, threads = NamedSums(nested=True), NamedSums(nested=True), Threads(names)
        domains = self._domains()
        calls = self._events("CUPTI_ACTIVITY_KIND_RUNTIME", ("globalTid", "nameId"))
        texts = self._events("NVTX_EVENTS", ("globalTid", "textId", "text", "eventType", "domainId"), ends=False)
        for start, end, (thread, number, *more) in heapq.merge(calls, texts, key=lambda event: (event[0], -event[1])):
            if not more:
                threads.add(thread, start, end, api, _call(self._string(number)))
                continue
            text, kind, domain = more
            name = domains.get(domain, "") + (self._string(number) if number is not None else str(text or "?"))
            if kind in _PUSHED:
                threads.add(thread, start, end, ranges, tool_files.clean_name(name))
            elif kind in _STARTED:
                ranges.add(tool_files.clean_name(name), end - start)
        return api, ranges, threads

    def _domains(self) -> dict[object, str]:
        """Return the names of NVTX domains, as prefixes of the names of ranges."""
        if not self._has("NVTX_EVENTS", "domainId", "text", "eventType"):
            return {}
        query = "SELECT domainId, text FROM NVTX_EVENTS WHERE eventType = ? LIMIT 10000"
        return {number: f"{text}:" for number, text in self._connection.execute(query, (_DOMAIN,)) if text}

    def _devices(self, covered: dict[int, Covered]) -> Iterator[ProfiledGpu]:
        """Yield the GPUs on which something ran, with the driver's data about them."""
        known = {number if own is None else own: about for own, number, *about in self._select("TARGET_INFO_GPU", _GPU)}
        for number, times in sorted(covered.items()):
            name, bandwidth, multiprocessors, clock, major, minor = known.get(number, (None,) * 6)
            about = [f"compute capability {major}.{minor}"] if major is not None else []
            about += [f"{multiprocessors} SMs"] if multiprocessors else []
            about += [f"{clock / 1e6:g} MHz at most"] if isinstance(clock, int) and clock > 0 else []
            speed = float(bandwidth) if isinstance(bandwidth, int) and bandwidth > 0 else None
            yield ProfiledGpu(f"{name or 'GPU'} ({number})", times.busy, times.span, speed, ", ".join(about))

    def _events(self, table: str, columns: Sequence[str], *, ends: bool = True) -> Iterator[Event]:
        """Yield the events of a table by start, the longer first. ``ends``: count events without an end."""
        if table in self._tables and not self._has(table, "start", "end"):
            raise ToolOutputError(
                f"{self._file}: {table} has no times; perfflow does not support this version's tables"
            )
        rows = self._select(table, ("start", "end", *columns), "start, end DESC")
        for number, (start, end, *values) in enumerate(rows):
            if number >= MOST_EVENTS:
                many = f"{self._file} contains more than {MOST_EVENTS:,} events in {table}"
                raise ToolOutputError(f"{many}: profile less with `duration` or `capture-range`")
            if not isinstance(start, int) or not isinstance(end, int | None):
                raise ToolOutputError(f"{self._file} is damaged: an event of {table} has no times")
            if end is None or end < start:
                self._without_end += ends
            elif end - start >= 2**62:
                raise ToolOutputError(f"{self._file} is damaged: an event of {table} takes 146 years")
            else:
                yield start, end, tuple(values)

    def _select(self, table: str, columns: Sequence[str], order: str = "rowid") -> Iterator[tuple[object, ...]]:
        """Return the rows of a table, with None for columns that this version lacks; no rows without the table."""
        if table not in self._tables:
            return iter(())
        there = [f'"{column}"' if self._has(table, column) else "NULL" for column in columns]
        # All names of tables and columns are constants of this module.
        return self._connection.execute(f"SELECT {', '.join(there)} FROM {table} ORDER BY {order}")  # noqa: S608

    def _read_string(self, number: object) -> str:
        query = "SELECT value FROM StringIds WHERE id = ?"
        has_any = self._has("StringIds", "id", "value")
        row = self._connection.execute(query, (number,)).fetchone() if has_any else None
        return tool_files.clean_name(str(row[0])) if row else f"name {number}"

    def _whole(self, value: object, what: str) -> int:
        if not isinstance(value, int) or not 0 <= value < 2**62:
            raise ToolOutputError(f"{self._file} is damaged: {what} is {ascii(value)[:40]}")
        return value


def _call(name: str) -> str:
    """Return a call's name without the version of its interface, ``cudaLaunchKernel_v7000``."""
    stem, _, version = name.rpartition("_v")
    return stem if stem and len(version) >= 4 and version.isdecimal() else name
