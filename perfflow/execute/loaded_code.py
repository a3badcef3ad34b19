"""Check which Python code a process in a slot ran: the tree's own or, which is an error, another tree's.

This is checked once per side, in a run that is discarded, because recording the modules slows the program. The tree is
first on PYTHONPATH, but the import hook of an editable install may come before any path, ``sys.path`` may be changed,
and a script may be named by its absolute path. The metrics would not show any of this.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.errors import UserError
from perfflow.tools import python_command
from perfflow.trees.repository import writing
from perfflow.trees.slots import Slot

DRIVERS = Path(python_command.__file__).with_name("drivers")
UNSEEN = (
    "perfflow could not check which tree's Python modules it loads: python -I and -E ignore PYTHONPATH, on which the "
    "tree comes first, and Python before 3.8, or with -S, does not report its modules"
)
SHOWN = 3
"""Number of modules of another tree that a message names."""
_SETS_PATH = re.compile(r"\bPYTHONPATH=")
_STANDARD = re.compile(r"/lib\d*/python\d[^/]*/")


@dataclass
class Loaded:
    """The code that a watched process and its children ran.

    ``own``: sha256 by file, relative to the tree. ``others`` (another tree) and ``copies`` (installed): file by module.
    """

    own: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)
    seen: bool = False
    """Whether any Python interpreter reported its modules."""


@contextmanager
def recording_modules(prepared: ReadyProcess, slot: Slot) -> Iterator[tuple[ReadyProcess, Loaded]]:
    """Record the code that processes started in this context load; ``Loaded`` is filled at its end. Raises Failure."""
    around = slot.path.with_suffix(".loaded")
    try:
        with writing(around):
            around.mkdir(mode=0o700, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=around)).resolve()
            shutil.copyfile(DRIVERS / "loaded_modules.py", folder / "sitecustomize.py")
            (folder / "trees").write_bytes(b"".join(os.fsencode(word) + b"\0" for word in _settings(slot)))
    except UserError as error:
        raise Failure(error.in_one_line) from error
    entries = [str(folder), *filter(None, [prepared.env.get("PYTHONPATH")])]
    env = {**prepared.env, "PYTHONPATH": os.pathsep.join(entries)}
    text = " ".join((*prepared.argv, prepared.call.shell_text if prepared.call else ""))
    if _SETS_PATH.search(text):
        # If the command sets PYTHONPATH, Python may not load our hook; the files it compiles show what it imported.
        env = {name: value for name, value in env.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    loaded = Loaded()
    try:
        yield replace(prepared, env=env), loaded
        _read(folder / "loaded", slot, loaded)
        _read_compiled(folder / "compiled", slot, loaded)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(slot: Slot) -> Iterator[str]:
    root, pair = slot.repository.root.resolve(), slot.path.parent.resolve()
    own = slot.path.resolve()
    yield from ("own", str(own), "own", str(slot.build.resolve()))
    for path in slot.share:
        yield from ("shared", str((root / path).resolve()))
    # If perfflow itself is measured, its drivers lie in the user's tree.
    yield from ("shared", str(DRIVERS.resolve()), "shared", str(slot.path.with_suffix(".loaded").resolve()))
    yield from ("other", str(root), "other", str(pair), "source", root.as_uri())
    for other in slot.others:
        yield from ("source", other.resolve().as_uri())


def _read(file: Path, slot: Slot, loaded: Loaded) -> None:
    try:
        words = os.fsdecode(file.read_bytes()).split("\0")
    except FileNotFoundError:
        return
    for kind, name, path in zip(words[::3], words[1::3], words[2::3], strict=False):
        if kind == "python":
            loaded.seen = True
        elif kind == "own":
            loaded.own |= _hashed(Path(path), slot.path.resolve())
        elif kind in ("other", "copy"):
            (loaded.others if kind == "other" else loaded.copies).setdefault(name, path)


def _read_compiled(folder: Path, slot: Slot, loaded: Loaded) -> None:
    """Add the sources of compiled files; each lies below the folder at its own absolute path (PEP 304)."""
    settings = list(_settings(slot))
    places: dict[str, list[Path]] = {kind: [] for kind in ("own", "shared", "other", "source")}
    for kind, place in zip(settings[::2], settings[1::2], strict=True):
        places[kind].append(Path(place))
    for compiled in folder.rglob("*.pyc"):
        name = compiled.name.split(".", 1)[0]
        source = (Path("/") / compiled.relative_to(folder).with_name(f"{name}.py")).resolve()
        inside = {kind for kind, around in places.items() if any(source.is_relative_to(place) for place in around)}
        if _STANDARD.search(str(source)) or not inside:
            continue
        loaded.seen = True
        if "own" in inside:
            loaded.own |= _hashed(source, slot.path.resolve())
        elif "shared" not in inside:
            loaded.others.setdefault(name, str(source))


def _hashed(path: Path, tree: Path) -> dict[str, str]:
    """Return a file's sha256 by its path in the tree; empty if it is gone, or not a file (inside an archive)."""
    if not path.is_relative_to(tree) or not path.is_file():
        return {}
    with path.open("rb") as stream:
        return {str(path.relative_to(tree)): hashlib.file_digest(stream, "sha256").hexdigest()}


def require_own(loaded: Loaded, slot: Slot) -> None:
    """Raise Failure with module, file and remedy if code of another tree, or an installed copy, ran."""
    if loaded.others:
        remedy = (
            "keep the project's folder out of PYTHONPATH and sys.path, name scripts by their path in the tree, install "
            "the project without an import hook that precedes PYTHONPATH, and list ignored files that every tree needs "
            "in `worktree: {share: [...]}`"
        )
        raise Failure(f"code of another tree ran: {_named(loaded.others)}; the tree here is {slot.path}; {remedy}")
    if loaded.copies:
        remedy = (
            "name the folder of the package in `env: {PYTHONPATH: ...}`, relative to the tree, or install it in a "
            "build step into an environment of the tree's own"
        )
        text = f"an installed copy ran, not the tree's own code: {_named(loaded.copies)}"
        raise Failure(f"{text}; the tree here is {slot.path}; {remedy}")


def _named(files: Mapping[str, str]) -> str:
    shown = [f"{name} from {path}" for name, path in list(files.items())[:SHOWN]]
    return ", ".join(shown) + (f" and {len(files) - SHOWN} more" if len(files) > SHOWN else "")
