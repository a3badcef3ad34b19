"""The owner of a function: the crate of its file, or its Python package; '' if it has neither."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path, PurePosixPath

_CRATE = re.compile(r"<?([a-z_][a-z0-9_]*)::")


def owner(root: Path, function: str, file: str) -> str:
    """Return the crate or package of a function; ``file`` is relative to the ``root`` of its tree."""
    path = PurePosixPath(file)
    if path.suffix == ".rs" or (not file and "::" in function):
        return _crate(root, path) or _named(function)
    if path.suffix == ".py":
        return _package(root, path)
    return ""


def _named(function: str) -> str:
    found = _CRATE.match(function)
    return found[1] if found else ""


@cache
def _crate(root: Path, path: PurePosixPath) -> str:
    """Return the package name in the nearest Cargo.toml above a file of the tree that declares one."""
    if path.is_absolute() or not path.name:
        return ""
    for folder in path.parents:
        try:
            content = tomllib.loads((root / folder / "Cargo.toml").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        package = content.get("package")
        if isinstance(package, dict) and isinstance(package.get("name"), str):
            return str(package["name"])
    return ""


@cache
def _package(root: Path, path: PurePosixPath) -> str:
    """Return the outermost package above a module, else the module itself; outside the tree always the module."""
    if path.is_absolute():
        return path.stem
    packages = [folder for folder in path.parents if folder.name and (root / folder / "__init__.py").is_file()]
    return packages[-1].name if packages else path.stem
