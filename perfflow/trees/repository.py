"""The user's repository, used without changing it, and the user's own working tree: its root and its revision.

New objects go to a private object store in the user's cache, which borrows the user's objects as an alternate. So
nothing in the project changes until a commit is stored there on request (``commits.branch``).
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_cache_path

from perfflow.machine.private_folder import private_folder
from perfflow.model.errors import Exit, UserError
from perfflow.model.similar import nearest
from perfflow.trees import git, submodule_links
from perfflow.trees.git import Git

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DEEPEN = "this is a shallow clone: git fetch --unshallow (in CI: fetch-depth: 0), or git fetch --deepen=100"


@dataclass(frozen=True)
class CodeState:
    """A state of the code: its commit, and the tree that a slot shows.

    With submodules, the tree differs from that of the commit: it contains their files in place of the links to them.
    ``left_out``: folders of the user's tree that no tree can contain, which are repositories but not submodules.
    """

    commit: str
    tree: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Repository:
    """One git working tree of the user, and perfflow's folder (``home``) for it.

    ``borrowed``: object folders that are read but never written, those of the user and of the submodules.
    """

    root: Path
    git_folder: Path
    home: Path
    borrowed: tuple[Path, ...]
    submodules: bool
    to_fill: frozenset[str] | None = None
    """The paths of the submodules that trees contain; None for all of them."""
    inspecting: bool = False
    """Whether only revisions are read: nothing is written, and no program that it names is started."""

    def git(self, index: Path | None = None, worktree: Path | None = None) -> Git:
        """Return git with this repository's history and settings, the private store, ``index`` and ``worktree``."""
        if self.inspecting:
            return git.inspecting(self.root)
        variables = {
            "GIT_DIR": str(self.git_folder),
            "GIT_WORK_TREE": str(worktree or self.root),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, self.borrowed)),
            # Without this, git would use the user's index.
            "GIT_INDEX_FILE": str(index or self.home / "no-index"),
        }
        # git-lfs writes cleaned files to this store, and finds the user's through the alternates above.
        settings = {"lfs.storage": str(self.large_files)}
        return Git(worktree or self.root, variables, settings)

    @property
    def objects(self) -> Path:
        """The private object store."""
        return self.home / "objects"

    @property
    def large_files(self) -> Path:
        """The git-lfs store for the content of files that perfflow recorded."""
        return self.home / "lfs"

    @property
    def shallow(self) -> bool:
        """Whether this repository is a shallow clone."""
        return self.git().line("rev-parse", "--is-shallow-repository") == "true"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a temporary folder for index files. ``open_slots`` removes those of killed runs."""
        folder = self.home / "scratch"
        with writing(folder):
            folder.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as name:
                yield Path(name)

    def tree(self, treeish: str) -> str:
        """Return the id of the tree of a commit or tree. Raises UserError if there is none."""
        return self.git().line("rev-parse", "--verify", "--quiet", f"{treeish}^{{tree}}", what=f"no tree {treeish}")

    def revision(self, name: str) -> str:
        """Return the commit of a revision. Raises UserError with the nearest names for an unknown one."""
        done = self.git().attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.status or not name:
            raise UserError.of(f"{name!r} is not a revision of {self.root}", self._near(name))
        return done.stdout.decode().strip()

    def head(self) -> str | None:
        """Return the commit that the user's tree is at; None before the first commit."""
        done = self.git().attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return done.stdout.decode().strip() if done.status == 0 else None

    def merge_base(self, one: str, other: str) -> str:
        """Return the newest commit that both revisions descend from. Raises UserError if there is none."""
        done = self.git().attempt("merge-base", self.revision(one), self.revision(other))
        if done.status:
            hint = _DEEPEN if self.shallow else "name the base itself with --base REV"
            raise UserError.of(f"{one} and {other} have no common ancestor here", hint)
        return done.stdout.decode().strip()

    def _near(self, name: str) -> str:
        known = self.git().run("for-each-ref", "--format=%(refname:short)").decode(errors="replace").split("\n")
        remote = [ref for ref in known if name and ref.endswith(f"/{name}")]
        near = next(iter(remote), "") or nearest(name, known)
        meant = f"did you mean {near}?" if near else ""
        if self.shallow:
            return "; ".join(filter(None, (meant, _DEEPEN)))
        return meant or "git log --oneline and git branch --all list commits and branches"


