"""Stored calibrations: comparisons of steps with themselves, in one file per machine beside the runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from perfflow.model.errors import UserError
from perfflow.model.result import Expected
from perfflow.store import run_folder
from perfflow.store.run_folder import only_writer

SCHEMA: Literal["perfflow.calibration/1"] = "perfflow.calibration/1"
Share = Annotated[FiniteFloat, Field(ge=0)]


@dataclass(frozen=True)
class CalibrationFinding:
    """One metric of one benchmark, compared with itself. ``exact`` metrics have no noise and no further data.

    ``noise`` is the robust spread of ln(second/first) between the runs of a pair. Of ``trials`` completed comparisons,
    ``alarms`` proved a change of any size (the true share is at most ``alarm_bound``, 95%) and ``same`` proved that
    there is none; ``pairs`` and ``seconds`` are their medians. ``smallest_change`` is the smallest change detected in 9
    of 10 replays (None: none was), with up to ``replayed`` pairs, which take ``within`` seconds. ``alone``: how much
    longer the benchmark takes in a process of its own than among the others of its suite, as a share; None if that is
    not proven beyond the concern threshold.
    """

    step: str
    benchmark: str
    metric: str
    exact: bool = False
    judged: bool = False
    why: str = ""
    noise: Share | None = None
    trials: int = 0
    alarms: int = 0
    alarm_bound: Share | None = None
    same: int = 0
    pairs: Share | None = None
    seconds: Share | None = None
    smallest_change: Share | None = None
    replayed: int = 0
    within: Share | None = None
    alone: FiniteFloat | None = None


@dataclass(frozen=True)
class CalibrationEntry:
    """A finding and its origin. ``machine`` is the noise class of the machine then, '' if it was not checked."""

    workflow: str
    params: dict[str, Any]
    calibrated: str
    seed: int
    version: str
    machine: str
    finding: CalibrationFinding


class _File(BaseModel):
    model_config = ConfigDict(populate_by_name=True, defer_build=True)
    schema_: Literal["perfflow.calibration/1"] = Field(alias="schema")
    identity: str
    entries: list[CalibrationEntry]


def path_of(root: Path, identity: str) -> Path:
    """Return the calibration file of a machine."""
    return root / run_folder.HOME / "calibration" / f"{run_folder.file_name(identity)}.json"


def page_of(root: Path) -> Path:
    """Return the page of the machine that was calibrated last."""
    return root / run_folder.HOME / "calibration" / run_folder.PAGE


def load(root: Path, identity: str) -> list[CalibrationEntry]:
    """Return all entries of a machine, none if it was never calibrated. Raises UserError for a damaged file."""
    file = path_of(root, identity)
    try:
        found = _File.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a calibration of this version of perfflow"
        raise UserError.of(f"{file}: {reason}", "remove it, and run `perfflow calibrate` again") from error
    return found.entries if found.identity == identity else []


def store(root: Path, identity: str, fresh: Sequence[CalibrationEntry], *, whole: bool) -> Path:
    """Store entries of one workflow, replacing all of its entries (``whole``) or those of the same steps."""
    workflows = {entry.workflow for entry in fresh}
    steps = {entry.finding.step for entry in fresh}
    file = path_of(root, identity)
    file.parent.mkdir(parents=True, exist_ok=True)
    with only_writer(file.parent):
        kept = [
            entry
            for entry in load(root, identity)
            if entry.workflow not in workflows or not (whole or entry.finding.step in steps)
        ]
        data = {"schema": SCHEMA, "identity": identity, "entries": to_json([*kept, *fresh])}
        run_folder.write_text(file, json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    return file


def to_json(entries: Sequence[CalibrationEntry]) -> list[dict[str, Any]]:
    """Return plain data."""
    found: list[dict[str, Any]] = TypeAdapter(list[CalibrationEntry]).dump_python(list(entries), mode="json")
    return found


def from_json(data: Sequence[Any]) -> list[CalibrationEntry]:
    """Read entries from plain data. Raises ValueError."""
    return TypeAdapter(list[CalibrationEntry]).validate_python(list(data))


def expected_noise(
    root: Path, identity: str, workflow: str, params: Mapping[str, Any]
) -> Iterator[tuple[str, str, Expected]]:
    """Yield benchmark, metric and calibration for a run of this workflow with these parameters on this machine."""
    plain_params = _plain(params)
    for entry in load(root, identity):
        finding = entry.finding
        if entry.workflow == workflow and _plain(entry.params) == plain_params and finding.noise is not None:
            known = Expected(
                noise=finding.noise,
                smallest_change=finding.smallest_change,
                within=finding.within,
                calibrated=entry.calibrated,
            )
            yield finding.benchmark, finding.metric, known


def disturbed_suites(root: Path, identity: str, workflow: str, params: Mapping[str, Any]) -> frozenset[str]:
    """Return the steps of this workflow whose benchmarks disturb each other on this machine."""
    wanted = _plain(params)
    own = (item for item in load(root, identity) if item.workflow == workflow and _plain(item.params) == wanted)
    return frozenset(item.finding.step for item in own if item.finding.alone is not None)


def _plain(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=str)
