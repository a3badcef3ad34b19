"""Python code of a project: the folders of its packages, the functions in its files, and the environment to run it.

``import_folders`` finds the folders from the project's own settings: ``src`` with packages in it, and the folders in
pyproject.toml or setup.cfg: setuptools' ``package-dir`` and ``packages.find.where``, hatchling's ``packages`` and
``sources``, Poetry's ``from``, PDM's ``package-dir``, maturin's ``python-source``.
https://setuptools.pypa.io/en/latest/userguide/package_discovery.html, https://hatch.pypa.io/latest/config/build/,
https://python-poetry.org/docs/pyproject/#packages, https://www.maturin.rs/project_layout

``PythonSource`` finds the function around a line of Python, and properties of the line, from the syntax without running
it. ``environment`` is the environment of a step in a slot, which makes the tree's own code run.
"""

from __future__ import annotations

import ast
import configparser
import os
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from perfflow.model.targets import NOWHERE, SourcePlace, Use
from perfflow.trees.git import LOCAL
from perfflow.trees.slots import Slot
from perfflow.trees.snapshots import text_of


def import_folders(tree: Path) -> list[Path]:
    """Return the existing folders of the tree from which its packages are imported, without duplicates, the root last.

    Settings that cannot be read are ignored: the build tool itself reports errors in them.
    """
    named = [*_of_pyproject(_toml(tree)), *_of_setup_cfg(tree)]
    source = ["src"] if _holds_packages(tree / "src") else []
    inside = [
        path for path in map(PurePosixPath, (*source, *named)) if not path.is_absolute() and ".." not in path.parts
    ]
    return [*dict.fromkeys(tree / path for path in inside if path.parts and (tree / path).is_dir()), tree]


def project_name(tree: Path) -> str:
    """Return the name of the project in pyproject.toml or setup.cfg, '' if there is none."""
    data = _toml(tree)
    said = [_at(data, "project").get("name"), _at(data, "tool", "poetry").get("name")]
    said.append(_setup_cfg(tree).get("metadata", "name", fallback=""))
    return next((name.strip() for name in said if isinstance(name, str) and name.strip()), "")


def _holds_packages(folder: Path) -> bool:
    """Return whether ``src`` is a folder of packages, and not a package called src."""
    return folder.is_dir() and not (folder / "__init__.py").exists()


def _of_pyproject(data: dict[str, Any]) -> Iterator[str]:
    setuptools = _at(data, "tool", "setuptools")
    yield from _parents(_at(setuptools, "package-dir"))
    yield from _texts(_at(setuptools, "packages", "find").get("where"))
    wheel = _at(data, "tool", "hatch", "build", "targets", "wheel")
    for section in (wheel, _at(data, "tool", "hatch", "build")):
        yield from (str(PurePosixPath(path).parent) for path in _texts(section.get("packages")))
        sources = section.get("sources")
        stripped = [path for path, to in sources.items() if to == ""] if isinstance(sources, dict) else sources
        yield from _texts(stripped)
    packages = _at(data, "tool", "poetry").get("packages")
    for package in packages if isinstance(packages, list) else []:
        yield from _texts(package.get("from") if isinstance(package, dict) else None)
    yield from _texts(_at(data, "tool", "pdm", "build").get("package-dir"))
    yield from _texts(_at(data, "tool", "maturin").get("python-source"))


def _setup_cfg(tree: Path) -> configparser.ConfigParser:
    settings = configparser.ConfigParser(interpolation=None)
    try:
        settings.read_string(text_of(tree / "setup.cfg", tree))
    except configparser.Error:
        return configparser.ConfigParser(interpolation=None)
    return settings


def _of_setup_cfg(tree: Path) -> Iterator[str]:
    settings = _setup_cfg(tree)
    # For ConfigParser `package-dir` and `package_dir` are two keys; for setuptools they are the same.
    for key in ("package_dir", "package-dir"):
        lines = settings.get("options", key, fallback="").replace(",", "\n").splitlines()
        pairs = (line.partition("=") for line in lines)
        yield from _parents({name.strip(): place.strip() for name, equals, place in pairs if equals})
    yield from settings.get("options.packages.find", "where", fallback="").replace(",", "\n").split()


def _parents(package_dir: dict[str, Any]) -> Iterator[str]:
    """Yield the folders of ``package-dir``: that of '', and the parent folder of a package that keeps its name."""
    for name, place in package_dir.items():
        if not isinstance(place, str):
            continue
        parts, folders = name.split(".") if name else [], PurePosixPath(place).parts
        if folders[len(folders) - len(parts) :] == tuple(parts):
            yield str(PurePosixPath(*folders[: len(folders) - len(parts)]))


