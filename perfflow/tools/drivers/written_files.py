"""Run a command and copy the files that it writes to paths of its own choice.

    python written_files.py FOLDER PATTERN [PATTERN ...] -- COMMAND [ARGUMENT ...]

Patterns are those of ``glob``, including ``**``, relative to the working directory. Each matching file that was written
since the start is copied to FOLDER as ``written-N`` with the ending .json, .gz or both. FOLDER also gets a list,
``written.json``: ``{"files": [{"copy": "written-0.json.gz", "path": "traces/a.json.gz"}], "old":
["traces/b.json.gz"]}``. ``old`` are matching files that existed before. The exit status is that of the command,
128 + N if signal N ended it.

A bare interpreter runs this file, so it uses only the standard library.
"""

# ruff: noqa: PTH207

from __future__ import annotations

import glob
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

LISTED = "written.json"
ENDINGS = {".json", ".gz"}
TICK = 0.05
"""Seconds by which the kernel's clock for file times may lag."""
State = tuple[int, int, int]
"""The state of a file: modification time in ns, size in bytes and inode number."""


def main() -> None:
    """Run the command and copy the files that it wrote, also if it failed."""
    end = sys.argv.index("--")
    folder, patterns, command = Path(sys.argv[1]), sys.argv[2:end], sys.argv[end + 1 :]
    before, began = found(patterns), time.time()
    status = run(command)
    after = found(patterns)
    new = [path for path, state in after.items() if before.get(path) != state and state[0] / 1e9 >= began - TICK]
    files = []
    for number, path in enumerate(new):
        copy = f"written-{number}{''.join(end for end in Path(path).suffixes[-2:] if end in ENDINGS)}"
        shutil.copyfile(path, folder / copy)
        files.append({"copy": copy, "path": path})
    listed = {"files": files, "old": [path for path in after if path not in new]}
    (folder / LISTED).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    sys.exit(status)


def found(patterns: list[str]) -> dict[str, State]:
    """Return the matching files in order, each with its state."""
    paths = sorted(
        {path for pattern in patterns for path in glob.glob(pattern, recursive=True) if Path(path).is_file()}
    )
    states = ((path, Path(path).stat()) for path in paths)
    return {path: (state.st_mtime_ns, state.st_size, state.st_ino) for path, state in states}


def run(command: list[str]) -> int:
    """Run the command to its end. This process ignores SIGINT, which the command gets as well."""
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    main()
