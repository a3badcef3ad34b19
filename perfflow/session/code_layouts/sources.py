"""Code layouts of both sides of a step: made in advance, and put in place while nothing is timed.

A ``Source`` makes the layouts of one side: by linking its executables again (``Linked``), or by builds of the workflow
itself (``Rebuilt``). ``source_of`` chooses. ``DrawnLayouts`` has the layouts of both sides.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shlex
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from perfflow.execute.child import StartError, ending, find_program
from perfflow.execute.context import TreeContext
from perfflow.execute.invoke import Failure, adapter_failures
from perfflow.execute.layouts.link_command import KeepIn
from perfflow.execute.layouts.refusal import LayoutsRefusedError
from perfflow.execute.layouts.relinking import Relinker, forget, relinker
from perfflow.execute.prepare import ReadyProcess
from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.model.readings import PREPARED, Side
from perfflow.plan.plan import Planned, building_steps
from perfflow.session.perform import allows
from perfflow.session.progress import of_candidate
from perfflow.session.recorded_links import RECORDINGS
from perfflow.session.session import RunSession
from perfflow.store.run_folder import EventStore
from perfflow.tools.adapter import Invocation
from perfflow.tools.tool_files import last_bytes, last_line
from perfflow.trees.slots import ASIDE, InPlace
from perfflow.workflow.layout_checks import SEED_VARIABLE, uses_seed

_ELF = b"\x7fELF"
_SEEDS = 2**31 - 1
_NOT_WATCHED = "no link of "
"""Start of the reason if the links of a build were not recorded."""
TRIED = 3
"""Number of identical builds by the workflow after which perfflow gives up."""


class Source(Protocol):
    """Makes the code layouts of one side. Numbers begin at 1."""

    @property
    def seconds(self) -> float:
        """Seconds to make one layout, as far as known."""

    @property
    def places(self) -> Collection[Path]:
        """Files that its layouts replace, as far as known before one is made."""

    def make(self, number: int, folder: Path) -> Mapping[Path, Path]:
        """Make a layout; return its files by the path that each replaces. Raises LayoutsRefusedError and OSError."""


class Relinks(Protocol):
    """Links one executable again: ``Relinker``, or ``ByTool``."""

    @property
    def seconds(self) -> float:
        """Seconds of one link, as far as known."""

    def link(self, seed: int, output: Path) -> None:
        """Write the executable with the order of functions of ``seed``, 1 or more. Raises LayoutsRefusedError."""


@dataclass
class ByTool:
    """Links an executable again with the tool that built it."""

    build: SideBuild
    prepared: ReadyProcess
    program: Path
    seconds: float = 0.0

    def begin(self, work: Path) -> bool:
        """Return whether the tool can. Raises LayoutsRefusedError if its link fails or ignores the seed."""
        work.mkdir(parents=True, exist_ok=True)
        if self._invocation(1, work / "1") is None:
            return False
        began = time.monotonic()
        self.link(1, work / "1")
        self.seconds = time.monotonic() - began
        self.link(2, work / "2")
        if filecmp.cmp(work / "1", work / "2", shallow=False):
            raise LayoutsRefusedError(f"{self.program.name} has the same bytes with every order of its functions")
        return True

    def link(self, seed: int, output: Path) -> None:
        """Link; see ``Relinks``."""
        invocation, prepared = self._invocation(seed, output), self.prepared
        errors = output.with_suffix(".stderr")
        try:
            done = self.build.session.spawner().run(
                invocation.argv if invocation else (),
                env={**prepared.env, **(invocation.env if invocation else {})},
                cwd=prepared.cwd / (invocation.cwd if invocation else ""),
                stdout=errors,
                stderr=errors,
                timeout=prepared.timeout,
            )
        except StartError as error:
            raise LayoutsRefusedError(f"{self.program.name} could not be linked again: {error}") from error
        if done.status or not output.is_file():
            said = last_line(last_bytes(errors.parent, errors.name))
            raise LayoutsRefusedError(f"{self.program.name} could not be linked again: {said or ending(done.status)}")

    def _invocation(self, seed: int, output: Path) -> Invocation | None:
        tool, call = self.prepared.tool, self.prepared.call
        with adapter_failures(tool):
            return tool.build.relink(call, self.program, seed, output) if tool and call else None


@dataclass
class Linked:
    """Executables of one side, each relinked with its functions in random order."""

    relinkers: Mapping[Path, Relinks]
    draw: str
    """Seed text of the order, different for every run and side."""

    @property
    def seconds(self) -> float:
        """Seconds to link all of them."""
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
    """Builds by the workflow itself, each with another seed. The files that a build changes are kept."""

    build: SideBuild
    seconds: float = 0.0
    originals: Mapping[Path, Path] = field(default_factory=dict)
    """Outputs of the unchanged build (seed 0), and their copies."""
    tried: int = 0
    """Number of layouts made; a resumed run starts again at 0."""
    differs: bool = False
    """Whether any layout differed from the unchanged build."""

    @property
    def places(self) -> Collection[Path]:
        """Outputs of the unchanged build."""
        return self.originals.keys()

    def begin(self, folder: Path) -> None:
        """Build with seed 0 and keep all files that the build writes. Raises LayoutsRefusedError."""
        self.originals = self._kept(0, folder)
        if not self.originals:
            text = f"the build wrote no file when it ran again with {SEED_VARIABLE}=0"
            raise LayoutsRefusedError(f"{text}; it must relink for each seed")

    def make(self, number: int, folder: Path) -> Mapping[Path, Path]:
        """Build once more; only files that differ from the unchanged build belong to the layout.

        Both sides of a pair get the same seed. The paired test allows this; with few layouts the interval gets wider.
        """
        kept = self._kept(number, folder)
        changed = {place: file for place, file in kept.items() if not self._is_original(place, file)}
        for file in set(kept.values()) - set(changed.values()):
            file.unlink()
        self.tried += 1
        self.differs = self.differs or bool(changed)
        # A seed may happen to give the layout of the unchanged build.
        if self.tried >= TRIED and not self.differs:
            text = f"the build makes the same files whatever {SEED_VARIABLE} is"
            raise LayoutsRefusedError(f"{text}; pass it on to the linker")
        return changed

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
class SideBuild:
    """The steps that build one side's program, run again while the side is measured."""

    session: RunSession
    planned: Planned
    side: Side
    scratch: Path

    @property
    def root(self) -> Path:
        """The tree that it builds in."""
        return self.session.tree_context_of(self.side).root

    @property
    def places(self) -> Sequence[Path]:
        """Folders that it may write to: the tree, its build folder, and copies of a suite's executables."""
        slot = self.session.tree_context_of(self.side).slot
        kept = self.session.folder.step(self.planned.id) / PREPARED / self.side.value
        return (self.root, *([slot.build] if slot else []), kept)

    @property
    def has_seed(self) -> bool:
        """Whether one of its steps builds another layout for each seed."""
        return any(
            uses_seed(self.session.context.plan.by_id[name].step) for name in building_steps(self.session.context.plan)
        )

    def __call__(self, seed: int) -> None:
        """Build with this seed. Raises LayoutsRefusedError if a step fails."""
        context = self.session.tree_context_of(self.side)
        outputs = {name: dict(found) for name, found in context.outputs.items()}
        session = self.session.nested(
            replace(context, layout_seed=seed, outputs=outputs),
            _Unrecorded(self.session.folder, self.scratch),
            of_candidate(self.session.progress, self.planned),
        )
        for name in building_steps(context.plan):
            item = context.plan.by_id[name]
            # The measuring step holds the machine already.
            if not item.step.background and allows(session.context, item, blocked=False):
                self._perform(item, seed, lambda item: session.performer_of(item)(session, item, _run_of(item)))
        self._perform(
            self.planned, seed, lambda item: self.session.build_first(item, _run_of(item), (self.side,), seed=seed)
        )

    def _perform(self, item: Planned, seed: int, what: Callable[[Planned], None]) -> None:
        try:
            what(item)
        except Failure as failure:
            text = f"step {item.id} failed when it ran again with {SEED_VARIABLE}={seed}: {failure.reason}"
            raise LayoutsRefusedError(text) from failure


