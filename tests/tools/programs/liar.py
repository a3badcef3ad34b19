"""A program that exits 0 whatever happened: it runs the real one, and then does to the outputs what LIE says.

LIE_REAL is the real program, LIE_ROOT the folder below which outputs are, LIE_SAVED one to keep honest outputs in.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

OTHER = b'{"results": [{"file": "of another tool"}]}\n'
ROOT, SAVED = Path(os.environ["LIE_ROOT"]), Path(os.environ["LIE_SAVED"])


def new_files(since: float) -> list[Path]:
    """Return what was written since then, stderr and what perfflow itself writes aside."""
    found = [path for path in ROOT.glob("steps/**/*") if path.is_file() and path.stat().st_mtime >= since - 0.1]
    return [path for path in found if path.name not in {"stderr", "interpreter"}]


def folders() -> list[Path]:
    """Return the folders below ROOT that the arguments name."""
    words = re.findall(re.escape(str(ROOT)) + r"[^\s,='\"]*", " ".join(sys.argv))
    return [path if path.is_dir() else path.parent for path in map(Path, words)]


def spoil(lie: str, since: float) -> None:
    """Do to every new file what the lie is."""
    for path in new_files(since):
        content = path.read_bytes()
        changed = {"empty": b"", "cut": content[: len(content) * 2 // 3].rstrip(), "other": OTHER}.get(lie, content)
        if changed != content:
            os.truncate(path, 0)
            path.write_bytes(changed)
        if lie == "gone":
            path.unlink()
        if lie == "honest":
            SAVED.mkdir(exist_ok=True)
            shutil.copy2(path, SAVED)


def go_stale() -> None:
    """Put an old file where a new one should be."""
    for folder in folders()[:1]:
        for saved in SAVED.iterdir():
            shutil.copy(saved, folder)
            os.utime(folder / saved.name, (1_000_000_000, 1_000_000_000))


def main() -> None:
    """Lie as LIE says; what only asks for the version, or lists a suite, is told the truth."""
    lie = os.environ["LIE"]
    real = [os.environ["LIE_REAL"], *sys.argv[1:]]
    if not folders() or "--benchmark_list_tests=true" in sys.argv or any("pytest_list" in word for word in sys.argv):
        os.execv(real[0], real)  # noqa: S606 (the very point: no shell)
    if lie == "later":
        counter = SAVED.with_suffix(".runs")
        before = counter.read_text() if counter.exists() else ""
        counter.write_text(before + "x")
        lie = "idle" if before else "honest"
    if lie == "stale":
        go_stale()
    elif lie != "idle":
        since = time.time()
        subprocess.run(real, check=False)
        spoil(lie, since)


if __name__ == "__main__":
    main()
