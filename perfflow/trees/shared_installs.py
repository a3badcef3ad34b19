"""Find shared folders that make both trees run the user's code: links into the tree, and installs of the project.

The tree comes first on PYTHONPATH, so its Python code takes precedence over an installed copy, if the code is in a
folder from which packages are imported. ``faults`` finds the other cases before anything is built.

``share_crates`` copies third-party crates that cargo built in one slot to the other, which then need not build them
again.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from perfflow.model.errors import Problem
from perfflow.tools.rust.drivers import cargo_units
from perfflow.trees.git import Git, names
from perfflow.trees.python_layout import import_folders, project_name
from perfflow.trees.slots import Slot, is_build_folder
from perfflow.trees.snapshots import text_of

_MOST_ENTRIES = 100_000
"""Most files and folders of one shared folder that are checked."""
_MOST_NAMES = 1000
_MOST_LINKS = 100
"""Most link targets in the tree for which git is asked."""
_COMPILED = (".so", ".pyd")
# The import hooks of meson-python and scikit-build-core take precedence over the module path.
_HOOK = re.compile(r"_.+_editable(_loader)?\.py")
_FINDER = re.compile(r"__editable___.+_finder\.py")
_MAPPING = re.compile(r"^MAPPING\b[^=\n]*=\s*(\{.*\})\s*$", re.MULTILINE)
_ENVIRONMENT = "`python3 -m venv .venv && .venv/bin/pip install .`"
_EACH = f"take it out of the list, and make one in each tree with a step in `build`, such as {_ENVIRONMENT}"


@dataclass(frozen=True)
class Prepared:
    """Preparation of each tree by the workflow: whether it builds there, and whether it sets PYTHONPATH."""

    builds: bool
    sets_path: bool


def faults(root: Path, path: str, share: Sequence[str], prepared: Prepared) -> Iterator[Problem]:
    """Yield the problems of sharing ``path`` of the tree at ``root``; ``share``: all shared paths."""
    place = root / path
    if back := _link_back(root, place, share):
        link, target = back
        message = (
            f"worktree.share: {path} links back into your tree ({link} → {target}): both sides would run your code"
        )
        yield Problem(message, "take it out of the list, and install it in each tree with a step in `build`")
    for site in _sites(place):
        for install in _own_installs(site, root):
            fault = _fault_of(root, path, install, prepared)
            if fault:
                yield fault


def is_installed(root: Path, environment: Path) -> bool:
    """Return whether the project itself is installed in a virtual environment, in any way."""
    return any(True for site in _sites(environment) for _ in _own_installs(site, root))


def _link_back(root: Path, place: Path, share: Sequence[str]) -> tuple[Path, Path] | None:
    """Return a link in the folder, or the folder itself, to files of which every tree has its own, and its target."""
    base = root.resolve()
    shared = [(root / path).resolve() for path in share]
    links: dict[str, tuple[Path, Path]] = {}
    for link in _links(place):
        try:
            target = link.resolve()
        except (OSError, RuntimeError):  # a loop of links
            continue
        inside = target.is_relative_to(base) and target.exists()
        # The target of a shared path that is a link counts as shared itself, so check that link anyway.
        if inside and (link == place or not any(target.is_relative_to(other) for other in shared)):
            relative = target.relative_to(base)
            links.setdefault(str(relative), (link.relative_to(root), relative))
    built = next((name for name in links if is_build_folder(name)), None)
    chosen = built or next(iter(_carried(root, links)), None)
    return links[chosen] if chosen is not None else None


def _links(place: Path) -> Iterator[Path]:
    """Yield the symbolic links in a folder, or the path itself if it is one, without following links."""
    if place.is_symlink():
        yield place
        return
    folders, left = [place], _MOST_ENTRIES
    while folders and left > 0:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_symlink():
                        yield Path(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
        except OSError:  # not a folder, or not readable
            continue


def _carried(root: Path, paths: Iterable[str]) -> list[str]:
    """Return the paths of which every tree has its own, because git tracks them or does not ignore them."""
    wanted = list(paths)[:_MOST_LINKS]
    if not wanted:
        return []
    git = Git(root, {"GIT_LITERAL_PATHSPECS": "1"})
    done = git.attempt("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *wanted)
    held = names(done.stdout)
    return [path for path in wanted if path == "." or any(f"{name}/".startswith(f"{path}/") for name in held)]


def _sites(place: Path) -> list[Path]:
    """Return the site-packages folders of the environments at a place, or one level below it."""
    return sorted([*place.glob("lib/python3*/site-packages"), *place.glob("*/lib/python3*/site-packages")])


@dataclass(frozen=True)
class _Install:
    """One installed distribution of the project: its name, and its files relative to ``site``."""

    site: Path
    name: str
    files: tuple[str, ...]


def _own_installs(site: Path, root: Path) -> Iterator[_Install]:
    """Yield the distributions of the project, recognized by name or by the folder of their source (PEP 610)."""
    own = project_name(root)
    for info in sorted(site.glob("*.dist-info")):
        name = info.name.partition("-")[0]
        if (own and _normal(name) == _normal(own)) or _came_from(info, site).is_relative_to(root.resolve()):
            record = text_of(info / "RECORD", site)
            yield _Install(site, name, tuple(line.split(",")[0] for line in record.splitlines()))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _came_from(info: Path, site: Path) -> Path:
    """Return the folder that a distribution was installed from; / if it was not a folder."""
    try:
        told = json.loads(text_of(info / "direct_url.json", site))
        url = urlsplit(str(told.get("url", "")) if isinstance(told, dict) else "")
    except (ValueError, RecursionError):
        return Path("/")
    return Path(unquote(url.path)) if url.scheme == "file" else Path("/")


def _fault_of(root: Path, path: str, install: _Install, prepared: Prepared) -> Problem | None:
    top = [name for name in install.files if "/" not in name]
    if any(_HOOK.fullmatch(name) for name in top):
        message = f"worktree.share: {path} has {install.name} installed by an import hook that precedes the module path"
        return Problem(f"{message}: both sides would run your tree", _EACH)
    modules = list(_modules(root, install, top))
    compiled = next((name for name in install.files if name.endswith(_COMPILED)), None) or _built(root, modules)
    if compiled and not prepared.builds:
        message = f"worktree.share: {path} holds a compiled copy of the project itself ({compiled})"
        hint = "build it in each tree with a step in `build`, such as `python3 setup.py build_ext --inplace`"
        return Problem(f"{message}: both sides would run that copy", hint)
    folder, module = ("", "") if prepared.sets_path else _not_found(root, modules)
    if not module:
        return None
    what = "an editable install" if folder else "an installed copy"
    message = (
        f"worktree.share: {path} holds {what} of the project itself, and `{module}` is not found in the trees first"
    )
    hint = f"set the folder of its packages in each tree: env: {{PYTHONPATH: {folder or 'FOLDER'}}}"
    return Problem(f"{message}: both sides would run that", hint)


def _built(root: Path, modules: Iterable[tuple[str, str]]) -> str:
    """Return a compiled module of an editable install that only the user's tree has; '' if there is none."""
    for module, folder in modules:
        if folder:
            place = root / folder / module
            patterns = [f"{deeper}*{suffix}" for suffix in _COMPILED for deeper in ("", "*/" if module else "")]
            found = {str(path.relative_to(root)) for pattern in patterns for path in place.glob(pattern)}
            own = sorted(found.difference(_carried(root, found)))
            if own:
                return own[0]
    return ""


