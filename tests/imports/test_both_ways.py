"""What a tool left is read alike where a step ran it and where the file is compared with another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.tools.read_file import read
from tests.tools.harness import DATA, USAGE, call_of, tool

FILES = {
    "hyperfine": "hyperfine.json",
    "google-benchmark": "google-benchmark.json",
    "pytest-benchmark": "benchmark.json",
    "pyperf": "pyperf.json",
}
CASES = [
    case
    for name, file in FILES.items()
    for case in sorted(DATA.glob(f"{name}/*/*"))
    if (case / file).is_file() and not (case / "parsed.json").read_text().startswith('{\n "error"')
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(DATA)))
def test_a_file_gives_the_same_readings_both_ways(case: Path) -> None:
    name = case.relative_to(DATA).parts[0]
    options = {"stmt": "sum(values)"} if case.name == "stmt" else {}
    measured = tool(name).parse(call_of(name, case, "/usr/bin/true", **options), USAGE)
    compared = read(case / FILES[name]).parsed(single=name in ("hyperfine", "google-benchmark"))
    # A command and a statement are named by the step that measures them.
    named_by_step = name == "hyperfine" or "stmt" in options
    readings = [replace(item, benchmark="") if named_by_step else item for item in compared.readings]
    assert list(measured.readings) == readings
    assert measured.failed == compared.failed
    assert readings
