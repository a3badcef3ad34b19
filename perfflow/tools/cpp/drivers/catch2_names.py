"""Print the names of the benchmarks that a Catch2 program ran, one per line.

    python catch2_names.py FILE PROGRAM ARGUMENT ...

FILE is the XML report that the program writes. The exit status is 1 if the program writes no report. That of Catch2
itself is ignored: it is the number of failed assertions.

A bare interpreter runs this file, so it uses only the standard library.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from xml.etree import ElementTree as ET

BETWEEN = " > "
"""Joins the names of a test case, its sections and the benchmark."""


def benchmarks(element: ET.Element, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ET.Element]]:
    """Yield the name and the element of each benchmark in a report, or in a part of it below ``path``."""
    for child in element:
        name = child.get("name", "").strip()
        if child.tag == "BenchmarkResults":
            yield BETWEEN.join((*path, name)), child
        elif child.tag in ("TestCase", "Section"):
            yield from benchmarks(child, (*path, name))
        elif child.tag == "Group":
            yield from benchmarks(child, path)


def main() -> None:
    """Run the program and print the names."""
    subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, check=False)
    try:
        report = ET.parse(sys.argv[1]).getroot()  # noqa: S314 (of the user's own program)
    except (OSError, ET.ParseError):
        sys.exit(1)
    names = dict.fromkeys(name for name, _ in benchmarks(report))
    sys.stdout.buffer.write("".join(f"{name}\n" for name in names).encode())


if __name__ == "__main__":
    main()
