"""``perfflow compare A B`` on stored results, end to end: arguments, output and errors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow, write
from tests.imports.harness import CASES, DATA, GOLDEN, source
from tests.verdict.records import criteria, ended, judged, pairs, planned


def compare(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = perfflow("compare", *arguments, cwd=folder, env={"XDG_CACHE_HOME": str(folder / "cache")})
    assert "Traceback" not in done.stderr
    assert done.returncode != 70, done.stderr
    return done.returncode, done.stdout, done.stderr


def stored(folder: Path, name: str, edit: Callable[[dict[str, Any]], None] | None = None, **keys: Any) -> str:
    """A run's result.json with one benchmark ``b`` of ten values, changed by ``edit``."""
    from perfflow.store.result_file import to_text

    data = json.loads(to_text(judged(*pairs("b", [1.0 + 0.001 * n for n in range(10)], None), ended("b"), **keys)))
    if edit:
        edit(data)
    (folder / name).write_text(json.dumps(data))
    return name


def exported(folder: Path, name: str, **commands: list[float]) -> str:
    """Return hyperfine's JSON for these times."""
    results = [{"command": command, "times": times} for command, times in commands.items()]
    (folder / name).write_text(json.dumps({"results": results}))
    return name


SLOW, FAST = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98], [0.5, 0.51, 0.49, 0.5, 0.52, 0.48]


def test_two_real_hyperfine_exports_of_one_command_each(tmp_path: Path) -> None:
    for name, command in (("old", "sleep 0.01"), ("new", "sleep 0.02")):
        words = ["hyperfine", "-N", "--runs", "8", "--export-json", f"{name}.json", command]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    status, stdout, stderr = compare(tmp_path, "old.json", "new.json")
    assert status == 0, stderr
    # Whether the change is proven depends on the load of the machine, so only exports of fixed times are judged.
    assert "old.json → new.json   unpaired: 1 " in stdout
    assert "`sleep 0.01` is compared with `sleep 0.02`: each side has only this one benchmark" in stdout
    assert "PASS" not in stdout
    assert "review:gate:perf" not in stdout


def test_a_run_saved_as_a_baseline_against_another_run_and_judged_again(tmp_path: Path) -> None:
    write(tmp_path, "stages:\n  baseline:\n    - {id: nap, uses: command, runs: 6, with: {command: sleep 0.01}}\n")
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 0
    assert perfflow("baseline", "save", "main", cwd=tmp_path).returncode == 0
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 0
    status, stdout, stderr = compare(tmp_path, "main", "latest", "--json", "--out", "out")
    assert status == 0, stderr
    result = json.loads(stdout)
    assert {row["paired"] for row in result["benchmarks"]} == {False}
    assert not any(row["gating"] for row in result["benchmarks"])
    assert any(row["leading"] for row in result["benchmarks"])
    assert "apart; drift between sessions" in " ".join(result["run"]["warnings"])
    again = perfflow("report", "out", "--json", cwd=tmp_path)
    assert again.returncode == 0
    assert again.stdout == stdout == (tmp_path / "out" / "result.json").read_text()
    report = (tmp_path / "out" / "report.md").read_text()
    assert f"perfflow compare main {(tmp_path / '.perfflow/runs/latest').resolve().name}\n" in report
    assert "seed" not in report


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case.parts[-3:]))
def test_every_format_is_compared_with_itself_or_says_why_not(case: Path, tmp_path: Path) -> None:
    path = str(source(case))
    usable = "error" not in json.loads((case / GOLDEN).read_text())
    status, stdout, stderr = compare(tmp_path, path, path, "--json")
    if not usable:
        assert status == 2
        assert stdout == ""
        assert "hint:" in stderr
        return
    assert status == 0, stderr
    for row in json.loads(stdout)["benchmarks"]:
        assert row["decision"] in ("same", "unproven", None)
        assert row["change"] is None or row["change"]["value"] == 0
        assert row["paired"] is False


def test_the_decision_table_and_the_page(tmp_path: Path) -> None:
    old = exported(tmp_path, "old.json", a=SLOW, b=SLOW, c=SLOW)
    new = exported(tmp_path, "new.json", a=FAST, b=SLOW, c=[value * 2 for value in SLOW])
    status, stdout, _ = compare(tmp_path, "--json", old, new)
    assert status == 0
    decisions = {row["name"]: row["decision"] for row in json.loads(stdout)["benchmarks"]}
    # Six values per side with 3 times the standard error prove a factor of two, but cannot exclude 5%.
    assert decisions == {"a": "improved", "b": "unproven", "c": "regressed"}
    _, shown, _ = compare(tmp_path, old, new)
    assert "unpaired: 1 improved, 1 unproven, 1 regressed; nothing is judged" in shown


