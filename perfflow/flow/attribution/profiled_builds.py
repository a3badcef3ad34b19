"""What profilers run of a suite that is built first: as it was measured, or built again where that tells no lines.

What is measured stays as its author ships it. Both sides are built again or none, so that what is compared is alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run import invoke
from perfflow.run.invoke import Failure
from perfflow.run.prepare import Ready, ready
from perfflow.run.schedule import StepRun
from perfflow.samples.readings import Side


class ProfiledBuilds:
    """The builds of one profiling step, each made when it is first asked for."""

    def __init__(self, shop: Workshop, run: StepRun) -> None:
        self._shop, self._run = shop, run
        self._places: dict[str, Mapping[Side, Path]] = {}

    def place(self, source: Planned, side: Side) -> Path:
        """Where the step ``source`` has what is to be profiled of a side. Raises Failure where it was not built."""
        if source.id not in self._places:
            self._places[source.id] = self._built(source)
        return self._places[source.id][side]

    def _built(self, source: Planned) -> Mapping[Side, Path]:
        shop, tool = self._shop, source.tool
        measured: dict[Side, Ready] = {}
        places: dict[Side, Path] = {}
        lacking = False
        for side in shop.sides_of(source):
            measured[side] = prepared = ready(shop.scene_of(side), source, side, shop.folder_of(source, side))
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
                invoke.prepare(self._shop.attendant(), replace(prepared, call=call))
            except Failure as failure:
                self._run.warnings.append(
                    f"{self._shop.where(side)}`{source.id}` does not build with source lines, so profiles are of what "
                    f"was measured: {failure.reason}"
                )
                return places
        return found
