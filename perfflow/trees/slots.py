"""Folders outside the project that show any state of the code, and keep their build outputs.

- ``Slot`` is such a folder. A run uses one or two of them (``open_slots``). The others keep builds for later runs. A
  slot has its own index, so a switch from one tree to another writes only the files that differ, with the current time.
  Build tools therefore detect every change, also if a file gets its old content back.
- ``make`` makes a git repository for the programs that run in a slot. Builds ask git for a version, and editing
  programs need its diff. This repository has the user's commits and tags only. Programs may commit, stash or make
  branches without changing the user's repository, and cannot push, since it has no remote.
- ``InPlace`` replaces files for a while, and restores the originals afterwards; after a kill, on the next start.
- ``homes``, ``trees`` and ``held`` find and lock the trees of projects in the user's cache, to remove them.
- ``is_build_folder`` recognizes build folders and environments by their usual names.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from perfflow.model.errors import Exit, UserError
from perfflow.model.plain_data import from_json, to_json
from perfflow.trees import sharing, snapshots
from perfflow.trees.git import Git, half_written, lines, make_writable, names, remove_tree
from perfflow.trees.repository import Repository, common, writing
from perfflow.trees.snapshots import RecordedTree, copy_index, exactly, record

PAIRS = 9
"""Most runs of one project that may have trees at the same time."""
KEPT = 3
"""Slots of one run: those of base and head, and one more, so that the builds of two bases are kept."""
_DAY = 86400.0


@dataclass(frozen=True)
class Kept:
    """What a slot was last used for: the side, the tree that it shows, and the key of its complete build.

    ``outputs`` are those of the build steps by step, and ``built`` the time (RFC 3339); both are empty without a key.
    """

    tree: str = ""
    side: str = ""
    key: str = ""
    built: str = ""
    outputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Slot:
    """One of the two folders: ``path`` shows a tree, ``build`` is for build outputs outside of it."""

    path: Path
    repository: Repository
    lock: int
    share: tuple[str, ...] = ()

    @property
    def build(self) -> Path:
        """Folder beside the tree, with a path as long as the other slot's. Switches do not change it."""
        return self.path.with_suffix(".build")

    @property
    def layouts(self) -> Path:
        """Folder beside the tree for code layouts of its executables. Switches do not change it."""
        return self.path.with_suffix(".layouts")

    @property
    def traces(self) -> Path:
        """Folder beside the tree for records of what its benchmarks execute. A switch to another tree removes it."""
        return self.path.with_suffix(".traces")

    def switch(self, treeish: str, commit: str | None = None) -> tuple[str, ...]:
        """Show a tree; return the changed paths. Ignored files stay, other untracked files are removed.

        git in the slot shows ``commit`` as HEAD, by default the commit of the user's tree.

        Raises UserError if a shared path is in the way, or the disk is full; the next switch then starts clean.
        """
        tree = self.repository.tree(treeish)
        sharing.require_free(self.repository, tree, self.share)
        self._finish_broken_switch()
        if self.kept.tree != tree:
            self.keep(Kept())
            with writing(self.path):
                sharing.remove(self.traces)
        git = self._git()
        # Copied by a cache of CI, files have other inodes. Without this, git would write them all again.
        git.attempt("update-index", "-q", "--refresh")
        changed = tuple(names(git.run("diff-index", "--name-only", "--no-renames", "-z", tree)))
        with writing(self.path):
            self._switching.write_text(tree)
            git.run("read-tree", "--reset", "-u", tree, what=f"switch {self.path}")
            self._tidy(git)
            sharing.link(self.repository.root, self.path, self.share)
            _forget_bytecode(self.path, changed)
            make(self.repository, self.path, self._index, commit or self.repository.head())
            self._switching.unlink()
            # git writes the index only if something changed, and its time tells which slot was used last.
            os.utime(self._index)
        return changed

    @property
    def used(self) -> float:
        """When it was last used (seconds since 1970); 0 if it shows nothing yet."""
        return self._index.stat().st_mtime if self._index.exists() else 0.0

    @property
    def kept(self) -> Kept:
        """What it was last used for; empty if this is not known."""
        try:
            return from_json(Kept, json.loads(self._note.read_text()))
        except (OSError, ValueError, TypeError, AttributeError, LookupError):
            return Kept()

    def keep(self, kept: Kept) -> None:
        """Store what the slot is used for. Raises UserError if it cannot be written."""
        with writing(self.path):
            if kept == Kept():
                self._note.unlink(missing_ok=True)
            else:
                self._note.write_text(json.dumps(to_json(kept)))

    def clear(self) -> None:
        """Remove the tree and all build outputs. Raises UserError if a file cannot be removed."""
        with writing(self.path):
            for folder in (self.path, self.build, self.layouts, self.traces):
                if folder.exists():
                    make_writable(folder)
                    remove_tree(folder)
            for file in (self._note, self._index, self._switching, self._settings):
                file.unlink(missing_ok=True)
        self.recover()

    def shows(self, tree: str) -> bool:
        """Return whether the slot shows this tree without changes, apart from build outputs."""
        return self._index.exists() and not self._switching.exists() and not self.changes(tree)

    def changes(self, tree: str) -> list[str]:
        """Return the paths of the tree whose files in the slot are others, or are gone. Raises UserError."""
        self._git().attempt("update-index", "-q", "--refresh")
        return names(self._git().run("diff-index", "--name-only", "--no-renames", "-z", tree))

    def left_files(self) -> list[str]:
        """Return files and folders that are neither in the tree, ignored nor shared. The next switch removes them."""
        shared = {path.rstrip("/") for path in self.share}
        listed = names(self._git().run("ls-files", "-z", "--others", "--exclude-standard", "--directory"))
        return [path for path in listed if path.rstrip("/") not in shared]

    def other_files(self) -> list[str]:
        """Return all files that are not in the tree, also ignored ones. Raises UserError."""
        return names(self._git().run("ls-files", "-z", "--others"))

    def forget_builds_unless(self, built_with: str) -> None:
        """Remove build outputs unless they were built with the settings of the hash ``built_with``.

        A build tool that compares files only would reuse them after a flag has changed. cargo compares flags too, so
        its folders stay. Raises UserError if a file cannot be removed.
        """
        note = self._settings
        with writing(self.path):
            if note.exists() and note.read_text() == built_with:
                return
            note.unlink(missing_ok=True)
            self._note.unlink(missing_ok=True)
            git = self._git()
            cargo = [path for path in self._ignored(git) if _is_of_cargo(self.path / path)]
            kept = [word for path in (*self.share, *cargo) for word in ("-e", exactly(path.rstrip("/")))]
            git.run("clean", "-ffdxq", *kept, what=f"tidy {self.path}")
            note.write_text(built_with)

    def cargo_folders(self) -> list[Path]:
        """Return cargo's build folders, also nested ones, without those for profilers."""
        tops = [self.path / path for path in self._ignored(self._git())] + [self.build / "cargo"]
        inner = (
            path for top in tops if top.is_dir() and not top.is_symlink() for path in (top, *sorted(top.iterdir()))
        )
        return [path for path in inner if _is_of_cargo(path) and not path.name.startswith("perfflow-")]

    def _ignored(self, git: Git) -> Sequence[str]:
        return names(git.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))

    def take(self) -> RecordedTree:
        """Record the current contents of the slot as a tree, with edits and untracked files of a command."""
        return record(self._git(), self.path, self.share, what=f"record {self.path}")

    def ignored_files(self) -> dict[str, snapshots.IgnoredFiles]:
        """Return the current ignored files, to pass to ``remove_ignored`` after a command. Raises UserError."""
        return snapshots.ignored_files(self._git(), self.path, self.share)

    def remove_ignored(self, before: Mapping[str, snapshots.IgnoredFiles]) -> list[str]:
        """Remove ignored files that are new or changed since ``before``; return those that no build makes.

        Files that a build makes are known from the other slots, if they were built. Raises UserError.
        """
        made: dict[str, snapshots.IgnoredFiles] = {}
        for path in self.others:
            made |= replace(self, path=path).ignored_files()
        with writing(self.path):
            return snapshots.remove_new(self.path, before, made, self.ignored_files())

    @property
    def others(self) -> list[Path]:
        """The paths of the other slots of its run."""
        return [self.path.with_name(name) for name in _names(self.path.parent) if name != self.path.name]

    def recover(self) -> None:
        """Clean up after a killed run; build outputs stay.

        If the index can no longer be read, the whole slot is removed, including its build outputs.
        """
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.build.mkdir(exist_ok=True)
            InPlace(self.layouts / ASIDE).restore()
            _lock_file(self._index).unlink(missing_ok=True)
            self._drop_old_links()
            if self._git().attempt("ls-files", "--stage").status:
                self._index.unlink()
                remove_tree(self.path)
                self.path.mkdir(mode=0o700)
        self._finish_broken_switch()

    def _finish_broken_switch(self) -> None:
        """Remove the sources of a slot whose last switch did not end: it is unknown which files were written."""
        with writing(self.path):
            if not self._switching.exists():
                return
            tree = self._switching.read_text()
            git = self._git()
            # Without -w, because git knows the empty tree, and the disk may be full.
            empty = git.line("hash-object", "-t", "tree", "--stdin")
            git.run("read-tree", "--reset", "-u", empty)
            if git.attempt("cat-file", "-e", f"{tree}^{{tree}}").status == 0 and tree:
                git.run("read-tree", "--reset", tree)
                git.run("read-tree", "--reset", "-u", empty)
            self._switching.unlink()

    def _tidy(self, git: Git) -> None:
        """Remove files that are neither in the tree nor ignored, and a repository that a command made at the top."""
        sharing.remove(self.path / ".git")
        argv = ("clean", "-ffdq")
        if git.attempt(*argv).status:
            make_writable(self.path)
            git.run(*argv, what=f"tidy {self.path}")

    def _drop_old_links(self) -> None:
        """Remove links to paths that are no longer shared; store the current ones."""
        old = names(self._shared.read_bytes()) if self._shared.exists() else []
        if tuple(old) == self.share:
            return
        for path in old:
            place = self.path / path
            inside = place.parent.resolve().is_relative_to(self.path.resolve())
            if path not in self.share and inside and place.is_symlink():
                place.unlink()
        self._shared.write_bytes(lines(self.share))

    def _git(self) -> Git:
        return replace(self.repository.git(self._index, self.path), holds=(self.lock,))

    @property
    def _index(self) -> Path:
        return self.path.with_suffix(".index")

    @property
    def _switching(self) -> Path:
        """File with the target tree; exists only during a switch."""
        return self.path.with_suffix(".switching")

    @property
    def _settings(self) -> Path:
        """File with the hash of the settings that the build outputs were made with."""
        return self.path.with_suffix(".settings")

    @property
    def _note(self) -> Path:
        return self.path.with_suffix(".kept")

    @property
    def _shared(self) -> Path:
        return self.path.with_suffix(".shared")


