"""Small SQLite reports of Nsight Systems: built from the documented schema, or reduced from a real one.

python -m tests.tools.nsys.databases REAL.sqlite SMALL.sqlite
"""

# ruff: noqa: S608 (names of tables are those above)

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent
REAL = HERE / "2022.4.2.sqlite"
PLANTED = "TOKEN=planted-in-the-environment"
_EVENT = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
_NAMED = ("demangledName", "shortName", "mangledName", "launchType", "registersPerThread")
_GRID = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory")
_GPU = ["vmId", "id", "name", "memoryBandwidth", "clockRate", "smCount", "cuDevice", "computeMajor", "computeMinor"]
_NVTX = ["start", "end", "eventType", "rangeId", "text", "globalTid", "textId", "domainId"]
COLUMNS: Mapping[str, Sequence[str]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": [*_EVENT, *_NAMED, *_GRID],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [*_EVENT, "bytes", "copyKind", "srcKind", "dstKind"],
    "CUPTI_ACTIVITY_KIND_MEMSET": ["start", "end", "deviceId", "streamId", "value", "bytes"],
    "CUPTI_ACTIVITY_KIND_RUNTIME": ["start", "end", "eventClass", "globalTid", "correlationId", "nameId"],
    "NVTX_EVENTS": _NVTX,
    "OSRT_API": ["start", "end", "eventClass", "globalTid", "nameId"],
    "ThreadNames": ["nameId", "priority", "globalTid"],
    "TARGET_INFO_GPU": _GPU,
    "StringIds": ["id", "value"],
    "TARGET_INFO_SYSTEM_ENV": ["name", "value"],
}
NEWER = {"CUPTI_ACTIVITY_KIND_KERNEL": "greenContextId", "CUPTI_ACTIVITY_KIND_MEMCPY": "copyCount"}
"""A column of each table that 2022.4 does not have."""
FACTS = {"2022.4": "EXPORT_META_DATA", "2025.3": "META_DATA_EXPORT"}
STRINGS = {1: "void saxpy<float>(int, float *)", 2: "saxpy", 3: "transpose", 4: "cudaLaunchKernel_v7000", 5: "cuInit"}
STRINGS |= {6: "cudaMemcpy_v3020", 7: "poll", 8: PLANTED}
Rows = Sequence[Mapping[str, object]]


def kernel(start: int, end: int | None, name: int = 1, **others: object) -> dict[str, object]:
    """Return a launch of ``saxpy``, or of the kernel whose name has that number."""
    launch = {"registersPerThread": 24, "gridX": 256, "gridY": 1, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1}
    names = {"demangledName": name, "shortName": 2}
    shared = {"staticSharedMemory": 0, "dynamicSharedMemory": 0}
    return {"start": start, "end": end, "deviceId": 0, "streamId": 7, **launch, **names, **shared, **others}


SAXPY: Mapping[str, Rows] = {
    # Two streams overlap from 1500 to 2000 and the copy ends where nothing else runs: 1000..2500 and 3000..3500.
    "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1000, 2000), kernel(1500, 2500, streamId=8), kernel(1600, 1700, 3, gridX=8)],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [{"start": 3000, "end": 3500, "deviceId": 0, "bytes": 4000, "copyKind": 1}],
    "CUPTI_ACTIVITY_KIND_MEMSET": [{"start": 2400, "end": 2450, "deviceId": 0, "bytes": 64}],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [
        # cuInit within cudaLaunchKernel: 40 of its 100 ns.
        {"start": 900, "end": 1000, "eventClass": 0, "globalTid": 1, "nameId": 4},
        {"start": 930, "end": 970, "eventClass": 1, "globalTid": 1, "nameId": 5},
        {"start": 1100, "end": 3600, "eventClass": 0, "globalTid": 1, "nameId": 6},
    ],
    "NVTX_EVENTS": [
        {"start": 800, "end": 4000, "eventType": 59, "text": "step", "globalTid": 1, "domainId": 0},
        {"start": 850, "end": None, "eventType": 34, "text": "mark", "globalTid": 1, "domainId": 0},
        {"start": 700, "end": None, "eventType": 75, "text": "CCCL", "globalTid": 1, "domainId": 1},
        {"start": 3700, "end": 3800, "eventType": 59, "textId": 3, "globalTid": 1, "domainId": 1},
    ],
    "OSRT_API": [
        {"start": 0, "end": 0, "eventClass": 31, "globalTid": 2, "nameId": 7},
        {"start": 0, "end": 5000, "eventClass": 27, "globalTid": 2, "nameId": 7},
    ],
    "TARGET_INFO_GPU": [
        {
            "id": 3, "cuDevice": 0, "name": "Model GPU", "memoryBandwidth": 320_000_000_000, "clockRate": 1_590_000_000,
            "smCount": 40, "computeMajor": 7, "computeMinor": 5,
        }
    ],
    "TARGET_INFO_SYSTEM_ENV": [{"name": "DeviceEnvironment", "value": PLANTED}],
}  # fmt: skip


def build(path: Path, tables: Mapping[str, Rows] = SAXPY, version: str = "2025.3") -> Path:
    """Write a database with the tables, the strings and the metadata of a version."""
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA page_size = 512")
        made.execute(f"CREATE TABLE {FACTS[version]} (name TEXT, value TEXT)")
        made.execute(f"INSERT INTO {FACTS[version]} VALUES ('EXPORT_PRODUCT_VERSION', ?)", (f"{version}.1",))
        named = [{"id": number, "value": text} for number, text in STRINGS.items()]
        for table, rows in {"StringIds": named, **tables}.items():
            newer = [NEWER[table]] if version == "2025.3" and table in NEWER else []
            columns = [*COLUMNS.get(table, ("start", "end")), *newer]
            made.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            values = [[row.get(column) for column in columns] for row in rows]
            made.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        made.commit()
    return path


def cut_down(source: Path, target: Path) -> None:
    """Copy the tables that are read and their strings, with only the version as metadata."""
    kept = ("NVTX_EVENTS", "OSRT_API")
    with closing(sqlite3.connect(target)) as made:
        made.execute("PRAGMA page_size = 512")
        made.execute("ATTACH ? AS real", (str(source),))
        for table in kept:
            made.execute(f"CREATE TABLE {table} AS SELECT * FROM real.{table}")
        facts = "SELECT * FROM real.EXPORT_META_DATA WHERE name LIKE 'EXPORT_PRODUCT%' OR name LIKE '%SCHEMA%'"
        made.execute(f"CREATE TABLE EXPORT_META_DATA AS {facts}")
        named = "SELECT nameId FROM OSRT_API UNION SELECT textId FROM NVTX_EVENTS"
        made.execute(f"CREATE TABLE StringIds AS SELECT * FROM real.StringIds WHERE id IN ({named})")
        made.commit()


if __name__ == "__main__":
    cut_down(Path(sys.argv[1]), Path(sys.argv[2]))
