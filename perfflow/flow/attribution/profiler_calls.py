"""The calls of one profiler on one benchmark: one a side, or of a sampling one as many as its shares need.

The sides take turns, so that what the machine does meanwhile falls on both. Short programs are run several times within
one recording. Source of the numbers: a share of 5% of 2000 samples is known to half a percentage point.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfflow.errors import ToolOutputError
from perfflow.flow.attribution.function_costs import SAMPLING, FunctionCosts
from perfflow.flow.attribution.profiled import Choice, Subject, step_of
from perfflow.flow.evidence import Evidence, flatness
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned, has_command
from perfflow.run import invoke
from perfflow.run.prepare import Ready, operations, ready
from perfflow.run.schedule import StepRun
from perfflow.rundir.folder import file_name
from perfflow.samples.readings import Parsed, Side, Usage
from perfflow.tools.adapter import Invocation
from perfflow.tools.linux import perf_stacks

SAMPLES = 2000
"""Samples wanted of each side."""
PATIENCE = 20.0
"""Seconds of the program's own time for each side, within which they are taken."""
CALLS = 6
"""Calls of each side, where there is time: how they differ says what the samples' noise alone does not."""
TRACED = 10
"""Calls of a tracing profiler, whose times have no noise that can be reckoned."""
_FREQUENCIES = ((0.5, 4999), (10.0, 997), (math.inf, 197))
"""Samples per second by the program's seconds: odd ones, which fall in step with nothing."""
_OF_A_SUITE = 0.2
"""Seconds of a suite's process at least, when it runs one benchmark briefly."""
_MOST_RUNS = 200
"""Runs of the program in one recording, whose text must be read."""
_REPEATED = 'n=$1; shift; while [ "$n" -gt 0 ]; do "$@" || exit; n=$((n - 1)); done'
_REPEATING = ("/bin/sh", "-c", _REPEATED, "sh")


@dataclass(frozen=True, slots=True)
class Effort:
    """How a benchmark is profiled: so many calls of a side, each with so many runs of the program, at a frequency."""

    calls: int
    runs: int
    frequency: int


def effort_for(tool: str, seconds: float, frequency: int | None = None) -> Effort:
    """What a program of so many seconds needs under a profiler; ``frequency`` is the workflow's own, if it says one."""
    chosen = frequency or next(rate for limit, rate in _FREQUENCIES if seconds <= limit)
    if tool == "cprofile":
        return Effort(max(1, min(TRACED, int(PATIENCE / max(seconds, 1e-3)))), 1, chosen)
    calls = max(1, min(CALLS, int(PATIENCE / max(seconds, 1e-3))))
    wanted = SAMPLES / calls / max(seconds * chosen, 1e-9)
    affordable = PATIENCE / calls / max(seconds, 1e-3)
    return Effort(calls, max(1, math.ceil(min(wanted, affordable))) if tool == "perf" else 1, chosen)


