"""What a tool left is read alike where a step ran it and where the file is compared with another."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.model.readings import Reading
from perfflow.tools.read_file import read
from tests.imports.harness import DATA as FOREIGN
from tests.tools.harness import DATA, USAGE, call_of, tool

FILES = {
    "hyperfine": "hyperfine.json",
    "google-benchmark": "google-benchmark.json",
    "pytest-benchmark": "benchmark.json",
    "pyperf": "pyperf.json",
    "asv": "asv.json",
}
CASES = [
    case
    for name, file in FILES.items()
    for case in sorted(DATA.glob(f"{name}/*/*"))
    if (case / file).is_file() and not (case / "parsed.json").read_text().startswith('{\n "error"')
]
CRATES = sorted(DATA.glob("cargo-bench/[0-9]*/*"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(DATA)))
def test_a_file_gives_the_same_readings_both_ways(case: Path) -> None:
    name = case.relative_to(DATA).parts[0]
    options = {"stmt": "sum(values)"} if case.name == "stmt" else {}
    measured = tool(name).parse(call_of(name, case, "/usr/bin/true", **options), USAGE)
    compared = read(case / FILES[name]).parsed(single=name in ("hyperfine", "google-benchmark", "asv"))
    # A command and a statement are named by the step that measures them.
    named_by_step = name == "hyperfine" or "stmt" in options
    readings = [replace(item, benchmark="") if named_by_step else item for item in compared.readings]
    assert list(measured.readings) == readings
    assert measured.failed == compared.failed
    assert readings


@pytest.mark.parametrize(
    "case", sorted(DATA.glob("cargo-bench/[0-9]*/*")), ids=lambda case: str(case.relative_to(DATA))
)
def test_criterion_gives_the_same_readings_both_ways(case: Path) -> None:
    measured = tool("cargo-bench").parse(call_of("cargo-bench", case), USAGE).readings
    homes = sorted((case / "criterion").iterdir())
    assert _figures(measured) == _figures(item for home in homes for item in read(home).parsed().readings)
    assert measured


def _figures(readings: Iterable[Reading]) -> list[str]:
    """Readings without their names: a step knows benchmarks as they are listed, with the executable where it must."""
    return sorted(repr(replace(item, benchmark="")) for item in readings)


@pytest.mark.parametrize("case", ["plain", "processors", "verbose", "failed"])
def test_go_gives_the_same_from_its_text_and_from_its_events(case: str, tmp_path: Path) -> None:
    text = FOREIGN / "go" / "1.26.8" / case / "bench.txt"
    lines = text.read_text().splitlines(keepends=True)
    package = next(line.split()[1] for line in lines if line.startswith("pkg:"))
    # As test2json does, with a result in two events.
    pieces = [piece for line in lines for piece in (line[:12], line[12:]) if piece]
    events = [json.dumps({"Action": "output", "Package": package, "Output": piece}) + "\n" for piece in pieces]
    (tmp_path / "bench.json").write_text("".join(events))
    assert read(tmp_path / "bench.json") == read(text)
