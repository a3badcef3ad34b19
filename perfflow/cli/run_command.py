"""``perfflow run``, which ``perfflow gate`` calls as well.

After a run it prints the settings of accepted candidates, or writes them into the workflow file with ``--apply``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfflow.cli import ci
from perfflow.cli.console import print_verdict, shown, shown_path
from perfflow.cli.options import (
    BENCHMARKS,
    LOCK_TIMEOUT,
    SEED,
    THE_WORKFLOW,
    TRUST,
    UNPROVEN,
    detached,
    limit,
    placed,
    usable,
)
from perfflow.cli.output import say, tell
from perfflow.execute.schedule import UNABLE
from perfflow.jobs.gate.self_test import outcome
from perfflow.jobs.run.run import FinishedRun, RunRequest, require_revisions, run, with_builds
from perfflow.model.errors import Exit, UserError
from perfflow.model.result import Result
from perfflow.plan.coverage import ONE_SIDED
from perfflow.plan.groups import shard_of, sharded
from perfflow.report.page import taking_over
from perfflow.report.sanitize import visible
from perfflow.session.open_workflow import Opened, select
from perfflow.store.run_folder import REPORT, find
from perfflow.trees.overlay import inside

if TYPE_CHECKING:
    from perfflow.jobs.optimize.apply_change import WorkflowTarget
    from perfflow.workflow.settings_text import Written


def report_settings(result: Result, file: WorkflowTarget, *, apply: bool) -> int:
    """Print the accepted settings, and write them if ``apply``. Returns the exit status: an error if writing failed.

    ``file`` is the workflow as it was at the start of the run.
    """
    from perfflow.jobs.optimize import apply_change

    params, env = apply_change.accepted_settings(result)
    command = taking_over(result)
    if apply and command:
        tell(f"--apply: changes to code stay on their branch; to apply them: {command}\n")
    if not params and not env:
        if apply:
            tell("--apply: no settings were accepted, so nothing is written\n")
        return int(Exit.PASS)
    why = apply_change.why_not_applied(result)
    try:
        if apply and not why:
            found = apply_change.apply_settings(file, params, env)
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


def _lines(file: WorkflowTarget, found: list[Written]) -> str:
    if not found:
        return "  nothing: the file already has these values\n"
    return "".join(
        f"  {file.shown}:{item.line}: {item.key}: {f'{item.old} → ' if item.old else ''}{item.new}\n" for item in found
    )


SELF_TEST = "a self-test: the measured processes of head were slowed down by 20% on purpose"
LEFT_OUT = "PERFFLOW_LEFT_OUT"
"""Environment variable with a file. If this machine lacks what the workflow needs, the reason is written to it, and
the exit status is 0."""


@click.command("run")
@THE_WORKFLOW
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--stage", "stages", multiple=True, metavar="STAGE", help="Run only this stage; may be repeated.")
@click.option("--only", multiple=True, metavar="STEP", help="Run only this step; may be repeated.")
@click.option("--from", "start", metavar="STEP", help="Run this step and all after it.")
@BENCHMARKS
@click.option("-n", "--dry-run", is_flag=True, help="Show what would run. Executes nothing.")
@click.option("-j", "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Steps to run at a time.")
@click.option("-k", "--keep-going", is_flag=True, help="Also run steps that do not depend on a failed step.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the run to this folder, which must be new or empty."
)
@click.option(
    "--resume",
    "interrupted_run",
    is_flag=False,
    flag_value="latest",
    metavar="[RUN]",
    help="Resume an interrupted run (default: the latest). Finished steps are not repeated.",
)
@click.option(
    "--shard",
    metavar="I/N",
    callback=lambda _context, _option, text: shard_of(text) if text else None,
    help="Measure only part I of N of the benchmarks; `perfflow merge` judges all parts.",
)
@click.option("--base", metavar="REV", help="Compare with the merge base of head and REV.")
@click.option("--head", metavar="REV", help="With --base: the other revision (default: the working tree).")
@SEED
@click.option("--json", "as_json", is_flag=True, help="Print result.json to stdout and nothing else.")
@click.option(
    "--budget",
    metavar="TIME",
    callback=limit,
    help="Longest time of the whole command, builds and checks included, such as 10m. Processes are ended when it is "
    "over. Undecided benchmarks stay unproven, and those without a turn are not measured (exit 3). off: no limit.",
)
@click.option(
    "--all", "times_all", is_flag=True, help="In a gate, time also benchmarks that execute the same on base and head."
)
@LOCK_TIMEOUT
@TRUST
@click.option(
    "--progress",
    type=click.Choice(["live", "plain", "off"]),
    help="Progress on stderr (default: live on a terminal; plain elsewhere, in CI and under NO_COLOR).",
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="When to use colour.")
@click.option(
    "--apply", is_flag=True, help="Write the environment and parameters of accepted candidates into the workflow file."
)
@UNPROVEN
@click.option("--executor", metavar="NAME", help="Where to measure: an executor of executors.yaml, or `local`.")
@click.option("--detach", is_flag=True, help="With --executor: submit the jobs and exit. --resume waits for them.")
@click.option("--allow-skipped", is_flag=True, help="Skip steps whose `runs-on` does not match this machine.")
def command(**given: Any) -> int:
    """Run WORKFLOW: a file, or the name of a workflow in ./workflows or in the library; default: the only one there.

    Exit: 0 pass, 1 fail, 2 bad usage or workflow, 3 could not measure, 4 unproven, 130 interrupted.
    """
    return perform(RunOptions(**given))


@dataclass(frozen=True, kw_only=True)
class RunOptions(RunRequest):
    """The options of ``perfflow run``, and those that only ``perfflow gate`` has."""

    workflow: str
    settings: tuple[str, ...]
    dry_run: bool
    interrupted_run: str | None
    """The name of the run to resume."""
    as_json: bool
    trust: bool
    progress: str | None
    color: str
    apply: bool
    unproven: str
    executor: str | None
    detach: bool

    against: str | None = None
    ended_run: str | None = None
    """The name of the gate of which only what is undecided is measured further."""
    base_results: str | None = None
    across_machines: bool = False
    fail_on: str | None = None

    @property
    def resumed(self) -> str | None:
        """The name of the run to continue, interrupted or ended."""
        return self.interrupted_run or self.ended_run

    @property
    def to_judge(self) -> dict[str, Any]:
        """How the verdict is printed."""
        return {"as_json": self.as_json, "color": self.color, "unproven": self.unproven}

    @property
    def to_select(self) -> dict[str, Any]:
        """What is run."""
        return {"stages": self.stages, "only": self.only, "start": self.start, "benchmarks": self.benchmarks}

    def words(self, name: str, *more: str) -> list[str]:
        """Return the command line that gives the command ``name`` again, with ``more`` after what is run."""
        settings = (f"--set={setting}" for setting in self.settings)
        return [
            "perfflow",
            name,
            self.workflow,
            *settings,
            *(f"--benchmark={glob}" for glob in self.benchmarks),
            *more,
        ]


def perform(options: RunOptions) -> int:
    """Run the workflow, print the verdict and return the exit status. Raises UserError."""
    # `make perf` sets it. Programs that the workflow starts must not inherit it.
    left_out = os.environ.pop(LEFT_OUT, "")
    require_fitting(options)
    opened = usable(options.workflow, options.settings, to_run=not options.dry_run, trust=options.trust)
    selected = select(opened.plan, **options.to_select)
    if options.apply:
        from perfflow.jobs.optimize.apply_change import require_appliable

        require_appliable(opened, selected)
    base, chosen = _base(opened, selected, options)
    if options.dry_run:
        return _dry_run(opened, selected, base, options)
    if left_out and (why := _lacking(opened, selected)):
        return _skip(opened, why, Path(left_out))
    # Base and head are the two sides that a target on a change needs.
    problems = (problem for problem in opened.problems if not (base and problem.rule == ONE_SIDED))
    tell("".join(f"{problem.render()}\n" for problem in problems))
    if base and options.progress != "off" and not options.resumed:
        _tell_plan(opened, selected, base, options)
    words = _words(options, base)
    resumed = find(opened.root, options.resumed) if options.resumed else None
    if options.self_test:
        chosen["cautions"] = (SELF_TEST,)
    request = replace(
        options,
        base=base,
        command=words if base is not None else (),
        resume=resumed,
        again=options.ended_run is not None,
        overlay=inside(opened.root, Path.cwd(), options.overlay),
        placement=placed(options.executor, resumed, options.settings, detach=options.detach),
        **chosen,
    )
    how: Any = {"color": options.color, "jobs": options.jobs, "budget": options.budget}
    with detached(words, asked=options.detach), shown(options.progress, opened, words, **how) as told:
        finished = run(opened, request, told)
    if options.self_test:
        return _tell_self_test(finished)
    if left_out and (why := _said_unable(finished.result)):
        return _skip(opened, why, Path(left_out))
    status = print_verdict(finished.result, finished.folder / REPORT, **options.to_judge)
    more = after(finished, _target(opened), words, annotate=options.progress != "off", apply=options.apply)
    return more if finished.interrupted else status or more


def _lacking(opened: Opened, selected: frozenset[str]) -> str:
    """Return what this machine lacks for the run; '' if nothing."""
    from perfflow.jobs.catalog.descriptions import lacking

    return lacking(opened, selected)


def _said_unable(result: Result) -> str:
    """Return why a setup step reported that this machine cannot run the workflow; '' if none did."""
    said = (step.reason for step in result.steps if step.status == "skipped" and step.exit_code == UNABLE)
    return next(said, "")


def _dry_run(opened: Opened, selected: frozenset[str], base: str | None, options: RunOptions) -> int:
    """Print the steps that would run, in two trees if there is a base. Raises UserError for unknown revisions."""
    in_trees = base is not None
    if base:
        require_revisions(opened, base, options.head)
    if options.shard:
        selected = frozenset(sharded(opened.plan, selected, options.shard, in_trees=in_trees).steps)
    from perfflow.cli.plan_command import print_plan

    return print_plan(opened, selected, in_trees=in_trees, budget=options.budget)


def _tell_plan(opened: Opened, selected: frozenset[str], base: str, options: RunOptions) -> None:
    """Print how long the gate takes, as far as it is known. Raises UserError for unknown revisions."""
    require_revisions(opened, base, options.head)
    from perfflow.jobs.catalog.descriptions import gate_plan

    lines = gate_plan(opened, with_builds(opened, selected), options.budget)
    tell("".join(f"{visible(line)}\n" for line in lines))


def _base(opened: Opened, selected: frozenset[str], options: RunOptions) -> tuple[str | None, dict[str, Any]]:
    """Return the base and its facts for the run: the given base, or the best revision of the history, with a note."""
    if not options.against or options.resumed:
        return options.base, {}

    def note(text: str) -> None:
        tell(f"note: {visible(text)}\n")

    from perfflow.jobs.against.best_revision import best_revision

    best = best_revision(opened, selected, options.against, options.head, note)
    note(best.text)
    return best.revision, {"about_base": best.about, "cautions": (best.text,)}


def _tell_self_test(finished: FinishedRun) -> int:
    """Print which planted slowdowns were found; return the exit status."""
    if finished.interrupted:
        return int(Exit.INTERRUPTED)
    tested = outcome(finished.result)
    count, took = len(tested.found) + len(tested.missed), finished.result.run.seconds
    say(f"self-test: {len(tested.found)} of {count} planted slowdowns found{f' in {took:.0f} s' if took else ''}")
    for name, why in tested.missed:
        say(visible(f"  not found: {name}: {why}"))
    say(visible(f"report: {finished.folder / REPORT}"))
    if not count:
        return int(Exit.UNMEASURED)
    return int(Exit.FAIL if tested.missed else Exit.PASS)


def _skip(opened: Opened, why: str, file: Path) -> int:
    """Print why the workflow cannot run here, and write the reason to ``file``."""
    line = visible(f"{opened.plan.workflow.name}: left out: {why}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{line}\n", encoding="utf-8")
    say(line)
    return int(Exit.PASS)


def _words(options: RunOptions, base: str | None) -> list[str]:
    """Return the command line that runs the workflow again."""
    words = options.words("run" if base is None else "gate", *([f"--base={base}"] if base else []))
    words += [f"--head={options.head}"] if options.head else []
    words += [f"--overlay={path}" for path in options.overlay]
    words += [f"--shard={options.shard}"] if options.shard else []
    return [*words, *(["--self-test"] if options.self_test else [])]


def require_fitting(options: RunOptions) -> None:
    """Raise UserError for options that exclude each other."""
    if options.resumed and (options.out or options.seed is not None):
        raise UserError.of("--resume continues in the folder of the run, with its seed", "leave out --out and --seed")
    if options.head and not options.base:
        raise UserError.of("--head needs --base", "name the revision to compare with: --base origin/main")
    if options.shard and options.executor is not None:
        raise UserError.of("--executor divides a run by itself", "leave out --shard")
    if options.base and options.apply:
        raise UserError.of("a comparison of base and head tries no candidates, so there is nothing to --apply")


def _target(opened: Opened) -> WorkflowTarget | None:
    """Return the file that stores accepted settings, or None for a workflow without candidates."""
    if "optimize" not in opened.plan.workflow.stages:
        return None

    from perfflow.jobs.optimize.apply_change import target

    return target(opened)


def after(
    finished: FinishedRun, file: WorkflowTarget | None, words: Sequence[str], *, annotate: bool, apply: bool
) -> int:
    """Print notes, annotations and settings after the verdict. Returns the exit status of this part alone."""
    tell("".join(f"note: {visible(note)}\n" for note in finished.notes))
    if ci.in_github() and annotate:
        tell("".join(f"{line}\n" for line in ci.annotation_lines(finished.result)))
    unwritten = 0
    if file:
        unwritten = report_settings(finished.result, file, apply=apply)
    if not finished.interrupted:
        return unwritten
    tell(f"interrupted; to resume: {shlex.join([*words, f'--resume={shown_path(finished.folder)}'])}\n")
    return int(Exit.INTERRUPTED)
