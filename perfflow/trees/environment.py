"""The environment of a step in a slot, which makes the tree's own code run."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfflow.trees.git import LOCAL
from perfflow.trees.python_layout import import_folders
from perfflow.trees.slots import Slot

_CARGO = ("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR")


def environment(slot: Slot, inherited: Mapping[str, str]) -> dict[str, str | None]:
    """Return variables to set for a step in the slot, or to unset (None), on top of ``inherited``.

    - ``PYTHONPATH``: the tree's own folders come first, also before those of an editable install. Inherited entries
      inside the user's tree point into the slot (``python_path``).
    - ``CARGO_TARGET_DIR``: the slot's own, if the user's settings would make both slots build into one folder.
    - git finds the slot's own repository, neither the user's repository through a hook's variables, nor one around the
      cache.
    """
    found: dict[str, str | None] = dict.fromkeys(name for name in sorted(LOCAL) if name in inherited)
    found["PYTHONPATH"] = python_path(slot, inherited.get("PYTHONPATH", ""))
    if _shares_a_target_folder(slot.path, inherited):
        found |= {name: str(slot.build / "cargo") for name in _CARGO if name == _CARGO[0] or name in inherited}
    ceilings = [str(slot.path.parent), inherited.get("GIT_CEILING_DIRECTORIES", "")]
    found["GIT_CEILING_DIRECTORIES"] = os.pathsep.join(filter(None, ceilings))
    return found


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
