"""Open a workflow by its name and settings: return a plan that can run, or report all problems at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfflow.library.pinned import PROJECT, Library
from perfflow.model.errors import Problem, Severity, UserError, in_file_order
from perfflow.model.similar import did_you_mean, nearest
from perfflow.plan import coverage
from perfflow.plan import plan as planning
from perfflow.plan.plan import Plan, Planned, parameter_values
from perfflow.report import template
from perfflow.report.template import TEMPLATES
from perfflow.session import known_names
from perfflow.session.reading_limit import within_time
from perfflow.trees import repository
from perfflow.workflow import checks, declared_tool
from perfflow.workflow.load import Draft, load


@dataclass(frozen=True)
class Opened:
    """A workflow that was read and planned, with its problems."""

    path: Path
    root: Path
    draft: Draft
    plan: Plan
    library: Library

    @property
    def origin(self) -> str:
        """Source of the workflow: ``project``, ``lib:NAME``, or the reference or package that it came from."""
        return self.library.origin(self.path)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Errors and warnings in file order."""
        return in_file_order(self.draft.problems)

    @property
    def unavailable(self) -> tuple[Problem, ...]:
        """Features that the file uses but this version does not have."""
        return in_file_order(planning.unavailable(self.draft))

    def require_usable(self, *, to_run: bool, trust: bool = False) -> None:
        """Raise UserError with all errors; to run, also for unavailable features and commands that were never shown.

        ``trust``: run commands that were never shown.
        """
        errors = [problem for problem in self.problems if problem.severity is Severity.ERROR]
        if to_run and not errors:
            errors = [*self.unavailable, *(() if trust else self.library.unshown())]
        if errors:
            raise UserError(tuple(errors))


def own_template(draft: Draft) -> Path | None:
    """Return the file of the report's template that the workflow names; None for a template of perfflow."""
    named = draft.workflow.report.template
    return None if named in TEMPLATES else draft.path.parent / named


def _check_template(draft: Draft) -> None:
    """Report a template that cannot be used, before anything is measured."""
    path, loc = own_template(draft), ("report", "template")
    if path is None:
        return
    if path.suffixes[-2:] != [".md", ".j2"]:
        hint = did_you_mean(path.name, TEMPLATES) or f"write {', '.join(TEMPLATES)}, or a file such as report.md.j2"
        draft.complain(loc, f"there is no template {path.name!r}", hint)
        return
    try:
        problems = list(template.problems(path))
    except UserError as error:
        draft.complain(loc, error.problems[0].message, "write a path relative to the workflow file")
        return
    for line, message, hint in problems:
        draft.complain(loc, f"{path.name}:{line}: {message}", hint)


def open_workflow(name: str, settings: Sequence[str] = (), text: str | None = None) -> Opened:
    """Find, read, check and plan a workflow. Raises UserError only if there is nothing to check.

    ``text``: content of the file, if it is not written yet.
    """
    with within_time(f"reading {name}"):
        library = Library(repository.project_here())
        path = library.find(name)
        root = library.root
        if library.origin(path) == PROJECT:
            root = repository.root_of(path.parent) or Path.cwd()
            library = library if root == library.root else Library(root)
        draft = load(path, library.resolve, library.readable(path), text)
        params, wrong = parameter_values(draft.workflow.params or {}, settings)
        draft.problems += wrong
        _check_template(draft)
        declared_tool.attach_tools(draft, library.tool)
        criteria = checks.check(draft, params)
        checks.check_command(draft, params)
        plan = planning.make(draft, criteria, params)
        coverage.check(draft, plan)
        coverage.check_duplicate_metrics(draft, plan)
        return Opened(path, root.resolve(), draft, plan, library)


def select(
    plan: Plan, stages: Sequence[str], only: Sequence[str], start: str | None, benchmarks: Sequence[str] = ()
) -> frozenset[str]:
    """Return the ids of the steps to run: all, those of some stages, single steps, or all from one step on.

    Steps that measure or profile other benchmarks than the globs ``benchmarks`` are left out, as far as their names are
    known. Raises UserError for an unknown name, and for a selection without steps.
    """
    selected = _select(plan, stages, only, start)
    if benchmarks:
        known_names.require_choosable(plan, benchmarks, selected)
        selected -= {item.id for item in plan.steps if not known_names.may_be_chosen(plan, item, benchmarks)}
    return selected


def _select(plan: Plan, stages: Sequence[str], only: Sequence[str], start: str | None) -> frozenset[str]:
    _require_known(stages, list(plan.workflow.stages), "stage")
    names = [item.id for item in plan.steps] + [item.step.id for item in plan.steps]
    _require_known([*only, *([start] if start else [])], names, "step")
    if only:
        chosen = {item.id for item in plan.steps if item.id in only or item.step.id in only}
        # What perfflow counts for targets belongs to the step whose benchmarks it counts.
        return frozenset(chosen | {item.id for item in plan.steps if item.for_targets and item.watches in chosen})
    left: list[Planned] = list(plan.steps)
    if start:
        first = next(number for number, item in enumerate(left) if start in (item.id, item.step.id))
        left = left[first:]
    selected = frozenset(item.id for item in left if not stages or item.stage in stages)
    if stages and not selected:
        raise _nothing_selected(plan, stages, start)
    return selected


def _nothing_selected(plan: Plan, stages: Sequence[str], start: str | None) -> UserError:
    if not start or not any(item.stage in stages for item in plan.steps):
        return UserError.of(f"--stage {', '.join(stages)}: no step is selected", "name a stage that has steps")
    at = next(number for number, item in enumerate(plan.steps) if start in (item.id, item.step.id))
    later = list(dict.fromkeys(item.stage for item in plan.steps[at:]))
    hint = f"stages with steps from {start} on: {', '.join(later)}"
    return UserError.of("--from and --stage have no step in common", hint)


def _require_known(given: Sequence[str], known: Collection[str], kind: str) -> None:
    for name in given:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"{kind}s: {', '.join(dict.fromkeys(known))}"
            raise UserError.of(f"the workflow has no {kind} {name!r}", hint)
