"""Settings that make a machine quieter, changed on request, and put back exactly as they were, also after a crash.

What was there is written to a file before anything is changed. A second ``fix`` adds to that file and never replaces
what it says, so the original is what ``restore`` puts back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from perfflow.errors import UserError

WANTED: Mapping[str, str] = {
    "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "sys/devices/system/cpu/cpufreq/boost": "0",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/perf_event_paranoid": "1",
}
"""Globs of files below the root, and the value each gets."""
STATE = Path("/var/lib/perfflow/tuning.json")


def fix(root: Path = Path("/"), state: Path = STATE) -> list[tuple[Path, str, str]]:
    """Set every wanted value that differs; return (file, before, after). Raises UserError without the right to."""
    changes = [
        (path, before, wanted)
        for pattern, wanted in WANTED.items()
        for path in sorted(root.glob(pattern))
        if (before := path.read_text(encoding="utf-8").strip()) != wanted
    ]
    if changes:
        _remember({str(path): before for path, before, _ in changes}, state)
        for path, _, wanted in changes:
            _set(path, wanted)
    return changes


def restore(state: Path = STATE) -> list[tuple[Path, str]]:
    """Put back what ``fix`` found; return (file, value). Without a remembered state there is nothing to do."""
    originals = _read(state)
    for name, value in originals.items():
        _set(Path(name), value)
    state.unlink(missing_ok=True)
    return [(Path(name), value) for name, value in originals.items()]


def _remember(found: Mapping[str, str], state: Path) -> None:
    known = {**found, **_read(state)}
    fresh = state.with_suffix(".new")
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        fresh.replace(state)
    except OSError as error:
        raise UserError.of(f"{state}: {error.strerror}", "run it as root: sudo perfflow doctor --fix") from error


def _read(state: Path) -> dict[str, str]:
    try:
        text = state.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError.of(f"{state}: {error.strerror}", "run it as root: sudo perfflow doctor --restore") from error
    try:
        known = json.loads(text)
    except ValueError as error:
        raise UserError.of(f"{state}: damaged, so what was there is not known", "remove it once checked") from error
    return {str(name): str(value) for name, value in known.items()} if isinstance(known, dict) else {}


def _set(path: Path, value: str) -> None:
    try:
        path.write_text(value, encoding="utf-8")
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", "run it as root, on the machine itself") from error
