"""Which statistic of the samples inside one process should stand for it: an experiment on three real harnesses.

``record`` builds a benchmark for criterion, pytest-benchmark and Google Benchmark whose calls are made slower in known
ways, and runs them beside whatever else this machine does. ``table`` judges the recording by each candidate.

    python -m benchmarks.process_statistic record dev/experiments/process-statistic.jsonl.xz
    python -m benchmarks.process_statistic table dev/experiments/process-statistic.jsonl.xz

What ``table`` prints is dev/experiments/process-statistic.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.process_experiment import harnesses, recording, tables


def main() -> None:
    """Record, or print the tables of a recording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "table"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rounds", type=int, default=48)
    parser.add_argument("--seed", type=int, default=20261122)
    options = parser.parse_args()
    if options.what == "table":
        print("\n".join(tables.page(list(recording.read(options.path)))))
        return
    with tempfile.TemporaryDirectory() as folder:
        recording.record(harnesses.built(Path(folder)), options.rounds, options.seed, options.path)


if __name__ == "__main__":
    main()