class Slots:
    """The slots of one run, ``a``, ``b`` and more, locked until they are closed or the process ends.

    If perfflow is killed while git writes to them, git holds the lock until it ends.
    """

    def __init__(self, repository: Repository, lock: int, folder: Path, share: Sequence[str]) -> None:
        self._lock = lock
        self.folder = folder
        self.every = [Slot(folder / name, repository, lock, tuple(share)) for name in _names(folder)]
        self.a, self.b, *_ = self.every

    def pair(self, base: Kept, head: Kept) -> tuple[Slot, Slot]:
        """Return the slots for base and head: those with their builds, else with their trees, else the best to reuse.

        The head of a run is often the base of the next one, so any slot may be the base's. A new base gets a slot of
        its own while there is one; a new head gets that of an earlier head, whose build it needs least to change.
        """
        ones = self._having(base, self.every)
        others = self._having(head, [slot for slot in self.every if slot is not ones])
        if ones is None:
            ones = min((slot for slot in self.every if slot is not others), key=lambda slot: slot.used)
        if others is None:
            left = [slot for slot in self.every if slot is not ones]
            others = min(left, key=lambda slot: (not slot.used, slot.kept.side == base.side, slot.used))
        return ones, others

    def _having(self, wanted: Kept, slots: Sequence[Slot]) -> Slot | None:
        """Return the slot with a build of the wanted key, else with the wanted tree, None if there is none."""
        built = [slot for slot in slots if slot.kept.key == wanted.key and slot.shows(wanted.tree)]
        return next(iter(built), None) or next((slot for slot in slots if slot.shows(wanted.tree)), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the slots for another run; their trees and build outputs stay."""
        os.close(self._lock)


def _names(folder: Path) -> list[str]:
    """Return the names of the slots in a folder, drawn at first: code cannot tell by its path which side it is."""
    note = folder / "names"
    if not note.exists():
        note.write_text("".join(f"{secrets.token_hex(4)}\n" for _ in range(KEPT)))
    return note.read_text().split()


def open_slots(repository: Repository, share: Iterable[str] = ()) -> Slots:
    """Take the first pair of slots that no other run holds, and clean up after killed runs.

    A second run gets another pair with its own builds instead of waiting. The machine's lock keeps their measurements
    apart. Raises UserError if all pairs are taken, a shared path is wrong, or the disk is full.
    """
    paths = sharing.checked(repository.root, share)
    _sweep(repository)
    for number in range(1, PAIRS + 1):
        folder = repository.home / str(number)
        with writing(folder):
            folder.mkdir(exist_ok=True, mode=0o700)
            lock = locked(folder / "lock")
        if lock is None:
            continue
        slots = Slots(repository, lock, folder, paths)
        try:
            for slot in slots.every:
                slot.recover()
        except BaseException:
            slots.close()
            raise
        return slots
    hint = "wait until one of them ends"
    raise UserError.of(f"{PAIRS} runs already use trees of {repository.root}", hint, Exit.UNMEASURED)


def locked(file: Path) -> int | None:
    """Lock a file and return its descriptor, None if another process holds it. The lock ends with its process."""
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    return number


def _sweep(repository: Repository) -> None:
    """Remove temporary files of killed runs from the private store, if they are too old to belong to a live run."""
    oldest = time.time() - _DAY
    with writing(repository.home):
        for place in (*repository.home.glob("scratch/*"), *half_written(repository.objects)):
            # Its writer may be removing it at the same time.
            with suppress(FileNotFoundError):
                if place.lstat().st_mtime < oldest:
                    sharing.remove(place)


def _forget_bytecode(folder: Path, changed: Iterable[str]) -> None:
    """Remove the bytecode of changed Python files.

    Python compares mtime in whole seconds and size, so two trees within one second could share the bytecode.
    """
    for path in changed:
        if not path.endswith(".py"):
            continue
        source = folder / path
        cache = source.parent / "__pycache__"
        if cache.is_dir() and not cache.is_symlink() and cache.resolve().is_relative_to(folder.resolve()):
            for compiled in cache.iterdir():
                if compiled.name.startswith(f"{source.stem}.") and compiled.suffix == ".pyc":
                    compiled.unlink(missing_ok=True)


def _is_of_cargo(folder: Path) -> bool:
    return (folder / ".rustc_info.json").is_file()


def _lock_file(index: Path) -> Path:
    """Return the lock file of an index, which git leaves behind if it is killed."""
    return index.with_name(f"{index.name}.lock")


def make(repository: Repository, slot: Path, index: Path, commit: str | None) -> None:
    """Make the repository again: HEAD is ``commit`` (None: no commit yet), the index is a copy of the slot's."""
    folder = slot.with_suffix(".git")
    sharing.remove(folder)
    for inner in ("objects/info", "refs"):
        (folder / inner).mkdir(parents=True)
    borrowed = [repository.objects, *repository.borrowed]
    (folder / "objects" / "info" / "alternates").write_text(
        "".join(f"{path}\n" for path in borrowed if "\n" not in str(path)), errors="surrogateescape"
    )
    (folder / "packed-refs").write_bytes(_tags(repository))
    (folder / "config").write_text(_config(repository))
    shallow = common(repository.git_folder) / "shallow"
    if shallow.is_file():
        shutil.copyfile(shallow, folder / "shallow")
    (folder / "HEAD").write_text(f"{commit}\n" if commit else "ref: refs/heads/main\n")
    copy_index(index, folder / "index")
    (slot / ".git").write_text(f"gitdir: ../{folder.name}\n")


def _tags(repository: Repository) -> bytes:
    """Return the user's tags in the format of packed references."""
    return repository.git().run("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")


def _config(repository: Repository) -> str:
    kind = repository.git().line("rev-parse", "--show-object-format")
    version, extension = (0, "") if kind == "sha1" else (1, f"[extensions]\n\tobjectFormat = {kind}\n")
    return f"[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n{extension}"


ASIDE = "aside"
"""Subfolder for the original files, in a tree's folder for code layouts."""
_PLACES = "places.json"


class InPlace:
    """Copies in ``folder`` of the original files of one tree, while they are replaced. All methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._aside: dict[str, str] = {}
        self._lock: int | None = None
        self._replaced: set[Path] = set()

    def hold(self, places: Iterable[Path]) -> None:
        """Copy the files at these places, so that they can be restored whatever is written there."""
        new = [place for place in places if str(place) not in self._aside]
        if not new:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._take_lock()
        for place in new:
            name = str(len(self._aside))
            if place.exists():
                shutil.copy2(place, self._folder / name)
            self._aside[str(place)] = name if place.exists() else ""
        # Written completely before any file is replaced, so that the originals can be restored after a kill.
        fresh = self._folder / f"{_PLACES}.new"
        fresh.write_text(json.dumps(self._aside))
        fresh.replace(self._folder / _PLACES)

    def put(self, files: Mapping[Path, Path]) -> None:
        """Put files in these places, each by one rename, and restore all other replaced places."""
        self.hold(files)
        for place in self._replaced - set(files):
            self._put_back(place, self._aside[str(place)])
        for place, file in files.items():
            _put(place, file, _second_name)
        self._replaced = set(files)

    def reset(self) -> None:
        """Restore all originals, and keep their copies."""
        for place, name in self._aside.items():
            self._put_back(Path(place), name)
        self._replaced = set()

    def restore(self) -> None:
        """Restore all originals, also those of a killed process, and delete their copies.

        Does nothing if another live process holds them.
        """
        note = self._folder / _PLACES
        if not note.exists():
            return
        with suppress(BlockingIOError):
            self._take_lock()
            self._aside = json.loads(note.read_bytes())
            self.reset()
            note.unlink()
            for name in filter(None, self._aside.values()):
                (self._folder / name).unlink(missing_ok=True)
            self._aside = {}
            self._let_go()

    def _take_lock(self) -> None:
        """Lock the folder. Raises BlockingIOError if another process has replaced files of this tree."""
        if self._lock is None:
            number = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(number)
                raise BlockingIOError(error.errno, "another run has layouts there", str(self._folder)) from None
            self._lock = number

    def _let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def original(self, place: Path) -> Path | None:
        """Return the copy of a place's original file; None if there was none, or it is not held."""
        name = self._aside.get(str(place))
        return self._folder / name if name else None

    def _put_back(self, place: Path, name: str) -> None:
        if not name:
            place.unlink(missing_ok=True)
        elif place.parent.is_dir():  # else the tree was removed
            # A copy, because writes to the tree's file must not change the held original.
            _put(place, self._folder / name, shutil.copy2)


def restore(folder: Path) -> None:
    """Restore the originals that a killed process left in this folder. Raises UserError if that fails."""
    try:
        InPlace(folder).restore()
    except OSError as error:
        text = f"cannot restore {error.filename or folder}: {error.strerror}"
        raise UserError.of(text, "a killed run left another code layout in its place; rebuild the program") from error


def _put(place: Path, file: Path, name_it: Callable[[Path, Path], object]) -> None:
    fresh = place.with_name(f".{place.name}.perfflow")
    fresh.unlink(missing_ok=True)
    try:
        name_it(file, fresh)
        fresh.replace(place)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def _second_name(file: Path, place: Path) -> None:
    """Hard-link a file, or copy it if the place is on another disk."""
    try:
        os.link(file, place)
    except OSError:
        shutil.copy2(file, place)


@dataclass(frozen=True)
class Home:
    """The folder with the trees of one project, and the time of their last use (seconds since 1970)."""

    path: Path
    project: Path | None
    written: float


@dataclass(frozen=True)
class Tree:
    """One tree with its builds: the folder that shows it, its project, and when it was last used."""

    path: Path
    project: Path
    used: float

    @property
    def folders(self) -> list[Path]:
        """The folders with its files, its builds and what else belongs to it."""
        return [path for path in (self.path, *self.path.parent.glob(f"{self.path.name}.*")) if path.is_dir()]

    def forget(self) -> None:
        """Remove the notes about it, so that nothing counts as built while its folders are removed."""
        for file in self.path.parent.glob(f"{self.path.name}.*"):
            if file.is_file():
                file.unlink(missing_ok=True)


def trees(home: Home) -> list[Tree]:
    """Return the trees of a project that show something."""
    project = home.project or Path()
    return [Tree(file.with_suffix(""), project, file.stat().st_mtime) for file in sorted(home.path.glob("*/*.index"))]


def homes(cache: Path) -> list[Home]:
    """Return the homes of all projects, sorted by project."""
    folder = cache / "trees"
    found = [_home(path) for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    return sorted(found, key=lambda home: (str(home.project or ""), home.path.name))


def _home(path: Path) -> Home:
    try:
        project = Path(os.fsdecode((path / "project").read_bytes()).removesuffix("\n"))
    except OSError:
        project = None
    times = [0.0]
    for file in (path / "project", *path.glob("*/*.index"), *path.glob("*/lock")):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return Home(path, project, max(times))


@contextmanager
def held(home: Path) -> Iterator[bool]:
    """Lock the trees in the home of a project; yield False if a run uses them."""
    with ExitStack() as stack:
        for file in home.glob("*/lock"):
            number = locked(file)
            if number is None:
                yield False
                return
            stack.callback(os.close, number)
        yield True


_BUILD_FOLDERS = ("target", "build", "dist", "out", "_build", "cmake-build-*")
ENVIRONMENTS = (".venv", "venv", "node_modules")
"""Usual names of folders with installed dependencies, which trees share."""


def is_build_folder(path: str) -> bool:
    """Return whether a path of the project is a build folder, or inside one."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] not in ENVIRONMENTS and any(map(_is_one, parts))


def _is_one(part: str) -> bool:
    return any(fnmatchcase(part, pattern) for pattern in _BUILD_FOLDERS)