def _not_found(root: Path, modules: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return (folder, module) of a module that is in no import folder of a tree; ('', '') if there is none."""
    own = import_folders(root)
    for module, folder in modules:
        if module and not any((place / module).is_dir() or (place / f"{module}.py").is_file() for place in own):
            return folder, module
    return "", ""


def _modules(root: Path, install: _Install, top: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (module, folder) of each top-level module of an install; folder is '' unless the install is editable.

    Module '' means modules that are files in the folder.
    """
    editable = [name for name in top if name.endswith(".pth") or _FINDER.fullmatch(name)]
    base = root.resolve()
    for name in editable:
        text = text_of(install.site / name, install.site)
        for module, folder in [*_of_mapping(text), *_of_path_file(text)]:
            if folder.resolve().is_relative_to(base):
                yield module, str(folder.resolve().relative_to(base))
    if not editable:
        packages = {name.partition("/")[0] for name in install.files if name.endswith(".py") and "/" in name}
        modules = {name.removesuffix(".py") for name in top if name.endswith(".py")}
        yield from ((name, "") for name in sorted(packages | modules) if name.isidentifier())


def _of_mapping(text: str) -> Iterator[tuple[str, Path]]:
    """Yield the modules of setuptools' finder, each with its folder."""
    found = _MAPPING.search(text)
    try:
        mapping = ast.literal_eval(found[1]) if found else {}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return
    for name, place in mapping.items() if isinstance(mapping, dict) else ():
        if isinstance(name, str) and isinstance(place, str) and name.isidentifier():
            yield name, Path(place).parent


def _of_path_file(text: str) -> Iterator[tuple[str, Path]]:
    """Yield the packages in the folders that a .pth file adds to the module path, and '' for their other modules."""
    for line in text.splitlines()[:_MOST_NAMES]:
        folder = Path(line.strip())
        if not folder.is_absolute() or not folder.is_dir():
            continue
        yield "", folder
        for package in sorted(folder.glob("*/__init__.py"))[:_MOST_NAMES]:
            yield package.parent.name, folder


def share_crates(built: Slot, other: Slot) -> int:
    """Copy missing units of crates without files of the tree to the slot ``other``; return the number of units.

    Raises UserError if git fails. Units that cannot be copied are built again.
    """
    if built.path == other.path:
        return 0
    copied = 0
    for target in built.cargo_folders():
        parent = built.path if target.is_relative_to(built.path) else built.build
        place = (other.path if parent == built.path else other.build) / target.relative_to(parent)
        with suppress(OSError):
            copied += cargo_units.share(target, place, built.path)
    return copied
