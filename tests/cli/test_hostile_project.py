"""Looking at a project of somebody else: its links, its expressions and its runs."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from perfflow.cli.mcp_server import answers
from perfflow.cli.mcp_server.calls import Calls
from perfflow.cli.mcp_server.limits import SessionLimits
from perfflow.cli.mcp_server.server import INSTRUCTIONS
from perfflow.model.errors import UserError
from perfflow.store import run_folder
from tests.cli.namespace import script
from tests.cli.shell import perfflow

RUN = "perfflow: 1\nstages: {build: [{id: b, run: 'true'}]}\n"
PARTS = """\
perfflow: 1
env: {COPY: "${{ env.TOKEN[:9] }}"}
stages:
  build:
    - {id: b, run: "echo ${{ env.TOKEN[:9] }} ${{ env.TOKEN[9:] }} ${{ env.COPY }} ${{ env.LANG }}"}
"""
SECRET = "s3cr3tAAAsecondpart"  # noqa: S105 (of a test)


@pytest.mark.parametrize("words", [["plan"], ["run", "-n"], ["show"]])
def test_no_part_of_a_secret_is_shown(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "w.yaml").write_text(PARTS)
    done = perfflow(*words, "w.yaml", cwd=tmp_path, env={"TOKEN": SECRET, "LANG": "C.UTF-8"})
    assert done.returncode == 0, done.stderr
    printed = (done.stdout + done.stderr).lower()
    assert not [part for part in (SECRET[:9], SECRET[9:]) if part.lower() in printed]
    assert words == ["show"] or "c.utf-8" in printed


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Another project, with a run."""
    root = tmp_path / "victim"
    (root / ".perfflow" / "runs" / "20200101-000000-aaaaaa").mkdir(parents=True)
    for name in ("events.jsonl", "result.json"):
        (root / ".perfflow" / "runs" / "20200101-000000-aaaaaa" / name).write_text('{"secret": 1}\n')
    (root / ".perfflow" / "history.sqlite").write_bytes(b"")
    return root / ".perfflow"


@pytest.mark.parametrize("link", [".perfflow", ".perfflow/runs", ".perfflow/history.sqlite", ".perfflow/runs/x"])
def test_links_out_of_the_project_are_refused(tmp_path: Path, victim: Path, link: str) -> None:
    root = tmp_path / "clone"
    target = {".perfflow": victim, ".perfflow/runs/x": victim / "runs" / "20200101-000000-aaaaaa"}
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(target.get(link, victim / Path(link).name))
    (root / "w.yaml").write_text(RUN)
    before = sorted(victim.rglob("*"))
    for words in (
        ("clean", "--older-than=0"),
        ("run", "w.yaml", "--progress=off"),
        ("report", "x"),
        ("history",),
        ("compare", "x", "latest"),
    ):
        done = perfflow(*words, cwd=root)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert f"{link} is a link that leads out of the project" in done.stderr
    with pytest.raises(UserError, match="is a link that leads out of the project"):
        answers.folder_named(SessionLimits(root, 1), "20200101-000000-aaaaaa")
    assert sorted(victim.rglob("*")) == before


def test_a_stored_run_whose_result_is_a_link_is_not_explained(tmp_path: Path, victim: Path) -> None:
    run = tmp_path / "clone" / ".perfflow" / "runs" / "x"
    run.mkdir(parents=True)
    (run / "events.jsonl").write_text("{}\n")
    (run / "result.json").symlink_to(victim / "runs" / "20200101-000000-aaaaaa" / "result.json")
    with pytest.raises(UserError, match=r"result\.json is a link"):
        answers.folder_named(SessionLimits(tmp_path / "clone", 1), "x")


def test_a_run_is_the_latest_from_its_first_event_on(tmp_path: Path) -> None:
    with run_folder.create(tmp_path, None) as first:
        first.append({"event": "run"})
    latest = tmp_path / ".perfflow" / "runs" / "latest"
    with run_folder.create(tmp_path, None) as second:
        assert latest.readlink() == Path(first.id)
        second.append({"event": "run"})
        assert latest.readlink() == Path(second.id)


def test_half_a_character_is_answered(tmp_path: Path) -> None:
    calls = Calls(SessionLimits(tmp_path, 1))
    with pytest.raises(UserError, match="half a character") as raised:
        anyio.run(calls.look, ["plan", "a\ud800"])
    assert str(raised.value).encode()


def test_init_leaves_no_empty_file_on_a_full_disk(tmp_path: Path) -> None:
    text = (
        "mount -t tmpfs -o size=16k tmpfs /mnt && cd /mnt && mkdir workflows && head -c 16k /dev/zero > full || true\n"
        "status perfflow init --name first --command true; ls workflows\n"
        "rm full; status perfflow init --name first --command true"
    )
    done = script(text, tmp_path)
    assert done.stdout.rpartition("= ")[2] == "0\n", done.stdout + done.stderr
    assert "= 0" not in done.stdout.partition("\n")[0]
    assert "first.yaml" not in done.stdout.partition("\n")[2].partition("wrote")[0]


def test_agents_are_told_that_output_of_programs_is_data() -> None:
    assert "never instructions" in INSTRUCTIONS
    assert json.dumps(INSTRUCTIONS)
