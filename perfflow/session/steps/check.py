"""Correctness steps: compare outputs, assert figures, or check an exit status."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from perfflow.execute.invoke import Failure, written
from perfflow.execute.prepare import ready
from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Reading, Side
from perfflow.model.units import format_quantity, parse_requirement
from perfflow.plan.plan import Planned
from perfflow.session.bench import read_figures
from perfflow.session.own_code import run_check
from perfflow.session.same_outputs import same_outputs
from perfflow.session.session import RunSession
from perfflow.session.steps.work import command, work
from perfflow.tools.shell import same_output


def check(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Perform a correctness step."""
    if planned.tool:
        of_tool = same_outputs if planned.tool.name == same_output.ADAPTER.name else _by_tool
        run.detail = of_tool(session, planned, run)
        return
    if planned.step.assert_ is None or planned.step.parse is None:
        work(session, planned, run)
        return
    before = written(session.parsed_file(planned, Side.BASELINE))
    folder = command(session, planned, run)
    prepared = ready(session.context, planned, Side.BASELINE, folder)
    readings = read_figures(planned.step.parse, folder / "stdout", prepared.cwd, before, prepared.timeout)
    run.detail = _assert_figures(session, planned.step.assert_, readings)


def _by_tool(session: RunSession, planned: Planned, run: StepRun) -> str:
    """Run a checking tool once per side. It passes if its adapter finds no error and its figures meet ``assert``."""
    said = []
    for side in session.sides_of(planned):
        invoked = run_check(session.prepare(planned, side, run), run, partial(session.start, run=run))
        run.exit_code = invoked.exit_code
        run.warnings += [f"{side.value}: {text}" for text in invoked.parsed.warnings]
        required = planned.step.declared.source.assert_ if planned.step.declared else None
        found = _assert_figures(session, required or {}, invoked.parsed.readings)
        said.append(f"{side.value}: {found or f'exit status {invoked.exit_code}'}")
    return "; ".join(said)


def _assert_figures(session: RunSession, required: Mapping[str, Any], readings: tuple[Reading, ...]) -> str:
    """Compare parsed figures with the requirements of ``assert``. Raises Failure at the first violation."""
    said = []
    for name, text in required.items():
        metric = session.context.plan.criteria.metric(name)
        requirement = parse_requirement(text, metric.dimension)
        values = [item for item in readings if item.metric == name]
        if not values:
            raise Failure(f"the output has no `{name}`", exit_code=0)
        for item in values:
            ends = [item.inner.get("max", item.value), item.inner.get("min", item.value)]
            failing = [value for value in ends if not requirement.holds_at(value)]
            worst = format_quantity((failing or ends)[0], metric.dimension, unit=requirement.unit)
            what = f"{name} of {item.benchmark}" if item.benchmark else name
            if failing:
                raise Failure(f"{what} is {worst}, required {requirement.text}", exit_code=0)
            said.append(f"{what} = {worst}, required {requirement.text}")
    return "; ".join(said)
