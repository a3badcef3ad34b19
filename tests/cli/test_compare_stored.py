"""``perfflow compare A B`` on stored results that have to be made up. See also ``cases/compare_stored.txt``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.store.result_file import to_text
from tests.cli.shell import perfflow
from tests.imports.harness import CASES, GOLDEN, source
from tests.verdict.records import ended, judged, pairs


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case.parts[-3:]))
def test_every_format_is_compared_with_itself_or_says_why_not(case: Path, tmp_path: Path) -> None:
    path = str(source(case))
    done = perfflow("compare", path, path, "--json", cwd=tmp_path, env={"XDG_CACHE_HOME": str(tmp_path)})
    assert "Traceback" not in done.stderr
    if "error" in json.loads((case / GOLDEN).read_text()):
        assert (done.returncode, done.stdout, "hint:" in done.stderr) == (2, "", True)
        return
    assert done.returncode == 0, done.stderr
    for row in json.loads(done.stdout)["benchmarks"]:
        assert row["decision"] in ("same", "unproven", None)
        assert row["change"] is None or row["change"]["value"] == 0
        assert row["paired"] is False


@pytest.mark.parametrize(
    ("old_is_folded", "said"),
    [
        # As perfflow 0.1.0 wrote it: each value is a quartile of many, and their mean is there too.
        (True, ("compared by the mean of each process",)),
        (False, ("old.json and new.json hold different statistics", "measure old.json again to compare them")),
    ],
    ids=["a-common-mean", "nothing-in-common"],
)
def test_values_of_different_statistics_are_compared_by_a_mean_that_both_hold(
    old_is_folded: bool, said: tuple[str, ...], tmp_path: Path
) -> None:
    def store(name: str, *, is_folded: bool, **marks: str) -> None:
        """Write a result of ten values, each a summary of many if it is folded."""
        data = json.loads(to_text(judged(*pairs("b", [1.0 + 0.001 * n for n in range(10)], None), ended("b"))))
        sample = data["benchmarks"][0]["baseline"]
        if is_folded:
            reading = {"metric": "time", "benchmark": "b", **marks}
            sample["readings"] = [
                {**reading, "value": value, "inner": {"p50": value * 1.1, "mean": 2.0}} for value in sample["samples"]
            ]
        (tmp_path / name).write_text(json.dumps(data))

    store("old.json", is_folded=old_is_folded)
    store("new.json", is_folded=True, statistic="capped mean")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = perfflow("compare", "old.json", "new.json", cwd=tmp_path, env=environ)
    assert done.returncode == (0 if old_is_folded else 3), done.stderr
    assert all(text in done.stdout + done.stderr for text in said)
    if old_is_folded:
        (row,) = json.loads(perfflow("compare", "old.json", "new.json", "--json", cwd=tmp_path, env=environ).stdout)[
            "benchmarks"
        ]
        assert (row["statistic"], row["change"]["value"]) == ("mean", 0.0)
