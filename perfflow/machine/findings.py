"""One fact about noise, and how the kernel's files are read: what cannot be read is unknown, never ok."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from perfflow.model.later import dataclass


class State(StrEnum):
    """What a fact means for measuring."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """One fact about noise: what was seen, what it means, and the command that would improve it ('' where none can)."""

    name: str
    value: str
    state: State
    why: str = ""
    remedy: str = ""


def read(path: Path) -> str:
    """The text of a file, '' where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def unknown(name: str, why: str = "") -> Finding:
    """What cannot be seen here."""
    return Finding(name, "unknown", State.UNKNOWN, why)


def expected(name: str, value: str, good: Mapping[str, str], why: str, remedy: str = "") -> Finding:
    """Ok where the value is one of ``good`` (shown as that says), unknown where there is none, else a warning."""
    if not value:
        return unknown(name)
    if value in good:
        return Finding(name, good[value], State.OK)
    return Finding(name, value, State.WARN, why, remedy)


def is_virtual(root: Path) -> bool | None:
    """Whether the processor says that a hypervisor is present; None where it does not tell."""
    text = read(root / "proc/cpuinfo")
    return " hypervisor" in text if "flags" in text else None


def chosen(text: str) -> str:
    """The choice among those of a file such as ``always [madvise] never``; of a plain value that value."""
    return text.partition("[")[2].partition("]")[0] if "[" in text else text.strip()
