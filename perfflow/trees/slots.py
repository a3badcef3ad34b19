"""Two folders outside the project that show any state of the code, and keep what was built there.

A slot is filled through an index of its own, so going from one tree to another writes only the files that differ, with
the time of now: build tools see what changed, also where a file goes back to old content.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from perfflow.model.errors import Exit, UserError
from perfflow.model.later import dataclass
from perfflow.trees import ignored, sharing, slot_repository
from perfflow.trees.git import Git, half_written, lines, names
from perfflow.trees.in_place import ASIDE, InPlace
from perfflow.trees.repository import Repository, writing
from perfflow.trees.rmtree import make_writable, remove_tree
from perfflow.trees.write_tree import Recorded, exactly, record

PAIRS = 9
"""So many runs of one project may have trees at the same time."""
_DAY = 86400.0


@dataclass(frozen=True)
class Slot:
    """One of the two folders: ``path`` shows a tree, ``build`` is for what is built outside of it."""

    path: Path
    repository: Repository
    lock: int
    share: tuple[str, ...] = ()

    @property
    def build(self) -> Path:
        """A folder beside the tree, as long in its path as the other slot's; it outlives every switch."""
        return self.path.with_suffix(".build")

    @property
    def layouts(self) -> Path:
        """A folder beside the tree for code layouts of what was built in it; it outlives every switch."""
        return self.path.with_suffix(".layouts")

    def switch(self, treeish: str, commit: str | None = None) -> tuple[str, ...]:
        """Show a tree; return the paths that were written or removed. Ignored files stay, other untracked ones go.

        Programs in the slot that ask git are told ``commit``, by default the one the user's tree is at.

        Raises UserError where a shared path is in the way, or the disk is full; the next switch starts clean then.
        """
        tree = self.repository.tree(treeish)
        sharing.require_free(self.repository, tree, self.share)
        self._finish_broken_switch()
        git = self._git()
        changed = tuple(names(git.run("diff-index", "--name-only", "--no-renames", "-z", tree)))
        with writing(self.path):
            self._switching.write_text(tree)
            git.run("read-tree", "--reset", "-u", tree, what=f"switch {self.path}")
            self._tidy(git)
            sharing.link(self.repository.root, self.path, self.share)
            _forget_bytecode(self.path, changed)
            slot_repository.make(self.repository, self.path, self._index, commit or self.repository.head())
            self._switching.unlink()
        return changed

    def shows(self, tree: str) -> bool:
        """Whether the slot shows a tree, unchanged, with whatever was built there."""
        if self._switching.exists() or not self._index.exists():
            return False
        return not names(self._git().run("diff-index", "--name-only", "--no-renames", "-z", tree))

    def forget_builds_unless(self, built_with: str) -> None:
        """Remove what was built here with other settings than those that ``built_with`` stands for.

        A build tool that goes by files takes it for its own after a flag has changed. cargo goes by flags too, so its
        folders stay. Raises UserError where the disk refuses.
        """
        note = self.path.with_suffix(".settings")
        with writing(self.path):
            if note.exists() and note.read_text() == built_with:
                return
            note.unlink(missing_ok=True)
            git = self._git()
            cargo = [path for path in self._ignored(git) if _is_of_cargo(self.path / path)]
            kept = [word for path in (*self.share, *cargo) for word in ("-e", exactly(path.rstrip("/")))]
            git.run("clean", "-ffdxq", *kept, what=f"tidy {self.path}")
            note.write_text(built_with)

    def cargo_folders(self) -> list[Path]:
        """The folders that cargo built into, also one below another; none of what was built for profilers."""
        tops = [self.path / path for path in self._ignored(self._git())] + [self.build / "cargo"]
        inner = (
            path for top in tops if top.is_dir() and not top.is_symlink() for path in (top, *sorted(top.iterdir()))
        )
        return [path for path in inner if _is_of_cargo(path) and not path.name.startswith("perfflow-")]

    def _ignored(self, git: Git) -> Sequence[str]:
        return names(git.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))

    def take(self) -> Recorded:
        """Record what the slot holds now, edits and untracked files of a command included, as a tree."""
        return record(self._git(), self.path, self.share, what=f"record {self.path}")

    def ignored_files(self) -> dict[str, ignored.State]:
        """What is ignored here now, to be given to ``remove_ignored`` after a command. Raises UserError."""
        return ignored.standing(self._git(), self.path, self.share)

    def remove_ignored(self, before: Mapping[str, ignored.State]) -> list[str]:
        """Remove ignored files that came or changed since ``before``; return those that no build makes.

        What a build makes is read off the other slot, where one stands built. Raises UserError.
        """
        other = replace(self, path=self.path.with_name("b" if self.path.name == "a" else "a"))
        with writing(self.path):
            return ignored.remove_new(self.path, before, other.ignored_files(), self.ignored_files())

    def recover(self) -> None:
        """Remove what a killed run left half done; what was built stays.

        An index that cannot be read any more costs the whole slot, and with it what was built in it.
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
        """Empty a slot of sources whose last switch did not end: which of its files were written is not known."""
        with writing(self.path):
            if not self._switching.exists():
                return
            tree = self._switching.read_text()
            git = self._git()
            # Not written: git knows the empty tree, and the disk may be full.
            empty = git.line("hash-object", "-t", "tree", "--stdin")
            git.run("read-tree", "--reset", "-u", empty)
            if git.attempt("cat-file", "-e", f"{tree}^{{tree}}").status == 0 and tree:
                git.run("read-tree", "--reset", tree)
                git.run("read-tree", "--reset", "-u", empty)
            self._switching.unlink()

    def _tidy(self, git: Git) -> None:
        """Remove what is neither in the tree nor ignored. A repository that a command made at the top goes too."""
        sharing.remove(self.path / ".git")
        argv = ("clean", "-ffdq")
        if git.attempt(*argv).status:
            make_writable(self.path)
            git.run(*argv, what=f"tidy {self.path}")

    def _drop_old_links(self) -> None:
        """Remove links to what is no longer shared; remember what is."""
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
        """The tree that is being switched to; there only while a switch is under way."""
        return self.path.with_suffix(".switching")

    @property
    def _shared(self) -> Path:
        return self.path.with_suffix(".shared")


class Slots:
    """The two slots of one run, ``a`` and ``b``, held by a lock until they are closed or the process dies.

    A git that is still writing to them when perfflow is killed holds the lock until it has ended.
    """

    def __init__(self, repository: Repository, lock: int, folder: Path, share: Sequence[str]) -> None:
        self._lock = lock
        self.folder = folder
        self.a = Slot(folder / "a", repository, lock, tuple(share))
        self.b = Slot(folder / "b", repository, lock, tuple(share))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let another run have the slots; their trees and what was built stay for it."""
        os.close(self._lock)