def _at(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a nested table, or an empty one if it does not exist."""
    for key in keys:
        found = data.get(key)
        data = found if isinstance(found, dict) else {}
    return data


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def _toml(tree: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(tree / "pyproject.toml", tree))
    except (ValueError, RecursionError):
        return {}


MODULE = "<module>"
_ARRAYS = frozenset({"numpy", "torch", "pandas", "cupy", "jax", "array"})
_FILLS = frozenset({"append", "add", "setdefault", "update", "extend", "insert"})
_CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor | ast.While
_Scope = _Function | ast.ClassDef | ast.Lambda


class PythonSource:
    """The text of one module. Every place in a text that is not valid Python is ``NOWHERE``."""

    def __init__(self, text: str) -> None:
        try:
            self._tree = ast.parse(text)
            self._functions = list(_functions(self._tree, ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._tree, self._functions = ast.Module([], []), []

    def place(self, line: int, function: str = "") -> SourcePlace:
        """Return the place of a line (from 1); ``function``: name by a profiler, to choose among nested functions.

        A comprehension or lambda belongs to the function around it.
        """
        if not self._tree.body or line < 1:
            return NOWHERE
        name = function.rpartition(".")[2]
        around = [item for item in self._functions if _first(item[1]) <= line <= (item[1].end_lineno or 0)]
        named = [item for item in around if item[1].name == name]
        if name == MODULE or not around:
            return SourcePlace(MODULE, 0, tuple(self._uses(self._tree, line)))
        qualified, node = max(named or around, key=lambda item: _first(item[1]))
        return SourcePlace(qualified, _first(node), tuple(self._uses(node, line)))

    def _uses(self, owner: _Function | ast.Module, line: int) -> Iterator[Use]:
        loops = [
            node for node in _inside(owner) if isinstance(node, _Loop) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        statement = _statement(owner, line)
        if loops:
            yield Use.IN_LOOP
        if statement and _indexes(statement, {name for loop in loops for name in _targets(loop)}):
            yield Use.ELEMENTS
        if self._has_arrays:
            yield Use.ARRAYS
        if loops and statement and _adds_text(statement):
            yield Use.TEXT
        if not isinstance(owner, ast.Module):
            if any(map(_is_unbounded, owner.decorator_list)):
                yield Use.UNBOUNDED
            if statement and _fills(statement, self._containers):
                yield Use.CONTAINER

    @cached_property
    def _has_arrays(self) -> bool:
        names = [
            alias.name if isinstance(node, ast.Import) else node.module or ""
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        ]
        return any(name.partition(".")[0] in _ARRAYS for name in names)

    @cached_property
    def _containers(self) -> set[str]:
        """Names of the module that are assigned a container."""
        found = set()
        for node in self._tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Dict | ast.List | ast.Set) or (
                isinstance(value, ast.Call) and _name(value.func) in _CONTAINERS
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
        return found


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    """Yield every function with its qualified name, without ``<locals>``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def _first(node: _Function) -> int:
    """Return the first line of a function as in the interpreter: that of its first decorator."""
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])