def _run_of(planned: Planned) -> StepRun:
    return StepRun(planned, StepStatus.DONE)


@dataclass(frozen=True)
class _Unrecorded:
    """Replaces the run's folder for builds that do not appear in the result."""

    whole: EventStore
    scratch: Path

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.whole.path

    def append(self, event: Mapping[str, object]) -> None:
        """Discard the event."""

    def step(self, step_id: str) -> Path:
        """Return a folder for the step's output."""
        folder = self.whole.step(step_id) / "layouts"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def source_of(build: SideBuild, prepared: Sequence[ReadyProcess], work: Path, draw: str) -> Source:
    """Find out how to make layouts of a side's program. Raises LayoutsRefusedError with the reason."""
    work.mkdir(parents=True, exist_ok=True)
    if build.has_seed:
        rebuilt = Rebuilt(build)
        rebuilt.begin(work)
        return rebuilt
    programs = {path: item for item in reversed(prepared) for path in executables(item)}
    if not programs:
        text = "the command names no executable of the tree"
        raise LayoutsRefusedError(f"{text}; name the program itself, or build layouts yourself with {SEED_VARIABLE}")
    recordings = folder_of(build) / RECORDINGS
    # Each executable has its own folder, because two links may read files of the same name.
    folders = {path: work / str(number) for number, path in enumerate(programs)}
    relinkers: dict[Path, Relinks] = {}
    for path, folder in folders.items():
        by_tool = ByTool(build, programs[path], path)
        relinkers[path] = by_tool if by_tool.begin(folder) else _relinker(build, path, recordings, folder)
    return Linked(relinkers, draw)


