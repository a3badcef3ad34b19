"""The captured result files, and what must hold of anything read from one."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

from perfflow.tools.read_file import ResultSet

DATA = Path(__file__).parent / "data"
GOLDEN = "parsed.json"
TOOLS = [
    "asv",
    "benchmark-dotnet",
    "criterion",
    "go",
    "google-benchmark",
    "hyperfine",
    "k6",
    "pyperf",
    "pytest-benchmark",
]
CASES = sorted(folder for folder in DATA.glob("*/*/*") if folder.is_dir() and folder.parts[-3] in TOOLS)


def source(case: Path) -> Path:
    """Return the one file or folder of a case that a tool wrote."""
    (found,) = (entry for entry in case.iterdir() if not entry.name.startswith(GOLDEN))
    return found


def shown(imported: ResultSet) -> str:
    """Return what was read as JSON, for a golden file."""
    content: dict[str, object] = {
        "tool": imported.tool,
        "version": imported.version,
        "machine": dict(imported.machine),
        "warnings": imported.warnings,
        "benchmarks": {f"{name} | {metric}": values for (name, metric), values in imported.benchmarks.items()},
    }
    others = {
        "started": imported.started,
        "facts": dict(imported.facts),
        "failed": dict(imported.failed),
        "metrics": {name: f"{metric.dimension.value} {metric.better}" for name, metric in imported.metrics.items()},
        "summaries": {f"{name} | {metric}": asdict(item) for (name, metric), item in imported.summaries.items()},
        "versions": dict(imported.versions),
        "batches": {f"{name} | {metric}": count for (name, metric), count in imported.batches.items()},
    }
    content |= {name: value for name, value in others.items() if value}
    lines = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return lines + "\n"


def check_sane(imported: ResultSet) -> None:
    """Assert what everything read must keep, however strange the file was."""
    assert imported.benchmarks
    for (name, metric), values in imported.benchmarks.items():
        assert name
        assert metric
        assert values
        assert all(math.isfinite(value) and 0 <= value < 2.0**63 for value in values)
        assert metric != "time" or all(values)
    texts = [imported.tool, imported.version, *imported.machine.values(), *imported.warnings]
    assert all(text.isprintable() for text in [*texts, *(part for key in imported.benchmarks for part in key)])
    shown(imported).encode()
