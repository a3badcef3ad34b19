"""Where the code layouts of one side come from: executables that are linked again, or builds of the workflow's own."""

from __future__ import annotations

import filecmp
import hashlib
import os
import shlex
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol

from perfflow.execute.child import find_program
from perfflow.execute.invoke import Failure
from perfflow.execute.layouts.recording import forget
from perfflow.execute.layouts.refused import LayoutsRefusedError
from perfflow.execute.layouts.relinking import Relinker, relinker
from perfflow.execute.prepare import Ready
from perfflow.execute.schedule import StepRun
from perfflow.execute.states import StepStatus
from perfflow.model.later import dataclass
from perfflow.model.readings import Side
from perfflow.plan.building import building_steps
from perfflow.plan.plan import Planned
from perfflow.session.perform import allows
from perfflow.session.progress import Nested
from perfflow.session.session import RunSession
from perfflow.session.watched_links import RECORDINGS
from perfflow.store.subrun import Keeper
from perfflow.trees.in_place import InPlace
from perfflow.workflow.layout_checks import SEED_VARIABLE, uses_seed

_ELF = b"\x7fELF"
_SEEDS = 2**31 - 1
_NOT_WATCHED = "no link of "
"""How the reason begins where a build was not watched, such as one of an earlier version."""
TRIED = 3
"""Builds of one's own that are alike before nothing is expected of a further one."""


class Source(Protocol):
    """Makes the code layouts of one side. Numbers begin at 1."""

    @property
    def seconds(self) -> float:
        """What one layout takes to make, as far as is known."""

    @property
    def places(self) -> Collection[Path]:
        """The files that its layouts replace, as far as is known before one is made."""

    def make(self, number: int, folder: Path) -> Mapping[Path, Path]:
        """Make a layout; returns its files by the places they belong to. Raises LayoutsRefusedError and OSError."""


@dataclass
class Linked:
    """Executables of one side, each linked again in a random order of its functions."""

    relinkers: Mapping[Path, Relinker]
    draw: str
    """What the order is drawn from: different for every run and side."""

    @property
    def seconds(self) -> float:
        """What all of them take."""
        return sum(item.seconds for item in self.relinkers.values())

    @property
    def places(self) -> Collection[Path]:
        """The executables."""
        return self.relinkers.keys()

    def make(self, number: int, folder: Path) -> Mapping[Path, Path]:
        """Link each executable once."""
        found = {}
        for index, (place, item) in enumerate(self.relinkers.items()):
            found[place] = folder / f"{index}-{place.name}"
            item.link(1 + _digest(f"{self.draw}\0{number}") % (_SEEDS - 1), found[place])
        return found


@dataclass
class Rebuilt:
    """Builds of the workflow's own, each with another seed; the files that a build changes are kept."""

    build: Build
    seconds: float = 0.0
    originals: Mapping[Path, Path] = field(default_factory=dict)
    """The outputs of the build as it is, and copies of them."""
    tried: int = 0
    """Layouts made; a run that goes on after a kill begins again with none of them."""
    differs: bool = False
    """Whether a layout differed from the build as it is."""

    @property
    def places(self) -> Collection[Path]:
        """The outputs of the build as it is."""
        return self.originals.keys()

    def begin(self, folder: Path) -> None:
        """Build with the seed 0 and keep all that it writes. Raises LayoutsRefusedError."""
        self.originals = self._kept(0, folder)
        if not self.originals:
            text = f"the build wrote no file when it was started again with {SEED_VARIABLE}=0"
            raise LayoutsRefusedError(f"{text}; it must link anew for each seed")

    def make(self, number: int, folder: Path) -> Mapping[Path, Path]:
        """Build once more; only files that differ from those of the build as it is belong to the layout.

        Both sides of a pair have the same seed: a test by pairs allows that, and one of a few layouts gets wider by it.
        """
        kept = self._kept(number, folder)
        found = {place: file for place, file in kept.items() if not self._is_original(place, file)}
        for file in set(kept.values()) - set(found.values()):
            file.unlink()
        self.tried += 1
        self.differs = self.differs or bool(found)
        # A seed may happen to make the layout that the build as it is has.
        if self.tried >= TRIED and not self.differs:
            text = f"the build makes the same files whatever {SEED_VARIABLE} is"
            raise LayoutsRefusedError(f"{text}; pass it on to the linker")
        return found

    def _is_original(self, place: Path, file: Path) -> bool:
        known = self.originals.get(place)
        return known is not None and filecmp.cmp(known, file, shallow=False)

    def _kept(self, seed: int, folder: Path) -> dict[Path, Path]:
        began = time.monotonic()
        before = _states(self.build.places)
        self.build(seed)
        self.seconds = time.monotonic() - began
        changed = [path for path, state in _states(self.build.places).items() if before.get(path) != state]
        found = {}
        for index, path in enumerate(sorted(changed)):
            found[path] = folder / f"{index}-{path.name}"
            shutil.copy2(path, found[path])
        return found