def _relinker(build: SideBuild, executable: Path, recordings: Path, work: Path) -> Relinker:
    """Return the relinker of an executable. If no link of it was recorded, build once more to record it."""
    keep_in = _keeper(build.session.tree_context_of(build.side))
    try:
        return relinker(executable, recordings, work, keep_in)
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
    return relinker(executable, recordings, work, keep_in)


def _keeper(context: TreeContext) -> KeepIn | None:
    """Return the function that puts a link of a tree with code of strangers into a sandbox, None for other trees."""
    box, layouts = context.sandbox, context.layouts
    if box is None or layouts is None:
        return None

    def kept_in(argv: Sequence[str], readable: Path) -> list[str]:
        # The environment of the link is the stranger's too, so it does not say what the sandbox shows.
        return box.words(context.inherited, [layouts], [readable], builds=False, command=argv)

    return kept_in


def _copies(executable: Path, places: Iterable[Path]) -> list[Path]:
    """Return the executable and all identical files, one of which may be the original of this copy."""
    size = executable.stat().st_size
    alike = (path for place in places for path in _files(place) if path.stat().st_size == size)
    return [path for path in alike if path == executable or filecmp.cmp(path, executable, shallow=False)]


def folder_of(build: SideBuild) -> Path:
    """Return the tree's folder for code layouts. Raises LayoutsRefusedError if its builds are not recorded."""
    folder = build.session.tree_context_of(build.side).layouts
    if folder is None:
        raise LayoutsRefusedError("the links of the build were not recorded; set `layouts:` on the measuring step")
    return folder


def executables(prepared: ReadyProcess) -> Iterator[Path]:
    """Yield the executables that the words of a call name, links resolved. Shell text is split as far as possible."""
    for word in _words(prepared):
        named = prepared.cwd / word
        found = named if named.is_file() else Path(find_program(word, prepared.env.get("PATH", ""), prepared.cwd) or "")
        if found.is_file() and _is_own(prepared, found.resolve()) and _is_elf(found):
            yield found.resolve()


def _words(prepared: ReadyProcess) -> Sequence[str]:
    if prepared.tool and prepared.call and (own := prepared.tool.build.executed(prepared.call)) is not None:
        return [str(path) for path in own]
    if not prepared.shell_text:
        return prepared.call.command if prepared.call else prepared.argv
    try:
        return shlex.split(prepared.shell_text, comments=True)
    except ValueError:
        return ()


