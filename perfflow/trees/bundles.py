"""Send states of the code to another machine: a git bundle with their history, and a clone there that shows one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from perfflow.machine.private_folder import private_folder, require_own
from perfflow.model.errors import Exit, UserError
from perfflow.trees import commits
from perfflow.trees.git import Git, remove_tree
from perfflow.trees.repository import CodeState, Repository, writing

REFS = "refs/perfflow/"
CLONES = 9
"""Most jobs of one project that may work on one machine at the same time."""
HEAD, BASE = "head", "base"
CLONES_OF = "clones"
"""Folder of the cache with the clones that jobs work in, one folder per project."""


def commit_of(repository: Repository, state: CodeState) -> str:
    """Return a commit with the tree that a slot shows for a state; it may contain files of submodules and of head."""
    if repository.tree(state.commit) == state.tree:
        return state.commit
    return commits.write(repository, state.tree, [state.commit], "The tree as it is measured")


def write_source(repository: Repository, folder: Path, states: Mapping[str, str], *, bundle: bool) -> Path:
    """Write commits, by name, for ``clone_of``: a bundle with their history, or a repository that borrows from here.

    Returns the path. Does not write to the user's repository. Raises UserError for a shallow clone, whose history
    cannot be bundled, and for a full disk.
    """
    if bundle and repository.shallow:
        hint = "git fetch --unshallow, or set `trees: path` in executors.yaml where the nodes see this folder"
        raise UserError.of(f"{repository.root} is a shallow clone, which cannot be sent to other machines", hint)
    bare, whole = folder / "trees.git", folder / "trees.bundle"
    with writing(folder):
        Git(folder).run("init", "--quiet", "--bare", str(bare))
        borrowed = [repository.objects, *repository.borrowed]
        lines = "".join(f"{place}\n" for place in dict.fromkeys(borrowed))
        (bare / "objects" / "info" / "alternates").write_text(lines, encoding="utf-8")
        git = Git(bare, {"GIT_DIR": str(bare)})
        for name, commit in states.items():
            git.run("update-ref", f"{REFS}{name}", commit)
        if not bundle:
            return bare
        fresh = folder / f".{whole.name}"
        git.run("bundle", "create", "--quiet", str(fresh), *(f"{REFS}{name}" for name in states))
        fresh.replace(whole)
        remove_tree(bare)
    return whole


def write_kept(clone: Path, branch: str, since: str, path: Path) -> None:
    """Write a branch of a clone to a bundle for the original repository, which has the parents of ``since``.

    It lacks ``since`` itself if that has uncommitted changes.
    """
    Git(clone).run("bundle", "create", "--quiet", str(path), f"refs/heads/{branch}", "--not", f"{since}^@")


def read_kept(root: Path, branch: str, path: Path) -> None:
    """Fetch a branch from a bundle into the user's repository; an existing branch stays unchanged."""
    if Git(root).attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").status:
        name = f"refs/heads/{branch}"
        Git(root).run("fetch", "--quiet", "--no-tags", str(path), f"{name}:{name}", what=f"take {branch}")


@contextmanager
def clone_of(home: Path, source: Path, states: Mapping[str, str]) -> Iterator[Path]:
    """Yield a clone below ``home`` that shows ``states[HEAD]``, for exclusive use. Its build outputs stay.

    ``source`` is a bundle, or a repository that this machine can read. Raises UserError if it lacks a commit, or if
    other users could change the clone.
    """
    with writing(home):
        home = private_folder(home)
    with _free(home) as free:
        with writing(free):
            place = private_folder(free)
            # git runs the programs that its settings name, such as filters.
            require_own(place / ".git")
            git = Git(place, {"GIT_DIR": str(place / ".git"), "GIT_WORK_TREE": str(place)})
            if git.attempt("rev-parse", "--git-dir").status:
                Git(place).run("init", "--quiet", ".")
            _fetch(git, source, states)
            shown = git.attempt("rev-parse", "--verify", "--quiet", "HEAD").stdout.decode().strip()
            git.run("checkout", "--quiet", "--force", "--detach", states[HEAD], what=f"show the code in {place}")
            # Keep build outputs of the same code, ignored or not.
            if shown != states[HEAD]:
                git.run("clean", "-ffdq")
        yield place


def share(root: Path, clone: Path, paths: Sequence[str]) -> None:
    """Link the paths that the workflow shares from the user's own folder, except those that the code contains.

    Raises UserError for a path that this machine does not see.
    """
    for path in paths:
        original, link = root / path, clone / path
        if not original.exists():
            hint = "put the project in a folder that all nodes can read, or make the path in the `setup` stage"
            text = f"`worktree.share` names {path}, but {original} does not exist on this machine"
            raise UserError.of(text, hint, Exit.UNMEASURED)
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(original)


def _fetch(git: Git, source: Path, states: Mapping[str, str]) -> None:
    """Fetch the missing commits from a bundle or a repository."""
    lacking = [commit for commit in states.values() if git.attempt("cat-file", "-e", f"{commit}^{{tree}}").status]
    if not lacking:
        return
    git.run("fetch", "--quiet", "--no-tags", str(source), f"+{REFS}*:{REFS}*", what=f"read the code from {source}")
    for commit in lacking:
        if git.attempt("cat-file", "-e", f"{commit}^{{tree}}").status:
            raise UserError.of(f"{source} lacks the commit {commit[:12]}", "was the file changed?", Exit.UNMEASURED)


@contextmanager
def _free(home: Path) -> Iterator[Path]:
    """Yield the first unused clone."""
    for number in range(CLONES):
        lock = os.open(home / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        os.utime(home / f"{number}.lock")
        try:
            yield home / str(number)
        finally:
            os.close(lock)
        return
    raise UserError.of(f"{CLONES} jobs of this project already run on this machine", "", Exit.UNMEASURED)


def clones(cache: Path) -> Iterator[tuple[Path, float]]:
    """Yield the folder with the clones of each project, and the time of their last use (seconds since 1970)."""
    for home in sorted(path for path in (cache / CLONES_OF).glob("*") if path.is_dir()):
        yield home, max((file.stat().st_mtime for file in home.glob("*.lock")), default=0.0)


@contextmanager
def held(home: Path) -> Iterator[bool]:
    """Lock the clones of a project; yield False if a job uses one."""
    with ExitStack() as stack:
        for file in home.glob("*.lock"):
            lock = os.open(file, os.O_RDWR | os.O_CLOEXEC)
            stack.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
        yield True