def open_slots(repository: Repository, share: Iterable[str] = ()) -> Slots:
    """Take the first pair of slots that no other run holds, and clean up what a killed run left there.

    Another run gets another pair instead of waiting, with builds of its own: measurements are kept apart by the
    machine's lock. Raises UserError where all pairs are taken, a shared path is wrong, or the disk is full.
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
            slots.a.recover()
            slots.b.recover()
        except BaseException:
            slots.close()
            raise
        return slots
    hint = "wait until one of them ends"
    raise UserError.of(f"{PAIRS} runs have trees of {repository.root} already", hint, Exit.UNMEASURED)


def locked(file: Path) -> int | None:
    """A locked file's number, None where another process holds it; the kernel lets go when the holder dies."""
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    return number


def _sweep(repository: Repository) -> None:
    """Remove what killed runs left half written in the private store, once it is too old to belong to a live one."""
    oldest = time.time() - _DAY
    with writing(repository.home):
        for place in (*repository.home.glob("scratch/*"), *half_written(repository.objects)):
            # Whoever wrote it may be taking it away just now.
            with suppress(FileNotFoundError):
                if place.lstat().st_mtime < oldest:
                    sharing.remove(place)


def _forget_bytecode(folder: Path, changed: Iterable[str]) -> None:
    """Remove what Python compiled of changed files.

    It takes a compiled file for fresh by whole seconds and size, so two trees within a second would share one.
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
    """The file that git holds while it writes an index, and leaves when it is killed."""
    return index.with_name(f"{index.name}.lock")
