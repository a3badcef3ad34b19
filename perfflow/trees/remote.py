"""Repositories elsewhere: what their names stand for, and the files of one commit. git runs nothing of them.

No hook, filter, submodule or prompt: a bare repository in a temporary folder is given one commit, whose files are read
out of its objects. ssh and credential helpers of the user's work as far as they ask nothing.
"""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from perfflow.machine.program_path import outside
from perfflow.model.errors import Exit, UserError
from perfflow.model.later import dataclass, late_pattern
from perfflow.trees.git import Done, Git

LIMIT = 120.0
"""Seconds for one command that talks to a repository."""
LARGEST = 128 * 2**20
"""Bytes of one commit as it is sent, compressed and without history."""
MOST_LISTED = 32 * 2**20
"""Bytes of the paths of one commit: about 300,000 files. A few small objects can name more than a disk holds."""
TAG, BRANCH, COMMIT = "tag", "branch", "commit"
_COMMIT = late_pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORTENED = late_pattern(r"[0-9a-f]{7,63}")
_NO_FILE = {"120000": "a symbolic link", "160000": "a submodule", "040000": "a folder"}
_SETTINGS = {
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "fetch.recurseSubmodules": "false",
    "transfer.bundleURI": "false",
    # One file for all objects, so that its size is theirs; the large ones of them go through no memory.
    "fetch.unpackLimit": "1",
    "core.bigFileThreshold": "1m",
}
_UNADVERTISED = "does not allow request for unadvertised object"
_NOT_READ = "fatal: Could not read from remote repository"
_REMEDY = "check the address and the network; git must get in without asking: a credential helper, or ssh-agent"


@dataclass(frozen=True)
class File:
    """A file of a commit: its object, and its size in bytes. ``kind`` is '' for a regular one."""

    oid: str
    size: int
    kind: str


@dataclass(frozen=True)
class Snapshot:
    """A commit that was fetched: path -> file. Folders are not in it."""

    url: str
    commit: str
    files: Mapping[str, File]
    git: Git

    def bytes_of(self, path: str, largest: int) -> bytes:
        """The bytes of a regular file of at most ``largest`` bytes. Raises UserError for anything else."""
        file = self.files[path]
        if file.kind:
            hint = "name a regular file; perfflow follows no link and fetches no submodule"
            raise UserError.of(f"{path} of {self.url} is {file.kind}", hint)
        if file.size > largest:
            hint = "a workflow is a short text; is this the right file?"
            raise UserError.of(f"{path} of {self.url} has {file.size:,} bytes, more than {largest:,}", hint)
        return self.git.run("cat-file", "blob", file.oid, what=f"reading {path}")


def tip(url: str, revision: str, root: Path) -> tuple[str, str]:
    """The commit that a revision of a repository stands for now, and whether that is a tag, a branch or a commit.

    ``root``: the project, of which no program is run. Raises UserError, without a network with exit status 3.
    """
    if _COMMIT.fullmatch(revision):
        return revision, COMMIT
    with _git(url, root) as git:
        done = git.attempt("ls-remote", "--tags", "--heads", "--", url)
        _require(done, f"asking {url} for its tags and branches")
    pairs = (line.split("\t", 1) for line in done.stdout.decode(errors="replace").splitlines() if "\t" in line)
    refs = {name: oid for oid, name in pairs}
    for kind, name in ((TAG, f"refs/tags/{revision}"), (BRANCH, f"refs/heads/{revision}")):
        # Of a tag that is an object of its own, the commit is what stands behind it.
        if found := refs.get(f"{name}^{{}}") or refs.get(name):
            return found, kind
    known = [name.split("/", 2)[2] for name in refs if not name.endswith("^{}")]
    near = difflib.get_close_matches(revision, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(known[:10]) or 'none'}"
    if _SHORTENED.fullmatch(revision):
        hint = "a commit is named by all of its digits"
    raise UserError.of(f"{url} has no tag and no branch called {revision!r}", hint)


@contextmanager
def fetched(url: str, commit: str, root: Path) -> Iterator[Snapshot]:
    """Fetch one commit for a while. Raises UserError, without a network with exit status 3."""
    with _git(url, root) as git:
        git.run("init", "--quiet", "--bare", "--template=", ".")
        _fetch(git, url, commit)
        lister = replace(git, largest=MOST_LISTED)
        listed = lister.attempt("ls-tree", "-r", "-z", "--long", "--full-tree", commit)
        _require(listed, f"listing {commit[:12]} of {url}", MOST_LISTED)
        yield Snapshot(url, commit, dict(_files(listed.stdout)), git)


def _fetch(git: Git, url: str, commit: str) -> None:
    """Fetch one commit without its history, or all branches and tags where the server sends nothing else."""
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    # Its own name for it, so that no name of theirs is one of ours.
    done = git.attempt(*words, "--depth=1", "--", url, f"{commit}:refs/perfflow/item")
    if _UNADVERTISED in done.stderr:
        # A server that speaks the first protocol only, such as sshd without AcceptEnv GIT_PROTOCOL.
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
def _git(url: str, root: Path) -> Iterator[Git]:
    """Git in a temporary folder of its own, which talks over the one transport of ``url`` and asks nobody."""
    path = outside(os.environ.get("PATH", os.defpath), root)
    program = shutil.which("git", path=path)
    if program is None:
        raise UserError.of("git is not on PATH", "install git", Exit.UNMEASURED)
    transport = url.partition(":")[0]
    with tempfile.TemporaryDirectory(prefix="perfflow-fetch-") as folder:
        variables = {
            "PATH": path,
            # The user's `url.*.insteadOf` may turn one of these two into the other.
            "GIT_ALLOW_PROTOCOL": "file" if transport == "file" else "https:ssh",
            # Without a terminal ssh asks nothing either, but programs with windows would.
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
        # Why ssh was not let in is said by ssh itself, in the line before.
        at -= at > 0 and lines[at].startswith(_NOT_READ)
        said = lines[at] if lines else ""
        raise UserError.of(f"{what}: {said.partition(': ')[2] or said or 'git failed'}", _REMEDY, Exit.UNMEASURED)
