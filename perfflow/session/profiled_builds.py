"""Executables that profilers run, of a suite that is built first: the measured ones, or a rebuild with source lines.

The measured builds stay as they are. Either both sides are rebuilt or neither, so that the profiles are comparable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.invoke import Failure, adapter_failures
from perfflow.execute.prepare import ReadyProcess, ready
from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession


class ProfiledBuilds:
    """The builds of one profiling step, each made on first use."""

    def __init__(self, session: RunSession, run: StepRun) -> None:
        self._session, self._run = session, run
        self._places: dict[str, Mapping[Side, Path]] = {}

    def place(self, source: Planned, side: Side) -> Path:
        """Return the folder with the executables of ``source`` to profile on a side. Raises Failure if not built."""
        if source.id not in self._places:
            self._places[source.id] = self._built(source)
        return self._places[source.id][side]

    def _built(self, source: Planned) -> Mapping[Side, Path]:
        session, tool = self._session, source.tool
        measured: dict[Side, ReadyProcess] = {}
        places: dict[Side, Path] = {}
        lacking = False
        for side in session.sides_of(source):
            measured[side] = prepared = ready(
                session.tree_context_of(side), source, side, session.folder_of(source, side)
            )
            if tool is None or prepared.call is None:
                raise Failure(f"step `{source.id}` uses no tool")
            places[side] = prepared.call.place
            with adapter_failures(tool):
                lacking = tool.build.lacks_lines(prepared.call) or lacking
        return self._again(source, measured, places) if lacking else places

    def _again(
        self, source: Planned, measured: Mapping[Side, ReadyProcess], places: Mapping[Side, Path]
    ) -> Mapping[Side, Path]:
        """Build every side with source lines; if one does not build, use the measured builds of all sides."""
        rebuilt: dict[Side, Path] = {}
        for side, prepared in measured.items():
            rebuilt[side] = places[side].with_name(f"{side.value}-with-lines")
            call = replace(prepared.call, kept=rebuilt[side], built=places[side]) if prepared.call else None
            try:
                invoke.prepare(self._session.spawner(), replace(prepared, call=call))
            except Failure as failure:
                self._run.warnings.append(
                    f"{self._session.where(side)}`{source.id}` does not build with source lines, so the measured "
                    f"build is profiled: {failure.reason}"
                )
                return places
        return rebuilt
