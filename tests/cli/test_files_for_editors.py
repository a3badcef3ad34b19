"""``perfflow fmt``, and ``perfflow validate --format`` for programs and for GitHub's annotations."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from tests.cli.shell import perfflow

FLOW = "perfflow: 1\nname: flow # mine\nstages:\n    baseline:\n    - {id: a, uses: command, with: {command: 'true'}}\n"
TIDY = "perfflow: 1\nname: flow # mine\nstages:\n  baseline:\n    - {id: a, uses: command, with: {command: 'true'}}\n"
BAD = "perfflow: 1\nname: flow\nstages:\n  baseline:\n    - {id: a, usez: command}\n"


def test_fmt_rewrites_a_file_once_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW)
    path.chmod(0o640)
    checked = perfflow("fmt", "--check", "flow.yaml", cwd=tmp_path)
    assert (checked.returncode, path.read_text()) == (1, FLOW)
    assert "-    baseline:" in checked.stdout
    assert "+  baseline:" in checked.stdout
    done = perfflow("fmt", "flow.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout, path.read_text()) == (0, "flow.yaml: rewritten\n", TIDY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    again = perfflow("fmt", "--check", "flow.yaml", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "flow.yaml: nothing to change\n")


def test_fmt_names_what_is_wrong_and_writes_nothing(tmp_path: Path) -> None:
    twice = "perfflow: 1\nname: a\nname: b\nstages:\n    baseline: []\n"
    (tmp_path / "flow.yaml").write_text(twice)
    done = perfflow("fmt", "flow.yaml", "lib:rust-hotpath", "nowhere.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "flow.yaml:3:1: error" in done.stderr
    assert "is outside this project and is not changed" in done.stderr
    assert "nowhere.yaml: no such file" in done.stderr
    assert (tmp_path / "flow.yaml").read_text() == twice


def test_validate_tells_programs_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(TIDY)
    (tmp_path / "bad.yaml").write_text(BAD)
    done = perfflow("validate", "--format", "json", "good.yaml", "bad.yaml", "nowhere.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["schema"] == "perfflow.validation/1"
    good, bad, nowhere = told["files"]
    assert good == {"file": "good.yaml", "valid": True, "steps": 1, "problems": []}
    assert bad["valid"] is False
    places = [(item["severity"], item["file"], item["line"], item["column"]) for item in bad["problems"]]
    assert ("error", "bad.yaml", 5, 15) in places
    assert nowhere["problems"][0] == {
        "severity": "error",
        "message": "nowhere.yaml: no such file",
        "hint": "check the path",
        "rule": "",
        "file": None,
        "line": None,
        "column": None,
    }


def test_annotations_are_one_line_each_whatever_a_file_says(tmp_path: Path) -> None:
    (tmp_path / "a,b:c.yaml").write_text(BAD.replace("usez", '"u\\n::error::x\\u202e%"'))
    done = perfflow("validate", "--format", "github", "a,b:c.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines
    assert all(line.startswith("::error file=a%2Cb%3Ac.yaml,line=") for line in lines)
    assert "\u202e" not in done.stdout