@pytest.mark.parametrize(
    ("new", "fails"),
    [([value * 2 for value in SLOW], True), ([value * 1.11 for value in SLOW], False), (FAST, False)],
)
def test_nothing_is_judged_and_a_flag_makes_what_is_proven_fail(tmp_path: Path, new: list[float], fails: bool) -> None:
    words = exported(tmp_path, "o.json", a=SLOW), exported(tmp_path, "n.json", a=new)
    status, stdout, _ = compare(tmp_path, "--json", *words, "--out", "out")
    result = json.loads(stdout)
    assert (status, result["verdict"], result["gate"]) == (0, None, None)
    status, stdout, _ = compare(tmp_path, "--fail-on", "regressed", *words)
    assert status == (1 if fails else 0)
    assert ("regressed: a time +100%" in stdout) == fails
    again = perfflow("report", "out", cwd=tmp_path)
    assert again.returncode == 0
    assert "PASS" not in again.stdout + (tmp_path / "out/report.md").read_text()
    assert perfflow("export", "out", "--out", "files", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "files/check_run.json").read_text()) == []
    assert "review:gate:perf" not in "".join(path.read_text() for path in (tmp_path / "files").iterdir())


def test_what_commands_are_judged_by_is_not_for_failing_on(tmp_path: Path) -> None:
    status, _, stderr = compare(tmp_path, "--fail-on", "regressed", "--", "true", "true")
    assert status == 2
    assert "--fail-on applies only to stored results" in stderr


def test_a_benchmark_that_is_gone_is_an_error_and_a_new_one_is_not(tmp_path: Path) -> None:
    both, one = exported(tmp_path, "2.json", a=SLOW, b=SLOW), exported(tmp_path, "1.json", a=SLOW)
    status, stdout, _ = compare(tmp_path, both, one)
    assert status == 3
    assert "no longer measured: b time" in stdout
    assert "perf: a" not in stdout
    status, stdout, _ = compare(tmp_path, one, both, "--json")
    assert status == 0
    result = json.loads(stdout)
    assert {row["name"]: row["decision"] for row in result["benchmarks"]}["b"] == "new"
    assert result["evidence"] == []


def test_nothing_in_common_names_both_lists(tmp_path: Path) -> None:
    old, new = exported(tmp_path, "o.json", a=SLOW, b=SLOW), exported(tmp_path, "n.json", c=SLOW, d=SLOW)
    status, stdout, stderr = compare(tmp_path, old, new)
    assert (status, stdout) == (3, "")
    assert "o.json has a, b; n.json has c, d" in stderr


def test_too_few_values_are_unproven(tmp_path: Path) -> None:
    old, new = exported(tmp_path, "o.json", a=[1.0]), exported(tmp_path, "n.json", a=[9.0, 9.1])
    status, stdout, _ = compare(tmp_path, "--json", old, new)
    assert status == 0
    (row,) = json.loads(stdout)["benchmarks"]
    assert (row["decision"], row["change"]) == ("unproven", None)
    assert "raise the number of runs" in " ".join(row["warnings"])


def test_another_machine_is_refused_unless_asked_for(tmp_path: Path) -> None:
    def move(data: dict[str, Any]) -> None:
        data["machine"] |= {"cpu": "Other\x1b[31m", "cores": 64, "identity": "f" * 16}

    here, there = stored(tmp_path, "here.json"), stored(tmp_path, "there.json", move)
    status, stdout, stderr = compare(tmp_path, here, there)
    assert (status, stdout) == (2, "")
    assert "cpu: Processor and Other" in stderr
    assert "cores: 2 and 64" in stderr
    assert "--across-machines" in stderr
    assert "\x1b" not in stderr
    assert not (tmp_path / "cache").exists()
    status, stdout, _ = compare(tmp_path, here, there, "--across-machines")
    assert status == 0
    assert "unpaired, across machines: 1 same; nothing is judged" in stdout
    assert "(unpaired, across machines)" in stdout
    assert "\x1b" not in stdout


def test_other_tools_tell_of_the_machine_too(tmp_path: Path) -> None:
    plain = json.loads(source(DATA / "pyperf" / "2.10.0" / "time").read_text())
    plain["metadata"]["cpu_count"] = 96
    (tmp_path / "moved.json").write_text(json.dumps(plain))
    same = str(source(DATA / "pyperf" / "2.10.0" / "time"))
    status, _, stderr = compare(tmp_path, same, "moved.json")
    assert status == 2
    assert "cores: 2 and 96" in stderr
    assert compare(tmp_path, same, "moved.json", "--across-machines")[0] == 0


def test_a_machine_that_is_not_known_is_a_warning(tmp_path: Path) -> None:
    status, stdout, _ = compare(tmp_path, exported(tmp_path, "o.json", b=SLOW), stored(tmp_path, "n.json"))
    assert status == 0
    assert "no machine in o.json" in stdout