class ProfilerCalls:
    """Profiles one benchmark and keeps what is evidence of it."""

    def __init__(self, shop: Workshop, planned: Planned, subject: Subject, choice: Choice, run: StepRun) -> None:
        self._shop, self._run, self._subject, self._tool = shop, run, subject, choice.tool
        self._step = step_of(planned, subject, choice.tool)
        self._declared = planned
        counts = operations(shop.scene, subject.source)
        self.costs = FunctionCosts(shop, subject.benchmark, choice.tool, counts[-1] if counts else None, choice.note)
        self.evidence = Evidence(shop, self._step, subject.benchmark)
        # Where one step profiles several benchmarks, each has a folder; so has a tool that stands in for another one,
        # since it may have had a turn of its own.
        name = f"{subject.benchmark} {choice.tool.name}" + (f" {subject.metric}" if choice.note else "")
        self._folder = shop.folder.step(planned.id) / file_name(name)

    def profile(self, seconds: float) -> None:
        """Profile every side of a program that takes so many ``seconds``. Raises Failure and PreparationError."""
        sides = self._shop.sides_of(self._subject.source)
        # What a suite measures is one iteration; its process goes on until it has enough of them.
        seconds = max(seconds, _OF_A_SUITE) if self._subject.only else seconds
        options = self._declared.step.with_
        own = next((int(options[key]) for key in ("frequency", "rate") if str(options.get(key, "")).isdecimal()), None)
        # A counting profiler says the same every time, and of one program, or of two that differ as a whole, nothing is
        # told function by function.
        many = not self._tool.deterministic and bool(self._shop.scenes)
        effort = effort_for(self._tool.name, seconds, own) if many else Effort(1, 1, own or 0)
        taken: dict[Side, list[str]] = {side: [] for side in sides}
        last: dict[Side, tuple[Ready, Parsed]] = {}
        number, ends = 0, time.monotonic() + PATIENCE * len(sides)
        while number < effort.calls or (many and self._wants_more(sides) and time.monotonic() < ends):
            for side in sides if number % 2 == 0 else sides[::-1]:
                prepared = self._prepared(side, effort)
                invoked = invoke.run(self._shop.attendant(), prepared, self._folder / side.value)
                self.costs.add(prepared, invoked.parsed)
                last[side] = (prepared, invoked.parsed)
                script = self._folder / side.value / perf_stacks.SCRIPT
                if effort.calls > 1 and script.is_file():
                    taken[side].append(script.read_text(encoding="utf-8", errors="replace"))
            number += 1
            effort = replace(effort, runs=self._runs(sides, effort, number))
        for side, (prepared, parsed) in last.items():
            self._keep(prepared, self._together(prepared, parsed, taken[side]), sides)

    def _wants_more(self, sides: Sequence[Side]) -> bool:
        """Whether a side has too few samples, as where the program had to wait for a core while it was timed."""
        return self._tool.name in SAMPLING and min(self.costs.samples(side) for side in sides) < SAMPLES

    def _runs(self, sides: Sequence[Side], effort: Effort, done: int) -> int:
        """Runs of the program in each of the calls to come, by how many samples those so far gave."""
        if self._tool.name != "perf" or not self._wants_more(sides):
            return effort.runs
        have = min(self.costs.samples(side) for side in sides)
        missing = (SAMPLES - have) / max(1, effort.calls - done)
        return max(1, min(_MOST_RUNS, math.ceil(effort.runs * missing / max(1.0, have / done))))

    def _prepared(self, side: Side, effort: Effort) -> Ready:
        folder = self._folder / side.value
        folder.mkdir(parents=True, exist_ok=True)
        with_ = dict(self._declared.step.with_)
        fields = self._tool.options.model_fields
        for key in ("frequency", "rate"):
            if key in fields and effort.frequency:
                with_.setdefault(key, min(effort.frequency, 1000 if key == "rate" else effort.frequency))
        step = self._step.step.model_copy(update={"with_": with_, "uses": self._tool.name})
        prepared = ready(self._shop.scene_of(side), replace(self._step, step=step), side, folder)
        alone = self._alone(side, folder)
        command = alone.argv if alone else prepared.argv
        if alone:
            prepared = replace(prepared, env={**prepared.env, **alone.env}, cwd=prepared.cwd / alone.cwd)
        if effort.runs > 1:
            command = (*_REPEATING, str(effort.runs), *command)
        call = replace(prepared.call, command=tuple(command)) if prepared.call else None
        prepared = replace(prepared, call=call, argv=tuple(command))
        if not self._run.argv:
            self._run.argv = list(prepared.shown)
        self._run.log = str((folder / "stderr").relative_to(self._shop.folder.path))
        return prepared

    def _alone(self, side: Side, folder: Path) -> Invocation | None:
        """How a suite runs the benchmark alone, or as a whole where it cannot, as it was built for measuring.

        None for a step that says its command. Raises Failure where it was not built.
        """
        source = self._subject.source
        if has_command(source.step) or not (self._subject.only or (source.tool and source.tool.is_built_first)):
            return None
        prepared = ready(self._shop.scene_of(side), source, side, folder, only=self._subject.only)
        if prepared.call:
            built = ready(self._shop.scene_of(side), source, side, self._shop.folder_of(source, side)).call
            prepared = replace(prepared, call=replace(prepared.call, kept=built.kept if built else None))
        try:
            first = prepared.invocations()[0]
        except ToolOutputError as error:
            raise invoke.Failure(str(error)) from error
        return replace(first, env={**prepared.env, **first.env}, cwd=str(prepared.cwd / first.cwd))

    def _together(self, prepared: Ready, parsed: Parsed, texts: Sequence[str]) -> Parsed:
        """What all recordings of a side say; of other profilers than perf the last call stands for them."""
        if len(texts) < 2 or prepared.tool is None or prepared.call is None:
            return parsed
        whole = prepared.call.folder / perf_stacks.SCRIPT
        whole.write_text("\n".join(texts), encoding="utf-8")
        return prepared.tool.parse(prepared.call, Usage(0.0))

    def _keep(self, prepared: Ready, parsed: Parsed, sides: Sequence[Side]) -> None:
        self.evidence.add(prepared, parsed)
        said = [*parsed.warnings, *flatness(parsed)]
        if self._tool.name in SAMPLING and len(sides) == 2:
            said.append(f"{self.costs.samples(prepared.side):,.0f} samples")
        self._run.warnings += [f"{self._subject.benchmark}, {prepared.side.value}: {text}" for text in said]

    def details(self) -> dict[str, list[Any]]:
        """What is stored of the step: profiles, hotspots, and what functions cost on both sides."""
        return {**self.evidence.details(), **self.costs.details()}
