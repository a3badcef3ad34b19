"""Convert a recording of perf to text, with inlined callers and source lines.

    python perf_text.py LIMIT perf script ARGUMENT... > perf.script

perf runs addr2line for every frame, which takes minutes for large programs. So perf writes no source lines, and this
driver runs addr2line once for each file, for the places with most samples. Without addr2line, perf looks for them
itself: after LIMIT seconds, or if a signal ends perf, the text is written again without inlined callers, and a line
``# without inlined callers: WHY`` records this. With LIMIT 0 there are no inlined callers. ``# end`` is the last line.
The exit status is that of perf.

A bare interpreter runs this file, so it uses only the standard library.
"""

# ruff: noqa: D103

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

sys.path.insert(0, str(Path(__file__).parents[4]))

from perfflow.tools.linux.drivers import hot_code

CALLERS = "inlined callers"
SOURCES = ",srcline"
MOST = 5000
"""Largest number of places for addr2line."""
_FRAME = re.compile(r"\t\s*(?P<offset>[0-9a-f]{1,16}) .* \((?P<file>[^()]+)\)\Z")
# Without call stacks, the only frame is on the sample's line, and perf prints its address in the process.
_ALONE = re.compile(
    r"(?P<head>.*\s(?P<pid>-?\d+)/-?\d+\s+\d+\.\d+:.*: )\s*(?P<frame>(?P<ip>[0-9a-f]{1,16}) .* \((?P<file>[^()]+)\))\Z"
)
_RECORD = re.compile(rf".*?\s-?\d+/-?\d+\s+\d+\.\d+: (?P<record>{hot_code.RECORD}.*)")


def main() -> None:
    sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    limit, argv = float(sys.argv[1]), sys.argv[2:]
    if shutil.which("addr2line") or shutil.which("llvm-addr2line"):
        status = with_own_lines([word.replace(SOURCES, "") for word in argv], inlined=limit > 0)
        note = "" if limit else f"# without {CALLERS}: more than 0 s\n"
    else:
        status, note = with_lines_of_perf(argv, limit)
    os.write(1, f"{note}# end\n".encode())
    sys.exit(status)


def with_lines_of_perf(argv: list[str], limit: float) -> tuple[int, str]:
    """Print perf's text with its source lines. Return the exit status, and a note if there are no inlined callers."""
    began = os.lseek(1, 0, os.SEEK_CUR)
    status, why = run([*argv, "--inline"], limit)
    if not why:
        return status, ""
    os.ftruncate(1, began)
    os.lseek(1, began, os.SEEK_SET)
    return subprocess.call([*argv, "--no-inline"]), f"# without {CALLERS}: {why}\n"


def run(argv: list[str], limit: float) -> tuple[int, str]:
    """Return the exit status, and the reason if the output is not usable."""
    # A session of its own, to kill addr2line as well, which outlives a killed perf.
    child = subprocess.Popen(argv, start_new_session=True)

    def stop(number: int, _: object) -> None:
        kill(child)
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        status = child.wait(limit)
    except subprocess.TimeoutExpired:
        return 0, f"more than {limit:g} s"
    finally:
        kill(child)
    return status, f"perf was ended by signal {-status} while it looked for them" if status < 0 else ""


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a process and its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def with_own_lines(argv: list[str], *, inlined: bool) -> int:
    """Print perf's text without its source lines, and add lines for the frames of places with most samples.

    inlined: also add the inlined frames at these places.
    """
    with tempfile.TemporaryFile() as spool:
        status = subprocess.call([*argv, "--no-inline", "--show-mmap-events"], stdout=spool)
        files = hot_code.Samples()
        found = Counter(place for _, place in frames(spool, files) if place)
        wanted: dict[str, list[int]] = {}
        for (file, address), _ in found.most_common(MOST):
            wanted.setdefault(file, []).append(address)
        sources = {file: hot_code.sources(file, sorted(addresses)) for file, addresses in wanted.items()}
        for line, place in frames(spool, files):
            known = sources.get(place[0], {}).get(f"{place[1]:x}", []) if place else []
            known = known if inlined else known[-1:]
            # Inlined frames come first, innermost first.
            ip = line.split(maxsplit=1)[0] if known else ""
            texts = [text for name, at in known[:-1] for text in (f"\t{ip} {name}", f"  {at} (inlined)")]
            texts += [line, *(f"  {at}" for _, at in known[-1:])]
            sys.stdout.writelines(f"{text}\n" for text in texts)
    sys.stdout.flush()
    return status


def frames(spool: BinaryIO, files: hot_code.Samples) -> Iterator[tuple[str, tuple[str, int] | None]]:
    """Yield every line and, for a frame with an address, the file and the address in it; a frame has its own line."""
    spool.seek(0)
    for raw in spool:
        line = raw.decode("utf-8", "surrogateescape").rstrip("\n")
        if frame := _FRAME.match(line):
            yield line, files.located(frame["file"], int(frame["offset"], 16))
        elif other := _RECORD.match(line):
            files.map(other["record"])
        elif alone := _ALONE.match(line):
            yield alone["head"], None
            yield f"\t{alone['frame']}", files.located_in(alone["pid"], int(alone["ip"], 16), alone["file"])
        else:
            yield line, None


if __name__ == "__main__":
    main()
