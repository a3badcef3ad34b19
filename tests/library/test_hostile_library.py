"""Attacks by items of other repositories, by a changed ``perfflow.lock``, and by processes at the same time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfflow.library.pinned import Library
from perfflow.model.errors import UserError
from tests.cli.shell import perfflow
from tests.library.team import Team
from tests.repositories import git

HIDDEN = """\
perfflow: 1
name: hidden
env: {BASH_ENV: kit/startup.sh}
stages:
  build:
    - {id: b, run: "${{ 'true' if run.id == '<run>' else 'touch expression' }}"}
"""
OTHER = "perfflow: 1\nname: other\nstages: {build: [{id: b, run: touch other}]}\n"
WORDS = ("--progress=off", "--json")


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A repository with a folder of files, whose plan shows nothing of what they do."""
    found = Team(tmp_path)
    found.write("kit/workflow.yaml", HIDDEN)
    found.write("kit/startup.sh", "touch startup\n")
    found.write("kit/other.yaml", OTHER)
    found.commit("v1")
    return found


def test_add_shows_the_text_of_every_file_before_the_plan(team: Team) -> None:
    shown = team.project().add(team.reference(path="kit"))
    for text in ("'touch expression'", "BASH_ENV: kit/startup.sh", "touch startup", "run: touch other"):
        assert 0 < shown.index(text) < shown.index("  plan:"), text


def test_no_character_of_a_file_is_hidden(team: Team) -> None:
    text = "# a\rimport os\n# \x1b[2K\x1b[1A \u202e \u00a0 b\x0bc\n\tnot \\r\n"
    (team.folder / "kit" / "startup.sh").write_bytes(text.encode() + b"# \xff\xfe\r\n")
    team.commit("v2")
    shown = team.project().add(team.reference("v2", "kit"))
    for line in ("# a\\rimport os", "# \\x1b[2K\\x1b[1A \\u202e \\xa0 b\\x0bc", "# \\xff\\xfe\\r\n"):
        assert line in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("kept", [True, False], ids=["with its cache", "without its cache"])
def test_an_update_shows_the_difference_from_what_was_shown(team: Team, kept: bool) -> None:
    project = team.project()
    project.add(team.reference("main", "kit"))
    team.write("kit/startup.sh", "touch startup\ntouch more\n")
    team.write("kit/new.sh", "touch new\n")
    team.commit()
    if not kept:
        # Without the files that were shown, there is nothing to compare with, so all of the text is shown.
        shutil.rmtree(team.top / "cache")
    shown = project.ok("library", "update")
    assert "touch new" in shown
    assert ("+touch more" in shown) == kept
    assert ("kit/other.yaml: as shown before" in shown) == kept
    assert ("touch other" in shown.partition("plan:")[0]) != kept


@pytest.mark.parametrize(
    ("old", "new", "told"), [("a b", "a\u00a0b", "a\\xa0b"), ("touch\tx", "touch x", "touch x"), ("x", "x\r", "x\\r")]
)
def test_a_change_of_blanks_alone_is_shown_too(team: Team, old: str, new: str, told: str) -> None:
    project = team.project()
    team.write("kit/startup.sh", f"{old}\n")
    team.commit()
    project.add(team.reference("main", "kit"))
    team.write("kit/startup.sh", f"{new}\n")
    team.commit()
    assert f"    -{old}\n    +{told}\n" in project.ok("library", "update")


