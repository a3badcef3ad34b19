"""Turn the records of ``drivers/trace.c`` into a trace: digests of files and of code."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perfflow.unchanged import elf
from perfflow.unchanged.code import Items, ProgramCode
from perfflow.unchanged.model import ABSENT, BenchmarkTrace

_UNSEEN = {
    "made": "it makes code while it runs",
    "unreadable": "a file of code could not be read",
    "format": "a file of code has a format that cannot be compared",
    "throws": "it throws exceptions",
    "symbols": "it enters code without a symbol",
    "instructions": "it has instructions that cannot be decoded",
    "stubs": "it calls other files in an unknown way",
    "deep": "it has long chains of pointers in its data",
    "global offset table": "it computes addresses from the global offset table",
}
_UNKNOWN = {
    "many": "it uses too many files",
    "untraced": "it starts processes that cannot be traced",
    "debugs": "it traces other processes",
    "io_uring": "it reads files by io_uring",
    "handles": "it opens files by handles",
    "namespaces": "it changes namespaces or mounts",
    "machine": "it runs 32-bit code",
    "connects": "it talks to another process",
    "left": "it leaves processes running",
    "killed": "a process of it was killed",
}
_FOLDER, _SPECIAL, _REMOVED, _UNREADABLE = "folder", "special", "removed", "unreadable"
HASH_OF_CARGO = re.compile(r"-[0-9a-f]{16}(?=$|[./\"])")
_BYTECODE = "__pycache__"
"""Python's own copies of its modules, which it checks against their sources."""


@dataclass(frozen=True)
class RecordedProgram:
    """What a traced program did, in order: letters and texts as ``drivers/trace.c`` describes them."""

    records: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, content: bytes) -> RecordedProgram:
        """Read the file of the tracer."""
        texts = (os.fsdecode(text) for text in content.split(b"\0") if text)
        return cls(tuple((text[0], text[2:]) for text in texts))

    def of(self, letters: str) -> Iterator[str]:
        """Yield the texts of some kinds."""
        return (text for letter, text in self.records if letter in letters)

    @property
    def entered(self) -> Mapping[str, tuple[int, ...]]:
        """The addresses of the entered functions by file."""
        found: dict[str, list[int]] = {}
        for text in self.of("f"):
            address, _, path = text.partition(" ")
            found.setdefault(path, []).append(int(address, 16))
        return {path: tuple(addresses) for path, addresses in found.items()}

    @property
    def is_complete(self) -> bool:
        """Whether the tracer followed the program to its end."""
        return bool(self.records) and self.records[-1][0] == "e"


def trace_of(recorded: RecordedProgram, roots: Mapping[Path, str]) -> BenchmarkTrace:
    """Return the trace of one process and its children. It reads the files that they used.

    roots: the resolved folders whose files count, with the beginning of their paths in the trace.
    """
    if not recorded.is_complete:
        return BenchmarkTrace(unknown=("the tracer did not end",))
    paths = _Paths(roots)
    inputs, changed = _inputs(recorded, paths)
    loaded: dict[str, str] = {}
    items = Items({})
    entered = recorded.entered
    for text in recorded.of("x"):
        name, digest = paths.name(text), _digest(Path(text))
        loaded[name or text] = digest
        if name is None:
            # Nothing is known of its functions, so it must be equal.
            inputs[text] = digest
        else:
            items = _joined(items, _items(text, digest, entered.get(text, ())))
            inputs.pop(name, None)
    unseen = (_UNSEEN[word] for word in (*recorded.of("!"), *items.unseen))
    unknown = (*(_UNKNOWN[word] for word in recorded.of("?")), *(f"it changes {name}" for name in changed))
    return BenchmarkTrace(loaded, inputs, items.digests, tuple(dict.fromkeys(unseen)), tuple(dict.fromkeys(unknown)))


def merged(traces: Iterable[BenchmarkTrace]) -> BenchmarkTrace:
    """Return what several processes of one benchmark executed and read together."""
    joined = BenchmarkTrace()
    for trace in traces:
        joined = BenchmarkTrace(
            {**joined.loaded, **trace.loaded},
            {**joined.inputs, **trace.inputs},
            _joined(Items(joined.functions), Items(trace.functions)).digests,
            tuple(dict.fromkeys((*joined.unseen, *trace.unseen))),
            tuple(dict.fromkeys((*joined.unknown, *trace.unknown))),
        )
    return joined


