"""``perfflow report`` end to end: from events, from result.json alone, with other thresholds, and its files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write

# Programs that print made-up times: 7% slower, independent of the machine.
SLOWER = """
thresholds: {for: {"other/*": {action: 50%}}}
stages:
  baseline:
    - id: bench
      run: echo time 100 us
      candidate: {command: echo time 107 us}
      parse: {regex: "time (?P<time>[0-9.]+)", units: {time: us}}
      runs: 10
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    write(folder, SLOWER)
    done = perfflow("run", "flow.yaml", cwd=folder)
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stdout + done.stderr
    return folder


@pytest.fixture
def project(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "project", symlinks=True))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def latest(project: Path) -> Path:
    return (project / ".perfflow" / "runs" / "latest").resolve()


@pytest.fixture
def artifact(project: Path, tmp_path: Path) -> Path:
    """Only the result file, under another name, outside any project."""
    folder = tmp_path / "artifact"
    folder.mkdir()
    return Path(shutil.copy(latest(project) / "result.json", folder / "perf.json"))


def test_a_result_alone_is_judged_again_and_nothing_is_written_beside_it(artifact: Path) -> None:
    done = perfflow("report", artifact.name, "--json", cwd=artifact.parent)
    assert done.returncode == 0
    assert done.stdout == artifact.read_text()
    assert list(artifact.parent.iterdir()) == [artifact]


def test_the_page_of_a_result_alone_names_no_report_that_was_not_written(artifact: Path) -> None:
    done = perfflow("report", str(artifact), cwd=artifact.parent)
    assert "review:gate:perf = pass" in done.stdout
    assert "report:" not in done.stdout


def test_a_folder_without_events_is_judged_from_its_result(project: Path) -> None:
    (latest(project) / "events.jsonl").unlink()
    before = files(project)
    done = perfflow("report", "--json", cwd=project)
    assert (done.returncode, done.stdout) == (0, (latest(project) / "result.json").read_text())
    assert files(project) == before


@pytest.mark.parametrize("source", ["latest", "artifact"])
def test_other_thresholds_change_the_verdict_and_leave_the_files_alone(
    source: str, project: Path, artifact: Path
) -> None:
    before = files(project)
    run = "latest" if source == "latest" else str(artifact)
    done = perfflow("report", run, "--thresholds", "concern=3%,action=5%", cwd=project)
    assert done.returncode == 1
    assert "FAIL" in done.stdout
    assert "judged again by: concern=3%,action=5%" in done.stdout
    assert "report:" not in done.stdout
    assert files(project) == before


def test_out_takes_what_other_thresholds_say(project: Path, tmp_path: Path) -> None:
    before = files(project)
    asked = ("--thresholds", "concern=3%", "--thresholds", "ben*:action=6%")
    done = perfflow("report", *asked, "--out", str(tmp_path / "new"), cwd=project)
    assert done.returncode == 1
    assert files(project) == before
    result = json.loads((tmp_path / "new" / "result.json").read_text())
    assert result["verdict"] == "fail"
    assert result["criteria"]["thresholds"] == {
        "concern": 0.03,
        "action": 0.1,
        "floor": 0.02,
        "memory": {"concern": 0.05, "action": 0.1},
        "for": {"other/*": {"action": 0.5}, "ben*": {"action": 0.06}},
    }
    assert result["run"]["judged_by"] == ["concern=3%", "ben*:action=6%"]
    page = (tmp_path / "new" / "report.md").read_text()
    assert "Judged again by: `concern=3%; ben*:action=6%`" in page
    assert "--thresholds concern=3% --thresholds 'ben*:action=6%'" in page
    again = perfflow("report", str(tmp_path / "new" / "result.json"), "--json", cwd=project)
    assert (again.returncode, again.stdout) == (1, (tmp_path / "new" / "result.json").read_text())
    refused = perfflow("report", "--out", str(tmp_path / "new"), cwd=project)
    assert refused.returncode == 2
    assert "not empty" in refused.stderr


