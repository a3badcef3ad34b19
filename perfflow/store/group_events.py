"""Parts of a run that were measured on other machines: one event per job, which stands for the events of its folder.

So a run contains all measurements of a job or none, even if the collecting process is killed. A group that was measured
again counts once, by its last job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfflow.model.plain_data import to_json
from perfflow.store.run_facts import StepFindings, StepRecord

GROUP = "group"
_OF_THE_JOB = ("run", "resumed", "interrupted", "end", GROUP)
"""Events of a job that concern only its own run."""
_WORST = ("failed", "timeout", "skipped", "done", "cached")
"""Statuses by importance. A step of which one group had no part was skipped there, which does not matter."""


@dataclass(frozen=True)
class GroupJob:
    """The job that measured a group: its folder relative to the run's, its node, and how it ended.

    ``job`` is the number in the cluster's scheduler, ``machine`` the node's facts, ``seconds`` its duration, ``lost``
    why an earlier attempt did not finish. ``built`` is the folder of its build, if this job built the trees.
    """

    group: str
    attempt: int
    folder: str
    state: str
    node: str
    job: str = ""
    seconds: float = 0.0
    lost: str = ""
    reason: str = ""
    built: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)

    def event(self) -> dict[str, Any]:
        """Return the event that stands for the events of the job."""
        return {"event": GROUP, **to_json(self)}


def with_groups(
    path: Path, events: Iterable[dict[str, Any]], read: Callable[[Path], Iterator[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """Yield the events of a run's folder, each job event followed by the events of its folder, which ``read`` reads."""
    last: dict[str, int] | None = None
    for event in events:
        if event.get("event") != GROUP:
            yield event
            continue
        if last is None:
            last = _last_attempts(path)
        if event["attempt"] == last.get(event[GROUP]):
            # A process that was stopped while it collected a job may have written its event twice.
            del last[event[GROUP]]
            yield event
            for folder in filter(None, (event.get("built"), event["folder"])):
                its_own = (own for own in read(path / folder) if own.get("event") not in _OF_THE_JOB)
                yield from (_of_group(event[GROUP], folder, own) for own in its_own)


def _last_attempts(path: Path) -> dict[str, int]:
    """Return the last attempt of each group; earlier attempts do not count."""
    found: dict[str, int] = {}
    beginning = f'{{"event":"{GROUP}"'.encode()
    with (path / "events.jsonl").open("rb") as stream:
        for line in stream:
            if line.startswith(beginning) and line.endswith(b"\n"):
                event = json.loads(line)
                found[event[GROUP]] = event["attempt"]
    return found


def _of_group(group: str, folder: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return an event as one of the whole run: with its group, and with paths relative to the run's folder."""
    event[GROUP] = group
    _move(event, ("log",), folder)
    for item in event.get("profiles", ()):
        _move(item, ("path",), folder)
    for item in event.get("optimizations", ()):
        _move(item, ("log", "diff_file"), folder)
    return event


def _move(item: dict[str, Any], keys: Sequence[str], folder: str) -> None:
    for key in keys:
        if item.get(key):
            item[key] = f"{folder}/{item[key]}"


def _rank(step: StepRecord) -> int:
    has_no_part = step.status == "skipped" and not step.not_started
    return len(_WORST) if has_no_part or step.status not in _WORST else _WORST.index(step.status)


def merged(one: StepRecord, other: StepRecord) -> StepRecord:
    """Merge the records of a step that two groups performed in parts."""
    worst = min(one, other, key=_rank)
    both = {name: getattr(one, name) + getattr(other, name) for name in StepFindings.__dataclass_fields__}
    like_it = [step for step in (one, other) if step.status == worst.status]
    both["devices"] = tuple(dict.fromkeys(both["devices"]))
    return replace(
        worst,
        reason="; ".join(dict.fromkeys(step.reason for step in like_it if step.reason)),
        seconds=one.seconds + other.seconds,
        waited=one.waited + other.waited,
        warnings=tuple(dict.fromkeys((*one.warnings, *other.warnings))),
        identical=one.identical and other.identical,
        **both,
    )
