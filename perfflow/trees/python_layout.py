"""Find the folders of a project with its Python packages, from its own settings.

``src`` with packages in it, and the folders in pyproject.toml or setup.cfg: setuptools' ``package-dir`` and
``packages.find.where``, hatchling's ``packages`` and ``sources``, Poetry's ``from``, PDM's ``package-dir``, maturin's
``python-source``. https://setuptools.pypa.io/en/latest/userguide/package_discovery.html,
https://hatch.pypa.io/latest/config/build/, https://python-poetry.org/docs/pyproject/#packages,
https://www.maturin.rs/project_layout
"""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from perfflow.trees.small_files import text_of


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
