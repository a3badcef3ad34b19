"""Print the names in what a command prints, one per line, each once.

    python names_in.py PATTERN PROGRAM ARGUMENT ...

A name is what the group ``name`` of PATTERN matches. The exit status is the program's own.

A bare interpreter runs this file, so it uses only the standard library.
"""

from __future__ import annotations

import re
import subprocess
import sys


def main() -> None:
    """Run the program and print the names."""
    done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, check=False)
    text = done.stdout.decode("utf-8", "replace")
    names = dict.fromkeys(match["name"] for match in re.finditer(sys.argv[1], text, re.MULTILINE) if match["name"])
    sys.stdout.buffer.write("".join(f"{name}\n" for name in names).encode("utf-8", "replace"))
    sys.exit(done.returncode if done.returncode >= 0 else 1)


if __name__ == "__main__":
    main()
