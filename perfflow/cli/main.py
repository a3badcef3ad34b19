"""The ``perfflow`` command: it parses the arguments, calls one command, prints errors and exits.

Each command imports its modules when it is called, so that ``--help`` and ``--version`` start fast.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import click

from perfflow.model.errors import Exit, UserError

COMMANDS = {
    "compare": "Compare two commands (perfflow compare -- 'old' 'new') or two stored results.",
    "run": "Run a workflow: build, measure, profile, judge, report.",
    "gate": "Compare two revisions with a workflow, and fail if head is slower than base.",
    "merge": "Give one verdict on the parts of a run that were measured with --shard.",
    "bisect": "Find the commit that introduced a regression.",
    "judge": "Judge patches with a workflow: which of them are proven to be faster, and harm nothing.",
    "report": "Judge a stored run again and write its report. Measures nothing.",
    "export": "Write a run's result as files for CI services. Sends nothing.",
    "publish": "Post a run's result: github, slack, teams, webhook. Only this command uses a token.",
    "baseline": "Manage named baselines: save, list, show, rm.",
    "validate": "Check workflow files and report every mistake at once.",
    "plan": "Show which steps a run would execute, in which order, and what is missing.",
    "fmt": "Format workflow files. Keeps comments.",
    "list": "List workflows and tools.",
    "library": "Use workflows from other git repositories: add, update, remove, list, verify, vendor, init, test.",
    "show": "Explain a workflow or a tool: its purpose, keys and requirements.",
    "history": "Show how fast each benchmark was over time, and when it changed.",
    "calibrate": "Measure how small a change this machine can detect.",
    "executors": "Check which machines can measure a run: this machine and the nodes of clusters.",
    "mcp": "Serve an agent over the Model Context Protocol. Read-only by default.",
    "init": "Write a first workflow for the project in the current folder.",
    "make": "Print a Makefile fragment that runs the workflows.",
    "receipt": "Check whether the files of a run were changed after it ended.",
    "verify-claim": "Measure again what a run claims of the candidate that it kept.",
    "cache": "Keep the builds of base and head for the next gate: path, key, prune.",
    "clean": "Remove old runs and comparisons.",
    "doctor": "Check how noisy this machine is, why, and how to make it quieter.",
    "schema": "Print the JSON Schema of workflow files.",
}

GROUPS = {
    "Measure": ("compare", "run", "gate", "merge", "bisect", "judge"),
    "Look at results": ("report", "history", "baseline", "receipt", "verify-claim"),
    "Write workflows": ("init", "validate", "plan", "show", "list", "fmt", "schema", "library"),
    "CI and other programs": ("export", "publish", "make", "mcp"),
    "This machine and others": ("doctor", "calibrate", "executors", "cache", "clean"),
}
EXAMPLES = {
    "compare": ("perfflow compare -- './old data.json' './new data.json'", "perfflow compare old.json new.json"),
    "run": (
        "perfflow run bench.yaml",
        "perfflow run bench.yaml --only parse --budget 2m",
        "perfflow run bench.yaml --benchmark 'decode/*'",
    ),
    "gate": ("perfflow gate bench.yaml --base origin/main", "perfflow gate bench.yaml --base HEAD~1 --benchmark parse"),
    "merge": ("perfflow merge part-1 part-2", "perfflow merge parts/* --out perf --unproven pass"),
    "bisect": (
        "perfflow bisect bench.yaml --good v1.2",
        "perfflow bisect bench.yaml --good v1.2 --benchmark parse --budget 20m",
    ),
    "judge": (
        "perfflow judge fast.patch -w bench.yaml",
        "perfflow judge patches/ -w bench.yaml --json --budget 3m --shard 2/8",
    ),
    "report": ("perfflow report", "perfflow report --open", "perfflow report latest --thresholds action=5%"),
    "history": ("perfflow history --since 90d", "perfflow history show parse"),
    "doctor": ("perfflow doctor", "sudo perfflow doctor --fix"),
    "init": ("perfflow init", "perfflow init --command './prog data.json'"),
    "validate": ("perfflow validate bench.yaml", "perfflow validate --format github"),
    "export": ("perfflow export --out ci", "perfflow export --format csv"),
    "publish": ("perfflow publish github", "perfflow publish slack --dry-run"),
    "publish github": ("perfflow publish github", "perfflow publish github --repo OWNER/NAME --pr 7 --unproven pass"),
    "publish slack": ("perfflow publish slack --dry-run", "perfflow publish slack --link https://ci.example.com/job/7"),
    "publish teams": ("perfflow publish teams --dry-run", "perfflow publish teams --url-from PERF_CHANNEL"),
    "publish webhook": (
        "perfflow publish webhook --template chat.json.j2 --dry-run",
        "perfflow publish webhook --template chat.json.j2 --url-from PERF_CHANNEL",
    ),
    "baseline": ("perfflow baseline save main", "perfflow compare main latest"),
    "baseline list": ("perfflow baseline list", "perfflow baseline list --json"),
    "baseline rm": ("perfflow baseline rm old", "perfflow baseline rm old older"),
    "baseline save": (
        "perfflow baseline save main",
        "perfflow baseline save main --branch",
        "perfflow baseline save before hyperfine.json",
    ),
    "baseline show": ("perfflow baseline show main", "perfflow baseline show main --json"),
    "plan": (
        "perfflow plan bench.yaml",
        "perfflow plan bench.yaml --only parse",
        "perfflow plan bench.yaml --format mermaid",
    ),
    "fmt": ("perfflow fmt bench.yaml", "perfflow fmt --check workflows/*.yaml"),
    "list": ("perfflow list", "perfflow list --json"),
    "show": ("perfflow show rust-hotpath", "perfflow show perf", "perfflow show bench.yaml --resolved"),
    "library": ("perfflow library add acme/benchmarks/web.yaml@v1", "perfflow library list"),
    "library add": (
        "perfflow library add acme/benchmarks/web.yaml@v1",
        "perfflow library add git+https://git.example.com/bench@v1#web.yaml",
    ),
    "library init": ("perfflow library init benchmarks", "perfflow library init ../team-benchmarks"),
    "library list": ("perfflow library list", "perfflow library list --json"),
    "library remove": (
        "perfflow library remove acme/benchmarks/web.yaml@v1",
        "perfflow library remove git+https://git.example.com/bench@v1#web.yaml",
    ),
    "library test": ("perfflow library test", "perfflow library test benchmarks"),
    "library update": ("perfflow library update", "perfflow library update acme/benchmarks/web.yaml@v1"),
    "library vendor": ("perfflow library vendor", "perfflow library vendor acme/benchmarks/web.yaml@v1"),
    "library verify": ("perfflow library verify", "perfflow library verify || exit 1"),
    "history add": ("perfflow history add ci/result.json", "perfflow history add .perfflow/runs/latest"),
    "history build": ("perfflow history build site", "perfflow history build site --branch main"),
    "history changes": ("perfflow history changes --since 90d", "perfflow history changes --confirm bench.yaml"),
    "history import": (
        "perfflow history import target/criterion",
        "perfflow history import hyperfine.json .benchmarks",
    ),
    "history show": ("perfflow history show parse", "perfflow history show parse --metric cpu --since 90d"),
    "history use": ("perfflow history use postgresql://perf@db.example.com/perf", "perfflow history use"),
    "calibrate": ("perfflow calibrate bench.yaml", "perfflow calibrate bench.yaml --only parse --budget 10m"),
    "executors": ("perfflow executors", "perfflow executors --json"),
    "mcp": ("perfflow mcp", "perfflow mcp --allow-run --budget 5m"),
    "make": ("perfflow make > perf.mk", "perfflow make bench.yaml > perf.mk"),
    "receipt": ("perfflow receipt verify", "perfflow receipt verify --against main"),
    "receipt verify": ("perfflow receipt verify", "perfflow receipt verify latest --against main"),
    "verify-claim": ("perfflow verify-claim latest", "perfflow verify-claim claim/receipt.json --budget 5m"),
    "cache": ("perfflow cache path", "perfflow cache prune --keep 5GB"),
    "cache path": ("perfflow cache path", "perfflow cache path --trees"),
    "cache key": ("perfflow cache key --base origin/main", "perfflow cache key --base HEAD"),
    "cache prune": ("perfflow cache prune --keep 5GB", "perfflow cache prune --older-than 7 --dry-run"),
    "clean": ("perfflow clean --dry-run", "perfflow clean runs --older-than 7 --keep 5"),
    "schema": ("perfflow schema", "perfflow schema > workflow.schema.json"),
}
"""Command lines that the help of a command shows."""

COMPLETING = "_PERFFLOW_COMPLETE"
"""Environment variable that a shell sets to request completions."""


def named_commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and those of its group, each with the words that call it."""
    yield name, command
    for inner, part in getattr(command, "commands", {}).items():
        yield from named_commands(f"{name} {inner}", part)