def test_other_data_are_never_compared(tmp_path: Path) -> None:
    old = stored(tmp_path, "old.json", lambda data: data.update(data={"in.txt": "1", "same.txt": "2"}))
    new = stored(tmp_path, "new.json", lambda data: data.update(data={"in.txt": "3", "same.txt": "2"}))
    for flags in ([], ["--across-machines"]):
        status, stdout, stderr = compare(tmp_path, old, new, *flags)
        assert (status, stdout) == (2, "")
        assert "different data: in.txt\n" in stderr


def test_data_that_are_not_known_are_a_warning(tmp_path: Path) -> None:
    new = stored(tmp_path, "new.json", lambda data: data.update(data={"in.txt": "3"}))
    silent = stored(tmp_path, "silent.json", lambda data: data.update(data={}))
    older = stored(tmp_path, "older.json", lambda data: data.pop("data"))
    foreign = exported(tmp_path, "foreign.json", b=SLOW)
    warning = "the input data of {} is not known"
    for name, other, warned in (
        (older, new, True),
        (older, silent, True),
        (silent, new, True),
        (foreign, new, True),
        (foreign, silent, False),
        (silent, silent, False),
    ):
        status, stdout, _ = compare(tmp_path, name, other)
        assert status == 0
        assert (warning.format(name) in stdout) is warned


def test_the_candidate_side_of_a_run_counts_and_its_targets_do_not(tmp_path: Path) -> None:
    from perfflow.store.result_file import to_text

    wanted = criteria({"b": {"time": "<1ms"}}, concern=0.2, action=0.3)
    run = judged(*pairs("b", [1.0] * 10, [2.0 + n / 100 for n in range(10)]), ended("b"), wanted=wanted)
    (tmp_path / "run.json").write_text(to_text(run))
    status, stdout, _ = compare(tmp_path, stored(tmp_path, "one.json"), "run.json", "--json")
    assert status == 0
    result = json.loads(stdout)
    (row,) = result["benchmarks"]
    assert row["candidate"]["samples"][0] == 2.0
    assert result["targets"] == []
    assert result["criteria"]["thresholds"]["action"] == 0.3


def test_an_exact_figure_is_compared_and_does_not_gate(tmp_path: Path) -> None:
    from perfflow.store.result_file import to_text

    for name, value in (("old.json", 100.0), ("new.json", 200.0)):
        run = judged(*pairs("b", [value], None, metric="cache_misses", exact=True), ended("b"))
        (tmp_path / name).write_text(to_text(run))
    status, stdout, _ = compare(tmp_path, "old.json", "new.json", "--json")
    assert status == 0
    (row,) = json.loads(stdout)["benchmarks"]
    assert (row["decision"], row["level"], row["gating"]) == ("regressed", "action", False)


def test_a_metric_defined_otherwise_is_left_out(tmp_path: Path) -> None:
    from perfflow.model.metrics import Better, Metric
    from perfflow.model.units import Dimension
    from perfflow.store.result_file import to_text

    for name, better in (("old.json", Better.LOWER), ("new.json", Better.HIGHER)):
        metric = Metric("score", Dimension.COUNT, better)
        events = [*pairs("b", [1.0] * 6, None), *pairs("b", [5.0] * 6, None, metric="score")]
        run = judged(*events, ended("b"), wanted=criteria(metrics=[metric]), steps=[planned("b")])
        (tmp_path / name).write_text(to_text(run))
    status, stdout, _ = compare(tmp_path, "old.json", "new.json", "--json")
    assert status == 0
    result = json.loads(stdout)
    assert [row["metric"] for row in result["benchmarks"]] == ["time"]
    assert any("in different units or directions: score" in text for text in result["run"]["warnings"])


