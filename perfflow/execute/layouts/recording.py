"""Prepare the environment of a build whose links are recorded, and make a build link again."""

from __future__ import annotations

import filecmp
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from platformdirs import user_cache_path

_DRIVER = re.compile(r"([\w.]+-)*(cc|gcc|g\+\+|c\+\+|clang|clang\+\+)(-\d+(\.\d+)*)?")
_RECORDER = "perfflow-recorder"
"""Name of the script in the folder of recorders. The script recognizes such folders by this name."""


def recording(env: Mapping[str, str], recordings: Path) -> dict[str, str]:
    """Return the environment for a build step that records the links of executables into ``recordings``.

    A folder of wrappers for the compiler drivers comes first on PATH. It stays in the user's cache, because CMake and
    similar tools store the path of the compiler they found. Raises OSError if a folder cannot be created.
    """
    recordings = recordings.absolute()
    recordings.mkdir(parents=True, exist_ok=True)
    search = env.get("PATH", os.defpath)
    return {
        **env,
        "PATH": os.pathsep.join([str(_recorders(search)), search]),
        "PERFFLOW_LINK_RECORDINGS": str(recordings),
        "PERFFLOW_LINK_PYTHON": sys.executable,
        "PERFFLOW_LINK_RECORDER": str(Path(__file__).with_name("link_recorder.py")),
    }


def forget(executable: Path) -> None:
    """Remove a built executable and its second name in cargo's ``deps``, so that the next build links it again.

    cargo then compiles and links only the final crate; make and ninja only link.
    """
    for path in [*_twins(executable), executable]:
        path.unlink(missing_ok=True)


def _twins(executable: Path) -> list[Path]:
    """Return the files in ``deps`` beside the executable that are the same file or have the same content."""
    name = executable.name.replace("-", "_")
    if not executable.is_file():
        return []
    return [path for path in executable.parent.glob("deps/*") if _is_twin(path, name, executable)]


def _is_twin(path: Path, name: str, executable: Path) -> bool:
    with suppress(OSError):
        if path.samefile(executable):
            return True
        return path.name.startswith(f"{name}-") and not path.suffix and filecmp.cmp(path, executable, shallow=False)
    return False


def _recorders(search: str) -> Path:
    """Return the folder of recorders, with a link for each compiler driver on the search path."""
    folder = user_cache_path("perfflow").absolute() / "compilers"
    folder.mkdir(parents=True, exist_ok=True)
    _install(Path(__file__).with_name("recorder.sh").read_bytes(), folder / _RECORDER)
    for name in _drivers(search):
        with suppress(FileExistsError):
            (folder / name).symlink_to(_RECORDER)
    return folder


def _install(script: bytes, place: Path) -> None:
    """Write the script and rename it into place, because another build may be starting it."""
    with suppress(FileNotFoundError):
        if place.read_bytes() == script and os.access(place, os.X_OK):
            return
    fresh = place.with_name(f"{_RECORDER}.{token_hex(4)}")
    fresh.write_bytes(script)
    fresh.chmod(0o755)
    fresh.replace(place)


def _drivers(search: str) -> set[str]:
    found: set[str] = set()
    for folder in search.split(os.pathsep):
        with suppress(OSError):
            found.update(path.name for path in Path(folder).iterdir() if _DRIVER.fullmatch(path.name))
    return found