class Commands(click.Group):
    """A group that imports the module of a command only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, the most used ones first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or return None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"perfflow.cli.{cmd_name.replace('-', '_')}_command")
        command: click.Command = module.command
        for name, part in named_commands(cmd_name, command):
            # \b keeps click from joining the lines.
            part.epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES.get(name, ()))])
        if COMPLETING in os.environ:
            from perfflow.cli.completion import complete

            return complete(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command. Raises UserError with the most similar name for an unknown command."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from perfflow.model.similar import command_meant

            meant = " or ".join(f"`perfflow {name}`" for name in command_meant(args[0], COMMANDS))
            hint = f"did you mean {meant}?" if meant else f"commands: {', '.join(COMMANDS)}"
            raise UserError.of(f"no command called {args[0]!r}", hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from perfflow.cli.output import say
        from perfflow.model.version import described

        say(f"perfflow {described()}")
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
    """Run performance workflows: measure, profile, change one thing, measure again, keep only proven improvements."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status. Errors are printed to stderr with a hint."""
    # Imported modules are never freed, so frequent garbage collections during imports only cost time.
    gc.set_threshold(200_000)
    # A cancelled CI job gets SIGTERM. As after ^C, samples are kept and child processes are ended.
    signal.signal(signal.SIGTERM, _interrupt)
    # A closed terminal or a lost connection sends SIGHUP. It is handled in the same way, except under nohup.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _hang_up)
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        outcome: Any = app.main(words, "perfflow", complete_var=COMPLETING, standalone_mode=False)
        status = outcome if isinstance(outcome, int) else Exit.PASS
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (any other exception is reported as a bug)
        status = _report(error)
    # The kernel frees all memory at exit. The final garbage collection of Python takes longer than most commands.
    gc.freeze()
    sys.exit(int(status))


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _hang_up(number: int, frame: object) -> None:
    # The shell and the kernel may both send SIGHUP. A second one would interrupt the clean-up after the first.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _interrupt(number, frame)


