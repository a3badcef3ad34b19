"""Change, check, start and test a library of workflows: ``perfflow.lock``, vendored copies, a template and tests.

- ``add``, ``update`` and ``vendor`` pin, fetch and copy references to git repositories. Only this module fetches
  workflows.
- ``remove_references`` removes references from the lock, and ``remove_unused`` their copies from the project. This uses
  no network.
- ``item_states`` returns the state of a lock's items on this machine. This uses no network.
- ``write_template`` writes a first repository for the workflows of a team: one workflow, its test, and a README.
- ``tested`` tests a library: each workflow must be valid, and each test under ``tests/`` must pass.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from perfflow.library import pinned, references, search_path
from perfflow.library.pinned import Item, Library, Lock, Pin
from perfflow.library.references import Reference
from perfflow.model.errors import UserError
from perfflow.model.similar import nearest
from perfflow.trees import remote
from perfflow.workflow.model import EnvText, WorkflowPart
from perfflow.workflow.shape import read_shape
from perfflow.workflow.yaml_text import LARGEST, Readable, read_file, read_text

MOST_ITEMS = 50
"""The most items of one lock."""


@dataclass
class Pinned:
    """A lock before and after a command, with messages. ``moved``: messages about tags that now name another commit.

    ``touched``: the requested items, and the items that they reference.
    """

    root: Path
    before: Lock
    after: dict[str, Pin]
    notes: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)

    @property
    def unseen(self) -> list[str]:
        """The touched items whose files were never shown on this machine, in order."""
        return [name for name in sorted(self.touched) if not pinned.is_shown(name, self.after[name])]

    @property
    def is_new(self) -> bool:
        """Whether the lock has changed."""
        return dict(self.before) != self.after

    def files(self, name: str) -> dict[str, bytes]:
        """Return the files of an item by path. Raises UserError if they do not match the lock."""
        pin = self.after[name]
        files, wrong = pinned.checked_item(Library(self.root).folder_of(name, pin), pin)
        if wrong:
            raise UserError.of(f"{name}: {'; '.join(wrong)}", "run the command again")
        return files

    def files_shown_before(self, name: str) -> dict[str, bytes] | None:
        """Return the files of an item before the command, if all of them were shown on this machine, else None."""
        pin = self.before.get(name)
        if pin is None or not pinned.is_shown(name, pin):
            return None
        files, wrong = pinned.checked_item(pinned.cached_item(pin), pin)
        return None if wrong else files


def add(root: Path, texts: Sequence[str]) -> Pinned:
    """Pin and fetch the references and all references in their files; without any, fetch all items of the lock.

    Pinned items keep their commit, and are fetched if they are missing or damaged. The lock is not written yet.
    Raises UserError.
    """
    done = Pinned(root, before := pinned.read_lock(root), dict(before))
    if not (texts or before):
        raise UserError.of(f"there is no {pinned.LOCK_FILE} here", "name what to pin: perfflow library add REFERENCE")
    with _Fetching(done) as fetching:
        for text in texts or sorted(before):
            fetching.pin(text)
    return done


def update(root: Path, texts: Sequence[str], *, allow_moved: bool) -> Pinned:
    """Pin the current commits of the revisions of the named references, or of all.

    A moved tag keeps its pin unless ``allow_moved``. Raises UserError.
    """
    done = Pinned(root, before := pinned.read_lock(root), dict(before))
    names = known(before, texts)
    # All items of the same revision of a repository have the same commit.
    sources = {(item.url, item.revision) for item in map(references.read, names)}
    with _Fetching(done) as fetching:
        for name in sorted(before):
            reference = references.read(name)
            if (reference.url, reference.revision) in sources:
                fetching.move_on(reference, allow_moved=allow_moved)
    tidy(done)
    return done


def vendor(root: Path, texts: Sequence[str]) -> Pinned:
    """Copy the items of the named references, or all, into the project, and record it in the lock. Raises UserError."""
    done = Pinned(root, before := pinned.read_lock(root), dict(before))
    with _Fetching(done) as fetching:
        for name in known(before, texts):
            pin = before[name]
            item = fetching.pinned_item(name, pin)
            done.after[name] = pin.model_copy(update={"vendored": True})
            _copy(root, name, item)
            done.touched.add(name)
            done.notes.append(f"{name}: {pinned.vendored(root, references.read(name)).relative_to(root)}/{pin.path}")
    return done


def known(lock: Lock, texts: Sequence[str]) -> list[str]:
    """Return the references as the lock spells them; all if none is named. Raises UserError for unpinned ones."""
    if not lock:
        raise UserError.of(f"there is no {pinned.LOCK_FILE} here", "pin a workflow: perfflow library add REFERENCE")
    names = [str(references.read(text)) for text in texts] or sorted(lock)
    for name in names:
        if name not in lock:
            near = nearest(name, lock)
            hint = f"did you mean {near}?" if near else f"perfflow library add {name}"
            raise UserError.of(f"{name} is not in {pinned.LOCK_FILE}", hint)
    return names


def _copy(root: Path, name: str, item: Item) -> None:
    try:
        pinned.write_into(pinned.vendored(root, references.read(name)), item.files, root)
    except OSError as error:
        raise UserError.of(f"{error.filename}: {error.strerror}", "move the existing file away") from error


class _Fetching:
    """Keeps repositories open while references are pinned, so that each commit is fetched once."""

    def __init__(self, done: Pinned) -> None:
        self._done = done
        self._open = ExitStack()
        self._temporary = self._open.enter_context(pinned.temporary_item())
        self._snapshots: dict[tuple[str, str], remote.Snapshot] = {}
        self._tips: dict[tuple[str, str], tuple[str, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def pin(self, text: str, chain: tuple[str, ...] = ()) -> None:
        """Pin a reference and the references in its files. A pinned reference keeps its commit."""
        reference = references.read(text)
        name = str(reference)
        if name in chain:
            message = f"circular `extends`: {' -> '.join((*chain, name))}"
            raise UserError.of(message, "extend a file that does not extend this one")
        if name in self._done.touched:
            return
        if pin := self._done.after.get(name):
            item = self.pinned_item(name, pin)
        else:
            commit, kind = self._sibling(reference) or self._tip(reference)
            item = self._item(reference, commit)
            self._keep(name, pinned.pin_of(commit, kind, item), item)
        self._follow(name, item, chain)

    def move_on(self, reference: Reference, *, allow_moved: bool) -> None:
        """Pin the current commit of a revision, and note the change."""
        name = str(reference)
        old = self._done.after[name]
        commit, kind = self._tip(reference)
        if commit == old.commit:
            self._done.notes.append(f"{name}: {commit[:12]}, as before")
            self.pin(name)
            return
        moved = f"{name}: {old.commit[:12]} -> {commit[:12]}"
        if remote.TAG in (old.kind, kind) and not allow_moved:
            self._done.moved.append(f"{moved}: the tag {reference.revision} was moved")
            self.pin(name)
            return
        item = self._item(reference, commit)
        new = pinned.pin_of(commit, kind, item).model_copy(update={"vendored": old.vendored})
        self._keep(name, new, item)
        if old.vendored:
            _copy(self._done.root, name, item)
        self._done.notes.append(f"{moved}, {'the same files' if new.sha256 == old.sha256 else 'its files changed'}")
        self._follow(name, item, ())

    def pinned_item(self, name: str, pin: Pin) -> Item:
        """Return the files of an item as pinned, fetched if they are not on this machine. Raises UserError."""
        folder = Library(self._done.root).folder_of(name, pin)
        reference = references.read(name)
        for place in (folder, pinned.cached_item(pin)):
            files, wrong = pinned.checked_item(place, pin)
            if not wrong:
                item = pinned.collected(reference, pin.path, sorted(files), _reader(reference, files))
                break
        else:
            item = self._item(reference, pin.commit)
            if pinned.digest_of(pinned.checksums(item.files)) != pin.sha256:
                hint = f"restore {pinned.LOCK_FILE}, or pin it anew: perfflow library remove {name}, then add it"
                raise UserError.of(
                    f"{name}: {pinned.LOCK_FILE} has other checksums than commit {pin.commit[:12]}", hint
                )
            pinned.keep_item(pin, item.files)
        if pin.vendored and pinned.changed_items(folder, pin):
            _copy(self._done.root, name, item)
        return item

    def _follow(self, name: str, item: Item, chain: tuple[str, ...]) -> None:
        self._done.touched.add(name)
        for other in item.others:
            self.pin(other, (*chain, name))

    def _keep(self, name: str, pin: Pin, item: Item) -> None:
        pinned.keep_item(pin, item.files)
        self._done.after[name] = pin
        if len(self._done.after) > MOST_ITEMS:
            raise UserError.of(f"more than {MOST_ITEMS} items", "check why this library extends so many others")

    def _sibling(self, reference: Reference) -> tuple[str, str] | None:
        """Return commit and kind of a pinned item of the same revision, since all have the same commit; else None."""
        for name, pin in self._done.after.items():
            other = references.read(name)
            if (other.url, other.revision) == (reference.url, reference.revision):
                return pin.commit, pin.kind
        return None

    def _tip(self, reference: Reference) -> tuple[str, str]:
        key = (reference.url, reference.revision)
        if key not in self._tips:
            self._tips[key] = remote.tip(*key, self._done.root, self._temporary)
        return self._tips[key]

    def _item(self, reference: Reference, commit: str) -> Item:
        key = (reference.url, commit)
        if key not in self._snapshots:
            self._snapshots[key] = self._open.enter_context(remote.fetched(*key, self._done.root, self._temporary))
        snapshot = self._snapshots[key]
        path, further = pinned.entry_of(reference, snapshot.files)

        return pinned.collected(reference, path, further, _reader(reference, snapshot.files, snapshot))


def _reader(
    reference: Reference, files: Mapping[str, Any], snapshot: remote.Snapshot | None = None
) -> Callable[[str], bytes]:
    """Return a function that reads a repository's file from ``snapshot``, or without one from ``files``."""

    def read(name: str) -> bytes:
        if name not in files:
            hint = "a file of the repository names it"
            raise UserError.of(f"{reference.url} has no file {name!r} at {reference.revision}", hint)
        references.require_path(name, str(reference))
        content: bytes = snapshot.bytes_of(name, LARGEST) if snapshot else files[name]
        return content

    return read


