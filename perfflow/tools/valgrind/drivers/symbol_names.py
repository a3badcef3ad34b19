"""Write the names of all functions in the programs with dhat files in FOLDER to FOLDER/symbols, one per line.

    python symbol_names.py FOLDER

The names are from ``nm``, and from mangled strings in the debug information, since functions that are always inlined
have no symbol. A line ``? PROGRAM`` stands for a program without known names: nm is missing, or the program is stripped
or a script. The exit status is always 0, since missing names are not a failure of the measured program.

A bare interpreter runs this file, so it uses only the standard library.
"""

# ruff: noqa: D103

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FUNCTION = re.compile(r"^[0-9a-fA-F]* *[TtWwi] (?P<name>.+)$", re.MULTILINE)
MANGLED = re.compile(rb"(?<![\w$.])(?:_ZN?|_R)[\w$.]{3,2000}")


def main() -> None:
    folder = Path(sys.argv[1])
    files = (path for pattern in ("dhat.*.out*", "written-*.json") for path in sorted(folder.glob(pattern)))
    lines: set[str] = set()
    for program in {found for path in files if (found := program_of(path))}:
        lines |= set(names_in(program)) or {f"? {program}"}
    (folder / "symbols").write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


def program_of(path: Path) -> str:
    try:
        words = json.loads(path.read_text(encoding="utf-8", errors="replace"))["cmd"].split(" ")
        # valgrind does not quote words, so take the longest start of the line that is a file.
        starts = (" ".join(words[:count]) for count in range(len(words), 0, -1))
        return next((start for start in starts if Path(start).is_file()), shutil.which(words[0]) or words[0])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


def names_in(program: str) -> Iterator[str]:
    # Without --no-recurse-limit: nobody writes a name that needs it.
    for options in ("-C", "-CD"):
        symbols = output(["nm", options, program]).decode("utf-8", "replace")
        yield from (match["name"] for match in FUNCTION.finditer(symbols))
    mangled = sorted(set(MANGLED.findall(output(["readelf", "-p", ".debug_str", program]))))
    if mangled:
        yield from output(["c++filt"], b"\n".join(mangled)).decode("utf-8", "replace").split("\n")


def output(argv: list[str], given: bytes = b"") -> bytes:
    try:
        return subprocess.run(argv, input=given, capture_output=True, check=False, timeout=120).stdout
    except (OSError, subprocess.SubprocessError):
        return b""


if __name__ == "__main__":
    main()
