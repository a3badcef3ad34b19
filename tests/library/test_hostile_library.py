"""Attacks by items of other repositories, by a changed ``perfflow.lock``, and by processes at the same time."""

from __future__ import annotations

import json
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


def lock_of(root: Path) -> str:
    return (root / "perfflow.lock").read_text()


def test_add_shows_the_text_of_every_file_before_the_plan(team: Team) -> None:
    root = team.project("one", team.reference(path="kit"))
    shown = team.run("library", "add", team.reference(path="kit"), cwd=root).stdout
    for text in ("'touch expression'", "BASH_ENV: kit/startup.sh", "touch startup", "run: touch other"):
        assert 0 < shown.index(text) < shown.index("  plan:"), text


def test_no_character_of_a_file_is_hidden(team: Team) -> None:
    text = "# a\rimport os\n# \x1b[2K\x1b[1A \u202e \u00a0 b\x0bc\n\tnot \\r\n"
    (team.folder / "kit" / "startup.sh").write_bytes(text.encode() + b"# \xff\xfe\r\n")
    team.commit("v2")
    shown = team.run("library", "add", team.reference("v2", "kit"), cwd=team.project("one")).stdout
    assert "# a\\rimport os" in shown
    assert "# \\x1b[2K\\x1b[1A \\u202e \\xa0 b\\x0bc" in shown
    assert "# \\xff\\xfe\\r\n" in shown
    assert "\x1b" not in shown


def test_an_update_shows_the_difference_from_what_was_shown(team: Team) -> None:
    reference, root = team.reference("main", "kit"), team.project("one")
    team.run("library", "add", reference, cwd=root)
    team.write("kit/startup.sh", "touch startup\ntouch more\n")
    team.write("kit/new.sh", "touch new\n")
    team.commit()
    (team.top / "cache").rename(team.top / "kept")
    for number, state in enumerate(("kept", "gone")):
        # Without the files that were shown, there is nothing to compare with, so all of the text is shown.
        shutil.rmtree(team.top / "cache", ignore_errors=True)
        if state == "kept":
            shutil.copytree(team.top / "kept", team.top / "cache")
        (here := team.project(f"p{number}")).joinpath("perfflow.lock").write_text(lock_of(root))
        shown = team.run("library", "update", cwd=here).stdout
        assert "touch new" in shown
        assert ("+touch more" in shown) == (state == "kept")
        assert ("kit/other.yaml: as shown before" in shown) == (state == "kept")
        assert ("touch other" in shown.partition("plan:")[0]) == (state == "gone")
        shutil.rmtree(team.top / "state")
        os.makedirs(team.top / "state")  # noqa: PTH103
        if state == "kept":
            team.run("library", "add", cwd=root)


@pytest.mark.parametrize("old", ["a b", "touch\tx", "x"])
def test_a_change_of_blanks_alone_is_shown_too(team: Team, old: str) -> None:
    reference, root = team.reference("main", "kit"), team.project("one")
    team.write("kit/startup.sh", f"{old}\n")
    team.commit()
    team.run("library", "add", reference, cwd=root)
    new = old.replace(" ", "\u00a0").replace("\t", " ") if old != "x" else "x\r"
    team.write("kit/startup.sh", f"{new}\n")
    team.commit()
    shown = team.run("library", "update", cwd=root).stdout
    assert f"    -{old}\n    +{new.replace(chr(0xA0), chr(92) + 'xa0').replace(chr(13), chr(92) + 'r')}\n" in shown