def test_hostile_names_break_no_page(tmp_path: Path) -> None:
    name = "a\x1b[31m|`@x\u202e</td>\n# b"
    old = exported(tmp_path, "o.json", **{name: SLOW, "b": SLOW})
    new = exported(tmp_path, "n.json", **{name: FAST, "b": SLOW})
    status, stdout, _ = compare(tmp_path, old, new, "--out", "out")
    assert status == 0
    report = (tmp_path / "out" / "report.md").read_text()
    for text in (stdout, report):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "\n# b" not in report


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("old.json", "none.json"), "none.json: No such file"),
        (("cut.json", "old.json"), "cut.json: the file is cut short or not valid JSON"),
        (("old.json", "empty"), "empty: "),
        (("old.json", "mian"), "'mian' is not a baseline, a run or a result file"),
        (("old.json", "sleep 1"), "commands go after a `--`"),
        (("text.py", "text.py"), "perfflow reads those of: hyperfine"),
        (("text.py", "text.py"), "commands go after a `--`"),
        (("old.json", "old.json", "old.json"), "two commands or two stored results, not 3"),
        (("old.json", "old.json", "--runs", "3"), "--runs applies only to commands"),
        (("--across-machines", "--", "true", "true"), "--across-machines applies only to stored results"),
        (("own.json", "old.json"), "own.json: not a result of perfflow"),
        (("latest", "old.json"), "'latest' is not a baseline, a run or a result file"),
        (("x" * 5000, "old.json"), "is not a baseline, a run or a result file"),
    ],
)
def test_what_cannot_be_compared_says_why(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    exported(tmp_path, "old.json", a=SLOW)
    assert perfflow("baseline", "save", "main", "old.json", cwd=tmp_path).returncode == 0
    (tmp_path / "cut.json").write_text('{"results": [')
    (tmp_path / "own.json").write_text('{"schema": "perfflow.result/2"}')
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.py").write_text("print()")
    status, stdout, stderr = compare(tmp_path, *words)
    assert (status, stdout) == (2, ""), stderr
    assert said in stderr
    assert "hint: " in stderr


def test_what_could_be_meant_is_listed(tmp_path: Path) -> None:
    old = exported(tmp_path, "old.json", a=SLOW)
    perfflow("baseline", "save", "main", old, cwd=tmp_path)
    _, _, stderr = compare(tmp_path, old, "mian")
    assert "did you mean 'main'? baselines: main; runs: none" in stderr


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"./{name}"


def test_a_program_that_is_there_is_a_command(tmp_path: Path) -> None:
    words = [program(tmp_path, name, "sleep 0.01") for name in ("old", "new")]
    status, stdout, stderr = compare(tmp_path, "--json", "--runs", "6", *words)
    assert status in (0, 1, 4), stderr
    assert json.loads(stdout)["steps"][0]["tool"] == "command"


def test_after_dashes_words_are_commands_whatever_they_name(tmp_path: Path) -> None:
    old = exported(tmp_path, "old.json", a=SLOW)
    for name in ("true", "false"):
        perfflow("baseline", "save", name, old, cwd=tmp_path)
    status, stdout, stderr = compare(tmp_path, "--json", "--runs", "6", "--", "true", "true")
    assert status in (0, 1, 4), stderr
    assert json.loads(stdout)["steps"][0]["tool"] == "command"
    status, stdout, stderr = compare(tmp_path, "--json", "true", "false")
    assert status == 0, stderr
    assert json.loads(stdout)["steps"][0]["tool"] == "hyperfine"


def test_a_baseline_that_criterion_keeps(tmp_path: Path) -> None:
    tree = DATA / "criterion" / "0.5.1" / "tree" / "criterion"
    status, stdout, stderr = compare(tmp_path, f"{tree}:main", str(tree), "--json")
    assert status in (0, 3), stderr
    assert json.loads(stdout)["trees"]["baseline"]["tool"] == "criterion"


def test_a_comparison_of_stored_sets_is_itself_a_stored_set(tmp_path: Path) -> None:
    old, new = stored(tmp_path, "old.json"), stored(tmp_path, "new.json")
    assert compare(tmp_path, old, new, "--out", "out")[0] == 0
    status, stdout, _ = compare(tmp_path, "out", new, "--json")
    assert status == 0
    assert json.loads(stdout)["trees"]["baseline"]["started"] == "2026-01-02T03:04:05.000Z"


def folded(data: dict[str, Any], **marks: str) -> None:
    """Make every value a summary of many, as in a suite. Without marks: as 0.1.0 wrote it."""
    for side in ("baseline", "candidate"):
        sample = data["benchmarks"][0][side]
        if sample:
            readings = [{"metric": "time", "value": value, "benchmark": "b", **marks} for value in sample["samples"]]
            sample["readings"] = [{**item, "inner": {"p50": item["value"] * 1.1, "mean": 2.0}} for item in readings]


def test_a_run_of_quartiles_is_compared_by_the_mean_that_both_hold(tmp_path: Path) -> None:
    old = stored(tmp_path, "old.json", folded)
    new = stored(tmp_path, "new.json", lambda data: folded(data, statistic="capped mean"))
    status, stdout, stderr = compare(tmp_path, old, new, "--json")
    assert status == 0, stderr
    (row,) = json.loads(stdout)["benchmarks"]
    assert (row["statistic"], row["change"]["value"]) == ("mean", 0.0)
    assert "compared by the mean of each process" in compare(tmp_path, old, new)[1]


def test_figures_of_different_statistics_alone_are_not_compared(tmp_path: Path) -> None:
    old = stored(tmp_path, "old.json")
    new = stored(tmp_path, "new.json", lambda data: folded(data, statistic="capped mean"))
    status, _, stderr = compare(tmp_path, old, new)
    assert status == 3
    assert "old.json and new.json hold different statistics" in stderr
    assert "measure old.json again to compare them" in stderr
