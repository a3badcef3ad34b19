"""A Python program whose last deed is to spoil what a profiler in its own process wrote of it.

Before that it gives each of them something to see: it computes, runs an event loop and a statement of SQL.
"""

import asyncio
import atexit
import os
import runpy
import sqlite3
import sys
import time
from pathlib import Path

SECONDS = 0.5
started = time.time()
if "LIE" in os.environ:
    spoil = runpy.run_path(str(Path(__file__).with_name("liar.py")))["spoil"]
    atexit.register(spoil, os.environ["LIE"], started)
total = 0
# As long under a profiler that slows it down thirtyfold as under one that only looks, which may take as long to start.
began = time.process_time()
while time.process_time() - began < SECONDS:
    for number in range(10_000):
        total += number * number
sys.stdout.write(f"{total}\n")
asyncio.run(asyncio.sleep(0))
sqlite3.connect(":memory:").execute("SELECT 1").fetchall()
