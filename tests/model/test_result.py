"""result.json: its keys, its numbers, and rejected content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.store.result_file import read, to_text
from tests.verdict.records import criteria, ended, judged, pairs, planned

KEYS = {
    "run": {"id", "workflow", "component", "started", "finished", "seed"},
    "gate": {"name", "status"},
    "trees": {"baseline", "candidate"},
}
ROWS = {
    "steps": {"id", "stage", "tree", "tool", "status", "reason", "seconds", "argv", "exit_code", "warnings"},
    "benchmarks": {
        *("name", "step", "tool", "metric", "statistic", "unit", "better", "confidence", "baseline", "candidate"),
        *("change", "speedup", "decision", "level", "gating", "pairs", "more", "warnings"),
    },
    "targets": {"benchmark", "metric", "statistic", "requirement", "measured", "low", "high", "unit", "status"},
    "profiles": {"step", "benchmark", "tree", "path", "sha256"},
    "hotspots": {
        *("rank", "step", "benchmark", "tree", "location", "file", "line", "share", "unit", "source", "cause"),
        "impact",
    },
    "verification": {"id", "status", "detail"},
}
OTHERS = {"schema", "verdict", "evidence", "machine", "trees"}
LATER = {"optimizations", "recommendations", "confirmations", "routes"}
SPOT = {"location": "f", "share": 0.5, "unit": "time", "source": "perf", "tree": "baseline"}
PROFILE = {"tree": "baseline", "path": "steps/p/x", "kind": "perf.data", "sha256": "0" * 64}


@pytest.fixture
def result() -> Result:
    steps = [planned("b"), planned("p", role="profile"), planned("t", role="check", benchmark="")]
    return judged(
        *pairs("b", [1.0] * 10, [0.5] * 10),
        ended("b"),
        ended("p", hotspots=[SPOT], profiles=[PROFILE]),
        ended("t", detail="all the same"),
        steps=steps,
        wanted=criteria({"b": {"time": "<2s"}}),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "result.json"


def test_every_key_of_the_contract_is_there(result: Result) -> None:
    data = json.loads(to_text(result))
    assert set(data) >= set(KEYS) | set(ROWS) | OTHERS | LATER
    assert data["schema"] == "perfflow.result/2"
    for name, keys in (KEYS | ROWS).items():
        items = data[name] if name in ROWS else [data[name]]
        assert items, name
        assert all(set(item) >= keys for item in items), name
    row = data["benchmarks"][0]
    assert all(set(row[side]) >= {"value", "low", "high", "n", "samples"} for side in ("baseline", "candidate"))
    assert all(set(row[name]) == {"value", "low", "high"} for name in ("change", "speedup"))


def test_numbers_that_are_not_finite_are_null_everywhere(tmp_path: Path) -> None:
    events = pairs("b", [0.0], [5.0], metric="allocs")
    found = judged(*events, ended("b"), params={"limit": float("inf"), "list": [float("nan")]})
    text = to_text(found)
    data = json.loads(text)
    assert data["benchmarks"][0]["change"]["value"] is None
    assert data["run"]["params"] == {"limit": None, "list": [None]}
    assert "Infinity" not in text
    assert "NaN" not in text


def test_it_reads_back_as_it_was_without_keys_of_a_later_version(result: Result, path: Path) -> None:
    path.write_text(to_text(result))
    assert read(path) == result
    data = json.loads(to_text(result))
    data["later"] = 1
    data["benchmarks"][0]["later"] = [1]
    path.write_text(json.dumps(data))
    assert read(path) == result


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_a_clear_error(result: Result, path: Path, share: float) -> None:
    text = to_text(result)
    path.write_text(text[: int(len(text) * share)])
    with pytest.raises(UserError, match="not a result of perfflow"):
        read(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((b'{"name": "package", "version": "1.0.0"}', "schema"), (b'{"schema": "perfflow.result/3"}', "schema")),
        *((content, "not a result of perfflow") for content in (b"[1, 2]", b"null", b"\xff\xfe\x00", b"[" * 100_000)),
    ],
)
def test_files_of_another_kind_are_a_clear_error(path: Path, content: bytes, said: str) -> None:
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("damage", [{}, {"targets": 1}, {"metrics": {"x": {}}}, {"targets": [{}]}])
def test_damaged_criteria_are_a_clear_error(result: Result, path: Path, damage: dict[str, object]) -> None:
    data = json.loads(to_text(result))
    data["criteria"] = {**data["criteria"], **damage} if damage else {}
    path.write_text(json.dumps(data))
    with pytest.raises(UserError, match="criteria cannot be read"):
        read(path)


def test_a_missing_file_and_a_folder_are_a_clear_error(path: Path) -> None:
    for place in (path, path.parent):
        with pytest.raises(UserError, match=str(place)):
            read(place)


def test_readings_travel_where_values_have_more_to_them() -> None:
    inner = {"p50": 1.0, "p99": 2.0, "n": 3.0}
    found = judged(*pairs("b", [1.0], None, inner=inner), ended("b"))
    side = found.benchmarks[0].baseline
    assert side
    assert side.readings == [{"metric": "time", "value": 1.0, "inner": inner}]
