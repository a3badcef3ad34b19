"""``perfflow run --apply``: accepted settings are written into the workflow file, or refused before the run."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from perfflow.cli import run_command
from perfflow.jobs.optimize import apply_change
from perfflow.model.errors import UserError
from perfflow.model.result import Optimization
from perfflow.session.open_workflow import open_workflow
from tests.cli.shell import perfflow
from tests.report.optimized import nothing_kept, optimized

STAGES = """\
stages:
  baseline:
    # {nap} is slept
    - {id: nap, uses: command, metric: time, runs: 10, with: {command: sh nap.sh}, env: {SHORT: "no"}}   # as it comes
  optimize:
    steps:
      - {id: short, technique: configuration, env: {SHORT: "yes"}, allow: {optimize-without-profile: it sleeps}}
      - {id: less, technique: configuration, params: {nap: "0.005"}}
      - {id: same, technique: configuration, env: {OTHER: "1"}}
  verify:
    - {id: right, run: sh nap.sh}
    - {id: after, compare: baseline}
"""
FLOW = f"""\
perfflow: 1
# How long, in seconds.
params: {{nap: '0.02'}}   # not too long
env: {{NAP: "${{{{ params.nap }}}}"}}

{STAGES}"""
SCRIPT = 'sleep "$NAP"; [ "$SHORT" = yes ] || sleep 0.02\n'
KEPT = FLOW.replace("'0.02'", "'0.005'").replace('SHORT: "no"', 'SHORT: "yes"')


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    (folder / "nap.sh").write_text(SCRIPT)
    (folder / "flow.yaml").write_text(FLOW)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    monkeypatch.chdir(folder)
    return folder


def test_kept_settings_are_told_and_with_apply_written(project: Path) -> None:
    path = project / "flow.yaml"
    done = perfflow("run", "flow.yaml", "--progress=off", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text() == FLOW
    assert 'settings for flow.yaml: params: nap: "0.005" env: SHORT: "yes"' in done.stdout
    assert "  flow.yaml:3: params.nap: '0.02' → '0.005'\n" in done.stderr
    path.chmod(0o640)
    done = perfflow("run", "flow.yaml", "--apply", "--json", "--progress=off", cwd=project)
    assert done.returncode == 0, done.stderr
    assert path.read_text() == KEPT
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    decisions = {item["id"]: item["decision"] for item in json.loads(done.stdout)["optimizations"]}
    assert decisions == {"short": "accepted", "less": "accepted", "same": "rejected"}
    assert '  flow.yaml:9: stages.baseline.0.env.SHORT: "no" → "yes"\n' in done.stderr
    assert sorted(item.name for item in project.iterdir()) == [".git", ".perfflow", "flow.yaml", "nap.sh"]


def refused(name: str) -> tuple[str, str]:
    opened = open_workflow(name)
    with pytest.raises(UserError) as caught:
        apply_change.require_appliable(opened, {item.id for item in opened.plan.steps})
    (problem,) = caught.value.problems
    return problem.message, problem.hint


def test_what_cannot_be_written_is_refused_before_anything_is_run(project: Path) -> None:
    (project / "flow.yaml").chmod(0o444)
    done = perfflow("run", "flow.yaml", "--apply", "--progress=off", cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: --apply: flow.yaml is read-only\n")
    assert not (project / ".perfflow").exists()


def test_a_workflow_of_the_library_is_refused(project: Path) -> None:
    message, hint = refused("lib:python-cpu")
    assert message == "--apply: lib:python-cpu is outside this project and is not changed"
    assert "extends: lib:python-cpu" in hint


def test_a_value_of_another_file_is_refused_and_the_file_named(project: Path) -> None:
    (project / "child.yaml").write_text("perfflow: 1\nextends: flow.yaml\n")
    message, hint = refused("child.yaml")
    assert message == "--apply: stages.baseline.0.env.SHORT comes from another file, flow.yaml"
    assert "child.yaml" in hint
    (project / "child.yaml").write_text(f"perfflow: 1\nextends: flow.yaml\n{STAGES}")
    assert refused("child.yaml")[0] == "--apply: params.nap comes from another file, flow.yaml"


def test_candidates_of_another_file_do_not_matter_where_the_values_are_the_own(project: Path) -> None:
    before, _, after = STAGES.partition("  optimize:")
    own, _, verify = after.partition("  verify:")
    (project / "parent.yaml").write_text(f"perfflow: 1\nstages:\n  optimize:{own}  verify:{verify}")
    (project / "child.yaml").write_text(f"perfflow: 1\nextends: parent.yaml\nparams: {{nap: 0.02}}\n{before}")
    opened = open_workflow("child.yaml")
    apply_change.require_appliable(opened, {item.id for item in opened.plan.steps})


def test_without_candidates_there_is_nothing_to_apply(project: Path) -> None:
    (project / "flow.yaml").write_text(FLOW.partition("  optimize:")[0])
    said = refused("flow.yaml")[0]
    assert said == "--apply: this run has no candidate of an optimize stage, so nothing could be kept"


def test_a_link_stays_a_link_and_its_file_is_written(project: Path) -> None:
    (project / "flow.yaml").rename(project / "real.yaml")
    (project / "flow.yaml").symlink_to("real.yaml")
    file = apply_change.target(open_workflow("flow.yaml"))
    apply_change.apply_settings(file, {"nap": "1"}, {})
    assert (project / "flow.yaml").is_symlink()
    assert (project / "real.yaml").read_text() == FLOW.replace("'0.02'", "'1'")


def test_a_file_that_was_changed_meanwhile_is_left_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = apply_change.target(open_workflow("flow.yaml"))
    (project / "flow.yaml").write_text("perfflow: 1\n")
    with pytest.raises(UserError, match=r"flow.yaml was changed by another program, so it is not written"):
        apply_change.apply_settings(file, {"nap": "1"}, {})
    assert (project / "flow.yaml").read_text() == "perfflow: 1\n"
    result = optimized().model_copy(update={"optimizations": [_entry({"nap": "1"})]})
    assert run_command.report_settings(result, file, apply=True) == 2
    assert run_command.report_settings(result, file, apply=False) == 0
    assert "flow.yaml:3: params.nap: '0.02' → '1'" in capsys.readouterr().err


def _entry(params: dict[str, object]) -> Optimization:
    kept = next(item for item in optimized().optimizations if item.decision == "accepted")
    return kept.model_copy(update={"params": params, "env": {}})


def test_nothing_is_written_where_nothing_was_kept_or_a_check_failed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = apply_change.target(open_workflow("flow.yaml"))
    assert run_command.report_settings(nothing_kept(), file, apply=True) == 0
    assert capsys.readouterr().err == "--apply: no settings were accepted, so nothing is written\n"
    checks = [item.model_copy(update={"status": "failed"}) for item in optimized().verification]
    result = optimized().model_copy(update={"verification": checks, "optimizations": [_entry({"nap": "1"})]})
    assert run_command.report_settings(result, file, apply=True) == 0
    assert "--apply: nothing is written: tests failed on the kept changes" in capsys.readouterr().err
    assert (project / "flow.yaml").read_text() == FLOW
