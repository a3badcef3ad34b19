"""Remote repositories: resolve revisions, and fetch the files of one commit. git runs none of their programs.

No hook, filter, submodule or prompt: one commit is fetched into a bare repository in a temporary folder, and its files
are read from the objects. The user's ssh and credential helpers work as long as they do not prompt.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.machine.facts import outside
from perfflow.model.errors import Exit, UserError
from perfflow.model.similar import nearest
from perfflow.trees.git import Done, Git

LIMIT = 120.0
"""Longest time (s) of one command that talks to a repository."""
LARGEST = 128 * 2**20
"""Most bytes of one commit as it is sent, compressed and without history."""
MOST_LISTED = 32 * 2**20
"""Most bytes of the paths of one commit: about 300,000 files. A few small objects can list more than a disk holds."""
TAG, BRANCH, COMMIT = "tag", "branch", "commit"
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORTENED = re.compile(r"[0-9a-f]{7,63}")
_NO_FILE = {"120000": "a symbolic link", "160000": "a submodule", "040000": "a folder"}
_SETTINGS = {
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "fetch.recurseSubmodules": "false",
    "transfer.bundleURI": "false",
    # One file for all objects, so that the size limit applies to all of them; large objects are streamed.
    "fetch.unpackLimit": "1",
    "core.bigFileThreshold": "1m",
}
_UNADVERTISED = "does not allow request for unadvertised object"
_NOT_READ = "fatal: Could not read from remote repository"
_REMEDY = "check the address and the network; git must log in without a prompt: use a credential helper or ssh-agent"


@dataclass(frozen=True)
class File:
    """A file of a commit: its object, and its size in bytes. ``kind`` is '' for a regular file."""

    oid: str
    size: int
    kind: str


@dataclass(frozen=True)
class Snapshot:
    """A fetched commit: path -> file, without folders."""

    url: str
    commit: str
    files: Mapping[str, File]
    git: Git

    def bytes_of(self, path: str, largest: int) -> bytes:
        """Return the bytes of a regular file of at most ``largest`` bytes. Raises UserError for anything else."""
        file = self.files[path]
        if file.kind:
            hint = "name a regular file; perfflow does not follow links or fetch submodules"
            raise UserError.of(f"{path} of {self.url} is {file.kind}", hint)
        if file.size > largest:
            hint = "check that this is a workflow file"
            raise UserError.of(f"{path} of {self.url} has {file.size:,} bytes, more than {largest:,}", hint)
        return self.git.run("cat-file", "blob", file.oid, what=f"reading {path}")


def tip(url: str, revision: str, root: Path, within: Path | None = None) -> tuple[str, str]:
    """Return the current commit of a revision, and whether the revision is a tag, a branch or a commit.

    ``root``: the project, whose programs are not run. ``within``: for temporary files, by default the system's folder.
    Raises UserError, with exit status 3 if the network fails.
    """
    if _COMMIT.fullmatch(revision):
        return revision, COMMIT
    with _git(url, root, within) as git:
        done = git.attempt("ls-remote", "--tags", "--heads", "--", url)
        _require(done, f"asking {url} for its tags and branches")
    pairs = (line.split("\t", 1) for line in done.stdout.decode(errors="replace").splitlines() if "\t" in line)
    refs = {name: oid for oid, name in pairs}
    for kind, name in ((TAG, f"refs/tags/{revision}"), (BRANCH, f"refs/heads/{revision}")):
        # An annotated tag is an object of its own; `^{}` is its commit.
        if commit := refs.get(f"{name}^{{}}") or refs.get(name):
            return commit, kind
    known = [name.split("/", 2)[2] for name in refs if not name.endswith("^{}")]
    near = nearest(revision, known)
    hint = f"did you mean {near!r}?" if near else f"it has: {', '.join(known[:10]) or 'none'}"
    if _SHORTENED.fullmatch(revision):
        hint = "write all digits of a commit"
    raise UserError.of(f"{url} has no tag and no branch called {revision!r}", hint)


@contextmanager
def fetched(url: str, commit: str, root: Path, within: Path | None = None) -> Iterator[Snapshot]:
    """Fetch one commit into a temporary folder, as ``tip``. Raises UserError, exit status 3 if the network fails."""
    with _git(url, root, within) as git:
        git.run("init", "--quiet", "--bare", "--template=", ".")
        _fetch(git, url, commit)
        lister = replace(git, largest=MOST_LISTED)
        listed = lister.attempt("ls-tree", "-r", "-z", "--long", "--full-tree", commit)
        _require(listed, f"listing {commit[:12]} of {url}", MOST_LISTED)
        yield Snapshot(url, commit, dict(_files(listed.stdout)), git)


def _fetch(git: Git, url: str, commit: str) -> None:
    """Fetch one commit without its history, or all branches and tags if the server sends nothing else."""
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    # A ref of perfflow's own, so that the remote's names cannot conflict with it.
    done = git.attempt(*words, "--depth=1", "--", url, f"{commit}:refs/perfflow/item")
    if _UNADVERTISED in done.stderr:
        # A server with the first protocol only, such as sshd without AcceptEnv GIT_PROTOCOL.
        refs = (f"+refs/{kind}/*:refs/perfflow/{kind}/*" for kind in ("heads", "tags"))
        _require(git.attempt(*words, "--", url, *refs), f"fetching {url} with its history, to find {commit[:12]} in it")
        done = git.attempt("cat-file", "-e", f"{commit}^{{commit}}")
        if done.status:
            message = f"fetching {commit[:12]} of {url}: no branch and no tag has it, and the server sends nothing else"
            hint = "give it a tag there, or set uploadpack.allowAnySHA1InWant on the server"
            raise UserError.of(message, hint, Exit.UNMEASURED)
        git.run("update-ref", "refs/perfflow/item", commit)
    _require(done, f"fetching {commit[:12]} of {url}")
    if git.line("rev-parse", "--verify", "refs/perfflow/item^{commit}") != commit:
        raise UserError.of(f"{url}: {commit} is not a commit", "name a tag, a branch or a commit")


def _files(listed: bytes) -> Iterator[tuple[str, File]]:
    for line in listed.split(b"\0"):
        about, _, name = line.partition(b"\t")
        if name:
            mode, _, oid, size = about.decode().split()
            yield os.fsdecode(name), File(oid, int(size) if size.isdigit() else 0, _NO_FILE.get(mode, ""))


@contextmanager
def _git(url: str, root: Path, within: Path | None) -> Iterator[Git]:
    """Yield git in a temporary folder, which uses only the transport of ``url`` and never prompts."""
    path = outside(os.environ.get("PATH", os.defpath), root)
    program = shutil.which("git", path=path)
    if program is None:
        raise UserError.of("git is not on PATH", "install git", Exit.UNMEASURED)
    transport = url.partition(":")[0]
    with tempfile.TemporaryDirectory(prefix="perfflow-fetch-", dir=within) as folder:
        variables = {
            "PATH": path,
            # The user's `url.*.insteadOf` may turn one of these two into the other.
            "GIT_ALLOW_PROTOCOL": "file" if transport == "file" else "https:ssh",
            # ssh does not prompt without a terminal either, but graphical programs would.
            "GIT_ASKPASS": "true",
            "SSH_ASKPASS_REQUIRE": "never",
            "GCM_INTERACTIVE": "never",
            "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
        }
        yield Git(Path(folder), variables, _SETTINGS, program=program, limit=LIMIT, alone=True, largest=LARGEST)


def _require(done: Done, what: str, largest: int = 0) -> None:
    if done.too_large:
        hint = "perfflow fetches all files of the commit: keep the workflows in a repository of their own"
        raise UserError.of(f"{what}: more than {(largest or LARGEST) // 2**20} MiB", hint)
    if done.status:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        fatal = (number for number, line in enumerate(lines) if line.startswith(("fatal: ", "error: ")))
        at = next(fatal, len(lines) - 1)
        # ssh prints its own reason in the line before.
        at -= at > 0 and lines[at].startswith(_NOT_READ)
        reason = lines[at] if lines else ""
        raise UserError.of(f"{what}: {reason.partition(': ')[2] or reason or 'git failed'}", _REMEDY, Exit.UNMEASURED)
