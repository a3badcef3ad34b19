"""The user's repository, read from outside.

New objects go to a private object store under the user's cache; the user's own objects are borrowed from it as an
alternate. So nothing below the project changes until a commit is asked to be kept there (``commits.branch``).
"""

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfflow.model.errors import Exit, UserError
from perfflow.model.later import dataclass
from perfflow.trees import git, submodule_links
from perfflow.trees.git import Git

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DEEPEN = "this is a shallow clone: git fetch --unshallow (in CI: fetch-depth: 0), or git fetch --deepen=100"


@dataclass(frozen=True)
class State:
    """A state of the code: the commit that stands for it, and the tree that a slot shows.

    The two differ where submodules are carried: the tree then holds their files in place of the links to them.
    ``left_out`` names folders of the user's tree that no tree can carry: repositories that are not submodules.
    """

    commit: str
    tree: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Repository:
    """One git working tree of the user: where it is, and where perfflow keeps what belongs to it.

    ``borrowed`` are the object folders that are read but never written: the user's, and those of his submodules.
    """

    root: Path
    git_folder: Path
    home: Path
    borrowed: tuple[Path, ...]
    submodules: bool
    looking: bool = False
    """Whether it is only asked about revisions: nothing is written, and nothing that it names is started."""

    def git(self, index: Path | None = None, worktree: Path | None = None) -> Git:
        """Git on this repository's history and settings, with a private object store, ``index`` and ``worktree``."""
        if self.looking:
            return git.looking(self.root)
        variables = {
            "GIT_DIR": str(self.git_folder),
            "GIT_WORK_TREE": str(worktree or self.root),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, self.borrowed)),
            # Without one, the user's index would be meant.
            "GIT_INDEX_FILE": str(index or self.home / "no-index"),
        }
        # git-lfs writes what it cleans into its own store, and finds the user's through the alternates above.
        settings = {"lfs.storage": str(self.large_files)}
        return Git(worktree or self.root, variables, settings)

    @property
    def objects(self) -> Path:
        """The private object store."""
        return self.home / "objects"

    @property
    def large_files(self) -> Path:
        """Where git-lfs puts the content of files that were recorded here."""
        return self.home / "lfs"

    @property
    def shallow(self) -> bool:
        """Whether history was cut off when this repository was cloned."""
        return self.git().line("rev-parse", "--is-shallow-repository") == "true"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for temporary index files, gone afterwards; what a killed run left goes with ``Slots``."""
        folder = self.home / "scratch"
        with writing(folder):
            folder.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as name:
                yield Path(name)

    def tree(self, treeish: str) -> str:
        """The id of the tree of a commit or tree. Raises UserError where there is none."""
        return self.git().line("rev-parse", "--verify", "--quiet", f"{treeish}^{{tree}}", what=f"no tree {treeish}")

    def revision(self, name: str) -> str:
        """The commit that ``name`` means. Raises UserError for an unknown one, with the nearest names."""
        done = self.git().attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if done.status or not name:
            raise UserError.of(f"{name!r} is not a revision of {self.root}", self._near(name))
        return done.stdout.decode().strip()

    def head(self) -> str | None:
        """The commit the user's tree is at; None before the first one."""
        done = self.git().attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return done.stdout.decode().strip() if done.status == 0 else None

    def merge_base(self, one: str, other: str) -> str:
        """The newest commit that both revisions descend from. Raises UserError where there is none."""
        done = self.git().attempt("merge-base", self.revision(one), self.revision(other))
        if done.status:
            hint = _DEEPEN if self.shallow else "name the base itself with --base REV"
            raise UserError.of(f"{one} and {other} have no common ancestor here", hint)
        return done.stdout.decode().strip()

    def _near(self, name: str) -> str:
        known = self.git().run("for-each-ref", "--format=%(refname:short)").decode(errors="replace").split("\n")
        remote = [ref for ref in known if name and ref.endswith(f"/{name}")]
        near = remote[:1] or difflib.get_close_matches(name, known, 1)
        meant = f"did you mean {near[0]}?" if near and near[0] else ""
        if self.shallow:
            return "; ".join(filter(None, (meant, _DEEPEN)))
        return meant or "git log --oneline and git branch --all list what there is"


def open_repository(root: Path, *, with_submodules: bool = False) -> Repository:
    """Look at the git working tree whose top is ``root``; makes the cache folder, and nothing in the project.

    Raises UserError where there is no git working tree, git refuses it, or the cache lies inside it.
    """
    root = root.resolve()
    git_folder = _git_folder(root)
    home = home_of(root)
    if home.is_relative_to(root):
        hint = "set XDG_CACHE_HOME to a folder outside; build tools take a tree inside another for a part of it"
        raise UserError.of(f"the cache folder {home} lies inside the project", hint)
    borrowed = [common(git_folder) / "objects"]
    if with_submodules:
        borrowed += [common(_git_folder(root / path)) / "objects" for path in submodule_links.present(root)]
    with writing(home):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "objects").mkdir(exist_ok=True)
        _note_project(home, root)
    return Repository(root, git_folder, home, tuple(borrowed), with_submodules)


def look_at(root: Path) -> Repository:
    """The git working tree whose top is ``root``, to ask about revisions. Makes nothing, not even in the cache.

    Raises UserError where there is no git working tree.
    """
    root = root.resolve()
    return Repository(root, _git_folder(root, git.looking(root)), home_of(root), (), submodules=False, looking=True)


def home_of(root: Path) -> Path:
    """Where the trees of a project lie: a folder of the user's cache, named by a hash of the project's path."""
    from platformdirs import user_cache_path

    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return (user_cache_path("perfflow") / "trees" / name).resolve()


def common(git_folder: Path) -> Path:
    """The part of a git folder that its linked working trees share."""
    pointer = git_folder / "commondir"
    if not pointer.is_file():
        return git_folder
    return (git_folder / os.fsdecode(pointer.read_bytes()).removesuffix("\n")).resolve()


@contextmanager
def writing(where: Path) -> Iterator[None]:
    """Turn what the file system says about writing to the cache into a UserError with a remedy."""
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
        raise UserError.of(f"{root} is not a git working tree", "git init, and commit what is to be compared")
    if done.stdout.strip():
        raise UserError.of(f"{root} is not the top of its git working tree")
    return Path(asked.line("rev-parse", "--absolute-git-dir"))


def _note_project(home: Path, root: Path) -> None:
    """Say whose trees these are, for whoever cleans up."""
    note = home / "project"
    if not note.exists():
        note.write_bytes(os.fsencode(root) + b"\n")


def _quoted(path: Path) -> str:
    """A path as GIT_ALTERNATE_OBJECT_DIRECTORIES takes it: C-quoted where it holds what would be misread."""
    text = str(path)
    if not any(sign in text for sign in ':"\n\\'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
