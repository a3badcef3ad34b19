"""A stored bisection shown again: its page made anew from bisect.json. Nothing is measured or judged."""

from __future__ import annotations

import json
from pathlib import Path

from perfflow.jobs.bisect import resume
from perfflow.jobs.bisect.bisect import FinishedBisection, write_pages
from perfflow.model.errors import UserError
from perfflow.store import folder as rundir
from perfflow.store.run_bisection import FILE
from perfflow.tools import regular_files
from perfflow.verdict import stored_bisection


def show_again(folder: Path) -> FinishedBisection:
    """Read what a bisection found, and write its page again where that can be written.

    Raises UserError while it is running, where it was killed before bisect.json was written, and for a damaged file.
    """
    rundir.require_ended(folder)
    path = folder / FILE
    try:
        found = stored_bisection.read(json.loads(regular_files.read(path)))
    except FileNotFoundError as error:
        if not resume.were_compared(folder):
            text = f"{folder}: the bisection was killed before good was compared with bad"
            raise UserError.of(text, f"nothing was found; {resume.AGAIN}") from error
        hint = "go on with it by `perfflow bisect` and --resume; with --out DIR good is judged against bad"
        raise UserError.of(f"{folder}: the bisection has no {FILE}: it was killed", hint) from error
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", "a bisection is shown from it") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{path}: not what this version of perfflow writes ({type(error).__name__}: {error})"
        raise UserError.of(text, "the file was changed by hand, or by another version?") from error
    try:
        write_pages(found, folder)
    except OSError:
        # What may only be read has its page already, and what is printed is the same.
        return FinishedBisection(found, folder)
    return FinishedBisection(found, folder)
