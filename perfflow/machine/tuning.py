"""Change settings on request to make a machine quieter, and restore them exactly, also after a crash.

The original values are on disk before anything is changed. A second ``fix`` adds to that file and never replaces
values, so ``restore`` always writes the originals. Values that it could not restore stay in the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfflow.machine.noise_findings import chosen, read
from perfflow.model.errors import UserError

WANTED: Mapping[str, str] = {
    "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "sys/devices/system/cpu/cpufreq/boost": "0",
    "sys/kernel/mm/transparent_hugepage/enabled": "madvise",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/perf_event_paranoid": "1",
}
"""Globs of files below the root, and the value for each. Cores are never disabled: that would be another machine."""
_ALSO_FINE: Mapping[str, tuple[str, ...]] = {
    "sys/kernel/mm/transparent_hugepage/enabled": ("never",),
    "proc/sys/kernel/perf_event_paranoid": ("0", "-1"),
}
STATE = Path("/var/lib/perfflow/tuning.json")
_AS_ROOT = "run it as root, on the machine itself: sudo perfflow doctor"


def wanted(root: Path = Path("/")) -> list[tuple[Path, str, str]]:
    """Return (file, value, wanted value) of each setting that makes this machine noisy. Changes nothing."""
    return [
        (path, before, after)
        for pattern, after in WANTED.items()
        for path in sorted(root.glob(pattern))
        # A value that cannot be read (the governor of a core that is off) could not be restored.
        if (before := chosen(read(path))) not in ("", after, *_ALSO_FINE.get(pattern, ()))
    ]


def fix(changes: Sequence[tuple[Path, str, str]], state: Path = STATE) -> None:
    """Make the changes that ``wanted`` returned. Raises UserError if a value cannot be set."""
    if changes:
        _remember({**{str(path): before for path, before, _ in changes}, **_remembered(state)}, state)
    failed = [said for path, _, after in changes if (said := _set(path, after))]
    if failed:
        raise UserError.of("; ".join(failed), f"{_AS_ROOT} --fix (--restore undoes the values that were set)")


def restore(state: Path = STATE) -> list[tuple[Path, str]]:
    """Restore the values from before ``fix``; return (file, value). Empty if there is no state file.

    Raises UserError with the values that could not be restored, which stay in the state file.
    """
    originals = _remembered(state)
    failed = {name: said for name, value in originals.items() if (said := _set(Path(name), value))}
    if failed:
        _remember({name: originals[name] for name in failed}, state)
        raise UserError.of("; ".join(failed.values()), f"{_AS_ROOT} --restore")
    if originals:
        state.unlink()
    return [(Path(name), value) for name, value in originals.items()]


def _remember(known: Mapping[str, str], state: Path) -> None:
    fresh = state.with_suffix(".new")
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(known, indent=1) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(state)
    except OSError as error:
        raise UserError.of(f"{state}: {error.strerror}", f"{_AS_ROOT} --fix") from error


def _remembered(state: Path) -> dict[str, str]:
    try:
        text = state.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError.of(f"{state}: {error.strerror}", f"{_AS_ROOT} --restore") from error
    damaged = UserError.of(f"{state}: damaged, so the original values are unknown", f"check it, then: sudo rm {state}")
    try:
        known = json.loads(text)
    except ValueError as error:
        raise damaged from error
    if not isinstance(known, dict):
        raise damaged
    return {str(name): str(value) for name, value in known.items()}


def _set(path: Path, value: str) -> str:
    """Write one value; return '' or why it failed."""
    try:
        path.write_text(value, encoding="utf-8")
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""
