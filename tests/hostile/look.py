"""Runs commands of perfflow one after another in one process, as a shell would, and says what each took.

    python look.py REPORT < COMMANDS

COMMANDS is a list of lists of words in JSON, REPORT a file that gets a line for each: its status, and seconds of
processor time. The current folder is no place to import from.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import perfflow.cli.main as command_line

commands = json.load(sys.stdin)
with Path(sys.argv[1]).open("w", encoding="utf-8") as report:
    for words in commands:
        began = time.process_time()
        status = command_line._status(words)
        sys.stdout.flush()
        print(json.dumps([status, time.process_time() - began]), file=report, flush=True)
