"""Print the mean and the highest level of every gauge.

python -m pipeline [--rows N]
"""

from __future__ import annotations

import argparse
import sys

from pipeline.readings import generate
from pipeline.summary import summarize

ROWS = 6000


def main() -> None:
    """Read the arguments, print the summary."""
    parser = argparse.ArgumentParser(prog="pipeline", description="Levels of a river, gauge by gauge.")
    parser.add_argument("--rows", type=int, default=ROWS, help="lines that are read (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.rows < 2:
        parser.error("--rows must be at least 2: a level and a pressure")
    lines = summarize(generate(arguments.rows))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
