"""Run one link of a build, pass on the driver's output and exit status, and record how to repeat the link.

Run by a bare interpreter: ``python -I -S link_recorder.py RECORDINGS DRIVER ARGUMENT...``. An error while recording
must not fail the build: no link is recorded then, and the code that looks for it reports that.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

# The path of a bare interpreter holds only the standard library.
sys.path.append(os.path.abspath(os.path.join(__file__, *[os.pardir] * 4)))

from perfflow.execute.layouts import driver_arguments as driver_words
from perfflow.execute.layouts.file_digest import digest

_KEPT_VARIABLES = re.compile(
    "PATH|HOME|TMPDIR|LANG|LC_.*|LIBRARY_PATH|LD_LIBRARY_PATH|LD_RUN_PATH|COMPILER_PATH|GCC_EXEC_PREFIX|CPATH"
    "|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|SOURCE_DATE_EPOCH|LDEMULATION|CCC_OVERRIDE_OPTIONS|NIX_(?!CONFIG$).*|REALGCC"
    "|CCACHE_(?!REMOTE_STORAGE$|SECONDARY_STORAGE$).*"
)
"""Variables that drivers, linkers and their wrappers read. No others are stored, because some hold secrets."""
_TEMPORARY = re.compile(r"/rustc[A-Za-z0-9]{6}/")
_OBJECTS = (".o", ".obj", ".a", ".rlib")
_THIN = b"!<thin>\n"
"""Magic of a thin archive, which holds the paths of its members relative to itself."""
_LIBRARY = re.compile(r"\.so(\.[\d.]+)?$")
_PROFILE = re.compile(r"(-C|-Z|--codegen=)?profile(-sample)?-use=")


def main() -> None:
    """Run the command, record it if it linked an executable, and exit with its status or signal."""
    recordings, driver, *words = sys.argv[1:]
    # ^C at the terminal also reaches the driver, which cleans up.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = driver_words.with_sections(words)
    command = [driver, *arguments]
    try:
        everything = driver_words.expanded(arguments, os.getcwd())
        recorded = driver_words.links_executable(everything)
    except OSError:
        recorded = False
    if not recorded:
        os.execv(driver, command)  # noqa: S606 (a shell would split the words again)
    # Python ignores these signals; the driver must not inherit that.
    signals = [signal.SIGPIPE, signal.SIGXFSZ]
    process = os.posix_spawn(driver, command, os.environ, setsigdef=signals)
    _, status = os.waitpid(process, 0)
    if status == 0:
        with suppress(Exception):
            _record(recordings, driver, everything)
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _record(recordings: str, driver: str, arguments: Sequence[str]) -> None:
    """Write the link into its own folder, which replaces the recording of an earlier link of this file."""
    target = os.path.abspath(driver_words.output(arguments))
    name = hashlib.blake2b(os.fsencode(target), digest_size=16).hexdigest()
    place = os.path.join(recordings, "links", name)
    fresh = f"{place}.{os.getpid()}"
    os.makedirs(fresh)
    try:
        content = {
            "driver": os.path.abspath(driver),
            "arguments": list(arguments),
            "folder": os.getcwd(),
            "environment": {name: text for name, text in os.environ.items() if _KEPT_VARIABLES.fullmatch(name)},
            "output": target,
            "digest": digest(target),
            "inputs": _inputs(arguments, fresh, place),
            "profile": _profile(),
        }
        with open(os.path.join(fresh, "link.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)
        _replace(fresh, place)
    except BaseException:
        _removed(fresh)
        raise


def _replace(fresh: str, place: str) -> None:
    old = f"{fresh}.old"
    replaces = os.path.isdir(place)
    if replaces:
        os.rename(place, old)
    os.rename(fresh, place)
    if replaces:
        _removed(old)


def _removed(folder: str) -> None:
    # Imported here because the import takes longer than the rest of this process.
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _named(arguments: Sequence[str]) -> list[str]:
    """Return the existing files that the arguments name, as operands or within options."""
    target = driver_words.output(arguments)
    named = [path for word in arguments for path in driver_words.paths(word)]
    return list(dict.fromkeys(path for path in named if path != target and os.path.isfile(path)))


def _libraries(arguments: Sequence[str]) -> list[str]:
    """Return the libraries that ``-l`` finds in the folders of ``-L``."""
    folders = driver_words.joined(arguments, "-L")
    found = [
        os.path.join(folder, name)
        for library in driver_words.joined(arguments, "-l")
        for folder in folders
        for name in ([library[1:]] if library.startswith(":") else [f"lib{library}.so", f"lib{library}.a"])
    ]
    return list(dict.fromkeys(path for path in found if os.path.isfile(path)))


def _input(path: str, kept: str = "") -> dict[str, object]:
    """Return size and modification time, which show later changes, and the path of the second name, if one was kept."""
    found = os.stat(path)
    return {"kept": kept, "size": found.st_size, "modified": found.st_mtime_ns}


def _inputs(arguments: Sequence[str], fresh: str, place: str) -> dict[str, object]:
    """Return the inputs by their paths as written. Kept files are in ``fresh``, which is later renamed to ``place``."""
    inputs: dict[str, object] = {path: _input(path) for path in _libraries(arguments)}
    for number, path in enumerate(_named(arguments)):
        kept = ""
        if _may_be_renamed(path) and (path.endswith(_OBJECTS) or _is_temporary(path)):
            relative = os.path.join(str(number), os.path.basename(path))
            os.mkdir(os.path.join(fresh, str(number)))
            _keep(path, os.path.join(fresh, relative))
            kept = os.path.join(place, relative)
        inputs[path] = _input(path, kept)
    return inputs


def _may_be_renamed(path: str) -> bool:
    """Return whether the output does not depend on the path, unlike for sources (debug information) and libraries."""
    with open(path, "rb") as file:
        thin = file.read(len(_THIN)) == _THIN
    return not thin and not _LIBRARY.search(path) and not driver_words.is_source(path)


def _is_temporary(path: str) -> bool:
    full = os.path.abspath(path)
    folders = {os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp"}  # noqa: S108 (read, not written)
    return bool(_TEMPORARY.search(full)) or any(full.startswith(folder.rstrip("/") + "/") for folder in folders)


def _keep(path: str, place: str) -> None:
    """Hard-link the file, or copy it if the new name is on another disk."""
    try:
        os.link(path, place)
    except OSError:
        import shutil

        shutil.copy2(path, place)


def _profile() -> str:
    """Return the argument by which the calling rustc uses a profile, since the link's arguments do not show it."""
    with suppress(OSError), open(f"/proc/{os.getppid()}/cmdline", "rb") as file:
        caller = file.read().split(b"\0")
        if os.path.basename(caller[0]).startswith(b"rustc"):
            return next((os.fsdecode(word) for word in caller if _PROFILE.match(os.fsdecode(word))), "")
    return ""


if __name__ == "__main__":
    main()
