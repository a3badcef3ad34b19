"""Where accepted settings are written, and when not. See also ``cases/apply.txt``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.cli import run_command
from perfflow.jobs.optimize import apply_change
from perfflow.model.errors import UserError
from perfflow.model.result import Optimization
from perfflow.session.open_workflow import open_workflow
from tests.report.optimized import nothing_kept, optimized

BASELINE = """\
stages:
  baseline:
    - {id: nap, uses: command, runs: 10, with: {command: sh nap.sh}, env: {SHORT: "no"}}
"""
OPTIMIZE = """\
  optimize:
    steps:
      - {id: short, technique: configuration, env: {SHORT: "yes"}, allow: {optimize-without-profile: it sleeps}}
      - {id: less, technique: configuration, params: {nap: "0.005"}}
"""
VERIFY = """\
  verify:
    - {id: right, run: sh nap.sh}
    - {id: after, compare: baseline}
"""
FLOW = f"perfflow: 1\n# In seconds.\nparams: {{nap: '0.02'}}   # not too long\n{BASELINE}{OPTIMIZE}{VERIFY}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "flow.yaml").write_text(FLOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_candidates_of_another_file_do_not_matter_where_the_values_are_the_own(project: Path) -> None:
    (project / "parent.yaml").write_text(f"perfflow: 1\nstages:\n{OPTIMIZE}{VERIFY}")
    (project / "child.yaml").write_text(f"perfflow: 1\nextends: parent.yaml\nparams: {{nap: 0.02}}\n{BASELINE}")
    opened = open_workflow("child.yaml")
    apply_change.require_appliable(opened, {item.id for item in opened.plan.steps})


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
