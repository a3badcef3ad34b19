"""What was measured on other machines as part of a run: one event for each job, which stands for those of its folder.

So a job's figures are in a run as a whole or not at all, whenever whoever collects them is killed; and a group that was
measured again counts once, by its last job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from perfflow.model.later import dataclass
from perfflow.model.plain_data import to_json
from perfflow.store.run_facts import Found, StepRecord

GROUP = "group"
_OF_THE_JOB = ("run", "resumed", "interrupted", "end", GROUP)
"""Events that are about a job as a run of its own."""
_WORST = ("failed", "timeout", "skipped", "done", "cached")


@dataclass(frozen=True)
class GroupJob:
    """The job that measured a group: where its folder lies in the run's, on which node, and how it ended.

    ``job`` is the engine's number, ``machine`` the node's facts, ``seconds`` how long it took, ``lost`` why an earlier
    attempt did not come to its end. ``built`` is the folder of its build, where it was the one that built the trees.
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
        """The event that stands for the job's."""
        return {"event": GROUP, **to_json(self)}


def with_groups(
    path: Path, events: Iterable[dict[str, Any]], read: Callable[[Path], Iterator[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """The events of a run's folder, and behind each of a job those that it stands for. ``read`` reads a folder's."""
    last: dict[str, int] | None = None
    for event in events:
        if event.get("event") != GROUP:
            yield event
            continue
        if last is None:
            last = _last_attempts(path)
        if event["attempt"] == last.get(event[GROUP]):
            # Whoever is stopped while it collects a job may do it twice.
            del last[event[GROUP]]
            yield event
            for folder in filter(None, (event.get("built"), event["folder"])):
                its_own = (own for own in read(path / folder) if own.get("event") not in _OF_THE_JOB)
                yield from (_of_group(event[GROUP], folder, own) for own in its_own)


def _last_attempts(path: Path) -> dict[str, int]:
    """The last attempt of each group, so that what an earlier one measured is not counted beside it."""
    found: dict[str, int] = {}
    beginning = f'{{"event":"{GROUP}"'.encode()
    with (path / "events.jsonl").open("rb") as stream:
        for line in stream:
            if line.startswith(beginning) and line.endswith(b"\n"):
                event = json.loads(line)
                found[event[GROUP]] = event["attempt"]
    return found


def _of_group(group: str, folder: str, event: dict[str, Any]) -> dict[str, Any]:
    """An event as one of the whole run: it names its group, and its files are found from the run's folder."""
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


def merged(one: StepRecord, other: StepRecord) -> StepRecord:
    """A step that two groups performed, each its part of it, as one step."""
    worst = min(one, other, key=lambda step: _WORST.index(step.status) if step.status in _WORST else len(_WORST))
    both = {name: getattr(one, name) + getattr(other, name) for name in Found.__dataclass_fields__}
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