def test_thresholds_of_a_file(project: Path) -> None:
    write(project, "thresholds:\n  concern: 2%\n  memory: off\n  for: {'bench*': {action: 5%}}\n", "strict.yaml")
    done = perfflow("report", "--thresholds", "strict.yaml", "--json", cwd=project)
    assert done.returncode == 1
    used = json.loads(done.stdout)["criteria"]["thresholds"]
    assert (used["concern"], used["memory"]) == (0.02, None)
    assert used["for"]["bench*"] == {"action": 0.05}


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        (["concern=3"], "write 3%"),
        (["concern=fast"], "concern=fast"),
        (["acton=3%"], "did you mean `action`?"),
        (["concern"], "is not a threshold"),
        ([""], "is not a threshold"),
        (["core/**:concern"], "is not a threshold"),
        (["concern=20%"], "`concern` (0.2) is above `action` (0.1)"),
        (["action=2%"], "also set `concern` to at most this value"),
        (["core/**:action=2%"], "also set `concern` to at most this value"),
        (["concern=-1%"], "out of range"),
        (["concern=0%"], "a `concern` of 0% can never be proven to hold"),
        (["core/**:action=0"], "write a share such as `action: 0.5%`"),
        (["missing.yaml"], "missing.yaml"),
        (["none.yaml"], "no `thresholds:` mapping"),
        (["wrong.yaml"], "wrong.yaml:3:24: error: unknown threshold `acton`"),
        (["broken.yaml"], "broken.yaml:2"),
        (["memory=5%"], "write `memory.action=20%`, or `memory=off`"),
        (["memory.concern=20%"], "`concern` (0.2) is above `action` (0.1)"),
        (["acton=3%", "flor=1%"], "did you mean `floor`?"),
    ],
)
def test_wrong_thresholds_exit_2_with_a_remedy(specs: list[str], said: str, project: Path) -> None:
    write(project, "params: {}\n", "none.yaml")
    write(project, "thresholds:\n  for: {'a/*': {acton: 3%}}\n", "wrong.yaml")
    write(project, "thresholds: {concern: [\n", "broken.yaml")
    before = files(project)
    done = perfflow("report", *(word for spec in specs for word in ("--thresholds", spec)), cwd=project)
    assert done.returncode == 2
    assert said in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""
    assert files(project) == before


def test_a_glob_that_matches_nothing_is_a_mistake_where_it_is_typed_and_a_note_in_a_file(project: Path) -> None:
    typed = perfflow("report", "--thresholds", "action=5%", "--thresholds", "bnch:action=1%", cwd=project)
    assert (typed.returncode, typed.stdout) == (2, "")
    assert "--thresholds bnch:action=1%: no benchmark matches 'bnch'" in typed.stderr
    assert "hint: did you mean 'bench'?" in typed.stderr
    write(project, "thresholds:\n  for: {'nosuch/*': {action: 5%}}\n", "shared.yaml")
    of_file = perfflow("report", "--thresholds", "shared.yaml", cwd=project)
    assert of_file.returncode == perfflow("report", cwd=project).returncode
    assert "note: shared.yaml:3:30: no benchmark of this run matches 'nosuch/*'" in of_file.stderr


def test_a_run_that_is_not_there_names_those_that_are(project: Path, tmp_path: Path) -> None:
    done = perfflow("report", "20200101-000000-abcdef", cwd=project)
    assert done.returncode == 2
    assert latest(project).name in done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there are no runs in" in perfflow("report", cwd=empty).stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"samples": [', '"samples": ["x",'),
        ('"design": "fixed"', '"design": 7'),
        ('"criteria": {', '"criteria": {"x": {}, "c": {'),
    ],
)
def test_a_damaged_result_alone_is_a_clear_error(before: str, after: str, artifact: Path) -> None:
    text = artifact.read_text()
    assert before in text
    artifact.write_text(text.replace(before, after, 1))
    done = perfflow("report", str(artifact), cwd=artifact.parent)
    assert done.returncode == 2
    assert str(artifact) in done.stderr


def test_html_names_the_page_that_was_written(project: Path, artifact: Path, tmp_path: Path) -> None:
    page = latest(project) / "report.html"
    page.unlink()
    done = perfflow("report", "--html", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / done.stdout.strip()).resolve() == page
    assert "bench" in page.read_text()
    refused = perfflow("report", str(artifact), "--html", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--out DIR" in refused.stderr
    done = perfflow("report", str(artifact), "--html", "--out", "new", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "new/report.html\n")
    assert (tmp_path / "new" / "report.html").is_file()


def test_without_html_a_run_has_no_page_until_it_is_reported_again(tmp_path: Path) -> None:
    write(tmp_path, f"report: {{formats: [markdown]}}\n{SLOWER}")
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == 0
    run = latest(tmp_path)
    assert (run / "report.md").is_file()
    assert not (run / "report.html").exists()
    assert "report.html" not in json.loads((run / "receipt.json").read_text())["files"]
    done = perfflow("report", "--html", cwd=tmp_path)
    assert (done.returncode, (run / "report.html").is_file()) == (0, True), done.stderr
    verified = perfflow("receipt", "verify", cwd=tmp_path)
    assert verified.returncode == 0, verified.stdout
    assert "report.html" in json.loads((run / "receipt.json").read_text())["files"]


def test_open_starts_the_browser_that_is_named(project: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = perfflow("report", "--open", cwd=project, env={"BROWSER": f"{browser} %s"})
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "opened").read_text() == (latest(project) / "report.html").as_uri()
    without = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": "", "TERM": ""}
    done = perfflow("report", "--open", cwd=project, env=without, path="/nonexistent")
    assert done.returncode == 0
    assert "no browser was found" in done.stderr
