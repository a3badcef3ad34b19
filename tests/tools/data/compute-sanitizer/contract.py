from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.tools.harness import tool

HERE = Path(__file__).parent


class TestComputeSanitizer(AdapterContract):
    adapter = tool("compute-sanitizer")
    samples = HERE / "2026.4-documentation" / "clean"
    captured = HERE
    command = ["/bin/true"]
    captured_with = {
        "races": {"check": "racecheck"},
        "race-warnings": {"check": "racecheck"},
        "leaks": {"leaks": True},
    }
    stand_in = "/opt/cuda/bin/compute-sanitizer"
