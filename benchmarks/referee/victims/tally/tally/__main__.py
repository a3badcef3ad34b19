"""Print the report of a file: ``python3 -m tally [--all] FILE``."""

import sys
from pathlib import Path

from tally import report

text = Path(sys.argv[-1]).read_text()
print(report(text))
if "--all" in sys.argv:
    print(report(text, by="length"))
