"""How often change points of a history are right: simulated series, and two that are published.

Series without a change and with known ones, under ten kinds of noise, are given to perfflow and, where ``--otava``
names a Python that has the package apache-otava, to Otava.

    python -m benchmarks.changes --otava OTAVA/bin/python --out dev/experiments/changes.jsonl
    python -m benchmarks.changes --stored dev/experiments/changes.jsonl > dev/experiments/changes.md

Each cell is stored as soon as it is counted. What is stored already is not counted again, unless the code has changed
since.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.change_experiment import tables, trial, watching
from benchmarks.change_experiment.series import CHANGING, NOISES, SHAPES

Entry = dict[str, Any]
Subject = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One entry to count: what it is of, by which version and with how many series, and how it is counted."""

    subject: Subject
    version: str
    series: int
    count: Callable[[], Entry]

    def is_done_by(self, entry: Entry | None) -> bool:
        """Whether a stored entry is what this would count."""
        return entry is not None and (entry["version"], entry["series"]) == (self.version, self.series)


def jobs(count: int, otava: trial.Otava | None, otava_count: int) -> Iterator[Job]:
    """Yield what is to be counted, perfflow's first."""
    version = trial.own_version()
    for key in trial.every_key():
        yield Job((trial.PERFFLOW, *key), version, count, partial(trial.count_perfflow, key, count))
    for noise in (*NOISES, *CHANGING):
        yield Job((trial.PERFFLOW, "watched", noise), version, count, partial(watching.watch, noise, version, count))
    for name in trial.PUBLISHED:
        yield Job((trial.PERFFLOW, "published", name), version, 1, partial(trial.published, name))
    if otava:
        for key in trial.every_key():
            counted = partial(trial.count_otava, otava, key, otava_count)
            yield Job((trial.OTAVA, *key), otava.version, otava_count, counted)
        for name in trial.PUBLISHED:
            yield Job((trial.OTAVA, "published", name), otava.version, 1, partial(trial.published_otava, name, otava))


def subject_of(entry: Entry) -> Subject:
    """Return what an entry is of, as ``jobs`` says it."""
    return (entry["program"], entry["shape"], entry["noise"])


def stored(path: Path) -> Iterator[Entry]:
    """Yield the entries of a file; a last line that was cut off is none."""
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            yield json.loads(line)
        except ValueError:
            return


def measure(options: argparse.Namespace) -> list[Entry]:
    """Count what is not stored yet, and store each entry as it comes."""
    with ExitStack() as stack:
        otava = stack.enter_context(trial.Otava(options.otava)) if options.otava else None
        entries = {subject_of(entry): entry for entry in (stored(options.out) if options.out else ())}
        todo = [
            job
            for job in jobs(options.series, otava, options.otava_series or options.series)
            if job.subject[1] in options.only and not job.is_done_by(entries.get(job.subject))
        ]
        for number, job in enumerate(todo, 1):
            entries[job.subject] = job.count()
            if options.out:
                _store(options.out, entries.values())
            print(f"{number} of {len(todo)}: {' '.join(job.subject)}", file=sys.stderr)
    return list(entries.values())


def _store(path: Path, entries: Iterable[Entry]) -> None:
    """Replace the file at once, so that a run that is ended keeps all entries."""
    part = path.with_name(path.name + ".part")
    part.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    part.replace(path)


def main() -> None:
    """Measure or read, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=500, help="series of each shape and noise")
    parser.add_argument("--otava", metavar="PYTHON", help="a Python that has apache-otava")
    parser.add_argument("--otava-series", type=int, help="series that Otava is given (default: as many)")
    parser.add_argument("--out", type=Path, help="where the counts are stored as they come")
    parser.add_argument("--stored", type=Path, help="counts to show instead of measuring")
    shapes = (*SHAPES, "watched", "published")
    parser.add_argument("--only", nargs="+", choices=shapes, default=shapes, help="count these alone (default: all)")
    options = parser.parse_args()
    entries = list(stored(options.stored)) if options.stored else measure(options)
    print("\n".join(tables.page(entries)))


if __name__ == "__main__":
    main()