def tidy(done: Pinned) -> None:
    """Remove the vendored copies that no item has any more. Raises OSError."""
    kept = {
        pinned.vendored(done.root, references.read(name)) / path
        for name, pin in done.after.items()
        for path in pin.files
    }
    for name, pin in done.before.items():
        for path in pin.files if pin.vendored else ():
            place = pinned.vendored(done.root, references.read(name)) / path
            if place not in kept:
                pinned.remove_items(place, done.root)


def remove_references(root: Path, texts: Sequence[str]) -> Pinned:
    """Remove references from the lock. The lock is not written yet, and the copies still exist.

    The references in their files stay pinned, since they may be used by themselves; a note reports this. Raises
    UserError if a workflow of the project or another item still uses one of the removed references.
    """
    done = Pinned(root, before := pinned.read_lock(root), dict(before))
    gone = dict.fromkeys(known(before, texts))
    for name in gone:
        del done.after[name]
    users = _users(root, done.after)
    for name in gone:
        if by := users.get(name):
            hint = f"remove that too: perfflow library remove {name} {by}" if by in done.after else f"change {by} first"
            raise UserError.of(f"{name} is used by {by}", hint)
        done.notes.append(f"{name}: removed")
    for name in _left_over(root, before, gone, users):
        done.notes.append(f"{name} stays pinned; nothing here uses it. Remove it: perfflow library remove {name}")
    return done


