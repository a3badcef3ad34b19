"""Looking at a project of somebody else as an agent does, its newest run, and a full disk."""

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


@pytest.mark.parametrize("link", ["", "history.sqlite", "runs", "runs/x", "runs/x/result.json"])
def test_a_run_is_not_explained_where_a_link_leads_out_of_the_project(tmp_path: Path, link: str) -> None:
    victim, own = tmp_path / "victim/.perfflow", tmp_path / "clone/.perfflow"
    (victim / "runs/x").mkdir(parents=True)
    for name in ("history.sqlite", "runs/x/events.jsonl", "runs/x/result.json"):
        (victim / name).write_text("{}\n")
    (own / link).parent.mkdir(parents=True)
    (own / link).symlink_to(victim / link)
    if link.endswith("result.json"):
        (own / "runs/x/events.jsonl").write_text("{}\n")
    said = "result.json is a link" if link.endswith("result.json") else "is a link that leads out of the project"
    with pytest.raises(UserError, match=said):
        answers.folder_named(SessionLimits(own.parent, 1), "x")


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
