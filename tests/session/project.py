"""A project in a folder, whose workflow runs as in ``perfflow run``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfflow.cli.console import ProgressDisplay
from perfflow.execute.schedule import StepRun
from perfflow.jobs.run.run import FinishedRun, RunRequest, run
from perfflow.machine.lock import LockQueue
from perfflow.model.result import Benchmark, Result, StepResult
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import SamplingProgress
from perfflow.session.open_workflow import Opened, open_workflow


@dataclass
class ProgressRecorder(ProgressDisplay):
    """Records the progress of a run."""

    waited_for: list[LockQueue] = field(default_factory=list)
    when_waiting: Callable[[], None] = lambda: None
    ended_steps: list[StepRun] = field(default_factory=list)
    steps_to_come: list[str] = field(default_factory=list)
    granted_to: list[str] = field(default_factory=list)
    taken: list[SamplingProgress] = field(default_factory=list)
    started_steps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        assert folder.is_dir()
        self.steps_to_come = [item.id for item in steps]
        self.started_steps = []

    def started(self, planned: Planned) -> None:
        self.started_steps.append(planned.id)

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
        self.waited_for.append(queue)
        assert planned.alone
        self.when_waiting()

    def granted(self, planned: Planned) -> None:
        self.granted_to.append(planned.id)

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:
        assert planned.id in self.steps_to_come
        self.taken.append(taken)

    def ended(self, run: StepRun) -> None:
        self.ended_steps.append(run)

    def noted(self, text: str) -> None:
        assert self.steps_to_come
        assert not self.started_steps, "said after the measuring had begun"
        self.notes.append(text)


@dataclass
class Project:
    """``folder``: the current folder of the test."""

    folder: Path
    told: ProgressRecorder = field(default_factory=ProgressRecorder)

    def write(self, name: str, text: str, *, executable: bool = False) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if executable:
            path.chmod(0o755)
        return path

    def open(self, text: str, *settings: str) -> Opened:
        opened = open_workflow(str(self.write("flow.yaml", f"perfflow: 1\n{text}")), settings)
        opened.require_usable(to_run=True)
        return opened

    def finish(self, text: str, *settings: str, **asked: Any) -> FinishedRun:
        return run(self.open(text, *settings), RunRequest(**{"seed": 1, **asked}), self.told)

    def run(self, text: str, *settings: str, **asked: Any) -> Result:
        return self.finish(text, *settings, **asked).result

    def events(self) -> list[dict[str, Any]]:
        lines = (self.folder / ".perfflow" / "runs" / "latest" / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def step(result: Result, step_id: str) -> StepResult:
    return next(item for item in result.steps if item.id == step_id)


def row(result: Result, name: str, metric: str) -> Benchmark:
    return next(item for item in result.benchmarks if (item.name, item.metric) == (name, metric))


def samples(result: Result, name: str, metric: str) -> list[float]:
    side = row(result, name, metric).baseline
    return side.samples if side else []
