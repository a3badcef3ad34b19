"""Convert a recording of heaptrack to text: every place that allocates, with its bytes at the peak and at the end.

    python heaptrack_text.py FOLDER HEAPTRACK_PRINT

FOLDER has heaptrack.zst or heaptrack.gz, depending on the build of heaptrack. The driver adds heaptrack.txt,
peak.folded and leaked.folded. Names of Rust's v0 scheme, which heaptrack leaves mangled, are demangled if c++filt is
installed. The exit status is that of heaptrack_print, or 1 with a reason on stderr if there is no recording.

A bare interpreter runs this file, so it uses only the standard library.
"""

# ruff: noqa: D103

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ALL = "1000000000"
"""A limit for the number of places that no program reaches."""


def main() -> None:
    folder, program = Path(sys.argv[1]), sys.argv[2]
    found = [path for path in sorted(folder.glob("heaptrack.*")) if path.suffix in {".zst", ".gz"}]
    if not found:
        sys.exit("heaptrack left no recording")
    everything = ["-p", "0", "-a", "1", "-T", "1", "-n", ALL, "-m", "0"]
    for cost, sections in (("peak", everything), ("leaked", ["-p", "0", "-a", "0", "-T", "0"])):
        folded = ["-F", str(folder / f"{cost}.folded"), "--flamegraph-cost-type", cost]
        done = subprocess.run([program, "-f", str(found[0]), *sections, *folded], stdout=subprocess.PIPE, check=False)
        if done.returncode:
            sys.exit(done.returncode)
        if sections is everything:
            (folder / "heaptrack.txt").write_bytes(demangled(done.stdout))


def demangled(text: bytes) -> bytes:
    if b"_R" not in text or not (program := shutil.which("c++filt")):
        return text
    done = subprocess.run([program], input=text, stdout=subprocess.PIPE, check=False)
    return done.stdout if done.returncode == 0 else text


if __name__ == "__main__":
    main()
