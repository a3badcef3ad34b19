"""What ``report.html`` costs: ``python -m benchmarks.report [BENCHMARKS ...]`` (default 200 and 2000).

The page of a seeded suite is built from its result, alone and with a flame graph of two profiles. Prints its bytes, the
processor time that building it took, and what a headless Chromium needs to load it and run its script, beside what it
needs for an empty page.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.judging import events
from benchmarks.profile_pair import large_pair
from perfflow.model.result import Result
from perfflow.report.html import document
from perfflow.store.record import Record
from perfflow.store.sample_order import taking_order
from perfflow.verdict.judge import judge

SIZES = (200, 2000)
ROUNDS = 5
EMPTY = "<!doctype html><title>empty</title>"


def main() -> None:
    """Print two lines for each size."""
    for size in [int(word) for word in sys.argv[1:]] or SIZES:
        found = list(events(size))
        result = _judged(found)
        for profiles, words in (([], ""), (large_pair(), " and two profiles")):
            began = time.process_time()
            text = document.render(result, taking_order(found), profiles)
            took = time.process_time() - began
            line = f"{size} benchmarks{words}: {len(text.encode()) / 1000:.0f} kB, built in {took:.2f} s"
            print(f"{line}, {_in_browser(text)}")


def _judged(found: list[dict[str, object]]) -> Result:
    record = Record()
    for event in found:
        record.fold(event)
    return judge(record, record.criteria)


def _in_browser(text: str) -> str:
    """The least time of a few rounds, of this page and of an empty one in turns."""
    if not shutil.which("chromium"):
        return "not opened: chromium is not on PATH"
    with tempfile.TemporaryDirectory() as folder:
        pages = {"empty": EMPTY, "page": text}
        for name, content in pages.items():
            Path(folder, f"{name}.html").write_text(content)
        least = {name: min(_opened(folder, name) for _ in range(ROUNDS)) for name in pages}
    return f"opened in {least['page']:.2f} s ({least['empty']:.2f} s for an empty page)"


def _opened(folder: str, name: str) -> float:
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom"]
    began = time.monotonic()
    subprocess.run(["chromium", *options, f"file://{folder}/{name}.html"], capture_output=True, check=True)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
