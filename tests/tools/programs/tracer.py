"""Stands in for a program that profiles itself: it leaves a captured trace, and does to it what LIE says."""

import os
import runpy
import shutil
import time
from pathlib import Path

liar = runpy.run_path(str(Path(__file__).with_name("liar.py")))
lie, started = os.environ["LIE"], time.time()
captured = Path(__file__).parents[1] / "data" / "torch-profiler" / "2.15.0" / "small" / "written-0.json"
if lie == "stale":
    liar["go_stale"]()
elif lie != "idle":
    target = Path(os.environ["LIE_ROOT"], "steps", "traces", "trace.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(captured, target)
    liar["spoil"](lie, started)
