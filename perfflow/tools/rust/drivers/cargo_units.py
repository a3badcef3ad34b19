"""Copy what cargo built of crates from elsewhere into another target folder, where it then need not build them again.

    python cargo_units.py TARGET OTHER ROOT

A unit, one crate built in one way, is named by cargo's hash of its version, its source, features, profile, flags,
compiler and dependencies, and cargo looks at all of these again before it uses one. What was built from files of the
tree ROOT stays where it is: their times and paths mean another state of the code in another tree, and cargo would take
the one for the other. A unit that OTHER has already is left alone.

Run by a bare interpreter, so: standard library only.
"""

# ruff: noqa: D103

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

UNITS, BUILT, SCRIPTS = ".fingerprint", "deps", "build"
_HASH = re.compile(r"-(?P<hash>[0-9a-f]{16})(?=[.]|$)")


def main() -> None:
    share(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))


def share(target: Path, other: Path, root: Path) -> int:
    """Return how many units were copied. What cannot be read or written is left out: cargo builds it again."""
    copied = 0
    for units in sorted(folder for depth in ("*", "*/*") for folder in target.glob(f"{depth}/{UNITS}")):
        place = units.parent
        for unit in foreign(place, target, root):
            copied += copy(unit, place, other / place.relative_to(target))
    return copied


def foreign(place: Path, target: Path, root: Path) -> list[str]:
    """The names of the units that no file of the tree went into; of a package of which one did, none."""
    names = sorted(path.name for path in (place / UNITS).iterdir())
    told: dict[str, list[Path]] = {}
    for path in (*place.glob(f"{BUILT}/*.d"), *place.glob(f"{SCRIPTS}/*/*.d")):
        if found := _HASH.search(path.name):
            told.setdefault(found["hash"], []).append(path)
    local = {
        package(name) for name in names if any(is_of_tree(path, target, root) for path in told.get(unit(name), ()))
    }
    return [name for name in names if package(name) not in local]


def package(name: str) -> str:
    return name.rpartition("-")[0]


def unit(name: str) -> str:
    return name.rpartition("-")[2]


def is_of_tree(path: Path, target: Path, root: Path) -> bool:
    """Tell whether a unit was built from a file of the tree; what a build script made is in the target folder."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return True
    trees, targets = ({folder, folder.resolve()} for folder in (root, target))
    return any(
        not source.is_absolute()
        or (any(map(source.is_relative_to, trees)) and not any(map(source.is_relative_to, targets)))
        for source in sources(lines)
    )


def sources(lines: list[str]) -> Iterator[Path]:
    # What rustc writes for make ends with a rule for each source; before a space in its name is a backslash.
    for line in lines:
        if line.endswith(":") and not line.startswith("#"):
            yield Path(line[:-1].replace("\\ ", " "))


def copy(name: str, place: Path, other: Path) -> bool:
    """Copy one unit with its times. Its fingerprint comes last, and stands for all of it."""
    if (other / UNITS / name).exists():
        return False
    try:
        (other / BUILT).mkdir(parents=True, exist_ok=True)
        for path in place.glob(f"{BUILT}/*-{unit(name)}*"):
            shutil.copy2(path, other / BUILT / path.name)
        if (place / SCRIPTS / name).is_dir():
            shutil.copytree(place / SCRIPTS / name, other / SCRIPTS / name, dirs_exist_ok=True)
        shutil.copytree(place / UNITS / name, other / UNITS / name)
    except OSError:
        shutil.rmtree(other / UNITS / name, ignore_errors=True)
        return False
    return True


if __name__ == "__main__":
    main()