def remove_unused(done: Pinned) -> None:
    """Delete the vendored copies that no item of the lock has any more. Raises UserError."""
    try:
        tidy(done)
    except OSError as error:
        raise UserError.of(f"{error.filename}: {error.strerror}", "delete the copies by hand") from error


def _users(root: Path, lock: Lock) -> dict[str, str]:
    """Return reference -> a file of the project's ``workflows/``, or an item of the lock, that uses it."""
    users: dict[str, str] = {}
    for name, pin in sorted(lock.items()):
        users.update(dict.fromkeys(_named_by(root, name, pin), name))
    for path in search_path.workflows(root):
        if path.parent == search_path.SHIPPED:
            continue
        try:
            references_in_file = list(pinned.references_in(read_file(path, Readable.of(root))))
        except UserError:
            # An invalid workflow cannot be run, so it uses nothing; `perfflow validate` reports its errors.
            continue
        users.update(dict.fromkeys(references_in_file, str(path.relative_to(root))))
    return users


def _named_by(root: Path, name: str, pin: Pin) -> Iterator[str]:
    """Yield the references in the files of an item, if these are on this machine and unchanged."""
    folder = Library(root).folder_of(name, pin)
    files, wrong = pinned.checked_item(folder, pin)
    if not wrong:
        for path, raw in files.items():
            if path.endswith(search_path.WORKFLOW_SUFFIXES):
                yield from pinned.references_in(read_text(raw.decode("utf-8-sig"), str(folder / path)))


