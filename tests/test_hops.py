"""How many functions a sample passes, as docs/architecture.md says it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 22


def test_a_sample_passes_as_many_functions_as_the_page_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hops"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=900
    )
    *functions, last = done.stdout.splitlines()
    page = (ROOT / "docs" / "architecture.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| functions between `perfflow compare`"))
    assert len(functions) == int(row.split("|")[-2]) <= MOST
    assert re.match(rf"{len(functions)} functions in \d+ packages", last)
