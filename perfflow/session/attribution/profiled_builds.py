"""What profilers run of a suite that is built first: as it was measured, or built again where that tells no lines.

What is measured stays as its author ships it. Both sides are built again or none, so that what is compared is alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import Ready, ready
from perfflow.execute.schedule import StepRun
from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession


class ProfiledBuilds:
    """The builds of one profiling step, each made when it is first asked for."""

    def __init__(self, session: RunSession, run: StepRun) -> None:
        self._session, self._run = session, run
        self._places: dict[str, Mapping[Side, Path]] = {}

    def place(self, source: Planned, side: Side) -> Path:
        """Where the step ``source`` has what is to be profiled of a side. Raises Failure where it was not built."""
        if source.id not in self._places:
            self._places[source.id] = self._built(source)
        return self._places[source.id][side]

    def _built(self, source: Planned) -> Mapping[Side, Path]:
        session, tool = self._session, source.tool
        measured: dict[Side, Ready] = {}
        places: dict[Side, Path] = {}
        lacking = False
        for side in session.sides_of(source):
            measured[side] = prepared = ready(
                session.tree_context_of(side), source, side, session.folder_of(source, side)
            )
            if tool is None or prepared.call is None:
                raise Failure(f"step `{source.id}` uses no tool")
            places[side] = prepared.call.place
            try:
                lacking = tool.lacks_lines(prepared.call) or lacking
            except ToolOutputError as error:
                raise Failure(str(error)) from error
        return self._again(source, measured, places) if lacking else places

    def _again(
        self, source: Planned, measured: Mapping[Side, Ready], places: Mapping[Side, Path]
    ) -> Mapping[Side, Path]:
        """Build every side with source lines; where one does not build, what was measured stands for all."""
        found: dict[Side, Path] = {}
        for side, prepared in measured.items():
            found[side] = places[side].with_name(f"{side.value}-with-lines")
            call = replace(prepared.call, kept=found[side], built=places[side]) if prepared.call else None
            try:
                invoke.prepare(self._session.spawner(), replace(prepared, call=call))
            except Failure as failure:
                self._run.warnings.append(
                    f"{self._session.where(side)}`{source.id}` does not build with source lines, so profiles are of "
                    f"what was measured: {failure.reason}"
                )
                return places
        return found
