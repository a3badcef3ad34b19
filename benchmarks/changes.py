"""How often change points of a history are right: simulated series, and one that is published.

Series without a change and with known ones, under eight kinds of noise, are given to perfflow and, where ``--otava``
names a Python that has the package apache-otava, to Otava.

    python -m benchmarks.changes --otava OTAVA/bin/python --out docs/experiments/changes.jsonl
    python -m benchmarks.changes --stored docs/experiments/changes.jsonl

Both print docs/experiments/changes.md; the second from stored counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.change_experiment import tables, trial


def measured(count: int, otava: str | None) -> Iterator[dict[str, Any]]:
    """Yield what is stored: how it ran, the counts of each cell, and what is said of the published series."""
    yield {"series": count, "otava": trial.version_of_otava(otava) if otava else None}
    for cell in trial.cells(count, otava):
        yield cell.as_json()
    yield {"published": trial.published(otava)}


def main() -> None:
    """Measure or read, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=500, help="series of each shape and noise")
    parser.add_argument("--otava", metavar="PYTHON", help="a Python that has apache-otava")
    parser.add_argument("--out", type=Path, help="where the counts are written")
    parser.add_argument("--stored", type=Path, help="counts to show instead of measuring")
    options = parser.parse_args()
    if options.stored:
        entries = [json.loads(line) for line in options.stored.read_text().splitlines()]
    else:
        entries = []
        for entry in measured(options.series, options.otava):
            entries.append(entry)
            print(f"{len(entries)} stored", file=sys.stderr)
    if options.out:
        options.out.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    print("\n".join(tables.page(entries)))


if __name__ == "__main__":
    main()
