"""What an interrupted run has done already, read from its events, so that nothing of it is done again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from perfflow.machine.facts import IDENTITY, facts
from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.model.secrets import MASK
from perfflow.store import folder as rundir
from perfflow.store.record import Record

_DONE = ("done", "cached")


@dataclass(frozen=True)
class Earlier:
    """Steps that are done with their outputs, all samples, and what was measured; empty where the run is new."""

    seed: int = 0
    done: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    samples: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)

    def samples_of(self, step_id: str) -> Sequence[Mapping[str, Any]]:
        """The samples that a step has taken, in their order."""
        return self.samples.get(step_id, ())

    def files_of(self, step_id: str) -> Mapping[str, list[str]] | None:
        """Hashes of what a step that has taken samples executes."""
        return self.files.get(step_id) if self.samples_of(step_id) else None


def earlier(path: Path, digest: str, selected: frozenset[str], *, elsewhere: bool = False) -> Earlier:
    """Read what the run in a folder has done; ``elsewhere``: on other machines, so that this one may be any.

    Raises UserError where the workflow, its parameters or the machine are not what they were, and for damaged events.
    """
    record, samples, files = Record(), dict[str, list[Mapping[str, Any]]](), dict[str, Mapping[str, list[str]]]()
    try:
        for event in rundir.events(path):
            record.fold(event)
            if event.get("event") == "sample":
                samples.setdefault(event["step"], []).append(event)
            elif event.get("event") == "measuring":
                files[event["step"]] = event["files"]
        _require_same(record, digest, path, elsewhere=elsewhere)
        done = {name: step.outputs for name, step in record.steps.items() if step.status in _DONE}
        # What a later step is to get was not kept, so the step runs again.
        done = {name: outputs for name, outputs in done.items() if not any(MASK in text for text in outputs.values())}
        seed = int(record.run.seed)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{path / rundir.EVENTS}: not what this version of perfflow writes ({type(error).__name__}: {error})"
        raise UserError.of(text, "start a new run without --resume") from error
    return Earlier(seed, {name: outputs for name, outputs in done.items() if name in selected}, samples, files)


def trees(path: Path) -> Mapping[str, Any]:
    """What the run in a folder said of its trees when it began; empty where its events do not tell."""
    try:
        opening = next((event for event in rundir.events(path) if event.get("event") == "run"), {})
    except UserError:
        return {}
    found = opening.get("trees")
    return found if isinstance(found, dict) else {}


def _require_same(record: Record, digest: str, path: Path, *, elsewhere: bool) -> None:
    if record.run.digest != digest:
        text = f"{path}: the workflow or its parameters are not those of this run of {record.run.file}"
        hint = "undo the change, name another run with --resume=RUN, or start a new run without --resume"
        raise UserError.of(text, hint)
    here = facts()
    differing = [name for name in IDENTITY if record.machine.get(name) != here[name]]
    if differing and not elsewhere:
        text = f"{path}: this run was started on another machine (other {', '.join(differing)})"
        raise UserError.of(text, "samples of two machines are not mixed; start a new run without --resume")