def _inside(owner: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those inside nested functions and classes."""
    for child in ast.iter_child_nodes(owner):
        yield child
        if not isinstance(child, _Scope):
            yield from _inside(child)


def _statement(owner: ast.AST, line: int) -> ast.stmt | None:
    """Return the innermost statement on a line, for example the head of a loop."""
    around = [
        node for node in _inside(owner) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)), default=None)


def _targets(loop: _Loop) -> set[str]:
    """Return the target names of a loop; for a ``while`` loop the names in its condition."""
    head = loop.test if isinstance(loop, ast.While) else loop.target
    return {node.id for node in ast.walk(head) if isinstance(node, ast.Name)}


def _indexes(statement: ast.stmt, names: set[str]) -> bool:
    """Return whether a statement, without its body, has a subscript with one of the names in it."""
    parts = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    subscripts = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Subscript))
    return any(isinstance(node, ast.Name) and node.id in names for sub in subscripts for node in ast.walk(sub.slice))


def _adds_text(statement: ast.stmt) -> bool:
    """Return whether it is ``x += TEXT`` or ``x = x + TEXT``, where TEXT is certainly a string."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add) and _is_text(statement.value)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return False
    value, target = statement.value, statement.targets[0]
    left = value.left
    while isinstance(left, ast.BinOp):
        left = left.left
    same = isinstance(target, ast.Name) and isinstance(left, ast.Name) and target.id == left.id
    return same and isinstance(value.op, ast.Add) and _is_text(value)


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or (isinstance(node.op, ast.Add) and _is_text(node.right))
    if isinstance(node, ast.Call):
        return _name(node.func) in {"str", "repr", "format", "hex", "join"}
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_unbounded(decorator: ast.expr) -> bool:
    """Return whether it is ``functools.cache``, or ``lru_cache`` with ``maxsize=None``."""
    if not isinstance(decorator, ast.Call):
        return _name(decorator) == "cache"
    sizes = [*decorator.args[:1], *(item.value for item in decorator.keywords if item.arg == "maxsize")]
    none = any(isinstance(size, ast.Constant) and size.value is None for size in sizes)
    return _name(decorator.func) == "lru_cache" and none


def _fills(statement: ast.stmt, containers: set[str]) -> bool:
    """Return whether it adds an item to one of the containers: ``X[k] = v``, ``X.append(v)``."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if any(isinstance(item, ast.Subscript) and _name(item.value) in containers for item in targets):
        return True
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _FILLS
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in containers
        for call in calls
    )


def _name(node: ast.expr) -> str:
    """Return the last name of an expression such as ``functools.cache``; '' for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


_CARGO = ("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR")


def environment(slot: Slot, inherited: Mapping[str, str]) -> dict[str, str | None]:
    """Return variables to set for a step in the slot, or to unset (None), on top of ``inherited``.

    - ``PYTHONPATH``: the tree's own folders come first, also before those of an editable install. Inherited entries
      inside the user's tree point into the slot (``python_path``).
    - ``CARGO_TARGET_DIR``: the slot's own, if the user's settings would make both slots build into one folder.
    - git finds the slot's own repository, neither the user's repository through a hook's variables, nor one around the
      cache.
    """
    variables: dict[str, str | None] = dict.fromkeys(name for name in sorted(LOCAL) if name in inherited)
    variables["PYTHONPATH"] = python_path(slot, inherited.get("PYTHONPATH", ""))
    if _shares_a_target_folder(slot.path, inherited):
        variables |= {name: str(slot.build / "cargo") for name in _CARGO if name == _CARGO[0] or name in inherited}
    ceilings = [str(slot.path.parent), inherited.get("GIT_CEILING_DIRECTORIES", "")]
    variables["GIT_CEILING_DIRECTORIES"] = os.pathsep.join(filter(None, ceilings))
    return variables


def python_path(slot: Slot, value: str) -> str:
    """Return PYTHONPATH with the tree first: entries inside it in their order, then its own folders, then all others.

    Entries inside the user's tree are mapped to the slot. Relative entries count as inside, because steps run there.
    """
    entries = [_moved(entry, slot) for entry in value.split(os.pathsep) if entry]
    own = [entry for entry in entries if _is_inside(entry, slot)]
    others = [entry for entry in entries if entry not in own]
    return os.pathsep.join(dict.fromkeys([*own, *map(str, import_folders(slot.path)), *others]))


def _is_inside(entry: str, slot: Slot) -> bool:
    place = Path(entry)
    if _is_of_an_environment(place):
        return False
    return place.is_relative_to(slot.path) if place.is_absolute() else ".." not in place.parts


def _is_of_an_environment(place: Path) -> bool:
    """Return whether a folder has installed packages. A virtual environment in the project is used for every tree."""
    return bool({"site-packages", "dist-packages"} & set(place.parts))


def _moved(entry: str, slot: Slot) -> str:
    """Return an entry of the path; one inside the user's tree is mapped to the slot."""
    place = Path(entry)
    root = slot.repository.root
    if _is_of_an_environment(place):
        return entry
    if place.is_absolute() and place.resolve().is_relative_to(root):
        return str(slot.path / place.resolve().relative_to(root))
    return entry


def _shares_a_target_folder(tree: Path, inherited: Mapping[str, str]) -> bool:
    if any(inherited.get(name) for name in _CARGO):
        return True
    own = Path(inherited.get("CARGO_HOME") or Path.home() / ".cargo")
    return any(_names_a_target(file, tree) for file in _cargo_settings(tree, own))


def _cargo_settings(tree: Path, own: Path) -> Iterator[Path]:
    for folder in (*(parent / ".cargo" for parent in (tree, *tree.parents)), own):
        yield from (folder / "config.toml", folder / "config")


def _names_a_target(file: Path, tree: Path) -> bool:
    """Return whether cargo's settings file names a target folder outside the tree."""
    try:
        build = tomllib.loads(file.read_text()).get("build")
    except (OSError, ValueError):  # cargo itself reports errors in it
        return False
    target = build.get("target-dir") if isinstance(build, dict) else None
    # A relative path starts at the folder that contains .cargo.
    return isinstance(target, str) and not (file.parent.parent / target).resolve().is_relative_to(tree)
