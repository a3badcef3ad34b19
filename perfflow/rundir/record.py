"""Events -> Record: everything a run measured, and nothing it concluded.

A live run, a killed one and a stored one are the same fold over the same events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perfflow.samples.readings import Hotspot, Reading, Side

SCHEMA = "perfflow.events/1"


@dataclass
class Series:
    """All readings of one metric of one benchmark. ``paired``: equally long sides, taken in coin-flip order."""

    benchmark: str
    metric: str
    step: str
    tool: str
    paired: bool
    sides: dict[Side, list[Reading]] = field(default_factory=lambda: {side: [] for side in Side})


@dataclass
class Record:
    """What happened in a run, step by step and sample by sample."""

    run: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    trees: dict[str, Any] = field(default_factory=dict)
    criteria: dict[str, Any] = field(default_factory=dict)
    planned: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    series: dict[tuple[str, str], Series] = field(default_factory=dict)
    interrupted: bool = False
    warnings: dict[str, list[str]] = field(default_factory=dict)

    def fold(self, event: Mapping[str, Any]) -> None:
        """Take in one event; unknown kinds are left to later versions."""
        match event.get("event"):
            case "run":
                for name in ("run", "machine", "trees", "criteria"):
                    getattr(self, name).update(event[name])
                self.planned = {item["id"]: item for item in event["steps"]}
            case "sample":
                self._take_sample(event)
            case "step":
                self.steps[event["id"]] = {key: value for key, value in event.items() if key != "event"}
                for side, readings in event.get("readings", {}).items():
                    self._take_alone(event["id"], Side(side), [reading_from_json(item) for item in readings])
            case "interrupted":
                self.interrupted = True
            case "end":
                self.run["finished"] = event["time"]

    def _take_sample(self, event: Mapping[str, Any]) -> None:
        taken = {side: [reading_from_json(item) for item in event[side]] for side in Side if side in event}
        if len(taken) == 1:
            (side, readings), *_ = taken.items()
            self._take_alone(event["step"], side, readings)
            return
        candidates = {(item.benchmark, item.metric): item for item in taken[Side.CANDIDATE]}
        for reading in taken[Side.BASELINE]:
            # A metric that only one side of a pair has (a program that starts a thread now and then) is no pair.
            other = candidates.get((reading.benchmark, reading.metric))
            series = self._series(event["step"], reading, paired=True)
            if other and series:
                series.sides[Side.BASELINE].append(reading)
                series.sides[Side.CANDIDATE].append(other)

    def _take_alone(self, step: str, side: Side, readings: Iterable[Reading]) -> None:
        for reading in readings:
            series = self._series(step, reading, paired=False)
            if series:
                series.sides[side].append(reading)

    def _series(self, step: str, reading: Reading, *, paired: bool) -> Series | None:
        """The series a reading belongs to. The first step to measure something owns it; a second one is told so."""
        plan = self.planned.get(step, {})
        benchmark = reading.benchmark or plan.get("benchmark") or step
        key = (benchmark, reading.metric)
        series = self.series.get(key)
        if series is None:
            series = self.series[key] = Series(benchmark, reading.metric, step, plan.get("tool") or "run", paired)
        if series.step == step:
            return series
        note = f"`{reading.metric}` of `{benchmark}` was already measured by step `{series.step}`"
        if note not in self.warnings.setdefault(step, []):
            self.warnings[step].append(note)
        return None

    def hotspots(self) -> list[tuple[str, Side, Hotspot]]:
        """All hotspots as (step, side, hotspot), in the order of the steps."""
        return [
            (step_id, Side(item["tree"]), hotspot_from_json(item))
            for step_id, step in self.steps.items()
            for item in step.get("hotspots", [])
        ]


def record_of(events: Iterable[Mapping[str, Any]]) -> Record:
    """Fold all events of a run."""
    record = Record()
    for event in events:
        record.fold(event)
    return record


def reading_to_json(reading: Reading) -> dict[str, Any]:
    """Plain data with the defaults left out: most lines of a long run are readings."""
    data: dict[str, Any] = {"metric": reading.metric, "value": reading.value}
    if reading.benchmark:
        data["benchmark"] = reading.benchmark
    if reading.inner:
        data["inner"] = dict(reading.inner)
    if reading.at_most:
        data["at_most"] = True
    return data


def reading_from_json(data: Mapping[str, Any]) -> Reading:
    """Read what ``reading_to_json`` wrote."""
    return Reading(
        data["metric"], data["value"], data.get("benchmark", ""), data.get("inner", {}), data.get("at_most", False)
    )


def hotspot_to_json(hotspot: Hotspot, side: Side) -> dict[str, Any]:
    """Plain data for events."""
    return {name: getattr(hotspot, name) for name in Hotspot.__slots__} | {"tree": side.value}


def hotspot_from_json(data: Mapping[str, Any]) -> Hotspot:
    """Read what ``hotspot_to_json`` wrote."""
    return Hotspot(**{name: data[name] for name in Hotspot.__slots__ if name in data})
