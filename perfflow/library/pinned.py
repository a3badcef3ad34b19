"""Resolve the names in workflow files: ``lib:``, ``pkg:``, paths, and items of ``perfflow.lock``. Fetches nothing.

- ``perfflow.lock`` records the commit of every reference into git, and the sha256 of each file.
- Fetched items are in the user's cache, in folders named by checksum. The cache also records which items were shown.
- ``Library`` resolves names. A file of an item may name other files of the same item by relative path. Paths of its
  tool files are relative to the top of its repository, as those of a project are relative to the top of the project.
- ``collected`` returns the files of a reference: the named file, and the files of the same repository that it uses.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_cache_path, user_state_path
from pydantic import Field, StringConstraints

from perfflow.library import references, search_path
from perfflow.library.references import ENTRY, Reference
from perfflow.model.errors import Problem, UserError
from perfflow.model.similar import nearest_of
from perfflow.store.run_folder import only_writer
from perfflow.workflow.declared_tool import is_tool_file
from perfflow.workflow.document import Document
from perfflow.workflow.extends import named
from perfflow.workflow.model import WorkflowPart
from perfflow.workflow.shape import read_shape
from perfflow.workflow.yaml_text import LARGEST, Readable, read_file, read_text

LOCK_FILE = references.LOCK
VERSION = 1
_KEY = "perfflow-lock"
_HEAD = """\
# Pinned workflows from git. Written by `perfflow library`; commit this file.
# To remove an item: perfflow library remove REFERENCE
"""
_MEND = "restore it from git, or delete it and pin again: perfflow library add REFERENCE"
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Pin(WorkflowPart):
    """The pinned commit and files of one reference."""

    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
    kind: Literal["tag", "branch", "commit"] = Field(description="kind of the revision")
    path: str = Field(description="the named file, from the top of the repository")
    sha256: Sha256 = Field(description="of the lines `SHA256  PATH` of all files, sorted")
    vendored: bool = Field(default=False, description="whether the project has a copy")
    files: dict[str, Sha256] = Field(description="path -> sha256, of the named file and the files that it uses")


class _LockFile(WorkflowPart):
    perfflow_lock: Literal[1]
    items: dict[str, Pin] = Field(default_factory=dict)


Lock = Mapping[str, Pin]
"""Pins by reference."""


def digest_of(files: Mapping[str, str]) -> str:
    """Return the sha256 of several files: of the lines that ``sha256sum`` prints, sorted by path."""
    return hashlib.sha256("".join(f"{files[name]}  {name}\n" for name in sorted(files)).encode()).hexdigest()


def read_lock(root: Path) -> Lock:
    """Return the lock of a project, empty if there is none. Raises UserError if it is damaged or too new."""
    path = root / LOCK_FILE
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        document = read_file(path)
        data = document.data()
    except UserError as error:
        raise UserError((*error.problems, Problem(f"{path} is damaged", _MEND))) from error
    version = data.get(_KEY)
    if isinstance(version, int) and version > VERSION:
        message = f"{path} has version {version}, but this perfflow supports version {VERSION}"
        raise UserError.of(message, "update perfflow")
    shaped = read_shape(document, _LockFile, data, ())
    problems = [*document.problems, *shaped.problems]
    if not problems and shaped.model:
        problems = list(_wrong(document, shaped.model))
    if problems or not shaped.model:
        raise UserError((*problems, Problem(f"{path} is damaged", _MEND)))
    return shaped.model.items


def _wrong(document: Document, lock: _LockFile) -> Iterator[Problem]:
    """Yield problems that the schema does not detect: invalid names and paths, and wrong checksums."""
    for name, pin in lock.items.items():
        place = document.place(("items", name), key=True)
        try:
            reference = references.read(name)
            written = str(reference)
            for path in (pin.path, *pin.files):
                references.require_path(path, name)
        except UserError as error:
            yield Problem(error.problems[0].message, error.problems[0].hint, place)
            continue
        if written != name:
            yield Problem(f"{name} must be written as {written}", "", place)
        if pin.path not in pin.files:
            yield Problem(f"{name}: its file {pin.path} is not among `files`", "", place)
        elif pin.path != reference.entry(pin.files):
            # Another file of the item may run commands that nobody expects from the reference.
            yield Problem(f"{name}: `path` is {pin.path}, which is not the file that the reference names", "", place)
        if digest_of(pin.files) != pin.sha256:
            yield Problem(f"{name}: `sha256` does not match the checksums in `files`", "", place)


def write_lock(root: Path, lock: Lock) -> None:
    """Write a project's lock atomically, or delete it if it has no item. Raises UserError."""
    path = root / LOCK_FILE
    fresh = path.with_name(f".{LOCK_FILE}.{os.getpid()}")
    try:
        if not lock:
            path.unlink(missing_ok=True)
            return
        fresh.write_text(text_of(lock), encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise UserError.of(f"{path} cannot be written: {error.strerror}", "check the permissions") from error
    finally:
        fresh.unlink(missing_ok=True)


def text_of(lock: Lock) -> str:
    """Return the text of a lock. It is sorted, so that two branches that add items differ in few lines."""
    lines = [f"{_KEY}: {VERSION}", "items:"]
    for name, pin in sorted(lock.items()):
        lines += [f"  {_quoted(name)}:", f"    commit: {_quoted(pin.commit)}", f"    kind: {pin.kind}"]
        lines += [f"    path: {_quoted(pin.path)}", f"    sha256: {_quoted(pin.sha256)}"]
        lines += ["    vendored: true"] if pin.vendored else []
        lines += ["    files:", *(f"      {_quoted(path)}: {_quoted(sha)}" for path, sha in sorted(pin.files.items()))]
    return _HEAD + "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    # Quoted, because digits alone would be a number in YAML.
    return json.dumps(value, ensure_ascii=False)


VENDORED = Path("workflows", "vendor")
"""Folder for copies of items in a project."""
_FRESH = ".fresh-"
"""Prefix of temporary folders in the cache."""


def cached_item(pin: Pin) -> Path:
    """Return the folder of an item in the cache, which may be missing. Its files have their paths in the repository."""
    return _cache() / pin.sha256


def _cache() -> Path:
    return user_cache_path("perfflow") / "library"


@contextmanager
def changing_store(root: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Lock a project's lock file, then the cache, against other perfflow processes that change them.

    Temporary folders of killed processes are removed. ``waiting`` is called before waiting for another process. Raises
    UserError if a folder cannot be used.
    """
    cache = _cache()
    try:
        cache.mkdir(0o700, parents=True, exist_ok=True)
        with only_writer(root, waiting), only_writer(cache, waiting):
            for left in cache.glob(f"{_FRESH}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
    except OSError as error:
        raise UserError.of(f"{error.filename or root}: {error.strerror}", "set XDG_CACHE_HOME to a folder") from error


@contextmanager
def temporary_item() -> Iterator[Path]:
    """Yield a new folder in the cache. If this process is killed, the next one in ``changing`` removes it."""
    with tempfile.TemporaryDirectory(prefix=_FRESH, dir=_cache(), ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def vendored(root: Path, reference: Reference) -> Path:
    """Return the folder for copied files of a repository in a project."""
    return root / VENDORED / reference.folder


def checksums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of each file by path."""
    return {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()}


def checked_item(folder: Path, pin: Pin) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of an item that match the lock, and the differences of the others from it.

    Each file is read once, so the returned bytes are those that were compared, even if it is changed meanwhile.
    """
    readable = Readable.of(folder)
    files, wrong = dict[str, bytes](), list[str]()
    for name, sha256 in sorted(pin.files.items()):
        try:
            raw = readable.bytes_of(folder / name)
        except (OSError, ValueError):
            wrong.append(f"{name} is missing or cannot be read")
            continue
        except UserError:
            wrong.append(f"{name} is a link that leads out of its folder")
            continue
        digest = hashlib.sha256(raw).hexdigest()
        if digest == sha256:
            files[name] = raw
        else:
            wrong.append(f"{name} was changed: its sha256 is {digest[:12]}…, but {sha256[:12]}… in {LOCK_FILE}")
    return files, wrong


def changed_items(folder: Path, pin: Pin) -> list[str]:
    """Return the differences from the lock: files that are missing, changed, or behind a link out of the folder."""
    return checked_item(folder, pin)[1]


def keep_item(pin: Pin, files: Mapping[str, bytes]) -> None:
    """Write an item into the cache, replacing a damaged one. Raises UserError if it cannot be written."""
    folder = cached_item(pin)
    if not changed_items(folder, pin):
        return
    try:
        with temporary_item() as fresh:
            write_into(fresh / "item", files, fresh)
            if folder.is_dir():
                shutil.rmtree(folder)
            (fresh / "item").rename(folder)
    except OSError as error:
        raise UserError.of(f"{folder} cannot be written: {error.strerror}", "set XDG_CACHE_HOME to a folder") from error


def write_into(folder: Path, files: Mapping[str, bytes], within: Path) -> None:
    """Write files below a folder. Raises OSError, also if a link leads out of ``within``."""
    for name, raw in files.items():
        path = folder / name
        _require_within(path, within)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(raw)


def remove_items(path: Path, within: Path) -> None:
    """Remove a file, if it exists, and the folders of copies that become empty.

    Raises OSError, also if a link leads out of ``within``.
    """
    _require_within(path, within)
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if not folder.is_relative_to(within / VENDORED) or not folder.is_dir() or any(folder.iterdir()):
            break
        folder.rmdir()


def _require_within(path: Path, within: Path) -> None:
    if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(within)):
        raise OSError(0, "a link leads out of the project", str(path.parent))


def is_shown(name: str, pin: Pin) -> bool:
    """Return whether all files of an item were shown to the user on this machine. ``name``: its reference."""
    return _mark(name, pin).is_file()


def mark_shown(name: str, pin: Pin) -> None:
    """Record that all files of an item were shown. Raises UserError if this cannot be written."""
    path = _mark(name, pin)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    except OSError as error:
        raise UserError.of(f"{path} cannot be written: {error.strerror}", "set XDG_STATE_HOME to a folder") from error


def _mark(name: str, pin: Pin) -> Path:
    """Return the file that records what was shown: the bytes, and which of the files the reference names."""
    shown = hashlib.sha256(f"{name}\n{pin.path}\n{pin.sha256}\n".encode()).hexdigest()
    return user_state_path("perfflow") / "library" / "shown" / shown


PROJECT = "project"
"""The origin of files of the project itself."""


class Library:
    """Resolves names to files for the project at ``root``, and records the items that were used."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.used: dict[str, Pin] = {}
        self._folders: dict[Path, str] = {}
        self._packages = set[Path]()
        self._parts: dict[Path, set[Path]] = {}
        self._contents: dict[Path, bytes] = {}
        self._readable: Readable | None = None

    @cached_property
    def lock(self) -> Lock:
        """The pins by reference. Raises UserError if the lock is damaged."""
        return read_lock(self.root)

    def find(self, name: str) -> Path:
        """Return the file of a workflow given by path, by name, or in a form of ``extends``."""
        return self.resolve(name, self.root) if is_elsewhere(name) else search_path.find(name, self.root)

    def resolve(self, text: str, folder: Path) -> Path:
        """Return the file that ``extends`` names in a file of this folder. Raises UserError."""
        if references.names_one(text):
            return self._pinned(text)
        if text.startswith(search_path.PKG):
            top, path = search_path.find_in_packages(text)
            self._allow(top, text)
            return path
        if "://" in text:
            hint = "write git+https://HOST/OWNER/REPO@REV#PATH, and pin it: perfflow library add REFERENCE"
            raise UserError.of(f"{text} is an address, not a workflow", hint)
        return self._inside(search_path.resolve(text, folder), folder, text)

    def tool(self, text: str, file: str) -> Path:
        """Return the tool file that ``uses`` names in a file. Raises UserError."""
        if is_elsewhere(text):
            return self.resolve(text, Path(file).parent)
        top = self._top_of(Path(file))
        return self.root / text if top is None else self._inside(top / text, top, text)

    def readable(self, path: Path) -> Readable:
        """Return the folders that may be read for a workflow. Items that it names later are added."""
        return self.reading(search_path.readable(path))

    def reading(self, readable: Readable) -> Readable:
        """Add the folders of packages and the files of items, now and later, to the readable ones. Returns them."""
        self._readable = readable
        for folder in self._packages:
            readable.allow(folder)
        readable.fix(self._contents)
        return readable

    def origin(self, path: Path) -> str:
        """Return the origin of a workflow: ``project``, ``lib:NAME``, or its reference or package."""
        top = self._top_of(path)
        return search_path.origin(path) if top is None else self._folders[top]

    def named(self, file: str) -> str:
        """Return the name of a file for users. For an item: its reference and the path in its repository."""
        path = Path(file)
        top = self._top_of(path)
        if top is None:
            if path.parent == search_path.SHIPPED:
                return f"{search_path.LIB}{path.stem}"
            return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
        name = self._folders[top]
        inside = path.relative_to(top).as_posix()
        mark = "#" if references.names_one(name) else "/"
        return f"{name.partition(mark)[0]}{mark}{inside}"

    def unshown(self) -> Iterator[Problem]:
        """Yield a problem for each item whose files were never shown on this machine.

        Copies in the project count as shown, because they are visible in the project.
        """
        for name, pin in self.used.items():
            if not pin.vendored and not is_shown(name, pin):
                hint = f"show them: perfflow library add {shlex.quote(name)}; in CI, use --trust"
                yield Problem(f"the commands of {name} were never shown on this machine", hint)

    def folder_of(self, name: str, pin: Pin) -> Path:
        """Return the folder of an item on this machine, which may be missing."""
        return vendored(self.root, references.read(name)) if pin.vendored else cached_item(pin)

    def _pinned(self, text: str) -> Path:
        name = str(references.read(text))
        pin, argument = self.lock.get(name), shlex.quote(name)
        if pin is None:
            raise UserError.of(f"{name} is not in perfflow.lock", f"pin and fetch it: perfflow library add {argument}")
        folder = self.folder_of(name, pin)
        verb = "vendor" if pin.vendored else "add"
        if not folder.is_dir():
            where = f"{folder} is missing" if pin.vendored else f"{name} is not on this machine"
            raise UserError.of(where, f"fetch it: perfflow library {verb} {argument}")
        files, wrong = checked_item(folder, pin)
        if wrong:
            raise UserError.of(f"{name}: {'; '.join(wrong)}", f"restore it: perfflow library {verb} {argument}")
        self.used[name] = pin
        self._folders.setdefault(folder, name)
        # Copies of items from one repository share a folder.
        contents = {folder / path: raw for path, raw in files.items()}
        self._parts.setdefault(folder, set()).update(contents)
        # Only these bytes are used from now on, since a file may be replaced after its checksum was compared.
        self._contents.update(contents)
        if self._readable:
            self._readable.fix(contents)
        return folder / pin.path

    def _allow(self, folder: Path, name: str) -> None:
        self._folders.setdefault(folder, name)
        self._packages.add(folder)
        if self._readable:
            self._readable.allow(folder)

    def _top_of(self, path: Path) -> Path | None:
        return next((folder for folder in self._folders if path.is_relative_to(folder)), None)

    def _inside(self, path: Path, folder: Path, text: str) -> Path:
        """Return the normalized path. Raises UserError if a file of an item names a path outside the item."""
        top = self._top_of(folder)
        if top is None:
            return path
        path = Path(os.path.normpath(path))
        parts = self._parts.get(top)
        is_part = path in parts if parts else path.is_relative_to(top)
        if not (is_part or path.is_relative_to(search_path.SHIPPED)):
            raise UserError.of(f"{text} leads out of {self._folders[top]}", "name a file of that repository")
        return path


def is_elsewhere(name: str) -> bool:
    """Return whether a name refers to a package or a repository, not to a path or a tool."""
    return name.startswith(search_path.PKG) or references.names_one(name)


MOST_FILES = 200
MOST_BYTES = 8 * 2**20
Read = Callable[[str], bytes]
"""Returns the bytes of a file of the repository."""


@dataclass(frozen=True)
class Item:
    """All files of an item by path. ``path``: the named file. ``others``: references in the files."""

    path: str
    files: Mapping[str, bytes]
    others: tuple[str, ...]


def entry_of(reference: Reference, paths: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the file that a reference names, and all files that belong to it: for a folder, its files.

    ``paths``: all paths of the repository. Raises UserError if the file does not exist.
    """
    inside = [path for path in paths if path.startswith(f"{reference.path}/")]
    if entry := reference.entry(paths):
        return entry, inside if entry in inside else [entry]
    names = inside or nearest_of(reference.path, [path for path in paths if _is_yaml(path)], 3, 0.3)
    hint = f"a folder needs a {ENTRY}; " * bool(inside) + (f"it has: {', '.join(names[:5])}" if names else "")
    raise UserError.of(f"{reference.url} has no file {reference.path!r} at {reference.revision}", hint)


def collected(reference: Reference, path: str, further: list[str], read: Read) -> Item:
    """Read a file, the files that it extends, its tool files, and the ``further`` files that belong to it.

    Raises UserError if a file is not YAML or leads out of the repository, or if the item is too large.
    """
    files: dict[str, bytes] = {}
    others: list[str] = []
    left = [path]
    while left:
        name = left.pop()
        if name not in files:
            _add(files, name, read)
            if _is_yaml(name):
                document = read_text(_text(files[name], f"{reference}, {name}"), _shown(reference, name))
                mentioned, elsewhere = _mentions(document, name)
                left += mentioned
                others += elsewhere
    for name in further:
        if name not in files:
            _add(files, name, read)
    return Item(path, files, tuple(dict.fromkeys(others)))


def _add(files: dict[str, bytes], name: str, read: Read) -> None:
    files[name] = read(name)
    if len(files) > MOST_FILES or sum(map(len, files.values())) > MOST_BYTES:
        hint = "name a file of the folder, or remove files that no workflow needs"
        raise UserError.of(f"the item has more than {MOST_FILES} files, or {MOST_BYTES:,} bytes", hint)


def _shown(reference: Reference, name: str) -> str:
    return f"git+{reference.url}@{reference.revision}#{name}"


def _text(raw: bytes, said: str) -> str:
    if len(raw) > LARGEST:
        raise UserError.of(f"{said} is larger than 1 MiB", "check that this is a workflow file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError.of(f"{said} is not UTF-8 text", "check that this is a workflow file") from error


def _is_yaml(path: str) -> bool:
    return path.endswith(search_path.WORKFLOW_SUFFIXES)


def _mentions(document: Document, name: str) -> tuple[list[str], list[str]]:
    """Return the paths in the repository and the references in a file. Raises UserError with the place."""
    inside, elsewhere = [], []
    uses = [(text, loc, "") for text, loc in _used(document)]
    for text, place, folder in [*((text, place, posixpath.dirname(name)) for text, place in named(document)), *uses]:
        if references.names_one(text):
            elsewhere.append(text)
        elif text.startswith((search_path.PKG, search_path.LIB)):
            continue
        else:
            path = posixpath.normpath(posixpath.join(folder, text))
            if path.startswith(("/", "../")) or path == "..":
                hint = "name a file of the same repository, or a file of another as git+URL@REV#PATH"
                raise UserError((Problem(f"{text} leads out of the repository", hint, place),))
            inside.append(path)
    return inside, elsewhere


def references_in(document: Document) -> Iterator[str]:
    """Yield each reference into git in a file, as written in ``perfflow.lock``."""
    for text, _ in (*named(document), *_used(document)):
        if references.names_one(text):
            yield str(references.read(text))


def _used(document: Document) -> Iterator[tuple[str, Any]]:
    """Yield the tool files of the steps, as written, and their places."""
    data = document.data()
    stages = data.get("stages")
    for stage, content in stages.items() if isinstance(stages, dict) else ():
        steps = content.get("steps") if isinstance(content, dict) else content
        for index, step in enumerate(steps if isinstance(steps, list) else ()):
            uses = step.get("uses") if isinstance(step, dict) else None
            if isinstance(uses, str) and is_tool_file(uses):
                yield uses, document.place(("stages", stage, "steps", index, "uses"))


def is_tool(raw: bytes) -> bool:
    """Return whether a file defines a tool, judged by one line of its text."""
    return any(line.startswith(b"perfflow-tool:") for line in raw.splitlines())


def pin_of(commit: str, kind: str, item: Item) -> Pin:
    """Return the pin of a fetched item."""
    files = checksums(item.files)
    data = {"commit": commit, "kind": kind, "path": item.path, "sha256": digest_of(files), "files": files}
    return Pin.model_validate(data)
