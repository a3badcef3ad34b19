"""Check the processes of both sides: their code, the random state of Python, and output that nobody reads.

- ``OwnCode`` checks that each side runs the code of its own tree, in runs that are not timed, once per side and
  benchmark.
- ``with_random_state`` sets random properties of a Python process, drawn for each pair: its hash seed and the size of
  its environment. Both sides of a pair get the same values, so an effect that is equal on both sides adds no noise.
- ``UnreadOutput`` detects programs that do less work if nobody reads their output, by a warm-up run whose output is
  read.
- ``SourceFiles`` converts file names in debug information to paths relative to the root of the tree.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from perfflow.execute.child import PIPE
from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.loaded_code import UNSEEN, recording_modules, require_own
from perfflow.execute.prepare import HASH_SEED, ReadyProcess
from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Hotspot, Side, Usage
from perfflow.model.stacks import is_own
from perfflow.model.targets import NOWHERE, SourcePlace
from perfflow.model.units import Dimension, format_quantity
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession
from perfflow.tools.adapter import Role
from perfflow.tools.python_command import starts_python
from perfflow.trees.python_layout import PythonSource

SAME_CODE = "both sides run identical code (byte for byte): any difference is noise, or comes from their data"


class OwnCode:
    """Records which files of its tree the first run of each side and benchmark of a step loads, and checks them."""

    def __init__(self, session: RunSession, run: StepRun) -> None:
        self._session, self._run = session, run
        self._checked: set[tuple[Side, int | None, tuple[str, ...]]] = set()
        self._files: dict[Side, dict[str, str]] = {}

    @contextmanager
    def checked(self, prepared: ReadyProcess) -> Iterator[ReadyProcess]:
        """Yield the call, which is not timed, with its modules recorded. Raises Failure if code of another tree ran."""
        key = (prepared.side, prepared.ops, prepared.call.chosen if prepared.call else ())
        if key in self._checked:
            yield prepared
            return
        with checking_code(prepared, self._run) as (changed, files):
            yield changed
        # Only now: a run that timed out with a reader of its output is repeated, and was not checked.
        self._checked.add(key)
        self._files.setdefault(prepared.side, {}).update(files)

    def check_untimed(self, prepared: ReadyProcess) -> None:
        """Run the command of a tool without warm-up once without the tool, if it starts Python. Raises Failure."""
        call = prepared.call
        if prepared.slot and call and not call.shell_text and starts_python(call.command):
            with self.checked(replace(prepared, argv=call.command, tool=None, call=None)) as changed:
                self._session.start(changed, self._run)

    def same(self) -> bool | None:
        """Return whether both sides loaded the same Python files of their trees; None if not known for both."""
        found = [self._files.get(side) for side in Side]
        return found[0] == found[1] if all(found) else None


def run_check(prepared: ReadyProcess, run: StepRun, start: Callable[[ReadyProcess], Invoked]) -> Invoked:
    """Run a call that is not timed; a check in a slot must run the code of that slot. Raises Failure."""
    if prepared.planned.role is not Role.CHECK:
        return start(prepared)
    with checking_code(prepared, run) as (changed, _):
        return start(changed)


def differ_in_code_only(session: RunSession, planned: Planned) -> bool:
    """Return whether the sides of a step are two trees that differ only in their code."""
    one, other = (session.tree_context_of(side) for side in Side)
    return bool(session.contexts) and one.settings == other.settings and not planned.step.candidate


@contextmanager
def checking_code(prepared: ReadyProcess, run: StepRun) -> Iterator[tuple[ReadyProcess, dict[str, str]]]:
    """Yield a call that is not timed with its modules recorded, and the hashes of the Python files that it loaded.

    The hashes are filled in at the end, and only inside slots. Raises Failure if code of another tree ran.
    """
    slot, files = prepared.slot, dict[str, str]()
    if slot is None:
        yield prepared, files
        return

    with recording_modules(prepared, slot) as (changed, loaded):
        yield changed, files
    require_own(loaded, slot)
    command = prepared.call.command if prepared.call else prepared.argv
    if not loaded.seen and starts_python(command) and UNSEEN not in run.warnings:
        run.warnings.append(UNSEEN)
    files |= loaded.own


PADDING = "PERFFLOW_PADDING"
"""An unused environment variable of random length, which moves the stack of the process."""
MOST = 4096
"""Its greatest length in bytes. Shifts by cache lines and pages are within this range."""
_HASH_SEEDS = 2**32
_NAMED = re.compile(r"(?<![\w.-])python[\d.]*(?![\w-])")


def runs_python(prepared: ReadyProcess) -> bool:
    """Return whether a call starts Python, as far as its words show."""
    call = prepared.call
    if prepared.shell_text:
        return bool(_NAMED.search(prepared.shell_text))
    return starts_python(call.command if call and call.command else prepared.shown)


def with_random_state(prepared: ReadyProcess, draw: str) -> ReadyProcess:
    """Return the call with the hash seed and padding drawn from ``draw``; values that the user set take precedence."""
    number = int.from_bytes(hashlib.blake2b(draw.encode(), digest_size=12).digest(), "big")
    rest, seed = divmod(number, _HASH_SEEDS)
    return replace(prepared, env={HASH_SEED: str(seed), PADDING: "x" * (rest % MOST), **prepared.env})


# GNU grep stops at the first match; a pipe alone costs about 0.2 ms for each MB.
_FACTOR, _LEAST = 1.5, 0.002
# Programs that take longer (s) are not run again: a cold start explains no such difference, and a run costs too much.
_LONG = 2.0
_SHOWN = 60

Start = Callable[[ReadyProcess], Invoked]
_Key = tuple[Side, int | None]


@dataclass
class _Seen:
    prepared: ReadyProcess
    read: Usage
    """Usage of the run whose output was read."""
    unread: list[float] = field(default_factory=list)
    """CPU time (s) of each run whose output was discarded."""

    @property
    def suspicious(self) -> bool:
        """Whether the program did clearly more work when its output was read."""
        return bool(self.unread) and _cpu(self.read) > statistics.median(self.unread) * _FACTOR + _LEAST


class UnreadOutput:
    """Gives a reader to the first, untimed run of each side whose output goes to /dev/null by default."""

    def __init__(self) -> None:
        self._seen: dict[_Key, _Seen | None] = {}
        """None if a program did not end in time with a reader."""

    def with_reader(self, prepared: ReadyProcess) -> ReadyProcess | None:
        """Return the same call with a reader, None if it does not need one or had one before."""
        return _piped(prepared) if _discards(prepared) and _key(prepared) not in self._seen else None

    def note_read(self, prepared: ReadyProcess, invoked: Invoked) -> None:
        """Store the usage of a run whose output was read."""
        self._seen[_key(prepared)] = _Seen(prepared, invoked.usage)

    def give_up(self, prepared: ReadyProcess) -> None:
        """Do not try a reader again, because the program did not end in time with one."""
        self._seen[_key(prepared)] = None

    def note(self, prepared: ReadyProcess, invoked: Invoked) -> None:
        """Store the usage of a timed run."""
        seen = self._seen.get(_key(prepared))
        if seen:
            seen.unread.append(_cpu(invoked.usage))

    def warnings(self, start: Start) -> dict[str, None]:
        """Return warnings about programs that behave differently. Run again with a reader to rule out a cold start."""
        said: dict[str, None] = {}
        for seen in filter(None, self._seen.values()):
            if seen.suspicious and seen.read.wall < _LONG:
                with contextlib.suppress(Failure):
                    seen.read = start(_piped(seen.prepared)).usage
            if seen.suspicious:
                said[_text(seen)] = None
        return said


def _discards(prepared: ReadyProcess) -> bool:
    """Return whether the output goes to /dev/null by default, and the figures are those of the program itself."""
    tool, call = prepared.tool, prepared.call
    unasked = bool(call and not call.stdout) and prepared.planned.step.stdout is None
    return unasked and tool is not None and tool.passes_stdout and not tool.program


def _key(prepared: ReadyProcess) -> _Key:
    return prepared.side, prepared.ops


def _piped(prepared: ReadyProcess) -> ReadyProcess:
    return replace(prepared, call=replace(prepared.call, stdout=PIPE)) if prepared.call else prepared


def _cpu(usage: Usage) -> float:
    return usage.user + usage.system


def _text(seen: _Seen) -> str:
    call = seen.prepared.call
    command = (call.shell_text or shlex.join(call.command)) if call else ""
    shown = command if len(command) <= _SHOWN else f"{command[:_SHOWN]}..."
    unread, read = (
        format_quantity(value, Dimension.TIME) for value in (statistics.median(seen.unread), _cpu(seen.read))
    )
    return (
        f"`{shown}` behaves differently when its output goes to /dev/null: it used {unread} of CPU time, but {read} "
        "when its output was read; use `stdout: pipe` (compare: --stdout pipe)"
    )


_MOST_FILES = 50_000
_LONGEST = 4_000_000
_NOT_SOURCES = frozenset({"target", "node_modules", "__pycache__", "venv"})


class SourceFiles:
    """The source files of one tree.

    Debug information gives an absolute path, or one relative to the folder where the compiler ran, such as
    ``src/lib.rs`` of a crate in the tree. ``folders``: where relative names may start.
    """

    def __init__(self, root: Path, folders: Iterable[Path] = ()) -> None:
        self._root = root
        self._folders = (root, *folders)
        self._known: dict[str, str] = {}
        self._sources: dict[str, PythonSource] = {}

    def placed(self, spot: Hotspot) -> Hotspot:
        """Return the hotspot with its file relative to the root, so that shared reports do not reveal home folders.

        A file that is outside the tree or ambiguous keeps its name.
        """
        return replace(spot, file=self.from_root(spot.file))

    def place_of(self, spot: Hotspot) -> SourcePlace:
        """Return the place of a hotspot's line in its source, for Python files of the tree only."""
        file = self.from_root(spot.file)
        if not file.endswith(".py") or Path(file).is_absolute():
            return NOWHERE
        if file not in self._sources:
            self._sources[file] = PythonSource(_read(self._root / file))
        return self._sources[file].place(spot.line, spot.location)

    def from_root(self, file: str) -> str:
        """Return a file relative to the root, or unchanged if it is outside the tree or ambiguous."""
        if file not in self._known:
            self._known[file] = (self._inside(Path(file)) if is_own(file) else None) or file
        return self._known[file]

    def _inside(self, file: Path) -> str | None:
        if file.is_absolute():
            return self._from_root(file)
        for folder in self._folders:
            # A name from a tool's output may contain anything.
            if _is_file(folder / file) and (relative := self._from_root(folder / file)):
                return relative
        parts = file.parts
        if not parts or ".." in parts:
            return None
        same = [path for path in self._all if path.parts[-len(parts) :] == parts]
        return same[0].as_posix() if len(same) == 1 else None

    def _from_root(self, file: Path) -> str | None:
        for path, root in ((Path(os.path.normpath(file)), self._root), (_real(file), _real(self._root))):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return None

    @cached_property
    def _all(self) -> tuple[Path, ...]:
        """Every file of the tree, relative to the root, without hidden folders and build folders."""
        found: list[Path] = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_SOURCES)
            found += [(Path(folder) / name).relative_to(self._root) for name in files]
            if len(found) > _MOST_FILES:
                return ()
        return tuple(found)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _read(file: Path) -> str:
    """Return the text of a file, '' if it is too long or cannot be read."""
    try:
        return "" if file.stat().st_size > _LONGEST else file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