def _left_over(root: Path, before: Lock, gone: Mapping[str, None], users: Mapping[str, str]) -> Iterator[str]:
    for other in sorted({other for name in gone for other in _named_by(root, name, before[name])}):
        if other in before and other not in gone and other not in users:
            yield other


@dataclass(frozen=True)
class ItemState:
    """One item: the folder of its files, whether its files were shown on this machine, and problems of its files."""

    name: str
    pin: Pin
    folder: Path
    is_shown: bool
    wrong: tuple[str, ...]

    @property
    def word(self) -> str:
        """``vendored``, ``fetched``, ``not fetched`` or ``changed``."""
        if not self.folder.is_dir():
            return "missing" if self.pin.vendored else "not fetched"
        return "changed" if self.wrong else "vendored" if self.pin.vendored else "fetched"


def item_states(root: Path) -> list[ItemState]:
    """Return all items of a project's lock, in order. Raises UserError for a lock that cannot be read."""
    library = Library(root)
    return [_state(library, name, pin) for name, pin in sorted(pinned.read_lock(root).items())]


def _state(library: Library, name: str, pin: Pin) -> ItemState:
    folder = library.folder_of(name, pin)
    return ItemState(name, pin, folder, pinned.is_shown(name, pin), tuple(pinned.changed_items(folder, pin)))


_TEMPLATE = search_path.SHIPPED / "starters" / "repository"


