"""Every result file under data/ is read as exactly its golden ``parsed.json``, and as a step reads it.

A file that differs is left as ``.got`` beside the golden one; to accept it, rename it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.tools.read_file import read
from tests.imports.harness import CASES, DATA, GOLDEN, TOOLS, check_sane, shown, source
from tests.tools.harness import DATA as OF_STEPS
from tests.tools.harness import USAGE, call_of, tool
from tests.tools.test_odd_suites import FILES

LEFT = [
    case
    for name, file in FILES.items()
    for case in sorted(OF_STEPS.glob(f"{name}/*/*"))
    if name != "timeit" and (case / file).is_file() and '{\n "error"' not in (case / "parsed.json").read_text()
]


def _read(case: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(case)
    try:
        imported = read(Path(source(case).name))
    except UserError as error:
        return json.dumps({"error": str(error).splitlines()}, indent=1, ensure_ascii=False) + "\n"
    check_sane(imported)
    return shown(imported)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.relative_to(DATA)))
def test_golden(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got = _read(case, monkeypatch)
    golden, left = case / GOLDEN, case / f"{GOLDEN}.got"
    left.unlink(missing_ok=True)
    wanted = golden.read_text() if golden.exists() else ""
    if got != wanted:
        left.write_text(got)
    assert got == wanted


def test_every_tool_has_a_case() -> None:
    assert {case.relative_to(DATA).parts[0] for case in CASES} == set(TOOLS)


@pytest.mark.parametrize("case", LEFT, ids=lambda case: str(case.relative_to(OF_STEPS)))
def test_a_file_gives_the_same_readings_both_ways(case: Path) -> None:
    name = case.relative_to(OF_STEPS).parts[0]
    options = {"stmt": "sum(values)"} if case.name == "stmt" else {}
    measured = tool(name).parse(call_of(name, case, "/usr/bin/true", **options), USAGE)
    compared = read(case / FILES[name]).parsed(single=name in ("hyperfine", "google-benchmark", "asv"))
    # A command and a statement are named by the step that measures them.
    named_by_step = name == "hyperfine" or "stmt" in options
    readings = [replace(item, benchmark="") if named_by_step else item for item in compared.readings]
    assert list(measured.readings) == readings
    assert measured.failed == compared.failed
    assert readings


@pytest.mark.parametrize("case", sorted(OF_STEPS.glob("cargo-bench/[0-9]*/*")), ids=lambda case: f"{case.parts[-2:]}")
def test_criterion_gives_the_same_readings_both_ways(case: Path) -> None:
    measured = tool("cargo-bench").parse(call_of("cargo-bench", case), USAGE).readings
    compared = [item for home in (case / "criterion").iterdir() for item in read(home).parsed().readings]
    assert measured
    # A step knows benchmarks as they are listed, with the executable where it must.
    without_names = [sorted(repr(replace(item, benchmark="")) for item in found) for found in (measured, compared)]
    assert without_names[0] == without_names[1]


@pytest.mark.parametrize("case", ["plain", "processors", "verbose", "failed"])
def test_go_gives_the_same_from_its_text_and_from_its_events(case: str, tmp_path: Path) -> None:
    text = DATA / "go" / "1.26.8" / case / "bench.txt"
    lines = text.read_text().splitlines(keepends=True)
    package = next(line.split()[1] for line in lines if line.startswith("pkg:"))
    # As test2json does, with a result in two events.
    pieces = [piece for line in lines for piece in (line[:12], line[12:]) if piece]
    events = [json.dumps({"Action": "output", "Package": package, "Output": piece}) + "\n" for piece in pieces]
    (tmp_path / "bench.json").write_text("".join(events))
    assert read(tmp_path / "bench.json") == read(text)