def _report(error: Exception | KeyboardInterrupt) -> Exit:
    """Print the error that ended a command and return the exit status. Call it while the error is being handled."""
    match error:
        case UserError():
            _print_error(str(error))
            return error.exit
        case click.exceptions.Abort():
            return Exit.INTERRUPTED
        case click.ClickException():
            error.show()
            return Exit.USAGE
        case KeyboardInterrupt():
            _print_error("interrupted")
            return Exit.INTERRUPTED
        case OSError() if _has_no_folder():
            _print_error("error: the current folder was removed\n  hint: change to an existing folder")
            return Exit.USAGE
        case MemoryError():
            _print_error("error: there is too little memory\n  hint: close other programs, or use smaller files")
            return Exit.UNMEASURED
        case OSError():
            _print_error(_remedy(error))
            return Exit.UNMEASURED
        case _:
            return _defect()


def _print_error(text: str) -> None:
    from perfflow.cli.output import tell

    tell(f"{text}\n")


def _has_no_folder() -> bool:
    """Return whether the current folder was removed."""
    try:
        os.getcwd()  # noqa: PTH109 (importing pathlib would take longer)
    except FileNotFoundError:
        return True
    return False


def _remedy(error: OSError) -> str:
    import errno
    import traceback

    # Help texts are printed by click itself.
    if [*traceback.walk_tb(error.__traceback__)][-1][0].f_code is click.echo.__code__:
        from perfflow.cli.output import lost_output

        return str(lost_output(error))
    where = f"{error.filename}: " if error.filename else ""
    remedy = {
        errno.ENOSPC: "free some space, or name a folder on another disk with --out DIR",
        errno.EDQUOT: "free some space, or name a folder on another disk with --out DIR",
        errno.EACCES: "check the permissions, or name another folder with --out DIR",
        errno.EROFS: "name a writable folder with --out DIR",
    }.get(error.errno or 0, "the samples so far are in the run's events.jsonl; `perfflow report` shows them")
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
    _print_error(f"error: a defect in perfflow: {text.strip().splitlines()[-1]}{where}")
    return Exit.DEFECT
