"""Dataclasses from and to plain data: missing, unknown, flat and omitted fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import Hotspot, Peak, Side
from perfflow.model.result import Optimization
from perfflow.model.targets import SourcePlace, Use
from perfflow.store.run_facts import BenchmarkCosts, FoundHotspot, FunctionCost, SideCost, StepRecord, StoredProfile

SPOT = Hotspot("f", 0.4, "time", "perf", "a.c", 3)
COST = FunctionCost("f", "a.c", 3, "", "", SideCost(1.0, 0.5, None), SideCost(2.0, 0.6, 0.1))
WHOLE = [
    FoundHotspot(SPOT, Side.CANDIDATE),
    FoundHotspot(SPOT, Side.BASELINE, SourcePlace("f", 1, (Use.IN_LOOP, Use.TEXT))),
    BenchmarkCosts("b", "time", "perf", "timed", None, "", {Side.BASELINE: 2}, {Side.BASELINE: 3.0}, (COST,)),
    StepRecord(
        "s",
        "done",
        profiles=(StoredProfile(Side.BASELINE, "p", "folded", "0"),),
        hotspots=(FoundHotspot(SPOT, Side.BASELINE),),
        peaks=(Peak("bandwidth", 1e9),),
        optimizations=(Optimization(id="t", technique="", why="", decision="skipped", reason="why", lines=2),),
    ),
]


@pytest.mark.parametrize("made", WHOLE, ids=lambda made: type(made).__name__)
def test_what_is_written_is_read_as_it_was(made: Any) -> None:
    assert from_json(type(made), json.loads(json.dumps(to_json(made)))) == made


def test_flat_parts_stand_beside_the_other_keys_and_defaults_are_left_out() -> None:
    assert list(to_json(FoundHotspot(SPOT, Side.BASELINE)))[-2:] == ["benchmark", "tree"]
    assert "benchmark" not in to_json(StoredProfile(Side.BASELINE, "p", "folded", "0"))


def test_keys_and_words_of_a_later_version_are_left_out() -> None:
    ended = StepRecord("s", "done", warnings=("a",))
    assert from_json(StepRecord, {**to_json(ended), "unheard": 1}) == ended
    assert from_json(SourcePlace, {"function": "f", "uses": ["unheard", str(Use.TEXT)]}).uses == (Use.TEXT,)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (StepRecord, {"id": "s"}),
        (StepRecord, "s"),
        (StepRecord, {"id": "s", "status": "done", "argv": 3}),
        (StepRecord, {"id": "s", "status": "done", "profiles": [3]}),
        (StepRecord, {"id": "s", "status": "done", "hotspots": [{"tree": "baseline"}]}),
        (FoundHotspot, {**to_json(FoundHotspot(SPOT, Side.BASELINE)), "tree": "third"}),
    ],
)
def test_what_is_damaged_is_refused(kind: type, data: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_json(kind, data)
