"""A Python program whose last deed is to spoil what a profiler in its own process wrote of it."""

import atexit
import os
import runpy
import sys
import time
from pathlib import Path

started = time.time()
spoil = runpy.run_path(str(Path(__file__).with_name("liar.py")))["spoil"]
atexit.register(spoil, os.environ["LIE"], started)
total = 0
for number in range(5_000_000):
    total += number * number
sys.stdout.write(f"{total}\n")
