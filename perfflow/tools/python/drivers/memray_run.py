"""Run a Python program as ``python`` itself would, with memray recording every allocation, and keep its exit status.

    python [flags] python_run.py --under=memray_run.py STATUS_FILE RECORDING FLAGS FORM TARGET [ARGUMENT ...]

``memray run`` does not report a program that exits by ``os._exit``, and counts its own reading of the script. FLAGS are
keywords of ``memray.Tracker``, joined by commas. STATUS_FILE is JSON: ``status``. The program's own modules are
compiled in each run, so that runs with and without ``__pycache__`` allocate the same.

Run by the measured interpreter, so: standard library and memray only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib or, before the end, json.
# ruff: noqa: PTH100

from __future__ import annotations

import os
import types


def main(runner: types.ModuleType, words: list[str]) -> None:
    """Run the program of the command line. Its exceptions end this process as they would have ended the program."""
    status_file, recording = (os.path.abspath(path) for path in words[:2])
    memray = runner.require("memray", status_file)
    options = dict.fromkeys(filter(None, words[2].split(",")), True)
    runner.OwnModules(*words[3:5]).always_compile()

    def recorded(code: types.CodeType, namespace: dict[str, object]) -> None:
        with memray.Tracker(recording, **options):
            runner.perfflow_program(code, namespace)

    runner.watch(words[3:], recorded, lambda status: runner.write_status(status_file, status))