def _is_own(prepared: ReadyProcess, path: Path) -> bool:
    """Return whether the executable was built here, or is a copy of one that was."""
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
    """Return the modification time, size and inode of each file, to detect changes."""
    found = {path: path.lstat() for root in roots for path in _files(root)}
    return {path: (status.st_mtime_ns, status.st_size, status.st_ino) for path, status in found.items()}


def _files(root: Path) -> Iterator[Path]:
    """Yield the files of a folder, without links and without the folders of git and perfflow."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".perfflow")]
        yield from (path for name in files if not (path := Path(folder, name)).is_symlink())


MADE = "made"
"""Subfolder for the layouts to measure, in a tree's folder for code layouts."""


class DrawnLayouts:
    """The layouts of both sides. In a shared tree, the other side's files are as built while one side runs."""

    def __init__(
        self, builds: Mapping[Side, SideBuild], calls: Callable[[Side], list[ReadyProcess]], draw: str
    ) -> None:
        """``calls``: the calls of a side; ``draw``: the seed text of its layouts, different for every run."""
        self._builds, self._calls, self._draw = builds, calls, draw
        self._sources: dict[Side, Source] = {}
        self._files: dict[tuple[Side, int], Mapping[Path, Path]] = {}
        folders = {side: folder_of(build) for side, build in builds.items()}
        self._made = {side: folder / MADE / side.value for side, folder in folders.items()}
        places = {folder: InPlace(folder / ASIDE) for folder in folders.values()}
        self._places = {side: places[folder] for side, folder in folders.items()}
        self._standing: dict[InPlace, tuple[Side, int] | None] = {}
        self.clear()

    def begin(self) -> float:
        """Find out how to make layouts; return the seconds to make one layout of every side.

        Raises LayoutsRefusedError with the reason if none can be made.
        """
        for side, build in self._builds.items():
            if side not in self._sources:
                work = self._made[side] / "source"
                work.mkdir(parents=True, exist_ok=True)
                self._sources[side] = source_of(build, self._calls(side), work, f"{self._draw}\0{side.value}")
                self._places[side].hold(self._sources[side].places)
        return sum(source.seconds for source in self._sources.values())

    def make(self, numbers: Iterable[int], ends: float) -> int:
        """Make layouts of each side until the time ``ends``; return the last number that all sides have.

        Raises LayoutsRefusedError and OSError.
        """
        self.begin()
        last = 0
        # Nothing is measured meanwhile, so both sides can link at once. Builds cannot: they may write the same files.
        together = len(self._sources) if all(isinstance(item, Linked) for item in self._sources.values()) else 1
        with ThreadPoolExecutor(together) as pool:
            for number in numbers:
                if time.monotonic() >= ends and last:
                    break
                made = pool.map if together > 1 else map
                files = made(partial(self._one, number), self._sources)
                self._files |= {(side, number): found for side, found in zip(self._sources, files, strict=True)}
                last = number
        self.rest()
        return last

    def _one(self, number: int, side: Side) -> Mapping[Path, Path]:
        folder = self._made[side] / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        return self._sources[side].make(number, folder)

    def put(self, side: Side, number: int) -> None:
        """Put a side's layout of this number in place for its next process; 0 is the program as built."""
        places, wanted = self._places[side], (side, number) if number else None
        if self._standing.get(places) != wanted:
            places.put(self._files[side, number] if number else {})
            self._standing[places] = wanted

    def rest(self) -> None:
        """Put the files as built back in place."""
        for places in set(self._places.values()):
            places.reset()
        self._standing.clear()

    def drop(self, numbers: Iterable[int]) -> None:
        """Remove layouts that are no longer needed."""
        for number in numbers:
            for side in self._builds:
                self._files.pop((side, number), None)
                shutil.rmtree(self._made[side] / str(number), ignore_errors=True)

    def clear(self) -> None:
        """Restore all files as built, and remove all layouts."""
        for places in set(self._places.values()):
            places.restore()
        self._standing.clear()
        for folder in self._made.values():
            shutil.rmtree(folder, ignore_errors=True)
