"""Settings of accepted candidates: printed with their place in the workflow, or written there by ``--apply``."""

from __future__ import annotations

from perfflow.cli.output import tell
from perfflow.jobs.optimize import write_settings
from perfflow.model.errors import Exit, UserError
from perfflow.model.result import Result
from perfflow.report.ledger import taking_over
from perfflow.workflow.settings_text import Written


def report_settings(result: Result, file: write_settings.Target, *, apply: bool) -> int:
    """Print the accepted settings, and write them if ``apply``. Returns the exit status: an error if writing failed.

    ``file`` is the workflow as it was at the start of the run.
    """
    params, env = write_settings.accepted_settings(result)
    command = taking_over(result)
    if apply and command:
        tell(f"--apply: changes to code stay on their branch; to apply them: {command}\n")
    if not params and not env:
        if apply:
            tell("--apply: no settings were accepted, so nothing is written\n")
        return int(Exit.PASS)
    why = write_settings.why_not_applied(result)
    try:
        if apply and not why:
            found = write_settings.apply(file, params, env)
            tell(f"--apply: written into {file.shown}:\n{_lines(file, found)}")
            return int(Exit.PASS)
        _, found = file.written(params, env)
    except UserError as error:
        tell(f"{error}\n")
        return int(error.exit) if apply else int(Exit.PASS)
    if apply:
        tell(f"--apply: nothing is written: {why}; accepted settings:\n{_lines(file, found)}")
    else:
        tell(f"accepted settings (`perfflow run --apply` writes them):\n{_lines(file, found)}")
    return int(Exit.PASS)


def _lines(file: write_settings.Target, found: list[Written]) -> str:
    if not found:
        return "  nothing: the file already has these values\n"
    return "".join(
        f"  {file.shown}:{item.line}: {item.key}: {f'{item.old} → ' if item.old else ''}{item.new}\n" for item in found
    )
