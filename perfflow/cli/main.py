"""The ``perfflow`` command: shell words -> one call. The only printer and the only exit.

Each command imports what it needs on its first line, so that ``--help`` and ``--version`` stay quick.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from perfflow.model.errors import Exit, UserError

COMMANDS = {
    "compare": "Compare two commands (perfflow compare -- 'old' 'new') or two stored results.",
    "run": "Run a workflow: build, measure, profile, judge, report.",
    "gate": "Compare two revisions by a workflow, and fail if head is slower than base.",
    "bisect": "Find the commit that brought a regression.",
    "report": "Judge a stored run again and write its report, without measuring.",
    "export": "Write a run's result as files for CI services. Sends nothing.",
    "publish": "Post a run's result (publish github). The only command that uses a token.",
    "baseline": "Keep results under a name: save, list, show, rm.",
    "validate": "Check workflow files and report every mistake at once.",
    "plan": "Show what a run would do, in which order, and what is missing.",
    "migrate": "Rewrite deprecated keys of workflow files. Comments stay.",
    "fmt": "Lay out workflow files the same way. Comments stay.",
    "list": "List workflows and tools.",
    "library": "Use workflows of other git repositories: add, update, remove, list, verify, vendor, init, test.",
    "show": "Explain a workflow or a tool: what it does, its keys, what it needs.",
    "history": "Show how fast each benchmark was over time, and when that changed.",
    "calibrate": "Measure how small a change this machine can detect.",
    "executors": "Check where a run can be measured: this machine, and a cluster's nodes.",
    "mcp": "Serve an agent by the Model Context Protocol. Reads only, unless it is allowed more.",
    "init": "Write a first workflow for the project in the current folder.",
    "make": "Print a Makefile fragment that runs the workflows.",
    "receipt": "Check whether a run was changed since it ended.",
    "clean": "Remove old runs, comparisons and trees.",
    "doctor": "Check how noisy this machine is, why, and what helps.",
    "schema": "Print the JSON Schema of workflow files.",
}

COMPLETING = "_PERFFLOW_COMPLETE"
"""What a shell sets to ask for completions."""


class Commands(click.Group):
    """Commands whose modules are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of a day's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"perfflow.cli.{cmd_name}_command")
        command: click.Command = module.command
        if COMPLETING in os.environ:
            from perfflow.cli.completion import complete

            return complete(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where the word is none."""
        import difflib

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.5)
            hint = f"did you mean `perfflow {near[0]}`?" if near else f"commands: {', '.join(COMMANDS)}"
            raise UserError.of(f"no command called {args[0]!r}", hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from perfflow.model.version import described

        click.echo(f"perfflow {described()}")
        ctx.exit()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and the commit.",
)
def app() -> None:
    """Run performance workflows: measure, profile, change one thing, measure again, keep only what is proven."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status; errors are printed to stderr with their remedy."""
    # Modules stay, so looking through them again and again while they are imported finds nothing.
    gc.set_threshold(200_000)
    # A cancelled CI job gets SIGTERM: like ^C, what was measured is kept and what was started is ended.
    signal.signal(signal.SIGTERM, _interrupt)
    # A closed terminal or a lost connection sends SIGHUP, which is treated alike. Under nohup it stays ignored.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _hang_up)
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        outcome: Any = app.main(words, "perfflow", complete_var=COMPLETING, standalone_mode=False)
        status = outcome if isinstance(outcome, int) else Exit.PASS
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (the last line of defence: a defect is reported as one)
        status = _explained(error)
    # All that is left goes with the process: looking through it once more, as Python does at its end, takes longer than
    # most commands.
    gc.freeze()
    sys.exit(int(status))


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _hang_up(number: int, frame: object) -> None:
    # Both the shell and the kernel may send it; the second would cut short what the first lets be written.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _interrupt(number, frame)


def _explained(error: Exception | KeyboardInterrupt) -> Exit:
    """Print what ended a command; returns its exit status. Called while the error is handled."""
    match error:
        case UserError():
            _tell(str(error))
            return error.exit
        case click.exceptions.Abort():
            return Exit.INTERRUPTED
        case click.ClickException():
            error.show()
            return Exit.USAGE
        case KeyboardInterrupt():
            _tell("interrupted")
            return Exit.INTERRUPTED
        case OSError() if _is_homeless():
            _tell("error: the current folder was removed\n  hint: change to one that is there")
            return Exit.USAGE
        case OSError():
            _tell(_remedy(error))
            return Exit.UNMEASURED
        case _:
            return _defect()


def _tell(text: str) -> None:
    from perfflow.cli.output import tell

    tell(f"{text}\n")


def _is_homeless() -> bool:
    """Whether the current folder is gone."""
    try:
        os.getcwd()  # noqa: PTH109 (pathlib takes longer to import than this takes)
    except FileNotFoundError:
        return True
    return False


def _remedy(error: OSError) -> str:
    import errno

    where = f"{error.filename}: " if error.filename else ""
    remedy = {
        errno.ENOSPC: "free some space, or name a folder on another disk with --out DIR",
        errno.EDQUOT: "free some space, or name a folder on another disk with --out DIR",
        errno.EACCES: "check the permissions, or name another folder with --out DIR",
        errno.EROFS: "name a writable folder with --out DIR",
    }.get(error.errno or 0, "what was measured so far is in the run's events.jsonl; `perfflow report` reads it")
    return f"error: {where}{error.strerror or error}\n  hint: {remedy}"


def _defect() -> Exit:
    import tempfile
    import traceback

    text = traceback.format_exc()
    try:
        with tempfile.NamedTemporaryFile("w", prefix="perfflow-defect-", suffix=".log", delete=False) as log:
            log.write(text)
        where = f"; the traceback is in {log.name}"
    except OSError:
        where = f"\n{text}"
    _tell(f"error: a defect in perfflow: {text.strip().splitlines()[-1]}{where}")
    return Exit.DEFECT
