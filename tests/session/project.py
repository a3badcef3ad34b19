"""A project in a folder, whose workflow runs as in ``perfflow run``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfflow.cli.console import ProgressDisplay
from perfflow.execute.schedule import StepRun
from perfflow.jobs.run.run import FinishedRun, RunRequest, run
from perfflow.machine.lock import LockQueue
from perfflow.model.result import Benchmark, Result, Sample, StepResult
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import SamplingProgress
from perfflow.session.open_workflow import Opened, open_workflow
from tests.repositories import git


def flow(head: str = "", /, **stages: str | Sequence[str]) -> str:
    """Return a workflow with these lines at its head, and in each stage a step or several."""
    lines = [*([head] if head else []), "stages:"]
    for name, steps in stages.items():
        lines += [f"  {name}:", *(f"    - {step}" for step in ([steps] if isinstance(steps, str) else steps))]
    return "\n" + "\n".join(lines) + "\n"


MS = 'parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}'
"""How the milliseconds are read that a step prints."""


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

    def git(self, *words: str) -> str:
        return git(self.folder, *words)

    def commit(self, files: Mapping[str, str] | None = None, subject: str = "change") -> str:
        """Commit everything, also what these files now contain; return the revision."""
        for name, text in (files or {}).items():
            self.write(name, text, executable=text.startswith("#!"))
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD").strip()

    def branch(self, files: Mapping[str, str] | None = None) -> str:
        """Commit these files to the new branch ``topic``; return the revision."""
        self.git("checkout", "-qb", "topic")
        return self.commit(files)

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


def both(row: Benchmark) -> tuple[Sample, Sample]:
    """Return what was measured of the two sides of a row that has both."""
    assert row.baseline
    assert row.candidate
    return row.baseline, row.candidate


def change_of(row: Benchmark) -> float:
    """Return the estimated change of a row that has one."""
    assert row.change
    assert row.change.value is not None
    return row.change.value


def samples(result: Result, name: str, metric: str) -> list[float]:
    side = row(result, name, metric).baseline
    return side.samples if side else []


def cut(folder: Path, keep: int, torn: str = "") -> None:
    """Leave the events as kill -9 would: a number of samples, and perhaps a part of the next line."""
    lines = (folder / "events.jsonl").read_text().splitlines()
    places = [number for number, line in enumerate(lines) if '"event":"sample"' in line]
    end = places[keep - 1] + 1 if keep else places[0]
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines[:end]) + torn)
