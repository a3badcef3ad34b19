"""Copy cargo's built units of external crates to another target folder, so that they need not be built again.

    python cargo_units.py TARGET OTHER ROOT

A unit is one crate built in one way. Its name has cargo's hash of its version, source, features, profile, flags,
compiler and dependencies, which cargo checks again before it uses the unit. Units built from files of the tree ROOT are
not copied: in another tree the same times and paths may belong to another state of the code, and cargo would confuse
them. Units that OTHER already has are skipped.

A bare interpreter runs this file, so it uses only the standard library.
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
    """Copy units and return their number. Units that cannot be copied are skipped; cargo builds them again."""
    copied = 0
    for units in sorted(folder for depth in ("*", "*/*") for folder in target.glob(f"{depth}/{UNITS}")):
        place = units.parent
        for unit in foreign(place, target, root):
            copied += copy(unit, place, other / place.relative_to(target))
    return copied


def foreign(place: Path, target: Path, root: Path) -> list[str]:
    """Return the names of all units of packages without any file of the tree."""
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
    """Whether a unit was built from a file of the tree, except files that build scripts wrote to the target folder."""
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
    # rustc's dep-info ends with a make rule for each source; spaces in names are escaped by a backslash.
    for line in lines:
        if line.endswith(":") and not line.startswith("#"):
            yield Path(line[:-1].replace("\\ ", " "))


def copy(name: str, place: Path, other: Path) -> bool:
    """Copy one unit with its times. The fingerprint is copied last, since it marks the unit as complete."""
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
