"""Findings about noise, and readers of the kernel's files. A value that cannot be read is unknown, never ok."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class FindingState(StrEnum):
    """What a fact means for measuring."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class NoiseFinding:
    """One finding about noise: the value, its meaning, and a command that would improve it ('' if there is none)."""

    name: str
    value: str
    state: FindingState
    why: str = ""
    remedy: str = ""


def read(path: Path) -> str:
    """Return the text of a file, '' if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def unknown(name: str, why: str = "") -> NoiseFinding:
    """Return a finding about a value that cannot be read here."""
    return NoiseFinding(name, "unknown", FindingState.UNKNOWN, why)


def expected(name: str, value: str, good: Mapping[str, str], why: str, remedy: str = "") -> NoiseFinding:
    """Return ok if the value is a key of ``good`` (shown as its value there), unknown if it is '', else a warning."""
    if not value:
        return unknown(name)
    if value in good:
        return NoiseFinding(name, good[value], FindingState.OK)
    return NoiseFinding(name, value, FindingState.WARN, why, remedy)


def is_virtual(root: Path) -> bool | None:
    """Return whether the processor reports a hypervisor; None if it reports no flags."""
    text = read(root / "proc/cpuinfo")
    return " hypervisor" in text if "flags" in text else None


def chosen(text: str) -> str:
    """Return the selected value of a file such as ``always [madvise] never``, or the whole value without brackets."""
    return text.partition("[")[2].partition("]")[0] if "[" in text else text.strip()
