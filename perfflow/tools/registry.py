"""The adapters that ship with perfflow, by the word after ``uses:``, imported when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from perfflow.tools.protocol import Tool

MODULES: Mapping[str, str] = {
    "command": "perfflow.tools.command",
    "hyperfine": "perfflow.tools.hyperfine",
    "massif": "perfflow.tools.massif",
    "perf": "perfflow.tools.perf_record",
    "perf-stat": "perfflow.tools.perf_stat",
    "py-spy": "perfflow.tools.py_spy",
    "cprofile": "perfflow.tools.cprofile",
    "same-output": "perfflow.tools.same_output",
    "callgrind": "perfflow.tools.callgrind",
    "cachegrind": "perfflow.tools.cachegrind",
    "dhat": "perfflow.tools.dhat",
    "pytest-benchmark": "perfflow.tools.pytest_benchmark",
    "google-benchmark": "perfflow.tools.google_benchmark",
}


def find(name: str) -> Tool | None:
    """Return the adapter called ``name``, or None."""
    module = MODULES.get(name)
    # A module satisfies the Protocol; the registry test runs mypy's view of it over every entry.
    return cast(Tool, import_module(module)) if module else None
