"""``perfflow migrate``: rewrites keys of 0.1.0 and nothing else."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.cli.main import main

Perfflow = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def perfflow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Perfflow:
    """Run the command in this process, since there are many small files to test."""

    def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), said.out, said.err)

    return run


SAME = "  verify:\n    - id: same\n      uses: same-output\n      benchmark: prog\n"
BASELINE = "  baseline:\n    - {id: prog, uses: command, with: {command: ./a}, candidate: ./b}\n"
AGAIN = "    - {id: again, uses: same-output, benchmark: prog, with: *with}\n"
UNTIL = "    why: checks\n    until: 2099-01-01\n"

RULES = {
    "tolerance": (
        f"stages:\n{BASELINE}{SAME}      with:\n        runs: 2\n        tolerance: 1e-6 # six digits\n",
        "        tolerance: 1e-6 # six digits\n",
        "        relative: 1e-6\n        absolute: 1e-6 # six digits\n",
    ),
    "tolerance in brackets": (
        f"stages:\n{BASELINE}{SAME}      with: {{tolerance: '${{{{ params.x }}}}', runs: 2}}\nparams: {{x: 0.1}}\n",
        "{tolerance: '${{ params.x }}', runs: 2}",
        "{relative: '${{ params.x }}', absolute: '${{ params.x }}', runs: 2}",
    ),
    "tolerance shared by an anchor": (
        f"stages:\n{BASELINE}{SAME}      with: &with\n        tolerance: 0.1\n{AGAIN}",
        "        tolerance: 0.1\n",
        "        relative: 0.1\n        absolute: 0.1\n",
    ),
    "accepted": (
        f"accepted:\n  # agreed on in May\n  - benchmark: prog # slower\n    change: 15%\n{UNTIL}stages:\n{BASELINE}",
        "prog # slower\n    change",
        "prog # slower\n    metric: time\n    change",
    ),
    "accepted in brackets": (
        f"accepted:\n  - {{benchmark: prog, change: 15%, why: checks, until: 2099-01-01}}\nstages:\n{BASELINE}",
        "prog, change",
        "prog, metric: time, change",
    ),
    "an exact time": (
        f"targets:\n  prog:\n    time: 10ms # at most\n    rss: <1GiB\nstages:\n{BASELINE}",
        "time: 10ms # at most",
        "time: <10ms # at most",
    ),
    "an exact speedup": (
        f"targets: {{prog: {{cpu speedup: '2x', rss: <1GiB}}}}\nstages:\n{BASELINE}",
        "'2x'",
        "'≥2x'",
    ),
    "a threshold of nothing": (
        f"thresholds:\n  concern: 0%\n  'prog/*': {{action: 0%}}\nstages:\n{BASELINE}",
        "concern: 0%\n  'prog/*': {action: 0%}",
        "concern: 0.5%\n  'prog/*': {concern: 0.5%, action: 0.5%}",
    ),
    "measured twice": (
        f"stages:\n{BASELINE}    - {{id: counts, uses: perf-stat, benchmark: prog, with: {{command: ./a}}}}\n",
        "benchmark: prog,",
        "benchmark: counts,",
    ),
}


def written(folder: Path, text: str, name: str = "old.yaml") -> Path:
    path = folder / name
    path.write_bytes(f"perfflow: 1\n{text}".encode())
    return path


@pytest.mark.parametrize("name", RULES)
def test_each_rule_changes_its_words_and_nothing_else(name: str, tmp_path: Path, perfflow: Perfflow) -> None:
    text, old, new = RULES[name]
    path = written(tmp_path, text)
    before = path.read_text()
    assert before.count(old) == 1
    checked = perfflow("migrate", "--check", "old.yaml", cwd=tmp_path)
    assert (checked.returncode, path.read_text()) == (1, before), checked.stderr
    assert checked.stdout.startswith("--- old.yaml\n+++ old.yaml\n@@ ")
    done = perfflow("migrate", "old.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("old.yaml: rewritten\n  ")
    assert path.read_text() == before.replace(old, new)
    valid = perfflow("validate", "old.yaml", cwd=tmp_path)
    assert valid.returncode == 0, valid.stderr
    assert "migrate" not in valid.stderr
    for words in ([], ["-n"]):
        again = perfflow("migrate", *words, "old.yaml", cwd=tmp_path)
        assert (again.returncode, again.stdout) == (0, "old.yaml: nothing to change\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "  tidy: # after all\n    - id: x\n      run: 'true'\n",
            "  tidy: # after all\n    role: work\n    steps:\n    - id: x\n      run: 'true'\n",
        ),
        (
            "  tidy:\n  # why\n  - id: x\n    run: |\n      a\n\n      b\n\n",
            "  tidy:\n  # why\n    role: work\n    steps:\n    - id: x\n      run: |\n        a\n\n        b\n\n",
        ),
        ("  tidy: [{id: x, run: 'true'}]\n", "  tidy: {role: work, steps: [{id: x, run: 'true'}]}\n"),
        (
            "  tidy:\n    env: {A: b}\n    steps:\n      - {id: x, run: 'true'}\n",
            "  tidy:\n    role: work\n    env: {A: b}\n    steps:\n      - {id: x, run: 'true'}\n",
        ),
    ],
)
def test_a_stage_of_ones_own_is_for_work(old: str, new: str, tmp_path: Path, perfflow: Perfflow) -> None:
    path = written(tmp_path, f"stages:\n{BASELINE}{old}{SAME}")
    done = perfflow("migrate", "old.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert path.read_text() == f"perfflow: 1\nstages:\n{BASELINE}{new}{SAME}"
    assert "role" not in perfflow("validate", "old.yaml", cwd=tmp_path).stderr


OLD, _, _ = RULES["tolerance"]


def test_a_step_that_inherits_its_tool_is_known(tmp_path: Path, perfflow: Perfflow) -> None:
    written(tmp_path, f"stages:\n{BASELINE}{SAME}", "parent.yaml")
    path = written(tmp_path, "extends: parent.yaml\nstages:\n  verify: [{id: same, with: {tolerance: 0.1}}]\n")
    assert perfflow("migrate", "old.yaml", cwd=tmp_path).returncode == 0
    assert "{relative: 0.1, absolute: 0.1}" in path.read_text()


def test_line_ends_the_mark_and_the_mode_stay(tmp_path: Path, perfflow: Perfflow) -> None:
    path = tmp_path / "old.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + f"perfflow: 1\n{OLD}".replace("\n", "\r\n").encode())
    path.chmod(0o640)
    assert perfflow("migrate", "old.yaml", cwd=tmp_path).returncode == 0
    raw = path.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfperfflow: 1\r\n")
    assert b"relative: 1e-6\r\n        absolute: 1e-6 # six digits\r\n" in raw
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [item.name for item in tmp_path.iterdir()] == ["old.yaml"]


def test_what_an_anchor_shares_with_something_else_is_left_to_the_author(tmp_path: Path, perfflow: Perfflow) -> None:
    text = f"params: {{x: &x 0.1}}\nstages:\n{BASELINE}{SAME}      with: {{relative: &y 0.1}}\n"
    text += "    - {id: again, uses: same-output, benchmark: prog, with: {tolerance: &z 0.1}}\n"
    text += "    - {id: third, uses: same-output, benchmark: prog, with: {relative: *z}}\n"
    path = written(tmp_path, text)
    done = perfflow("migrate", "old.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be rewritten without changing other values" in done.stderr
    assert "do it by hand: `tolerance` is now" in done.stderr
    assert path.read_text() == f"perfflow: 1\n{text}"


@pytest.mark.parametrize("mistake", ["stages: {baseline: [{id: x, uses: comand}]}\n", "stages: [\n", f"nme: x\n{OLD}"])
def test_a_file_with_other_mistakes_is_left_alone(mistake: str, tmp_path: Path, perfflow: Perfflow) -> None:
    path = written(tmp_path, mistake)
    for words in (["--check"], []):
        done = perfflow("migrate", *words, "old.yaml", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "old.yaml:" in done.stderr
    assert path.read_text() == f"perfflow: 1\n{mistake}"


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path, perfflow: Perfflow) -> None:
    inside = tmp_path / "project"
    inside.mkdir()
    (inside / ".git").mkdir()
    path = written(tmp_path, OLD, "elsewhere.yaml")
    (inside / "old.yaml").symlink_to(path)
    done = perfflow("migrate", "old.yaml", cwd=inside)
    assert done.returncode == 2
    assert path.read_text() == f"perfflow: 1\n{OLD}"


def test_a_link_within_the_project_stays_one(tmp_path: Path, perfflow: Perfflow) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "kept").mkdir()
    path = written(tmp_path / "kept", OLD)
    (tmp_path / "old.yaml").symlink_to(path)
    assert perfflow("migrate", "old.yaml", cwd=tmp_path).returncode == 0
    assert (tmp_path / "old.yaml").is_symlink()
    assert "relative: 1e-6" in path.read_text()


def test_several_files_are_all_looked_at(tmp_path: Path, perfflow: Perfflow) -> None:
    written(tmp_path, OLD)
    written(tmp_path, "stages: [\n", "broken.yaml")
    written(tmp_path, f"stages:\n{BASELINE}", "new.yaml")
    done = perfflow("migrate", "broken.yaml", "old.yaml", "new.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "old.yaml: rewritten" in done.stdout
    assert "new.yaml: nothing to change" in done.stdout


def test_what_ships_with_perfflow_is_not_changed(tmp_path: Path, perfflow: Perfflow) -> None:
    done = perfflow("migrate", "lib:two-commands", cwd=tmp_path)
    assert done.returncode == 2
    assert "lib:two-commands is outside this project and is not changed" in done.stderr


def test_the_warning_names_the_command(tmp_path: Path, perfflow: Perfflow) -> None:
    written(tmp_path, OLD)
    assert "`perfflow migrate FILE` does it" in perfflow("validate", "old.yaml", cwd=tmp_path).stderr
