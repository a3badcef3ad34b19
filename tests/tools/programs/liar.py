"""A program that exits 0 whatever happened: it runs the real one, and then does to the outputs what LIE says.

LIE_REAL is the real program, LIE_ROOT the folder below which outputs are, LIE_SAVED one to keep honest outputs in, by
their paths below LIE_ROOT.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

OTHER = b'{"results": [{"file": "of another tool"}]}\n'
ROOT, SAVED = Path(os.environ["LIE_ROOT"]), Path(os.environ["LIE_SAVED"])
REAL = Path(os.environ["LIE_REAL"])

LISTING = {"--list", "--benchmark_list_tests=true"}
CHANGES: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda content: content[: len(content) * 2 // 3].rstrip(),
    "other": lambda _: OTHER,
    # Of a suite, the name of one that is not on the list; of cargo, an executable that was removed.
    "another": lambda content: content.replace(b"beauty", b"virtue"),
    "removed": lambda content: content.replace(b'"executable":"/', b'"executable":"/no/such/'),
    "unbuilt": lambda content: b"".join(
        line for line in content.splitlines(keepends=True) if b'"executable":"' not in line
    ),
    "unfinished": lambda content: b"".join(
        line for line in content.splitlines(keepends=True) if b"finished" not in line
    ),
}
LISTS: Mapping[str, Callable[[str], str]] = {
    "lists more": lambda text: f"{text}virtue: benchmark\n",
    "lists less": lambda text: text.replace("beauty: benchmark\n", ""),
    "lists nothing": lambda _: "",
    "removed": str,
}


def new_files(since: float) -> list[Path]:
    """Return what was written since then, stderr and what perfflow itself writes aside."""
    place = Path(os.environ.get("CRITERION_HOME") or ROOT / "steps")
    found = [path for path in place.rglob("*") if path.is_file() and path.stat().st_mtime >= since - 0.1]
    return [path for path in found if path.name not in {"stderr", "sampler.stderr", "interpreter"}]


def asked_for_outputs() -> bool:
    """Tell whether it is asked to write something: a path below ROOT is named, cargo is to build, a sampler samples."""
    told = [*sys.argv[1:], os.environ.get("CRITERION_HOME", ""), os.environ.get("PERFFLOW_BENCH", "")]
    # What py-spy sees of a process at one moment goes to its standard output.
    builds = sys.argv[1:2] == ["dump"] or (REAL.name == "cargo" and sys.argv[1] in {"build", "bench"})
    samples = (REAL.name == "iostat" and "JSON" in sys.argv) or REAL.name in {"kernels_cpu", "nanobench_odd"}
    return builds or samples or any(str(ROOT) in word for word in told)


def spoil(lie: str, since: float) -> None:
    """Do to every new file what the lie is."""
    for path in new_files(since):
        content = path.read_bytes()
        changed = CHANGES.get(lie, bytes)(content)
        if changed != content:
            os.truncate(path, 0)
            path.write_bytes(changed)
        if lie == "gone" or (lie == "half" and "beauty" in path.parts):
            path.unlink()
        if lie == "honest":
            kept = SAVED / path.relative_to(ROOT)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, kept)


def go_stale() -> None:
    """Put old files where new ones should be."""
    for saved in [path for path in SAVED.rglob("*") if path.is_file()]:
        target = ROOT / saved.relative_to(SAVED)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(saved, target)
        os.utime(target, (1_000_000_000, 1_000_000_000))


def list_suite(lie: str, real: list[str]) -> None:
    """Print the list of a suite, or what the lie makes of it."""
    if lie not in LISTS:
        os.execv(real[0], real)  # noqa: S606 (the very point: no shell)
    listed = subprocess.run(real, check=True, capture_output=True, text=True).stdout
    sys.stdout.write(LISTS[lie](listed))
    if lie == "removed":
        REAL.unlink()


def main() -> None:
    """Lie as LIE says; what only asks for the version, or lists a suite, is told the truth."""
    lie = os.environ["LIE"]
    real = [str(REAL), *sys.argv[1:]]
    of_node = '"list": true' in os.environ.get("PERFFLOW_BENCH", "")
    if of_node or LISTING & set(sys.argv) or any("pytest_list" in word or "node_list" in word for word in sys.argv):
        list_suite(lie, real)
        return
    if not asked_for_outputs():
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
        # A sampler is interrupted with all its group, and what it lies about is written then.
        signal.signal(signal.SIGINT, lambda *_: None)
        home = {"CRITERION_HOME": str(SAVED)} if lie == "elsewhere" else {}
        with subprocess.Popen(real, env={**os.environ, **home}) as child:
            # What ends a recording ends that of the real one.
            signal.signal(signal.SIGINT, lambda number, _: child.send_signal(number))
            child.wait()
        spoil(lie, since)
        if lie == "vanishes":
            REAL.unlink()


if __name__ == "__main__":
    main()