def _joined(first: Items, second: Items) -> Items:
    both = {name: tuple(sorted({*first.digests.get(name, ()), *digests})) for name, digests in second.digests.items()}
    return Items({**first.digests, **both}, (*first.unseen, *second.unseen))


def _items(path: str, digest: str, entered: tuple[int, ...]) -> Items:
    try:
        return program_at(path, digest).items(entered)
    except (elf.ElfError, OSError):
        return Items({}, ("format",))


@lru_cache(maxsize=4)
def program_at(path: str, _digest: str) -> ProgramCode:
    """Return a program, which keeps what it computes for other benchmarks. Raises ElfError and OSError.

    ``_digest``: of the file, so that a file which was built again is read again.
    """
    file = elf.read(Path(path).read_bytes())
    if file.machine != elf.X86_64:
        raise elf.ElfError(f"machine {file.machine}")
    return ProgramCode(file)


def addresses(path: str, entered: Iterable[int] | None = None) -> list[int]:
    """Return the addresses of all instructions of entered functions of a program, or of all functions.

    None if it cannot be read, or if it has no debug information.
    """
    try:
        program = program_at(path, _digest(Path(path)))
    except (elf.ElfError, OSError):
        return []
    starts = program.starts if entered is None else entered
    return sorted({at for start in starts for at in program.places(start)}) if program.has_lines else []


class _Paths:
    """Names of files that are equal on both sides: relative to the roots, without cargo's hashes."""

    def __init__(self, roots: Mapping[Path, str]) -> None:
        self._roots = {str(root): name for root, name in roots.items()}

    def name(self, path: str) -> str | None:
        """Return the name of a path, None if it is below no root, neither as written nor with links resolved."""
        for found in (os.path.normpath(path), os.path.realpath(path)):
            for root, name in self._roots.items():
                if found == root or found.startswith(root + os.sep):
                    return HASH_OF_CARGO.sub("", str(Path(name, os.path.relpath(found, root))))
        return None

    def without_roots(self, target: str) -> str:
        """Return the target of a link without the roots."""
        for root, name in self._roots.items():
            target = target.replace(root, f"<{name}>")
        return target


def _inputs(recorded: RecordedProgram, paths: _Paths) -> tuple[dict[str, str], list[str]]:
    """Return the digests of what was read, and the names of inputs that the program itself changes."""
    inputs: dict[str, str] = {}
    made: set[Path] = set()
    written: set[Path] = set()
    kept: set[Path] = set()
    """Files that the program wrote to, and that still have content from before."""
    changed: list[str] = []
    for letter, text in recorded.records:
        name = paths.name(text) if letter in "radwkc" else None
        path = Path(os.path.normpath(text))
        if name is None or _BYTECODE in path.parts or made & {path, *path.parents}:
            continue
        if letter == "a":
            inputs.setdefault(name, ABSENT)
        elif letter == "c":
            made.add(path)
        elif letter in "wk":
            (written if letter == "w" else kept).add(path)
            if inputs.get(name, ABSENT) != ABSENT:
                changed.append(name)
        elif letter == "d":
            inputs[f"{name}/"] = _listing(path, made)
        elif path in written:
            continue
        elif path in kept:
            changed.append(name)
        else:
            inputs.update(_input(name, path, paths))
    return inputs, changed


def _input(name: str, path: Path, paths: _Paths) -> Iterator[tuple[str, str]]:
    """Yield what a program can see of an existing path: the content of a file, where a link leads, what it is."""
    try:
        if path.is_symlink():
            yield f"{name} (link)", paths.without_roots(str(path.readlink()))
        if path.is_file():
            yield name, _digest(path)
        elif path.is_dir():
            yield name, _FOLDER
        else:
            yield name, _SPECIAL if os.path.lexists(path) else _REMOVED
    except OSError:
        yield name, _UNREADABLE


def _listing(folder: Path, made: set[Path]) -> str:
    try:
        kept = sorted(path.name for path in folder.iterdir() if path.name != _BYTECODE and path not in made)
    except OSError:
        return _REMOVED
    names = "\0".join(HASH_OF_CARGO.sub("", name) for name in kept)
    return hashlib.sha256(os.fsencode(names)).hexdigest()


def _digest(path: Path) -> str:
    """Return the sha256 of a file."""
    try:
        state = path.stat()
        return _digest_of(path, state.st_mtime_ns, state.st_size, state.st_ino)
    except OSError:
        return _UNREADABLE


@lru_cache(maxsize=4096)
def _digest_of(path: Path, _changed: int, _size: int, _number: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
