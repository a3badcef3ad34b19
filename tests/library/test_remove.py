"""``perfflow library remove``: removes an item from the lock and the copies, unless it is still used."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.library import pinned
from tests.library.team import Team

USES_TOOL = """\
perfflow: 1
name: counted
stages:
  baseline:
    - {id: words, uses: "REFERENCE", with: {text: a b c}}
"""


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def test_the_last_item_takes_the_lock_and_its_copies_with_it(team: Team) -> None:
    root = team.project("one")
    team.run("library", "add", team.reference(), cwd=root)
    assert team.run("library", "vendor", cwd=root).returncode == 0
    (root / "workflows/own.yaml").unlink()
    # The repository is not needed.
    team.folder.rename(team.top / "gone")
    done = team.run("library", "remove", team.reference(), cwd=root)
    assert (done.returncode, done.stdout) == (0, f"{team.reference()}: removed\n"), done.stderr
    assert not (root / "perfflow.lock").exists()
    assert list((root / "workflows").iterdir()) == []


def test_what_a_copy_shares_with_another_item_stays(team: Team) -> None:
    limits = team.reference("v1", "parts/limits.yaml")
    root = team.project("one", f"[{limits}]")
    team.run("library", "add", limits, team.reference(), cwd=root)
    assert team.run("library", "vendor", cwd=root).returncode == 0
    assert team.run("library", "remove", team.reference(), cwd=root).returncode == 0
    assert [path.name for path in root.glob("workflows/vendor/**/*.yaml")] == ["limits.yaml"]
    assert set(pinned.read_lock(root)) == {limits}
    assert team.run("library", "verify", cwd=root).returncode == 0


def test_an_item_in_use_is_kept_and_its_user_named(team: Team) -> None:
    tool = team.reference("v1", "tools/words.yaml")
    root = team.project("one")
    (root / "workflows/counted.yml").write_text(USES_TOOL.replace("REFERENCE", tool))
    (root / "workflows/broken.yaml").write_text("extends: [\n")
    assert team.run("library", "add", team.reference(), tool, cwd=root).returncode == 0
    before = (root / "perfflow.lock").read_text()
    for name, user in ((team.reference(), "workflows/own.yaml"), (tool, "workflows/counted.yml")):
        done = team.run("library", "remove", name, cwd=root)
        assert done.returncode == 2
        assert f"error: {name} is used by {user}\n" in done.stderr
        assert f"hint: change {user} first" in done.stderr
    assert (root / "perfflow.lock").read_text() == before


def test_an_item_that_another_extends_goes_only_with_it(team: Team) -> None:
    base = team.reference()
    text = f"perfflow: 1\nextends: {base}\nname: second\nparams: {{command: 'true'}}\n"
    team.write("workflows/second.yaml", text)
    team.commit("v2")
    second = team.reference("v2", "workflows/second.yaml")
    root = team.project("one")
    (root / "workflows/own.yaml").unlink()
    assert team.run("library", "add", second, cwd=root).returncode == 0
    assert set(pinned.read_lock(root)) == {base, second}
    refused = team.run("library", "remove", base, cwd=root)
    assert refused.returncode == 2
    assert f"hint: remove that too: perfflow library remove {base} {second}" in refused.stderr
    done = team.run("library", "remove", second, cwd=root)
    assert done.returncode == 0
    assert f"{base} stays pinned; nothing here uses it. Remove it: perfflow library remove {base}\n" in done.stdout
    assert set(pinned.read_lock(root)) == {base}


def test_both_go_together(team: Team) -> None:
    team.write("workflows/second.yaml", f"perfflow: 1\nextends: {team.reference()}\nname: second\n")
    team.commit("v2")
    second = team.reference("v2", "workflows/second.yaml")
    root = team.project("one")
    (root / "workflows/own.yaml").unlink()
    assert team.run("library", "add", second, cwd=root).returncode == 0
    done = team.run("library", "remove", team.reference(), second, cwd=root)
    assert done.returncode == 0, done.stderr
    assert "stays pinned" not in done.stdout
    assert not (root / "perfflow.lock").exists()


def test_a_reference_that_is_not_pinned_gets_the_nearest_name(team: Team) -> None:
    root = team.project("one")
    team.run("library", "add", team.reference(), cwd=root)
    done = team.run("library", "remove", team.reference("v2"), cwd=root)
    assert done.returncode == 2
    assert f"{team.reference('v2')} is not in perfflow.lock" in done.stderr
    assert f"did you mean {team.reference()}?" in done.stderr
    assert team.run("library", "remove", cwd=root).returncode == 2
