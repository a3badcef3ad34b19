"""Turn every recording of memray in a folder into JSON: ``python memray_stats.py FOLDER ROWS``.

``memray.bin`` becomes ``stats.json``, and ``memray.bin.PID`` of a forked child ``stats.PID.json``, each with the ROWS
places that allocate most, by ``memray stats``, and ``perfflow_heap``, the bytes held every 10 ms. ``peak.json`` and
``peak.PID.json`` contain the memory held at the peak: ``rows`` of a thread, bytes, and frames as function, file and
line, the allocating one first. A truncated recording, such as that of a killed child, is an error.

Run by the measured interpreter, whose memray made the recordings: standard library and memray only.
"""

# ruff: noqa: PTH118, PTH123, PTH208

from __future__ import annotations

import json
import os
import sys

from memray import FileReader
from memray.commands import main as memray

folder, rows = sys.argv[1:]
for name in sorted(os.listdir(folder)):
    base, _, process = name.partition(".bin")
    if base == "memray":
        recording, target = os.path.join(folder, name), os.path.join(folder, f"stats{process}.json")
        if status := memray(["stats", "--json", "-f", "-n", rows, "-o", target, recording]):
            sys.exit(status)
        with open(target, encoding="utf-8") as stream:
            stats = json.load(stream)
        with FileReader(recording) as reader:
            moments = [{"ms": item.time, "heap": item.heap} for item in reader.get_memory_snapshots()]
            records = reader.get_high_watermark_allocation_records(merge_threads=False)
            held = [(each.thread_name or f"thread {each.tid}", each.size, each.stack_trace()) for each in records]
        with open(target, "w", encoding="utf-8") as stream:
            json.dump({**stats, "perfflow_heap": moments}, stream)
        with open(os.path.join(folder, f"peak{process}.json"), "w", encoding="utf-8", errors="replace") as stream:
            json.dump({"rows": held}, stream)
