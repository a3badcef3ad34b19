"""Turn every recording of memray in a folder into JSON: ``python memray_stats.py FOLDER ROWS``.

``memray.bin`` becomes ``stats.json``, and ``memray.bin.PID`` of a forked child ``stats.PID.json``, each with the ROWS
places that allocate most, by ``memray stats``. A recording that was cut, as of a child that was killed, is an error.

Run by the measured interpreter, whose memray made the recordings: standard library and memray only.
"""

# ruff: noqa: PTH118, PTH208

from __future__ import annotations

import os
import sys


def main() -> None:
    """Write the statistics; exit with memray's own status if it cannot."""
    folder, rows = sys.argv[1:]
    from memray.commands import main as memray

    for name in sorted(os.listdir(folder)):
        base, _, process = name.partition(".bin")
        if base == "memray":
            target = os.path.join(folder, f"stats{process}.json")
            if status := memray(["stats", "--json", "-f", "-n", rows, "-o", target, os.path.join(folder, name)]):
                sys.exit(status)


if __name__ == "__main__":
    main()
