"""Format a workflow file in perfflow's layout."""

from __future__ import annotations

from perfflow.jobs.start.rewritten_file import Rewritten, own_file
from perfflow.model.errors import UserError
from perfflow.session.open_workflow import open_workflow
from perfflow.workflow.formatting import formatted


def laid_out(name: str) -> Rewritten:
    """Read a workflow and format it. Nothing is written, and errors in its content stay.

    Raises UserError for a file that ships with perfflow or is outside the project, for a file that is not YAML, and for
    a file that cannot be formatted without loss.
    """
    opened = open_workflow(name)
    path, text = own_file(opened)
    try:
        return Rewritten(path, str(opened.path), text, formatted(text, str(opened.path)), ())
    except UserError:
        # The workflow's own errors are more precise, such as the place of a duplicate key.
        opened.require_usable(to_run=False)
        raise
