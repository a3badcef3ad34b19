"""Facts about the machine: stable ones that identify it, and its load when the run started.

``outside`` keeps programs inside a project off the PATH, because perfflow must not run them while it only reads the
project.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import psutil

IDENTITY = ("cpu", "cores", "caches", "memory_gib", "system", "kernel_series", "architecture", "virtual")
"""Facts that must be equal for two runs to be comparable. Load and frequency are not included."""


def facts() -> dict[str, Any]:
    """Return the machine's facts, with ``identity`` (a short hash of the stable ones) and the current load."""
    known: dict[str, Any] = {
        "cpu": _cpu_model(),
        "cores": psutil.cpu_count() or 0,
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "caches": _caches(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.system(),
        "kernel_series": ".".join(platform.release().split(".")[:2]),
        "architecture": platform.machine(),
        "virtual": _virtual(),
        "python": platform.python_version(),
    }
    stable = json.dumps([known[name] for name in IDENTITY])
    known["identity"] = hashlib.sha256(stable.encode()).hexdigest()[:16]
    known["load"] = [round(value, 2) for value in psutil.getloadavg()]
    return known


def _cpu_model() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith(("model name", "Hardware", "Model")):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _caches() -> list[str]:
    """Return the cache sizes from sysfs, such as ``L2 1024K Unified``."""
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, size, kind = (_text(str(index / name)).strip() for name in ("level", "size", "type"))
        if size:
            found.append(f"L{level} {size} {kind}")
    return found


def _virtual() -> bool | None:
    """Return whether the processor reports a hypervisor; None if it reports no flags."""
    text = _text("/proc/cpuinfo")
    return " hypervisor" in text if "flags" in text else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def lies_in(place: str, folder: Path | None) -> bool:
    """Return whether a path is in ``folder`` or leads there; a relative path always counts as inside."""
    if not os.path.isabs(place):  # noqa: PTH117 (an empty entry of a PATH is not a path)
        return True
    if folder is None:
        return False
    real = os.path.realpath(folder)
    return any(Path(path).is_relative_to(real) for path in (os.path.normpath(place), os.path.realpath(place)))


def outside(path: str, folder: Path | None) -> str:
    """Return the entries of a PATH that are not in ``folder``, without relative and empty ones."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if not lies_in(entry, folder))
