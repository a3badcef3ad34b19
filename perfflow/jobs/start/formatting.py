"""A workflow file in perfflow's layout."""

from __future__ import annotations

from perfflow.jobs.start.rewritten_file import Rewritten, own_file
from perfflow.model.errors import UserError
from perfflow.session.opening import open_workflow
from perfflow.workflow.formatting import formatted


def laid_out(name: str) -> Rewritten:
    """Read a workflow and lay it out; nothing is written, and mistakes that are not of YAML may stay in it.

    Raises UserError for a file that ships with perfflow or lies outside the project, for one that is not YAML, and for
    one that cannot be laid out without a loss.
    """
    opened = open_workflow(name)
    path, text = own_file(opened)
    try:
        return Rewritten(path, str(opened.path), text, formatted(text, str(opened.path)), ())
    except UserError:
        # Its own mistakes say more, such as where a key stands twice.
        opened.require_usable(to_run=False)
        raise