def open_repository(root: Path, *, with_submodules: bool | Literal["auto"] = False) -> Repository:
    """Open the git working tree with the top ``root``; makes the cache folder, but nothing in the project.

    ``with_submodules``: whether trees contain the files of submodules; ``auto``: of those that are checked out.
    Raises UserError if it is not a git working tree, git refuses it, or the cache is inside it or of another user.
    """
    root = root.resolve()
    git_folder = _git_folder(root)
    home = home_of(root)
    if home.is_relative_to(root):
        hint = "set XDG_CACHE_HOME to a folder outside; build tools treat a tree inside another one as a part of it"
        raise UserError.of(f"the cache folder {home} lies inside the project", hint)
    borrowed = [common(git_folder) / "objects"]
    checked_out = submodule_links.present(root) if with_submodules and (root / ".gitmodules").is_file() else []
    borrowed += [common(_git_folder(root / path)) / "objects" for path in checked_out]
    with writing(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        private_folder(home, below=home.parent)
        (home / "objects").mkdir(exist_ok=True)
        _note_project(home, root)
    if with_submodules == "auto":
        return Repository(root, git_folder, home, tuple(borrowed), bool(checked_out), frozenset(checked_out))
    return Repository(root, git_folder, home, tuple(borrowed), with_submodules)


def look_at(root: Path) -> Repository:
    """Open the git working tree with the top ``root`` to read revisions. Writes nothing, not even in the cache.

    Raises UserError if it is not a git working tree.
    """
    root = root.resolve()
    return Repository(
        root, _git_folder(root, git.inspecting(root)), home_of(root), (), submodules=False, inspecting=True
    )


def home_of(root: Path) -> Path:
    """Return the folder for the trees of a project, in the user's cache, named by a hash of the project's path."""
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return (user_cache_path("perfflow") / "trees" / name).resolve()


def common(git_folder: Path) -> Path:
    """Return the part of a git folder that linked working trees share."""
    pointer = git_folder / "commondir"
    if not pointer.is_file():
        return git_folder
    return (git_folder / os.fsdecode(pointer.read_bytes()).removesuffix("\n")).resolve()


@contextmanager
def writing(where: Path) -> Iterator[None]:
    """Turn file system errors when writing to the cache into a UserError with a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise git.full(str(where)) from error
        hint = "make it writable, or set XDG_CACHE_HOME to a folder that is"
        raise UserError.of(f"{error.filename or where}: {error.strerror}", hint, Exit.UNMEASURED) from error


def _git_folder(root: Path, asked: Git | None = None) -> Path:
    asked = asked or Git(root)
    done = asked.attempt("rev-parse", "--show-cdup")
    if done.status:
        if "dubious ownership" in done.stderr:
            hint = f"git config --global --add safe.directory {root}"
            raise UserError.of(f"git refuses {root}, which belongs to another user", hint)
        raise UserError.of(f"{root} is not a git working tree", "run git init, and commit the code to compare")
    if done.stdout.strip():
        raise UserError.of(f"{root} is not the top of its git working tree")
    return Path(asked.line("rev-parse", "--absolute-git-dir"))


def _note_project(home: Path, root: Path) -> None:
    """Note the project of these trees, for `perfflow cache prune`."""
    note = home / "project"
    if not note.exists():
        note.write_bytes(os.fsencode(root) + b"\n")


def _quoted(path: Path) -> str:
    """Return a path for GIT_ALTERNATE_OBJECT_DIRECTORIES, C-quoted if it contains special characters."""
    text = str(path)
    if not any(sign in text for sign in ':"\n\\'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def root_of(path: Path) -> Path | None:
    """Return the top of the git working tree that contains ``path``, or None. Does not follow links to folders."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 (a link in a project must not make another folder the project)
    return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)


def project_here() -> Path:
    """Return the top of the git working tree around the current folder; the folder itself without git."""
    here = Path.cwd()
    return root_of(here) or here


def project_around(here: Path) -> Path | None:
    """Return the project that contains ``here``: the git working tree, else the folder itself.

    None for a home folder, or one above it, without git, because its contents are unrelated.
    """
    home = Path("~").expanduser()
    return root_of(here) or (None if here == home or here in home.parents else here)


def describe_project(root: Path, *, inspecting: bool = False) -> dict[str, Any]:
    """Return the kind, the revision and whether tracked files differ from it; only the kind without git.

    ``inspecting``: start no program that the project's configuration names, so that files with a filter may seem to
    differ, and give up on git after a few seconds.
    """
    if not (root / ".git").exists():
        return _FOLDER
    try:
        # Git never runs the user's hooks and monitors, but it needs filters to compare files with commits.
        inspected = git.without_filters(git.inspecting(root)) if inspecting else Git(root)
        # One call for all three: starting git takes as long as a short benchmark.
        words = ("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--no-renames")
        done = inspected.attempt(*words, *(("--ignore-submodules=dirty",) if inspecting else ()))
    except UserError:
        return _FOLDER
    lines = done.stdout.decode(errors="replace").splitlines() if done.status == 0 else []
    head = dict(line.split(" ", 2)[1:] for line in lines if line.startswith("# branch."))
    revision = head.get("branch.oid", "(initial)")
    if revision == "(initial)":
        return _FOLDER
    dirty = any(not line.startswith("# ") for line in lines)
    return {
        "kind": "working tree",
        "revision": revision,
        "branch": _branch(head.get("branch.head", "")),
        "dirty": dirty,
    }


_FOLDER = {"kind": "folder", "revision": None, "dirty": None}


def has_untracked(root: Path) -> bool:
    """Return whether there are files that are neither tracked nor ignored. Reads every folder."""
    words = ("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory")
    try:
        done = Git(root).attempt(*words)
    except UserError:
        return False
    return done.status == 0 and bool(done.stdout.strip())


def _branch(name: str) -> str:
    """Return the branch as in rev-parse: a detached head is HEAD."""
    return "HEAD" if name == "(detached)" else name