def write_template(folder: Path) -> list[Path]:
    """Write the files into a new or empty folder. Raises UserError if the folder is not empty."""
    try:
        if folder.is_symlink() or (folder.exists() and any(folder.iterdir())):
            raise UserError.of(f"{folder} is not empty", "name a new folder")
        shutil.copytree(_TEMPLATE, folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
    except OSError as error:
        raise UserError.of(f"{folder} cannot be written: {error.strerror}", "name another folder") from error
    return sorted(path for path in folder.rglob("*") if path.is_file())


TESTS = "tests"
_LEFT_OUT = shutil.ignore_patterns(".git", ".perfflow", ".venv", "node_modules", "__pycache__")


class LibraryTest(WorkflowPart):
    """One file under ``tests/``: a workflow, its parameters, and the expected results."""

    perfflow_test: Literal[1] = Field(description="format version")
    workflow: str = Field(description="its file, from the top of the library")
    set: dict[str, EnvText] = Field(default_factory=dict, description="values of its parameters")
    budget: str = Field("60s", description="longest time of the run, builds included")
    exit: int = Field(0, description="exit status of `perfflow run`")
    steps: list[str] | None = Field(None, description="ids of its steps in order, as `perfflow plan` shows them")
    benchmarks: list[str] | None = Field(None, description="names of what it measures, in any order")


@dataclass(frozen=True)
class LibraryTestResult:
    """The name of a test, and its failures; none if it passed."""

    name: str
    wrong: tuple[str, ...] = ()


def tested(folder: Path) -> Iterator[LibraryTestResult]:
    """Validate each workflow of a library and run its tests, one by one, in a copy of it. Raises UserError."""
    flows = [path for path in search_path.workflows(folder) if path.parent == folder / search_path.FOLDER]
    if not flows:
        hint = "name the folder that holds workflows/; `perfflow library init DIR` writes a first one"
        raise UserError.of(f"{folder} has no workflows/", hint)
    tests = {
        path: _read(path)
        for suffix in search_path.WORKFLOW_SUFFIXES
        for path in sorted((folder / TESTS).glob(f"*{suffix}"))
    }
    with tempfile.TemporaryDirectory(prefix="perfflow-library-") as place:
        copy = Path(place, folder.resolve().name or "library")
        shutil.copytree(folder, copy, symlinks=True, ignore=_LEFT_OUT)
        for path in flows:
            name = f"{search_path.FOLDER}/{path.name}"
            yield LibraryTestResult(name, tuple(_invalid(copy, name)))
        for path, test in tests.items():
            yield LibraryTestResult(f"{TESTS}/{path.name}", tuple(_failures(copy, test)))
    known = {(folder / test.workflow).resolve() for test in tests.values()}
    for path in flows:
        if path.resolve() not in known:
            yield LibraryTestResult(f"{search_path.FOLDER}/{path.name}", ("no test under tests/ runs it",))


def _read(path: Path) -> LibraryTest:
    document = read_file(path, Readable.of(path.parent))
    data = document.data()
    shaped = read_shape(document, LibraryTest, data, ())
    problems = (*document.problems, *shaped.problems)
    if problems or shaped.model is None:
        raise UserError(problems)
    return shaped.model


def _invalid(copy: Path, name: str) -> Iterator[str]:
    done = _perfflow(copy, "validate", name)
    if done.returncode:
        yield done.stderr.strip()


def _failures(copy: Path, test: LibraryTest) -> Iterator[str]:
    """Yield the differences from the test's expectations: the plan's first, and the run's only if the plan is right."""
    words = [test.workflow, *(f"--set={name}={value}" for name, value in test.set.items())]
    planned = _perfflow(copy, "plan", *words, "--format=json")
    if planned.returncode:
        yield f"plan: {planned.stderr.strip()}"
        return
    steps = [step["id"] for step in json.loads(planned.stdout)["steps"]]
    if test.steps is not None and steps != test.steps:
        yield f"steps: {', '.join(steps)}; expected {', '.join(test.steps)}"
        return
    done = _perfflow(copy, "run", *words, f"--budget={test.budget}", "--json", "--progress=off")
    result: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
    if done.returncode != test.exit:
        why = "\n".join([*result.get("reasons", []), done.stderr.strip()]).strip()
        yield f"exit status {done.returncode}; expected {test.exit}{chr(10) if why else ''}{why}"
    if test.benchmarks is not None:
        measured = sorted({row["name"] for row in result.get("benchmarks", [])})
        if measured != sorted(test.benchmarks):
            yield f"benchmarks: {', '.join(measured) or 'none'}; expected {', '.join(sorted(test.benchmarks))}"


def _perfflow(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "perfflow", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
