"""Profile a command with Nsight Systems, or read an existing report, and keep only the sums of the report.

    python nsys_run.py FOLDER SETTINGS NSYS PROFILE_OPTION ... COMMAND [ARGUMENT ...]

Reports contain the environment of the profiled process, and its output. They are written to a private folder that is
removed at the end and on interruption; ``keep`` copies them to FOLDER. FOLDER gets ``nsys.json``. SETTINGS is JSON:
``keep``, ``timed`` (whether nsys ends the program after some time) and ``report``, a path or glob to read instead of
profiling: a ``.nsys-rep``, a ``.sqlite``, or tables of ``nsys stats`` as .csv or .json.

The exit status is nsys's own, which is the program's; 1 if the report cannot be read, with the reason in ``nsys.json``.
nsys's agent leaves the process group, so all remaining descendants of this process are ended.
"""

# ruff: noqa: PTH207

from __future__ import annotations

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

# Only modules that need no third-party packages, since a bare interpreter runs this driver.
from perfflow.machine.orphans import adopt, end_descendants
from perfflow.model.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.nvidia import nsys_sqlite, nsys_stats
from perfflow.tools.nvidia.nsys_report import NsysReport

TERMINATED = 128 + signal.SIGTERM
EXPORT_SECONDS = 3600


def main() -> None:
    """Profile, export and read the report; write its sums, and remove everything else."""
    folder, settings, nsys, words = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], sys.argv[4:]
    adopt()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    place = Path(tempfile.mkdtemp(prefix="perfflow-nsys-"))
    status = 0
    try:
        if not settings["report"]:
            status = profile(nsys, words, place / "report")
            end_descendants()
            status = 0 if settings["timed"] and status == TERMINATED else status
        failed = f"nsys ended with exit status {status}: its own or the program's, see its output"
        report = NsysReport(error=failed) if status else read(nsys, settings["report"], place)
        if settings["keep"] and not settings["report"] and not status:
            for name in ("report.nsys-rep", "report.sqlite"):
                shutil.copyfile(place / name, folder / name)
    except (ToolOutputError, OSError) as error:
        report, status = NsysReport(error=str(error)), status or 1
    finally:
        end_descendants()
        shutil.rmtree(place, ignore_errors=True)
    (folder / "nsys.json").write_text(report.to_json(), encoding="utf-8")
    sys.exit(status)


def profile(nsys: str, words: list[str], target: Path) -> int:
    """Run the command under nsys to its end. An interruption reaches both. Return the exit status.

    nsys keeps unfinished recordings in TMPDIR, so it gets a folder that is removed; the program keeps its own TMPDIR.
    """
    own, env = os.environ.get("TMPDIR", "/tmp"), dict(os.environ)  # noqa: S108 (what it is where it is not set)
    if "," not in own:  # which separates variables
        words = [f"--env-var=TMPDIR={own}", *words]
        env["TMPDIR"] = str(target.parent)
    child = subprocess.Popen([nsys, "profile", "--output", str(target), *words], env=env)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = child.wait()
    return status if status >= 0 else 128 - status


def read(nsys: str, pattern: str, place: Path) -> NsysReport:
    """Read the new report, or the files that match the pattern. Raises ToolOutputError."""
    paths = sorted(map(Path, glob.glob(pattern, recursive=True))) if pattern else [place / "report.nsys-rep"]
    if not pattern and not paths[0].exists():
        raise ToolOutputError(
            "nsys left no report: what `capture-range` names was never entered, the program ended before `delay`, or "
            "nsys could not import what it recorded; see its output"
        )
    if not paths:
        raise ToolOutputError(f"no file matches report: {tool_files.clean_name(pattern)[:100]}")
    kinds = {path.suffix for path in paths}
    if kinds <= {".csv", ".json"}:
        return nsys_stats.read(paths)
    if len(paths) > 1 or not kinds <= {".nsys-rep", ".qdrep", ".sqlite"}:
        raise ToolOutputError(
            f"report: names {len(paths)} files, {tool_files.clean_name(paths[0].name)[:60]} the first; it takes one "
            ".nsys-rep or .sqlite, or tables of `nsys stats` as .csv or .json"
        )
    return nsys_sqlite.read(paths[0] if ".sqlite" in kinds else export(nsys, paths[0], place / "report.sqlite"))


def export(nsys: str, report: Path, target: Path) -> Path:
    """Convert a report to SQLite. Raises ToolOutputError with nsys's last line of output if that fails."""
    argv = [nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(target), str(report)]
    try:
        # ``last_words`` reads a file of this name.
        with (target.parent / "stderr").open("wb") as log:
            done = subprocess.run(argv, stdout=log, stderr=log, check=False, timeout=EXPORT_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolOutputError(f"{report.name} could not be exported by {nsys}: {error}") from error
    if done.returncode or not tool_files.left(target):
        said = tool_files.last_words(target.parent) or "it said nothing"
        raise ToolOutputError(f"{report.name} could not be exported to SQLite ({done.returncode}): {said}")
    return target


if __name__ == "__main__":
    main()