@dataclass(frozen=True)
class Build:
    """The steps that build what one side runs, to be run again while it is measured."""

    session: RunSession
    planned: Planned
    side: Side
    scratch: Path

    @property
    def root(self) -> Path:
        """The tree it builds in."""
        return self.session.tree_context_of(self.side).root

    @property
    def places(self) -> Sequence[Path]:
        """The folders that it may write to: the tree, what is built beside it, and copies of a suite's executables."""
        slot = self.session.tree_context_of(self.side).slot
        kept = self.session.folder.step(self.planned.id) / "prepared" / self.side.value
        return (self.root, *([slot.build] if slot else []), kept)

    @property
    def has_seed(self) -> bool:
        """Whether a step of it builds another layout for each seed."""
        return any(
            uses_seed(self.session.context.plan.by_id[name].step) for name in building_steps(self.session.context.plan)
        )

    def __call__(self, seed: int) -> None:
        """Build. Raises LayoutsRefusedError where a step fails."""
        context = self.session.tree_context_of(self.side)
        outputs = {name: dict(found) for name, found in context.outputs.items()}
        session = self.session.nested(
            replace(context, layout_seed=seed, outputs=outputs),
            _Unrecorded(self.session.folder, self.scratch),
            Nested(self.session.progress, self.planned),
        )
        for name in building_steps(context.plan):
            item = context.plan.by_id[name]
            # The machine is held already, by the step that measures.
            if not item.step.background and allows(session.context, item, blocked=False):
                self._perform(item, seed, lambda item: session.performer_of(item)(session, item, _run_of(item)))
        self._perform(
            self.planned, seed, lambda item: self.session.build_first(item, _run_of(item), (self.side,), seed=seed)
        )

    def _perform(self, item: Planned, seed: int, what: Callable[[Planned], None]) -> None:
        try:
            what(item)
        except Failure as failure:
            text = f"step {item.id} fails where it is run again with {SEED_VARIABLE}={seed}: {failure.reason}"
            raise LayoutsRefusedError(text) from failure


def _run_of(planned: Planned) -> StepRun:
    return StepRun(planned, StepStatus.DONE)


@dataclass(frozen=True)
class _Unrecorded:
    """Takes the place of the run's folder for builds that no result tells."""

    whole: Keeper
    scratch: Path

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.whole.path

    def append(self, event: Mapping[str, object]) -> None:
        """Nothing."""

    def step(self, step_id: str) -> Path:
        """A folder for the step's output."""
        folder = self.whole.step(step_id) / "layouts"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def source_of(build: Build, prepared: Sequence[Ready], work: Path, draw: str) -> Source:
    """Find out how to make layouts of what a side runs. Raises LayoutsRefusedError with the reason."""
    work.mkdir(parents=True, exist_ok=True)
    if build.has_seed:
        rebuilt = Rebuilt(build)
        rebuilt.begin(work)
        return rebuilt
    found = list(dict.fromkeys(path for item in prepared for path in executables(item)))
    if not found:
        text = "no executable of the tree is named in the command"
        raise LayoutsRefusedError(f"{text}; name the program itself, or build layouts of your own by {SEED_VARIABLE}")
    recordings = folder_of(build) / RECORDINGS
    # Each has a folder of its own: the files that two links read may have the same names.
    folders = {path: work / str(number) for number, path in enumerate(found)}
    return Linked({path: _relinker(build, path, recordings, folder) for path, folder in folders.items()}, draw)


def _relinker(build: Build, executable: Path, recordings: Path, work: Path) -> Relinker:
    """Also of an executable that an earlier build linked, which nobody watched: then it is linked once more."""
    try:
        return relinker(executable, recordings, work)
    except LayoutsRefusedError as error:
        if not str(error).startswith(_NOT_WATCHED):
            raise
    copies = _copies(executable, build.places)
    held = InPlace(work / "held")
    held.hold(copies)
    try:
        for path in copies:
            forget(path)
        build(0)
    except LayoutsRefusedError:
        held.restore()
        raise
    return relinker(executable, recordings, work)


def _copies(executable: Path, places: Iterable[Path]) -> list[Path]:
    """The executable, and where its like was linked if this is a copy."""
    size = executable.stat().st_size
    alike = (path for place in places for path in _files(place) if path.stat().st_size == size)
    return [path for path in alike if path == executable or filecmp.cmp(path, executable, shallow=False)]


def folder_of(build: Build) -> Path:
    """The tree's folder for code layouts. Raises LayoutsRefusedError where its builds are not watched."""
    folder = build.session.tree_context_of(build.side).layouts
    if folder is None:
        raise LayoutsRefusedError("the build was not watched; write `layouts:` on the step that measures")
    return folder


def executables(prepared: Ready) -> Iterator[Path]:
    """The executables that a call's own words name, links resolved; of text for a shell as far as it can be read."""
    for word in _words(prepared):
        named = prepared.cwd / word
        found = named if named.is_file() else Path(find_program(word, prepared.env.get("PATH", ""), prepared.cwd) or "")
        if found.is_file() and _is_own(prepared, found.resolve()) and _is_elf(found):
            yield found.resolve()


def _words(prepared: Ready) -> Sequence[str]:
    if prepared.tool and prepared.call and (own := prepared.tool.executed(prepared.call)) is not None:
        return [str(path) for path in own]
    text = prepared.call.shell_text if prepared.call else prepared.argv[-1] if prepared.planned.step.run else ""
    if not text:
        return prepared.call.command if prepared.call else prepared.argv
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return ()


def _is_own(prepared: Ready, path: Path) -> bool:
    """Whether it was built here, or is a copy of what was."""
    kept = [prepared.call.kept] if prepared.call and prepared.call.kept else []
    slot = [prepared.slot.path, prepared.slot.build] if prepared.slot else [prepared.cwd]
    return any(path.is_relative_to(root.resolve()) for root in (*slot, *kept))


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(4) == _ELF and os.access(path, os.X_OK)
    except OSError:
        return False


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _states(roots: Iterable[Path]) -> dict[Path, tuple[int, int, int]]:
    """What tells one state of each file from another."""
    found = {path: path.lstat() for root in roots for path in _files(root)}
    return {path: (status.st_mtime_ns, status.st_size, status.st_ino) for path, status in found.items()}


def _files(root: Path) -> Iterator[Path]:
    """The files of a folder; links are not followed, and git's and perfflow's own are left out."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".perfflow")]
        yield from (path for name in files if not (path := Path(folder, name)).is_symlink())