@pytest.mark.parametrize("buffered", ["", "1"])
def test_what_was_not_printed_to_its_end_counts_as_not_shown(team: Team, buffered: str) -> None:
    team.write("kit/startup.sh", "".join(f": {number}\n" for number in range(30_000)))
    team.commit("v2")
    root = team.project("one", team.reference("v2", "kit"))
    argv = [sys.executable, "-m", "perfflow", "library", "add", team.reference("v2", "kit")]
    pipe = subprocess.PIPE
    env = {**os.environ, **team.env, "PYTHONUNBUFFERED": buffered}
    with subprocess.Popen(argv, cwd=root, env=env, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read().decode()
    assert process.returncode == 0
    assert "so it counts as not shown" in told
    assert "never shown on this machine" in team.run("run", "own", *WORDS, cwd=root).stderr
    team.run("library", "add", cwd=root)
    assert team.run("plan", "own", cwd=root).returncode == 0
    assert "never shown" not in team.run("run", "own", *WORDS, cwd=root).stderr


def test_a_lock_that_names_another_file_of_an_item_is_refused(team: Team) -> None:
    root = team.project("one", team.reference(path="kit"))
    team.run("library", "add", team.reference(path="kit"), cwd=root)
    lock = lock_of(root)
    assert 'path: "kit/workflow.yaml"' in lock
    (root / "perfflow.lock").write_text(lock.replace('path: "kit/workflow.yaml"', 'path: "kit/other.yaml"'))
    for words in (("run", "own"), ("gate", "own", "--base=HEAD"), ("library", "verify"), ("library", "add")):
        done = team.run(*words, cwd=root)
        assert done.returncode == 2, words
        assert "`path` is kit/other.yaml, which is not the file that the reference names" in done.stderr
    assert not (root / "other").exists()


@pytest.mark.parametrize("path", ["kit/other.yaml", "kit/other"])
def test_another_reference_to_files_that_were_shown_was_not_shown(team: Team, path: str) -> None:
    """The same files and checksums, but the lock lets another of the files be the workflow."""
    root = team.project("one", team.reference(path=path))
    other = team.project("two")
    team.run("library", "add", team.reference(path="kit"), cwd=other)
    lock = lock_of(other).replace("v1#kit", f"v1#{path}").replace('path: "kit/workflow.yaml"', 'path: "kit/other.yaml"')
    (root / "perfflow.lock").write_text(lock)
    done = team.run("run", "own", *WORDS, cwd=root)
    assert (done.returncode, (root / "other").exists()) == (2, False)
    assert "never shown on this machine" in done.stderr


def test_adding_at_once_keeps_all_pins(team: Team) -> None:
    root = team.project("one")
    references = [team.reference(path=path) for path in ("kit", "parts/limits.yaml", "workflows/command.yaml")]
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda one: team.run("library", "add", one, cwd=root), references))
    assert [item.returncode for item in done] == [0, 0, 0], [item.stderr for item in done]
    listed = json.loads(team.run("library", "list", "--json", cwd=root).stdout)["items"]
    assert sorted(item["reference"] for item in listed) == sorted(references)


def test_adding_the_same_at_once_into_an_empty_cache(team: Team) -> None:
    roots = [team.project(name) for name in ("one", "two", "three")]
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda root: team.run("library", "add", team.reference(path="kit"), cwd=root), roots))
    assert [item.returncode for item in done] == [0, 0, 0], [item.stderr for item in done]
    assert {lock_of(root) for root in roots} == {lock_of(roots[0])}


@pytest.mark.parametrize("way", ["write", "link"])
def test_the_bytes_that_were_compared_are_those_that_are_read(
    team: Team, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    root = team.project("one")
    team.run("library", "add", team.reference(), cwd=root)
    for name, value in team.env.items():
        monkeypatch.setenv(name, value)
    library = Library(root)
    readable = library.readable(root / "workflows" / "own.yaml")
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
        "git+https://user:s3cret-token@example.org/o/r@v1#w.yaml",
        "git+https://s3cret-token@example.org/o/r@v1#w.yaml",
        "git+ssh://user:s3cret-token@example.org/o/r@v1#w.yaml",
        "https://user:s3cret-token@example.org/o/r@v1#w.yaml",
        "git+http://user:s3cret-token@example.org/o/r@v1#w.yaml",
        "git+https://user:s3cret-token@example.org/o/r@..#w.yaml",
        "user:s3cret-token@example.org/o/r",
    ],
)
def test_a_token_in_a_reference_is_not_printed(text: str, tmp_path: Path) -> None:
    done = perfflow("library", "add", text, cwd=tmp_path)
    assert done.returncode == 2
    assert "s3cret" not in done.stdout + done.stderr


def test_nothing_is_left_of_a_command_that_was_killed(team: Team, tmp_path: Path) -> None:
    root, programs, temporary = team.project("one"), tmp_path / "bin", tmp_path / "tmp"
    programs.mkdir()
    temporary.mkdir()
    (programs / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (programs / "git").chmod(0o755)
    env = {**os.environ, **team.env, "TMPDIR": str(temporary)}
    cache = team.top / "cache" / "perfflow" / "library"
    argv = [sys.executable, "-m", "perfflow", "library", "add", team.reference()]
    slow = {**env, "PATH": f"{programs}:{env['PATH']}"}
    with subprocess.Popen(argv, cwd=root, env=slow, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while not list(cache.glob(".fresh-*/perfflow-fetch-*")):
            assert time.monotonic() < end
            time.sleep(0.01)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    assert list(temporary.iterdir()) == []
    done = perfflow("library", "add", team.reference(), cwd=root, env={**team.env, "TMPDIR": str(temporary)})
    assert done.returncode == 0, done.stderr
    assert [path.name for path in cache.iterdir() if path.name.startswith(".")] == []
    assert git(root, "status", "--short", "perfflow.lock").strip() == "?? perfflow.lock"
