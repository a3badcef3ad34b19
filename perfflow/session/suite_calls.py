"""Run a suite, or one of its benchmarks alone, under another tool; for a counting tool a fixed number of times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess, ready
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.profiled_builds import ProfiledBuilds
from perfflow.session.session import RunSession
from perfflow.session.suite_clock import compiled
from perfflow.tools.adapter import Call, Effort


class SuiteCalls:
    """The calls of the suite that the step ``source`` runs.

    ``builds``: the executables to run, if it is built first.
    """

    def __init__(self, session: RunSession, source: Planned, builds: ProfiledBuilds) -> None:
        self._session, self._source, self._builds = session, source, builds

    def call(self, side: Side, folder: Path, only: str, iterations: int = 0) -> Call:
        """Return the call that runs a benchmark alone, or the whole suite with ''.

        Raises Failure if it was not built.
        """
        tool, call = self._source.tool, self._ready(side, folder, only).call
        if tool is None or call is None:
            raise Failure(f"step `{self._source.id}` uses no tool")
        kept = self._builds.place(self._source, side) if tool.is_built_first else None
        effort = Effort.SAMPLED if only and not iterations else call.effort
        clock = self._stepping_clock(side) if tool.suite.steps_clock else None
        return replace(call, kept=kept, folder=folder, iterations=iterations, effort=effort, clock=clock)

    def _stepping_clock(self, side: Side) -> Path | None:
        step_id = self._source.id
        prepared = self._ready(side, self._session.folder.step(step_id), "")
        return compiled(self._session, step_id, "stepping_clock", prepared)

    def counts(self, sides: Iterable[Side], folder: Path, only: str, seconds: float) -> tuple[int, ...]:
        """Return two numbers of iterations that a benchmark can run on every side; () if a side cannot.

        seconds: of one iteration.
        """
        tool = self._source.tool
        with invoke.adapter_failures(tool):
            found = {
                tool.suite.iteration_counts(self.call(side, folder, only), seconds) if tool else () for side in sides
            }
        return found.pop() if len(found) == 1 else ()

    def under(self, prepared: ReadyProcess, call: Call) -> ReadyProcess:
        """Return the call ``prepared`` of another tool, whose command is now what the suite's ``call`` starts.

        Raises Failure.
        """
        suite = replace(self._ready(prepared.side, call.folder, call.only), call=call)
        with invoke.adapter_failures(self._source.tool):
            first = suite.invocations()[0]
        # The call watches the suite's step, so it has the environment of the suite.
        env, cwd = {**prepared.env, **first.env}, suite.cwd / first.cwd
        harness = self._source.tool.suite.harness if self._source.tool else ""
        other = prepared.call and replace(prepared.call, command=first.argv, harness=harness, chosen=call.chosen)
        return replace(prepared, argv=first.argv, env=env, cwd=cwd, call=other)

    def iterated(self, call: Call) -> str:
        """Return a text that is equal on both sides if they ran equally many iterations. Raises Failure."""
        with invoke.adapter_failures(self._source.tool):
            return self._source.tool.suite.iterated(call) if self._source.tool else ""

    def _ready(self, side: Side, folder: Path, only: str) -> ReadyProcess:
        return ready(self._session.tree_context_of(side), self._source, side, folder, chosen=(only,) if only else ())
