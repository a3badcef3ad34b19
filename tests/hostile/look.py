"""Runs commands of perfflow one after another in one process, as a shell would, and says what each took.

    python look.py REPORT COMMANDS MEMORY

COMMANDS is a list of lists of words in JSON, REPORT a file that gets a line for each: its status, and seconds of
processor time. MEMORY is how many bytes of address space they get. The current folder is no place to import from.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from pathlib import Path

import perfflow.cli.main as command_line

commands, memory = json.loads(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
with Path(sys.argv[1]).open("w", encoding="utf-8") as report:
    for words in commands:
        began = time.process_time()
        try:
            command_line.main(words)
        except SystemExit as ended:
            status = ended.code
        gc.unfreeze()
        sys.stdout.flush()
        print(json.dumps([status, time.process_time() - began]), file=report, flush=True)