@pytest.mark.parametrize("buffered", ["", "1"])
def test_what_was_not_printed_to_its_end_counts_as_not_shown(team: Team, buffered: str) -> None:
    team.write("kit/startup.sh", "".join(f": {number}\n" for number in range(30_000)))
    team.commit("v2")
    project = team.project("one", team.reference("v2", "kit"))
    argv = [sys.executable, "-m", "perfflow", "library", "add", team.reference("v2", "kit")]
    pipe = subprocess.PIPE
    env = {**os.environ, **team.env, "PYTHONUNBUFFERED": buffered}
    with subprocess.Popen(argv, cwd=project.root, env=env, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read().decode()
    assert process.returncode == 0
    assert "so it counts as not shown" in told
    assert "never shown on this machine" in project.refused("run", "own", *WORDS)
    project.add()
    project.ok("plan", "own")
    assert "never shown" not in project.run("run", "own", *WORDS).stderr


def test_a_lock_that_names_another_file_of_an_item_is_refused(team: Team) -> None:
    project = team.project("one", team.reference(path="kit"))
    project.add(team.reference(path="kit"))
    lock = project.lock.read_text()
    assert 'path: "kit/workflow.yaml"' in lock
    project.lock.write_text(lock.replace('path: "kit/workflow.yaml"', 'path: "kit/other.yaml"'))
    for words in (("run", "own"), ("gate", "own", "--base=HEAD"), ("library", "verify"), ("library", "add")):
        told = project.refused(*words)
        assert "`path` is kit/other.yaml, which is not the file that the reference names" in told
    assert not (project.root / "other").exists()


@pytest.mark.parametrize("path", ["kit/other.yaml", "kit/other"])
def test_another_reference_to_files_that_were_shown_was_not_shown(team: Team, path: str) -> None:
    """The same files and checksums, but the lock lets another of the files be the workflow."""
    project, other = team.project("one", team.reference(path=path)), team.project("two")
    other.add(team.reference(path="kit"))
    lock = other.lock.read_text().replace("v1#kit", f"v1#{path}")
    project.lock.write_text(lock.replace('path: "kit/workflow.yaml"', 'path: "kit/other.yaml"'))
    assert "never shown on this machine" in project.refused("run", "own", *WORDS)
    assert not (project.root / "other").exists()


def test_adding_at_once_keeps_all_pins(team: Team) -> None:
    project = team.project()
    references = [team.reference(path=path) for path in ("kit", "parts/limits.yaml", "workflows/command.yaml")]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(project.add, references))
    assert sorted(item["reference"] for item in project.items()) == sorted(references)


def test_adding_the_same_at_once_into_an_empty_cache(team: Team) -> None:
    projects = [team.project(name) for name in ("one", "two", "three")]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda project: project.add(team.reference(path="kit")), projects))
    assert len({project.lock.read_text() for project in projects}) == 1


@pytest.mark.parametrize("way", ["write", "link"])
def test_the_bytes_that_were_compared_are_those_that_are_read(
    team: Team, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    project = team.project()
    project.add(team.reference())
    for name, value in team.env.items():
        monkeypatch.setenv(name, value)
    library = Library(project.root)
    readable = library.readable(project.root / "workflows" / "own.yaml")
    path = library.find(team.reference())
    top = path.parent.parent
    for file in (path, top / "parts" / "limits.yaml", top / "tools" / "words.yaml"):
        before = file.read_bytes()
        (top / "planted.yaml").write_text(OTHER)
        if way == "write":
            file.write_text(OTHER)
        else:
            file.unlink()
            file.symlink_to(top / "planted.yaml")
        assert readable.bytes_of(file) == before
    with pytest.raises(UserError, match="lies outside the project"):
        readable.bytes_of(top / "planted.yaml")


@pytest.mark.parametrize(
    "text",
    [
        *(f"git+{scheme}://user:s3cret-token@example.org/o/r@v1#w.yaml" for scheme in ("https", "ssh", "http")),
        "git+https://s3cret-token@example.org/o/r@v1#w.yaml",
        "https://user:s3cret-token@example.org/o/r@v1#w.yaml",
        "git+https://user:s3cret-token@example.org/o/r@..#w.yaml",
        "user:s3cret-token@example.org/o/r",
    ],
)
def test_a_token_in_a_reference_is_not_printed(text: str, tmp_path: Path) -> None:
    done = perfflow("library", "add", text, cwd=tmp_path)
    assert (done.returncode, "s3cret" in done.stdout + done.stderr) == (2, False)


def test_nothing_is_left_of_a_command_that_was_killed(team: Team, tmp_path: Path) -> None:
    project, programs, temporary = team.project(), tmp_path / "bin", tmp_path / "tmp"
    programs.mkdir()
    temporary.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (programs / "git").chmod(0o755)
    team.env["TMPDIR"] = str(temporary)
    cache = team.top / "cache" / "perfflow" / "library"
    argv = [sys.executable, "-m", "perfflow", "library", "add", team.reference()]
    slow = {**os.environ, **team.env, "PATH": f"{programs}:{os.environ['PATH']}"}
    with subprocess.Popen(argv, cwd=project.root, env=slow, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while not list(cache.glob(".fresh-*/perfflow-fetch-*")):
            assert time.monotonic() < end
            time.sleep(0.01)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    assert list(temporary.iterdir()) == []
    project.add(team.reference())
    assert [path.name for path in cache.iterdir() if path.name.startswith(".")] == []
    assert git(project.root, "status", "--short", "perfflow.lock").strip() == "?? perfflow.lock"
