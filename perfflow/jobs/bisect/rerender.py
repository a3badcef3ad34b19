"""Show a stored bisection again, and write its page from bisect.json. Nothing is measured or judged."""

from __future__ import annotations

import json
from pathlib import Path

from perfflow.jobs.bisect import resume
from perfflow.jobs.bisect.bisect import FinishedBisection, write_pages
from perfflow.model.errors import UserError
from perfflow.store import run_folder
from perfflow.store.run_bisection import FILE
from perfflow.tools import regular_files
from perfflow.verdict import stored_bisection


def show_again(folder: Path) -> FinishedBisection:
    """Read a stored bisection, and write its page again if the folder can be written.

    Raises UserError while it is running, if it was killed before bisect.json was written, and for a damaged file.
    """
    run_folder.require_ended(folder)
    path = folder / FILE
    try:
        with run_folder.explaining_damage(path):
            found = stored_bisection.read(json.loads(regular_files.read(path)))
    except FileNotFoundError as error:
        if not resume.were_compared(folder):
            text = f"{folder}: the bisection was killed before good was compared with bad"
            raise UserError.of(text, f"nothing was found; {resume.AGAIN}") from error
        hint = "resume it with `perfflow bisect` and --resume, or use --out DIR to judge good against bad"
        raise UserError.of(f"{folder}: the bisection has no {FILE}: it was killed", hint) from error
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", "this file is needed to show the bisection") from error
    try:
        write_pages(found, folder)
    except OSError:
        # A read-only folder keeps its old page; the printed text is the same.
        return FinishedBisection(found, folder)
    return FinishedBisection(found, folder)
